"""The pages "Why does my … differ?".

What they say of other libraries, done by those libraries. A claim that a new version of a library makes wrong
fails here by its name.
"""

import inspect
import io
import json
import subprocess
import sys
from collections import Counter

import pytest
from peers import TOY, hf_file, hf_pieces, hf_split, hf_trained, sp_model, sp_scores, sp_trained, tiktoken_of

from subword_nb import Tokenizer
from subword_nb.bpe.reference import bpe_train_ref
from subword_nb.text.charsmap import build_charsmap
from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS
from subword_nb.corpus.counts import count_pretokens
from subword_nb.formats.sentencepiece_proto import BPE, CONTROL, USER_DEFINED
from subword_nb.unigram.seeds import seed_pieces_ref
from subword_nb.wordpiece.trainer import wordpiece_train

pytestmark = pytest.mark.peers


def bytes_of(hf):
    return hf.pre_tokenizers.ByteLevel(add_prefix_space=False)


def learned(spm, lines, shortest=1, **options):
    "Pieces that SentencePiece learns from lines, by their ids."
    return [p for p in sp_scores(sp_trained(spm, lines, **options)) if len(p) >= shortest]


def splits(tok, texts):
    return [tok.encode(t).tokens for t in texts]


# BPE


def test_ties_go_to_the_smallest_ids_in_hugging_face_and_by_other_rules_in_sentencepiece(hf, spm):
    counts = count_pretokens(COURSE_CORPUS, "metaspace")
    ours = {
        rule: ["".join(m) for m in bpe_train_ref(counts, 60, tie_break=rule).merges]
        for rule in ("ids", "first", "bytes")
    }
    theirs = hf_trained(hf, "BPE", COURSE_CORPUS, hf.pre_tokenizers.Metaspace(), vocab_size=60)
    assert ours["ids"] == hf_pieces(theirs)[-len(ours["ids"]) :]
    found = learned(spm, COURSE_CORPUS, model_type="bpe", shortest=2)[: len(ours["ids"])]
    assert found[:7] == ours["ids"][:7] and found not in list(ours.values())
    assert [rule[7:11] for rule in (found, ours["ids"])] == [
        ["nd", "ou", "se", "ken"],
        ["ken", "nd", "ou", "se"],
    ]  # all of them occur twice


def test_hugging_face_starts_from_the_bytes_of_the_corpus(hf):
    tok = hf_trained(hf, "BPE", ["the hug"], bytes_of(hf))
    assert splits(tok, ["漢字", "hux漢"]) == [[], ["hu"]]
    full = hf_trained(
        hf, "BPE", ["the hug"], bytes_of(hf), initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet()
    )
    full.decoder = hf.decoders.ByteLevel()
    assert (
        full.get_vocab_size() >= 256
        and full.decode(full.encode("漢字").ids) == "漢字"
        and len(full.encode("漢字").ids) == 6
    )


def test_min_frequency_is_0_in_hugging_faces_trainer_and_2_in_its_ready_made_ones(hf):
    assert (hf.trainers.BpeTrainer().min_frequency, hf.trainers.WordPieceTrainer().min_frequency) == (0, 0)
    ready = hf.implementations
    assert [
        inspect.signature(c.train).parameters["min_frequency"].default
        for c in (ready.ByteLevelBPETokenizer, ready.BertWordPieceTokenizer)
    ] == [2, 2]
    assert inspect.signature(ready.BertWordPieceTokenizer.train).parameters["limit_alphabet"].default == 1000
    assert len(hf_pieces(hf_trained(hf, "BPE", ["ab"]))) == 3  # what occurs once is merged


def test_subword_nmt_is_asked_for_merges_and_the_others_for_pieces(hf, spm):
    learn, codes = pytest.importorskip("subword_nmt.learn_bpe"), io.StringIO()
    words = TOY
    learn.learn_bpe(io.StringIO("\n".join(words)), codes, 3)
    assert len(codes.getvalue().splitlines()) == 1 + 3
    assert hf_trained(hf, "BPE", words, vocab_size=9, special_tokens=["<s>"]).get_vocab_size() == 9
    assert len(sp_trained(spm, words, model_type="bpe", vocab_size=14)) == 14


def test_hugging_face_reads_a_file_by_lines_and_a_list_by_texts(hf, tmp_path):
    text = "а\n\nб\n\nв\n\n" * 4
    (tmp_path / "text").write_text(text, encoding="utf-8")
    cut = hf.pre_tokenizers.Split(hf.Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\s*[\r\n]+|\s+"), "isolated")
    tok = hf.Tokenizer(hf.models.BPE())
    tok.pre_tokenizer = hf.pre_tokenizers.Sequence([cut, bytes_of(hf)])
    trainer = hf.trainers.BpeTrainer(
        vocab_size=257, initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tok.train([str(tmp_path / "text")], trainer)
    first = hf_pieces(tok)[256]
    tok.train_from_iterator([text], trainer)
    assert (first, hf_pieces(tok)[256]) == ("Ð°", "ĊĊ")


def test_hugging_faces_longest_piece_is_shorter_than_its_limit_but_for_pairs_of_characters(hf):
    longest = [
        max(map(len, hf_pieces(hf_trained(hf, "BPE", ["при"] * 5, max_token_length=n)))) for n in (1, 2, 3, 4)
    ]
    assert longest == [2, 2, 2, 3]
    assert (
        max(map(len, hf_pieces(hf_trained(hf, "BPE", ["abcdefgh"] * 5, max_token_length=4))))
        <= 3
        < max(map(len, hf_pieces(hf_trained(hf, "BPE", ["abcdefgh"] * 5, max_token_length=5))))
    )


def test_tiktoken_drops_what_a_pattern_does_not_match_and_hugging_faces_split_keeps_it(hf, tiktoken):
    peer = tiktoken_of(tiktoken, r"\p{L}+")
    assert bytes(peer.encode_ordinary("a1b")) == b"ab"
    assert hf_split(hf, r"\p{L}+", "a1b") == ["a", "1", "b"]


def test_letters_are_those_of_unicode_16_in_both(hf, tiktoken):
    peer = tiktoken_of(tiktoken, r"\p{L}")
    assert [bool(peer.encode_ordinary(c)) for c in "\u0416\u1c89\ua7ce\x1c"] == [True, True, False, False]
    assert [len(hf_split(hf, r"\p{L}+", "a" + c)) for c in "\u0416\u1c89\ua7ce"] == [1, 1, 2]


def test_byte_level_puts_a_space_in_front_unless_told_otherwise(hf):
    assert [
        [p for p, _ in hf.pre_tokenizers.ByteLevel(**o).pre_tokenize_str("the")]
        for o in ({}, {"add_prefix_space": False})
    ] == [["Ġthe"], ["the"]]


def test_tiktoken_takes_a_pretoken_that_is_a_piece_as_it_is(hf, tiktoken):
    assert tiktoken_of(tiktoken, r"\w+", [b"ug", b"pugs"]).encode_ordinary("pugs") == [257]
    vocab = {p: i for i, p in enumerate(["p", "u", "g", "s", "ug", "pugs"])}
    assert [
        hf.Tokenizer(hf.models.BPE(vocab, [("u", "g")], ignore_merges=flag)).encode("pugs").tokens
        for flag in (False, True)
    ] == [["p", "ug", "s"], ["pugs"]]


def test_hugging_face_merges_by_the_list_and_tiktoken_by_ids(hf, tiktoken):
    vocab = {p: i for i, p in enumerate(["h", "u", "g", "s", "p", "n", "b", "un", "hug", "ug", "hu"])}
    assert hf.Tokenizer(hf.models.BPE(vocab, [("h", "u"), ("u", "n")])).encode("hun").tokens == ["hu", "n"]
    peer = tiktoken.Encoding(
        "toy",
        pat_str=r"\w+",
        mergeable_ranks={p.encode(): i for p, i in vocab.items()}
        | {bytes([b]): 20 + b for b in range(256) if chr(b) not in vocab},
        special_tokens={},
    )
    assert [peer.decode([i]) for i in peer.encode_ordinary("hun")] == ["h", "un"]


def test_characters_without_a_piece_in_hugging_faces_bpe(hf):
    vocab = {p: i for i, p in enumerate(["<unk>", "h", "u", "g"])}
    found = [
        hf.Tokenizer(hf.models.BPE(vocab, [], **o)).encode("hяжug").tokens
        for o in ({}, {"unk_token": "<unk>"}, {"unk_token": "<unk>", "fuse_unk": True})
    ]
    assert found == [["h", "u", "g"], ["h", "<unk>", "<unk>", "u", "g"], ["h", "<unk>", "u", "g"]]
    part = {p: i for i, p in enumerate(["<unk>", "h", "u", "g", "<0xD0>", "<0xB9>"])}
    assert hf.Tokenizer(hf.models.BPE(part, [], unk_token="<unk>", byte_fallback=True)).encode(
        "hяйu"
    ).tokens == ["h", "<0xD0>", "<0xB9>", "<unk>", "u"]  # я stood before й


def test_spellings_of_special_tokens_are_the_token_in_hugging_face_and_an_error_in_tiktoken(hf, tiktoken):
    tok = hf_trained(hf, "BPE", COURSE_CORPUS, bytes_of(hf), special_tokens=["<|endoftext|>"])
    assert tok.encode("is<|endoftext|>").tokens[-1] == "<|endoftext|>"
    peer = tiktoken_of(tiktoken, r"(?s).", special={"<|endoftext|>": 256})
    with pytest.raises(ValueError, match="disallowed special token"):
        peer.encode("is<|endoftext|>")


def test_sentencepieces_bpe_joins_by_score_and_subword_nmt_in_rounds(spm, apply_bpe):
    pieces = [("▁", -9), ("你", -9), ("好", -9), ("们", -9), ("你好", -2), ("好们", -1)]
    assert sp_model(spm, pieces, model_type=BPE).encode("▁你好们", out_type=str)[-2:] == ["你", "好们"]
    codes = "#version: 0.2\naa a\na a\n"
    assert apply_bpe.BPE(io.StringIO(codes)).segment("aaaab") == "aa@@ aa@@ b"
    without = apply_bpe.BPE(io.StringIO("a b</w>\n")), apply_bpe.BPE(io.StringIO("#version: 0.2\na b</w>\n"))
    assert [peer.segment("ab") for peer in without] == [
        "a@@ b",
        "ab",
    ]  # without the first line the end is a symbol of its own


def test_dropout_works_in_use_too_and_subword_nmt_remembers_it(hf, apply_bpe):
    tok = hf_trained(hf, "BPE", COURSE_CORPUS, bytes_of(hf))
    tok.model.dropout = 0.5
    assert len({tuple(tok.encode(" tokenization").ids) for _ in range(30)}) > 1
    peer = apply_bpe.BPE(io.StringIO("#version: 0.2\na a\naa a</w>\n"))
    peer.segment("aaa", dropout=1)
    assert peer.segment("aaa") == "a@@ a@@ a"


@pytest.mark.slow
def test_a_hash_table_decides_at_the_border_of_hugging_faces_alphabet_and_in_its_wordpiece_trainer(hf):
    code = (
        "import json; from tokenizers import Tokenizer, models, trainers, pre_tokenizers as p\n"
        "def run(m, t, x): k = Tokenizer(m); k.pre_tokenizer = p.WhitespaceSplit(); "
        "k.train_from_iterator([x], t); return sorted(k.get_vocab(), key=k.get_vocab().get)\n"
        "many = ''.join(map(chr, range(0x4e00, 0x4e40))); words = ' '.join(many[k:k + 3] for k in range(60))\n"
        "print(json.dumps([run(models.BPE(), trainers.BpeTrainer(limit_alphabet=5, vocab_size=5, "
        "show_progress=False), many), run(models.WordPiece(), trainers.WordPieceTrainer(vocab_size=200, "
        "show_progress=False), words)]))"
    )
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=True,
                timeout=900,
            ).stdout
        )
        for _ in range(6)
    ]
    assert [len({tuple(r[k]) for r in runs}) > 1 for k in (0, 1)] == [True, True]


# WordPiece


def test_hugging_faces_wordpiece_trainer_merges_by_frequency_and_gives_each_letter_both_forms(hf):
    trained = hf_trained(hf, "WordPiece", TOY, hf.pre_tokenizers.BertPreTokenizer(), vocab_size=15)
    assert "##ug" in hf_pieces(trained) and "##gs" not in hf_pieces(trained)
    assert [
        r.merges[0]
        for r in (
            wordpiece_train(TOY_COUNTS, 15, objective=o, tie_break="first") for o in ("score", "frequency")
        )
    ] == [("##g", "##s"), ("##u", "##g")]
    sound = hf_trained(
        hf,
        "WordPiece",
        ["сон"] * 3 + ["нос"] * 2,
        hf.pre_tokenizers.BertPreTokenizer(),
        vocab_size=7,
        special_tokens=["[UNK]"],
    )
    assert sorted(hf_pieces(sound)) == sorted(
        wordpiece_train({"сон": 3, "нос": 2}, 7, special_tokens=["[UNK]"], objective="frequency").pieces
    )


def test_hugging_faces_bert_normalizer_by_single_letters_and_an_old_table_of_marks(hf):
    uncased = hf.normalizers.BertNormalizer()
    assert uncased.normalize_str("ΣΑΣ") == "σασ"
    assert [uncased.normalize_str(w) for w in ("Ёлка", "мой", "café", "שָׁלוֹם")] == [
        "елка",
        "мои",
        "cafe",
        "שלום",
    ]
    assert hf.normalizers.BertNormalizer(strip_accents=False).normalize_str("Ёлка мой") == "ёлка мой"
    assert [len(uncased.normalize_str("a" + mark)) for mark in ("\u08e3", "\U0001e944")] == [
        1,
        2,
    ]  # of Unicode 8.0 and 9.0
    assert len(uncased.normalize_str("한국")) == 6
    assert [uncased.normalize_str(c) for c in ("中", "\U0002b820", "\U0002b91f", "\U0002b920", "か")] == [
        " 中 ",
        "\U0002b820",
        "\U0002b91f",
        " \U0002b920 ",
        "か",
    ]


def test_a_word_is_unknown_as_a_whole_and_beyond_100_characters(hf):
    toy = {
        p: i for i, p in enumerate(["[UNK]", "b", "h", "p", "##g", "##n", "##s", "##u", "##gs", "hu", "hug"])
    }
    tok = hf.Tokenizer(hf.models.WordPiece(toy, unk_token="[UNK]"))
    assert splits(tok, ["bugs", "mug", "bum"]) == [["b", "##u", "##gs"], ["[UNK]"], ["[UNK]"]]
    assert [tok.encode("hu" + "g" * n).tokens == ["[UNK]"] for n in (98, 99)] == [False, True]


def test_hugging_faces_wordpiece_decoder_takes_spaces_back_piece_by_piece(hf):
    pieces = ["don", "'", "t", "stop", ",", "hug", "##s", "。"]
    assert [hf.decoders.WordPiece(cleanup=c).decode(pieces) for c in (True, False)] == [
        "don ' t stop, hugs 。",
        "don ' t stop , hugs 。",
    ]
    assert hf.decoders.WordPiece().decode(["do", "n't"]) == "don't"


# Unigram


def test_spaces_in_front_and_inside(hf, spm):
    component = hf.pre_tokenizers.Metaspace()
    assert [[p for p, _ in component.pre_tokenize_str(t)] for t in ("hug", " hug", "  拥抱")] == [
        ["▁hug"],
        ["▁hug"],
        ["▁", "▁拥抱"],
    ]
    sp = sp_model(spm, [(c, -1) for c in "▁hug拥抱"])  # whose normalizer puts nothing in front
    assert sp.encode("▁hug", out_type=str) == [*"▁hug"]
    usual = sp_trained(spm, ["hug hug\thug"] * 3)
    assert ["".join(usual.encode(t, out_type=str)) for t in ("hug", " hug", " hug\t hug\n hug ")] == [
        "▁hug",
        "▁hug",
        "▁hug▁hug▁hug",
    ]
    kept = sp_trained(spm, ["hug hug\thug"] * 3, remove_extra_whitespaces=False)
    assert ["".join(kept.encode(t, out_type=str)) for t in ("hug", " hug")] == ["▁hug", "▁▁hug"]


def test_unknown_pieces_and_written_marks_in_decoded_texts(hf, spm):
    sp = sp_trained(spm, ["the course of the chapter, the token"] * 5, vocab_size=40)
    assert sp.decode(sp.encode("the ё")) == "the  ⁇ "
    tok = hf.Tokenizer(hf.models.Unigram([("<unk>", 0.0), ("▁", -1.0), ("hug", -1.0)], 0, False))
    tok.pre_tokenizer, tok.decoder = hf.pre_tokenizers.Metaspace(), hf.decoders.Metaspace()
    tok.add_special_tokens(["<unk>"])
    ids = tok.encode("hug ё").ids
    assert (tok.decode(ids, skip_special_tokens=False), tok.decode(ids)) == ("hug <unk>", "hug ")
    assert sp.decode(sp.encode("the▁the")) == "the the" and tok.decode(tok.encode("hug▁hug").ids) == "hug hug"


def test_the_longest_key_in_sentencepiece_and_the_shortest_in_hugging_face(hf, spm, tmp_path):
    text = "и\u0306 и"
    (tmp_path / "rules.tsv").write_text("0438\t0049\n0438 0306\t004A\n", encoding="utf-8")
    assert spm.SentencePieceNormalizer(rule_tsv=str(tmp_path / "rules.tsv")).normalize(text) == "▁J▁I"
    assert hf.normalizers.Precompiled(build_charsmap({"и": "I", "и\u0306": "J"})).normalize_str(text) == "I I"


def test_of_equal_splits_both_take_the_longest_last_piece(hf, spm):
    pieces = [("<unk>", 0.0), ("a", -1.0), ("aa", -2.0)]
    assert hf.Tokenizer(hf.models.Unigram(pieces, 0, False)).encode("aaaa").tokens == ["aa", "aa"]
    assert hf.Tokenizer(hf.models.Unigram(pieces, 0, False)).encode("aaa").tokens == ["a", "aa"]
    sp = sp_model(spm, pieces[1:])
    assert [sp.encode(t, out_type=str) for t in ("aaaa", "aaa")] == [["aa", "aa"], ["a", "aa"]]


def test_hugging_face_may_read_the_neighbour_of_a_score(hf):
    def back(score):
        model = {
            "type": "Unigram",
            "unk_id": 0,
            "vocab": [["<unk>", 0.0], ["a", "SCORE"]],
            "byte_fallback": False,
        }
        return json.loads(
            hf.Tokenizer.from_str(json.dumps(hf_file(model)).replace('"SCORE"', score)).to_str()
        )["model"]["vocab"][1][1]

    assert [
        back(s) == float(s) for s in ("-5.129043102264404", "-2.0122928619384766", "-12.130167007446289")
    ] == [True, False, False]


def test_sums_of_32_bits_forget_in_sentencepiece_and_not_in_hugging_face(hf, spm):
    scores = [("<unk>", 0.0), ("很", -1000.0), ("x", -1.0), ("y", -1.0), ("xy", -2.001)]
    sp = sp_model(spm, scores[1:])
    assert [len(sp.encode("很" * n + "xy")) - n for n in (0, 32, 33, 60)] == [2, 2, 1, 1]
    tok = hf.Tokenizer(hf.models.Unigram(scores, 0, False))
    assert [len(tok.encode("很" * n + "xy").ids) - n for n in (0, 32, 33, 60)] == [2, 2, 2, 2]


@pytest.mark.parametrize("cost, unknown", [(-24.0, True), (-20.0, False)])
def test_an_unknown_character_costs_ten_nats_more_than_the_worst_piece_in_all(hf, spm, cost, unknown):
    pieces = [
        ("<unk>", 0.0),
        ("ку", cost / 2),
        ("т", cost / 2),
        ("ут", -1.0),
    ]  # an unknown к costs cost/2 − 10, and ут one more, against cost
    sp = sp_model(spm, pieces[1:])
    assert (
        0 in sp.encode("кут"),
        0 in hf.Tokenizer(hf.models.Unigram(pieces, 0, False)).encode("кут").ids,
    ) == (unknown, unknown)


def test_neighbours_that_are_unknown_become_one(hf, spm):
    pieces = [("<unk>", 0.0), ("h", -3.0), ("u", -3.0), ("hu", -2.0)]
    sp = sp_model(spm, pieces[1:])
    tok = hf.Tokenizer(hf.models.Unigram(pieces, 0, False))
    assert sp.encode("huём") == tok.encode("huём").ids == [3, 0]
    tok.pre_tokenizer = hf.pre_tokenizers.Metaspace(prepend_scheme="never")
    assert (sp.encode("huё▁мhu"), tok.encode("huё мhu").ids) == ([3, 0, 3], [3, 0, 0, 3])  # words one by one


def test_control_pieces_are_never_matched_in_sentencepiece(hf, spm):
    letters = [("<", -5.0), ("s", -5.0), (">", -5.0)]
    assert sp_model(spm, [("<s>", 0.0, CONTROL), *letters]).encode("<s>") == [2, 3, 4]
    assert hf.Tokenizer(hf.models.Unigram([("<unk>", 0.0), ("<s>", 0.0), *letters], 0, False)).encode(
        "<s>"
    ).ids == [1]


def test_user_defined_pieces_win_against_their_parts_but_for_lists_of_best_splits(spm):
    sp = sp_model(
        spm, [("上海", -9.0, USER_DEFINED), ("市上", -0.5), ("海", -0.5), ("上", -3.0), ("市", -4.0)]
    )
    assert [sp.encode(t, out_type=str) for t in ("上海", "市上海")] == [["上海"], ["市上", "海"]]
    for part, whole in (
        (0.24, True),
        (0.26, False),
    ):  # 上海 has six bytes: 0.1 · (6 − 1) in encode, against two parts
        sp = sp_model(spm, [("上海", -9.0, USER_DEFINED), ("上", part), ("海", part)])
        assert (len(sp.encode("上海")) == 1) == whole
        assert len(sp.nbest_encode("上海", nbest_size=2)[0]) == 2  # two characters: 0.1 · (2 − 1)


def test_seeds_are_counted_by_occurrence_in_sentencepiece_and_by_word_in_hugging_face(hf, spm):
    texts = ["кот кот"] * 15 + ["мир"] * 40 + ["мира"]
    assert {"▁мир", "▁кот"} <= {*learned(spm, texts, character_coverage=1.0, shortest=2)}
    theirs = hf_pieces(
        hf_trained(
            hf, "Unigram", texts, hf.pre_tokenizers.Metaspace(), unk_token="<unk>", special_tokens=["<unk>"]
        )
    )
    assert "▁мир" in theirs and "▁кот" not in theirs
    assert {"▁мир", "▁кот"} <= {*seed_pieces_ref(count_pretokens(texts, "metaspace"), seed_size=100)}


def test_the_end_of_a_line_is_one_character_of_those_that_follow_a_seed(spm):
    alone = ["кот"] * 30 + ["мир"] * 40 + ["мира"]
    assert {p for p in ("▁мир", "▁кот") if p in learned(spm, alone, character_coverage=1.0, shortest=2)} == {
        "▁мир"
    }
    assert {"▁мир", "▁кот"} <= {*seed_pieces_ref(count_pretokens(alone, "metaspace"), seed_size=100)}


def test_sentencepieces_seeds_are_followed_by_different_characters(spm):
    long = learned(spm, ["мирный", "мирно"] + ["кот"] * 3, character_coverage=1.0, shortest=2)
    assert "▁мирн" in long and not {"▁мир", "▁ми", "ми"} & {*long}
    assert {"▁мирн", "▁мир", "ми"} <= {
        *seed_pieces_ref(count_pretokens(["мирный", "мирно"], "metaspace"), seed_size=100)
    }


def test_defaults_of_sentencepieces_trainer(spm, capfd):
    sp_trained(spm, ["мир"] * 5, minloglevel=0)
    said = {
        k: v for k, _, v in (line.strip().partition(": ") for line in capfd.readouterr().err.splitlines())
    }
    assert {
        k: said[k]
        for k in (
            "character_coverage",
            "shrinking_factor",
            "num_sub_iterations",
            "max_sentence_length",
            "split_by_unicode_script",
            "split_by_number",
        )
    } == {
        "character_coverage": "0.9995",
        "shrinking_factor": "0.75",
        "num_sub_iterations": "2",
        "max_sentence_length": "4192",
        "split_by_unicode_script": "1",
        "split_by_number": "1",
    }


def test_what_sentencepieces_trainer_leaves_out(spm):
    rare = ["的"] * 9000 + ["是"] * 999 + ["龘"]
    assert [("龘" in learned(spm, rare, **o)) for o in ({}, {"character_coverage": 1.0})] == [False, True]
    assert [
        [c in learned(spm, ["мир мир"] * 5 + ["ж" * n], character_coverage=1.0) for c in "мж"]
        for n in (2000, 3000)
    ] == [[True, True], [True, False]]  # 4,000 and 6,000 bytes
    mixed = ["вiPhone15"] * 4
    assert not [
        p
        for p in learned(spm, mixed, shortest=2)
        if p.strip("▁")[0] == "в" and len(p.strip("▁")) > 1 or "e1" in p
    ]
    assert "▁вiPhone15" in learned(spm, mixed, split_by_unicode_script=False, split_by_number=False)


def test_sentencepiece_stops_where_candidates_are_too_few(spm):
    with pytest.raises(RuntimeError, match="Vocabulary size too high"):
        sp_trained(spm, ["мы мыли раму"] * 3, vocab_size=500, hard_vocab_limit=True)
    assert len(sp_trained(spm, ["мы мыли раму"] * 3, vocab_size=500)) < 500


def test_samples_are_drawn_by_the_same_law_in_sentencepiece(spm, tmp_path):
    tok = Tokenizer.train(COURSE_CORPUS, algorithm="unigram", vocab_size=60)
    tok.save(tmp_path / "uni.model")
    sp = spm.SentencePieceProcessor(model_file=str(tmp_path / "uni.model"))
    ours = Counter(
        tuple(tok.id2piece[i] for i in tok.sample("the", alpha=0.3, seed=k).ids) for k in range(2000)
    )
    theirs = Counter(
        tuple(sp.encode("the", out_type=str, enable_sampling=True, alpha=0.3, nbest_size=-1))
        for _ in range(2000)
    )
    assert {p for p, n in theirs.items() if n > 60} <= {*ours}
    assert all(abs(ours[p] - theirs[p]) < 200 for p in ours | theirs)
