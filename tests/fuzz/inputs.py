"""What the fuzz targets are made of: choices and texts out of bytes, and a mutator that knows JSON."""

import contextlib
import copy
import json
import random

PIECES = [
    *"aaaeeehilnoprstuw",
    *"ABHÉİßſ",
    *" " * 8,
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\u200b",
    "\x00",
    "\x07",
    "\x1c",
    "\x7f",
    "\ufeff",
    "▁",
    "▁",
    "▁▁",
    " ▁",
    "é",
    "e\u0301",
    "\u0301",
    "\u0345",
    "ﬁ",
    "ﷺ",
    "½",
    "Ⅳ",
    "\u212a",
    "你",
    "好",
    "你好",
    "日本",
    "か\u3099",
    "한",
    "ᄒ",
    "ᅡ",
    "ᆨ",
    "न",
    "\u094d",
    "ก็",
    "ש",
    "ع",
    "🤗",
    "👩\u200d👩",
    "🇫🇷",
    "\U000e0001",
    "\ue000",
    "\ufffd",
    "\u0378",
    "\U0010ffff",
    *"0123456789",
    "١",
    *".,;:!?'\"()[]{}<>#@&*+-=/\\|^~`$%_",
    "'s",
    "'LL",
    "don't",
    "low",
    "lower",
    " low",
    "light",
    "hug",
    "hugs",
    " the",
    "the",
    "<s>",
    "</s>",
    "<unk>",
    "[UNK]",
    "[SEP]",
    "[MASK]",
    "##",
    "</w>",
    "<0x41>",
    "<0xE2>",
    "@@",
    "aaaa",
    "x" * 17,
    " " * 9,
    "é" * 20,
    "你" * 33,
    "ab" * 40,
    "\n\n\n",
]


class Choices:
    "Decisions out of bytes, one after the other; zeros once they are used up."

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def number(self, most: int) -> int:
        "From 0 to `most`."
        return (self.byte() | self.byte() << 8 if most > 255 else self.byte()) % (most + 1)

    def flag(self) -> bool:
        return self.byte() & 1 == 1

    def pick(self, several):
        return several[self.number(len(several) - 1)]

    def some(self, several, most: int) -> list:
        return [self.pick(several) for _ in range(self.number(most))]

    def text(self, most: int = 12) -> str:
        return "".join(self.some(PIECES, most))

    def rest(self) -> bytes:
        return self.data[self.at :]


def text_of(data: bytes) -> str:
    "A text of pieces that have made trouble somewhere, one for each byte; or what the bytes spell, if they begin with U."
    if data[:1] == b"U":
        return data[1:].decode("utf-8", "replace")
    return "".join(PIECES[b % len(PIECES)] for b in data)


def text_bytes(text: str) -> bytes:
    "Bytes that `text_of` makes the text of."
    return b"U" + text.encode()


ODD_VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    2**64,
    -(2**63),
    10**400,
    0.5,
    1e308,
    -0.0,
    "",
    "a",
    "▁",
    "<unk>",
    "\ud800",
    "\x00",
    "é",
    "(",
    "(?:a+)+b",
    "\\p{L}",
    "[a",
    "a{99999}",
    "x" * 300,
    [],
    {},
    [[]],
    [None],
    ["a", 0],
    {"": None},
    {"type": "Sequence"},
    [["a", "b"]],
    [["a", -1.0]],
    float("nan"),
    float("inf"),
]


def _places(value, found, path=()):
    "The places in a JSON value, not too deep."
    found.append(path)
    if len(path) > 40:
        return found
    if isinstance(value, dict):
        for k in list(value)[:50]:
            _places(value[k], found, (*path, k))
    elif isinstance(value, list):
        for i in range(min(len(value), 50)):
            _places(value[i], found, (*path, i))
    return found


def _changed_json(value, rng):
    "A JSON value with one place replaced, removed, doubled, or exchanged with another."
    path = rng.choice(_places(value, []))
    if not path:
        return copy.deepcopy(rng.choice(ODD_VALUES)) if rng.random() < 0.1 else value
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    last, what = path[-1], rng.randrange(6)
    if what == 0:
        del holder[last]
    elif what == 1 and isinstance(holder, list):
        holder.insert(last, holder[last])
    elif what == 2:
        source = value
        for step in rng.choice(_places(value, [])):
            source = source[step]
        holder[last] = copy.deepcopy(source)
    elif what == 3 and isinstance(holder, dict):
        holder[rng.choice(["", "x", "type", str(last) + "s"])] = holder.pop(last)
    elif what == 4 and isinstance(holder[last], str):
        holder[last] = _changed_text(holder[last], rng)
    elif what == 5 and rng.random() < 0.05:
        for _ in range(rng.choice((20, 2000))):
            holder[last] = (
                [holder[last]]
                if rng.random() < 0.9
                else {"type": "Sequence", "normalizers": [holder[last]], "pretokenizers": [holder[last]]}
            )
    else:
        holder[last] = copy.deepcopy(rng.choice(ODD_VALUES))
    return value


def _changed_text(text, rng):
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return (
        text[:a]
        + rng.choice((rng.choice(PIECES), "", text[a:b] * 2))
        + text[b if rng.random() < 0.5 else a :]
    )


def _dumped(value) -> bytes:
    "JSON; what is nested too deeply for the library is written by hand."
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):  # a value that holds itself is refused so, too
        return b'{"a":' * 3000 + b"1" + b"}" * 3000


INTERESTING = [
    b"\x00",
    b"\xff",
    b"\xff" * 9 + b"\x01",
    b"\x80" * 11,
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\xff" * 8,
    b"\x00" * 8,
    b"\x01\x00\x00\x00\x00\x00\x00\x80",
    b"\n",
    b" ",
    b"=",
    b"99999999999999999999",
    b"-1",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\x80",
    b"\xe2\x96\x81",
    b"\xef\xbb\xbf",
    b"1e999",
]


def mutated(data: bytes, rng: random.Random, seeds: list, most: int = 1 << 14) -> bytes:
    "A changed input: bytes flipped, cut out, doubled, put in, or joined with another seed; of JSON often a value instead."
    if rng.random() < 0.5 and data.lstrip()[:1] in (b"{", b"["):
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if value is not None:
            with contextlib.suppress(RecursionError):  # what was nested deeply is not changed again
                for _ in range(rng.choice((1, 1, 2, 4))):
                    if isinstance(value, (dict, list)):
                        value = _changed_json(value, rng)
            return _dumped(value)[: 8 * most]
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        what, at = rng.randrange(7), rng.randrange(len(out) + 1)
        n = min(1 << rng.randrange(9), len(out) - at)
        if what == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(out):
            out[at] = rng.randrange(256)
        elif what == 2:
            del out[at : at + n]
        elif what == 3:
            out[at:at] = out[at : at + n] * rng.choice((1, 1, 2, 16))
        elif what == 4:
            piece = rng.choice(INTERESTING)
            out[at : at + (len(piece) if rng.random() < 0.5 else 0)] = piece
        elif what == 5 and seeds:
            other = rng.choice(seeds)
            a = rng.randrange(len(other) + 1)
            out[at:] = (
                other[a : a + rng.randrange(len(other) - a + 1)]
                if rng.random() < 0.5
                else other[a : a + n] + out[at:]
            )
        else:
            out[at:at] = rng.randbytes(1 << rng.randrange(7))
    return bytes(out[:most])
