"""What the pages on models and training say of other libraries, done by those libraries."""

import json
import math
import subprocess
import sys
from collections import Counter

import pytest
from peers import TOY, hf_file, hf_pieces, hf_trained, sp_model, sp_scores, sp_trained

from subword_nb.text.charsmap import build_charsmap
from subword_nb.formats.sentencepiece_proto import BPE, CONTROL, NORMAL, UNUSED, USER_DEFINED
from subword_nb.unigram.model import read_score

pytestmark = pytest.mark.peers
LINES = ["the course of the chapter, the token and the tokens of the course"] * 5 + [
    "a tokenizer splits the words"
] * 3


def scores(spm, lines, **options):
    "Learned piece → score, of SentencePiece trained on lines."
    return sp_scores(sp_trained(spm, lines, character_coverage=1.0, **options))


def learned(hf, kind, texts, **options):
    "Pieces by their ids, of one of Hugging Face's models trained on texts."
    return hf_pieces(
        hf_trained(
            hf,
            kind,
            texts,
            hf.pre_tokenizers.Metaspace() if kind == "Unigram" else hf.pre_tokenizers.WhitespaceSplit(),
            **options,
        )
    )


# BPE


def test_first_ids_of_gpt2_are_sorted_by_the_visible_characters(shared_file):
    vocab = json.loads(shared_file("vocab/gpt2/vocab.json").read_text(encoding="utf-8"))
    first = sorted(vocab, key=vocab.get)[:256]
    assert first == sorted(first) and first[0] == "!"


def test_characters_beyond_hf_s_limit_vanish_from_the_words(hf):
    assert learned(hf, "BPE", ["aaxbb"] * 5, limit_alphabet=2, vocab_size=10) == [
        "a",
        "b",
        "aa",
        "bb",
        "aabb",
    ]


def test_a_rule_listed_twice_has_its_last_rank_in_hf(hf):
    vocab, rules = {p: i for i, p in enumerate(["a", "b", "c", "ab", "bc"])}, [("a", "b"), ("b", "c")]
    found = [hf.Tokenizer(hf.models.BPE(vocab, r)).encode("abc").tokens for r in (rules, [*rules, rules[0]])]
    assert found == [["ab", "c"], ["a", "bc"]]


def test_dropout_1_leaves_hf_with_characters(hf):
    model = hf.models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")], dropout=1.0)
    assert all([t.value for t in model.tokenize("abab")] == [*"abab"] for _ in range(20))


def test_marks_and_a_limited_alphabet_make_hf_s_bpe_differ_from_run_to_run(hf):
    texts = [
        "the quick brown fox jumps over the lazy dog",
        "pack my box with five dozen jugs",
        "sphinx of black quartz judge my vow",
    ]
    runs = [
        {tuple(learned(hf, "BPE", texts, vocab_size=60, **o)) for _ in range(12)}
        for o in (
            {},
            {"end_of_word_suffix": "</w>"},
            {"continuing_subword_prefix": "@@"},
            {"limit_alphabet": 20},
        )
    ]
    assert len(runs[0]) == 1 and all(len(found) > 1 for found in runs[1:])


def test_dropout_in_hf_has_the_law_of_passing_over_each_candidate(hf):
    model, n = (
        hf.models.BPE(
            {p: i for i, p in enumerate(["h", "u", "g", "s", "ug", "hug"])},
            [("u", "g"), ("h", "ug")],
            dropout=0.3,
        ),
        6000,
    )
    seen = Counter(" ".join(t.value for t in model.tokenize("hugs")) for _ in range(n))
    assert seen.keys() == {"h u g s", "h ug s", "hug s"}
    assert all(
        abs(seen[p] / n - q) < 0.04 for p, q in {"h u g s": 0.3, "h ug s": 0.21, "hug s": 0.49}.items()
    )  # six sigmas and more


# WordPiece


def test_hf_s_wordpiece_trainer_starts_with_all_letters_and_marks_those_inside_words(hf):
    assert sorted(learned(hf, "WordPiece", TOY, vocab_size=11)) == sorted(
        [*"bghnpsu", "##g", "##n", "##s", "##u"]
    )


def test_bert_s_splitter_takes_the_mark_apart(hf):
    assert [p for p, _ in hf.pre_tokenizers.BertPreTokenizer().pre_tokenize_str("a##b ##c")] == [
        "a",
        "#",
        "#",
        "b",
        "#",
        "#",
        "c",
    ]


def test_hf_counts_the_limit_of_a_word_after_normalizing(hf):
    letters = {p + c: i for i, (p, c) in enumerate([("", "ᄒ"), ("##", "ᄒ"), ("##", "ᅡ"), ("##", "ᆫ")], 1)}
    tok = hf.Tokenizer(hf.models.WordPiece({"[UNK]": 0} | letters, unk_token="[UNK]"))
    tok.normalizer = hf.normalizers.BertNormalizer()
    assert [len(tok.encode("한" * n).ids) for n in (33, 40)] == [99, 1] and tok.encode("한" * 40).ids == [0]


# Unigram


def test_seeds_of_sentencepiece_and_hf_hold_all_characters_whatever_follows_them(hf, spm):
    texts = ["quit", "quot", "quag"]
    assert "q" in scores(spm, texts * 5) and "▁q" not in scores(spm, texts * 5)
    theirs = learned(hf, "Unigram", texts, unk_token="<unk>", special_tokens=["<unk>"])
    assert "q" in theirs and "▁q" not in theirs and "▁qu" in theirs


def test_the_end_of_a_line_is_a_character_to_sentencepiece_and_that_of_the_last_line_another(spm):
    alone = ["кот"] * 30
    assert "▁кот" not in scores(spm, [*alone, "дом"]) and "▁кот" in scores(spm, ["дом", *alone])
    assert "▁кот" in scores(spm, [*alone, "коты", "дом"])


def test_sentencepiece_makes_the_last_cut_by_score_and_leaves_scores_as_they_are(spm):
    whole = scores(spm, LINES, vocab_size=30)
    longer = sorted((p for p in whole if len(p) > 1), key=whole.get)
    for gone in (1, 2, 3):
        left = scores(spm, LINES, vocab_size=30 - gone)
        assert left == {p: s for p, s in whole.items() if p not in longer[:gone]}


def test_scores_of_sentencepiece_do_not_add_up_to_one(spm):
    whole, left = (sum(map(math.exp, scores(spm, LINES, vocab_size=n).values())) for n in (30, 27))
    assert abs(whole - 1) > 0.005 and whole - left > 0.05


def test_unknown_characters_in_sentencepiece_cost_ten_more_than_the_worst_ordinary_piece_and_in_hf_than_any(
    hf, spm
):
    known = [("ku", -12.0), ("t", -12.0), ("ut", -1.0)]  # k is unknown: −12 − 10 − 1 against −24
    for kind in (USER_DEFINED, UNUSED, CONTROL):
        assert sp_model(spm, [*known, ("zz", -100.0, kind)]).encode("kut", out_type=str) == ["k", "ut"]
    assert sp_model(spm, [*known, ("zz", -100.0, NORMAL)]).encode("kut", out_type=str) == ["ku", "t"]
    found = [
        hf.Tokenizer(hf.models.Unigram([("<unk>", unk), *known], 0, False)).encode("kut").tokens
        for unk in (0.0, -100.0)
    ]
    assert found == [["k", "ut"], ["ku", "t"]]


def test_user_defined_pieces_score_by_characters_in_sentencepiece_s_draws(spm):
    sp, n = sp_model(spm, [("上海", -9.0, USER_DEFINED), ("上", 0.1), ("海", 0.1)]), 4000
    assert sp.encode("上海", out_type=str) == ["上海"]  # 0.5 against 0.2
    spm.set_random_generator_seed(1)
    for size in (-1, 2):
        whole = sum(
            len(sp.encode("上海", enable_sampling=True, alpha=20.0, nbest_size=size)) == 1 for _ in range(n)
        )
        assert (
            abs(whole / n - 1 / (1 + math.exp(20 * 0.1))) < 0.04
        )  # 0.1 against 0.2; by bytes it would nearly always win


def test_nbest_sizes_in_sentencepiece_s_python_package(spm):
    sp = sp_model(spm, [("a", -1.0), ("aa", -2.5), ("aaa", -3.5)])
    spm.set_random_generator_seed(1)
    drawn = {
        n: {tuple(sp.encode("aaaa", enable_sampling=True, alpha=0.1, nbest_size=n)) for _ in range(300)}
        for n in (2, 512, -1)
    }
    assert {n: len(found) for n, found in drawn.items()} == {2: 2, 512: 7, -1: 7}
    for n in (0, 1):
        with pytest.raises(ValueError, match="nbest_size"):
            sp.encode("aaaa", enable_sampling=True, alpha=0.1, nbest_size=n)
    with pytest.raises(RuntimeError, match="512"):
        sp.encode("aaaa", enable_sampling=True, alpha=0.1, nbest_size=513)


def test_hf_reads_a_decimal_by_one_integer_and_one_division(hf):
    texts = [
        f"-{k * 7919 % 30}.{k**5 * 104729 % 10 ** (1 + k % 24):0{1 + k % 24}d}{'' if k % 4 else 'e-7'}"
        for k in range(1, 1500)
    ]
    vocab = [["<unk>", 0.0], *([f"p{k}", "%"] for k in range(len(texts)))]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False}
    parts = json.dumps(hf_file(model)).split('"%"')
    whole = "".join(a + b for a, b in zip(parts, [*texts, ""]))
    found = [s for _, s in json.loads(hf.Tokenizer.from_str(whole).to_str())["model"]["vocab"]][1:]
    assert found == [read_score(t) for t in texts]
    assert 50 < sum(s != float(t) for s, t in zip(found, texts)) < 1000


def test_dashes_part_the_libraries_by_the_reading_of_scores_alone(hf, spm, shared_file):
    path = shared_file("vocab/t5-small/tokenizer.json")
    sp, tok = (
        spm.SentencePieceProcessor(model_file=str(shared_file("vocab/t5-small/spiece.model"))),
        hf.Tokenizer.from_file(str(path)),
    )
    theirs = sp.encode("-" * 7, out_type=str)
    assert tok.encode("-" * 7, add_special_tokens=False).tokens != theirs
    model = json.loads(path.read_text(encoding="utf-8"))["model"]  # Python reads scores exactly
    tok.model = hf.models.Unigram([(p, s) for p, s in model["vocab"]], model["unk_id"], False)
    assert tok.encode("-" * 7, add_special_tokens=False).tokens == theirs


# Training


def test_a_damaged_arrow_file_ends_a_process_that_believes_it(tmp_path):
    pytest.importorskip("pyarrow")
    code = (
        "import struct, sys, pyarrow as pa\n"
        "t, s = pa.table({'text': ['hug', 'pug', 'pun'] * 10}), pa.BufferOutputStream()\n"
        "with pa.ipc.new_file(s, t.schema) as w: w.write_table(t)\n"
        "b = bytearray(s.getvalue().to_pybytes()); at = b.find(struct.pack('<4i', 0, 3, 6, 9))\n"
        "b[at + 4:at + 12] = struct.pack('<2i', 2**30, 2**31 - 1)\n"
        "open(sys.argv[1], 'wb').write(b)\n"
        "pa.ipc.open_file(pa.memory_map(sys.argv[1])).get_batch(0)['text'][1].as_py()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "bad.arrow")], capture_output=True, text=True, timeout=900
    )
    assert done.returncode != 0 and "Traceback" not in done.stderr


def test_by_default_sentencepiece_puts_no_mark_for_spaces_at_the_edges_or_doubled(spm):
    models = [
        sp_trained(spm, ["hug pug bun"] * 20, vocab_size=12, **more)
        for more in ({}, {"remove_extra_whitespaces": False})
    ]
    found = [["".join(m.encode(t, out_type=str)) for t in ("  hug  pug ", "hug▁")] for m in models]
    assert found == [["▁hug▁pug", "▁hug"], ["▁▁▁hug▁▁pug▁", "▁hug▁"]]


def test_llama_2_has_marks_of_two_to_sixteen_with_the_lowest_score(spm, shared_file):
    sp = spm.SentencePieceProcessor(model_file=str(shared_file("vocab/llama-2/tokenizer.model")))
    runs = {sp.get_score(sp.piece_to_id("▁" * n)) for n in range(2, 17)}
    assert runs == {min(sp.get_score(i) for i in range(len(sp)))} and sp.is_unknown(sp.piece_to_id("▁" * 17))
    assert not sp.is_unknown(sp.piece_to_id("ß")) and sp.encode("ẞ", out_type=str)[1:] == [
        "<0xE1>",
        "<0xBA>",
        "<0x9E>",
    ]
    assert sp.decode(sp.encode("  a  b ")) == "  a  b "


def test_of_equal_scores_sentencepiece_s_bpe_joins_the_leftmost_first(spm):
    sp = sp_model(spm, [*((p, -5.0) for p in "abc"), ("ab", -1.0), ("bc", -1.0)], model_type=BPE)
    assert [sp.encode(t, out_type=str) for t in ("abc", "cabc")] == [["ab", "c"], ["c", "ab", "c"]]


def test_hf_s_map_takes_clusters_below_six_bytes_as_a_whole(hf):
    found = [
        hf.normalizers.Precompiled(build_charsmap({"e": "X"})).normalize_str("e" + "\u0301" * n)
        for n in range(4)
    ]
    assert found == ["X", "X", "X", "X\u0301\u0301\u0301"]
