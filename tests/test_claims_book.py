"""What the pages of errata, limits, benchmarks and tutorials say of other programs, done by those programs.

A statement that a new version makes wrong fails here by its name.
"""

import io
import json
import math
import struct

import pytest
from peers import hf_file, hf_trained, sp_file, sp_model, sp_trained, tiktoken_of

from subword_nb.bpe.reference import bpe_train_ref
from subword_nb.text.charsmap import Charsmap, build_charsmap
from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS
from subword_nb.corpus.counts import count_pretokens
from subword_nb.text.regex import PATTERNS
from subword_nb.text.pretokenizers import byte_level
from subword_nb.formats.sentencepiece_proto import CONTROL, UNKNOWN, wire_fields
from subword_nb.core.unicode import BYTE2CHAR
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.unigram.reference import scores_of, substring_counts

pytestmark = pytest.mark.peers
LINES = ["This is the course.", "a b c d e f g h", "new york is old"] * 5


def trained(spm, lines=LINES, **options):
    return sp_trained(spm, lines, **{"vocab_size": 60} | options)


def with_map(spm, charsmap, letters):
    "A model of single letters, behind <unk>, <s> and </s>, whose normalizer has only a map."
    return sp_model(
        spm,
        [("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), *((c, -1.0) for c in letters)],
        {"precompiled_charsmap": charsmap, "add_dummy_prefix": False},
    )


# errata


def test_hfs_trainer_learns_12_of_the_19_merges_of_the_first_seen_order(hf):
    first = bpe_train_ref(
        count_pretokens(COURSE_CORPUS, byte_level("gpt2")),
        50,
        special_tokens=["<|endoftext|>"],
        tie_break="first",
    ).merges
    tok = hf_trained(
        hf,
        "BPE",
        COURSE_CORPUS,
        hf.pre_tokenizers.ByteLevel(add_prefix_space=False),
        vocab_size=50,
        special_tokens=["<|endoftext|>"],
    )
    theirs = [tuple(m) for m in json.loads(tok.to_str())["model"]["merges"]]
    assert (len(first), len(theirs), len({*first} & {*theirs})) == (19, 19, 12)


def test_equal_splits_of_the_toy_words_end_in_the_longest_piece_in_both(hf, spm):
    pieces = [*scores_of(substring_counts(TOY_COUNTS, whole=False)).items()]
    tok, sp = hf.Tokenizer(hf.models.Unigram([("<unk>", 0.0), *pieces], 0, False)), sp_model(spm, pieces)
    expected = [["h", "ugs"], ["p", "ug"], ["p", "un"], ["b", "un"]]
    assert (
        [tok.encode(w).tokens for w in ("hugs", "pug", "pun", "bun")]
        == [sp.encode(w, out_type=str) for w in ("hugs", "pug", "pun", "bun")]
        == expected
    )
    assert math.isclose(dict(pieces)["h"] + dict(pieces)["ugs"], dict(pieces)["hug"] + dict(pieces)["s"])


def test_nmt_nfkc_is_nfkc_but_for_some_controls_and_invisible_characters_and_the_full_width_tilde(spm):
    nmt, nfkc = (spm.SentencePieceNormalizer(rule_name=name) for name in ("nmt_nfkc", "nfkc"))
    changed = [
        i
        for i in [*range(0x3400), *range(0xF900, 0x10000)]
        if nmt.normalize(f"x{chr(i)}y") != nfkc.normalize(f"x{chr(i)}y")
    ]
    spaces = [
        0x9,
        0xA,
        0xC,
        0xD,
        0x61C,
        0x1680,
        0x200B,
        0x200C,
        0x200E,
        0x200F,
        0x2028,
        0x2029,
        0xFEFF,
        0xFFFD,
    ]
    gone = [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]
    assert changed == sorted([*spaces, *gone, 0xFF5E])
    assert {nmt.normalize(f"x{chr(i)}y").strip("▁") for i in spaces} == {"x▁y"} and {
        nmt.normalize(f"x{chr(i)}y").strip("▁") for i in gone
    } == {"xy"}
    assert [nmt.normalize(f"x{c}y").strip("▁") for c in "～〜\0\u00ad\u200d\u2060\u0080"] == [
        f"x{c}y" for c in "～〜\0\u00ad\u200d\u2060\u0080"
    ]


def test_joined_pieces_begin_with_a_space_unless_the_dummy_prefix_is_off(spm):
    joined = {
        on: "".join(trained(spm, add_dummy_prefix=on).encode("This is", out_type=str)).replace("▁", " ")
        for on in (True, False)
    }
    sp = trained(spm)
    assert (joined, sp.decode(sp.encode("This is"))) == ({True: " This is", False: "This is"}, "This is")


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("rules", ["identity", "nfkc", "nmt_nfkc"])
def test_a_mark_that_somebody_wrote_comes_back_as_a_space_with_every_option(spm, rules, remove):
    sp = trained(spm, normalization_rule_name=rules, remove_extra_whitespaces=remove)
    assert sp.decode(sp.encode("a▁b")) == "a b"


def test_bytes_bring_an_unknown_character_back(spm):
    plain, with_bytes = trained(spm), trained(spm, byte_fallback=True, vocab_size=330)
    assert [sp.decode(sp.encode("a 汉的")) for sp in (plain, with_bytes)] == ["a  ⁇ ", "a 汉的"]


def test_gpt2s_and_cl100ks_first_ids_follow_the_visible_characters(tiktoken, shared_file):
    from tiktoken.load import load_tiktoken_bpe

    visible = sorted(range(256), key=lambda b: (ord(BYTE2CHAR[b]) > 255, b))
    for name in ("r50k_base", "cl100k_base"):
        ranks = load_tiktoken_bpe(str(shared_file(f"vocab/tiktoken/{name}.tiktoken")))
        assert [bytes([b]) for b in visible] == sorted(ranks, key=ranks.get)[:256]
        assert [ranks[bytes([b])] for b in (33, 0, 32)] == [0, 188, 220] and not [
            b for b in range(256) if ranks[bytes([b])] == b
        ]


def test_tiktoken_cuts_numbers_by_threes_from_the_left_in_any_script(tiktoken):
    for digits in ("1234567", "١٢٣٤٥٦٧"):
        whole = [p.encode() for p in (digits[:3], digits[3:6], digits, digits[1:4])]
        tok = tiktoken_of(tiktoken, PATTERNS["cl100k"], whole)
        assert tok.encode(digits) == [256, 257, *digits[6].encode()]


def test_only_small_letters_and_the_straight_apostrophe_are_contractions_in_gpt2(regex, openai_public):
    assert [regex.findall(openai_public.r50k_pat_str, t) for t in ("she's", "SHE'S", "she’s")] == [
        ["she", "'s"],
        ["SHE", "'", "S"],
        ["she", "’", "s"],
    ]


# limits


def test_both_libraries_follow_far_offsets_of_a_character_map(hf, spm):
    for root in (
        256 << 10,
        1 << 10 | 1 << 9,
    ):  # an offset of 256, and one of 1 in steps of 256, with which the format reaches 2**29
        units, a = [0] * 1024, 256 ^ ord("a")
        units[0], units[a], units[512] = root, ord("a") | 1 << 8 | (a ^ 512) << 10, 1 << 31
        charsmap = struct.pack("<I", 4096) + struct.pack("<1024I", *units) + b"b\0"
        assert (
            hf.normalizers.Precompiled(charsmap).normalize_str("xa") == "xb"
            and Charsmap(charsmap).longest("a") == "b"
        )
        assert with_map(spm, charsmap, "ab").encode("a") == [4]


def test_hf_loads_files_that_are_refused_here(hf, tmp_path):
    model = {"type": "WordLevel", "vocab": {"hug": 0, "[UNK]": 1}, "unk_token": "[UNK]"}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps(hf_file(model | {"vocab": {"hug": 0, "pug": 0, "[UNK]": 1}}))
    )
    assert hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("hug").ids == [0]
    with pytest.raises(ValueError):
        Tokenizer.load(tmp_path / "tokenizer.json")


# bulk, benchmark, files of ids


def test_a_cut_before_a_space_between_letters_is_one_of_every_pattern(regex, openai_public):
    text = "ab cd é ß 你 好 AB'S xY zA"
    for pattern in (openai_public.r50k_pat_str, *PATTERNS.values()):
        for at in (i for i in range(1, len(text)) if text[i] == " "):
            assert regex.findall(pattern, text[:at]) + regex.findall(pattern, text[at:]) == regex.findall(
                pattern, text
            )


def test_a_cut_behind_a_newline_is_one_of_gpt2s_pattern_only_if_the_newline_stands_alone(
    regex, openai_public
):
    def cut(pattern, text):
        return regex.findall(pattern, text[:-2]) + regex.findall(pattern, text[-2:]) == regex.findall(
            pattern, text
        )

    assert [cut(openai_public.r50k_pat_str, t) for t in ("ab\ncd", ".\ncd", "ab\n\ncd", "ab \ncd")] == [
        True,
        True,
        False,
        False,
    ]
    assert all(
        cut(PATTERNS[p], t)
        for p in ("cl100k", "o200k", "llama3", "qwen2")
        for t in ("ab\ncd", ".\ncd", "ab\n\ncd", "ab \ncd")
    )


def test_spaces_before_a_line_are_dropped_unless_sentencepiece_is_told_otherwise(spm):
    lines = ["   hello world hello"] * 20
    assert trained(spm, lines).encode("   hello", out_type=str) == ["▁hello"]
    with_spaces = trained(spm, lines, normalization_rule_name="identity", remove_extra_whitespaces=False)
    assert with_spaces.encode("   hello", out_type=str) == [
        "▁",
        "▁",
        "▁",
        "▁hello",
    ] and with_spaces.get_score(with_spaces.piece_to_id("▁")) > with_spaces.get_score(
        with_spaces.piece_to_id("▁hello")
    )


def test_numpys_head_of_a_row_of_numbers_has_128_bytes():
    np = pytest.importorskip("numpy")
    for row in (np.zeros(3, "<u2"), np.zeros(0, "<u4"), np.zeros(10**6, "<i8")):
        file = io.BytesIO()
        np.save(file, row)
        assert len(file.getvalue()) - row.nbytes == 128


# tutorials


def test_sentencepiece_leaves_out_the_type_of_ordinary_pieces(spm):
    made = sp_file(spm, LINES, vocab_size=60)
    parts = [*wire_fields(made)]
    pieces = [
        {f.number: f for f in wire_fields(made, part.body, part.end)} for part in parts if part.number == 1
    ]
    assert {made[p[1].body : p[1].end]: p[3].value for p in pieces if 3 in p} == {
        b"<unk>": UNKNOWN,
        b"<s>": CONTROL,
        b"</s>": CONTROL,
    } and len(pieces) > 10
    assert [part.number for part in parts] == [1] * len(pieces) + [2, 3] and {
        f.wire for part in parts for f in wire_fields(made, part.body, part.end)
    } == {0, 2, 5}


@pytest.mark.parametrize(
    "key, joined",
    [
        ("e\u0301", True),
        ("и\u0306", True),
        ("\u1ea1\u0306", True),
        ("\u1112\u1161", False),
        ("\u1112\u1161\u11ab", False),
    ],
)
def test_hf_looks_up_no_group_of_six_bytes_or_more(hf, spm, key, joined):
    charsmap = build_charsmap({key: "x"})
    assert (len(key.encode()) < 6, hf.normalizers.Precompiled(charsmap).normalize_str(key) == "x") == (
        joined,
        joined,
    )
    assert with_map(spm, charsmap, "x").encode(key) == [3]


def test_encode_special_tokens_makes_text_of_special_tokens_alone(hf):
    tok = hf.Tokenizer(hf.models.BPE({c: i for i, c in enumerate("<>sd")}, []))
    tok.add_special_tokens(["<s>"])
    tok.add_tokens(["<d>"])
    before = tok.encode("<s><d>").tokens
    tok.encode_special_tokens = True
    assert (before, tok.encode("<s><d>").tokens) == (["<s>", "<d>"], ["<", "s", ">", "<d>"])


def test_what_a_tokenizer_json_consists_of(hf):
    parts = [*json.loads(hf.Tokenizer(hf.models.BPE()).to_str())]
    assert sorted(parts) == sorted(
        [
            "version",
            "added_tokens",
            "normalizer",
            "pre_tokenizer",
            "model",
            "post_processor",
            "decoder",
            "truncation",
            "padding",
        ]
    )


def test_letters_of_most_scripts_have_three_bytes(regex):
    def size(script):
        return {
            len(chr(i).encode())
            for i in range(0x41, 0x1C80)
            if regex.fullmatch(rf"(?V1)[\p{{Script={script}}}&&\p{{L}}]", chr(i))
        }

    assert {s: size(s) for s in ("Latin", "Greek", "Armenian", "Hebrew")} == {
        "Latin": {1, 2},
        "Greek": {2},
        "Armenian": {2},
        "Hebrew": {2},
    }
    assert {len(c.encode()) for c in "абвгдежзабوحدс"} == {2}
    assert {
        *map(
            tuple,
            map(
                size,
                [
                    "Devanagari",
                    "Bengali",
                    "Gurmukhi",
                    "Gujarati",
                    "Oriya",
                    "Tamil",
                    "Telugu",
                    "Kannada",
                    "Malayalam",
                    "Sinhala",
                    "Thai",
                    "Lao",
                    "Tibetan",
                    "Myanmar",
                    "Ethiopic",
                    "Cherokee",
                    "Khmer",
                ],
            ),
        )
    } == {(3,)}
