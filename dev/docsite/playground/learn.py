"""Learn a small tokenizer in the page, by the references of the algorithms: they need no NumPy, and no compiler."""

from array import array
from collections import Counter
from itertools import chain

from subword_nb import Tokenizer
from subword_nb.bpe.model import BPE
from subword_nb.bpe.reference import bpe_train_ref
from subword_nb.core.unicode import from_visible, to_visible
from subword_nb.corpus.segmentation import pretokens_ref
from subword_nb.pipeline import decoders
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.train.train import conventions
from subword_nb.unigram.model import Unigram, lasting_score
from subword_nb.unigram.trainer import em_train_ref
from subword_nb.wordpiece.model import WordPiece
from subword_nb.wordpiece.reference import wordpiece_train_ref

MOST_TEXT = 10_000  # Characters; the references count everything anew at each step


def bpe(counts, vocab_size, unk):
    "Byte-level BPE: its model and decoder."
    spelled = {from_visible(p): n for p, n in counts.items()}
    rules = bpe_train_ref(spelled, vocab_size, initial_alphabet=[bytes([b]) for b in range(256)])
    pieces = {to_visible(p): i for i, p in enumerate(rules.pieces)}
    merges = [(to_visible(a), to_visible(b)) for a, b in rules.merges]
    return BPE(pieces, merges), decoders.ByteLevel()


def wordpiece(counts, vocab_size, unk):
    "WordPiece: its model and decoder."
    rules = wordpiece_train_ref(counts, vocab_size, special_tokens=[unk])
    return WordPiece({p: i for i, p in enumerate(rules.pieces)}, unk), decoders.WordPiece("##")


def unigram(counts, vocab_size, unk):
    "Unigram: its model and decoder."
    characters = len({*chain.from_iterable(counts)})
    if vocab_size <= characters:
        raise ValueError(
            f"the size must be more than {characters}, the number of characters, got {vocab_size}"
        )
    found = em_train_ref(counts, vocab_size - 1)
    found = dict(zip(found, array("f", found.values()), strict=True))  # in 32 bits, as files hold them
    learned = sorted(found, key=lambda p: (-found[p], p))
    scores = [lasting_score(round(128 * found[p]) / 128) for p in learned]
    spaces = decoders.Sequence((decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)))
    return Unigram({p: i for i, p in enumerate([unk, *learned])}, [0.0, *scores], unk), spaces


LEARNERS = {"bpe": bpe, "wordpiece": wordpiece, "unigram": unigram}


def learn(
    text: str,  # Each line is a document
    algorithm: str,  # One of `LEARNERS`
    vocab_size: int,  # Number of pieces
) -> Tokenizer:  # That of `Tokenizer.train`, with its defaults
    "Learn from a text of a page or two."
    if len(text) > MOST_TEXT:
        raise ValueError(f"the text must have at most {MOST_TEXT:,} characters, got {len(text):,}")
    pre, norm, unk = conventions(algorithm, "default", "default", unk_piece="default")
    counts = Counter(p for line in text.splitlines() for p in pretokens_ref(line, norm, pre))
    if not counts:
        raise ValueError("the text must have a word to learn from")
    model, decoder = LEARNERS[algorithm](counts, vocab_size, unk)
    added = () if unk is None else ((AddedToken(unk, special=True), model.piece2id[unk]),)
    return Tokenizer(model, pre_tokenizer=pre, normalizer=norm, decoder=decoder, added_tokens=added)
