"""Every tokenizer.json at hand, and pipelines built here, against Hugging Face's library: all fields and decoding."""

import json
from pathlib import Path

import pytest
import seeds
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.pipeline.encoding import Padding, Truncation

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789",
    "   ",
    " \t\n\r\x0b\x0c\x1c\x1f\x85\u00a0\u1680\u2003\u2028\u2029\u202f\u3000\u200b\ufeff",
    ".,;:!?'\"()[]{}<>|@#$%^&*-_=+/\\~`",
    "éàüßñçøÅŒœİıſ",
    "\u0301\u0308\u0327\u0338\u20dd\u0e31\u0940\ufe0f",
    "абвгдеёжзийЁЖЩ",
    "αβγδεςσΣ",
    "你好世界漢字仮名龍",
    "あいうえおアイウエオがパﾊﾟ",
    "한국어안녕각가\u1100\u1161\u11a8",
    "שלוםאבג\u05b8\u05bc",
    "مرحبا\u064b\u0651ﻻ",
    "ไทยสวัสดีน้ำ",
    "देवनागरीक्षि",
    "ሰላም",
    "🤗😀👩\u200d👩🏽‍🚀🇩🇪❤️",
    "ﬁﬀⅣ①½㎏ＡＢ１２℃™",
    "\x00\x01\x07\x1b\x7f\x80\u00ad\u200d\u2060\ufffd\ufffe\ue000\U000e0001\U0010ffff",
    "▁▁ĠĊ##</w>Ł",
    "\u0378\U0001fbff\u1abf\u0897",
]
WORDS = [
    "the",
    "Hello",
    "world",
    "isn't",
    "don't",
    "I'LL",
    "tokenization",
    "  ",
    "\n\n",
    "\r\n",
    "...",
    "<s>",
    "</s>",
    "[MASK]",
    "[CLS]",
    "<mask>",
    " <mask> ",
    "<|endoftext|>",
    "<extra_id_0>",
    "<pad>",
    "<unk>",
    "[unk]",
    "3.14",
    "1234567",
    "naïve",
    "Zürich",
    "中文",
    "日本語",
    "e\u0301",
    "<0x0A>",
    "▁",
    "https://a.b/c?d=e",
]


def generated(n: int, seed: int, extra=()) -> list[str]:
    "Texts of many scripts with spaces of every kind, emoji, marks, control characters and the spellings of special tokens."
    rng = fresh(seed)
    words = [*WORDS, *extra]

    def piece():
        if rng.random() < 0.35:
            return rng.choice(words)
        alphabet = rng.choice(ALPHABETS)
        return "".join(rng.choices(alphabet, k=rng.choice((1, 1, 2, 3, 5))))

    return [
        "".join(piece() + rng.choice(("", "", " ")) for _ in range(rng.choice((0, 1, 2, 4, 8))))
        for _ in range(n)
    ]


def files(folder: Path) -> list[Path]:
    "The tokenizer.json files of the data folder, by whatever name, without those that the reference library refuses."
    found = [
        p
        for p in sorted(folder.glob("vocab/*/*.json"))
        if p.parent.name != "invalid" and ("tokenizer.json" in p.name or p.name == "wordlevel.json")
    ]
    if not found:
        pytest.skip(f"there is no tokenizer.json in {folder}/vocab")
    return found


def reference(path):
    return pytest.importorskip("tokenizers").Tokenizer.from_file(str(path))


def facts(e) -> dict:
    "What an encoding of either library says."
    pieces = e.tokens
    return {
        "ids": list(e.ids),
        "pieces": list(pieces),
        "offsets": [tuple(o) for o in e.offsets],
        "type_ids": list(e.type_ids),
        "special": list(e.special_tokens_mask),
        "attention": list(e.attention_mask),
        "words": list(e.word_ids),
        "sequences": list(e.sequence_ids),
    }


def same(ours, theirs, *where):
    "Compare two encodings, and what overflowed."
    a, b = facts(ours), facts(theirs)
    for name in b:
        assert a[name] == b[name], (*where, name, a["pieces"], b["pieces"], a[name], b[name])
    assert len(ours.overflowing) == len(theirs.overflowing), where
    for x, y in zip(ours.overflowing, theirs.overflowing):
        same(x, y, *where, "overflowing")


def in_bytes(text, offsets):
    return [(len(text[:a].encode()), len(text[:b].encode())) for a, b in offsets]


def decoded(ref, ids, skip, tok):
    "What the library decodes; where it panics, what is decoded here."
    try:
        return ref.decode(ids, skip_special_tokens=skip)
    except BaseException as error:  # a panic of the library is no Exception
        if type(error).__name__ != "PanicException":
            raise
        return tok.decode(ids, skip_special_tokens=skip)


def compare(tok, ref, texts, pairs=True):
    "Everything that both libraries say about texts."
    for k, text in enumerate(texts):
        ours = tok.align(text)
        same(ours, ref.encode(text), "single", text)
        assert tok.encode(text) == ours.ids, text
        if k % 4 == 0:
            plain = ref.encode(text, add_special_tokens=False)
            mine = tok.align(text, add_special_tokens=False)
            same(mine, plain, "bare", text)
            assert mine.offsets_bytes == in_bytes(text, mine.offsets), text
            for skip in (False, True):
                assert tok.decode(ours.ids, skip_special_tokens=skip) == decoded(ref, ours.ids, skip, tok), (
                    "decode",
                    skip,
                    text,
                    ours.ids,
                )
        if pairs and k % 4 == 1:
            other = texts[k - 1]
            same(tok.align(text, other), ref.encode(text, other), "pair", text, other)
            same(
                tok.align(text, other, add_special_tokens=False),
                ref.encode(text, other, add_special_tokens=False),
                "bare pair",
                text,
                other,
            )
        if pairs and k % 16 == 2:
            words = texts[k - 2 : k + 1]
            same(
                tok.align(words, is_pretokenized=True),
                ref.encode(words, is_pretokenized=True),
                "words",
                words,
            )
    got = tok.encode_batch(texts).tolist()
    assert got == [e.ids for e in ref.encode_batch(texts)]


@pytest.mark.peers
def test_golden_ids_pieces_and_offsets(shared_data, record_property):
    texts = json.loads((shared_data / "golden" / "strings.json").read_text(encoding="utf-8"))
    texts = texts["strings"] if isinstance(texts, dict) else texts
    for path in files(shared_data):
        compare(Tokenizer.load(path), reference(path), texts)
    record_property("texts", len(texts) * len(files(shared_data)))
    record_property("vocabularies", len(files(shared_data)))


@pytest.mark.peers
def test_generated_texts(shared_data, record_property):
    n = seeds.TEXTS  # per file; 20,000 take some minutes
    for i, path in enumerate(files(shared_data)):
        tok, ref = Tokenizer.load(path), reference(path)
        added = [t.content for t, _ in tok.added_tokens]
        compare(tok, ref, generated(n, i, added[:6] + added[-6:]))
    record_property("texts", n * len(files(shared_data)))
    record_property("vocabularies", len(files(shared_data)))


@pytest.mark.peers
def test_limits_and_filling(shared_data):
    for i, path in enumerate(files(shared_data)):
        tok, ref = Tokenizer.load(path), reference(path)
        rng = fresh(i)
        texts = [t for t in generated(120, 77 + i) if t.strip()]
        for _ in range(40):
            size, side, strategy = (
                rng.randrange(6, 24),
                rng.choice(("left", "right")),
                rng.choice(("longest_first", "only_first", "only_second")),
            )
            stride, multiple, fixed = rng.randrange(0, 2), rng.choice((None, 8)), rng.choice(("longest", 16))
            tok.truncation, tok.padding = (
                Truncation(size, stride, strategy, side),
                Padding(fixed, side, multiple, 3, 1, "<fill>"),
            )
            ref.enable_truncation(size, stride=stride, strategy=strategy, direction=side)
            ref.enable_padding(
                direction=side,
                pad_id=3,
                pad_type_id=1,
                pad_token="<fill>",
                length=None if fixed == "longest" else fixed,
                pad_to_multiple_of=multiple,
            )
            few = rng.sample(texts, 3)
            pairs = list(zip(few, rng.sample(texts, 3)))
            for one, many in ((few, few), (pairs, pairs)):
                try:
                    theirs = ref.encode_batch(many)
                except BaseException as error:  # the library raises plain Exceptions, and panics
                    if type(error).__name__ not in ("Exception", "PanicException"):
                        raise
                    with pytest.raises(ValueError):
                        tok.align_batch(few, [b for _, b in pairs] if one is pairs else None)
                    assert str(error)
                    continue
                ours = tok.align_batch(few, [b for _, b in pairs] if one is pairs else None)
                for a, b, text in zip(ours, theirs, one):
                    same(a, b, path.parent.name, text, tok.truncation, tok.padding)
                if one is few:
                    assert tok.encode_batch(few).tolist() == [e.ids for e in theirs]


@pytest.mark.peers
def test_what_is_saved_loads_there_with_the_same_ids(shared_data, tmp_path):
    transformers = pytest.importorskip("transformers")
    for i, path in enumerate(files(shared_data)):
        tok, ref = Tokenizer.load(path), reference(path)
        saved = tok.save(tmp_path / f"{path.parent.name}.json")
        again, there = Tokenizer.load(saved), reference(saved)
        assert again == tok
        fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(saved))
        for text in generated(50, 500 + i):
            expected = ref.encode(text)
            same(there.encode(text), expected, text)
            assert again.encode(text) == expected.ids
            if tok.truncation is None:
                assert fast(text)["input_ids"] == tok(text).input_ids.tolist() == expected.ids


@pytest.mark.peers
def test_words_handed_over_some_empty(shared_data):
    "No words, empty words, words of spaces, one text or two."
    for path in files(shared_data):
        if path.stat().st_size > 9_000_000:
            continue
        tok, ref, rng = Tokenizer.load(path), reference(path), fresh(1)
        tok.truncation = tok.padding = None
        ref.no_truncation()
        ref.no_padding()
        words = ["", "", " ", "  ", "▁", *generated(60, 3)]
        for _ in range(60):
            one, two, around = (
                rng.choices(words, k=rng.randrange(6)),
                rng.choice((None, rng.choices(words, k=rng.randrange(4)))),
                rng.random() < 0.7,
            )
            same(
                tok.align(one, two, add_special_tokens=around, is_pretokenized=True),
                ref.encode(one, two, is_pretokenized=True, add_special_tokens=around),
                path.parent.name,
                one,
                two,
            )


@pytest.mark.peers
def test_all_merges_dropped(shared_data):
    "Dropout of 1 leaves nothing to chance, so places can be compared."
    for path in (p for p in files(shared_data) if p.parent.name in ("gpt2", "roberta-base", "phi-3-mini")):
        tok, ref = Tokenizer.load(path), reference(path)
        before = tok.align("remembered before")
        ref.model.dropout = 1.0
        for text in generated(60, 8):
            same(tok.align(text, dropout=1.0), ref.encode(text), text)
            assert (
                tok.encode(text, dropout=1.0)
                == tok(text, dropout=1.0).input_ids.tolist()
                == tok.align(text, dropout=1.0).ids
            )
        assert tok.align("remembered before") == before


def test_chance_is_the_same_in_every_call():
    "Ids, places and arrays draw alike from one seed; nothing drawn is remembered."
    tok = Tokenizer.train(["hugging tokens, tokenization and hugs"] * 3, vocab_size=300)
    texts, plain = ["hugging tokens", "", "hugs 你"], tok.align("hugging tokens")
    for seed in range(20):
        assert (
            tok.align(texts[0], dropout=0.5, seed=seed).ids
            == tok.encode(texts[0], dropout=0.5, seed=seed)
            == tok(texts[0], dropout=0.5, seed=seed).input_ids.tolist()
        )
        rows = tok.encode_batch(texts, dropout=0.5, seed=seed).tolist()
        assert (
            rows
            == [e.ids for e in tok.align_batch(texts, dropout=0.5, seed=seed)]
            == [r.tolist() for r in tok(texts, dropout=0.5, seed=seed).input_ids]
        )
    tok.model.dropout = 0.5
    assert (
        len({tuple(tok.align(texts[0]).ids) for _ in range(50)}) > 1
        and len({tuple(tok.encode(texts[0])) for _ in range(50)}) > 1
    )
    assert (
        tok.align(texts[0], dropout=0) == plain
        and tok.encode(texts[0], dropout=0) == plain.ids
        and str(tok.stages(texts[0])) == str(tok.stages(texts[0]))
    )


@pytest.mark.peers
def test_a_template_may_give_the_text_twice():
    tokenizers = pytest.importorskip("tokenizers")
    from subword_nb.pipeline.processors import TemplateProcessing

    tok = Tokenizer.train(["the tokens of a text"], vocab_size=270, special_tokens=["<s>"])
    tok.post_processor = TemplateProcessing("<s> $A <s> $A", "$A $B:1", [("<s>", 0)])
    ref = tokenizers.Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": [],
                "normalizer": None,
                "pre_tokenizer": None,
                "decoder": None,
                "post_processor": tok.post_processor.to_dict(),
                "model": {"type": "WordLevel", "vocab": {"<s>": 0, "x": 1}, "unk_token": "x"},
            }
        )
    )
    n = len(tok.encode("the tokens", add_special_tokens=False)) // 2
    for around in (True, False):
        for limit in (None, Truncation(4)):
            tok.truncation = limit
            ids = tok.encode("the tokens", add_special_tokens=around)
            assert (
                ids
                == tok.align("the tokens", add_special_tokens=around).ids
                == tok.encode_batch(["the tokens"], add_special_tokens=around).tolist()[0]
            )
            assert (
                len(ids) % 2 == 0 and min(ids) >= 0 and ids[: len(ids) // 2] == ids[len(ids) // 2 :] and n > 0
            )
        assert len(ref.encode("x", add_special_tokens=around).ids) == (4 if around else 2)


def test_a_list_of_barred_tokens_may_be_an_iterator():
    tok = Tokenizer.train(["a b"], vocab_size=260, special_tokens=["<s>"])
    for call in (
        lambda t: tok.encode_batch(["a", "x<s>"], disallowed_special=t),
        lambda t: tok.align_batch(["a", "x<s>"], disallowed_special=t),
        lambda t: tok(["a", "x<s>"], disallowed_special=t),
    ):
        with pytest.raises(ValueError, match="at position 1"):
            call(iter(["<s>"]))


def test_one_text_is_not_taken_for_several():
    tok = Tokenizer.train(["a b"], vocab_size=260)
    for one in ("cd", b"cd", bytearray(b"cd"), memoryview(b"cd")):
        for call in (
            tok.align_batch,
            tok.encode_batch,
            lambda t: tok(["a", "b"], t),
            lambda t: tok.align_batch(["a", "b"], t),
        ):
            with pytest.raises(ValueError, match="pass a list"):
                call(one)
        assert tok(one).input_ids.tolist() == tok.encode("cd") == tok.align(one).ids


@pytest.mark.peers
def test_called_as_transformers_is(shared_data):
    transformers = pytest.importorskip("transformers")
    for path in (p for p in files(shared_data) if p.parent.name in ("bert-base-uncased", "roberta-base")):
        tok, rng = Tokenizer.load(path), fresh(4)
        pad = next(p for p in ("[PAD]", "<pad>") if p in tok.piece2id)
        fast, texts = (
            transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), pad_token=pad),
            [t for t in generated(80, 5) if t.strip()],
        )
        for _ in range(60):
            few, others = rng.sample(texts, 3), rng.choice((None, rng.sample(texts, 3)))
            size, cut, fill, over = (
                rng.randrange(8, 20),
                rng.choice((True, "longest_first", False)),
                rng.choice((True, "max_length", "longest", False)),
                rng.random() < 0.3,
            )
            options = dict(
                max_length=size,
                truncation=cut,
                padding=fill,
                stride=rng.randrange(2) if cut else 0,
                padding_side=rng.choice(("left", "right")),
                pad_to_multiple_of=rng.choice((None, 8)) if fill and not cut else None,
                return_special_tokens_mask=True,
                return_offsets_mapping=True,
                return_token_type_ids=True,
                return_overflowing_tokens=over and bool(cut),
                return_length=True,
            )
            theirs, ours = fast(few, others, **options), tok(few, others, **options)
            for name in set(theirs) - {"length"}:
                assert [
                    [tuple(x) if isinstance(x, (list, tuple)) else x for x in row]
                    if isinstance(row, list)
                    else row
                    for row in theirs[name]
                ] == [
                    [tuple(x) if isinstance(x, list) else x for x in row]
                    if isinstance(row := r.tolist(), list)
                    else row
                    for r in ours[name]
                ], (name, options, few, others)
            for row in range(3):
                assert (
                    ours.tokens(row) == theirs.tokens(row)
                    and ours.word_ids(row) == theirs.word_ids(row)
                    and ours.sequence_ids(row) == theirs.sequence_ids(row)
                )
                assert [ours.char_to_token(row, c) for c in range(6)] == [
                    theirs.char_to_token(row, c) for c in range(6)
                ]
