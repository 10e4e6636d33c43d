"""Components keep the laws of their protocols; a model of one's own works everywhere; nobody asks what a model is."""

import ast
import importlib
import pickle
import pkgutil
import random
from collections import Counter
from functools import partial

import pytest
from notebooks import ROOT
from seeds import TEXTS, fresh
from tests.pipeline.test_align import generated
from tests.pipeline.test_tokens import random_bpe, random_word

import subword_nb
from subword_nb import Tokenizer
from subword_nb.bpe.boundless import BoundlessBPE
from subword_nb.bpe.refined import picky_train, refined_model
from subword_nb.bpe.model import BPE, RankRules, Rules
from subword_nb.formats.sentencepiece import Reversed
from subword_nb.formats.sentencepiece_models import (
    SentencePieceBPE,
    SentencePieceChars,
    SentencePieceUnigram,
    SentencePieceWords,
)
from subword_nb.formats.sentencepiece_normalizer import (
    SentencePieceDecoder,
    SentencePieceNormalizer,
    SentencePiecePreTokenizer,
)
from subword_nb.formats.subword_nmt import NmtBPE, NmtDecoder
from subword_nb.pipeline import decoders, processors
from subword_nb.pipeline.decoders import Decoder
from subword_nb.pipeline.encoding import Encoding
from subword_nb.pipeline.processors import Processor
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.text import normalizers, pretokenizers, protocols, splitters
from subword_nb.text.charsmap import build_charsmap
from subword_nb.text.normalizers import Normalizer
from subword_nb.text.splitters import PreTokenizer
from subword_nb.train.recipes import RECIPES
from subword_nb.unigram.pieces import Pieces
from subword_nb.unigram.model import Unigram
from subword_nb.wordpiece.model import WordPiece
from subword_nb.wordpiece.wordlevel import WordLevel

BYTES = [f"<0x{b:02X}>" for b in range(256)]
LETTERS = "abé▁"


def public_kinds(base: type) -> set[str]:
    "The public classes of the library with this base; those of the faces of other libraries are not its own."
    for page in pkgutil.walk_packages(subword_nb.__path__, "subword_nb."):
        if not page.name.endswith("__main__"):
            importlib.import_module(page.name)
    found, left = set(), [base]
    while left:
        for kind in left.pop().__subclasses__():
            left.append(kind)
            if kind.__module__.startswith("subword_nb.") and not kind.__module__.startswith(
                "subword_nb.compat."
            ):
                found.add(kind.__qualname__)
    return {name for name in found if not name.startswith("_")}


# Models


def pieces_over(rng: random.Random, letters: str = LETTERS, n: int = 12) -> list[str]:
    some = ["".join(rng.choices(letters, k=rng.randrange(2, 5))) for _ in range(n)]
    return [*dict.fromkeys([*letters, *some])]


def numbered(pieces: list[str]) -> dict[str, int]:
    return {p: i for i, p in enumerate(dict.fromkeys(pieces))}


def some_bpe(rng):
    return random_bpe(rng, dropout=rng.choice([None, 0.3]))


def some_ranks(rng):
    ids = numbered([*"abé", "ab", "aba", "éa", "abab"])
    return BPE(ids, RankRules(ids), ignore_merges=rng.random() < 0.5, drop_unknown=True)


def some_lines(rng):
    return BPE(numbered([*"abé", "ab", "aba"]), Rules("a b\nab a"), drop_unknown=True)


def some_wordpiece(rng):
    pieces = pieces_over(rng)
    return WordPiece(
        numbered(["[UNK]", *pieces, *("##" + p for p in pieces if rng.random() < 0.7)]),
        max_input_chars_per_word=rng.choice([3, 100]),
    )


def some_words(rng):
    return WordLevel(numbered(["<unk>", *pieces_over(rng)]))


def some_unigram(rng, kind=Unigram):
    fallback = rng.random() < 0.5
    ids = numbered(["<unk>", "<s>", *pieces_over(rng), *(BYTES if fallback else ())])
    scores = [-rng.randrange(1, 200) / 16 for _ in ids]
    options = {} if kind is SentencePieceUnigram else {"fuse_unk": rng.random() < 0.5}
    return kind(
        ids,
        scores,
        unk_piece="<unk>",
        byte_fallback=fallback,
        user_defined=["ab"] if "ab" in ids else [],
        control=["<s>"],
        **options,
    )


def some_sentencepiece(rng, kind):
    fallback = rng.random() < 0.5
    ids = numbered(["<unk>", "<s>", *pieces_over(rng), *(BYTES if fallback else ())])
    scores = [-float(rng.randrange(1, 30)) for _ in ids]
    unused = [p for p in ids if len(p) == 3 and "<" not in p][:1]
    return kind(ids, scores, unk_piece="<unk>", byte_fallback=fallback, control=["<s>"], unused=unused)


def some_nmt(rng):
    pieces = ["<unk>", *(p + "@@" for p in ("a", "b", "é", "ab")), "a", "b", "é", "ab", "ba"]
    return NmtBPE(numbered(pieces), [("a", "b"), ("b", "a</w>"), ("a", "b</w>")], glossaries=("éa",))


def some_pieces(rng):
    fallback = rng.random() < 0.5
    ids = numbered(["<unk>", "<s>", *pieces_over(rng), *(BYTES if fallback else ())])
    rule = rng.choice(["longest_prefix", "longest_piece", "fewest_tokens"])
    return Pieces(ids, rule, unk_piece="<unk>", byte_fallback=fallback, control=("<s>",))


def some_boundless(rng):
    "A run is of letters; é is a byte here that is no character, and ▁ is no byte."
    pair = rng.choice([("ab", "'s"), ("'s", "ab")])
    ids = numbered([*map(chr, range(33, 127)), "é", "Ġ", "ab", "'s", "".join(pair)])
    return BoundlessBPE(ids, [("a", "b"), ("'", "s")], [pair])


def some_refined(rng):
    words = Counter("".join(rng.choices(LETTERS, k=rng.randrange(1, 7))) for _ in range(60))
    alphabet = dict.fromkeys("".join(words))
    rules = picky_train(words, len(alphabet) + 20, threshold=0.5, special_tokens=["<unk>"])
    return refined_model(rules, unk_piece="<unk>")


MODELS = {
    "BPE": [some_bpe, some_ranks, some_lines],
    "BoundlessBPE": [some_boundless],
    "RefinedBPE": [some_refined],
    "WordPiece": [some_wordpiece],
    "WordLevel": [some_words],
    "Unigram": [some_unigram],
    "SentencePieceUnigram": [partial(some_unigram, kind=SentencePieceUnigram)],
    "SentencePieceBPE": [partial(some_sentencepiece, kind=SentencePieceBPE)],
    "SentencePieceWords": [partial(some_sentencepiece, kind=SentencePieceWords)],
    "SentencePieceChars": [partial(some_sentencepiece, kind=SentencePieceChars)],
    "NmtBPE": [some_nmt],
    "Pieces": [some_pieces],
}


def can_encode(model, pretoken: str) -> bool:
    try:
        model.encode(pretoken)
    except ValueError:
        return False
    return True


def test_every_model_is_held_to_its_laws():
    assert public_kinds(protocols.Model) == {*MODELS} | {"SentencePieceModel"}


@pytest.mark.parametrize("name", MODELS)
def test_models_keep_their_laws(name):
    rng = fresh("models", name)
    for make in MODELS[name]:
        checked = 0
        for _ in range(20):
            model = make(rng)
            assert protocols.checked_model(model) is model
            words = ["", *("".join(rng.choices(LETTERS, k=rng.randrange(1, 12))) for _ in range(20))]
            words += [random_word(rng) for _ in range(TEXTS // 10)]
            words = [w for w in words if can_encode(model.deterministic(), w)]
            checked += protocols.model_laws(model, words)
            assert pickle.loads(pickle.dumps(model)) == model
        assert checked > 60 if name == "BoundlessBPE" else checked > 200


def test_checking_a_model_computes_no_property():
    class Slow(WordLevel):
        @property
        def piece_ranks(self):
            raise AssertionError("a check must not compute the ranks")

    model = Slow({"<unk>": 0, "hug": 1})
    assert protocols.checked_model(model) is model


@pytest.mark.parametrize("name", MODELS)
def test_models_without_pieces_do_not_give_them(name):
    rng = fresh("without", name)
    for make in MODELS[name]:
        for _ in range(20):
            model = make(rng).deterministic()
            joins = model.joins()
            needed = {*joins.spellings, *joins.singles} if joins else set()
            pieces = [p for p in model.piece2id if p not in {*model.user_defined, model.unk_piece} | needed]
            never = {*rng.sample(pieces, min(3, len(pieces)))} - {*BYTES}
            less = model.without_pieces(never)
            if less is model:
                continue
            gone = {model.piece2id[p] for p in never}
            for _ in range(30):
                word = "".join(rng.choices(LETTERS, k=rng.randrange(1, 9)))
                if can_encode(less, word):
                    assert not gone & {*less.encode(word)}, (less, word, never)


@pytest.mark.parametrize("make", [some_bpe, some_lines, partial(some_sentencepiece, kind=SentencePieceBPE)])
def test_what_does_not_join_can_be_encoded_apart(make):
    "Concatenation: `joins` tells where a pretoken may be cut."
    rng, cuts = fresh("joins"), 0
    for _ in range(60):
        model = make(rng).deterministic()
        joins = model.joins()
        if joins.depends_on_ends or model.unk_piece not in model.piece2id:
            continue
        pairs = {(a, b) for text in joins.spellings for a, b in zip(text, text[1:])}
        for _ in range(20):
            word = "".join(rng.choices(sorted(joins.singles - {model.unk_piece}) or ["a"], k=10))
            at = rng.randrange(1, 10)
            if (word[at - 1], word[at]) not in pairs and {*word} <= joins.singles:
                assert model.encode(word[:at]) + model.encode(word[at:]) == model.encode(word)
                cuts += 1
    if make is not some_lines:
        assert cuts > 20


def test_lattices_belong_to_models_with_probabilities():
    rng = fresh("lattice")
    for make in [make for makes in MODELS.values() for make in makes]:
        model = make(rng)
        if model.has_lattice:
            path = [node.piece for node in model.lattice("ab").begin_nodes[0][:1]]
            assert isinstance(model.part_ids(path), list)
            continue
        with pytest.raises(ValueError, match="model must be Unigram to give probabilities to segmentations"):
            model.lattice("ab")


# Normalizers


def upper_case(text: str) -> str:
    return text.upper()


# A few rules of each kind: one character to several, several to one, and whitespace.
CHARSMAP = build_charsmap({"ﬁ": "fi", "İ": "i\u0307", "A\u030a\u0323": "Ạ\u030a", "é": "e\u0301", "\t": " "})
NORMALIZERS = {
    "NFC": [normalizers.NFC()],
    "NFD": [normalizers.NFD()],
    "NFKC": [normalizers.NFKC()],
    "NFKD": [normalizers.NFKD()],
    "Lowercase": [normalizers.Lowercase()],
    "StripAccents": [normalizers.StripAccents()],
    "Nmt": [normalizers.Nmt()],
    "ByteLevel": [normalizers.ByteLevel()],
    "BertNormalizer": [
        normalizers.BertNormalizer(),
        normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, lowercase=False),
    ],
    "Strip": [normalizers.Strip(), normalizers.Strip(left=False)],
    "Prepend": [normalizers.Prepend("▁")],
    "Replace": [normalizers.Replace(" ", "▁"), normalizers.Replace(r"\s+", " ", regex=True)],
    "Precompiled": [normalizers.Precompiled(CHARSMAP)],
    "Callable": [normalizers.Callable(upper_case)],
    "Sequence": [
        normalizers.Sequence([]),
        normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    ],
    "SentencePieceNormalizer": [
        SentencePieceNormalizer(),
        SentencePieceNormalizer(CHARSMAP, treat_whitespace_as_suffix=True),
        SentencePieceNormalizer(add_dummy_prefix=False, remove_extra_whitespaces=False),
    ],
}


def texts_for(*names) -> list[str]:
    rng = fresh(*names)
    words = ["hug", "Café", "ﬁ", "İ", "12", "中文", "Å\u0323", "😀", "\t", "a", "b"]
    made = [
        "".join(rng.choice(words) + rng.choice(("", " ", "  ")) for _ in range(rng.randrange(6)))
        for _ in range(TEXTS // 2)
    ]
    return ["", " ", "a b", "hug pug", *made, *generated(TEXTS // 2, names)]


def test_every_normalizer_is_held_to_its_laws():
    assert public_kinds(Normalizer) == {*NORMALIZERS}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers_keep_their_laws(name):
    for normalizer in NORMALIZERS[name]:
        texts = texts_for("normalizers", name)
        assert protocols.normalizer_laws(normalizer, texts) == len(texts)
        assert pickle.loads(pickle.dumps(normalizer)) == normalizer


# Pre-tokenizers


def halves(text: str) -> list[tuple[int, int]]:
    middle = len(text) // 2
    return [(a, b) for a, b in ((0, middle), (middle, len(text))) if a < b]


PRE_TOKENIZERS = {
    "ByteLevel": [pretokenizers.ByteLevel(), pretokenizers.ByteLevel(False, use_regex=False)],
    "BertPreTokenizer": [pretokenizers.BertPreTokenizer()],
    "Metaspace": [
        pretokenizers.Metaspace(),
        pretokenizers.Metaspace("▁", "first"),
        pretokenizers.Metaspace("▁", "never", split=False),
    ],
    "Sequence": [
        pretokenizers.Sequence([splitters.Digits(True), splitters.Punctuation()]),
        pretokenizers.Sequence([splitters.Split(r"\s+", "removed"), pretokenizers.ByteLevel(False)]),
    ],
    "Callable": [pretokenizers.Callable(halves)],
    "Split": [
        splitters.Split(r"\w+|[^\w\s]+", behavior, invert=invert)
        for behavior in splitters.BEHAVIORS
        for invert in (False, True)
    ],
    "Whitespace": [splitters.Whitespace()],
    "WhitespaceSplit": [splitters.WhitespaceSplit()],
    "WholeText": [splitters.WholeText()],
    "Punctuation": [splitters.Punctuation(), splitters.Punctuation("merged_with_previous")],
    "Digits": [splitters.Digits(), splitters.Digits(individual_digits=True)],
    "CharDelimiterSplit": [splitters.CharDelimiterSplit("a")],
    "FixedLength": [splitters.FixedLength(3)],
    "UnicodeScripts": [splitters.UnicodeScripts()],
    "ScriptPairs": [splitters.ScriptPairs(), splitters.ScriptPairs(use_scripts=False)],
}


def test_every_pretokenizer_is_held_to_its_laws():
    # `split` of SentencePiece's answers for the text before it is normalized; its pretoken is the whole text.
    assert public_kinds(PreTokenizer) == {*PRE_TOKENIZERS, "SentencePiecePreTokenizer"}
    pre = SentencePiecePreTokenizer()
    assert pre.raw_pretokens("▁hug▁pug") == ["▁hug▁pug"] and len(pre.split("hug pug")) == 2


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_pretokenizers_keep_their_laws(name):
    for pre in PRE_TOKENIZERS[name]:
        texts = texts_for("pretokenizers", name)
        assert protocols.pretokenizer_laws(pre, texts) == len(texts)
        assert pickle.loads(pickle.dumps(pre)) == pre


# Post-processors

BERT = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
PROCESSORS = {
    "BertProcessing": [BERT],
    "RobertaProcessing": [
        processors.RobertaProcessing(("</s>", 2), ("<s>", 0)),
        processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False),
    ],
    "ByteLevel": [processors.ByteLevel(), processors.ByteLevel(trim_offsets=False)],
    "TemplateProcessing": [
        processors.TemplateProcessing(
            "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
        )
    ],
    "Sequence": [processors.Sequence([processors.ByteLevel(), BERT])],
    "Reversed": [Reversed()],
}


def test_every_processor_is_held_to_its_laws():
    assert public_kinds(Processor) == {*PROCESSORS}


@pytest.mark.parametrize("name", PROCESSORS)
def test_processors_keep_their_laws(name):
    rng, encodings = fresh("processors", name), []
    for _ in range(TEXTS):
        n = rng.randrange(6)
        pieces = [rng.choice(["Ġhug", "hug", "Ġ", "s"]) for _ in range(n)]
        offsets = [(i, i + 1) for i in range(n)]
        encodings.append(Encoding([rng.randrange(100) for _ in range(n)], pieces=pieces, offsets=offsets))
    for processor in PROCESSORS[name]:
        assert protocols.processor_laws(processor, encodings) == len(encodings)


# Decoders

DECODERS = {
    "ByteLevel": [decoders.ByteLevel()],
    "BPEDecoder": [decoders.BPEDecoder()],
    "WordPiece": [decoders.WordPiece(), decoders.WordPiece(cleanup=False)],
    "Metaspace": [decoders.Metaspace(), decoders.Metaspace(prepend_scheme="never")],
    "Replace": [decoders.Replace("▁", " ")],
    "Strip": [decoders.Strip(" ", 1, 0)],
    "CTC": [decoders.CTC()],
    "ScriptPairs": [decoders.ScriptPairs()],
    "ByteFallback": [decoders.ByteFallback()],
    "Fuse": [decoders.Fuse()],
    "Sequence": [
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
        decoders.Sequence([]),
    ],
    "SentencePieceDecoder": [
        SentencePieceDecoder(),
        SentencePieceDecoder(byte_fallback=True, control=("<s>",), add_dummy_prefix=False),
    ],
    "NmtDecoder": [NmtDecoder()],
}


def test_every_decoder_is_held_to_its_laws():
    assert public_kinds(Decoder) == {*DECODERS}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders_keep_their_laws(name):
    rng = fresh("decoders", name)
    pieces = [
        "hug",
        "##s",
        "▁",
        "▁hug",
        "Ġhug",
        "low@@",
        "w</w>",
        "<0xC3>",
        "<0xA9>",
        "<s>",
        "<unk>",
        "a",
        "",
    ]
    rows = [rng.choices(pieces, k=rng.randrange(7)) for _ in range(TEXTS)]
    for decoder in DECODERS[name]:
        assert protocols.decoder_laws(decoder, rows) == len(rows)


# Trainers


@pytest.mark.parametrize("algorithm", RECIPES)
def test_trainers_keep_their_laws(algorithm):
    rng = fresh("trainers", algorithm)
    bytewise, spells = algorithm == "bpe", algorithm in ("bpe", "pathpiece", "mingram")
    options = {"pre_tokenizer": pretokenizers.ByteLevel(False)} if bytewise else {"unk_piece": "<unk>"}
    for _ in range(5):
        words = {"".join(rng.choices("hugspn", k=rng.randrange(1, 7))) for _ in range(20)}
        counts = {(w.encode() if bytewise else w): rng.randrange(1, 30) for w in sorted(words)}
        size = (270 if spells else 20) + rng.randrange(10)
        trainer = partial(RECIPES[algorithm], progress=False, **options)
        model = protocols.trainer_laws(trainer, counts, size, special_tokens=["<unk>", "<s>"])
        assert protocols.model_laws(model, sorted(words)) == len(words)
        assert (model.algorithm, model.unk_piece) == (
            {"char_bpe": "bpe", "pathpiece": None, "mingram": "unigram"}.get(algorithm, algorithm),
            None if bytewise else "<unk>",
        )


# Chains


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "bpe"},
        {"algorithm": "bpe", "pre_tokenizer": "cl100k"},
        {"algorithm": "unigram", "byte_fallback": True, "pre_tokenizer": "metaspace"},
    ],
)
def test_text_comes_back_through_the_whole_chain(options):
    tok = Tokenizer.train(["hug pug pun bun hugs"] * 3, vocab_size=290, progress=False, **options)
    for text in generated(TEXTS, 17):
        if options["algorithm"] == "unigram":
            text = " ".join(text.replace("▁", " ").split(" ")).lstrip(" ")
        assert tok.decode(tok.encode(text, allowed_special=())) == text


# A model of one's own


class Longest(protocols.Model):
    "Takes the longest piece from left to right, and refuses what no piece begins."

    def __init__(self, pieces: list[str]):
        self.piece2id = numbered(pieces)
        self.longest = max(map(len, pieces))

    def __repr__(self):
        return f"Longest({len(self.piece2id)} pieces)"

    def __eq__(self, other):
        return isinstance(other, Longest) and self.piece2id == other.piece2id

    __hash__ = None

    def encode(self, pretoken):
        ids, at = [], 0
        while at < len(pretoken):
            for end in range(min(len(pretoken), at + self.longest), at, -1):
                if pretoken[at:end] in self.piece2id:
                    break
            else:
                raise ValueError(f"pretoken must be made of pieces, got {pretoken[at]!r}")
            ids.append(self.piece2id[pretoken[at:end]])
            at = end
        return ids


@pytest.fixture()
def own() -> Tokenizer:
    visible = [pretokenizers.ByteLevel(False).split(chr(b))[0][0] for b in range(128)]
    more = [c for text in generated(300, 3) for c in pretokenizers.byte_level("gpt2").raw_pretokens(text)]
    letters = sorted({c for raw in more for c in pretokenizers.ByteLevel(False).piece_of(raw)})
    pieces = [*dict.fromkeys([*visible, *letters, "hug", "Ġp", "Ġpug", "ug", "Ġb", "un"])]
    return Tokenizer(
        Longest(pieces),
        normalizer=normalizers.NFC(),
        pre_tokenizer=pretokenizers.ByteLevel(False),
        decoder=decoders.ByteLevel(),
        added_tokens=[(AddedToken("<s>", special=True), len(pieces))],
        post_processor=processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", len(pieces))]),
    )


def test_a_model_of_ones_own_keeps_the_laws(own):
    words = [p for t in generated(TEXTS, 3) for p, _, _ in own.pre_tokenizer.split(t)]
    assert protocols.model_laws(own.model, [w for w in words if can_encode(own.model, w)]) > 20


def test_a_model_of_ones_own_encodes_aligns_and_decodes(own):
    texts = ["hug pug", "bun <s> hug", "", "  a\n"]
    rows = [own.encode(text) for text in texts]
    assert own.encode_batch(texts).tolist() == rows
    assert [own.encode_array(text).tolist() for text in texts] == rows
    assert [own.align(text).ids for text in texts] == rows
    assert own.tokenize("hug pug") == ["<s>", "hug", "Ġpug"]
    assert own.align("hug pug").offsets == [(0, 0), (0, 3), (3, 7)]
    assert [own.decode(row, skip_special_tokens=True) for row in rows] == ["hug pug", "bun  hug", "", "  a\n"]
    long = "hug pug bun " * 5000
    assert (
        own.encode_array(long).tolist()
        == own.encode("hug pug bun ")[:-1]
        + [i for _ in range(4999) for i in own.encode(" hug pug bun")[1:]]
        + own.encode(" ")[1:]
    )
    assert own.encode_batch([long] * 3).tolist() == [own.encode(long)] * 3


def test_a_model_of_ones_own_explains_and_compares(own):
    why = own.explain("hug pug")
    assert why.ids == own.encode("hug pug") and why.pieces == own.tokenize("hug pug")
    assert [r.pieces for r in why.reasons] == [["hug"], ["Ġpug"]]
    assert "nothing more is known of a Longest" in str(why.to_dict())
    assert isinstance(str(why), str) and why._repr_html_()
    other = Tokenizer.train(["hug pug"] * 3, vocab_size=260, progress=False)
    assert own.compare(other, "hug pug")._repr_html_()
    facts = own.inspect()
    assert facts["model"] == "Longest" and facts["vocab_size"] == len(own.piece2id)
    assert own.draw("hug pug")._repr_html_()


def test_a_model_of_ones_own_is_pickled_and_compared(own):
    again = pickle.loads(pickle.dumps(own))
    assert again == own and again.encode("hug pug") == own.encode("hug pug")


def test_what_a_model_of_ones_own_cannot_do_is_said(own, tmp_path):
    for name in ("tokenizer.json", "x.model", "x.tiktoken", "vocab.txt"):
        with pytest.raises(ValueError, match=r"Longest|model"):
            own.save(tmp_path / name)
        assert not [*tmp_path.iterdir()]
    with pytest.raises(ValueError, match="must be Unigram to give probabilities"):
        own.nbest("hug")
    with pytest.raises(ValueError, match="must be Unigram to give probabilities"):
        own.sample("hug")
    with pytest.raises(ValueError, match="dropout must be None for a model without merges"):
        own.encode("hug", dropout=0.1)
    for call in (
        lambda: own.train_new(["hug"]),
        lambda: own.extend(["hug"], 500),
        lambda: own.truncate(len(own.piece2id) - 1),
    ):
        with pytest.raises(ValueError, match=r"Longest|model"):
            call()


def test_what_is_no_model_is_refused():
    class Half:
        piece2id = {"a": 0}

    for model in (Half(), "gpt2", None):
        with pytest.raises(
            ValueError, match="model must be a Model, got a .* name .*Model as its base class"
        ):
            Tokenizer(model)


# Nobody asks

MODEL_NAMES = {*MODELS, "SentencePieceModel"}
# The models' own chapters, with their kernels, and the file formats.
MAY_ASK = ("bpe", "wordpiece", "unigram", "formats")
# The page that refuses what is no model; a face of another library, whose own classes have these names.
ALSO = {"text.protocols", "compat.hf_trainers"}


def asked(tree: ast.AST) -> list[str]:
    "Where code asks for the class of something that is called a model, or looks whether it has an attribute."
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        said = ast.unparse(node)
        if node.func.id == "isinstance":
            named = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if named & MODEL_NAMES:
                found.append(said)
        if node.func.id == "hasattr" or node.func.id == "getattr" and len(node.args) == 3:
            if ast.unparse(node.args[0]).split(".")[-1] == "model":
                found.append(said)
    return found


def test_nobody_asks_what_a_model_is():
    wrong = []
    for path in sorted((ROOT / "subword_nb").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "subword_nb").with_suffix("").parts)
        if module.split(".")[0] in MAY_ASK or module in ALSO:
            continue
        wrong += [f"{module}: {said}" for said in asked(ast.parse(path.read_text(encoding="utf-8")))]
    assert not wrong, "\n".join(wrong)
