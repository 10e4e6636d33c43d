"""Spans and pieces against tiktoken and HF tokenizers, on the golden strings and on generated ones."""
import json
import pickle
import random
import subprocess
import sys

import pytest

from subword_nb import decoders
from subword_nb.patterns import PATTERNS, SplitPattern, compile_pattern, gpt2_split_ref, pretokenize, spans
from subword_nb.pretokenizers import (BEHAVIORS, HF_SPELLING, BertPreTokenizer, ByteLevel, Metaspace, Sequence, Split, Whitespace, WhitespaceSplit, WholeText,
                                      byte_level, pretokenizer, pretokenizer_from_dict)

NAMES = ("gpt2", "r50k", "p50k", "cl100k", "o200k")

# what the strings are made of: scripts, spaces, digits, quotes, controls, marks, emoji, unassigned and recent code points
ALPHABETS = [
    "abcXYZ", "sStTmMdD", "éßÆœñ", "абвГДЕ", "αβγΔΩ", "שלום", "مرحبا", "नमस्ते", "ไทย", "你好世界", "こんにちはカナ", "한국어", "ǅǈǋ", "ʰʷˈ", "ªº",
    "0123456789", "٠١٢٣", "०१२", "²³¹¼½", "ⅠⅣⅷ", "𝟘𝟙", "一二三",
    "'", "''", "’", "'s't're've'm'll'd", "'S'T'RE'VE'M'LL'D", "'ſ'ſ", "\u212ak", "ſs",
    " ", "  ", "\t", "\n", "\r", "\r\n", "\x0b\x0c", "\x85\xa0", "\u1680\u2000\u2003\u200a", "\u2028\u2029", "\u202f\u205f\u3000", "\u200b\u2060\ufeff\u180e",
    "\x1c\x1d\x1e\x1f", "\x00\x01\x7f", ".,;:!?", "/\\", "()[]{}", "+-*=<>", "$€£", "_‿⁀", "\u200c\u200d", "ⓐⒷ🄰🅐",
    "\u0301\u0300\u0327", "\u0e31\u094d", "\u20dd\u20e3", "\u0345", "🤗😀", "👩\u200d💻", "🇩🇪", "👍🏽", "𐐀𐐨", "𝒳𝔄", "🄯𐄀", "ﬁﬂﬀ", "ẞ", "İı",
    "\u0378\u0380", "\u1c89\u1c8a", "\ua7cb\ua7da", "\ua7ce\ua7d2", "\U00010940", "\U00011bc0", "\U000323b0", "\U0001fadf", "\U00010d4a\U00010d69", "\ue000\U000f0000\U0010ffff",
    "\ufdd0\ufffe\U0001ffff", "\ufffd", "▁", " ▁", "▁ _", "、。「」！？", "\u166d\U000111c9\u2e42\u2e43", "¿¡«»§¶",
]


def generated(n, seed=0):
    "n strings, each from a few of the alphabets, so that neighbours of every kind meet."
    rng = random.Random(seed)
    for _ in range(n):
        few = rng.sample(ALPHABETS, rng.randint(1, 5))
        parts = []
        for _ in range(rng.randint(1, 12)):
            letters = rng.choice(few)
            if rng.random() < 0.25: letters = rng.choice([" ", "\n", "'s", "a", "1", "\t ", "A"])
            parts.append(letters if rng.random() < 0.3 else "".join(rng.choice(letters) for _ in range(rng.choice((1, 1, 2, 3, 5)))))
        if rng.random() < 0.05: parts.append(chr(rng.choice([i for i in (rng.randrange(0x110000) for _ in range(4)) if not 0xD800 <= i < 0xE000] or [0x61])))
        yield "".join(parts)


@pytest.fixture(scope="session")
def golden(shared_file):
    "The golden strings."
    return json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))


def hf_spans(pre, text): return [span for _, span in pre.pre_tokenize_str(text)]


def hf_pieces(pre, text): return [(piece, *span) for piece, span in pre.pre_tokenize_str(text)]


def check_tiktoken(name, strings):
    "tiktoken takes a whole span for one token if it has a rank; so give ranks to our spans, and to joins of neighbours, which would show a missing cut."
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is one of the peers")
    ours = [[p.encode() for p in pretokenize(s, name)] for s in strings]
    ranks = {bytes([b]): b for b in range(256)}
    for pieces in ours:
        for width in (1, 2, 3, 4):
            for k in range(len(pieces) - width + 1): ranks.setdefault(b"".join(pieces[k:k + width]), len(ranks))
    enc = tiktoken.Encoding("spans", pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    for text, pieces in zip(strings, ours):
        assert [enc.decode_single_token_bytes(t) for t in enc.encode_ordinary(text)] == pieces, text


def check_hf(name, strings):
    tokenizers = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    pre = tokenizers.pre_tokenizers.Split(tokenizers.Regex(HF_SPELLING[name]), "isolated")
    for text in strings: assert spans(text, name) == hf_spans(pre, text), text


@pytest.mark.parametrize("name", NAMES)
def test_generated_strings_match_the_reference(name):
    "The two GPT-2 patterns equal the hand-written splitter, and every pattern covers every text."
    for text in generated(4000, seed=1):
        found = pretokenize(text, name)
        assert "".join(found) == text
        assert [text[a:b] for a, b in spans(text, name)] == found
        assert [m[0] for m in compile_pattern(name).finditer(text)] == found
        if name in ("gpt2", "r50k", "p50k"): assert found == gpt2_split_ref(text), text


@pytest.mark.parametrize("name", PATTERNS)
def test_a_megabyte_of_one_thing(name):
    "Hostile texts take time in proportion to their length."
    for unit in (" ", "a", "A", "aB", "1", "!", "\n", " \n", "'s", "你", "🚀", "\u0301", "é ", "\t"):
        text = unit * (1_000_000 // len(unit.encode()))
        for whole in (text, text + "x", "x" + text):
            found = compile_pattern(name).findall(whole)
            if name in NAMES: assert sum(map(len, found)) == len(whole)


def test_lone_surrogates_are_signs():
    for name in NAMES: assert pretokenize("a\ud800 b\U0001f680", name) == ["a", "\ud800", " b", "\U0001f680"]


def test_who_runs_possessive_repeats():
    "One result, whichever engine the Python version asks for."
    for source, kind in ((r"a++b|.", "single"), (r"(?>a|ab)c|.", "group"), (r"(?:ab)*+a|.", "group"), (r"(a)\1++|.", "single with reference")):
        new, old = SplitPattern(source), SplitPattern(source, version=(3, 10))
        assert old.engine == ("re" if kind == "single" else "regex") and old.emulated == (kind == "single")
        for text in ("aaab", "abc", "ababab", "aaaaé", "\U0001f680aab"): assert new.findall(text) == old.findall(text) and new.spans(text) == old.spans(text)


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_tiktoken_golden(name, golden): check_tiktoken(name, golden)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_tiktoken_generated(name):
    strings = list(generated(24000, seed=2))
    for k in range(0, len(strings), 4000): check_tiktoken(name, strings[k:k + 4000])


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_hf_golden(name, golden): check_hf(name, golden)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_hf_generated(name): check_hf(name, list(generated(24000, seed=3)))


def plain_components():
    pre = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers
    yield Whitespace(), pre.Whitespace()
    yield WhitespaceSplit(), pre.WhitespaceSplit()
    for space in (False, True):
        for regex in (False, True): yield ByteLevel(space, True, regex), pre.ByteLevel(add_prefix_space=space, trim_offsets=True, use_regex=regex)
    yield Sequence([WhitespaceSplit(), ByteLevel(True)]), pre.Sequence([pre.WhitespaceSplit(), pre.ByteLevel(add_prefix_space=True)])
    yield Sequence([ByteLevel(False), Whitespace()]), pre.Sequence([pre.ByteLevel(add_prefix_space=False), pre.Whitespace()])
    yield BertPreTokenizer(), pre.BertPreTokenizer()
    for scheme in ("always", "never"):
        for split in (True, False): yield Metaspace("▁", scheme, split), pre.Metaspace("▁", scheme, split)
    yield Metaspace("_"), pre.Metaspace("_")
    yield Sequence([Metaspace(), BertPreTokenizer()]), pre.Sequence([pre.Metaspace(), pre.BertPreTokenizer()])
    yield Sequence([BertPreTokenizer(), Metaspace()]), pre.Sequence([pre.BertPreTokenizer(), pre.Metaspace()])
    yield Sequence([Metaspace(split=False), Split("▁", "isolated")]), pre.Sequence([pre.Metaspace(split=False), pre.Split("▁", "isolated")])
    yield Sequence([Metaspace(), ByteLevel(False)]), pre.Sequence([pre.Metaspace(), pre.ByteLevel(add_prefix_space=False)])
    yield Sequence([ByteLevel(False, use_regex=False), Metaspace("Ġ")]), pre.Sequence([pre.ByteLevel(add_prefix_space=False, use_regex=False), pre.Metaspace("Ġ")])
    yield Sequence([Split({"String": " "}, "merged_with_next"), ByteLevel(False, use_regex=False)]), pre.Sequence(
        [pre.Split(" ", "merged_with_next"), pre.ByteLevel(add_prefix_space=False, use_regex=False)])


SPLITS = [r"\s", r"\s+", r"\d", "a|b", r"\p{P}", r"[^\w\s]", "(?=[A-Z])", "x*", "'(?i:s|t)", r"\p{Lu}\p{Ll}*", r"\p{N}{1,3}+", r"\b", "^.", ".$", r"\w", r"(?i)[k-t]", r"\h+", r"a\s??", r"(?m)s.t"]


def check_component(ours, theirs, strings):
    for text in strings:
        assert ours.split(text) == hf_pieces(theirs, text), text
        raw = ours.raw_pretokens(text)
        if raw is not None: assert [ours.piece_of(r) for r in raw] == [p for p, _, _ in ours.split(text)], text


@pytest.mark.peers
def test_hf_components_golden(golden):
    for ours, theirs in plain_components(): check_component(ours, theirs, golden)


@pytest.mark.peers
@pytest.mark.slow
def test_hf_components_generated():
    for k, (ours, theirs) in enumerate(plain_components()): check_component(ours, theirs, ["", " ", "\n"] + list(generated(5000, seed=10 + k)))


@pytest.mark.peers
@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("invert", (False, True))
def test_hf_split_behaviours(behavior, invert):
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    strings = ["", "a", "  ", "aXbX  b", "one two  three", "1234567 89", "The Cat's\nIT'S"] + list(generated(150, seed=20))
    for pattern in SPLITS:
        check_component(Split(pattern, behavior, invert), tk.pre_tokenizers.Split(tk.Regex(pattern), behavior, invert), strings)
    for literal in (" ", "'s", "a.b", ""):
        check_component(Split({"String": literal}, behavior, invert), tk.pre_tokenizers.Split(literal, behavior, invert), strings + ["xa.bxaxb"])


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("source", [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\h", r"\p{L}", r"\p{M}", r"\p{P}", r"\P{S}", r"\p{Cn}", r"\p{Han}", r"\p{Alphabetic}", ".", "(?m:.)",
                                    r"(?i:[a-z])", r"(?i:[^a-z])", "(?i:s)", "(?i:k)", r"[\p{L}&&[^a-z]]", r"[^\w\s]", r"[\w]", r"[\W]", r"(?i:\s|\d)", r"[[a-c]\p{Nd}]"])
def test_hf_reads_the_same_sets(source):
    "Every code point, one by one: what one-character patterns match in HF's Oniguruma."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    text = "\n".join(chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000)
    theirs = hf_spans(tk.pre_tokenizers.Split(tk.Regex(source), "removed"), text)
    ours = [(a, b) for _, a, b in Split(source, "removed").split(text)]
    assert ours == theirs


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("source", [r"\w", r"\d", r"\s", r"\S", r"\p{L}", r"\p{M}", r"\p{Cn}", r"\p{Han}", r"\p{Alphabetic}", ".", "(?i:[a-z])", "(?i:[^a-z])", "(?i:s)", r"[\p{L}&&[^a-z]]"])
def test_tiktoken_reads_the_same_sets(source):
    "Every code point, one by one, in tiktoken: c and x are one token if the pattern takes them together."
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is one of the peers")
    ranks = {bytes([b]): b for b in range(256)}
    for b in range(0xC0): ranks[bytes([b]) + b"|"] = len(ranks)
    chars = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
    enc = tiktoken.Encoding("sets", pat_str=f"(?:{source})\\||(?s:.)", mergeable_ranks=ranks, special_tokens={})
    theirs, ours = set(), {c for c in chars if compile_pattern(source).match(c)}
    for k in range(0, len(chars), 5000):
        got, todo = b"", iter(chars[k:k + 5000])
        c = next(todo)
        for t in enc.encode_ordinary("".join(c + "|" for c in chars[k:k + 5000])):
            piece = enc.decode_single_token_bytes(t)
            got += piece
            if got == c.encode() + b"|":
                if len(piece) == 2: theirs.add(c)
                got, c = b"", next(todo, None)
    assert ours == theirs


@pytest.mark.peers
def test_bert_punctuation_on_every_code_point():
    "Each between two letters: one piece (a letter), two (white space) or three (punctuation)."
    pre = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers
    text = "\n".join(f"a{chr(i)}b" for i in range(0x110000) if not 0xD800 <= i < 0xE000)
    theirs = [piece for piece, _ in pre.BertPreTokenizer().pre_tokenize_str(text)]
    assert BertPreTokenizer().raw_pretokens(text) == theirs
    assert len(theirs) > 0x110000 - 0x800


@pytest.mark.peers
def test_json_form_loads_in_hf():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    texts = list(generated(500, seed=30))
    for pre in (byte_level("gpt2"), byte_level("cl100k"), byte_level("o200k"), byte_level("r50k"), byte_level(None), Split("cl100k", "removed", True),
                Sequence([Split({"String": "ab"}, "contiguous"), WhitespaceSplit()]), Whitespace(), BertPreTokenizer(), Metaspace("_", "never", False), Metaspace()):
        d = json.loads(json.dumps(pre.to_dict()))
        assert pretokenizer_from_dict(d).to_dict() == d
        whole = tk.Tokenizer(tk.models.BPE())
        full = json.loads(whole.to_str()) | {"pre_tokenizer": d}
        check_component(pre, tk.Tokenizer.from_str(json.dumps(full)).pre_tokenizer, texts)


def test_round_trips():
    for pre in (byte_level("gpt2"), byte_level("o200k"), Split("cl100k", "contiguous", True), Split(r"a\.b", "removed"), Split({"String": "."}), ByteLevel(True, False, False),
                Sequence([Whitespace(), ByteLevel()]), WhitespaceSplit(), WholeText(), BertPreTokenizer(), Metaspace("_", "never", False)):
        assert pretokenizer_from_dict(pre.to_dict()) == pre
        again = pickle.loads(pickle.dumps(pre))
        assert again == pre and hash(again) == hash(pre) and again.split("a.b c's 12") == pre.split("a.b c's 12")


def test_real_files_split_patterns(shared_file):
    "Every pre-tokenizer of these kinds in the tokenizer.json files at hand is read, and written back as it was."
    files = sorted(shared_file("vocab").glob("*/tokenizer.json"))
    known = {"ByteLevel", "Split", "Whitespace", "WhitespaceSplit", "Sequence", "BertPreTokenizer", "Metaspace"}
    for file in files:
        d = json.loads(file.read_text(encoding="utf-8")).get("pre_tokenizer")
        steps = d["pretokenizers"] if d and d["type"] == "Sequence" else [d] if d else []
        if not all(s["type"] in known for s in steps): continue
        for step in steps:
            if step["type"] == "ByteLevel": step.setdefault("use_regex", True) # older files leave it out
            if step["type"] == "Metaspace": # written another way in older files
                step.pop("str_rep", None)
                step["prepend_scheme"] = step.get("prepend_scheme", "always" if step.pop("add_prefix_space", True) else "never")
                step.pop("add_prefix_space", None)
                step.setdefault("split", True)
        assert pretokenizer_from_dict(d).to_dict() == d, file


def test_import_is_light(project):
    "The short path needs neither NumPy nor regex."
    code = ("import sys; from subword_nb.pretokenizers import byte_level; byte_level('gpt2').raw_pretokens('a b'); import subword_nb.counts; "
            "print([m for m in ('numpy', 'numba', 'regex', 'fastcore', 'tqdm') if m in sys.modules])")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True).stdout
    assert out.strip() == ("[]" if sys.version_info >= (3, 11) else out.strip())


def test_metaspace_on_generated_strings():
    "The definition, step by step: spaces, the one in front, a cut before each."
    for text in ["", " ", "▁", *generated(2000, seed=40)]:
        for scheme in ("always", "never"):
            spelled = text.replace(" ", "▁")
            if text and scheme == "always" and not spelled.startswith("▁"): spelled = "▁" + spelled
            pieces = []
            for c in spelled:
                if c == "▁" or not pieces: pieces.append(c)
                else: pieces[-1] += c
            for split in (True, False):
                pre = Metaspace("▁", scheme, split)
                assert pre.raw_pretokens(text) == (pieces if split else [spelled] if spelled else [])
                assert [(pre.piece_of(r), len(r)) for r in pre.raw_pretokens(text)] == [(p, len(p)) for p, _, _ in pre.split(text)]
                assert [text[a:b].replace(" ", "▁") for _, a, b in pre.split(text)] == [
                    p[1:] if k == 0 and len(spelled) > len(text) else p for k, p in enumerate(pre.raw_pretokens(text))]


def test_metaspace_options_in_files():
    "Older files say add_prefix_space and str_rep; what contradicts itself is refused, as HF does."
    def read(**options): return pretokenizer_from_dict({"type": "Metaspace", "replacement": "▁"} | options)
    assert read() == read(add_prefix_space=True) == read(str_rep="▁", prepend_scheme="always") == Metaspace()
    assert read(add_prefix_space=True, prepend_scheme="never") == read(add_prefix_space=False, prepend_scheme="never") == Metaspace("▁", "never")
    for options, message in (({"add_prefix_space": False}, "pre_tokenizer.add_prefix_space: false needs"), ({"str_rep": "_"}, "pre_tokenizer.str_rep: expected the replacement"),
                             ({"prepend_scheme": "first"}, "pre_tokenizer: prepend_scheme='first' is not supported yet"), ({"replacement": ""}, "is not one character"),
                             ({"prepend_scheme": "Always"}, "is unknown; pass"), ({"split": 1}, "pre_tokenizer.split: expected bool")):
        with pytest.raises(ValueError, match="^" + message if message.startswith("pre") else message): read(**options)
    with pytest.raises(ValueError, match="needs this option"): pretokenizer_from_dict({"type": "Metaspace"})


def test_a_megabyte_is_linear_for_bert_and_metaspace():
    for unit in (" ", "a", "!", "é", "▁", "🚀", "a ", "你"):
        text = unit * (1_000_000 // len(unit.encode()))
        assert sum(map(len, pretokenizer("bert").raw_pretokens(text))) == len(text.replace(" ", ""))
        assert len("".join(pretokenizer("metaspace").raw_pretokens(text))) in (len(text), len(text) + 1)


@pytest.mark.peers
def test_the_metaspace_decoder_is_that_of_hf():
    theirs, rng = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").decoders, random.Random(50)
    for scheme in ("always", "never", "first"):
        ours, other = decoders.Metaspace(prepend_scheme=scheme), theirs.Metaspace(prepend_scheme=scheme)
        for _ in range(1000):
            pieces = ["".join(rng.choices("▁ aé", k=rng.randrange(4))) for _ in range(rng.randrange(5))]
            assert "".join(ours.decode(pieces)) == other.decode(pieces), pieces
