"""What tests of drawings share: a reader of HTML that wants its tags balanced."""

from html.parser import HTMLParser


class Page(HTMLParser):
    "A page whose tags balance: its tags, its attributes (tag, name, value), its text."

    def __init__(self, html):
        super().__init__()
        self.open, self.tags = [], []
        self.attrs, self.text = [], []
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs += [(tag, k, v) for k, v in attrs]
        if tag not in ("br", "hr", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs += [(tag, k, v) for k, v in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)
