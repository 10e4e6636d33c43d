"""Drawings are safe for any token, deterministic, and say the same in HTML, SVG and text."""

import random
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from subword_nb.core.draw import (
    INK,
    PALETTE,
    Strip,
    Svg,
    clip,
    draw_bars,
    draw_merge_tree,
    draw_tokens,
    printable,
)
from subword_nb.core.unicode import category

INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Tags(HTMLParser):
    "Collects tags, attributes and text of a drawing."

    def __init__(self, html):
        super().__init__()
        self.tags, self.attrs, self.text = [], set(), []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs |= {k for k, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


def random_piece(rng):
    pools = [
        "ab <>&\"'\\/=",
        "\u202e\u2066\u200d\u200b\ufeff\u00ad",
        "\u0300\u0301\u20dd",
        "\x00\x1b\x07\x9b\n\r\t\u2028",
        "\ud800\udfff",
        "é東🚀\U0010ffff\ue000",
    ]
    piece = "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(12)))
    return piece.encode("utf-8", "surrogatepass")[rng.randrange(3) :] if rng.random() < 0.3 else piece


def test_generated_tokens_are_shown_safely():
    rng = random.Random(0)
    for _ in range(300):
        pieces = [random_piece(rng) for _ in range(rng.randrange(1, 8))]
        strip = draw_tokens(pieces, ids=range(len(pieces)), title=rng.choice(["", "<i>t", '"']))
        page = Tags(strip._repr_html_())
        assert set(page.tags) <= {"div", "span", "br"} and page.attrs <= {
            "style",
            "title",
            "role",
            "aria-label",
        }
        for shown in (strip._repr_html_(), str(strip), strip.terminal(color=False, width=20)):
            shown.encode("utf-8")
            assert not [c for c in shown if c != "\n" and category(c) in INVISIBLE]
        assert not [
            c
            for c in re.sub(r"\x1b\[[0-9;]*m", "", strip.terminal(color=True, width=20))
            if c != "\n" and category(c) in INVISIBLE
        ]


def test_printable_is_its_own_label_and_keeps_ordinary_text():
    assert printable("naïve–東京🚀") == "naïve–東京🚀"
    assert printable("a b\n\t\r") == "a·b⏎⇥⇤"
    assert printable("a b", space=" ") == "a b"
    assert printable("ก็ี้") == "ก็ี้"  # stacked marks that a language uses are drawn
    for piece in ("\u202e", "x" + "\u0300" * 50, "\u0300\u0301", "\x7f", "\u3164", "\ufe0f"):
        assert printable(printable(piece)) == printable(piece) != piece
    assert (
        printable(b"\xf0\x9f\x9a") == "⟨F0 9F 9A⟩"
        and printable("🚀".encode()) == "🚀"
        and printable(b"\xed\xa0\x80") == "⟨ED A0 80⟩"
    )


def test_a_long_token_is_cut_and_a_long_strip_is_counted():
    html = draw_tokens(["=" * 1_000_000])._repr_html_()
    assert len(html) < 2000 and "1000000 bytes" in html
    strip = draw_tokens(["ab"] * 2500, limit=10)
    assert (
        len(strip.chips) == 10
        and strip.n_hidden == 2490
        and "2,490 more" in str(strip)
        and "2,490 more" in strip._repr_html_()
    )


def test_lines_wrap_at_the_width_and_at_newlines():
    strip = draw_tokens(["東京", " is", "\n", "big"] * 10, ids=range(40))
    for width in (20, 40, 80):
        lines = strip.terminal(color=False, width=width).splitlines()
        assert max(map(len, lines)) <= width
    assert str(strip).count("⏎\n") == 10


@pytest.mark.parametrize(
    ("env", "tty", "colored"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": ""}, True, True),
    ],
)
def test_the_terminal_is_asked_for_colors(monkeypatch, env, tty, colored):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for k, v in env.items():
        monkeypatch.setenv(k, v)
    monkeypatch.setattr("sys.stdout", type("Out", (), {"isatty": lambda self: tty})())
    assert ("\x1b[" in draw_tokens(["a"]).terminal()) == colored


def test_svg_is_well_formed_and_has_an_alternative_text():
    rng = random.Random(1)
    for _ in range(200):
        a, b, c = (random_piece(rng) for _ in range(3))
        for figure in (
            draw_merge_tree([(a, b, (c, b, a, "note <1>")), c]),
            draw_bars([(a, 3), (b, 0.5), (c, 0)], title="<t>"),
        ):
            root = ElementTree.fromstring(figure.svg)
            ns = "{http://www.w3.org/2000/svg}"
            assert {e.tag.removeprefix(ns) for e in root.iter()} <= {
                "svg",
                "title",
                "text",
                "tspan",
                "rect",
                "path",
            }
            assert (
                root.get("role") == "img"
                and root.get("aria-label") == root.find(ns + "title").text == figure.alt
            )
            assert not [ch for ch in str(figure) if ch != "\n" and category(ch) in INVISIBLE]


def test_tree_boxes_do_not_overlap():
    rng = random.Random(2)

    def tree(depth):
        label = "x" * rng.randrange(1, 12)
        return label if depth == 0 or rng.random() < 0.3 else (label, tree(depth - 1), tree(depth - 1))

    for _ in range(50):
        svg = draw_merge_tree([tree(5), tree(3)]).svg
        rows = {}
        for x, y, w in re.findall(r'<rect x="([\d.-]+)" y="(\d+)" width="([\d.]+)"', svg):
            rows.setdefault(y, []).append((float(x), float(x) + float(w)))
        total = float(re.search(r' width="(\d+)"', svg).group(1))
        for spans in rows.values():
            spans.sort()
            assert spans[0][0] >= 0 and spans[-1][1] <= total
            assert all(a[1] < b[0] for a, b in zip(spans, spans[1:]))


def test_same_input_same_picture():
    assert draw_tokens(["a", " b"], ids=[1, 2]) == draw_tokens(["a", " b"], ids=[1, 2])
    assert isinstance(draw_tokens([]), Strip) and str(draw_tokens([])) == ""
    assert draw_merge_tree(("ab", "a", "b")) == draw_merge_tree(("ab", "a", "b")) and isinstance(
        draw_bars([("a", 0)]), Svg
    )


def test_palette_has_six_colors_with_their_own_ink():
    assert len({c for c, _ in PALETTE}) == 6 and all(
        re.fullmatch("#[0-9a-f]{6}", c) for c in [INK, *(c for c, _ in PALETTE)]
    )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: draw_tokens("text"), "tok.tokenize"),
        (lambda: draw_tokens(["a"], ids=[1, 2]), "ids must contain one id for each of the 1 pieces, got 2"),
        (lambda: draw_tokens([None]), "got NoneType"),
        (lambda: clip("a", n=0), "n>=1"),
        (lambda: draw_merge_tree([]), "at least one tree"),
        (
            lambda: draw_merge_tree(("a", "b")),
            "tree must be a piece (str or bytes) or a tuple (piece, left, right), got ('a', 'b')",
        ),
        (
            lambda: draw_merge_tree(7),
            "tree must be a piece (str or bytes) or a tuple (piece, left, right), got 7",
        ),
        (lambda: draw_bars([]), "pairs must contain at least one (label, number), got none"),
        (lambda: draw_bars([("a", -1)]), "pairs[0] must have a finite number from 0 as its value, got"),
        (lambda: draw_bars([("a", "b")]), "pairs[0] must have a finite number from 0 as its value, got"),
        (lambda: draw_bars([("a", 1)], width=10), "width>=200"),
    ],
)
def test_mistakes_are_named(call, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        call()


def test_a_tree_too_deep_is_refused():
    tree = "a"
    for _ in range(300):
        tree = ("a", tree, "b")
    with pytest.raises(ValueError, match="200 levels"):
        draw_merge_tree(tree)
