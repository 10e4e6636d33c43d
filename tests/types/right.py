"""How the library is used, with the types that a checker must find. It is read by `test_types.py`, and never run."""

import random
from pathlib import Path

import numpy as np
from typing_extensions import assert_type

import subword_nb
from subword_nb import AddedToken, Tokenizer, TrainingReport, warm_up
from subword_nb.bpe.model import BPE
from subword_nb.insight.compare import Comparison
from subword_nb.pipeline.decoders import Fuse
from subword_nb.text import protocols
from subword_nb.train.recipes import learn_unigram
from subword_nb.unigram.model import Unigram
from subword_nb.wordpiece.model import WordPiece
from subword_nb.wordpiece.wordlevel import WordLevel
from subword_nb.pipeline.decoding import Stream
from subword_nb.bulk.encode_files import EncodedFiles
from subword_nb.pipeline.encoding import Encoding, Padding, Truncation
from subword_nb.insight.explain import Explanation
from subword_nb.insight.explain_training import TrainingExplanation
from subword_nb.pipeline.parts import Parts
from subword_nb.text.normalizers import NFC, Lowercase, Normalizer, Sequence
from subword_nb.pipeline.align import Batch, Stages
from subword_nb.text.splitters import Digits, PreTokenizer, Split, Whitespace
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.core.ragged import Ragged
from subword_nb.pipeline.nbest import Segmentation

Array = np.ndarray


class Mine(Tokenizer):
    "A class of one's own."


# A tokenizer is made, kept and changed.
tok = Tokenizer.load("tokenizer.json")
assert_type(tok, Tokenizer)
assert_type(
    Tokenizer.load(Path("ranks.tiktoken"), allowed_special={"<|endoftext|>"}, encoding="cl100k_base"),
    Tokenizer,
)
assert_type(
    Tokenizer.train(
        "corpus/*.txt", algorithm="bpe", vocab_size=32_000, special_tokens=["<s>", AddedToken("</s>")]
    ),
    Tokenizer,
)
assert_type(
    Mine.train(["a text"], algorithm="unigram", normalizer=NFC(), pre_tokenizer="metaspace", threads=2), Mine
)
assert_type(Mine.load("org/name", revision="main"), Mine)
assert_type(tok.save("out.json"), Path)
assert_type(tok.parts, Parts)
assert_type(tok.truncate(100), Tokenizer)
assert_type(tok.extend(["more text"], 400), Tokenizer)
assert_type(tok.train_new(["other text"], special_tokens=["<x>"]), Tokenizer)
assert_type(tok.add_tokens(["<new>", AddedToken("<newer>", special=True)]), int)
assert_type(tok.inspect(), dict)
tok.normalizer = Lowercase()
tok.truncation, tok.padding = Truncation(128, stride=8), Padding("longest")
made = Tokenizer(
    tok.model,
    pre_tokenizer="gpt2",
    normalizer="nfc",
    added_tokens=[(AddedToken("<s>"), 0)],
    post_processor=TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)]),
)
made.pre_tokenizer = Whitespace()

# Ids.
assert_type(tok.encode("text"), list[int])
assert_type(
    tok.encode(
        b"text", add_special_tokens=False, allowed_special="all", dropout=0.1, seed=1, errors="replace"
    ),
    list[int],
)
assert_type(tok.tokenize("text"), list[str])
assert_type(tok.encode_batch(["a", b"b"], threads=4, progress=False), Ragged)
assert_type(tok.encode_batch(["a"]).tolist(), list[list[int]])
documents = tok.encode_batch(["a", "b"])
rows: list[Array] = list(documents)
document: Array = documents[0]
assert_type(documents[1:], Ragged)
assert_type(len(documents) + documents.count([1]) + documents.index(document), int)
ids: Array = tok.encode_batch(text for text in ("a", "b")).ids
array: Array = tok.encode_array("text", add_special_tokens=False)
assert_type(array.dtype.itemsize, int)
assert_type(tok.encode_files("corpus/*.txt", "ids", shard_tokens=10**8), EncodedFiles)
assert_type(tok.vocab_size, int)
assert_type(tok.n_vocab, int)
assert_type(tok.piece2id, dict[str, int])
known: int = tok.piece2id["hug"]
spelled: str = tok.id2piece[known]

# Text again.
assert_type(tok.decode([1, 2], skip_special_tokens=True), str)
assert_type(tok.decode(array), str)
assert_type(tok.decode_bytes(range(3)), bytes)
assert_type(tok.decode_batch([[1], [2, 3]]), list[str])
stream = tok.stream(skip_special_tokens=True, after=[1])
assert_type(stream, Stream)
assert_type(stream.step(7) + stream.finish(), str)

# Places.
found = tok.align("one text", "another")
assert_type(found, Encoding)
assert_type(found.ids, list[int])
assert_type(found.pieces, list[str])
assert_type(found.tokens, list[str])
assert_type(found.offsets, list[tuple[int, int]])
assert_type(found.offsets_bytes, list[tuple[int, int]])
assert_type(found.word_ids, "list[int | None]")
assert_type(found.sequence_ids, "list[int | None]")
assert_type(found.n_sequences, int)
assert_type(found.attention_mask, list[int])
assert_type(found.overflowing, list[Encoding])
assert_type(found.char_to_token(3), "int | None")
assert_type(found.token_to_word(0), "int | None")
assert_type(found.truncate(8, stride=2), Encoding)
assert_type(found.pad(16, direction="left", pad_id=1), Encoding)
assert_type(Encoding.merge([found, found], growing_offsets=True), Encoding)
assert_type(tok.align_batch(["a", "b"], ["c", "d"]), list[Encoding])
batch = tok(
    ["a", "b"],
    padding=True,
    truncation="only_first",
    max_length=64,
    return_tensors="np",
    return_offsets_mapping=True,
)
assert_type(batch, Batch)
assert_type(batch.encodings, list[Encoding])
assert_type(tok.stages("text"), Stages)

# Other splits, reasons, comparisons.
assert_type(tok.nbest("text", n=5), list[Segmentation])
assert_type(tok.sample("text", alpha=0.5, seed=1), Segmentation)
assert_type(tok.sample("text", k=3, replace=False, seed=1), list[Segmentation])
assert_type(tok.entropy("text"), float)
assert_type(tok.explain("text", limit=1_000), Explanation)
assert_type(tok.compare(made, "text", names=("a", "b")), Comparison)
assert_type(tok.explain_training("hug"), TrainingExplanation)
assert_type(tok.explain_training(b"hug", trace="trace.npz"), TrainingExplanation)

# tiktoken's calls.
assert_type(tok.encode_ordinary("text"), list[int])
assert_type(tok.encode_single_token(b"t"), int)
assert_type(tok.decode_with_offsets([1, 2]), tuple[str, list[int]])
assert_type(tok.decode_tokens_bytes([1, 2]), list[bytes])
assert_type(tok.token_byte_values(), list[bytes])

# Components.
steps: Normalizer = Sequence([NFC(), Lowercase()])
cuts: PreTokenizer = subword_nb.text.pretokenizers.Sequence([Split(r"\w+", "isolated"), Digits()])
assert_type(steps.normalize("TEXT"), str)
assert_type(cuts.split("a text"), list[tuple[str, int, int]])

# The front door.
report: TrainingReport = tok.training
assert_type(warm_up(), list[str])
assert_type(subword_nb.__version__, str)
assert_type(random.Random(1).random(), float)

# Every component keeps its protocol.
a_model: protocols.Model = BPE({"a": 0}, [])
models: list[protocols.Model] = [
    a_model,
    WordLevel({"<unk>": 0}),
    WordPiece({"[UNK]": 0}),
    Unigram({"a": 0}, [0.0]),
]
a_normalizer: protocols.Normalizer = steps
a_pretokenizer: protocols.PreTokenizer = cuts
a_processor: protocols.Processor = TemplateProcessing("$A")
a_decoder: protocols.Decoder = Fuse()
a_trainer: protocols.Trainer = learn_unigram
assert_type(a_model.encode("a"), list[int])
assert_type(a_model.tokens("a"), list[protocols.Token])
assert_type(a_model.joins(), protocols.Joins | None)
assert_type(protocols.model_laws(a_model, ["a"]), int)


class Letters(protocols.Model):
    "A model of one's own."

    def __init__(self) -> None:
        self.piece2id = {"a": 0}

    def encode(self, pretoken: str) -> list[int]:
        return [self.piece2id[c] for c in pretoken]


assert_type(Tokenizer(Letters()).encode("a"), list[int])
