"""Long texts made to hurt, each one unbroken string, and what they cost: `python tests/long_texts.py MEGABYTES [MODEL …]`."""

import json
import os
import random
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

MODELS = [
    "t5-small/spiece.model",
    "t5-small/tokenizer.json",
    "llama-2/tokenizer.model",
    "xlnet-base-cased/spiece.model",
]
REPEATED = {
    "spaces": " ",
    "newlines": "\n",
    "tabs and spaces": "\t ",
    "one letter": "a",
    "spaces and letters": "a ",
    "emoji": "😀",
    "emoji joined": "👨\u200d👩\u200d👧",
    "combining marks": "e\u0301\u0323\u0301",
    "marks alone": "\u0301",
    "▁": "▁",
    "▁ and letters": "▁ a",
    "bytes of fallback": "\U0001f9ff",
    "a long replacement": "\ufdfa",
}
DRAWN = {
    "one long word": [(0x61, 0x7B)],
    "Chinese": [(0x4E00, 0x9FA6)],
    "Korean": [(0xAC00, 0xD7A4)],
    "emoji of all kinds": [(0x1F300, 0x1F650)],
    "control characters": [(1, 32)],
    "accents": [(0xC0, 0x180)],
    "letters and marks": [(0x61, 0x7B), (0x300, 0x370)],
    "all of Unicode": [(0, 0xD800), (0xE000, 0x110000)],
}
NAMES = [*REPEATED, *DRAWN, "the longest pieces"]


def long_text(name, size, tok):
    "About `size` bytes of a text; what is drawn does not repeat."
    if name in DRAWN:
        characters = [chr(i) for a, b in DRAWN[name] for i in range(a, b)]
        wide = sum(len(c.encode()) for c in characters) / len(characters)
        return "".join(random.Random(name).choices(characters, k=int(size / wide)))
    unit = REPEATED.get(name) or "".join(
        sorted((p for p in tok.piece2id if p[0] != "<"), key=len)[-20:]
    ).replace("▁", " ")
    return unit * (size // len(unit.encode()))


def forget(tok):
    "Let a tokenizer meet every span for the first time again."
    from subword_nb.pipeline.encoder import encoder_of

    encoder_of(tok).bulk.tables.clear()


def measure(path, name, size):
    "CPU and wall seconds, bytes, ids, and bytes of memory at most, of one text in this process."
    from subword_nb import Tokenizer

    warnings.simplefilter("ignore")
    tok = Tokenizer.load(path)
    tok.encode(long_text(name, 1 << 21, tok))  # loads the kernels
    forget(tok)
    text = long_text(name, size, tok)
    Path("/proc/self/clear_refs").write_text("5")
    before, cpu, wall = resident("VmRSS"), time.process_time(), time.perf_counter()
    ids = tok.encode(text)
    return (
        time.process_time() - cpu,
        time.perf_counter() - wall,
        len(text.encode()),
        len(ids),
        resident("VmHWM") - before,
    )


def resident(what):
    "Bytes of this process in memory, now (VmRSS) or at most (VmHWM)."
    return int(re.search(rf"{what}:\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def main(megabytes, *models):
    "Print a line for each text and model, each measured in a process of its own."
    folder = Path(os.environ["SUBWORD_NB_DATA"]) / "vocab"
    for name in NAMES:
        for model in models or MODELS:
            request = json.dumps([str(folder / model), name, int(float(megabytes) * 1e6)])
            done = subprocess.run(
                [sys.executable, __file__, "measure", request], capture_output=True, text=True, check=True
            )
            cpu, wall, size, ids, memory = json.loads(done.stdout)
            print(
                f"{name:20} {model:30} {size / cpu / 1e6:7.1f} MB/s CPU {size / wall / 1e6:7.1f} wall {ids / size:6.3f} "
                f"ids a byte {memory / 1e6:7.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
    else:
        main(*sys.argv[1:])
