"""Automata find what the regular expressions find, in any blocks, for published, hand-made and random patterns."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from seeds import TEXTS as N, fresh, some_of
from characters import code_points
from costs import assert_linear

from subword_nb.text.dfa import automaton, automaton_scanner, find_ref
from subword_nb.core.jit import available
from subword_nb.core.simd import HEAD, buffer_of, scan_spans
from subword_nb.text.regex import DEEPSEEK, PATTERNS, compile_pattern
from subword_nb.text.splitters import HF_SPELLING

KNOWN = [
    *((p, "rust") for p in PATTERNS.values()),
    *((p, "oniguruma") for p in HF_SPELLING.values()),
    *((p, "oniguruma") for p in DEEPSEEK),
]
KNOWN = list(dict.fromkeys(KNOWN))
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
BY_HAND = [
    (p, d)
    for d in ("rust", "oniguruma")
    for p in (
        BLOOM,
        r"<\|startoftext\|>|'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
        r"\p{N}{3}(?=\p{N}*)|\p{N}{1,2}",
        r"[a-z]+?[A-Z]?|\s*?[\r\n]",
        r"(?:\r\n|\n)+|[^\r\n]+$|.",
        r"a*b|a",
        r"(?i)strasse|\w+?\s|\S",
        r"\d{1,3}+|\s++(?!\S)|\s",
        r"a?+a|[ab]{2,3}+b|.",
        r"x(?!y|$)|y(?=\s|\p{L})|(?:xy)+",
        r"\s+(?=\S)|\s+$|\S{1,4}",
        r"(?:a|b(?=c)|cc)+?c|[^\p{L}]+",
        r"\p{Lu}\p{Ll}*|\p{Ll}+|\p{M}",
        r"[^\S\n]+|\n",
        r"(?>a|b)+|\s(?!\s)",
    )
]
CHARS = [
    "a",
    "b",
    "c",
    "S",
    "s",
    "t",
    "x",
    "y",
    "'",
    "'s",
    "'ll",
    "'RE",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "1",
    "23",
    "456",
    "é",
    "ß",
    "中",
    "e\u0301",
    "🤗",
    "𐌰",
    "\u3000",
    "\u00a0",
    "!",
    "/",
    "ſ",
    "ǅ",
    "_",
    "٣",
    "²",
    "\u2028",
    "\u0130",
    "K",
    "…",
    "\x00",
    "\ufffd",
]


def some_text(rng, chars=CHARS, most=24):
    "A few kinds of characters, so that runs and ties happen."
    return "".join(
        rng.choices(rng.sample(chars, rng.randrange(1, min(9, len(chars)) + 1)), k=rng.randrange(most))
    )


def tiles(found, n, joined):
    "Matches and gaps from matches."
    out, at = [], 0
    for a, b in found:
        if a > at and not joined:
            out.append((at, a))
        out += [(at if joined else a, b)] * (b > a)
        at = b
    return out + [(at, n)] * (n > at)


def check(scanners, found, text, blocks, what):
    "Both scanners against the matches, in blocks."
    for joined, scanner in enumerate(scanners):
        spans = [text[a:b].encode() for a, b in tiles(found, len(text), joined)]
        for block in blocks:
            assert scan_spans(scanner, text.encode(), block=block) == spans, (
                what,
                scanner.name,
                joined,
                text,
                block,
            )


def both(pattern, dialect="rust"):
    return [automaton_scanner(pattern, dialect=dialect, gaps=gaps) for gaps in ("own", "joined")]


@pytest.mark.parametrize(("pattern", "dialect"), KNOWN + BY_HAND)
def test_matches_and_gaps(pattern, dialect):
    rng, auto, scanners, regex = (
        fresh(pattern),
        automaton(pattern, dialect=dialect),
        both(pattern, dialect),
        compile_pattern(pattern, dialect=dialect),
    )
    for _ in range(N // 10):
        text = some_text(rng)
        found = regex.spans(text)
        assert find_ref(auto, text) == found, text
        check(scanners, found, text, (1 << 16, rng.randrange(1, 12)), pattern)


def some_set(rng):
    return rng.choice(
        ("a", "b", "c", "[ab]", "[^a]", r"\s", r"\S", ".", r"\p{L}", "é", r"[bc\n]", r"[^\s\p{L}]")
    )


def some_look(rng):
    "A question about the next character."
    return rng.choice(("(?=%s)", "(?!%s)")) % rng.choice(
        (some_set(rng), some_set(rng) + "|" + some_set(rng), some_set(rng) + "|$", "$")
    )


def some_pattern(rng, depth=2):
    "Alternatives of sequences of repeated things; the grammar that the automaton takes, and a little more."

    def item():
        if rng.random() < 0.12:
            return some_look(rng)
        body = (
            some_set(rng)
            if depth == 0 or rng.random() < 0.7
            else rng.choice(("(?:%s)", "(?:%s)", "(%s)", "(?>%s)")) % some_pattern(rng, depth - 1)
        )
        return (
            body
            + rng.choice(("", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"))
            + rng.choice(("", "", "?", "+"))
            if rng.random() < 0.6
            else body
        )

    return "|".join("".join(item() for _ in range(rng.randrange(1, 4))) for _ in range(rng.randrange(1, 4)))


def usable(pattern, dialect):
    "The compiled pattern and its automaton; None if one of them refuses it."
    if dialect == "rust" and re.search(r"\)\{2,?\}\+", pattern):
        return None  # Python's own `re` never goes back into the first of these; see test_possessive_groups
    try:
        return compile_pattern(pattern, dialect=dialect), automaton(pattern, dialect=dialect)
    except ValueError:
        return None


def test_random_patterns():
    rng, tried, taken, scanned = fresh(1), 0, 0, 0
    while taken < N // 14 or scanned < N // 20:
        tried += 1
        assert tried < 2 * N, (taken, scanned)
        pattern, dialect = some_pattern(rng), rng.choice(("rust", "oniguruma"))
        pair = usable(pattern, dialect)
        if pair is None:
            continue
        taken += 1
        texts = [some_text(rng, [*"abc \né1"], 10) for _ in range(12)]
        for text in texts:
            assert find_ref(pair[1], text) == pair[0].spans(text), (pattern, dialect, text)
        if any(match for _, match in pair[1].table[0]):
            with pytest.raises(ValueError, match="can match nothing at all"):
                automaton_scanner(pattern, dialect=dialect)
            continue
        scanned += 1
        scanners = both(pattern, dialect) if scanned % 3 == 0 else []
        for text in texts:
            check(scanners, pair[0].spans(text), text, (1 << 16, rng.randrange(1, 6)), pattern)


def test_possessive_groups():
    "As Oniguruma, Rust and `regex` have it: what is possessive is the whole repeat, not each time."
    regex = pytest.importorskip("regex")
    for pattern in (
        "(?:a+){2}+",
        "(?:a+){2,}+",
        "(?:ab?|b){2}+",
        "(?:a+b?){2,3}+",
        "(?>(?:a|ab){2})|b",
        "(?:a|ab)++",
        "(?:a|b)++b|a",
    ):
        for text in ("aaa", "ab", "abab", "aabaaab", "bbaab"):
            assert find_ref(automaton(pattern), text) == [m.span() for m in regex.finditer(pattern, text)], (
                pattern,
                text,
            )


def test_what_is_taken_is_most():
    "Refusing everything would pass the test above; of what `re` can run, most is taken."
    rng, run, taken = fresh(2), 0, 0
    for _ in range(150):
        pattern = some_pattern(rng, 1)
        try:
            compile_pattern(pattern)
        except ValueError:
            continue
        run, taken = run + 1, taken + (usable(pattern, "rust") is not None)
    assert taken > 0.6 * run, (taken, run)


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "whitespace"])
def test_offsets_and_separators(name):
    rng, scanners, regex = fresh(3), both(name), compile_pattern(name)
    for offset in range(130):
        texts = ["x" * offset, *(some_text(rng) for _ in range(3)), "", some_text(rng)]
        for joined, scanner in enumerate(scanners):
            spans = []
            for text in texts:
                spans += [
                    *(text[a:b].encode() for a, b in tiles(regex.spans(text), len(text), joined)),
                    b"\xff",
                ]
            data = b"\xff".join(text.encode() for text in texts)
            for block in (rng.randrange(1, 70), 64, 1 << 16):
                assert scan_spans(scanner, data, block=block) == spans[:-1], (name, offset, block, data)


def test_a_block_says_only_what_is_certain():
    "Spans that a scanner reports before the end are those of the whole text, whatever follows."
    rng = fresh(4)
    for pattern, dialect in (*KNOWN, (r"a*b|a", "rust"), (r"ab?c|\s", "rust")):
        for scanner in both(pattern, dialect):
            for _ in range(N // 50):
                text, more = some_text(rng).encode(), some_text(rng).encode()
                whole, starts = scan_spans(scanner, text + more), np.empty(len(text) + 8, np.uint32)
                k = scanner.scan(buffer_of(text), len(text), False, starts)
                assert starts[0] == HEAD or not k
                assert [
                    text[a - HEAD : b - HEAD] for a, b in zip(starts[:k].tolist(), starts[1 : k + 1].tolist())
                ] == whole[:k]
                assert int(starts[k]) - HEAD == len(b"".join(whole[:k]))


def test_safe_cuts():
    "Behind a match of `safe_cut_regex` any text may be cut."
    rng, tried = fresh(5), 0
    patterns = [*KNOWN, *BY_HAND, *((some_pattern(rng, 1), "rust") for _ in range(N // 40))]
    for pattern, dialect in patterns:
        pair = usable(pattern, dialect)
        if pair is None or any(match for _, match in pair[1].table[0]):
            continue
        for scanner in both(pattern, dialect):
            for _ in range(12 if scanner.safe_cut_regex else 0):
                text = some_text(rng, [c for c in CHARS if c.isascii()] + ["é"]).encode()
                for cut in re.finditer(scanner.safe_cut_regex, text):
                    assert scan_spans(scanner, text[: cut.end()]) + scan_spans(
                        scanner, text[cut.end() :]
                    ) == scan_spans(scanner, text), (pattern, text, cut)
                    tried += 1
    assert tried > N // 2


def test_plain_python_is_the_same():
    "The spans of a process without Numba, from bytes in hexadecimal."
    rng = fresh(6)
    texts = [some_text(rng).encode() for _ in range(40)]
    code = (
        "import sys\n"
        "from subword_nb.core.simd import scan_spans\n"
        "from subword_nb.text.dfa import automaton_scanner\n"
        "texts = [bytes.fromhex(line) for line in sys.stdin]\n"
        "for name in sys.argv[1:]:\n"
        "    scanner = automaton_scanner(name)\n"
        "    for text in texts:\n"
        "        print(*(span.hex() for span in scan_spans(scanner, text)))\n"
    )
    names = ["gpt2", "o200k", "whitespace"]
    done = subprocess.run(
        [sys.executable, "-c", code, *names],
        input="".join(text.hex() + "\n" for text in texts),
        env={**os.environ, "SUBWORD_NB_JIT": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    spans = [scan_spans(automaton_scanner(name), text) for name in names for text in texts]
    assert done.stdout.splitlines() == [" ".join(span.hex() for span in found) for found in spans]


REFUSED = {
    r"(?<=a)b": "looks behind",
    r"(?<!a)b": "looks behind",
    r"\bb": "looks behind",
    "^a": r"start of the text \(\^",
    r"(?m)^a": "start of a line",
    r"\Aa": "start of the text",
    r"(a)\1": "compares with a group",
    r"a(?=bc)": "more than one character ahead",
    r"a(?!b{2})": "more than one character ahead",
    r"a(?=(?:b|$)c)": "more than one character ahead",
    "(?:a*)+": "repeats what can be empty",
    "(?:|a){2}": "repeats what can be empty",
    r"(?>a|ab)c": "something that can fail",
    r"(?:ab?)++b": "something that can fail",
    "a{5000}": "more than 4000 instructions",
    "(?:(?:a|b){99}){99}": "more than 4000 instructions",
    "(?:a|b)*a(?:a|b){14}": "more than 4000 states",
}


@pytest.mark.parametrize(("pattern", "problem"), REFUSED.items())
def test_refusals(pattern, problem):
    with pytest.raises(ValueError, match=problem) as e:
        automaton(pattern)
    assert "use compile_pattern" in str(e.value) and repr(pattern[:60]) in str(e.value)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("^a", "start of a line"),
        (r"a\Z", "looks two characters ahead"),
        (r"\R", "more than one character ahead"),
        (r"(?<=a)b", "looks behind"),
    ],
)
def test_refusals_of_the_other_dialect(pattern, problem):
    with pytest.raises(ValueError, match=problem):
        automaton(pattern, dialect="oniguruma")


def test_bad_arguments():
    for pattern in ("a*", "(?=a)", "|a", r"\s*$"):
        with pytest.raises(ValueError, match="can match nothing at all"):
            automaton_scanner(pattern)
    with pytest.raises(ValueError, match="gaps must .*got 'removed'"):
        automaton_scanner("a", gaps="removed")
    with pytest.raises(ValueError, match="closed"):
        automaton("[a")
    scanner = automaton_scanner("a")
    for buf, n, room_for in (
        (np.zeros(HEAD + 20, np.uint8), 9, 99),
        (buffer_of(b"abc"), 3, 10),
        (buffer_of(b"abc"), 2, 99),
    ):
        with pytest.raises(ValueError, match="buf and starts must be large enough .*make buf with buffer_of"):
            scanner.scan(buf, n, True, np.empty(room_for, np.uint32))


HOSTILE = {
    "letter": "a",
    "space": " ",
    "newline": "\n",
    "digit": "7",
    "apostrophe": "'",
    "sign": "!",
    "emoji": "🤗",
    "chinese": "中",
    "marks": "\u0301",
    "line, spaces": "\n    ",
    "capitals": "A",
    "mixed case": "aB",
}


@pytest.mark.skipif(not available(), reason="a matter of speed")
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "llama3", "whitespace", DEEPSEEK[2]])
def test_hostile_megabytes(pattern):
    "One character, or two, for a megabyte: time grows with the length, no faster."
    scanner = automaton_scanner(pattern)

    def scan(data):
        scanner.scan(buffer_of(data + b"x"), len(data) + 1, True, np.empty(len(data) + 9, np.uint32))

    for what, text in HOSTILE.items():
        assert_linear(scan, text.encode(), 1 << 20, what=what)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "o200k", "whitespace"])
def test_every_character(name):
    "Each code point between letters, before and behind spaces."
    scanner, regex = automaton_scanner(name), compile_pattern(name)
    chars = [chr(c) for c in some_of(code_points(), name)]
    for at in range(0, len(chars), 1 << 15):
        text = "".join(f"a{c}{c} {c}'{c}\n{c}" for c in chars[at : at + (1 << 15)])
        check([scanner], regex.spans(text), text, (1 << 20,), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "cl100k"])
def test_corpora(name, shared_data):
    "The beginning of each file, in large and in small blocks."
    import gzip
    import lzma

    scanner, regex, seen = automaton_scanner(name), compile_pattern(name), 0
    for path in sorted((shared_data / "corpus").rglob("*")):
        if not path.is_file() or path.suffix not in (".txt", ".gz", ".xz"):
            continue
        data = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)(path, "rb").read(
            1 << 21 if N >= 2000 else 1 << 18
        )
        text = data.decode("utf-8", "ignore")
        check([scanner], regex.spans(text), text, (1 << 16, 3001), path.name)
        seen += 1
    assert seen
