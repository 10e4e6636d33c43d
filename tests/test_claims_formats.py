"""What the pages about files say of other libraries, run against those libraries.

One test for each statement, or for a few that belong together.
"""

import io
import json
import random
import struct

import pytest
from peers import PLAIN, hf_bpe, hf_file, sp_file, sp_loaded, sp_model, tiktoken_of

from subword_nb.text.charsmap import build_charsmap
from subword_nb.formats.huggingface import parts_from_dict, parts_to_dict
from subword_nb.pipeline.parts import Parts
from subword_nb.text.pretokenizers import pretokenizer
from subword_nb.formats.sentencepiece_proto import (
    BYTE,
    CONTROL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    ModelProto,
    Piece,
    read_model_proto,
    write_model_proto,
    write_varint,
)
from subword_nb.formats.tiktoken import parts_to_ranks
from subword_nb.unigram.model import Unigram
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.wordpiece.wordlevel import WordLevel
from subword_nb.wordpiece.model import WordPiece

pytestmark = pytest.mark.peers
BPE = hf_bpe({"u": 0, "g": 1, "ug": 2}, [["u", "g"]])
UNIGRAM = {"type": "Unigram", "unk_id": None, "vocab": [["u", -1.5], ["g", -2.0]], "byte_fallback": False}
TOKEN = {
    "id": 9,
    "content": "<s>",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
}


def in_hf(hf, model: dict, **parts):
    return hf.Tokenizer.from_str(json.dumps(hf_file(model, **parts)))


# Hugging Face's library


def test_hf_bpe_leaves_out_what_is_unknown_to_null_and_refuses_it_for_a_name_without_a_piece(hf):
    assert in_hf(hf, BPE).encode("ux").tokens == ["u"]
    with pytest.raises(Exception, match="not found in the vocabulary"):
        in_hf(hf, BPE | {"unk_token": "<no>"}).encode("ux")


def test_hf_unigram_makes_an_error_of_null(hf):
    with pytest.raises(Exception, match="unk_id"):
        in_hf(hf, UNIGRAM).encode("ux")


@pytest.mark.parametrize(
    "model",
    [
        {"type": "WordLevel", "vocab": {"u": 0}},
        {
            "type": "WordPiece",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 9,
            "vocab": {"u": 0},
        },
    ],
)
def test_hf_words_need_the_name_of_an_unknown_piece(hf, model):
    with pytest.raises(Exception, match="null"):
        in_hf(hf, model | {"unk_token": None})


@pytest.mark.parametrize(
    "model",
    [WordPiece({"[UNK]": 0}), WordLevel({"<unk>": 0}), Unigram({"<unk>": 0, "a": 1}, [0.0, -1.0], "<unk>")],
    ids=lambda m: type(m).__name__,
)
def test_hf_writes_its_keys_in_the_order_of_ours(hf, model):
    ours = parts_to_dict(
        Parts(model, pretokenizer(None), added_tokens=((AddedToken("<s>"), len(model.piece2id)),))
    )
    theirs = json.loads(hf.Tokenizer.from_str(json.dumps(ours)).to_str())
    assert [list(d) for d in (ours, ours["model"], ours["added_tokens"][0])] == [
        list(d) for d in (theirs, theirs["model"], theirs["added_tokens"][0])
    ]


def test_hf_writes_bpe_with_keys_in_this_order_and_merges_as_pairs(hf):
    found = json.loads(in_hf(hf, BPE | {"merges": ["u g"]}).to_str())["model"]
    assert list(found) == list(BPE) and found["merges"] == [["u", "g"]]


@pytest.mark.parametrize("name", TOKEN)
def test_hf_asks_for_every_option_of_an_added_token(hf, name):
    with pytest.raises(Exception, match=f"missing field `{name}`"):
        in_hf(hf, BPE, added_tokens=[{k: v for k, v in TOKEN.items() if k != name}])


def test_hf_gives_a_token_that_is_listed_twice_its_first_place_and_its_last_flags(hf):
    tok = in_hf(
        hf,
        BPE,
        added_tokens=[TOKEN, TOKEN | {"content": "<t>"}, TOKEN | {"rstrip": True}, TOKEN | {"content": ""}],
    )
    assert {i: (t.content, t.rstrip) for i, t in tok.get_added_tokens_decoder().items()} == {
        3: ("<s>", True),
        4: ("<t>", False),
    }


def test_hf_unigram_fuses_unknown_characters_and_matches_the_spelling_of_a_byte(hf):
    tok = in_hf(hf, UNIGRAM | {"unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["<0x41>", -1.0]]})
    assert [tok.encode(t).ids for t in ("axyza", "<0x41>")] == [[1, 0, 1], [2]]


@pytest.mark.parametrize("fuse", [False, True])
def test_hf_puts_bytes_before_an_unknown_character_that_stands_before_them(hf, fuse):
    vocab = {p: i for i, p in enumerate(["<unk>", "h", "u", "<0xD0>", "<0xB9>"])}
    tok = in_hf(
        hf,
        BPE | {"vocab": vocab, "merges": [], "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": fuse},
    )
    assert tok.encode("hяйu").tokens == ["h", "<0xD0>", "<0xB9>", "<unk>", "u"]


def test_hf_unigram_without_an_unknown_piece_uses_neither_bytes_nor_longer_pieces_for_a_character(hf):
    tok = in_hf(
        hf,
        UNIGRAM
        | {
            "vocab": [[f"<0x{b:02X}>", -5.0] for b in range(256)] + [["a", -1.0], ["bc", -1.0]],
            "byte_fallback": True,
        },
    )
    for text in ("aé", "bc"):
        with pytest.raises(Exception, match="unk_id"):
            tok.encode(text)
    spelled = in_hf(
        hf,
        BPE
        | {
            "vocab": {f"<0x{b:02X}>": b for b in range(256)} | {"a": 256},
            "merges": [],
            "byte_fallback": True,
        },
    )
    assert spelled.encode("aé").tokens == ["a", "<0xC3>", "<0xA9>"], "BPE does use bytes"


def test_hf_looks_for_special_tokens_in_the_text_as_it_is_unless_told_otherwise(hf):
    assert [hf.AddedToken("x").normalized, hf.AddedToken("x", special=True).normalized] == [True, False]


def test_hf_decodes_a_normalized_token_as_it_is_normalized_and_does_not_skip_it(hf):
    tok = hf.Tokenizer(hf.models.WordLevel({"pug": 0, "<unk>": 1}, "<unk>"))
    tok.normalizer, tok.decoder = hf.normalizers.Lowercase(), hf.decoders.Fuse()
    tok.add_tokens([hf.AddedToken("Pug!", normalized=True)])
    tok.add_special_tokens([hf.AddedToken("<S>", normalized=True)])
    assert tok.decode([0, 2, 3], skip_special_tokens=True) == "pugpug!<s>"


def test_hf_metaspace_puts_a_mark_before_a_text_unless_there_is_one_or_a_space(hf):
    split = hf.pre_tokenizers.Metaspace().pre_tokenize_str
    assert [[p for p, _ in split(t)] for t in ("hug", " hug", "▁hug", "hug  pug")] == [["▁hug"]] * 3 + [
        ["▁hug", "▁", "▁pug"]
    ]


@pytest.mark.parametrize("steps", [(True, True), (True, False), (False, True), (False, False)])
def test_hf_steps_normalize_as_sentencepiece_does(hf, spm, steps):
    n, (remove, prefix), rng = hf.normalizers, steps, random.Random(0)
    there = sp_model(
        spm, [Piece("a", -1.0)], {"add_dummy_prefix": prefix, "remove_extra_whitespaces": remove}
    )
    runs = [n.Replace(hf.Regex(p), new) for p, new in ((r"\A +", ""), (" {2,}", " "), (r"[ ▁]+\z", ""))]
    here = n.Sequence(runs * remove + [n.Prepend("▁")] * prefix + [n.Replace(" ", "▁")])
    for _ in range(400):
        text = "".join(rng.choices("a  ▁\nb\t", k=rng.randrange(9)))
        assert here.normalize_str(text) == there.normalize(text), text


def test_hf_reads_a_caret_as_the_beginning_of_a_line(hf):
    assert [hf.normalizers.Replace(hf.Regex(p), "").normalize_str("a\n b") for p in ("^ +", r"\A +")] == [
        "a\nb",
        "a\n b",
    ]


def test_hf_replaces_a_cluster_by_its_shortest_key_and_sentencepiece_by_the_longest(hf, spm):
    blob, texts = build_charsmap({"ab": "X", "a": "Y", "e\u0301": "é", "e": "E"}), ("ab", "e\u0301")
    here, there = (
        hf.normalizers.Precompiled(blob),
        sp_model(spm, [Piece("a", -1.0)], {"precompiled_charsmap": blob, "add_dummy_prefix": False}),
    )
    assert [[f(t) for t in texts] for f in (here.normalize_str, there.normalize)] == [["Yb", "E"], ["X", "é"]]


def test_hf_strip_drops_white_space_that_sentencepiece_keeps(hf, spm):
    assert hf.normalizers.Strip().normalize_str("\u00a0a\t") == "a"
    assert (
        sp_model(spm, [Piece("a", -1.0)], {"add_dummy_prefix": False}).normalize("\u00a0a\t") == "\u00a0a\t"
    )


def test_hf_trains_byte_level_bpe_whose_ids_are_ranks(hf):
    rng = random.Random(0)
    for k in range(12):
        tok = hf.ByteLevelBPETokenizer()
        texts = [
            "".join(rng.choices(rng.choice(["ab", "abc ", "aab b"]), k=rng.randrange(5, 60)))
            for _ in range(30)
        ]
        tok.train_from_iterator(
            texts,
            vocab_size=270 + 10 * k,
            min_frequency=1,
            show_progress=False,
            special_tokens=["<s>"] * (k % 2),
        )
        assert len(parts_to_ranks(parts_from_dict(json.loads(tok.to_str())))[0]) > 256


# tiktoken


def encoding(tiktoken, special=None, tokens=()):
    "An encoding with a few tokens behind the bytes."
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
    return tiktoken_of(tiktoken, pattern, tokens, special)


def test_tiktoken_joins_surrogates_and_replaces_lone_ones(tiktoken):
    assert [encoding(tiktoken).encode_ordinary(t) for t in ("\ud83d", "\ud83d\ude00")] == [
        [*"\ufffd".encode()],
        [*"😀".encode()],
    ]


def test_tiktoken_is_not_as_stable_as_it_says(tiktoken):
    e = encoding(tiktoken, {"<|end|>": 258}, [b"he", b"'ll"])
    assert (e.encode_with_unstable("he'l")[0], e.encode("he'll")) == ([256, 39], [256, 257])
    assert [258] not in e.encode_with_unstable("<|en", allowed_special="all")[1]


def test_tiktoken_finds_the_shorter_or_the_longer_of_tokens_that_begin_alike(tiktoken):
    rng = random.Random(1)
    names = ["<" + "".join(rng.choices("abcdef", k=4)) for _ in range(40)]
    assert {
        len(encoding(tiktoken, {n: 256, n + "x": 257}).encode(n + "x", allowed_special="all")) for n in names
    } == {1, 2}


def test_tiktoken_keeps_a_file_by_the_hash_of_its_address_and_fetches_a_damaged_one_again(
    tiktoken, tmp_path, monkeypatch
):
    import hashlib

    from tiktoken import load

    asked = []
    monkeypatch.setattr(load, "read_file", lambda address: asked.append(address) or b"YQ== 0\n")
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        load.read_file_cached("https://example.org/x", hashlib.sha256(b"YQ== 0\n").hexdigest())
    kept = tmp_path / hashlib.sha1(b"https://example.org/x").hexdigest()
    assert kept.read_bytes() == b"YQ== 0\n" and len(asked) == 1 and not (tmp_path / "other").exists()
    kept.write_bytes(b"damaged")
    assert (
        load.read_file_cached("https://example.org/x", hashlib.sha256(b"YQ== 0\n").hexdigest()) == b"YQ== 0\n"
        and len(asked) == 2
    )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    load.read_file_cached("https://example.org/x", None)
    assert len(asked) == 3, "an empty name stands for no folder"


# SentencePiece


UNK, START = Piece("<unk>", 0.0, UNKNOWN), Piece("<s>", 0.0, CONTROL)
ALL_BYTES = [Piece(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]


def split(m, text):
    return m.encode(text, out_type=str)


def scored(spm, *pairs, kind="unigram", **named):
    return sp_model(
        spm, [Piece(p, s, named.get(p, 1)) for p, s in pairs], model_type=1 if kind == "unigram" else 2
    )


def test_sentencepiece_keeps_the_first_of_a_tie_in_32_bits(spm):
    assert split(scored(spm, ("a", -0.1), ("b", -0.2), ("ab", -0.3)), "ab") == ["ab"]


def test_sentencepiece_rounds_a_lead_of_a_thousandth_away_after_33_thousand_nats(spm):
    m = scored(spm, ("z", -1000.0), ("x", -1.0), ("y", -1.0), ("xy", -2.001))
    assert next(n for n in range(60) if len(m.encode("z" * n + "xy")) == n + 1) == 33


def test_sentencepiece_scores_a_user_defined_piece_by_its_bytes(spm):
    for text, pays in (("ab", 0.1), ("aé", 0.2)):
        for share, found in ((0.49, [text]), (0.51, [*text])):
            assert (
                split(
                    scored(
                        spm,
                        (text[0], share * pays),
                        (text[1], share * pays),
                        (text, 0.0),
                        **{text: USER_DEFINED},
                    ),
                    text,
                )
                == found
            )


def test_sentencepiece_takes_a_longer_or_overlapping_piece_before_a_user_defined_one(spm):
    assert split(
        scored(spm, ("a", -1.0), ("c", -1.0), ("abc", -0.05), ("ab", 0.0), ab=USER_DEFINED), "abc"
    ) == ["abc"]
    assert split(
        scored(spm, ("a", -1.0), ("c", -20.0), ("bc", -0.05), ("ab", 0.0), ab=USER_DEFINED), "abc"
    ) == ["a", "bc"]


def test_sentencepiece_lists_and_encodes_user_defined_pieces_by_different_scores(spm):
    m = scored(spm, ("aé", 0.0), ("éb", 0.0), ("b", -0.01), ("a", -0.02), aé=USER_DEFINED, éb=USER_DEFINED)
    assert m.encode("aéb") == [1, 3]
    m = scored(spm, ("aé", 0.0), ("a", 0.06), ("é", 0.06), aé=USER_DEFINED)
    assert (split(m, "aé"), m.nbest_encode("aé", nbest_size=2, out_type=str)) == (
        ["aé"],
        [["a", "é"], ["aé"]],
    )


def test_sentencepiece_gives_an_unknown_run_over_an_unknown_mark_one_id(spm):
    assert scored(spm, ("a", -1.0)).encode("a? !a") == [1, 0, 1]
    assert scored(spm, ("a", -1.0), ("▁", -1.0)).encode("a? !a") == [1, 0, 2, 0, 1]


def test_sentencepiece_never_finds_a_control_piece_in_a_text(spm):
    assert split(sp_model(spm, [START, Piece("s", -1.0)], model_type=1), "<s>") == ["<", "s", ">"]


LETTERS = ("u", -3.0), ("n", -4.0), ("h", -5.0), ("g", -6.0)
TOY = ("ug", 0.0), ("un", -1.0), ("hug", -2.0), *LETTERS


def test_sentencepiece_bpe_joins_by_score_and_leaves_user_defined_pieces_alone(spm):
    assert split(scored(spm, *TOY, kind="bpe"), "unhug") == ["un", "hug"]
    assert split(scored(spm, *TOY, ("nh", -0.5), kind="bpe"), "unhug") == ["u", "nh", "ug"]
    assert split(scored(spm, *TOY, ("nh", -1.0), kind="bpe"), "unhug") == ["un", "hug"], (
        "the leftmost of equals"
    )
    assert split(scored(spm, *TOY, ("nh", -0.5), kind="bpe", un=USER_DEFINED), "unhug") == ["un", "hug"]


def test_sentencepiece_bpe_takes_unused_pieces_apart_again(spm):
    assert split(scored(spm, *TOY, kind="bpe", ug=UNUSED), "hugug") == ["hug", "u", "g"]
    assert scored(spm, ("ab", -0.5), ("a", -1.0), ("b", -1.0), ab=UNUSED).encode("ab") == [2, 3], (
        "a Unigram model never takes them"
    )


def test_sentencepiece_bpe_puts_zero_above_minus_zero(spm):
    def both(ab, ba):
        return split(scored(spm, ("ab", ab), ("ba", ba), ("a", -3.0), ("b", -3.0), kind="bpe"), "baba")

    assert [both(0.0, -0.0), both(-0.0, 0.0), both(0.0, 0.0)] == [
        ["b", "ab", "a"],
        ["ba", "ba"],
        ["ba", "ba"],
    ]


def test_sentencepiece_bpe_drops_all_merges_with_alpha_one(spm):
    assert scored(spm, ("ab", -1.0), ("a", -2.0), ("b", -3.0), kind="bpe").encode(
        "abab", enable_sampling=True, alpha=1.0
    ) == [2, 3, 2, 3]


def test_sentencepiece_words_are_whole_even_around_user_defined_pieces(spm):
    m = sp_model(
        spm,
        [Piece("▁hug", -1.0), Piece("hug", -1.0), Piece("ug", 0.0, USER_DEFINED), Piece("▁", -1.0)],
        model_type=3,
    )
    assert [split(m, t) for t in ("hug  hug", "hugs")] == [["hug", "▁", "▁hug"], ["hugs"]] and m.encode(
        "hugs pug"
    ) == [0]


def test_sentencepiece_characters_know_their_user_defined_pieces(spm):
    m = sp_model(spm, [*(Piece(c, -1.0) for c in "▁hug"), Piece("ug", 0.0, USER_DEFINED)], model_type=4)
    assert split(m, " hugs! u") == ["▁", "h", "ug", "s!", "▁", "u"]


def test_sentencepiece_needs_an_unknown_piece_unless_bytes_stand_in(spm):
    for kind in (1, 2, 3, 4):
        assert (
            sp_loaded(
                spm,
                ModelProto(
                    [*ALL_BYTES, Piece("a", -1.0)], {"model_type": kind, "byte_fallback": True}, PLAIN
                ),
            ).unk_id()
            == -1
        )
    with pytest.raises(RuntimeError, match="unk is not defined"):
        sp_loaded(spm, ModelProto([Piece("a", -1.0)]))


def framed(raw: bytes) -> bytes:
    return b"\n" + write_varint(len(raw)) + raw


@pytest.mark.parametrize(
    "raw",
    [
        b"\n\x02\xe2\x96\x15" + struct.pack("<f", -1.0),
        b"\n\x01b\x15" + struct.pack("<f", -1.0) + b"\x18\x09",
        b"\n\x01b\x10\x05",
        b"\n\x01b\x18\x81\x00",
    ],
    ids=[
        "not UTF-8",
        "a type that does not exist",
        "a score in another wire type",
        "a number longer than need be",
    ],
)
def test_sentencepiece_reads(spm, raw):
    assert (
        len(
            spm.SentencePieceProcessor(
                model_proto=write_model_proto(ModelProto([UNK, Piece("a", -1.0)])) + framed(raw)
            )
        )
        == 3
    )


def test_sentencepiece_finds_one_of_two_pieces_of_a_spelling_and_names_the_other(spm):
    m = sp_model(spm, [Piece("b", -2.0), Piece("a", -1.0), Piece("a", 0.0, CONTROL)])
    assert (m.encode("a"), m.piece_to_id("a")) == ([2], 3)
    with pytest.raises(RuntimeError, match="already defined"):
        sp_model(spm, [Piece("a", -1.0), Piece("a", -2.0)])


def test_sentencepiece_reverses_before_it_puts_pieces_around_and_says_if_it_has_none(spm):
    m = sp_model(spm, [START, Piece("</s>", 0.0, CONTROL), Piece("a", -1.0), Piece("b", -1.0)])
    assert m.encode("ab", add_bos=True, add_eos=True, reverse=True) == [1, 4, 3, 2]
    with pytest.raises(Exception, match="not defined"):
        scored(spm, ("a", -1.0)).encode("a", add_bos=True)


def test_sentencepiece_takes_a_denormalizer_only_with_a_map(spm):
    assert (
        sp_loaded(
            spm, ModelProto([UNK, Piece("▁a", -1.0), Piece("b", -1.0)], {}, {}, {"add_dummy_prefix": True})
        ).decode([1, 2, 1])
        == "ab a"
    )


def test_sentencepiece_does_not_recognize_its_own_spelling_with_a_space(spm):
    m = sp_model(
        spm,
        [Piece("New York", 0.0, USER_DEFINED), *(Piece(c, -1.0) for c in sorted(set("▁NewYork")))],
        {},
        model_type=4,
    )
    assert m.normalize("in New York") == "▁in▁New▁York" and 1 not in m.encode("in New York")


def test_sentencepiece_leaves_the_last_suffix(spm):
    m = sp_model(spm, [Piece("New▁", -1.0), Piece("York▁", -1.0)], {}, treat_whitespace_as_suffix=True)
    assert m.decode(m.encode("New York")) == "New York "


def test_sentencepiece_takes_parts_for_beginnings_and_marks_for_spaces(spm):
    m = sp_model(spm, [START, Piece("▁a", -1.0), Piece("▁", -2.0)], {})
    assert (m.decode([2]) + m.decode([2]), m.decode([2, 2]), m.decode([1, 2])) == ("aa", "a a", "a")
    assert [split(m, t) for t in ("▁", "a▁▁", "a▁a")] == [[], ["▁a"], ["▁a", "▁a"]]


@pytest.mark.parametrize(
    "name, found", [("identity", "▁if▁x:\n\ty"), ("nfkc", "▁if▁x:\n\ty"), ("nmt_nfkc", "▁if▁x:▁y")]
)
def test_sentencepiece_drops_tabs_only_with_the_maps_of_nmt(spm, name, found):
    file = sp_file(
        spm, ["a b c d"] * 9, vocab_size=20, normalization_rule_name=name, user_defined_symbols=["x y"]
    )
    m = spm.SentencePieceProcessor(model_proto=file)
    assert m.normalize("if x:\n\ty  ") == found
    assert "x y" in [p.piece for p in read_model_proto(file).pieces], "a user-defined piece may hold a space"


def test_sentencepiece_with_a_rule_for_nothing(spm):
    for remove, found in ((False, "▁"), (True, "")):
        assert (
            sp_model(
                spm,
                [Piece("a", -1.0)],
                {"precompiled_charsmap": build_charsmap({"x": ""}), "remove_extra_whitespaces": remove},
            ).normalize("x")
            == found
        )


# subword-nmt

CODES = "#version: 0.2\ne s\nes t</w>\nl o\nlo w\nw i\n"


def nmt(apply_bpe, codes=CODES, **options):
    return apply_bpe.BPE(io.StringIO(codes), **options)


def test_subword_nmt_on_paper(apply_bpe, capsys):
    assert nmt(apply_bpe).process_line("lowest  low") == "low@@ est lo@@ w"
    assert nmt(apply_bpe, CODES + "lo w</w>\n").process_line("low lowest") == "low low@@ est"
    for first in ("", "#version: 0.1\n"):
        assert (
            nmt(apply_bpe, first + CODES.partition("\n")[2]).process_line("lowest low") == "low@@ es@@ t low"
        )
    assert nmt(apply_bpe, "#version: 0.2\nab a\na b\n").process_line("ababc") == "ab@@ ab@@ c"


def test_subword_nmt_undoes_what_is_rare_and_keeps_what_it_cannot_split(apply_bpe, capsys):
    assert nmt(apply_bpe, vocab={"lo@@", "est"}).process_line("lowest") == "lo@@ w@@ est"
    assert nmt(apply_bpe, vocab={"low@@", "est"}).process_line("x") == "x"


def test_subword_nmt_takes_an_empty_vocabulary_for_none(apply_bpe, capsys):
    assert (
        nmt(apply_bpe, vocab=apply_bpe.read_vocabulary(io.StringIO("low 3\n"), 9)).process_line("lowest")
        == "low@@ est"
    )


def test_subword_nmt_writes_the_group_of_a_glossary_twice(apply_bpe, capsys):
    assert apply_bpe.isolate_glossary("aUSAb", "(US)A") == ["a", "USA", "US", "b"]


def test_subword_nmt_drops_a_carriage_return_behind_a_match_or_ends(apply_bpe, capsys):
    model = nmt(apply_bpe, glossaries=["USA"])
    assert model.process_line("USA\rx low") == "USA@@ x lo@@ w"
    with pytest.raises(IndexError):
        model.process_line("USA\r low")


def test_subword_nmt_remembers_a_word_that_was_split_with_dropout(apply_bpe, capsys):
    model = nmt(apply_bpe)
    assert model.process_line("lowest", dropout=1) == model.process_line("lowest") == "l@@ o@@ w@@ e@@ s@@ t"


@pytest.mark.parametrize("codes", ["", "#version: 0.2\n", "#version: 0.2\na b 3\n"])
def test_subword_nmt_ends_at_codes_without_a_rule_or_with_a_count(apply_bpe, codes, capsys):
    with pytest.raises(SystemExit):
        nmt(apply_bpe, codes)


# GGUF, the hub, minbpe's pattern language


def test_gguf_numbers_types_of_pieces_as_sentencepiece_does():
    lib = pytest.importorskip("gguf")
    assert {t.name.lower(): t.value for t in lib.TokenType} == {
        "normal": 1,
        "unknown": UNKNOWN,
        "control": CONTROL,
        "user_defined": USER_DEFINED,
        "unused": UNUSED,
        "byte": BYTE,
    }
    assert (lib.GGUF_VERSION, sorted(lib.gguf_reader.READER_SUPPORTED_VERSIONS)) == (3, [2, 3])


@pytest.mark.parametrize(
    "name, good",
    [
        ("org/name", True),
        ("Qwen/Qwen2.5-0.5B", True),
        ("a/b_c", True),
        ("a/b--c", False),
        ("a..b/c", False),
        ("x/-y", False),
        ("x/y.", False),
        ("a/b/c", False),
        ("a b/c", False),
    ],
)
def test_the_hub_allows_such_names(name, good):
    from subword_nb.formats.hub import looks_like_repo

    utils = pytest.importorskip("huggingface_hub.utils")
    try:
        utils.validate_repo_id(name)
    except utils.HFValidationError:
        assert not good
    else:
        assert good
    assert looks_like_repo(name) == good


def test_the_hub_means_these_words_by_yes():
    constants = pytest.importorskip("huggingface_hub.constants")
    assert set(constants.ENV_VARS_TRUE_VALUES) == {"1", "ON", "YES", "TRUE"}


def test_the_pattern_language_of_minbpe(regex):
    assert [regex.findall("a$", t) for t in ("a\na\n", "a\n\n")] == [["a"], []], (
        "the end, or before the last line break"
    )
    assert regex.findall("[a[b]", "[ab") == ["[", "a", "b"] and regex.findall("(a)b|c", "ab c") == ["a", ""]
    assert regex.findall("a?|b", "ab") == ["a", "", "b", ""], "looks again where it matched nothing"


def test_python_reads_what_json_does_not_know():
    assert (
        json.loads("[NaN, -Infinity]")[1] == float("-inf")
        and json.loads('{"a": 1, "a": 2}') == {"a": 2}
        and json.loads('"\\ud83e"') == "\ud83e"
    )


# Published files


@pytest.mark.parametrize(
    "name, cased", [("bert-base-cased", True), ("bert-base-uncased", False), ("bert-base-chinese", False)]
)
def test_lists_of_bert_hold_no_space_and_capitals_only_where_cased(name, cased, shared_file):
    from subword_nb.formats.vocab_files import looks_cased

    pieces = shared_file(f"vocab/{name}/vocab.txt").read_text(encoding="utf-8").split("\n")
    assert not any(" " in p for p in pieces) and looks_cased(pieces) == cased


def test_clip_marks_the_end_of_words_and_gpt2_does_not(shared_file):
    def ends(name):
        return sum(
            p.endswith("</w>")
            for p in json.loads(shared_file(f"vocab/{name}/tokenizer.json").read_text(encoding="utf-8"))[
                "model"
            ]["vocab"]
        )

    assert ends("clip") > 30_000 and ends("gpt2") == 0


def test_old_files_lack_the_type_of_a_model(shared_file):
    def typed(name):
        return (
            "type"
            in json.loads(shared_file(f"vocab/{name}/tokenizer.json").read_text(encoding="utf-8"))["model"]
        )

    assert [typed(name) for name in ("gpt2", "t5-small", "barthez", "falcon", "phi-3-mini")] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_p50k_has_no_rank_50256_and_ranks_rise(shared_file):
    ranks = [
        int(line.split()[1])
        for line in shared_file("vocab/tiktoken/p50k_base.tiktoken").read_bytes().splitlines()
    ]
    assert ranks == [i for i in range(50281) if i != 50256]


def test_llama_2_scores_runs_of_spaces_alike_and_llama_3_begins_as_gpt_4(shared_file):
    runs = {
        len(p.piece): p.score
        for p in read_model_proto(shared_file("vocab/llama-2/tokenizer.model").read_bytes()).pieces
        if set(p.piece) == {"▁"}
    }
    assert {*range(2, 17)} <= {*runs} and len({runs[n] for n in range(2, 17)}) == 1
    gpt4 = shared_file("vocab/tiktoken/cl100k_base.tiktoken").read_bytes()
    assert shared_file("vocab/llama-3/tokenizer.model").read_bytes().startswith(gpt4)


def test_most_published_models_drop_extra_spaces(shared_file):
    names = (
        "llama-2/tokenizer.model",
        "t5-small/spiece.model",
        "xlnet-base-cased/spiece.model",
        "sentencepiece/test_model.model",
    )
    assert [
        read_model_proto(shared_file(f"vocab/{n}").read_bytes()).normalizer("remove_extra_whitespaces")
        for n in names
    ] == [False, True, True, True]
