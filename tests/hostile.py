"""Files made to hurt: small ones of every kind, real ones damaged, and a child that loads many of them with little memory and a clock."""

import base64
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 10

CHILD = """
import json, os, resource, signal, sys, time, tracemalloc
import numpy
from subword_nb import Tokenizer
for page in ("gguf", "subword_nmt", "sentencepiece", "tiktoken", "huggingface"): __import__(f"subword_nb.formats.{page}")
import subword_nb.pipeline.encoder
seconds, text = int(sys.argv[1]), "Hello  w\\u00f6rld, \\U0001f917 \\u4f60\\u597d!\\n" * 40
class Late(BaseException): pass
def ring(*_): raise Late
signal.signal(signal.SIGPROF, ring)
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
for line in sys.stdin:
    name, path, options = json.loads(line)
    size, wrong, said, tok = os.path.getsize(path), "", "", None
    signal.setitimer(signal.ITIMER_PROF, seconds) # of CPU time
    if size < 300_000: tracemalloc.start() # which makes everything slow
    try:
        try: tok = Tokenizer.load(path, **options)
        finally:
            peak = tracemalloc.get_traced_memory()[1] if tracemalloc.is_tracing() else 0
            tracemalloc.stop()
        if peak > 40 * size + (32 << 20): wrong = f"{peak:,} bytes of memory for {size:,}"
        ids = tok.encode(text)
        tok.decode(ids); tok.encode_array(text); tok.align(text[:200]); repr(tok)
    except (ValueError, KeyError) as e: said = f"{type(e).__name__}: {e}"
    except Late: wrong = f"more than {seconds} seconds of CPU time"
    except BaseException as e: wrong = f"{type(e).__name__}: {e}"
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps([name, wrong, said[:300], tok is not None]), flush=True)
"""


def run(cases, seconds=SECONDS):
    "Load each (name, path, options) in a child; yields (name, what went wrong, what the error said, was it loaded?)."
    env = {
        **os.environ,
        "SUBWORD_NB_LIMITS": "regex_seconds=1,regex_seconds_per_million=1",
        "SUBWORD_NB_QUIET": "1",
    }
    lines = "".join(json.dumps([name, str(path), options]) + "\n" for name, path, options in cases)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(seconds)],
        input=lines,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env,
        timeout=3600,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(found) != len(cases):
        found.append(
            [
                cases[min(len(found), len(cases) - 1)][0],
                f"the process ended with {done.returncode}: {done.stderr[-600:]}",
                "",
                False,
            ]
        )
    return found


def truncated(data, rng):
    return data[: rng.randrange(len(data))]


def flipped(data, rng):
    out = bytearray(data)
    for _ in range(rng.choice((1, 3, 30))):
        out[rng.randrange(min(len(out), rng.choice((64, 4096, len(out)))))] = rng.randrange(256)
    return bytes(out)


def numbered(data, rng):
    "A number in the text replaced by one that is huge, negative or none; in a binary file, four or eight bytes."
    places = [m.span() for m in re.finditer(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", data[:200_000])]
    if places and b"\0" not in data[:1000]:
        a, b = rng.choice(places)
        return (
            data[:a]
            + rng.choice(
                (b"-1", b"4000000000", b"9223372036854775808", b"1e400", b"NaN", b"9" * 5000, b"null", b"[]")
            )
            + data[b:]
        )
    a = rng.randrange(min(len(data), 5000))
    value = rng.choice(
        (
            struct.pack("<Q", 1 << 62),
            struct.pack("<I", 0xFFFFFFFF),
            struct.pack("<f", float("nan")),
            b"\xff" * 9 + b"\x01",
        )
    )
    return data[:a] + value + data[a + len(value) :]


def nested(data, rng):
    "Brackets in front of a value, or a piece of the file many times over."
    a = rng.randrange(len(data))
    part = data[a : a + rng.randrange(1, 40)]
    return data[:a] + rng.choice((b"[" * 3000, b'{"a":' * 1500, part * 2000)) + data[a:]


def swapped(data, rng):
    "Two parts of the file exchanged."
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[b:] + data[a:b] + data[:a]


MUTATIONS = [truncated, flipped, numbered, nested, swapped]


def small_files():
    "(name, content) of a small valid file of every kind that is one file."
    from peers import hf_bpe

    letters = {c: i for i, c in enumerate("Helowrd, ! ab")}
    model = hf_bpe(letters | {"He": 20, "ll": 21}, ["H e", "l l"])
    split = {
        "type": "Split",
        "pattern": {"Regex": r"\p{L}+|\s+|[^\s\p{L}]"},
        "behavior": "Isolated",
        "invert": False,
    }
    token = {
        "id": 22,
        "content": "<s>",
        "single_word": False,
        "lstrip": True,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    norms = {
        "type": "Sequence",
        "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}],
    }
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [22], "tokens": ["<s>"]}},
    }
    described = {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 2},
        "padding": {
            "strategy": {"Fixed": 20},
            "direction": "Right",
            "pad_to_multiple_of": 8,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [token],
        "normalizer": norms,
        "pre_tokenizer": split,
        "post_processor": template,
        "decoder": {"type": "Fuse"},
        "model": model,
    }
    unigram = described | {
        "model": {
            "type": "Unigram",
            "unk_id": 0,
            "vocab": [["<unk>", 0.0], ["▁", -2.0], ["H", -3.5], ["ello", -4.25], ["<s>", 0.0]],
            "byte_fallback": False,
        },
        "post_processor": None,
        "padding": None,
        "truncation": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    }

    def field(n, body):
        return bytes([n << 3 | 2, len(body)]) + body

    def piece(text, score, kind=b""):
        return field(1, field(1, text) + b"\x15" + struct.pack("<f", score) + kind)

    def string(text):
        return struct.pack("<Q", len(text)) + text

    pairs = [
        (b"tokenizer.ggml.model", struct.pack("<I", 8) + string(b"llama")),
        (
            b"tokenizer.ggml.tokens",
            struct.pack("<IIQ", 9, 8, 3) + string(b"<unk>") + string(b"a") + string("▁".encode()),
        ),
        (b"tokenizer.ggml.scores", struct.pack("<IIQ3f", 9, 6, 3, 0, -1, -2)),
        (b"tokenizer.ggml.token_type", struct.pack("<IIQ3i", 9, 5, 3, 2, 1, 1)),
    ]
    return {
        "tokenizer.json": json.dumps(described, ensure_ascii=False).encode(),
        "unigram.json": json.dumps(unigram).encode(),
        "m.model": piece(b"<unk>", 0, b"\x18\x02")
        + piece("▁a".encode(), -1)
        + piece(b"a", -2)
        + field(2, b"\x18\x01")
        + field(3, b"\x18\x01"),
        "t.tiktoken": b"".join(base64.b64encode(bytes([b])) + b" %d\n" % b for b in range(256))
        + b"SGU= 256\n",
        "vocab.txt": b"[UNK]\n[CLS]\nHello\nw\n##or\n##l\n##d\n,\n!\n",
        "b.model": b"minbpe v1\n\\S+|\\s+\n1\n<s> 300\n97 98\n256 99\n",
        "codes.txt": b"#version: 0.2\nH e\nl l\no r</w>\n",
        "x.gguf": b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(string(k) + v for k, v in pairs),
    }


def cases_of(folder, name, data, rng, n, options=()):
    "n damaged copies of a file, written into a folder."
    for k in range(n):
        mutate = MUTATIONS[k % len(MUTATIONS)]
        place = Path(folder) / f"{k:03}"
        place.mkdir(parents=True, exist_ok=True)
        path = place / name
        path.write_bytes(mutate(data, rng))
        yield f"{name}, {mutate.__name__} {k}", path, dict(options)
