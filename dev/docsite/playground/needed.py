"""Print which modules of the package a page needs before its first answer: python needed.py FOLDER (with the small tokenizers)."""

import json
import os
import sys
from pathlib import Path

for name in ("geteuid", "getuid", "fork"):  # browsers have none of them
    vars(os).pop(name, None)
for name in ("numpy", "numba", "llvmlite", "regex", "tqdm", "typer", "matplotlib"):
    sys.modules[name] = None

from glue import explain, load  # noqa: E402  (as in a browser)


def main(folder: Path) -> None:
    "Load each tokenizer, and explain the first text."
    listed = json.loads((folder / "tokenizers.json").read_text(encoding="utf-8"))
    for kind in listed["tokenizers"]:
        load(str(folder / kind["file"]))
        explain(listed["text"])
    print(json.dumps(sorted(name for name in sys.modules if name.partition(".")[0] == "subword_nb")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
