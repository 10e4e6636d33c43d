"""Decoders against HF tokenizers: every option of every kind, files good and bad, and sequences of them."""

import json
import pickle
import random

import pytest

from subword_nb import decoders as D
from subword_nb.pipeline.decoders import decoder_from_dict

# Spaces of every kind, affixes of every decoder, parts of bytes, emoji, combining marks, Hangul parts, controls,
# private and unassigned characters
LETTERS = [
    *"abcn't.?!,'",
    *" \u00a0\u2003\u3000\u200b\ufeff\t\r\n\x0b\x0c\x1c\x1f\x85\u2028",
    *"▁▁_|#Ġ",
    "é",
    "e\u0301",
    "ß",
    "\u1112\u1161\u11ab",
    "한",
    "你",
    "ש",
    "ﷺ",
    "\x00",
    "\x7f",
    "\ue000",
    "\u0378",
    "👩\u200d🚀",
    "👍🏽",
    "\U000323b0",
    "\ufffd",
]
WORDS = [
    "##",
    "</w>",
    "<pad>",
    "|",
    " do not",
    "n't",
    " 've",
    "<0xC3>",
    "<0xA9>",
    "<0xe4>",
    "<0xBD>",
    "<0xA0>",
    "<0x41>",
    "<0x+1>",
    "<0xg1>",
    "<0x4>",
    "Ã",
    "©",
    "ðŁĺ",
    "Ģ",
    "",
]


def piece(rng: random.Random) -> str:
    "A piece that some decoder has something to say about."
    if rng.random() < 0.4:
        return rng.choice(WORDS)
    return "".join(rng.choice(WORDS if rng.random() < 0.2 else LETTERS) for _ in range(rng.randrange(5)))


def some_pieces(rng: random.Random) -> list[str]:
    "Pieces with runs of equal ones."
    return [p for _ in range(rng.randrange(7)) for p in [piece(rng)] * rng.choice((1, 1, 1, 2, 3))]


PATTERNS = [
    "a+",
    "(a)(b)?",
    "(?<=a)b",
    r"\d",
    "a*",
    "a*?",
    "",
    "^a",
    "$",
    r"\s",
    r"\s+",
    "(?i)s",
    ".",
    r"a$",
    r"\bx",
    r"\h",
    r"\w+",
    r"\z",
    "▁",
    "^▁",
    "▁{2,}",
    r"[^\s]+",
    r"(?=a)",
    r"a|",
    r"|a",
    r"\p{L}",
    r"\p{Han}",
    r"(?m:.)",
    r"[ \t]+$",
    "gpt2",
    r"\.",
    r"(?:n't| 've)",
    r"[\u00a0 ]",
    r"\S",
]


def singles(theirs, regex):
    "Each of our decoders with HF's, at all settings that matter."
    yield D.ByteLevel(), theirs.ByteLevel()
    yield D.ByteFallback(), theirs.ByteFallback()
    yield D.Fuse(), theirs.Fuse()
    for suffix in ("</w>", "", "a", " ", "▁▁"):
        yield D.BPEDecoder(suffix), theirs.BPEDecoder(suffix)
    for flag in (True, False):
        for prefix in ("##", "", "a", " "):
            yield D.WordPiece(prefix, flag), theirs.WordPiece(prefix, flag)
        for pad, mark in (("<pad>", "|"), ("", ""), ("a", " "), ("", "▁"), ("|", "|")):
            yield D.CTC(pad, mark, flag), theirs.CTC(pad, mark, flag)
    for scheme in ("always", "first", "never"):
        for mark in "▁_ é":
            yield D.Metaspace(mark, scheme), theirs.Metaspace(mark, scheme)
    for old, new in (
        ("▁", " "),
        ("a", ""),
        ("", "-"),
        ("ab", "$1"),
        ("a+", "$0"),
        (" ", "  "),
        ("\u0301", "\\1"),
    ):
        yield D.Replace(old, new), theirs.Replace(old, new)
    for source in PATTERNS:
        yield D.Replace({"Regex": source}, "<$0>"), theirs.Replace(regex(source), "<$0>")


@pytest.mark.peers
def test_hf_on_generated_pieces():
    tk, rng = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers"), random.Random(1)
    lists = [[], [""], *(some_pieces(rng) for _ in range(300))]
    for ours, other in singles(tk.decoders, tk.Regex):
        for pieces in lists:
            assert "".join(ours.decode(pieces)) == other.decode(pieces), (ours, pieces)


def panics(part: str, d: D.Strip) -> bool:
    "Does HF's Strip read outside of this part?"
    return (
        d.stop > 0
        and not part.strip(d.content)
        and (d.stop > len(part) or min(d.start, len(part)) + d.stop > len(part))
    )


@pytest.mark.peers
def test_hf_strip():
    theirs, rng = (
        pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").decoders,
        random.Random(2),
    )
    for _ in range(4000):
        ours = D.Strip(rng.choice(" ▁a"), rng.randrange(4), rng.randrange(4))
        pieces = [
            p
            for _ in range(rng.randrange(5))
            if not panics(p := "".join(rng.choices(" ▁ab", k=rng.randrange(6))), ours)
        ]
        assert "".join(ours.decode(pieces)) == theirs.Strip(ours.content, ours.start, ours.stop).decode(
            pieces
        ), (ours, pieces)


def test_strip_where_hf_has_no_answer():
    "HF reads outside of a part that is nothing but the character; here nothing is left of it."
    for n in range(5):
        for start in range(4):
            for stop in range(1, 4):
                d = D.Strip("x", start, stop)
                if panics("x" * n, d):
                    assert d.decode(["x" * n]) == [""]


def sequence(rng: random.Random, theirs, regex, depth: int = 0):
    "A random Sequence of ours with HF's; without a Strip that HF panics on."
    found, kinds = [], list(singles(theirs, regex))
    for _ in range(rng.randrange(5)):
        if rng.random() < 0.2:
            n = rng.randrange(3)
            found.append((D.Strip(" ", n, 0), theirs.Strip(" ", n, 0)))
        elif rng.random() < 0.15 and depth < 3:
            found.append(sequence(rng, theirs, regex, depth + 1))
        else:
            found.append(rng.choice(kinds))
    return D.Sequence([ours for ours, _ in found]), theirs.Sequence([other for _, other in found])


@pytest.mark.peers
def test_hf_on_sequences():
    tk, rng = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers"), random.Random(3)
    for _ in range(250):
        ours, other = sequence(rng, tk.decoders, tk.Regex)
        for pieces in ([], *(some_pieces(rng) for _ in range(12))):
            assert "".join(ours.decode(pieces)) == other.decode(pieces), (ours, pieces)


def in_hf(tk, d):
    "What HF makes of a decoder in a file, or None where it refuses it."
    full = json.loads(tk.Tokenizer(tk.models.WordLevel({"a": 0, "[UNK]": 1}, "[UNK]")).to_str())
    try:
        return json.loads(tk.Tokenizer.from_str(json.dumps(full | {"decoder": d})).to_str())["decoder"]
    except Exception:
        return None


def ours_of(d):
    "What we make of it, or None where it is refused with a path."
    try:
        return decoder_from_dict(d).to_dict()
    except ValueError as e:
        assert str(e).startswith("decoder"), e
        return None


@pytest.mark.peers
def test_files_are_those_of_hf():
    tk, rng = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers"), random.Random(4)
    for ours, other in [
        *singles(tk.decoders, tk.Regex),
        *(sequence(rng, tk.decoders, tk.Regex) for _ in range(30)),
        (D.Strip("é", 3, 2), tk.decoders.Strip("é", 3, 2)),
    ]:
        tok = tk.Tokenizer(tk.models.WordLevel({"a": 0}, "a"))
        tok.decoder = other
        d = json.loads(tok.to_str())["decoder"]
        assert (
            d == ours.to_dict() and decoder_from_dict(d) == ours and hash(decoder_from_dict(d)) == hash(ours)
        )
        assert in_hf(tk, ours.to_dict()) == d


# Old spellings, options that are null or left out, wrong types: HF reads the first, and refuses the second
READ = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False},
    {"type": "Metaspace", "replacement": "▁"},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": None},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "prepend_scheme": "never"},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": False, "prepend_scheme": "never"},
    {"type": "Metaspace", "replacement": "▁", "split": None},
    {"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": True},
    {"type": "Metaspace", "replacement": "▁", "str_rep": "_"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
    {"type": "Sequence", "decoders": []},
    {"type": "Strip", "content": "é", "start": 2**64 - 1, "stop": 0},
    {"type": "Replace", "pattern": {"Regex": "(?<=a)b"}, "content": ""},
]
REFUSED = [
    {},
    [],
    "ByteLevel",
    1,
    True,
    {"type": None},
    {"type": "Foo"},
    {"type": "CTC"},
    {"type": "CTC", "pad_token": "", "word_delimiter_token": "|"},
    {"type": "CTC", "pad_token": "", "word_delimiter_token": "|", "cleanup": 1},
    {"type": "Strip", "content": "  ", "start": 1, "stop": 0},
    {"type": "Strip", "content": "", "start": 1, "stop": 0},
    {"type": "Strip", "content": " ", "start": -1, "stop": 0},
    {"type": "Strip", "content": " ", "start": 1},
    {"type": "Strip", "start": 1, "stop": 0},
    {"type": "Strip", "content": " ", "start": 1.0, "stop": 0},
    {"type": "Strip", "content": " ", "start": True, "stop": 0},
    {"type": "Strip", "content": " ", "start": 2**64, "stop": 0},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Replace", "pattern": "a", "content": "b"},
    {"type": "Replace", "pattern": {"Regex": "(a"}, "content": "b"},
    {"type": "Replace", "pattern": {"String": "a", "Regex": "b"}, "content": "b"},
    {"type": "Replace", "pattern": {"String": "a"}},
    {"type": "Replace", "pattern": {"String": 1}, "content": ""},
    {"type": "Replace", "pattern": {}, "content": ""},
    {"type": "Replace", "pattern": {"String": "a"}, "content": None},
    {"type": "ByteLevel"},
    {"type": "ByteLevel", "add_prefix_space": True},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": None},
    {"type": "WordPiece"},
    {"type": "WordPiece", "prefix": "##"},
    {"type": "WordPiece", "cleanup": True},
    {"type": "WordPiece", "prefix": None, "cleanup": True},
    {"type": "BPEDecoder"},
    {"type": "BPEDecoder", "suffix": None},
    {"type": "Metaspace"},
    {"type": "Metaspace", "replacement": "▁▁"},
    {"type": "Metaspace", "replacement": ""},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": False},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": False, "prepend_scheme": "first"},
    {"type": "Metaspace", "replacement": "▁", "str_rep": 1},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "First"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": None},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": 1},
    {"type": "Sequence"},
    {"type": "Sequence", "decoders": None},
    {"type": "Sequence", "decoders": {}},
    {"type": "Sequence", "decoders": [None]},
    {"type": "Sequence", "decoders": [{}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip"}]},
]
# Options that a decoder does not have are ignored, there and here
ODD = [
    {"type": "Fuse", "x": 1},
    {"type": "ByteFallback", "x": None},
    {"type": "BPEDecoder", "suffix": "", "x": ""},
    {"type": "Sequence", "decoders": [], "x": []},
    {"type": "Metaspace", "replacement": "▁", "x": 1},
]
# HF reads some decoders by their options alone; here they are refused with their path
STRICTER = [
    {"suffix": "</w>"},
    {"type": "BPE", "suffix": "</w>"},
    {"prefix": "##", "cleanup": True},
    ["</w>"],
]


@pytest.mark.parametrize("d", READ, ids=json.dumps)
def test_what_is_read(d):
    assert ours_of(d) is not None


@pytest.mark.parametrize("d", ODD, ids=json.dumps)
def test_options_of_no_decoder_are_ignored_with_a_warning(d):
    with pytest.warns(UserWarning, match=r"^decoder: ignored decoder\.x: no such option"):
        assert D.decoder_from_dict(d) == D.decoder_from_dict({k: v for k, v in d.items() if k != "x"})


@pytest.mark.parametrize("d", REFUSED + STRICTER, ids=json.dumps)
def test_what_is_refused(d):
    assert ours_of(d) is None


@pytest.mark.peers
def test_hf_reads_and_refuses_the_same():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    for d in READ:
        assert in_hf(tk, d) == ours_of(d), d
    for d in ODD:
        assert in_hf(tk, d) == ours_of({k: v for k, v in d.items() if k != "x"}), d
    for d in REFUSED:
        assert in_hf(tk, d) is None, d
    for d in STRICTER:
        assert in_hf(tk, d) is not None, d
    for depth in (61, 62, 63, 64, 200):
        nested = json.loads('{"type":"Sequence","decoders":[' * depth + '{"type":"Fuse"}' + "]}" * depth)
        assert (in_hf(tk, nested) is None) == (ours_of(nested) is None), depth


def test_errors_name_the_place():
    for d, message in [
        (
            {
                "type": "Sequence",
                "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "ab", "start": 0, "stop": 0}],
            },
            "model.decoder.decoders[1]: content must be one character such as ' ', got 'ab'",
        ),
        (
            {
                "type": "Sequence",
                "decoders": [{"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""}],
            },
            "model.decoder.decoders[0]: ",
        ),
        (
            {"type": "Sequence", "decoders": [{"type": "Foo"}]},
            "model.decoder.decoders[0].type must be one of ByteLevel",
        ),
    ]:
        with pytest.raises(ValueError) as e:
            decoder_from_dict(d, path="model.decoder")
        assert str(e.value).startswith(message), e.value


def test_arguments_are_checked():
    for make in (
        lambda: D.Sequence([1]),
        lambda: D.Replace(1, ""),
        lambda: D.Replace("a", None),
        lambda: D.Replace({"Regex": 1}, ""),
        lambda: D.Replace("(a", "", True),
        lambda: D.Strip("ab"),
        lambda: D.Strip(" ", True),
        lambda: D.Strip(" ", 0, 1.5),
        lambda: D.Metaspace(""),
        lambda: D.Metaspace("▁", "no"),
        lambda: D.Metaspace(None),
        lambda: D.Metaspace(split=0),
        lambda: D.WordPiece(None),
        lambda: D.WordPiece("##", "no"),
        lambda: D.CTC(None),
        lambda: D.CTC(cleanup=1),
        lambda: D.BPEDecoder(b"_"),
        lambda: D.ByteLevel("x"),
        lambda: D.Fuse().decode("abc"),
    ):
        with pytest.raises(ValueError):
            make()


def test_errors_of_bytes():
    assert [D.ByteLevel().decode(["a", "Ã"], errors=e) for e in ("replace", "ignore")] == [["a\ufffd"], ["a"]]
    assert [D.ByteFallback().decode(["a", "<0xC3>", "<0x41>"], errors=e) for e in ("replace", "ignore")] == [
        ["a", "\ufffd", "\ufffd"],
        ["a"],
    ]
    for d, pieces in (
        (D.ByteLevel(), ["Ã"]),
        (D.ByteFallback(), ["<0xC3>"]),
        (D.Sequence([D.Fuse(), D.ByteLevel()]), ["Ã"]),
    ):
        with pytest.raises(UnicodeDecodeError):
            d.decode(pieces, errors="strict")


# What the other library's own examples show, with other words: a decoder, pieces, the text
CASES = [
    (D.ByteLevel(), ["The", "Ġpug", "Ġhugs"], "The pug hugs"),
    (D.ByteLevel(), ["Ġcaf", "Ã©", "Ċ"], " café\n"),
    (D.Replace("_", " "), ["The_pug", "_hugs"], "The pug hugs"),
    (D.Replace("_", ""), ["_", "a_b"], "ab"),
    (D.WordPiece(), ["The", "pu", "##g", "hug", "##s"], "The pug hugs"),
    (D.WordPiece(), ["We", "'re", "pu", "##gs", ".", "don", "'t"], "We're pugs. don 't"),
    (D.WordPiece("@@", False), ["pu", "@@gs", ",", "##x"], "pugs , ##x"),
    (D.ByteFallback(), ["The", " pu", "g"], "The pug"),
    (D.ByteFallback(), ["<0x70>"], "p"),
    (D.ByteFallback(), ["<0xE6>"], "\ufffd"),
    (D.ByteFallback(), ["<0xE6>", "<0xBC>"], "\ufffd\ufffd"),
    (D.ByteFallback(), ["<0xE6>", "<0xBC>", "<0xA2>"], "漢"),
    (D.ByteFallback(), ["<0xE6>", "<0xBC>", "<0xA2>", "a"], "漢a"),
    (D.ByteFallback(), ["<0xE6>", "<0xBC>", "a"], "\ufffd\ufffda"),
    (D.Fuse(), ["The", " pu", "g"], "The pug"),
    (D.Strip(" ", 1, 0), [" The", "  pu", "g "], "The pug "),
    (D.Strip("x", 0, 2), ["pugxxx"], "pugx"),
    (D.Metaspace(), ["▁The", "▁pu", "g"], "The pug"),
    (D.Metaspace("-"), ["-The", "-pu", "g"], "The pug"),
    (D.Metaspace("-", "never"), ["-The", "-pu", "g"], " The pug"),
    (D.BPEDecoder(), ["The</w>", "pu", "g</w>"], "The pug"),
    (D.BPEDecoder("_"), ["The_", "pu", "g_", "hu", "gs_"], "The pug hugs"),
    (D.CTC(), ["<pad>", "<pad>", "e", "e", "<pad>", "g", "g", "<pad>", "g", "|", "|", "s"], "egg s"),
    (D.CTC("_", "/", True), ["_", "e", "g", "g", "_", "g", "/", ".", "_"], "egg ."),
    (D.CTC(cleanup=False), ["a", "|", "|", "b"], "a|b"),
    (D.Sequence([D.CTC(), D.Metaspace()]), ["▁", "▁", "p", "p", "u", "g", "▁", "<pad>", "▁", "g"], "pug  g"),
    (D.Sequence([D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]), [" ", "<0xC3>", "<0xA9>"], "é"),
]


@pytest.mark.parametrize("decoder, pieces, text", CASES, ids=str)
def test_by_example(decoder, pieces, text):
    assert "".join(decoder.decode(pieces)) == text
    assert pickle.loads(pickle.dumps(decoder)) == decoder and eval(repr(decoder), vars(D)) == decoder


@pytest.mark.peers
def test_the_examples_in_hf():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    full = json.loads(tk.Tokenizer(tk.models.WordLevel({"a": 0}, "a")).to_str())
    for decoder, pieces, text in CASES:
        assert (
            tk.Tokenizer.from_str(json.dumps(full | {"decoder": decoder.to_dict()})).decoder.decode(pieces)
            == text
        ), decoder
