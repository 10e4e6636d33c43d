"""Train the small tokenizers of the playground and explain a first text with each: python train.py FOLDER (an empty one)."""

import json
import sys
from pathlib import Path

from glue import as_json, explanation

from subword_nb import Tokenizer
from subword_nb.corpus.documents import default_corpus

SIZE = 2000
FIRST = "Tokenizers split text: unbelievable, isn't it? 🙂 naïve café"
KINDS = {  # name → label, options of training
    "bpe": ("Byte-level BPE", {"algorithm": "bpe"}),
    "char_bpe": (
        "Character BPE",
        {
            "algorithm": "char_bpe",
            "special_tokens": ["<unk>"],
            "unk_piece": "<unk>",
            "end_of_word_suffix": "</w>",
        },
    ),
    "wordpiece": ("WordPiece", {"algorithm": "wordpiece"}),
    "unigram": ("Unigram", {"algorithm": "unigram", "byte_fallback": True}),
}


def small_tokenizer(
    name: str,  # One of `KINDS`
) -> Tokenizer:  # With `SIZE` pieces, from the manual that comes with Python
    "One of the playground's tokenizers."
    return Tokenizer.train(default_corpus(), vocab_size=SIZE, progress=False, **KINDS[name][1])


def main(folder: Path) -> None:
    "Write each tokenizer, what it makes of the first text, and the list of all."
    for name in KINDS:
        small_tokenizer(name).save(folder / f"{name}.json", kind="tokenizer.json")
        tok = Tokenizer.load(folder / f"{name}.json")
        (folder / f"first-{name}.json").write_text(
            as_json(explanation(tok, FIRST).to_dict()), encoding="utf-8"
        )
    listed = [
        {
            "name": name,
            "label": label,
            "file": f"{name}.json",
            "first": f"first-{name}.json",
            "pieces": len(
                json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["model"]["vocab"]
            ),
        }
        for name, (label, _) in KINDS.items()
    ]
    (folder / "tokenizers.json").write_text(
        json.dumps({"text": FIRST, "tokenizers": listed}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
