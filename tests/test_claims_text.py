"""What the notebooks on text, normalizers, patterns, encodings and decoders say of other programs, done by those programs."""

import importlib.util
import inspect
import json
import random
import re
import signal
import unicodedata
from pathlib import Path

import pytest
from peers import BYTES, hf_split, sp_file, sp_trained, tiktoken_of

from subword_nb.text.charsmap import Charsmap
from subword_nb.text.regex import PATTERNS, compile_pattern
from subword_nb.formats.sentencepiece_proto import read_model_proto

pytestmark = pytest.mark.peers
CATS = ["the cat sat on the mat"] * 20


def bare(hf):
    "Two words, a mark and an unknown one, between white space."
    tok = hf.Tokenizer(hf.models.WordLevel({"?": 0, "a": 1, "b": 2, "[M]": 3}, "?"))
    tok.pre_tokenizer = hf.pre_tokenizers.WhitespaceSplit()
    return tok


def cut(tiktoken, pattern, text):
    "The stretches that tiktoken's pattern finds: every part of the text is a piece, so each stretch is one token."
    parts = dict.fromkeys(text[a:b].encode() for a in range(len(text)) for b in range(a + 1, len(text) + 1))
    enc = tiktoken_of(tiktoken, pattern, [p for p in parts if p not in BYTES])
    return [enc.decode_single_token_bytes(i).decode() for i in enc.encode_ordinary(text)]


def places(hf, normalizer, text):
    "The characters of the normalized text and where they come from."
    tok = bare(hf)
    tok.normalizer, tok.pre_tokenizer = normalizer, hf.pre_tokenizers.Split(hf.Regex(r"[\s\S]"), "isolated")
    return list(zip(normalizer.normalize_str(text), tok.encode(text).offsets))


def cats_file(spm, **options):
    return sp_file(spm, CATS, vocab_size=40, **options)


def trained(spm, **options):
    return sp_trained(spm, CATS, vocab_size=40, **options)


def rules(model: bytes) -> dict:
    "What the file of a model says of its normalizer."
    return read_model_proto(model).normalizer_spec


def test_hf_has_several_versions_of_unicode(hf):
    pre = hf.pre_tokenizers
    assert [p for p, _ in pre.Split(hf.Regex(r"\p{L}"), "removed").pre_tokenize_str("\u1c89\ua7ce")] == [
        "\ua7ce"
    ]  # letters of 16.0 and 17.0: patterns
    assert len(pre.Digits().pre_tokenize_str("a\U00011de0")) == 2  # a digit of 17.0
    assert [len(pre.Punctuation().pre_tokenize_str(t)) for t in ("a\u2e42b", "a\u2e43b")] == [
        3,
        1,
    ]  # marks of 8.0 and 9.0
    assert (
        hf.normalizers.NFC().normalize_str("\U00011935\U00011930") == "\U00011935\U00011930"
    )  # composed since 13.0


def test_hf_lowers_each_character_by_itself(hf):
    assert (
        "ΟΔΟΣ".lower(),
        hf.normalizers.Lowercase().normalize_str("ΟΔΟΣ"),
        hf.normalizers.BertNormalizer().normalize_str("ΟΔΟΣ"),
    ) == ("οδος", "οδοσ", "οδοσ")


def test_stripping_before_or_after_lowering_is_the_same_in_hf(hf):
    strip, lower = (hf.normalizers.BertNormalizer(False, False, s, not s) for s in (True, False))
    text = "".join(chr(i) for i in range(0x80, 0x2D00) if unicodedata.category(chr(i)) != "Cn")
    for k in range(0, len(text), 50):
        apart = " ".join(text[k : k + 50])
        assert lower.normalize_str(strip.normalize_str(apart)) == strip.normalize_str(
            lower.normalize_str(apart)
        )


def test_the_letters_of_berts_chinese_list_end_with_extension_e(hf):
    spaced = [
        hf.normalizers.BertNormalizer().normalize_str(chr(i)) != chr(i) for i in (0x2CEA1, 0x2CEB0, 0x30000)
    ]
    assert spaced == [True, False, False]


def test_hf_gives_what_swallows_others_the_first_place_and_a_replacement_the_last(hf):
    norm = hf.normalizers
    assert places(hf, norm.NFKC(), "\ufb01ance\u0301e")[5:] == [("é", (4, 5)), ("e", (6, 7))]
    assert places(hf, norm.Replace("&amp;", "&"), "R&amp;D") == [("R", (0, 1)), ("&", (5, 6)), ("D", (6, 7))]
    assert places(hf, norm.BertNormalizer(), "He\u0301llo")[1:3] == [("e", (1, 2)), ("l", (3, 4))]
    assert places(hf, norm.Prepend("▁"), "la")[:2] == [("▁", (0, 1)), ("l", (0, 1))]


def test_hf_moves_places_behind_a_character_that_a_map_drops_at_the_start(hf, spm):
    precompiled = hf.normalizers.Precompiled(rules(cats_file(spm))["precompiled_charsmap"])
    assert (places(hf, precompiled, "a\x01b"), places(hf, precompiled, "\x01ab")) == (
        [("a", (0, 1)), ("b", (2, 3))],
        [("a", (0, 1)), ("b", (1, 2))],
    )


def test_a_model_of_sentencepiece_names_its_rules_and_carries_them(spm):
    usual, none = (rules(cats_file(spm, **o)) for o in ({}, {"normalization_rule_name": "identity"}))
    assert usual["name"] == "nmt_nfkc" and len(usual["precompiled_charsmap"]) > 200_000
    assert none["precompiled_charsmap"] == b""


def test_a_line_end_of_two_characters_in_hf_and_in_sentencepiece(hf, spm):
    model = cats_file(spm)
    theirs, precompiled = (
        spm.SentencePieceProcessor(model_proto=model),
        hf.normalizers.Precompiled(rules(model)["precompiled_charsmap"]),
    )
    kept = trained(spm, remove_extra_whitespaces=False)
    assert [precompiled.normalize_str(t) for t in ("ﬁ\u0301", "a\r\nb")] == ["fi", "a b"]
    assert [theirs.normalize("ﬁ\u0301"), theirs.normalize("a\r\nb"), kept.normalize("a\r\nb")] == [
        "▁fi\u0301",
        "▁a▁b",
        "▁a▁▁b",
    ]  # two spaces become one by default


def test_sentencepieces_trainer_refuses_32_keys_that_begin_at_one_place(spm, tmp_path):
    for n, well in ((31, True), (32, False), (33, False)):
        (tmp_path / "rules.tsv").write_text("".join(" ".join(["61"] * k) + "\t62\n" for k in range(1, n + 1)))
        try:
            done = bool(cats_file(spm, normalization_rule_tsv=str(tmp_path / "rules.tsv")))
        except RuntimeError:
            done = False
        assert done == well


def test_of_two_lines_with_one_key_sentencepiece_takes_the_later_and_a_lost_tab_deletes(spm, tmp_path):
    (tmp_path / "rules.tsv").write_text("41\t62\n41\t63\n44\t\n45\n46\t66\ta remark\n")
    model = trained(spm, normalization_rule_tsv=str(tmp_path / "rules.tsv"))
    assert model.normalize("xAyDzEwFv") == "▁xcyzwfv"


def test_the_joiner_was_a_space_in_older_models_and_in_hfs_nmt_and_is_none_now(hf, spm, shared_file):
    old, now = (
        Charsmap(rules(model)["precompiled_charsmap"])
        for model in (shared_file("vocab/t5-small/spiece.model").read_bytes(), cats_file(spm))
    )
    assert [[charsmap.normalize(c) for c in "\u200d\u061c\u200c"] for charsmap in (old, now)] == [
        [" ", "\u061c", " "],
        ["\u200d", " ", " "],
    ]
    assert hf.normalizers.Nmt().normalize_str("a\u200db\u061cc") == "a b\u061cc"


def test_sentencepiece_may_have_pieces_across_spaces_and_joins_runs_of_them(spm):
    across = trained(spm, split_by_whitespace=False, model_type="bpe")
    assert any("▁" in across.id_to_piece(i)[1:] for i in range(across.get_piece_size()))
    usual = trained(spm)
    assert (
        "".join(usual.encode("a  b", out_type=str)) == "▁a▁b"
        and usual.decode(usual.encode("the  cat")) == "the cat"
    )


def test_sentencepieces_python_refuses_to_sample_of_none_or_one(spm):
    model = trained(spm)
    for n in (0, 1):
        with pytest.raises(ValueError, match="nbest_size"):
            model.encode("the cat", enable_sampling=True, alpha=0.1, nbest_size=n)
    bpe = trained(spm, model_type="bpe")
    assert bpe.encode("the cat", out_type=str, enable_sampling=True, alpha=1.0, nbest_size=-1) == [
        "▁",
        *"the",
        "▁",
        *"cat",
    ]  # alpha is the probability of dropping a merge
    assert bpe.encode("the cat", enable_sampling=True, alpha=0.0, nbest_size=-1) == bpe.encode("the cat")


def test_what_oniguruma_makes_of_bytes_letters_and_folded_strings(hf):
    with pytest.raises(Exception, match="Oniguruma error"):
        hf_split(hf, r"\xe9", "é")
    assert [
        hf_split(hf, *case)
        for case in ((r"\i", "aib"), ("(?i)ss", "aßb"), ("(?i)[ß]", "assb"), ("[a~~b]", "x~y"))
    ] == [["a", "i", "b"], ["a", "ß", "b"], ["a", "ss", "b"], ["x", "~", "y"]]
    assert [
        hf_split(hf, *case)
        for case in (
            ("^a", "b\na"),
            ("a$", "a\nb"),
            ("(?m:a.)", "a\n"),
            (r"\p{punct}", "a$b"),
            ("[[:punct:]]", "a$b"),
        )
    ] == [["b\n", "a"], ["a", "\nb"], ["a\n"], ["a$b"], ["a", "$", "b"]]


def test_what_rust_makes_of_class_operators_anchors_and_repeats(tiktoken):
    assert cut(tiktoken, "[a-c~~b-d]|[b-c]+", "abcd") == ["a", "bc", "d"]
    assert cut(tiktoken, "[a-c--b]+|b", "abc") == ["a", "b", "c"]
    assert [
        cut(tiktoken, *case)
        for case in (
            (r"\h+|.", "afg"),
            (r"\d{1,3}+", "12345"),
            ("^a|[ab]+", "aab"),
            (r"[[:punct:]]+|.", "$+é"),
        )
    ] == [["af", "g"], ["123", "45"], ["a", "ab"], ["$+", "é"]]


def properties():
    "Every name that regex knows as a property or a value of one, and some that nothing knows."
    known = pytest.importorskip("regex._regex_core").PROPERTIES
    names = {str(n).lower() for name, (_, values) in known.items() for n in (name, *values)}
    return sorted(
        names
        | {"is" + n for n in names}
        | {"in" + n for n in names}
        | {
            f"{k}={v}"
            for k in ("sc", "script", "gc", "blk", "lb", "ccc", "age")
            for v in ("greek", "Lu", "10", "a1", "1/2")
        }
        | {"inf", "nan", "1e9993", "-1", "is"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["rust", "oniguruma"])
def test_a_property_is_the_peers_or_refused(hf, tiktoken, dialect):
    rng = random.Random(dialect)
    text = "".join(
        map(
            chr,
            [
                *range(1, 0x3100),
                *rng.sample([i for i in range(0x3100, 0x110000) if not 0xD800 <= i < 0xE000], 4000),
            ],
        )
    )
    names = properties()
    for name in [
        "greek",
        "lower",
        "is_greek",
        "Cn",
        "gc=Lu",
        "gc=punct",
        "General Category=Lowercase_Letter",
        "1/2",
        "1e9993",
        "lb",
        "InThai",
        "odi",
        *rng.sample(names, min(len(names), 150)),
    ]:
        pattern = rf"\p{{{name}}}"
        try:
            ours = set("".join(compile_pattern(pattern, dialect=dialect).findall(text)))
        except ValueError:
            continue
        try:
            if dialect == "rust":
                theirs = {*bytes(tiktoken_of(tiktoken, pattern).encode_ordinary(text)).decode()}
            else:
                theirs = {*text} - {*hf.normalizers.Replace(hf.Regex(pattern), "").normalize_str(text)}
        except Exception:
            theirs = None  # they refuse it
        assert ours == theirs or theirs is None and name.startswith("in") and dialect == "oniguruma", (
            name
        )  # other names of blocks


def test_a_long_s_ends_a_contraction_in_gpt_4s_pattern(tiktoken):
    assert cut(tiktoken, PATTERNS["cl100k"], "x'ſy") == ["x", "'ſ", "y"]


def test_cl100k_of_today_and_llama_3_part_at_the_end_of_a_text(tiktoken):
    first = PATTERNS["llama3"]  # which is cl100k's as it was first published
    assert [cut(tiktoken, p, "a\n ") for p in (PATTERNS["cl100k"], first)] == [["a", "\n "], ["a", "\n", " "]]


def test_patterns_are_spelled_as_installed(openai_public):
    source = inspect.getsource(openai_public)
    assert all(
        part in source for part in (PATTERNS["r50k"], PATTERNS["cl100k"], PATTERNS["o200k"].split("'d)?|")[0])
    )
    if found := importlib.util.find_spec("transformers"):
        assert PATTERNS["qwen2"] in (
            Path(found.origin).parent / "models" / "qwen2" / "tokenization_qwen2.py"
        ).read_text(encoding="utf-8")


def test_clips_pattern_has_no_space(shared_file):
    step = json.loads(shared_file("vocab/clip/tokenizer.json").read_text(encoding="utf-8"))["pre_tokenizer"][
        "pretokenizers"
    ][0]
    assert " " not in step["pattern"]["Regex"] and (step["behavior"], step["invert"]) == ("Removed", True)


def test_no_piece_of_llama_2_holds_two_digits(spm, shared_file):
    model = spm.SentencePieceProcessor(model_file=str(shared_file("vocab/llama-2/tokenizer.model")))
    assert (
        max(
            sum(c.isdigit() for c in model.id_to_piece(i))
            for i in range(model.get_piece_size())
            if not model.is_byte(i)
        )
        == 1
    )


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_signal_stops_pythons_re():
    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Rang):
            re.search("(a+)+b", "a" * 40)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_truncation_forgets_the_second_text_in_hf(hf):
    tok = bare(hf)
    tok.post_processor = hf.processors.TemplateProcessing("$A", "$A $B:1", [])
    e = tok.encode("a b", "b a")
    assert e.sequence_ids == [0, 0, 1, 1]
    e.truncate(3)
    assert (e.sequence_ids, e.n_sequences) == ([0, 0, 0], 1)


def test_a_limit_of_none_cuts_nothing_and_one_without_capacity_everything_in_hf(hf):
    tok = bare(hf)
    tok.post_processor = hf.processors.TemplateProcessing("[M] $A [M]", None, [("[M]", 3)])
    tok.enable_truncation(1)
    assert tok.encode("a b").tokens == ["[M]", "a", "b", "[M]"]
    tok.enable_truncation(2)
    assert tok.encode("a b").tokens == ["[M]", "[M]"]


def test_a_template_behind_a_template_takes_two_parts_for_a_pair_in_hf(hf):
    tok, kinds = bare(hf), hf.processors
    tok.post_processor = kinds.Sequence(
        [kinds.TemplateProcessing("[M] $A", None, [("[M]", 3)]), kinds.TemplateProcessing("$A", "$B $A", [])]
    )
    assert tok.encode("a").tokens == ["a", "[M]"]


def test_robertas_processor_without_its_switches_is_berts_to_hf(hf):
    file = json.loads(bare(hf).to_str()) | {
        "post_processor": {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2]}
    }
    assert (
        json.loads(hf.Tokenizer.from_str(json.dumps(file)).to_str())["post_processor"]["type"]
        == "BertProcessing"
    )


def test_a_normalizer_that_drops_the_first_character_leaves_no_mark_at_the_start_in_hf(hf):
    tok = hf.Tokenizer(hf.models.BPE({"▁": 0, "h": 1, "u": 2, "g": 3}, []))
    tok.normalizer, tok.pre_tokenizer = (
        hf.normalizers.Strip(),
        hf.pre_tokenizers.Metaspace(prepend_scheme="first"),
    )
    assert (tok.encode(" hug").tokens, tok.encode("hug").tokens) == ([*"hug"], ["▁", *"hug"])


def test_words_handed_over_begin_at_0_again_in_hf(hf):
    assert bare(hf).encode(["a", "b"], is_pretokenized=True).offsets == [(0, 1), (0, 1)]


def test_without_a_decoder_hf_joins_with_spaces(hf):
    assert bare(hf).decode([1, 2]) == "a b"


def test_a_prefix_space_comes_back_with_the_text_in_hf(hf):
    tok = hf.Tokenizer(
        hf.models.BPE({c: i for i, c in enumerate(sorted(hf.pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    tok.pre_tokenizer, tok.decoder = hf.pre_tokenizers.ByteLevel(), hf.decoders.ByteLevel()
    assert tok.decode(tok.encode("hug").ids) == " hug"


def test_bytes_of_half_a_character(hf):
    assert (
        b"\xe2\x82".decode("utf-8", "replace"),
        hf.decoders.ByteLevel().decode(["âĤ"]),
        hf.decoders.ByteFallback().decode(["<0xE2>", "<0x82>"]),
    ) == ("\ufffd", "\ufffd", "\ufffd\ufffd")


def test_true_is_no_id_to_hf(hf):
    file = json.loads(bare(hf).to_str())
    file["model"]["vocab"] = {"?": 0, "a": True}
    with pytest.raises(Exception, match="boolean"):
        hf.Tokenizer.from_str(json.dumps(file))


def test_without_options_transformers_neither_cuts_nor_fills_up(hf):
    transformers, tok = pytest.importorskip("transformers"), bare(hf)
    tok.enable_truncation(1)
    tok.enable_padding(length=4)
    assert transformers.PreTrainedTokenizerFast(tokenizer_object=tok)(["a b", "a"]).input_ids == [[1, 2], [1]]


def test_re_searches_ranges_above_the_basic_plane_one_by_one():
    parser, compiler = pytest.importorskip("re._parser"), pytest.importorskip("re._compiler")
    tree = parser.parse("[0-9\u0400-\u0410\u4e00-\u9fff\U0001d7ce-\U0001d7ff\U00020000-\U0002a6df]")
    codes = compiler._code(tree, 0)
    assert (
        compiler.BIGCHARSET in codes
        and all(place in codes for place in (0x1D7CE, 0x1D7FF, 0x20000, 0x2A6DF))
        and 0x9FFF not in codes
    )
