"""Long texts: `align` from arrays equals the pipeline's, to the last field."""

import lzma
import re
from dataclasses import replace

import pytest
from seeds import TEXTS as N, fresh

from subword_nb import Tokenizer
from subword_nb.pipeline import blocks
from subword_nb.pipeline import align as pipeline
from subword_nb.bulk.align import LongEncoding, align, align_long, align_texts
from subword_nb.core.records import fields
from subword_nb.pipeline.encoding import Encoding, Truncation
from subword_nb.pipeline.encoder import encoder_of
from subword_nb.pipeline.processors import TemplateProcessing
from subword_nb.core.unicode import valid_text

FILES = [
    "gpt2/tokenizer.json",
    "tiktoken/cl100k_base.tiktoken",
    "tiktoken/o200k_base.tiktoken",
    "bert-base-uncased/tokenizer.json",
    "bert-base-cased/vocab.txt",
    "bert-base-chinese/vocab.txt",
    "roberta-base/tokenizer.json",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "phi-3-mini/tokenizer.json",
    "derived/llama-2-legacy.tokenizer.json",
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
    "xlnet-base-cased/spiece.model",
    "pegasus/tokenizer.json",
    "barthez/tokenizer.json",
    "clip/tokenizer.json",
    "falcon/tokenizer.json",
    "whisper-tiny/tokenizer.json",
    "sentencepiece/test_model.model",
    "sentencepiece/test_ja_model.model",
    "wordlevel-vulrepair/wordlevel.json",
]
PARTS = [
    "hug",
    "The",
    " the",
    " pug",
    "s",
    "S",
    " ",
    " ",
    " ",
    "  ",
    "   ",
    "'",
    "'s",
    "é",
    "É",
    "e\u0301",
    "你",
    "你好",
    "🤗",
    "👩\u200d👩",
    "\n",
    "\n\n",
    "\t",
    "\u00a0",
    "1",
    "23",
    "!",
    "...",
    "<s>",
    "[SEP]",
    "</s>",
    "<|endoftext|>",
    "\u0301",
    "▁",
    "\x00",
    "\x07",
    "\u200b",
    "ß",
    "İ",
    "ﬁ",
    "한국",
    "각",
    "ก็",
    "नमस्ते",
    "#",
    "##",
    "``",
    "''",
    "don't",
    "\r\n",
    "ΑΣ",
    "\u3000",
    "\ufeff",
    "か\u3099",
    "½",
    "ﷺ",
    "supercalifragilistic",
]
COLUMNS = [field.name for field in fields(Encoding)]


@pytest.fixture(autouse=True)
def small():
    "Short texts go the long way."
    before = vars(blocks.SIZES).copy()
    blocks.SIZES.bulk = blocks.SIZES.loaded = 0
    yield
    vars(blocks.SIZES).update(before)


def check(tok, text, add=True):
    "Both ways; how many texts only the ordinary one could do."
    found = align_long(encoder_of(tok), text, add_special_tokens=add)
    if found is None:
        return 1
    wanted = pipeline.align(tok, text, add_special_tokens=add)
    assert isinstance(found, LongEncoding)
    for name in COLUMNS:
        assert getattr(found, name) == getattr(wanted, name), (name, text)
    assert found == wanted and wanted == found
    return 0


def texts(n, seed=0):
    rng = fresh(seed)
    return ["", " ", "\n", *("".join(rng.choices(PARTS, k=rng.randrange(30))) for _ in range(n))]


def load(shared_file, name):
    tok = Tokenizer.load(shared_file("vocab/" + name))
    if encoder_of(tok).bulk is None:
        pytest.skip(f"{name} has no plan")
    if encoder_of(tok).plan.normalizes_first:
        pytest.skip(f"{name} has added tokens in normalized text, whose places only the pipeline finds")
    tok.truncation = None  # `align` cuts what `align_long` gives
    return tok


@pytest.mark.parametrize(
    "name", ["gpt2/tokenizer.json", "bert-base-uncased/tokenizer.json", "llama-2/tokenizer.model"]
)
def test_generated_texts(name, shared_file):
    tok = load(shared_file, name)
    assert sum(check(tok, t, k % 3 > 0) for k, t in enumerate(texts(N // 5))) <= N // 20


def check_batch(tok, batch, add=True, limit=None, direction="right"):
    "Several texts at once: ids and offsets are those of each text; those which are not certain."
    found = align_texts(encoder_of(tok), batch, add_special_tokens=add, limit=limit, direction=direction)
    missed = [text for text, row in zip(batch, found, strict=True) if row is None]
    n = tok.post_processor.n_added(False) if add and tok.post_processor else 0
    cut = Truncation(limit + n, direction=direction) if limit else None
    tok.truncation = cut
    try:
        for text, row in zip(batch, found, strict=True):
            if row is None:
                continue
            ids, offsets = row
            wanted = pipeline.align(tok, text, add_special_tokens=add)
            inside = [k for k, special in enumerate(wanted.special_tokens_mask) if not special]
            assert ids.tolist() == [wanted.ids[k] for k in inside], text
            assert [tuple(o) for o in offsets.tolist()] == [wanted.offsets[k] for k in inside], text
    finally:
        tok.truncation = None
    return missed


BATCHES = ["gpt2", "bert-base-uncased", "roberta-base", "t5-small"]


@pytest.mark.parametrize("name", BATCHES)
def test_several_texts_in_one_pass(name, shared_file):
    tok, rng = load(shared_file, f"vocab/{name}/tokenizer.json".removeprefix("vocab/")), fresh("batch", name)
    several, missed = texts(N // 2, 7), []
    batches = [several[a : a + 6] for a in range(0, len(several), 6)]
    for batch in batches:
        limit, direction = rng.choice([None, 1, 3, 8]), rng.choice(["left", "right"])
        missed += check_batch(tok, batch, rng.random() < 0.7, limit, direction)
    assert len(missed) <= len(several) // 10, f"{len(missed)} of {len(several)}: {missed[:5]}"
    # a text that is not certain among others is not certain alone, either
    assert all(align_long(encoder_of(tok), text) is None for text in missed[:20])
    assert align_texts(encoder_of(tok), []) == []


def test_only_an_uncertain_text_is_left_to_the_pipeline(shared_file):
    tok = load(shared_file, "t5-small/tokenizer.json")
    batch = ["hugs", "", "!\u200bS</s>\x07 \ufefftheが", "née 你</s>pug", "hug"]
    assert len(check_batch(tok, batch)) == 1
    assert [row is None for row in align_texts(encoder_of(tok), batch)] == [False, False, True, False, False]


@pytest.mark.parametrize("name", ["bert-base-uncased/tokenizer.json", "roberta-base/tokenizer.json"])
def test_many_uncertain_texts_among_others(name, shared_file):
    batch = [t for text in texts(N // 5, 3) for t in (text, "\u0301" + text, text + "\x00\u200b\u0301")]
    check_batch(load(shared_file, name), batch)


@pytest.mark.parametrize("words", ["<s> $A:1 </s>:2", "$A:3"])
def test_a_template_with_a_type_id_for_the_text(words, shared_file):
    tok = load(shared_file, "gpt2/tokenizer.json")
    tok.post_processor = TemplateProcessing(words, special_tokens=[("<s>", 7), ("</s>", 8)])
    for k, text in enumerate(texts(N // 10, 4)):
        assert check(tok, text, k % 3 > 0) == 0
    tok.truncation = Truncation(12, stride=3)
    type_id = tok.post_processor.single[-1 if words == "$A:3" else 1][1]
    encoding = tok.align("hugs and pugs " * 9)
    assert type_id in encoding.type_ids and len(encoding.overflowing) > 1
    assert encoding == tok.post_processor.process([_without_special(tok, "hugs and pugs " * 9)])


def _without_special(tok, text):
    "The encoding that the post-processor gets, truncated by the pipeline."
    bare = Tokenizer(tok.model, pre_tokenizer=tok.pre_tokenizer)
    n_added = tok.post_processor.n_added(False)
    bare.truncation = Truncation(tok.truncation.max_length - n_added, stride=tok.truncation.stride)
    return bare.align(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_all_files(name, shared_file):
    tok = load(shared_file, name)
    several, forbidden = texts(N, 1), [b.decode() for b in encoder_of(tok).bulk.spans.forbidden_bytes]
    missed = [
        t for k, t in enumerate(several) if check(tok, t, k % 3 > 0) and not any(b in t for b in forbidden)
    ]
    assert len(missed) <= len(several) // 10, (
        f"{len(missed)} of {len(several)} texts went the ordinary way: {missed[:5]}"
    )
    for block in (7, 64, 1 << 10):
        blocks.SIZES.block = block
        check(tok, "\n".join(several[:200]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES[:4] + FILES[7:8] + FILES[11:14])
def test_beginning_of_each_corpus(name, shared_file):
    "A megabyte of it where SUBWORD_NB_TEXTS is 20,000 or more."
    tok, size = load(shared_file, name), 1 << 20 if N >= 20_000 else 1 << 16
    for corpus in ("english_60mb.txt.xz", "multilingual_mixed.txt.xz", "udhr.txt.xz"):
        with lzma.open(shared_file("corpus/" + corpus), "rt", encoding="utf-8") as file:
            check(tok, file.read(size))


def test_added_tokens_on_many_lines(shared_file):
    tok = load(shared_file, "gpt2/tokenizer.json")
    text = "a née 你<|endoftext|>" * 300
    assert not check(tok, text)
    assert align(tok, text, allowed_special=()) == pipeline.align(tok, text, allowed_special=())
    with pytest.raises(ValueError, match=re.escape("<|endoftext|>")):
        align(tok, text, allowed_special=(), disallowed_special="all")


def test_arrays_are_the_lists(shared_file):
    found = align(load(shared_file, "bert-base-uncased/tokenizer.json"), "Née 你好 hugging!" * 20)
    for name, array in found.arrays.items():
        assert array.tolist() == [
            [*v] if isinstance(v, tuple) else -1 if v is None else v for v in getattr(found, name)
        ]


def test_it_is_an_encoding(shared_file):
    tok = load(shared_file, "bert-base-uncased/tokenizer.json")
    found, wanted = align(tok, "hugging a bear " * 50), pipeline.align(tok, "hugging a bear " * 50)
    assert (
        found.to_dict() == wanted.to_dict()
        and repr(found) == repr(wanted)
        and found._repr_html_() == wanted._repr_html_()
    )
    assert found.truncate(9) == wanted.truncate(9) and found.pad(400) == wanted.pad(400)
    assert type(replace(found, ids=list(wanted.ids))) is type(wanted) and replace(found) == wanted
    assert [found.char_to_token(i) for i in range(40)] == [wanted.char_to_token(i) for i in range(40)]
    found.ids = wanted.ids[:]
    found.ids[0] = 7
    assert found != wanted and len(found) == len(wanted)


def test_sums_far_into_a_text(shared_file):
    "A sum of 32-bit floats chooses other tokens late in a text; their places are known all the same."
    tok = load(shared_file, "t5-small/spiece.model")
    assert check(tok, "☃ " * 150_000 + ' "Monsieur" ravine unpruned hooping!' * 20) == 0
    assert encoder_of(tok).bulk.made["places"].other_ids


def test_an_array_is_made_once_and_only_if_asked_for(shared_file):
    found = align(load(shared_file, "gpt2/tokenizer.json"), "Née 你好 hugging! " * 400)
    assert not found.arrays.made
    assert found.arrays["offsets"] is found.arrays["offsets"]
    assert {*found.arrays.made} == {"offsets"}
    assert found.arrays["offsets"].dtype == "int64" and found.arrays["ids"].dtype == "uint32"
    with pytest.raises(KeyError):
        found.arrays["pieces"]


def test_later_texts_do_not_change_an_encoding(shared_file):
    "Pieces and words are made when they are asked for, from tables that have grown, or were emptied, meanwhile."
    tok = load(shared_file, "llama-2/tokenizer.model")
    first, wanted = (way(tok, "the light 你 in rooms ☃☃ <0x41>" * 40) for way in (align, pipeline.align))
    before = vars(blocks.SIZES).copy()
    align(tok, "\n".join(texts(200, 3)))
    blocks.SIZES.aligned_spans = 0
    align(tok, "other words " * 50)
    vars(blocks.SIZES).update(before)
    assert first.pieces == wanted.pieces and first.word_ids == wanted.word_ids and first == wanted


@pytest.mark.parametrize("name", ["gpt2/tokenizer.json", "wordlevel-vulrepair/wordlevel.json"])
def test_more_tokens_than_expected(name, shared_file):
    "Arrays grow where spans have many tokens each."
    tok = load(shared_file, name)
    text = "".join(f" {i * 7919 % 99991:x}qzxjv" for i in range(3000))
    assert check(tok, text) == 0


def test_other_ways_are_the_pipelines(shared_file):
    tok = load(shared_file, "bert-base-uncased/tokenizer.json")
    assert align(tok, "a", "b") == pipeline.align(tok, "a", "b")
    assert align(tok, ["a", "b"], is_pretokenized=True) == pipeline.align(
        tok, ["a", "b"], is_pretokenized=True
    )
    assert align(tok, b"a\xff", errors="replace") == pipeline.align(tok, b"a\xff", errors="replace")
    assert align(tok, b"n\xc3\xa9e") == pipeline.align(tok, valid_text(b"n\xc3\xa9e"))
    tok.truncation = Truncation(5)
    assert align(tok, "a b c d e f g") == pipeline.align(tok, "a b c d e f g")


def test_a_space_that_is_a_token_of_its_own(shared_file):
    "Two spaces that become one: ▁ has both where no letter is joined with it."
    tok = load(shared_file, "transformers-fixtures/test_sentencepiece_no_bos.model")
    for text in ("z  x", "a  Z b", "q  q  qu", " z", "  z   z"):
        assert not check(tok, text)


def test_pipelines_of_all_kinds():
    "Byte spelling behind other splitters, models that are not BPE, marks that split, and all kinds of white space."
    from subword_nb.text.pretokenizers import BertPreTokenizer, ByteLevel, Metaspace, Sequence
    from subword_nb.text.splitters import Split

    corpus = [
        "the low light in rooms, isn't it? 12 34",
        "été, ça va 你好 🤗",
        "low lower lowest; they've 1,000 rooms",
    ] * 3
    bytes_ = ByteLevel(add_prefix_space=False)
    for algorithm, pre, norm in [
        ("bpe", Sequence((BertPreTokenizer(), bytes_)), "nfc"),
        ("bpe", Sequence((Split({"String": " "}, "isolated"), bytes_)), "nfkc"),
        ("unigram", bytes_, None),
        ("wordlevel", bytes_, None),
        ("wordpiece", bytes_, "nfd"),
        ("char_bpe", Metaspace("▁", "always", split=True), None),
        ("char_bpe", Metaspace("▁", "never", split=True), None),
        ("char_bpe", Metaspace("▁", "first", split=False), None),
    ]:
        size = 330 if algorithm == "bpe" else 90
        tok = Tokenizer.train(
            corpus,
            algorithm=algorithm,
            vocab_size=size,
            special_tokens=["<unk>"],
            progress=False,
            pre_tokenizer=pre,
            normalizer=norm,
            **({"unk_piece": "<unk>"} if algorithm == "char_bpe" else {}),
        )
        if encoder_of(tok).bulk is None:
            continue
        for text in [
            " ",
            "  ",
            "\n",
            "\xa0",
            "ad",
            "bל",
            "\nM",
            "u  ",
            "the  low   light ",
            "ש ",
            "c\x0c1",
            "low\u3000light\x0b\x85x",
            *texts(60, 7),
        ]:
            check(tok, text)


def test_every_kind_of_white_space(shared_file):
    for name in ("t5-small/spiece.model", "xlnet-base-cased/spiece.model"):
        tok = load(shared_file, name)
        for space in "\t\n\x0b\x0c\r\x1c\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\ufeff":
            for text in (f"c{space}1", f"c{space}{space}ab", f"c {space}ab{space}", f"{space}c{space}\u0301"):
                check(tok, text)


def test_a_tokenizer_aligns_long_texts_so(monkeypatch):
    monkeypatch.setattr(blocks.SIZES, "bulk", 0)
    monkeypatch.setattr(blocks.SIZES, "loaded", 0)
    tok = Tokenizer.train(["low lower lowest"] * 3, vocab_size=270, progress=False)
    text = "the low light, été 你好 " * 50
    found = tok.align(text)
    assert isinstance(found, LongEncoding) and found == pipeline.align(tok, text)
