"""The plain splitters against HF tokenizers: every behaviour, every set of characters, every script."""
import itertools
import pickle
import random
import time

import pytest

from subword_nb.alignment import Aligned
from subword_nb.patterns import DEEPSEEK, PATTERNS
from subword_nb.splitting import (BEHAVIORS, CharDelimiterSplit, Digits, FixedLength, Punctuation, Split, UnicodeScripts, Whitespace, WhitespaceSplit, WholeText,
                                  cut, script)

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


def hf_spans(pre, text): return [span for _, span in pre.pre_tokenize_str(text)]


def hf_pieces(pre, text): return [(piece, *span) for piece, span in pre.pre_tokenize_str(text) if piece] # nothing to encode: an empty Sequence gives the empty text


def check_component(ours, theirs, strings):
    "Pieces and offsets as in HF, and the fast way the same pieces."
    for text in strings:
        assert ours.split(text) == hf_pieces(theirs, text), text
        assert [ours.piece_of(r) for r in ours.raw_pretokens(text)] == [p for p, _, _ in ours.split(text)], text


SPLITS = [r"\s", r"\s+", r"\d", "a|b", r"\p{P}", r"[^\w\s]", "(?=[A-Z])", "x*", "'(?i:s|t)", r"\p{Lu}\p{Ll}*", r"\p{N}{1,3}+", r"\b", "^.", ".$", r"\w", r"(?i)[k-t]", r"\h+", r"a\s??", r"(?m)s.t"]


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


def every_code_point(before="a", after="b\n"):
    "Each code point between two letters."
    return "".join(f"{before}{chr(i)}{after}" for i in range(0x110000) if not 0xD800 <= i < 0xE000)


@pytest.mark.peers
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_hf_punctuation(behavior):
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    check_component(Punctuation(behavior), tk.pre_tokenizers.Punctuation(behavior), ["", "!", "!!a", "a!!", " ", *generated(800, seed=60)])


@pytest.mark.peers
@pytest.mark.parametrize("individual", (False, True))
def test_hf_digits(individual):
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    ours, theirs = Digits(individual), tk.pre_tokenizers.Digits(individual_digits=individual)
    check_component(ours, theirs, ["", "1", "12a3", "²Ⅷ٣12 5,000", *generated(800, seed=61)])


@pytest.mark.peers
def test_hf_lengths_and_delimiters():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    strings = ["", " ", "a|b||", "x", "🚀🚀 🚀x", *generated(400, seed=62)]
    for length in (1, 2, 5, 1000): check_component(FixedLength(length), tk.pre_tokenizers.FixedLength(length), strings)
    for delimiter in (" ", "|", "x", "a", "\n", "▁", "🚀", "^", "]", "\\", "-", "\u3000", "\0"):
        check_component(CharDelimiterSplit(delimiter), tk.pre_tokenizers.CharDelimiterSplit(delimiter), [*strings, f"{delimiter}a{delimiter}{delimiter}b"])


@pytest.mark.peers
def test_hf_scripts():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    theirs = tk.pre_tokenizers.UnicodeScripts()
    check_component(UnicodeScripts(), theirs, ["", " ", "  a", "a  ", " \u0378a", "a\u0378я", "ー", "a ー東", "\ue000a", *generated(3000, seed=63)])


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("kind", ("digits", "punctuation", "scripts"))
def test_hf_has_the_same_sets(kind):
    "Every code point, one by one, between letters of two scripts."
    pre = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers
    ours, theirs = {"digits": (Digits(), pre.Digits()), "punctuation": (Punctuation(), pre.Punctuation()), "scripts": (UnicodeScripts(), pre.UnicodeScripts())}[kind]
    for before, after in (("a", "b\n"), ("я", "你\n")) if kind == "scripts" else (("a", "b\n"),):
        text = every_code_point(before, after)
        assert ours.split(text) == hf_pieces(theirs, text)


@pytest.mark.peers
@pytest.mark.slow
def test_hf_tells_the_same_scripts_apart():
    "Each script's first character beside each other's: a cut if the names differ."
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").pre_tokenizers.UnicodeScripts()
    firsts = {}
    for i in range(0x110000):
        if not 0xD800 <= i < 0xE000: firsts.setdefault(script(chr(i)), chr(i))
    firsts.pop("")
    assert len(firsts) > 130
    for a, b in itertools.product(firsts.values(), repeat=2): assert len(theirs.pre_tokenize_str(a + b)) == 1 + (a != b), (a, b)


def test_aligned_pieces_keep_their_places():
    "Whatever the spans say, a piece has its first character's start and its last one's end; without spans, the place of its characters."
    rng, spans = random.Random(70), [(0, 2), (2, 2), (2, 3), (3, 7), (7, 8), (8, 8)]
    for text in ("a1 b!c", "12 34x", "éя你 ab"):
        for pre in plain():
            pieces = pre.split_aligned(Aligned(text, spans[:len(text)]))
            assert [p.text for p in pieces] == pre.raw_pretokens(text)
            where = [(a, b) for _, a, b in pre.split(text)]
            assert [p.span(0, len(p.text)) for p in pieces] == [(spans[a][0], spans[b - 1][1]) for a, b in where]
            at = rng.randrange(99)
            assert [p.span(0, len(p.text)) for p in pre.split_aligned(Aligned(text, None, at))] == [(a + at, b + at) for a, b in where]


def plain():
    "One component of every kind and option."
    yield from (Whitespace(), WhitespaceSplit(), WholeText(), UnicodeScripts(), Digits(), Digits(True), FixedLength(1), FixedLength(3), CharDelimiterSplit(" "), CharDelimiterSplit("a"))
    yield from map(Punctuation, BEHAVIORS)
    yield from (Split(p, b, i) for p in (*PATTERNS, *DEEPSEEK, r"\s+", r"\d", {"String": " "}, {"String": "ab"}, r"[a-z]+|[A-Z]") for b in BEHAVIORS for i in (False, True))


def joined(left, right):
    "Two lists of pieces as they are if the pieces at the seam are one."
    return [*left[:-1], left[-1] + right[0], *right[1:]] if left and right else None


def test_a_cut_before_a_space_changes_nothing():
    "Where a component says so; and where it says that it keeps the space, the pieces are those of the halves, or the two at the seam are joined."
    rng, letters = random.Random(71), [*"abZ09 !'-.é你я\n\t1", "'s", "  ", "ab", "\u3000", "🚀", "\u0301"]
    for pre in plain():
        for _ in range(120):
            x = "".join(rng.choices(letters, k=rng.randrange(7))) + rng.choice("abZ09ssdt")
            y = " " + rng.choice(["", *(c + "".join(rng.choices(letters, k=rng.randrange(7))) for c in "abZ09s")])
            left, right, whole = pre.raw_pretokens(x), pre.raw_pretokens(y), pre.raw_pretokens(x + y)
            if pre.splits_at_space: assert whole == left + right, (pre, x, y)
            elif pre.at_space == "keeps": assert whole in (left + right, joined(left, right)), (pre, x, y)


def test_which_patterns_split_at_spaces():
    for name in PATTERNS: assert Split(name).splits_at_space and not Split(name, "merged_with_next" if "white" in name else "contiguous").splits_at_space
    for source, says in ((r"\s", "splits"), (r"\s+", "splits"), (r"\S+", "splits"), (r"[\p{L}]+|[\p{N}]|'s", "splits"), (r"\p{N}{1,3}", "keeps"), (r"\d*", ""), (r"(?=a)", ""), (r"\ba", ""),
                         (r"a (?=b)", ""), (r" ?\p{L}+", ""), (r"\s|a", ""), ("", ""), ("^a", ""), (".", ""), (r"\d{0,2}", "")):
        assert Split(source).at_space == says, source


def test_splitters_pickle_and_compare():
    for pre in plain():
        again = pickle.loads(pickle.dumps(pre))
        assert again == pre and hash(again) == hash(pre) and again.at_space == pre.at_space
        assert again.split("a-b 12 я!") == pre.split("a-b 12 я!")


def test_splitters_refuse():
    for make, message in ((lambda: Punctuation("Isolated"), "behavior='Isolated' is unknown; pass one of removed"), (lambda: CharDelimiterSplit(""), "is not one character"), (lambda: FixedLength(-1), "whole number from 1"),
                          (lambda: FixedLength(2.0), "whole number from 1"), (lambda: FixedLength(True), "whole number from 1"), (lambda: Split(5), "is not understood"), (lambda: script("ab"), "one character")):
        with pytest.raises(ValueError, match=message): make()


def test_cut_reads_any_row_of_matches():
    "Matches at the ends, side by side, and empty ones."
    assert cut(0, [], "isolated") == cut(0, [(0, 0)], "isolated") == []
    assert cut(3, [], "removed") == cut(3, [(0, 3)], "removed", True) == [(0, 3)]
    assert cut(3, [(0, 0), (1, 1), (3, 3)], "isolated") == [(0, 1), (1, 3)]
    assert cut(4, [(0, 1), (1, 2), (2, 4)], "contiguous") == [(0, 4)]


def test_a_megabyte_takes_a_moment():
    "Time is proportional to the text; a hostile one is no exception."
    for pre in (Punctuation(), Punctuation("contiguous"), Digits(), Digits(True), UnicodeScripts(), FixedLength(3), CharDelimiterSplit("a"), Split(r"\s+", "merged_with_next")):
        for unit in ("a", "1", "!", " ", "я1", "\u0378"):
            began = time.perf_counter()
            pre.raw_pretokens(unit * (200_000 // len(unit)))
            assert time.perf_counter() - began < 5
