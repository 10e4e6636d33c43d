"""Options of the trainers that other libraries' users know: alphabets, early ends, unknown characters in saved files."""

import io
import os
import pickle
import random
import subprocess
import sys
import warnings

import pytest
from peers import hf_pieces, hf_trained, sp_file, sp_scores, sp_trained
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.bpe.reference import bpe_train_ref, start_vocabulary
from subword_nb.bpe.trainer import bpe_train, learn_merges
from subword_nb.corpus.counts import count_pretokens, flatten_counts
from subword_nb.pipeline.decoding import decode_stream
from subword_nb.text.pretokenizers import ByteLevel
from subword_nb.text.splitters import script
from subword_nb.formats.sentencepiece_proto import read_model_proto
from subword_nb.core.unicode import BYTE2CHAR
from subword_nb.train.recipes import RECIPES, conventions, divide_pretoken, options_of
from subword_nb.train.train import pretoken_counts

pytestmark = pytest.mark.filterwarnings("ignore:training ended")
TEXT = ["hug pug pun bun hugs, hug pug", "The bun was a pun, said the pug."] * 4


def test_the_visible_alphabet_means_bytes():
    wanted = Tokenizer.train(TEXT, vocab_size=280).model
    for alphabet in (list(BYTE2CHAR), sorted(BYTE2CHAR), "bytes", [bytes([b]) for b in range(256)]):
        assert Tokenizer.train(TEXT, vocab_size=280, initial_alphabet=alphabet).model == wanted
    for doubtful in (["é"], list(BYTE2CHAR)[:200], ["a", "Ġ"]):
        with pytest.raises(ValueError, match="may be the character or represent the byte"):
            Tokenizer.train(TEXT, vocab_size=280, initial_alphabet=doubtful)
    with pytest.raises(ValueError, match="may be the character or represent the byte"):
        Tokenizer.train(TEXT, vocab_size=280, initial_alphabet=[*BYTE2CHAR, "€"])
    assert (
        Tokenizer.train(TEXT, vocab_size=280, initial_alphabet=["é".encode()[:1], "a", " "]).piece2id["Ã"]
        >= 0
    )
    assert {"Ã", "©"} < Tokenizer.train(
        TEXT, vocab_size=60, initial_alphabet=["é", "漢", " "]
    ).piece2id.keys()
    assert "Ġ" in Tokenizer.train(TEXT, algorithm="char_bpe", vocab_size=60, initial_alphabet=["Ġ"]).piece2id


@pytest.mark.peers
def test_hugging_faces_alphabet(hf):
    tok = Tokenizer.train(TEXT, vocab_size=280, initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet())
    assert tok.model == Tokenizer.train(TEXT, vocab_size=280).model
    assert tok.decode(tok.encode("né 漢\x00")) == "né 漢\x00"


@pytest.mark.parametrize(
    "options, why",
    [
        (dict(vocab_size=32000), "training ended with 257 pieces and not 32,000: no pair was left to merge"),
        (dict(vocab_size=300, min_frequency=2), "no pair was frequent enough"),
        (dict(algorithm="wordpiece", vocab_size=300), "no pair was left"),
        (dict(algorithm="unigram", vocab_size=300), "no piece left"),
        (dict(algorithm="wordlevel", vocab_size=300), "no word was left"),
    ],
)
def test_a_vocabulary_that_stays_small_is_a_warning(options, why):
    with pytest.warns(UserWarning, match=why) as said:
        Tokenizer.train(["a b"], **options)
    assert [w.filename for w in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tokenizer.train(["a b"], vocab_size=257)


@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "wordlevel"])
def test_growing_that_ends_early_is_a_warning(algorithm):
    tok = Tokenizer.train(["a b"] * 2, algorithm=algorithm, vocab_size=256 if algorithm == "bpe" else 3)
    with pytest.warns(UserWarning, match="and not 300: no (pair|word) was left"):
        tok.extend(["a b"] * 2, 300)


@pytest.mark.peers
@pytest.mark.parametrize("options", [{}, dict(fuse_unk=True), dict(byte_fallback=True)])
def test_a_saved_char_bpe_gives_sentencepieces_ids(spm, tmp_path, options):
    "Also for runs of unknown characters."
    tok = Tokenizer.train(
        TEXT,
        algorithm="char_bpe",
        vocab_size=330 if options.get("byte_fallback") else 60,
        pre_tokenizer="metaspace",
        unk_piece="<unk>",
        **options,
    )
    sp = spm.SentencePieceProcessor(model_file=str(tok.save(tmp_path / "t.model")))
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(
            rng.choices(["hug", "pug ", " bun", "é", "漢字", "x", " ", ".", "😀"], k=rng.randrange(9))
        )
        assert tok.encode(text, allowed_special=()) == sp.encode(text), text


def test_unknown_runs_elsewhere_stay_as_they_were():
    tok = Tokenizer.train(TEXT, algorithm="char_bpe", vocab_size=40, unk_piece="<unk>")
    assert tok.tokenize("漢字") == ["<unk>", "<unk>"] and not tok.model.fuse_unk
    assert not Tokenizer.train(
        TEXT,
        algorithm="char_bpe",
        vocab_size=40,
        pre_tokenizer="metaspace",
        unk_piece="<unk>",
        fuse_unk=False,
    ).model.fuse_unk


def test_the_largest_pair_wins_a_tie():
    tok = Tokenizer.train(
        ["ab cd ab cd"],
        algorithm="char_bpe",
        vocab_size=9,
        end_of_word_suffix="</w>",
        tie_break="largest",
        unk_piece="<unk>",
    )
    assert tok.model.merges[:2] == [("c", "d</w>"), ("a", "b</w>")]
    counts = {"ab": 2, "cd": 2, "dé": 2}
    for form in (counts, flatten_counts(counts)):
        for bulk in (None, False, True):
            assert bpe_train(form, 8, tie_break="largest", bulk=bulk).merges == [
                ("d", "é"),
                ("c", "d"),
                ("a", "b"),
            ]
    assert bpe_train_ref(counts, 8, tie_break="largest").merges == [("d", "é"), ("c", "d"), ("a", "b")]
    with pytest.raises(ValueError, match="tie_break must be"):
        Tokenizer.train(TEXT, algorithm="wordpiece", vocab_size=60, tie_break="largest")


def test_the_largest_pair_is_the_same_to_the_reference_and_to_kernels():
    "Counts full of ties, as text with marks and as bytes."
    rng = fresh("largest")
    for _ in range(100):
        words = [
            "".join(rng.choices(rng.choice(["ab", "aéb", "a漢"]), k=rng.randint(1, 8)))
            for _ in range(rng.randint(1, 30))
        ]
        counts = {word: rng.randint(1, 3) for word in words}
        options = dict(
            tie_break="largest", min_frequency=rng.randint(1, 3), max_token_length=rng.choice([None, 4])
        )
        if rng.random() < 0.3:
            counts = {word.encode(): n for word, n in counts.items()}
        else:
            options |= dict(
                continuing_subword_prefix=rng.choice(["", "##"]), end_of_word_suffix=rng.choice(["", "</w>"])
            )
        wanted = bpe_train_ref(counts, 50, **options)
        for bulk in (False, True):
            assert bpe_train(counts, 50, bulk=bulk, **options) == wanted
            assert bpe_train(flatten_counts(counts), 50, bulk=bulk, **options) == wanted


def test_the_largest_pair_without_kernels():
    "A process with SUBWORD_NB_JIT=0 learns the same merges, also where kernels are asked for."
    script = """
import random
from subword_nb import Tokenizer
from subword_nb.bpe.reference import bpe_train_ref, start_vocabulary
from subword_nb.bpe.trainer import learn_merges
from subword_nb.bpe.trainer import bpe_train
options = dict(vocab_size=9, end_of_word_suffix="</w>", tie_break="largest", unk_piece="<unk>")
tok = Tokenizer.train(["ab cd ab cd"], algorithm="char_bpe", **options)
assert tok.model.merges[:2] == [("c", "d</w>"), ("a", "b</w>")]
rng = random.Random(5)
counts = {"".join(rng.choices("abé", k=rng.randint(1, 8))): rng.randint(1, 3) for _ in range(40)}
wanted = bpe_train_ref(counts, 60, tie_break="largest")
for bulk in (None, False, True):
    assert bpe_train(counts, 60, tie_break="largest", bulk=bulk) == wanted
print("same")
"""
    env = dict(os.environ, SUBWORD_NB_JIT="0")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=env, capture_output=True, text=True
    )
    assert done.stdout.strip() == "same", done.stderr


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(8))
def test_subword_nmts_codes(seed, capsys):
    "The rules of learn-bpe, ties and all, on made-up words of few letters."
    learn = pytest.importorskip("subword_nmt.learn_bpe", reason="the peer tests need the extra 'peers'")
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcé"[: rng.choice([2, 3, 4])], k=rng.randint(1, 7))) for _ in range(30)]
    text = "\n".join(" ".join(rng.choices(words, k=8)) for _ in range(30)) + "\n"
    out = io.StringIO()
    learn.learn_bpe(io.StringIO(text), out, 60)
    wanted = [tuple(line.split(" ")) for line in out.getvalue().splitlines()[1:]]
    tok = Tokenizer.train(
        [text],
        algorithm="char_bpe",
        vocab_size=400,
        pre_tokenizer="whitespace_split",
        end_of_word_suffix="</w>",
        tie_break="largest",
        min_frequency=2,
    )
    assert tok.model.merges[: len(wanted)] == wanted


@pytest.mark.peers
def test_subword_nmts_codes_of_a_book(shared_file, capsys):
    learn = pytest.importorskip("subword_nmt.learn_bpe", reason="the peer tests need the extra 'peers'")
    text = shared_file("corpus/tinyshakespeare.txt").read_text(encoding="utf-8")[:300_000]
    out = io.StringIO()
    learn.learn_bpe(io.StringIO(text), out, 500)
    wanted = [tuple(line.split(" ")) for line in out.getvalue().splitlines()[1:]]
    tok = Tokenizer.train(
        [text],
        algorithm="char_bpe",
        vocab_size=800,
        pre_tokenizer="whitespace_split",
        end_of_word_suffix="</w>",
        tie_break="largest",
        min_frequency=2,
    )
    assert len(wanted) == 500 and tok.model.merges[:500] == wanted


def test_unigram_from_the_pieces_of_bpe():
    lines = TEXT + ["hugs and puns, hug by hug", "a pug dug a bun"] * 3
    tok = Tokenizer.train(lines, algorithm="unigram", vocab_size=40, start="bpe")
    assert tok.vocab_size == 40 and tok.decode(tok.encode("the pug said hug")) != ""
    merges = bpe_train(
        dict.fromkeys(("▁" + word for line in lines for word in line.split()), 1), 10**6, min_frequency=1
    ).pieces
    assert {p for p in tok.piece2id if len(p) > 1} - {"<unk>"} <= {*merges}
    few = Tokenizer.train(
        lines,
        algorithm="unigram",
        vocab_size=35,
        start="bpe",
        seed_size=45,
        special_tokens=["<s>"],
        character_coverage=0.95,
    )
    assert few.training.history[0][0] <= 45 + 2 and few.training.ended == "full"
    with pytest.raises(ValueError, match='start must be "bpe"'):
        Tokenizer.train(lines, algorithm="unigram", vocab_size=40, start="suffixes")


@pytest.mark.peers
def test_codes_keep_what_they_have_not_seen(tmp_path, capsys):
    "tokenize writes a text as apply-bpe does."
    apply = pytest.importorskip("subword_nmt.apply_bpe", reason="the peer tests need the extra 'peers'")
    codes = "#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\n"
    (path := tmp_path / "x.codes").write_text(codes, encoding="utf-8")
    tok, ref = Tokenizer.load(path), apply.BPE(io.StringIO(codes))
    for text in ("low lower", "lowé 漢字 er", "é", "zé low😀er"):
        assert " ".join(tok.tokenize(text)) == ref.process_line(text)
    assert tok.tokenize("lowé", dropout=1.0)[-1] in ("é", "<unk>") and tok.encode("é") == [
        tok.piece2id["<unk>"]
    ]


MIXED = ["v2 and v10, カナ漢字 2024年", "ab12cd мир, mir漢", "x1 x2 x3 2024 2025."] * 3


@pytest.mark.parametrize("algorithm", ["unigram", "char_bpe"])
def test_no_piece_over_a_digit_or_a_script(algorithm):
    options = dict(algorithm=algorithm, vocab_size=75, pre_tokenizer="metaspace", unk_piece="<unk>")
    plain, digits, scripts = (
        Tokenizer.train(MIXED, **options, **more)
        for more in ({}, dict(split_digits=True), dict(split_by_unicode_script=True))
    )
    assert any(len(p) > 1 and set(p) & set("0123456789") for p in plain.piece2id)
    assert not any(len(p) > 1 and set(p) & set("0123456789") for p in digits.piece2id)
    assert not any(
        len({script(c) for c in p.removeprefix("▁")} - {""}) > 1 for p in scripts.piece2id if p != "<unk>"
    )
    for tok in (digits, scripts):
        parts = {k: tok is t for k, t in (("split_digits", digits), ("split_by_unicode_script", scripts))}
        for text in MIXED:
            assert tok.decode(tok.encode(text)) == text
            alone = [
                p
                for w in text.split(" ")
                for part in divide_pretoken("▁" + w, **parts)
                for p in ([tok.id2piece[i] for i in tok.model.encode(part)])
            ]
            assert tok.tokenize(text) == alone
    assert Tokenizer.train({"▁v2": 3}, **options | dict(vocab_size=5), split_digits=True).training.total == 3


@pytest.mark.parametrize("algorithm", ["unigram", "char_bpe"])
def test_digits_count_as_part_of_any_script(algorithm, tmp_path):
    options = dict(algorithm=algorithm, vocab_size=30, pre_tokenizer="metaspace", unk_piece="<unk>")
    options |= dict(split_by_unicode_script=True)
    texts = ["v2カ v2 カ2 カ"] * 9
    apart = Tokenizer.train(texts, **options)
    joined = Tokenizer.train(texts, **options, split_by_number=False)
    assert apart.tokenize("v2カ") == ["▁v", "2", "カ"] and "▁v2" in joined.piece2id
    joined.save(tmp_path / "a.model")
    assert read_model_proto((tmp_path / "a.model").read_bytes()).trainer("split_by_number") is False
    assert Tokenizer.load(tmp_path / "a.model").tokenize("v2カ") == joined.tokenize("v2カ")


@pytest.mark.peers
@pytest.mark.parametrize("options", [dict(split_digits=True), dict(split_by_unicode_script=True)])
def test_sentencepieces_own_pieces_are_within_our_parts(spm, options):
    rng = random.Random(0)
    lines = ["".join(rng.choices("ab12 .мир漢字カナ９", k=20)) for _ in range(400)]
    same = dict(
        split_by_unicode_script=False,
        split_by_number=True,
        split_digits=False,
        normalization_rule_name="identity",
        character_coverage=1.0,
    )
    pieces = sp_scores(sp_trained(spm, lines, vocab_size=150, **same | options))
    assert all(len(divide_pretoken(p, **options)) == 1 for p in pieces)
    assert any(
        len(divide_pretoken(p, **options)) > 1
        for p in sp_scores(sp_trained(spm, lines, vocab_size=150, **same))
    )


def test_pretokens_are_divided_once_and_the_trace_says_how():
    tok = Tokenizer.train(
        MIXED,
        algorithm="char_bpe",
        vocab_size=75,
        pre_tokenizer="metaspace",
        unk_piece="<unk>",
        split_digits=True,
        trace=True,
    )
    trace = tok.training.trace
    assert (
        trace.facts["options"]["split_digits"] is True
        and trace.facts["options"]["split_by_unicode_script"] is False
    )
    assert {p for p in trace.counts.to_dict() if set(p) & set("0123456789")} == set("012345")
    assert tok.explain_training("2") is not None
    options = {
        algorithm: {"split_digits", "split_by_unicode_script"} & {*options_of(algorithm)}
        for algorithm in RECIPES
    }
    assert {algorithm for algorithm, found in options.items() if len(found) == 2} == {
        "bpe",
        "char_bpe",
        "unigram",
    }
    assert not options["wordpiece"] and not options["wordlevel"]


def test_fuse_unk_may_be_left_open_by_bpe_alone():
    how = dict(algorithm="char_bpe", vocab_size=40, unk_piece="<unk>", fuse_unk=None)
    assert not Tokenizer.train(TEXT, **how).model.fuse_unk
    assert Tokenizer.train(TEXT, pre_tokenizer="metaspace", **how).model.fuse_unk
    with pytest.raises(ValueError, match="fuse_unk must be True or False, got None"):
        Tokenizer.train(TEXT, **how | dict(algorithm="unigram"))


def test_splitting_options_are_refused_where_they_cannot_be():
    for options in (
        dict(vocab_size=300),
        dict(algorithm="char_bpe", vocab_size=60, end_of_word_suffix="</w>"),
        dict(algorithm="unigram", vocab_size=60, pre_tokenizer=ByteLevel()),
    ):
        with pytest.raises(ValueError, match="split_digits must be False for pretokens of bytes"):
            Tokenizer.train(TEXT, split_digits=True, **options)
    with pytest.raises(ValueError, match="must be left out of extend"):
        Tokenizer.train(TEXT, algorithm="char_bpe", vocab_size=40).extend(
            TEXT, vocab_size=45, split_digits=True
        )
    with pytest.raises(ValueError, match="must be True or False"):
        Tokenizer.train(TEXT, algorithm="unigram", vocab_size=40, split_digits=1)


SPACED = ["hug", "pug ", " bun", "hugs", "é", "漢字", "x", " ", "  ", ".", "😀", "▁", "12", "\n"]


def spaced_texts(rng, n=200):
    "Texts with spaces in all places."
    return ["", " ", "hug", "hug pug", " hug  pug "] + [
        "".join(rng.choices(SPACED, k=rng.randrange(9))) for _ in range(n)
    ]


@pytest.mark.parametrize(
    "options",
    [
        dict(algorithm="unigram"),
        dict(algorithm="char_bpe", unk_piece="<unk>"),
        dict(algorithm="unigram", byte_fallback=True),
        dict(algorithm="char_bpe", byte_fallback=True, split_digits=True),
    ],
)
def test_words_with_the_mark_behind_them(tmp_path, options):
    size = 340 if options.get("byte_fallback") else 60
    how = options | dict(vocab_size=size, pre_tokenizer="metaspace", treat_whitespace_as_suffix=True)
    tok = Tokenizer.train(TEXT, **how)
    assert not any(p.startswith("▁") for p in tok.piece2id if len(p) > 1) and any(
        p.endswith("▁") for p in tok.piece2id if len(p) > 1
    )
    assert tok.tokenize("hug pug") == ["hug▁", "pug▁"] and tok.align("hug pug").offsets == [(0, 4), (4, 7)]
    assert tok.pre_tokenizer.to_dict()["behavior"] == "MergedWithPrevious"
    loaded = Tokenizer.load(tok.save(tmp_path / "t.json"))
    assert loaded == tok
    for text in spaced_texts(fresh("behind", str(options))):
        ids = tok.encode(text)
        assert loaded.encode(text) == ids and tok.encode_batch([text]).tolist() == [ids]
        if options.get("byte_fallback"):
            assert tok.decode(ids) == text.replace("▁", " ") == "".join(decode_stream(tok, ids))
    assert (
        Tokenizer.train(
            pretoken_counts(
                TEXT,
                algorithm=options["algorithm"],
                pre_tokenizer="metaspace",
                treat_whitespace_as_suffix=True,
            ),
            **how,
        ).model.piece2id.keys()
        == tok.piece2id.keys()
    )
    again = tok.train_new(TEXT, vocab_size=size)
    assert (
        again.tokenize("hug pug") == ["hug▁", "pug▁"] and again.decode(again.encode("hug pug")) == "hug pug"
    )


def test_a_large_corpus_with_marks_behind_words(tmp_path):
    "Counted in blocks and threads, stopped and gone on with, the same model."
    lines = [
        " ".join(random.Random(k).choices(["hug", "pug", "bun", "hugs", "a", "été"], k=30)) + " " * (k % 3)
        for k in range(9000)
    ]
    (path := tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    how = dict(algorithm="unigram", vocab_size=40, treat_whitespace_as_suffix=True)
    pre, norm, _ = conventions("unigram", "default", "default", treat_whitespace_as_suffix=True)
    counted = count_pretokens(map(norm.normalize, lines), pre) | {"\n": len(lines) - 1}
    assert path.stat().st_size > 1_000_000
    assert pretoken_counts(path, algorithm="unigram", treat_whitespace_as_suffix=True).to_dict() == counted
    found = Tokenizer.train(path, **how, checkpoint=tmp_path / "run")
    assert "pug▁" in found.piece2id and found.training.total == sum(counted.values())
    assert Tokenizer.train(path, **how, checkpoint=tmp_path / "run").model == found.model
    with pytest.raises(ValueError, match="got that of another run"):
        Tokenizer.train(path, algorithm="unigram", vocab_size=40, checkpoint=tmp_path / "run")


@pytest.mark.peers
@pytest.mark.parametrize(
    "options",
    [
        dict(algorithm="unigram"),
        dict(algorithm="char_bpe", unk_piece="<unk>"),
        dict(algorithm="unigram", byte_fallback=True),
    ],
)
def test_marks_behind_words_in_other_libraries(hf, spm, tmp_path, options):
    "SentencePiece and Hugging Face's library give the same ids from what is saved."
    tok = Tokenizer.train(
        TEXT,
        **options,
        vocab_size=340 if options.get("byte_fallback") else 60,
        pre_tokenizer="metaspace",
        treat_whitespace_as_suffix=True,
        allowed_special=(),
    )
    model = tok.save(tmp_path / "t.model")
    sp, there = (
        spm.SentencePieceProcessor(model_file=str(model)),
        hf.Tokenizer.from_file(str(tok.save(tmp_path / "t.json"))),
    )
    back = Tokenizer.load(model)
    assert back.source.trainer("treat_whitespace_as_suffix") is True
    for text in spaced_texts(fresh("peers", str(options))):
        ids = tok.encode(text)
        assert sp.encode(text) == back.encode(text) == ids, text
        assert sp.decode(ids) == back.decode(ids)
        assert there.encode(text).ids == ids and there.decode(ids, skip_special_tokens=False) == tok.decode(
            ids
        ), text


@pytest.mark.peers
@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(remove_extra_whitespaces=False),
        dict(add_dummy_prefix=False),
        dict(byte_fallback=True, model_type="bpe"),
        dict(model_type="bpe"),
        dict(model_type="char"),
    ],
)
def test_sentencepieces_models_with_marks_behind_words(hf, spm, tmp_path, options):
    "Read, and translated to tokenizer.json for Hugging Face's library: the same ids."
    data = sp_file(
        spm,
        TEXT * 3,
        **dict(
            vocab_size=320 if options.get("byte_fallback") else 45,
            treat_whitespace_as_suffix=True,
            normalization_rule_name="identity",
        )
        | options,
    )
    (path := tmp_path / "t.model").write_bytes(data)
    sp, tok = spm.SentencePieceProcessor(model_proto=data), Tokenizer.load(path)
    there = hf.Tokenizer.from_file(str(tok.save(tmp_path / "t.json")))
    for text in spaced_texts(fresh("theirs", str(options))):
        assert tok.encode(text) == sp.encode(text), text
        assert tok.decode(sp.encode(text)) == sp.decode(sp.encode(text))
        if options.get("model_type") != "char":  # where a run of unknown characters is several there
            assert there.encode(text).ids == sp.encode(text), text
        if "▁" not in text and "\n" not in text:
            assert "".join(w for w, *_ in tok.pre_tokenizer.split(text)) == sp.normalize(text)


def test_marks_behind_words_are_refused_where_there_are_none():
    for options in (
        dict(algorithm="bpe"),
        dict(algorithm="char_bpe"),
        dict(algorithm="unigram", pre_tokenizer="whitespace"),
    ):
        with pytest.raises(ValueError, match="must be False where no ▁ marks words"):
            Tokenizer.train(TEXT, vocab_size=300, treat_whitespace_as_suffix=True, **options)
    with pytest.raises(ValueError, match=r"got '▁hug'; count with .* pass metaspace_at_end"):
        Tokenizer.train(
            {"▁hug": 3, "▁pug": 2}, algorithm="unigram", vocab_size=20, treat_whitespace_as_suffix=True
        )
    with pytest.raises(
        ValueError, match="options of wordpiece must be among .* got 'treat_whitespace_as_suffix'"
    ):
        Tokenizer.train(TEXT, algorithm="wordpiece", vocab_size=60, treat_whitespace_as_suffix=True)
    with pytest.raises(ValueError, match="must be True or False"):
        Tokenizer.train(TEXT, algorithm="unigram", vocab_size=40, treat_whitespace_as_suffix=1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(split_digits=True),
        dict(split_by_unicode_script=True),
        dict(split_digits=True, split_by_unicode_script=True, treat_whitespace_as_suffix=True),
    ],
)
@pytest.mark.parametrize("algorithm", ["unigram", "char_bpe"])
def test_a_model_file_says_how_training_divided(tmp_path, algorithm, options):
    "Read again, in a pickle, in what is cut from it or learned anew; not of what goes on learning."
    names = ("split_digits", "split_by_unicode_script")
    tok = Tokenizer.train(
        MIXED,
        algorithm=algorithm,
        vocab_size=75,
        pre_tokenizer="metaspace",
        unk_piece="<unk>",
        allowed_special=(),
        **options,
    )

    def saved_options(tok):
        return {
            k: Tokenizer.load(tok.save(tmp_path / "t.model")).inspect()["source"]["trainer_spec"].get(k)
            for k in names
        }

    wanted = {k: options.get(k, False) for k in names}
    assert (
        tok.source
        == tok.inspect()["source"]
        == wanted
        == saved_options(tok)
        == saved_options(pickle.loads(pickle.dumps(tok)))
    )
    assert tok == pickle.loads(pickle.dumps(tok)) == Tokenizer.load(tok.save(tmp_path / "t.json"))
    assert saved_options(tok.train_new(MIXED, vocab_size=70, split_digits=True)) == {
        "split_digits": True,
        "split_by_unicode_script": False,
    }
    if algorithm == "char_bpe":
        assert saved_options(tok.truncate(len(tok.piece2id) - 1)) == wanted
        assert saved_options(tok.extend(MIXED, vocab_size=len(tok.piece2id) + 1)) == dict.fromkeys(
            names, False
        )


def test_only_words_with_marks_remember_how_training_divided():
    assert (
        Tokenizer.train(TEXT, vocab_size=280).source is None
        and Tokenizer.train(TEXT, algorithm="char_bpe", vocab_size=40).source is None
    )


@pytest.mark.peers
@pytest.mark.parametrize("name", ["split_digits", "split_by_unicode_script", "treat_whitespace_as_suffix"])
def test_the_fields_are_sentencepieces(spm, tmp_path, name):
    "The options of its trainer are read by name, and a file written here is read by it."
    lines = ["".join(random.Random(k).choices("abcdefgh12 ", k=30)) for k in range(200)]
    for value in (True, False):
        proto = read_model_proto(sp_file(spm, lines, vocab_size=40, **{name: value}))
        assert proto.trainer(name) is value
    tok = Tokenizer.train(MIXED, algorithm="unigram", vocab_size=75, allowed_special=(), **{name: True})
    sp = spm.SentencePieceProcessor(model_file=str(tok.save(tmp_path / "t.model")))
    assert all(sp.encode(text) == tok.encode(text) for text in [*MIXED, "v2024 カナmir"])


WORDS = ["hug pug pun bun hugs hug pug hug hugs the course", "a pun a bun or the pugs of the course"] * 3


def test_wordpiece_learns_marks_at_the_ends_of_words_and_warns():
    how = dict(algorithm="wordpiece", vocab_size=60, pre_tokenizer="whitespace_split", normalizer=None)
    with pytest.warns(
        UserWarning, match=r"pieces end in '</w>', which WordPiece's encoder does not look for"
    ) as said:
        tok = Tokenizer.train(WORDS, **how, objective="frequency", end_of_word_suffix="</w>", trace=True)
    assert [w.filename for w in said if "look for" in str(w.message)] == [__file__]
    marked = {p for p in tok.piece2id if p.endswith("</w>")}
    assert marked and f"{len(marked)} of {len(tok.piece2id)} pieces" in str(said[0].message)
    assert not marked & {p for line in WORDS for p in tok.tokenize(line)}
    counts = count_pretokens(WORDS, "whitespace_split")
    wanted = bpe_train_ref(
        counts,
        60,
        special_tokens=["[UNK]"],
        tie_break="ids",
        continuing_subword_prefix="##",
        end_of_word_suffix="</w>",
    )
    assert list(tok.piece2id) == wanted.pieces
    assert str(tok.explain_training("hug</w>")).startswith("hug</w> (id ")
    for options in ({}, dict(objective="score")):
        with pytest.raises(ValueError, match='pass objective="frequency"'):
            Tokenizer.train(WORDS, **how, **options, end_of_word_suffix="</w>")


@pytest.mark.peers
def test_hugging_faces_marks_at_the_ends_of_words(hf):
    "The pieces that its trainer learns, given the ids of its letters, and that its encoder does not find them either."
    there = hf_trained(
        hf,
        "WordPiece",
        WORDS,
        hf.pre_tokenizers.WhitespaceSplit(),
        vocab_size=60,
        special_tokens=["[UNK]"],
        end_of_word_suffix="</w>",
    )
    there.model.unk_token = "[UNK]"
    theirs, counts = hf_pieces(there), count_pretokens(WORDS, "whitespace_split")
    start, splits = start_vocabulary(counts, 60, special_tokens=["[UNK]"], prefix="##", suffix="</w>")
    assert {*theirs[: len(start)]} == {*start}
    words = [[theirs.index(s) for s in symbols] for symbols in splits.values()]
    assert learn_merges(words, list(counts.values()), theirs[: len(start)], 60, prefix="##").pieces == theirs
    with pytest.warns(UserWarning, match="does not look for"):
        ours = Tokenizer.train(
            WORDS,
            algorithm="wordpiece",
            vocab_size=60,
            pre_tokenizer="whitespace_split",
            normalizer=None,
            objective="frequency",
            end_of_word_suffix="</w>",
        )
    assert {p for p in ours.piece2id if len(p.removeprefix("##").removesuffix("</w>")) == 1} == {
        p for p in theirs if len(p.removeprefix("##").removesuffix("</w>")) == 1
    }
    assert not any(p.endswith("</w>") for line in WORDS for p in there.encode(line).tokens)
    assert there.encode("pun").tokens == ours.tokenize("pun") == ["[UNK]"]
