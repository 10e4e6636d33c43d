"""From one format to another: what is written gives the same ids, or the notes say which texts differ."""

import warnings

import pytest
from seeds import TEXTS, fresh
from subword_nb import Tokenizer
from subword_nb.tokenizer.convert import compare, convert, generated_texts, shrink, surfaces
from subword_nb.pipeline.processors import processor_from_dict
from subword_nb.formats.export import translate

N = max(TEXTS, 500)  # a share of them may differ


@pytest.fixture
def trained():
    "Small tokenizers of every family, trained on the same words."
    words = [
        "the quick brown fox jumps over the lazy dog",
        "she sells sea shells by the sea shore",
        "naïve café, 你好",
        "a  b\n c",
    ] * 5
    return {
        "bpe": Tokenizer.train(words, vocab_size=300, special_tokens=["<|endoftext|>"]),
        "unigram": Tokenizer.train(words, algorithm="unigram", vocab_size=80, special_tokens=["<s>", "</s>"]),
        "sp_bpe": Tokenizer.train(
            words,
            algorithm="char_bpe",
            vocab_size=90,
            pre_tokenizer="metaspace",
            unk_piece="<unk>",
            fuse_unk=True,
        ),
        "nmt": Tokenizer.train(
            words,
            algorithm="char_bpe",
            vocab_size=90,
            end_of_word_suffix="</w>",
            pre_tokenizer="whitespace_split",
            unk_piece="<unk>",
        ),
        "wordpiece": Tokenizer.train(
            words, algorithm="wordpiece", vocab_size=90, special_tokens=["[UNK]", "[CLS]"]
        ),
    }


@pytest.mark.parametrize(
    ("name", "target", "kind"),
    [
        ("bpe", "x.json", None),
        ("bpe", "x.tiktoken", None),
        ("bpe", "x.model", "minbpe"),
        ("bpe", "", "gpt2"),
        ("unigram", "x.model", None),
        ("unigram", "x.json", None),
        ("sp_bpe", "x.model", None),
        ("sp_bpe", "x.json", None),
        ("nmt", "x.codes", None),
        ("wordpiece", "x.txt", None),
        ("bpe", "x.gguf", None),
    ],
)
def test_every_family_in_every_format_that_holds_it(trained, tmp_path, name, target, kind):
    done = convert(trained[name], tmp_path / target if target else tmp_path, kind=kind, n=400)
    assert done.notes if name == "nmt" else done.report.identical, (
        f"{done}"
    )  # in codes every symbol of a rule is known, also at the end of a word


def test_what_a_format_cannot_hold_is_refused_and_nothing_is_written(trained, tmp_path):
    for name, target in [
        ("unigram", "x.tiktoken"),
        ("unigram", "x.txt"),
        ("bpe", "x.txt"),
        ("bpe", "x.model"),
        ("wordpiece", "x.model"),
        ("wordpiece", "x.tiktoken"),
        ("wordpiece", "x.gguf"),
        ("unigram", "x.codes"),
    ]:
        with pytest.raises(ValueError, match=r"\w{3}.{20}"):
            convert(trained[name], tmp_path / target)
    assert not list(tmp_path.iterdir())


def test_saving_warns_of_what_is_lost(trained, tmp_path):
    with pytest.warns(UserWarning, match="special tokens"):
        trained["unigram"].save(tmp_path / "x.model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("bpe", "wordpiece", "unigram"):
            trained[name].save(tmp_path / "x.json")


def test_a_report_names_the_stage(trained):
    tok = trained["bpe"]
    parts = tok.parts
    other = Tokenizer(**parts._replace(normalizer="lowercase", source=None, allowed_special=())._asdict())
    report = compare(tok, other, n=200)
    assert report.n_different and all("see different texts" in d.reason for d in report.differences)
    assert all(len(d.text) <= 2 for d in report.differences)
    whole = Tokenizer(
        **parts._replace(
            pre_tokenizer=Tokenizer.train(["a"], vocab_size=260, pre_tokenizer=None).pre_tokenizer,
            source=None,
            allowed_special=(),
        )._asdict()
    )
    report = compare(tok, whole, n=500)
    assert not report.n_different or any("cut differently" in d.reason for d in report.differences)


def test_shrinking_keeps_the_property_and_ends():
    for text in generated_texts(n=300):
        small = (
            shrink(text, lambda t: t.count(" ") >= 2 or "é" in t)
            if text.count(" ") >= 2 or "é" in text
            else None
        )
        assert small is None or small in ("  ", "é")


def test_texts_are_valid_and_repeatable():
    texts = list(generated_texts(pieces=["ab", "cd"], n=2000, seed=5))
    assert len(texts) == 2000 and texts == list(generated_texts(pieces=["cd", "ab"], n=2000, seed=5))
    for t in texts:
        t.encode("utf-8")


REAL = [
    ("gpt2/tokenizer.json", "x.tiktoken"),
    ("tiktoken/r50k_base.tiktoken", "x.json"),
    ("llama-2/tokenizer.model", "x.json"),
    ("sentencepiece/test_model.model", "x.json"),
    ("transformers-fixtures/test_sentencepiece_bpe.model", "x.json"),
    ("transformers-fixtures/test_sentencepiece_with_bytefallback.model", "x.json"),
    ("bert-base-cased/vocab.txt", "x.json"),
    ("t5-small/tokenizer.json", "x.model"),
    ("bert-base-uncased/tokenizer.json", "x.txt"),
]


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), REAL)
def test_real_files(shared_file, tmp_path, name, target):
    done = convert(shared_file("vocab/" + name), tmp_path / target, n=N)
    a, b = Tokenizer.load(shared_file("vocab/" + name)), Tokenizer.load(tmp_path / target, **done.options)
    share = (
        sum(
            a.encode(t, add_special_tokens=False, allowed_special=())
            != b.encode(t, add_special_tokens=False, allowed_special=())
            for t in generated_texts(pieces=surfaces(a), n=N)
        )
        / N
    )  # without what is put around
    if "sentencepiece/test_model" in name or "spiece" in name or "t5" in name or "fixtures" in name:
        assert done.notes and share < 0.02, f"{done}"  # 32 bits, and marks by clusters
    elif target == "x.txt":
        assert done.notes  # the post-processor
    else:
        assert not done.report.n_different, f"{done}"


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    [
        "tiktoken/r50k_base.tiktoken",
        "llama-2/tokenizer.model",
        "sentencepiece/test_model.model",
        "barthez/sentencepiece.bpe.model",
    ],
)
def test_the_other_library_reads_what_is_written(shared_file, tmp_path, name):
    hf = pytest.importorskip("tokenizers")
    tok = Tokenizer.load(shared_file("vocab/" + name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = tok.save(tmp_path / "x.json")
    theirs, ours = hf.Tokenizer.from_file(str(path)), Tokenizer.load(path)
    texts = [
        t
        for t in generated_texts(pieces=["the", " world", "▁"], n=600, seed=3)
        if not any(s in t for s in ("<s>", "</s>", "<unk>", "<|endoftext|>"))
    ]
    assert [ours.encode(t, add_special_tokens=False) for t in texts] == [
        theirs.encode(t, add_special_tokens=False).ids for t in texts
    ]
    same = sum(tok.encode(t) == ours.encode(t, add_special_tokens=False) for t in texts)
    assert same >= 0.97 * len(texts)


def test_translation_changes_nothing_where_there_is_nothing_to_change(trained):
    for name in ("bpe", "unigram", "wordpiece"):
        found = translate(trained[name].parts, "tokenizer.json")
        assert found.notes == [] and found.parts == trained[name].parts


@pytest.mark.peers
@pytest.mark.parametrize("name", ["llama-2/tokenizer.model", "mistral-v1/tokenizer.model.v1"])
def test_runs_of_spaces_of_one_score(shared_file, tmp_path, name):
    hf, spm = pytest.importorskip("tokenizers"), pytest.importorskip("sentencepiece")
    done = convert(shared_file("vocab/" + name), tmp_path / "x.json", n=300)
    assert done.report.identical and not any(
        "list of merges" in note or "denormalizer" in note for note in done.notes
    ), f"{done}"
    theirs, sp, rng = hf.Tokenizer.from_file(str(tmp_path / "x.json")), spm.SentencePieceProcessor(), fresh(1)
    sp.Load(str(shared_file("vocab/" + name)))
    for _ in range(1000):
        text = "".join(
            rng.choice([" " * rng.randrange(1, 40), " ", "▁", "a", "the", " x=", "\n", "\t", "  "])
            for _ in range(rng.randrange(1, 9))
        )
        assert theirs.encode(text, add_special_tokens=False).ids == sp.encode(text), text


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("p50k_base", "p50k_base"),
        ("p50k_base", "p50k_edit"),
        ("cl100k_base", "cl100k_base"),
        ("o200k_base", "o200k_base"),
        ("o200k_base", "o200k_harmony"),
    ],
)
def test_gaps_between_ids_in_tokenizer_json(shared_file, tmp_path, name, encoding):
    tok = Tokenizer.load(shared_file(f"vocab/tiktoken/{name}.tiktoken"), encoding=encoding)
    done = convert(tok, tmp_path / "x.json", n=300)
    assert done.report.identical and len(done.notes) == (encoding == "o200k_harmony"), f"{done}"
    back = Tokenizer.load(tmp_path / "x.json")
    for token, i in back.added_tokens:
        assert back.encode(f"a{token.content}b", allowed_special="all") == tok.encode(
            f"a{token.content}b", allowed_special="all"
        ) and i in back.encode(token.content, allowed_special="all")
    try:
        from tokenizers import Tokenizer as Theirs
    except ImportError:
        return
    theirs = Theirs.from_file(str(tmp_path / "x.json"))
    for text in [*generated_texts(n=300), "a<|endoftext|>b"]:
        assert theirs.encode(text, add_special_tokens=False).ids == back.encode(
            text, add_special_tokens=False, allowed_special="all"
        ), text


def test_what_is_put_around_hides_no_difference(trained):
    end = trained["bpe"].piece2id["<|endoftext|>"]

    def around(text):
        return [*trained["bpe"].encode(text.lower()), end]

    report = compare(trained["bpe"], around, texts=["", "abc"])
    assert report.n_different == 2 and report.differences[0].text == ""
    template = processor_from_dict(
        {
            "type": "TemplateProcessing",
            "single": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                "<|endoftext|>": {"id": "<|endoftext|>", "ids": [end], "tokens": ["<|endoftext|>"]}
            },
        }
    )
    other = Tokenizer(
        **trained["bpe"]
        .parts._replace(normalizer="lowercase", post_processor=template, source=None)
        ._asdict()
    )
    report = compare(trained["bpe"], other, texts=["", "abc", "xAx"])
    assert (
        report.n_different == 3
        and report.differences[0].text == "A"
        and "different texts" in report.differences[0].reason
    )
