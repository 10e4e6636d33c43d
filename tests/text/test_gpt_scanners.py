"""The scanners of the GPT family against the patterns themselves."""

import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest
from seeds import TEXTS, fresh
from costs import assert_linear

from subword_nb.corpus.documents import documents, find_files
from subword_nb.core.simd import HEAD, buffer_of, scan_spans
from subword_nb.text.regex import PATTERNS, compile_pattern
from subword_nb.text.gpt_scanners import gpt_scanner, scan_ref, scanner_name
from subword_nb.text.splitters import HF_SPELLING

NAMES = ["gpt2", "cl100k", "o200k", "llama3", "qwen2"]
ALPHABETS = [
    "aAsStTlLdmver''' \t\n\r/!.1 2",
    [
        *"aAsSl''' \n\n\r/!19 ",
        *"éÉǅʰあ中\u0301\u0301ſ\u00a0\u3000\u0085٣９①—😀\ufe0f𝒜𝒶\U00010400\U0001e8d0𝟙Kⅷ",
    ],
    ["a", "A", "あ", "\u0301", "'", "!", "/", "\n", " ", "s", "S", "1", "L", "l", "\u3000", "😀", "٣"],
    ["A", "あ", "\u0301", "'s", "'S", "b", " ", "!"],
    [*" \n\t\u00a0\u3000\ra!/"],
    [
        "a" * 30,
        " " * 40,
        "\n" * 9,
        "1" * 25,
        "٣" * 9,
        "\u0301" * 12,
        "あ" * 12,
        "A" * 33,
        "!" * 20,
        *"'s/\n",
        "\u3000" * 7,
        "A",
        " ",
    ],
]


def generated(rng: random.Random) -> bytes:
    "A text with rare things, shifted, at times in several documents."
    text = "x" * rng.choice([0, rng.randrange(64)]) + "".join(
        rng.choices(rng.choice(ALPHABETS), k=rng.choice([3, 8, 20, 60, 150]))
    )
    size = rng.choice([len(text) + 1, rng.randrange(1, 60)])
    return b"\xff".join(text[k : k + size].encode() for k in range(0, len(text), size))


@pytest.mark.parametrize("name", NAMES)
def test_generated_texts_in_blocks_of_all_sizes(name):
    rng = fresh(name)
    for _ in range(TEXTS // 2):
        text, block = generated(rng), rng.choice([1 << 16, rng.randrange(8, 300)])
        assert scan_spans(gpt_scanner(name), text, block=block) == scan_ref(name, text), (text, block)


@pytest.mark.parametrize("name", NAMES)
def test_every_offset_modulo_64(name):
    rng = fresh(1)
    tails = [generated(rng) for _ in range(3)] + [
        b" say'st we'll  go!\n\n  'LL it's's 12345\n " + "é中AB\u3000!\u0301 中ABc".encode()
    ]
    for shift in range(64):
        for tail in tails:
            text = b"x" * shift + tail
            assert scan_spans(gpt_scanner(name), text) == scan_ref(name, text), text


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_all_code_points(name, step):
    chars = [
        chr(c)
        for c in [*range(0xD800), *range(0xE000, 0x110000)]
        if c < 0x3400 or 0xA000 <= c < 0xAC00 or 0xD700 <= c < 0x1F800 or c % 251 == 0
    ][fresh(name).randrange(step) :: step]
    for form in ("{0}a", "!{0}A ", "a{0}b'{0} \n{0}\n1{0}{0}2 {0}{0}"):
        for k in range(0, len(chars), 20000):
            text = "".join(form.format(c) for c in chars[k : k + 20000])
            got, want = (
                scan_spans(gpt_scanner(name), text.encode(), block=1 << 20),
                [p.encode() for p in compile_pattern(name).findall(text)],
            )
            assert got == want, next((g, w) for g, w in zip(got, want, strict=False) if g != w)


def test_starts_tile_the_text_and_stay_in_their_array():
    rng = fresh(2)
    for _ in range(200):
        text = generated(rng)
        for name in NAMES:
            for last in (True, False):
                starts = np.full(len(text) + 24, 7, np.uint32)
                k = gpt_scanner(name).scan(buffer_of(text), len(text), last, starts[: len(text) + 8])
                assert (starts[len(text) + 8 :] == 7).all()
                assert starts[0] == HEAD
                assert (np.diff(starts[: k + 1].astype(np.int64)) > 0).all()
                assert not last or starts[k] == HEAD + len(text)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_settled_does_not_change(name):
    rng = fresh(3)
    for _ in range(TEXTS // 4):
        text = generated(rng).replace(b"\xff", b" ").decode()
        head, whole = text[: rng.randrange(len(text) + 1)].encode(), scan_ref(name, text.encode())
        starts = np.empty(len(head) + 8, np.uint32)
        k = gpt_scanner(name).scan(buffer_of(head), len(head), False, starts)
        spans = [
            head[a - HEAD : b - HEAD]
            for a, b in zip(starts[:k].tolist(), starts[1 : k + 1].tolist(), strict=True)
        ]
        assert spans == whole[:k], (head, text)


def test_fresh_places_cut_a_text_in_two():
    rng = fresh(4)
    for _ in range(TEXTS // 2):
        text = generated(rng).replace(b"x", rng.choice([b"y\n", b"! ", "中\n".encode()]))
        cuts = [m.end() for m in re.finditer(gpt_scanner("gpt2").safe_cut_regex, text)]
        for name in NAMES if cuts else ():
            at = rng.choice(cuts)
            assert scan_ref(name, text[:at]) + scan_ref(name, text[at:]) == scan_ref(name, text), (
                name,
                text,
                at,
            )


def test_names_of_patterns():
    assert [
        scanner_name(n) for n in ("gpt2", "r50k", "p50k", "cl100k", "o200k", "llama3", "qwen2", "whitespace")
    ] == ["gpt2"] * 3 + ["cl100k", "o200k", "llama3", "qwen2", None]
    for name in NAMES:
        assert scanner_name(HF_SPELLING[name], dialect="oniguruma") == name
    assert scanner_name(PATTERNS["cl100k"], dialect="oniguruma") is None  # {1,3}+ repeats there
    assert scanner_name(PATTERNS["o200k"].replace("{1,3}", "{1,2}")) is None
    with pytest.raises(ValueError, match="name must be one of .*got 'bert'; make a scanner"):
        gpt_scanner("bert")


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts_take_linear_time(name):
    scan = gpt_scanner(name).scan

    def work(text):
        scan(buffer_of(b"!\n" + text), len(text) + 2, True, np.empty(len(text) + 10, np.uint32))

    for unit in (
        "a",
        "A",
        " ",
        "\n",
        "9",
        "'",
        "!",
        "😀",
        "中",
        "\u0301",
        "'s",
        "a's",
        "\n  ",
        "\u3000",
        "٣",
        "!\u0301",
        "中A",
        "\n/",
        "❤\ufe0f",
    ):
        assert_linear(work, unit.encode(), 1 << 20, what=unit)


def test_plain_python_gives_the_same():
    code = """
import random
from subword_nb.core.simd import scan_spans
from subword_nb.text.gpt_scanners import gpt_scanner, scan_ref
rng = random.Random(5)
for k in range(30):
    text = "".join(rng.choices(["a", "A", "'s", " ", "\\n", "中", "\\u0301", "!", "1", "٣", "\\u3000", "é"], k=60)).encode()
    name = ("gpt2", "cl100k", "o200k", "llama3", "qwen2")[k % 5]
    assert scan_spans(gpt_scanner(name), text, block=100) == scan_ref(name, text), (name, text)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SUBWORD_NB_JIT": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_whole_corpora(shared_data, name):
    "The first megabytes of each file; all of it from SUBWORD_NB_TEXTS=100000 on."
    scan, most = gpt_scanner(name).scan, 1 << 40 if TEXTS >= 100_000 else 1 << 20
    for path in find_files(str(shared_data / "corpus" / "**" / "*")):
        if path.is_dir() or path.suffix in (".md", ".json"):
            continue
        seen = 0
        for text in documents(path, errors="replace", progress=False):
            data = text.encode()
            starts = np.empty(len(data) + 8, np.uint32)
            k = scan(buffer_of(data), len(data), True, starts)
            want = np.cumsum([HEAD, *(len(p.encode()) for p in compile_pattern(name).findall(text))])
            assert k + 1 == len(want), (path.name, seen)
            assert (starts[: k + 1] == want).all(), (path.name, seen)
            seen += len(data)
            if seen >= most:
                break
