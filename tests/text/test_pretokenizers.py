"""Spans and pieces against tiktoken and HF tokenizers, on the golden strings and on generated ones."""

import json
import pickle
import random
import subprocess
import sys

import pytest
from seeds import TEXTS, fresh, some_of
from characters import code_points

from subword_nb import decoders
from subword_nb.text.regex import (
    DEEPSEEK,
    PATTERNS,
    SplitPattern,
    compile_pattern,
    gpt2_split_ref,
    pretokenize,
    spans,
)
from subword_nb.text.alignment import Aligned
from subword_nb.text.splitters import (
    HF_SPELLING,
    CharDelimiterSplit,
    Digits,
    FixedLength,
    Punctuation,
    Split,
    UnicodeScripts,
    Whitespace,
    WhitespaceSplit,
    WholeText,
)
from subword_nb.text.pretokenizers import (
    BertPreTokenizer,
    ByteLevel,
    Callable,
    Metaspace,
    Sequence,
    byte_level,
    looks_at_start,
    pretokenizer,
    pretokenizer_from_dict,
)
from tests.text.test_splitters import check_component, generated, hf_spans

NAMES = ("gpt2", "r50k", "p50k", "cl100k", "o200k", "llama3", "qwen2")


@pytest.fixture(scope="session")
def golden(shared_file):
    "The golden strings."
    return json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))


def check_tiktoken(name, strings):
    "tiktoken makes one token of a span that has a rank: our spans get ranks, and so do joined neighbours, which show a missing cut."
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is one of the peers")
    ours = [[p.encode() for p in pretokenize(s, pattern=name)] for s in strings]
    ranks = {bytes([b]): b for b in range(256)}
    for pieces in ours:
        for width in (1, 2, 3, 4):
            for k in range(len(pieces) - width + 1):
                ranks.setdefault(b"".join(pieces[k : k + width]), len(ranks))
    enc = tiktoken.Encoding("spans", pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    for text, pieces in zip(strings, ours):
        assert [enc.decode_single_token_bytes(t) for t in enc.encode_ordinary(text)] == pieces, text


def check_hf(name, strings):
    tokenizers = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    pre = tokenizers.pre_tokenizers.Split(tokenizers.Regex(HF_SPELLING[name]), "isolated")
    for text in strings:
        assert spans(text, pattern=name) == hf_spans(pre, text), text


@pytest.mark.parametrize("name", NAMES)
def test_generated_strings_match_the_reference(name):
    "The two GPT-2 patterns equal the hand-written splitter, and every pattern covers every text."
    for text in generated(4 * TEXTS, seed=name):
        found = pretokenize(text, pattern=name)
        assert "".join(found) == text
        assert [text[a:b] for a, b in spans(text, pattern=name)] == found
        assert [m[0] for m in compile_pattern(name).finditer(text)] == found
        if name in ("gpt2", "r50k", "p50k"):
            assert found == gpt2_split_ref(text), text


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "gpt2" else pytest.mark.slow) for name in PATTERNS]
)
def test_a_megabyte_of_one_thing(name):
    "Hostile texts take time in proportion to their length."
    for unit in (" ", "a", "A", "aB", "1", "!", "\n", " \n", "'s", "你", "🚀", "\u0301", "é ", "\t"):
        text = unit * (1_000_000 // len(unit.encode()))
        for whole in (text, text + "x", "x" + text):
            found = compile_pattern(name).findall(whole)
            if name in NAMES:
                assert sum(map(len, found)) == len(whole)


def test_lone_surrogates_are_signs():
    for name in NAMES:
        assert pretokenize("a\ud800 b\U0001f680", pattern=name) == ["a", "\ud800", " b", "\U0001f680"]


def test_who_runs_possessive_repeats():
    "One result, whichever engine the Python version asks for."
    for source, kind in (
        (r"a++|.", "single"),
        (r"(?>a|ab)c|.", "group"),
        (r"(?:ab)*+a|.", "group"),
        (r"(a)\1++|.", "single with reference"),
    ):
        new, old = SplitPattern(source), SplitPattern(source, version=(3, 10))
        assert old.engine == ("re" if kind == "single" else "regex") and old.emulated == (kind == "single")
        for text in ("aaab", "abc", "ababab", "aaaaé", "\U0001f680aab"):
            assert new.findall(text) == old.findall(text) and new.spans(text) == old.spans(text)


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_tiktoken_golden(name, golden):
    check_tiktoken(name, golden)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_tiktoken_generated(name):
    strings = list(generated(24000, seed=2))
    for k in range(0, len(strings), 4000):
        check_tiktoken(name, strings[k : k + 4000])


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_hf_golden(name, golden):
    check_hf(name, golden)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_hf_generated(name):
    check_hf(name, list(generated(24000, seed=3)))


def plain_components():
    pre = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers
    yield Whitespace(), pre.Whitespace()
    yield WhitespaceSplit(), pre.WhitespaceSplit()
    for space in (False, True):
        for regex in (False, True):
            yield (
                ByteLevel(space, True, regex),
                pre.ByteLevel(add_prefix_space=space, trim_offsets=True, use_regex=regex),
            )
    yield (
        Sequence([WhitespaceSplit(), ByteLevel(True)]),
        pre.Sequence([pre.WhitespaceSplit(), pre.ByteLevel(add_prefix_space=True)]),
    )
    yield (
        Sequence([ByteLevel(False), Whitespace()]),
        pre.Sequence([pre.ByteLevel(add_prefix_space=False), pre.Whitespace()]),
    )
    yield BertPreTokenizer(), pre.BertPreTokenizer()
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield Metaspace("▁", scheme, split=split), pre.Metaspace("▁", scheme, split)
    yield Metaspace("_"), pre.Metaspace("_")
    yield Sequence([Metaspace(), BertPreTokenizer()]), pre.Sequence([pre.Metaspace(), pre.BertPreTokenizer()])
    yield Sequence([BertPreTokenizer(), Metaspace()]), pre.Sequence([pre.BertPreTokenizer(), pre.Metaspace()])
    yield (
        Sequence([Metaspace(split=False), Split("▁", "isolated")]),
        pre.Sequence([pre.Metaspace(split=False), pre.Split("▁", "isolated")]),
    )
    yield (
        Sequence([Metaspace(), ByteLevel(False)]),
        pre.Sequence([pre.Metaspace(), pre.ByteLevel(add_prefix_space=False)]),
    )
    yield (
        Sequence([ByteLevel(False, use_regex=False), Metaspace("Ġ")]),
        pre.Sequence([pre.ByteLevel(add_prefix_space=False, use_regex=False), pre.Metaspace("Ġ")]),
    )
    yield (
        Sequence([Split({"String": " "}, "merged_with_next"), ByteLevel(False, use_regex=False)]),
        pre.Sequence(
            [pre.Split(" ", "merged_with_next"), pre.ByteLevel(add_prefix_space=False, use_regex=False)]
        ),
    )
    yield Sequence([]), pre.Sequence([])
    yield (
        Sequence([Sequence([WhitespaceSplit()]), Sequence([Metaspace("▁", "first"), Digits(True)])]),
        pre.Sequence(
            [
                pre.Sequence([pre.WhitespaceSplit()]),
                pre.Sequence([pre.Metaspace("▁", "first"), pre.Digits(True)]),
            ]
        ),
    )
    yield (
        Sequence([ByteLevel(False), Metaspace("▁", "first", split=False)]),
        pre.Sequence([pre.ByteLevel(add_prefix_space=False), pre.Metaspace("▁", "first", False)]),
    )
    yield (
        Sequence([Metaspace("▁", "first"), Metaspace("_", "first"), ByteLevel()]),
        pre.Sequence([pre.Metaspace("▁", "first"), pre.Metaspace("_", "first"), pre.ByteLevel()]),
    )
    yield (
        Sequence([Split("a", "removed"), Metaspace("▁", "first")]),
        pre.Sequence([pre.Split("a", "removed"), pre.Metaspace("▁", "first")]),
    )
    yield (
        Sequence([Punctuation("contiguous"), ByteLevel(False), Digits(), Split("[0-9][0-9][0-9]")]),
        pre.Sequence(  # Falcon's
            [
                pre.Punctuation("contiguous"),
                pre.ByteLevel(add_prefix_space=False),
                pre.Digits(),
                pre.Split(tokenizers_regex("[0-9][0-9][0-9]"), "isolated"),
            ]
        ),
    )
    yield (
        byte_level("deepseek"),
        pre.Sequence(
            [
                *(pre.Split(tokenizers_regex(p), "isolated") for p in DEEPSEEK),
                pre.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        ),
    )


def tokenizers_regex(source):
    return pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").Regex(source)


def random_step(rng, pre):
    "One component with options drawn at random, ours and HF's."
    b, mark, scheme, on, on2 = (
        rng.choice(("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")),
        rng.choice("▁_Ġ"),
        rng.choice(("always", "first", "never")),
        rng.random() < 0.5,
        rng.random() < 0.5,
    )
    pattern, n, d = (
        rng.choice((r"\s+", r"\d", "a|b", r"\p{Lu}", "▁", "Ġ")),
        rng.randint(1, 6),
        rng.choice(" a▁1é"),
    )
    return rng.choice(
        [
            lambda: (Whitespace(), pre.Whitespace()),
            lambda: (WhitespaceSplit(), pre.WhitespaceSplit()),
            lambda: (BertPreTokenizer(), pre.BertPreTokenizer()),
            lambda: (UnicodeScripts(), pre.UnicodeScripts()),
            lambda: (ByteLevel(on, True, on2), pre.ByteLevel(add_prefix_space=on, use_regex=on2)),
            lambda: (
                Metaspace(replacement=mark, prepend_scheme=scheme, split=on),
                pre.Metaspace(mark, scheme, on),
            ),
            lambda: (Punctuation(b), pre.Punctuation(b)),
            lambda: (Digits(on), pre.Digits(on)),
            lambda: (FixedLength(n), pre.FixedLength(n)),
            lambda: (CharDelimiterSplit(d), pre.CharDelimiterSplit(d)),
            lambda: (Split(pattern, b, on), pre.Split(tokenizers_regex(pattern), b, on)),
        ]
    )()


@pytest.mark.peers
def test_hf_random_sequences():
    "Two to four steps with random options: pieces and offsets, and a file that HF reads as it reads its own."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    rng, texts = random.Random(80), list(generated(3000, seed=81))
    base = json.loads(tk.Tokenizer(tk.models.BPE()).to_str())
    for _ in range(250):
        steps = [random_step(rng, tk.pre_tokenizers) for _ in range(rng.randint(2, 4))]
        ours, theirs = Sequence([a for a, _ in steps]), tk.pre_tokenizers.Sequence([b for _, b in steps])
        check_component(ours, theirs, rng.sample(texts, 12) + ["", " ", "a 1", " é▁a"])
        whole = tk.Tokenizer(tk.models.BPE())
        whole.pre_tokenizer = theirs
        written = json.loads(whole.to_str())["pre_tokenizer"]
        assert ours.to_dict() == written and pretokenizer_from_dict(written) == ours
        assert (
            json.loads(tk.Tokenizer.from_str(json.dumps(base | {"pre_tokenizer": ours.to_dict()})).to_str())[
                "pre_tokenizer"
            ]
            == written
        )


def test_a_cut_before_a_space_changes_nothing_in_a_sequence():
    "Where a pre-tokenizer says so, whatever its steps are."
    rng, letters = fresh(82), [*"abZ09 !'-.é你я\n\t1▁_", "'s", "  ", "ab", "\u3000", "🚀", "\u0301"]
    makers = [
        lambda: ByteLevel(rng.random() < 0.5, True, rng.random() < 0.7),
        lambda: Metaspace(
            replacement=rng.choice("▁_a"),
            prepend_scheme=rng.choice(("always", "first", "never")),
            split=rng.random() < 0.7,
        ),
        BertPreTokenizer,
        Whitespace,
        WhitespaceSplit,
        lambda: Digits(rng.random() < 0.5),
        Punctuation,
        lambda: Punctuation("merged_with_next"),
        lambda: Split(
            rng.choice((*PATTERNS, *DEEPSEEK, " ", r"\s+", "a|b", "ab")),
            rng.choice(("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")),
            rng.random() < 0.3,
        ),
        lambda: CharDelimiterSplit(rng.choice(" ab")),
        UnicodeScripts,
        lambda: FixedLength(2),
        WholeText,
    ]
    said = 0
    for _ in range(TEXTS):
        pre = Sequence([rng.choice(makers)() for _ in range(rng.randint(1, 4))])
        if not pre.splits_at_space:
            continue
        said += 1
        for _ in range(12):
            x, y = (
                "".join(rng.choices(letters, k=rng.randrange(6))) + rng.choice("abZ09s"),
                " " + rng.choice("abZ09s") + "".join(rng.choices(letters, k=rng.randrange(6))),
            )
            for first in (True, False):
                assert pre.raw_pretokens(x + y, first=first) == pre.raw_pretokens(
                    x, first=first
                ) + pre.raw_pretokens(y, first=False), (pre, x, y)
    assert said > TEXTS // 4


def test_the_fast_way_in_any_sequence():
    "Raw pretokens, spelled, are the pieces; the start of the original is where the offset is 0."
    for ours in (
        Sequence([Metaspace("▁", "first"), Digits()]),
        Sequence([Split(" ", "removed"), Metaspace("▁", "first"), ByteLevel(False)]),
        Sequence([Sequence([UnicodeScripts(), Metaspace("▁", "first")]), Punctuation()]),
        Sequence([ByteLevel(), Digits()]),
        byte_level("deepseek"),
        Sequence([FixedLength(2), Metaspace("_", "first")]),
        Metaspace("▁", "first"),
    ):
        for text in generated(150, seed=83):
            for at in (0, 5):
                pieces = [p.text for p in ours.split_aligned(Aligned(text, None, at))]
                assert [ours.piece_of(r) for r in ours.raw_pretokens(text, first=at == 0)] == pieces, (
                    ours,
                    text,
                    at,
                )


def test_spans_of_a_changed_text_are_carried_through():
    "A text of eight characters that was three: every piece's offsets are those of its characters."
    changed = Aligned("ab é 12!", [(0, 1), (0, 1), (1, 1), (1, 2), (1, 2), (2, 3), (2, 3), (2, 3)])
    for pre in (
        ByteLevel(),
        ByteLevel(True, True, False),
        Metaspace(),
        Metaspace("▁", "first"),
        byte_level("deepseek"),
        Sequence([ByteLevel(), Digits(True)]),
        BertPreTokenizer(),
    ):
        plain, found = pre.split("ab é 12!"), pre.split_aligned(changed)
        assert [p.text for p in found] == [p for p, _, _ in plain]
        assert [p.span(0, len(p.text)) for p in found] == [
            (changed.spans[a][0], changed.spans[b - 1][1]) for _, a, b in plain
        ]
        for p in found:
            assert len(p.char_spans()) == len(p.text)


def halves(text):
    return [(0, len(text) // 2), (len(text) // 2, len(text))]


def test_a_function_as_a_pre_tokenizer():
    "It saves by its import path, loads where that is allowed, and says so where it cannot be saved."
    for pre in (Callable(spans), Callable("subword_nb.text.regex:spans"), pretokenizer(spans)):
        assert pre.to_dict() == {"type": "Callable", "function": "subword_nb.text.regex:spans"}
        assert pre == Callable(spans) == pickle.loads(pickle.dumps(pre)) and hash(pre) == hash(
            Callable(spans)
        )
        assert pre.split("a b") == [("a", 0, 1), (" b", 1, 3)]
        again = pretokenizer_from_dict(
            json.loads(json.dumps({"type": "Sequence", "pretokenizers": [pre.to_dict()]})), allow_code=True
        )
        assert again.split("a b") == pre.split("a b") and not again.splits_at_space
        with pytest.raises(
            ValueError,
            match=r"^pre_tokenizer\.pretokenizers\[0\]\.function must .*got 'subword_nb\.text\.regex:spans'; .*allow_code=True",
        ):
            pretokenizer_from_dict({"type": "Sequence", "pretokenizers": [pre.to_dict()]})
    assert byte_level(halves).raw_pretokens("abcd") == ["ab", "cd"]
    for invalid in (
        [(0, 9)],
        [(2, 1)],
        [(1, 2), (0, 1)],
        [(0, 2), (1, 3)],
        [("a", 1)],
        [(0,)],
        ["ab"],
        [(-1, 2)],
        [(0.0, 1.0)],
    ):
        with pytest.raises(ValueError, match="give .start, end. pairs in order"):
            Callable(lambda text, invalid=invalid: invalid).split("abc")
    assert (
        Callable(lambda text: [(0, 0), (1, 2)]).raw_pretokens("abc") == ["b"]
        and Callable(lambda text: 1 / 0).split("") == []
    )
    with pytest.raises(ValueError, match="is a lambda"):
        Callable(lambda text: []).to_dict()
    for spec in ("no_such_module_here:x", "math:nothing", "math", "math:pi"):
        with pytest.raises(ValueError):
            Callable(spec)
        with pytest.raises(ValueError, match="^pre_tokenizer"):
            pretokenizer_from_dict({"type": "Callable", "function": spec}, allow_code=True)
    with pytest.raises(ValueError, match="function must .*got 5"):
        Callable(5)


def test_names():
    "Every name makes what it says; a word that is none is refused with the nearest."
    for name in (
        *PATTERNS,
        "deepseek",
        "bert",
        "metaspace",
        "punctuation",
        "digits",
        "unicode_scripts",
        "xlnet",
        "t5",
        "llama",
        "kimi",
    ):
        assert pretokenizer(name).split("ab 1")
        assert pretokenizer_from_dict(byte_level(name).to_dict()).split("It's 12é") == byte_level(name).split(
            "It's 12é"
        )
    assert byte_level("deepseek").to_dict()["pretokenizers"][3] == {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    for word, near in (
        ("gpt-2", "gpt2"),
        ("GPT2", "gpt2"),
        ("llama-3", "llama3"),
        ("cl100k_base", "cl100k"),
        ("o200k_base", "o200k"),
        ("Qwen2", "qwen2"),
        ("deepseek-v3", "deepseek"),
        ("byte", None),
        ("x", None),
    ):
        with pytest.raises(
            ValueError,
            match=f"pre_tokenizer must be one of gpt2, r50k.*, got {word!r}"
            + (rf" \(nearest: .*{near}" if near else ""),
        ):
            pretokenizer(word)
    assert pretokenizer("-").raw_pretokens("a-b") == ["a", "-", "b"] and pretokenizer("a|b").raw_pretokens(
        "cab"
    ) == ["c", "a", "b"]
    with pytest.raises(
        ValueError, match=r"pre_tokenizer must .*got <class 'subword_nb\.text\.pretokenizers\.ByteLevel'>"
    ):
        pretokenizer(ByteLevel)


@pytest.mark.peers
def test_names_of_models_with_visible_spaces(hf):
    "As transformers builds them for XLNet, T5 and Llama."
    P = hf.pre_tokenizers
    words = P.Sequence([P.WhitespaceSplit(), P.Metaspace("▁", "always", True)])
    for name, theirs in (("xlnet", words), ("t5", words), ("llama", P.Metaspace("▁", "first", False))):
        for text in ("Hello  my friend", " \u3000a\tb\n", "▁x y▁ z", "", "é🙂 ñ"):
            assert [(p, (a, b)) for p, a, b in pretokenizer(name).split(text)] == theirs.pre_tokenize_str(
                text
            ), (name, text)


@pytest.mark.peers
def test_hf_components_golden(golden):
    for ours, theirs in plain_components():
        check_component(ours, theirs, golden)


@pytest.mark.peers
@pytest.mark.slow
def test_hf_components_generated():
    for k, (ours, theirs) in enumerate(plain_components()):
        check_component(ours, theirs, ["", " ", "\n"] + list(generated(5000, seed=10 + k)))


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        r"\w",
        r"\d",
        r"\s",
        r"\S",
        r"\p{L}",
        r"\p{M}",
        r"\p{Cn}",
        r"\p{Han}",
        r"\p{Alphabetic}",
        ".",
        "(?i:[a-z])",
        "(?i:[^a-z])",
        "(?i:s)",
        r"[\p{L}&&[^a-z]]",
        "(?i:[à-ÿ])",
        "(?i:[α-ω])",
        r"(?i:\p{Lu})",
        r"(?i:[^\p{Ll}])",
        "(?i:ß|ǆ|\u0390|\u1e9e|\u0264)",
        "[[:punct:]]",
        "[[:^alpha:]]",
    ],
)
def test_tiktoken_reads_the_same_sets(source):
    "Every code point but the separator, one by one, in tiktoken: c and | are one token if the pattern takes c."
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is one of the peers")
    ranks = {bytes([b]): b for b in range(256)}
    for b in range(0xC0):
        ranks[bytes([b]) + b"|"] = len(ranks)
    chars = [chr(i) for i in some_of(code_points(), source) if chr(i) != "|"]
    enc = tiktoken.Encoding(
        "sets", pat_str=f"(?:{source})\\||(?s:.)", mergeable_ranks=ranks, special_tokens={}
    )
    theirs, ours = set(), {c for c in chars if compile_pattern(source).match(c)}
    for k in range(0, len(chars), 5000):
        got, todo = b"", iter(chars[k : k + 5000])
        c = next(todo)
        for t in enc.encode_ordinary("".join(c + "|" for c in chars[k : k + 5000])):
            piece = enc.decode_single_token_bytes(t)
            got += piece
            if got == c.encode() + b"|":
                if len(piece) == 2:
                    theirs.add(c)
                got, c = b"", next(todo, None)
    assert ours == theirs


@pytest.mark.peers
@pytest.mark.slow
def test_bert_punctuation_on_every_code_point():
    "Each between two letters: one piece (a letter), two (white space) or three (punctuation)."
    pre = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers
    codes = code_points()
    text = "\n".join(f"a{chr(i)}b" for i in codes)
    theirs = [piece for piece, _ in pre.BertPreTokenizer().pre_tokenize_str(text)]
    assert BertPreTokenizer().raw_pretokens(text) == theirs
    assert len(theirs) > len(codes)


@pytest.mark.peers
def test_json_form_loads_in_hf():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    texts = list(generated(500, seed=30))
    for pre in (
        byte_level("gpt2"),
        byte_level("cl100k"),
        byte_level("o200k"),
        byte_level("r50k"),
        byte_level(None),
        Split("cl100k", "removed", True),
        Sequence([Split({"String": "ab"}, "contiguous"), WhitespaceSplit()]),
        Whitespace(),
        BertPreTokenizer(),
        Metaspace("_", "never", split=False),
        Metaspace(),
    ):
        d = json.loads(json.dumps(pre.to_dict()))
        assert pretokenizer_from_dict(d).to_dict() == d
        whole = tk.Tokenizer(tk.models.BPE())
        full = json.loads(whole.to_str()) | {"pre_tokenizer": d}
        check_component(pre, tk.Tokenizer.from_str(json.dumps(full)).pre_tokenizer, texts)


def test_round_trips():
    for pre in (
        byte_level("gpt2"),
        byte_level("o200k"),
        Split("cl100k", "contiguous", True),
        Split(r"a\.b", "removed"),
        Split({"String": "."}),
        ByteLevel(True, False, False),
        Sequence([Whitespace(), ByteLevel()]),
        WhitespaceSplit(),
        WholeText(),
        BertPreTokenizer(),
        Metaspace("_", "never", split=False),
    ):
        assert pretokenizer_from_dict(pre.to_dict()) == pre
        again = pickle.loads(pickle.dumps(pre))
        assert (
            again == pre and hash(again) == hash(pre) and again.split("a.b c's 12") == pre.split("a.b c's 12")
        )


@pytest.mark.slow
def test_real_files_split_patterns(shared_file):
    "Every pre-tokenizer of these kinds in the tokenizer.json files at hand is read, and written back as it was."
    files = sorted(shared_file("vocab").glob("*/tokenizer.json"))
    for file in files:
        d = json.loads(file.read_text(encoding="utf-8")).get("pre_tokenizer")
        steps = d["pretokenizers"] if d and d["type"] == "Sequence" else [d] if d else []
        for step in steps:
            if step["type"] == "ByteLevel":
                step.setdefault("use_regex", True)  # older files leave it out
            if step["type"] == "Metaspace":  # written another way in older files
                step.pop("str_rep", None)
                step["prepend_scheme"] = step.get(
                    "prepend_scheme", "always" if step.pop("add_prefix_space", True) else "never"
                )
                step.pop("add_prefix_space", None)
                step.setdefault("split", True)
        assert pretokenizer_from_dict(d).to_dict() == d, file


def test_import_is_light(project):
    "The short path needs neither NumPy nor regex."
    code = (
        "import sys; from subword_nb.text.pretokenizers import byte_level; byte_level('gpt2').raw_pretokens('a b'); "
        "import subword_nb.corpus.counts; "
        "print([m for m in ('numpy', 'numba', 'regex', 'fastcore', 'tqdm') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True
    ).stdout
    assert out.strip() == ("[]" if sys.version_info >= (3, 11) else out.strip())


def test_metaspace_on_generated_strings():
    "The definition, step by step: spaces, the one in front, a cut before each."
    for text in ["", " ", "▁", *generated(2000, seed=40)]:
        for scheme in ("always", "never"):
            spelled = text.replace(" ", "▁")
            if text and scheme == "always" and not spelled.startswith("▁"):
                spelled = "▁" + spelled
            pieces = []
            for c in spelled:
                if c == "▁" or not pieces:
                    pieces.append(c)
                else:
                    pieces[-1] += c
            for split in (True, False):
                pre = Metaspace("▁", scheme, split=split)
                assert pre.raw_pretokens(text) == (pieces if split else [spelled] if spelled else [])
                assert [(pre.piece_of(r), len(r)) for r in pre.raw_pretokens(text)] == [
                    (p, len(p)) for p, _, _ in pre.split(text)
                ]
                assert [text[a:b].replace(" ", "▁") for _, a, b in pre.split(text)] == [
                    p[1:] if k == 0 and len(spelled) > len(text) else p
                    for k, p in enumerate(pre.raw_pretokens(text))
                ]


def test_metaspace_options_in_files():
    "Older files say add_prefix_space and str_rep; what contradicts itself is refused, as HF does."

    def read(**options):
        return pretokenizer_from_dict({"type": "Metaspace", "replacement": "▁"} | options)

    assert read() == read(add_prefix_space=True) == read(str_rep="▁", prepend_scheme="always") == Metaspace()
    assert read(split=None, add_prefix_space=None) == Metaspace() and read(
        prepend_scheme="first"
    ) == Metaspace("▁", "first")
    assert (
        read(add_prefix_space=True, prepend_scheme="never")
        == read(add_prefix_space=False, prepend_scheme="never")
        == Metaspace("▁", "never")
    )
    for options, message in (
        (
            {"add_prefix_space": False},
            'pre_tokenizer.prepend_scheme must be "never" where add_prefix_space is false, got \'',
        ),
        ({"str_rep": "_"}, "pre_tokenizer.str_rep must be the replacement '▁' as well, got '_'"),
        ({"replacement": ""}, "pre_tokenizer: replacement must be one character, .*got ''"),
        (
            {"add_prefix_space": False, "prepend_scheme": "first"},
            'pre_tokenizer.prepend_scheme must be "never" where add_prefix_space is false, got \'',
        ),
        ({"prepend_scheme": "Always"}, "pre_tokenizer: prepend_scheme must be .*got 'Always'"),
        ({"split": 1}, "pre_tokenizer.split must be bool or null, got 1"),
    ):
        with pytest.raises(ValueError, match="^" + message if message.startswith("pre") else message):
            read(**options)
    with pytest.raises(ValueError, match="pre_tokenizer.* must be given for Metaspace, got none"):
        pretokenizer_from_dict({"type": "Metaspace"})


@pytest.mark.slow
def test_a_megabyte_is_linear_for_bert_and_metaspace():
    for unit in (" ", "a", "!", "é", "▁", "🚀", "a ", "你"):
        text = unit * (1_000_000 // len(unit.encode()))
        assert sum(map(len, pretokenizer("bert").raw_pretokens(text))) == len(text.replace(" ", ""))
        assert len("".join(pretokenizer("metaspace").raw_pretokens(text))) in (len(text), len(text) + 1)


@pytest.mark.peers
def test_the_metaspace_decoder_is_that_of_hf():
    theirs, rng = (
        pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").decoders,
        random.Random(50),
    )
    for scheme in ("always", "never", "first"):
        ours, other = decoders.Metaspace(prepend_scheme=scheme), theirs.Metaspace(prepend_scheme=scheme)
        for _ in range(1000):
            pieces = ["".join(rng.choices("▁ aé", k=rng.randrange(4))) for _ in range(rng.randrange(5))]
            assert "".join(ours.decode(pieces)) == other.decode(pieces), pieces


@pytest.mark.peers
def test_what_the_hf_tests_of_pre_tokenizers_expect():
    "Their subjects, on sentences of our own: defaults, options, states, steps in a row."
    pre = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers
    from tokenizers import Regex

    strings = [
        "",
        "How old are you?!?  I'm 34,  and  you?",
        "Hey there dear friend!",
        "Hey 123 friend!   4567",
        "どこで生れ。Yes どこ",
        "a-b--c",
        " leading and trailing ",
        "x\ty\nz",
        "▁already ▁marked",
        "HelloWorld",
    ]
    pairs = [
        (ByteLevel(), pre.ByteLevel()),
        (ByteLevel(False), pre.ByteLevel(False)),
        (ByteLevel(True, False, False), pre.ByteLevel(True, False, False)),
        (Whitespace(), pre.Whitespace()),
        (WhitespaceSplit(), pre.WhitespaceSplit()),
        (BertPreTokenizer(), pre.BertPreTokenizer()),
        (Metaspace(), pre.Metaspace()),
        (Metaspace("-"), pre.Metaspace("-")),
        (Metaspace("-", "never"), pre.Metaspace("-", "never")),
        (Metaspace("▁", "first", split=False), pre.Metaspace("▁", "first", False)),
        (CharDelimiterSplit("-"), pre.CharDelimiterSplit("-")),
        (Punctuation(), pre.Punctuation()),
        (Punctuation("removed"), pre.Punctuation("removed")),
        (Digits(), pre.Digits()),
        (Digits(True), pre.Digits(True)),
        (FixedLength(), pre.FixedLength()),
        (FixedLength(10), pre.FixedLength(10)),
        (UnicodeScripts(), pre.UnicodeScripts()),
        (Sequence([]), pre.Sequence([])),
        (
            Sequence([Punctuation(), WhitespaceSplit()]),
            pre.Sequence([pre.Punctuation(), pre.WhitespaceSplit()]),
        ),
        (
            Sequence([WhitespaceSplit(), Punctuation("merged_with_previous"), Digits(True)]),
            pre.Sequence([pre.WhitespaceSplit(), pre.Punctuation("merged_with_previous"), pre.Digits(True)]),
        ),
        (Split({"String": " "}, "removed"), pre.Split(" ", "removed")),
        (Split(r"(?=[A-Z])"), pre.Split(Regex(r"(?=[A-Z])"), "isolated")),
        (Split(r"\w+|[^\w\s]+", "removed", True), pre.Split(Regex(r"\w+|[^\w\s]+"), "removed", True)),
    ]
    for ours, theirs in pairs:
        for text in strings:
            expected = theirs.pre_tokenize_str(text) if text else []
            assert [(p, (a, b)) for p, a, b in ours.split(text)] == expected, (ours, text)
        state = json.loads(theirs.__getstate__())
        assert pretokenizer_from_dict(state).to_dict() == state and pretokenizer_from_dict(state).split(
            strings[1]
        ) == ours.split(strings[1]), state


def test_the_start_of_the_original():
    "A normalizer may make several characters of the first one; all of them stand at the start."
    for pre in (
        Sequence([FixedLength(1), Metaspace("_", "first")]),
        Sequence([Split("b"), Sequence([FixedLength(1), Metaspace("_", "first")])]),
    ):
        assert (
            looks_at_start(pre)
            and [pre.raw_pretokens("fin", first=first) for first in (False, True)]
            == [["f", "i", "n"], ["_f", "i", "n"]]
            and pre.raw_pretokens("") == []
        )
        for marks, expected in (
            ([(1, 2), (2, 3), (3, 4)], ["f", "i", "n"]),
            ([(0, 1), (1, 2), (2, 3)], ["_f", "i", "n"]),
            ([(0, 1), (0, 1), (1, 2)], ["_f", "_i", "n"]),
        ):
            assert [p.text for p in pre.split_aligned(Aligned("fin", marks))] == expected
    assert not any(
        map(
            looks_at_start,
            (Metaspace(), ByteLevel(), Sequence([Whitespace(), Metaspace("_", "never")]), Sequence([])),
        )
    )


def test_odd_types_in_steps():
    for make in (lambda: ByteLevel("yes"), lambda: ByteLevel(use_regex=None), lambda: Metaspace(split=1)):
        with pytest.raises(ValueError, match="must be True or False, got"):
            make()
    np = pytest.importorskip("numpy")
    assert Callable(lambda text: list(zip(np.array([0, 1]), np.array([1, 3])))).split("abc") == [
        ("a", 0, 1),
        ("bc", 1, 3),
    ]
    for invalid in (
        [(0.0, 1)],
        [("0", "1")],
        [(0, 1, 2)],
        [(2, 1)],
        [(0, 2), (1, 3)],
        [(0, 4)],
        [(-1, 2)],
        [5],
    ):
        with pytest.raises(ValueError, match="give \\(start, end\\) pairs in order"):
            Callable(lambda text, invalid=invalid: invalid).split("abc")
    for pre in (
        ByteLevel(),
        BertPreTokenizer(),
        Metaspace(),
        Sequence([Whitespace(), ByteLevel()]),
        Callable(spans),
    ):
        for invalid in (b"a", None, 5):
            for ask in (pre.split, pre.split_aligned, pre.raw_pretokens):
                with pytest.raises(ValueError, match="text must be a str, got "):
                    ask(invalid)
