"""The top of the home page: a strip of tokens, three doors, an example and a chart of speed.

The strip shows what three tokenizers make of a text; `docsite/home/strip.js` segments what the reader types.
Its tokenizers are those of the playground, so the playground is written first.
"""

import html
import json
from pathlib import Path

from docsite_cells import painted

from subword_nb import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "docsite" / "home"
PAGE = "index.ipynb"  # the notebook whose page takes it
TEXT = "naïve words 🙂"
ROWS = {  # file of the playground → (name, page that explains it)
    "bpe.json": ("Byte-level BPE", "bpe/reference.html"),
    "wordpiece.json": ("WordPiece", "wordpiece/reference.html"),
    "unigram.json": ("Unigram", "unigram/reference.html"),
}
LEGEND = (
    "<code>·</code> and <code>▁</code> are spaces, <code>##</code> continues a word, "
    "<code>⟨F0⟩</code> and <code>&lt;0xF0&gt;</code> are single bytes, <code>[UNK]</code> is an unknown word."
)
EXAMPLE = """\
from subword_nb import Tokenizer  # pip install subword_nb
tok = Tokenizer.train("corpus/*.txt", vocab_size=32_000)  # or .load(FILE)
ids = tok.encode("Tokenizers split text.")
assert tok.decode(ids) == "Tokenizers split text."
print(tok.explain("Tokenizers"))  # why these tokens
tok.save("tokenizer.json")
"""
CHART = {  # what is encoded → (vocabulary, text, case) in the benchmark's records
    "GPT-2, English": ("gpt2", "english", "whole"),
    "cl100k, many languages": ("cl100k", "multilingual", "documents"),
    "o200k, source code": ("o200k", "code", "documents"),
    "BERT, English": ("bert", "english", "documents"),
    "T5, English": ("t5", "english", "documents"),
    "Llama 2, English": ("llama2", "english", "documents"),
}
SIGNS = str.maketrans({" ": "·", "\n": "↵", "\t": "→"})  # as in strip.js
LIBRARIES = ("subword_nb", "gigatoken", "tokie", "fastokens", "tiktoken", "tokenizers", "sentencepiece")


def shown(
    tok: Tokenizer,
    text: str,
) -> list[str]:  # As the strip shows them
    "The tokens of a text: bytes as text where they are whole characters, else in brackets."
    out = tok.tokenize(text)
    if tok.inspect()["byte_level"]:
        out = []
        for i in tok.encode(text):
            data = tok.decode_bytes([i])
            try:
                out.append(data.decode("utf-8"))
            except UnicodeDecodeError:
                out.append("".join(f"⟨{b:02X}⟩" for b in data))
    return [t.translate(SIGNS) for t in out]


def strip_row(
    folder: Path,  # Of the playground
    file: str,  # One of `ROWS`
) -> str:  # HTML
    "A row of the strip, with the tokens of the first text."
    name, page = ROWS[file]
    tokens = shown(Tokenizer.load(folder / file), TEXT)
    chips = "".join(f"<span>{html.escape(t)}</span>" for t in tokens)
    return (
        f'<div class="strip-row" data-file="playground/{file}"><p class="strip-name"><a href="{page}">{name}</a> '
        f'<span class="strip-count">{len(tokens)} tokens</span></p>\n<p class="strip-tokens">{chips}</p></div>'
    )


def speeds(
    run: dict,  # The last run of `subword-nb bench`
) -> dict[str, dict[str, float]]:  # Row of `CHART` → library → MB/s of a first pass, in CPU time
    "The figures of the chart."
    found = {}
    for row, key in CHART.items():
        found[row] = {
            r["library"]: r["bytes"] / r["cpu"]["first"]["best"] / 1e6
            for r in run["records"]
            if (r["vocabulary"], r["text"], r["case"]) == key and r["threads"] == 1 and "error" not in r
        }
    return found


def chart(run: dict) -> str:  # HTML
    "Bars for every library that the benchmark measured; a list, so that it is read without the picture."
    out = []
    for row, libraries in speeds(run).items():
        most = max(libraries.values())
        bars = "".join(
            f'<li{" class=ours" if name == "subword_nb" else ""}><span class="bar-name">{name}</span>'
            f'<span class="bar"><span style="width:{100 * libraries[name] / most:.1f}%"></span></span>'
            f'<span class="bar-figure">{libraries[name]:.{0 if libraries[name] >= 20 else 1}f}</span></li>'
            for name in LIBRARIES
            if name in libraries
        )
        out.append(f"<div><h3>{row}</h3>\n<ul>{bars}</ul></div>")
    machine = run["machine"]
    return (
        '<section class="speed-chart" aria-label="Speed"><h2>How fast it encodes text that it has not seen</h2>\n'
        f'<div class="speed-rows">{"".join(out)}</div>\n'
        f"<p>Megabytes per second of CPU time on one thread, every word new to the library; more is better. "
        f"{machine['cpu']}, Python {machine['python']}. "
        f'<a href="bench/speed.html">All rows</a>, those that this library loses among them.</p></section>'
    )


def home_top(
    folder: Path,  # Of the playground, written
) -> str:  # HTML
    "What stands above the text of the home page."
    run = json.loads((ROOT / "nbs" / "bench" / "speed.json").read_text(encoding="utf-8"))
    listed = json.loads((folder / "tokenizers.json").read_text(encoding="utf-8"))["tokenizers"]
    (size,) = {t["pieces"] for t in listed if t["file"] in ROWS}
    return (
        (HERE / "home.html")
        .read_text(encoding="utf-8")
        .format(
            text=html.escape(TEXT),
            rows="\n".join(strip_row(folder, file) for file in ROWS),
            pieces=f"{size:,}",
            legend=LEGEND,
            example=painted(EXAMPLE, "python"),
            chart=chart(run),
        )
    )


def write_card(
    path: Path,  # A PNG file
) -> None:
    "The picture that other sites show beside a link to a page: the name, the promise, a text in its tokens."
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import FancyBboxPatch

    colours = (("#d3e9f7", "#5b9cc6"), ("#fbe6bf", "#c08a26"), ("#d5eedd", "#4f9f6e"))
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="#fffdf9")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(0, 630))
    axes.axis("off")

    def chips(words: list[str], x: float, y: float, size: float) -> None:
        width, height = 0.602 * size * 100 / 72, 1.9 * size
        for k, word in enumerate(words):
            fill, edge = colours[k % 3]
            box = FancyBboxPatch(
                (x, y), width * len(word) + size, height, boxstyle=f"round,pad=0,rounding_size={size / 4}",
                facecolor=fill, edgecolor=edge, linewidth=2,
            )  # fmt: skip
            axes.add_patch(box)
            axes.text(
                x + (width * len(word) + size) / 2, y + height / 2, word, size=size, family="DejaVu Sans Mono",
                color="#22262e", ha="center", va="center_baseline",
            )  # fmt: skip
            x += width * len(word) + size + size / 4

    chips(["sub", "word", "_nb"], 80, 400, 60)
    axes.text(80, 300, "The tokenizer library you can read", size=34, color="#22262e", va="center")
    axes.text(
        80,
        235,
        "BPE · byte-level BPE · WordPiece · Unigram, in notebooks",
        size=22,
        color="#5d6470",
        va="center",
    )
    chips(["Token", "izers", "·split", "·text", "."], 80, 95, 28)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)
