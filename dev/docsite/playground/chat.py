"""A chat as ids: who wrote each token, the template or a message, and which special tokens the messages only spell."""

import json
from copy import copy

from subword_nb.pipeline.added_tokens import AddedFinder
from subword_nb.pipeline.chat import chosen_template, encode_marked, template_commands
from subword_nb.pipeline.chat_templates import FIRST_MESSAGE, render_chat
from subword_nb.pipeline.origins import OUTSIDE, TEMPLATE, origin_at, origin_ranges, origin_tags, owner_at
from subword_nb.pipeline.vocab import AddedToken

MOST_TEXT = 5_000  # Characters of all messages
MOST_TOKENS = 200  # Special tokens of a template


def with_special(tok, contents: list[str]):
    "A tokenizer with special tokens; those it lacks get the next ids."
    if len(contents) > MOST_TOKENS:
        raise ValueError(f"a template must have at most {MOST_TOKENS} special tokens, got {len(contents)}")
    special = {t.content for t, _ in tok.added_tokens if t.special}
    new = [content for content in contents if content not in special]
    if not new:
        return tok
    tok = copy(tok)
    tok.add_tokens(new, special=True)
    return tok


def spelled_by_messages(text, tags: str, commands) -> list[str]:
    "The special tokens that messages spell; there they are words."
    if not commands:
        return []
    finder = AddedFinder([AddedToken(content) for content in sorted(commands)])
    return [
        token.content
        for start, end in origin_ranges(tags, [OUTSIDE])
        for _, _, token in finder.spans(text[start:end])
        if token is not None
    ]


def chat(tok, request: str) -> dict:
    "The text of a chat, and its tokens; the request has messages, source, special, variables and prompt, as JSON."
    asked = json.loads(request)
    messages = asked["messages"]
    if sum(len(m["content"]) for m in messages) > MOST_TEXT:
        raise ValueError(f"the messages must have at most {MOST_TEXT:,} characters together; shorten them")
    own = dict(tok.config.special_tokens) if asked["source"] is None and tok.config else {}
    source = chosen_template(tok, asked["source"])
    tok = with_special(tok, asked["special"])
    rendered = render_chat(
        messages,
        source,
        add_generation_prompt=asked["prompt"],
        special_tokens=own or asked["variables"],
    )
    commands, tags, plain = template_commands(tok, source), origin_tags(rendered), str.__str__(rendered)
    found, pieces = encode_marked(tok, rendered, commands), tok.id2piece
    tokens = []
    for i, (start, end) in zip(found.ids, found.offsets, strict=True):
        at = min(start, len(tags) - 1)
        by_template = all(origin_at(tags, j) == TEMPLATE for j in range(at, max(end, at + 1)))
        tokens.append(
            {
                "id": i,
                "text": plain[start:end] or pieces[i],
                "message": owner_at(tags, at) - FIRST_MESSAGE,  # below 0: the template alone
                "by": ("special" if pieces[i] in commands else "template") if by_template else "message",
            }
        )
    return {"text": plain, "tokens": tokens, "spelled": spelled_by_messages(plain, tags, commands)}
