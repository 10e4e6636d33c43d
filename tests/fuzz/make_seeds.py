"""Write the seeds anew.

`python tests/fuzz/make_seeds.py`; small files that the targets read, made by our own tokenizers. Inputs that
once failed (`found-…`) stay.
"""

import base64
import contextlib
import gzip
import io
import json
import random
import struct
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]
from inputs import text_bytes  # noqa: E402
from targets import CUT, TARGETS, trained  # noqa: E402

from subword_nb import Tokenizer, decoders, normalizers, processors  # noqa: E402
from subword_nb.text import pretokenizers  # noqa: E402
from subword_nb.text.charsmap import build_charsmap  # noqa: E402
from subword_nb.train.checkpoints import save_snapshot  # noqa: E402
from subword_nb.corpus.counts import flatten_counts, save_counts  # noqa: E402
from subword_nb.bulk.encode_files import encode_files  # noqa: E402
from subword_nb.formats.sentencepiece_proto import ModelProto, Piece, write_model_proto  # noqa: E402

TEXTS = [
    "The low light, isn't it?",
    "été 你好 🤗 ▁a",
    " <s>  a\n\n12 ",
    "lower\tlowest</s>'s",
    "".join(map(chr, range(1, 64))),
    "e\u0301 ﬁ ½ か\u3099 \u200b",
    "hug" * 30,
]


def small(algorithm: str, size: int, **options):
    return Tokenizer.train(
        ["low lower lowest light", "été 你好 hug hugs, it's"],
        algorithm=algorithm,
        vocab_size=size,
        special_tokens=["<s>"],
        progress=False,
        **options,
    )


def saved(tok, name: str) -> bytes:
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tok.save(Path(place, name)).read_bytes()


def shorter(data: bytes) -> bytes:
    return json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":")).encode()


def files():
    "(target, name, data)"
    words = small("wordpiece", 60)
    unigram = small("unigram", 60)
    chars = small("char_bpe", 60, unk_piece="<unk>", pre_tokenizer="metaspace")
    level = small("wordlevel", 12)
    byte_bpe = small("bpe", 265)
    kinds = {"wordpiece": words, "unigram": unigram, "char_bpe": chars, "wordlevel": level, "bpe": byte_bpe}
    for name, tok in kinds.items():
        yield "tokenizer_json", name, shorter(saved(tok, "tokenizer.json"))
    rich = Tokenizer(
        chars.model,
        pre_tokenizer=pretokenizers.Sequence([pretokenizers.Digits(True), pretokenizers.Metaspace()]),
        decoder=decoders.Sequence([decoders.Metaspace(), decoders.Strip(" ", 1, 0)]),
        added_tokens=chars.added_tokens,
        post_processor=processors.template("<s> $A", "<s> $A $B:1", special_tokens=[("<s>", 0)]),
        normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Replace({"Regex": r"\s+"}, " ")]),
    )
    yield "tokenizer_json", "rich", shorter(saved(rich, "tokenizer.json"))
    with tempfile.TemporaryDirectory() as place:
        byte_bpe.save(Path(place, "folder"), kind="gpt2")
        vocab, merges = (Path(place, "folder", n).read_bytes() for n in ("vocab.json", "merges.txt"))
    yield "gpt2_files", "small", shorter(vocab) + CUT + merges
    yield "vocab_txt", "small", saved(words, "vocab.txt")
    yield (
        "tiktoken_ranks",
        "small",
        b"".join(
            base64.b64encode(t) + b" %d\n" % i
            for i, t in enumerate([*(bytes([b]) for b in range(256)), b"lo", b"low", b" low", b"er"])
        ),
    )
    pieces = [
        Piece("<unk>", 0.0, 2),
        Piece("<s>", 0.0, 3),
        Piece("</s>", 0.0, 3),
        *(
            Piece(p, -float(k), 1)
            for k, p in enumerate(["▁", "l", "o", "w", "e", "r", "é", "你", "▁lo", "▁low", "er", "lo"])
        ),
        Piece("▁x", 0.0, 4),
    ]
    charsmap = build_charsmap({"ﬁ": "fi", "é": "e\u0301", "Ａ": "A", "\u3000": " "})
    models = {
        kind: write_model_proto(
            ModelProto(
                pieces,
                {"model_type": number, "unk_surface": " ⁇ "},
                {"name": "own", "precompiled_charsmap": charsmap, "add_dummy_prefix": True},
            )
        )
        for kind, number in (("unigram", 1), ("bpe", 2), ("word", 3), ("char", 4))
    }
    fallback = [*pieces[:3], *(Piece(f"<0x{b:02X}>", 0.0, 6) for b in range(256)), *pieces[3:]]
    models["bytes"] = write_model_proto(
        ModelProto(fallback, {"model_type": 2, "byte_fallback": True}, {"remove_extra_whitespaces": False})
    )
    for name, data in models.items():
        yield "sentencepiece_model", name, data
        if name != "bytes":
            yield "sentencepiece_wire", name, data
    yield (
        "model_folder",
        "small",
        models["bpe"]
        + CUT
        + json.dumps(
            {
                "added_tokens_decoder": {"20": {"content": "<x>", "special": True}},
                "tokenizer_class": "LlamaTokenizer",
            }
        ).encode(),
    )
    for k, text in enumerate(TEXTS[1:6:2]):
        yield "charsmap", f"{k}", charsmap + b"\n" + text_bytes(text)
    yield (
        "minbpe",
        "small",
        b"minbpe v1\n" + rb"(?i:'s|\p{L}+)| ?\d" + b"\n1\n<s> 259\n108 111\n256 119\n101 114\n",
    )
    codes = b"#version: 0.2\nl o\nlo w</w>\ne r</w>\nlo w\n"
    yield "nmt_codes", "small", codes + CUT + b"lo@@ 3\nw 2\nlow 9\n" + CUT + b"low 9\nlo@@ 3\ner 2\n"
    yield "nmt_codes", "codes", codes
    yield "gguf", "llama", own_gguf("llama")
    yield "gguf", "gpt2", own_gguf("gpt2")
    for name, data in (
        ("codes", codes),
        ("model", models["bpe"]),
        ("ranks", b"bG8= 0\nbG93 1\n"),
        ("merges", b"#version: 0.2\nl o\n"),
        ("vocab", b"[UNK]\nlow\n##er\n"),
        ("json", b'{"version":"1.0","model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}}'),
        ("minbpe", b"minbpe v1\n\n0\n108 111\n"),
    ):
        yield "any_file", name, data
    yield from arrays()
    yield from texts()


def own_gguf(kind: str) -> bytes:
    "A small GGUF file."

    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()

    tokens = (
        ["<unk>", "<s>", "</s>", "▁", "l", "o", "w", "▁lo", "▁low"]
        if kind == "llama"
        else ["l", "o", "w", "lo", "low", "Ġ", "<|end|>"]
    )
    pairs = [
        ("general.architecture", 8, text("llama")),
        ("tokenizer.ggml.model", 8, text(kind)),
        ("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, len(tokens)) + b"".join(map(text, tokens))),
        ("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1)),
        (
            "tokenizer.ggml.token_type",
            9,
            struct.pack("<IQ", 5, len(tokens))
            + struct.pack(
                f"<{len(tokens)}i",
                *([2, 3, 3] + [1] * (len(tokens) - 3) if kind == "llama" else [1] * (len(tokens) - 1) + [3]),
            ),
        ),
        ("tokenizer.ggml.add_space_prefix", 7, b"\1"),
    ]
    pairs += (
        [
            (
                "tokenizer.ggml.scores",
                9,
                struct.pack("<IQ", 6, len(tokens))
                + struct.pack(f"<{len(tokens)}f", *(-float(k) for k in range(len(tokens)))),
            )
        ]
        if kind == "llama"
        else [
            ("tokenizer.ggml.merges", 9, struct.pack("<IQ", 8, 2) + text("l o") + text("lo w")),
            ("tokenizer.ggml.pre", 8, text("gpt-2")),
        ]
    )
    return (
        b"GGUF"
        + struct.pack("<IQQ", 3, 0, len(pairs))
        + b"".join(text(key) + struct.pack("<I", number) + value for key, number, value in pairs)
    )


def arrays():
    "Files of NumPy's, and what stands beside them."
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        save_counts(flatten_counts({"low": 3, "été": 1, "你": 2}), place / "counts.npz")
        save_snapshot(
            place / "state.npz", {"merges": [(1, 2)], "left": np.arange(3), "name": b"x", "none": None}
        )
        counts, state = (place / "counts.npz").read_bytes(), (place / "state.npz").read_bytes()
        (place / "text.txt").write_text("the low\nlight\n" * 3)
        encode_files(
            trained("bpe"),
            place / "text.txt",
            place / "out",
            format="npy",
            shard_tokens=20,
            progress=False,
            threads=1,
        )
        yield (
            "encoded_files",
            "small",
            CUT.join(
                (place / "out" / n).read_bytes() for n in ("index.json", "00000.npy", "00000.npy.bounds.npy")
            ),
        )
    yield "counts_npz", "small", counts
    yield (
        "checkpoint",
        "small",
        json.dumps({"algorithm": "bpe", "vocab_size": 300}).encode() + CUT + counts + CUT + state,
    )
    yield (
        "journal",
        "header",
        b'{"format": 1, "run": {}}\n{"file": 0, "offset": 20, "read": 20, "shard": 0, "ids": 4, "documents": '
        b'1, "all_ids": 4, "all_documents": 1, "done": false}\n',
    )
    with contextlib.suppress(ImportError):
        import pyarrow as pa
        from pyarrow import parquet

        table, out = pa.table({"text": ["low", "light 你", None]}), io.BytesIO()
        parquet.write_table(table, out)
        yield "tables", "parquet", out.getvalue()
        out = io.BytesIO()
        with pa.ipc.new_file(out, table.schema) as file:
            file.write_table(table)
        yield "tables", "arrow", out.getvalue()


def texts():
    "Inputs of the targets that make texts, specifications and choices of bytes."
    yield (
        "json_lines",
        "small",
        b'{"text": "low", "a": {"b": "x"}}\n{"text": "\\u00e9t\\u00e9"}\n\n{"a": {"b": "light"}}\n',
    )
    yield "packed_text", "gzip", b"-" + gzip.compress(b"the low light\n" * 5, mtime=0)
    yield "packed_text", "packed", b"xthe low light\nin rooms"
    for k, source in enumerate(
        [
            r"\p{L}+|\d{1,3}|\s+(?!\S)|\s",
            r"[^\r\n\p{N}]?+\w++|(?i:'s|'t)",
            r"(?:ab|a)*?b$|[[:alpha:]&&[^x]]",
            "a{2,3}|é|.",
        ]
    ):
        yield "pattern", f"{k}", bytes([k, 1, 2, 3]) + source.encode()
    n, p, d = normalizers, pretokenizers, decoders
    for k, norm in enumerate(
        [
            n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()]),
            n.BertNormalizer(),
            n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁"), n.Strip(True, False), n.Nmt()]),
            n.Replace({"Regex": r"\s+"}, " "),
            n.Precompiled(build_charsmap({"ﬁ": "fi"})),
        ]
    ):
        yield "normalizer", f"{k}", json.dumps(norm.to_dict()).encode() + CUT + text_bytes(TEXTS[k])
    for k, pre in enumerate(
        [
            p.byte_level("cl100k"),
            p.Sequence(
                [
                    p.Digits(True),
                    p.Punctuation("contiguous"),
                    p.Metaspace(prepend_scheme="first", split=False),
                ]
            ),
            p.BertPreTokenizer(),
            p.Split({"Regex": r"\w+"}, "merged_with_next", True),
            p.Sequence([p.CharDelimiterSplit("e"), p.FixedLength(3), p.UnicodeScripts()]),
        ]
    ):
        yield "pre_tokenizer", f"{k}", json.dumps(pre.to_dict()).encode() + CUT + text_bytes(TEXTS[k])
    for k, dec in enumerate(
        [
            d.ByteLevel(),
            d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]),
            d.WordPiece("##", True),
            d.CTC(),
            d.BPEDecoder("</w>"),
            d.Metaspace("▁", "always"),
        ]
    ):
        yield (
            "decoder",
            f"{k}",
            json.dumps(dec.to_dict()).encode()
            + CUT
            + b"\n".join(text_bytes(t) for t in ("▁low", "<0xE2>", "<0x96>", "##er", "a", "a", "</w>", "'s")),
        )
    for k, post in enumerate(
        [
            processors.BertProcessing(("[SEP]", 1), ("[CLS]", 2)),
            processors.RobertaProcessing(("</s>", 1), ("<s>", 2)),
            processors.template("<s> $A", "<s> $A $B:1 <s>:1", special_tokens=[("<s>", 3)]),
        ]
    ):
        yield "processor", f"{k}", json.dumps(post.to_dict()).encode()
    rng = random.Random(0)
    for name in ("encode_bpe", "encode_char_bpe", "encode_wordpiece", "encode_unigram", "explain_compare"):
        for k, text in enumerate(TEXTS):
            yield (
                name,
                f"{k}",
                bytes([k, k + 1, k, 3, *([1, 2] if name != "explain_compare" else [])]) + text_bytes(text),
            )
    for name, size, many in (
        ("encode_made", 340, 8),
        ("references", 240, 4),
        ("decode_ids", 40, 4),
        ("train", 120, 4),
        ("train_whole", 120, 4),
        ("counting", 120, 4),
        ("console_choices", 30, 2),
    ):
        for k in range(many):
            yield name, f"{k}", rng.randbytes(size)
    for k, data in enumerate(
        [
            b"low \xff light",
            "été 你好 🤗".encode()[:-2],
            b"\xed\xa0\x80 \xf4\x90\x80\x80 \xc0\x80",
            b"a" * 40 + b"\xe4\xbd" + b"b" * 40,
        ]
    ):
        yield "bytes_that_are_no_text", f"{k}", data


def main():
    total = 0
    for target, name, data in files():
        assert target in TARGETS, target
        place = HERE / "seeds" / target
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
        total += len(data)
    print(f"{total:,} bytes")


if __name__ == "__main__":
    main()
