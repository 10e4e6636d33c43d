"Reading strings in place: all kinds, all blocks, errors, and what happens where it is not possible."

import ctypes
import sys
import threading

import pytest
from seeds import fresh

from subword_nb.core import string_utf8
from subword_nb.core.string_utf8 import readable, utf8_blocks_of
from subword_nb.pipeline.blocks import utf8_blocks
from subword_nb.pipeline.thresholds import SIZES

pytestmark = pytest.mark.skipif(not readable(), reason="strings cannot be read in place here")
RUNS = [
    "low",
    " ",
    "é",
    "ü",
    "’",
    "日本",
    "Ж",
    "😀",
    "\x00",
    "\x7f",
    "\x80",
    "\u07ff",
    "\u0800",
    "\ud7ff",
    "\ue000",
]
RUNS += ["\uffff", "\U00010000", "\U0010ffff"]


def random_text(rng, limit):
    "A text whose runs are shorter and longer than a vector of units."
    pool, parts, n = rng.sample(RUNS, rng.randint(1, 4)), [], 0
    while n < limit:
        parts.append(rng.choice(pool) * rng.choice([1, 1, 2, 5, 31, 32, 33, 70]))
        n += len(parts[-1])
    return "".join(parts)


def blocks_of(text, start=0, stop=None, size=1000):
    "The blocks of a part of a text."
    stop = len(text) if stop is None else stop
    return [bytes(block) for block in utf8_blocks_of(text, start=start, stop=stop, size=size)]


def test_equal_to_python():
    rng = fresh("string utf8")
    for _ in range(3000):
        text, size = random_text(rng, rng.choice([0, 1, 20, 300])), rng.choice([4, 7, 64, 100, 1000])
        start, stop = sorted(rng.choices(range(len(text) + 1), k=2))
        blocks = blocks_of(text, start, stop, size)
        assert "".join(block.decode() for block in blocks) == text[start:stop]
        assert all(size <= len(block) < size + 4 for block in blocks[:-1])


@pytest.mark.parametrize("before", ["", "low", "é" * 40, "’" * 33, "😀" * 70, "low" * 40])
@pytest.mark.parametrize("surrogate", ["\ud800", "\udbff", "\udc00", "\udfff"])
def test_lone_surrogates(before, surrogate):
    text = before + surrogate + "low"
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        blocks_of(text, size=16)
    assert b"".join(blocks_of(text, stop=len(before))) == before.encode()


def test_strings_with_cached_utf8():
    text = "".join(["né", "low"] * 20)
    encode = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    encode.restype = ctypes.c_void_p
    size = sys.getsizeof(text)
    encode(ctypes.py_object(text), None)
    assert sys.getsizeof(text) > size
    assert b"".join(blocks_of(text)) == text.encode()


def test_interned_strings_and_characters():
    for text in (sys.intern("".join(["né", "ver", "seen"])), "a", "é", chr(0x2019), "low"):
        assert b"".join(blocks_of(text)) == text.encode()


def test_subclasses_are_encoded_by_python():
    class Name(str):
        pass

    long = Name("né" * SIZES.block)
    with pytest.raises(TypeError, match="of type str itself, got Name"):
        blocks_of(long)
    assert b"".join(utf8_blocks(long)) == long.encode()


def test_the_same_without_a_layout(monkeypatch):
    rng = fresh("string utf8")
    texts = [random_text(rng, 3 * SIZES.block) for _ in range(4)]
    found = [b"".join(utf8_blocks(text)) for text in texts]
    monkeypatch.setattr(string_utf8, "string_layout", lambda: None)
    assert not readable()
    assert [b"".join(utf8_blocks(text)) for text in texts] == found == [text.encode() for text in texts]


def test_threads():
    rng = fresh("string utf8", "threads")
    texts, failed = [random_text(rng, 50_000) for _ in range(4)], []

    def work(text):
        wanted = text.encode()
        failed.extend(text for _ in range(200) if b"".join(blocks_of(text, size=4096)) != wanted)

    threads = [threading.Thread(target=work, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
