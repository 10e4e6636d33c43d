"""Normalizers against HF tokenizers: every code point, spans of generated texts, files that HF loads or refuses."""

import copy
import dataclasses
import functools
import hashlib
import html
import itertools
import json
import pickle
import random
import re
import subprocess
import sys

import pytest
from tests.text.test_unicode_forms import ALPHABETS
from characters import code_points
from seeds import some_of
from costs import assert_linear

from subword_nb import normalizers as N
from subword_nb.text.alignment import Aligned
from subword_nb.text.charsmap import build_charsmap
from subword_nb.text.normalizers import (
    NFC,
    NFD,
    NFKC,
    NFKD,
    BertNormalizer,
    ByteLevel,
    Lowercase,
    Nmt,
    Precompiled,
    Prepend,
    Replace,
    Sequence,
    Strip,
    StripAccents,
    bert_normalize,
    bert_normalize_ref,
    nfd_ref,
    normal_form,
    normalizer,
    normalizer_from_dict,
)
from subword_nb.text.pretokenizers import BertPreTokenizer
from subword_nb.core.unicode import category

CODES = code_points()
SOME = [
    i
    for i in CODES
    if i % 32 == 0 or i < 0x3400 or 0x10000 <= i < 0x17000 or category(chr(i)) not in ("Cn", "Co", "Lo")
]  # one in 32 of ideographs and unassigned ones
LAYOUTS = ("{}", "a{}", "{}\u0301", "a\u0345{}\u0334\u0301", "\u0307{}a{}\u0323")
SETTINGS = list(itertools.product((True, False), (True, False), (None, True, False), (True, False)))


def generated(n, seed=0):
    "n strings, each from a few of the alphabets."
    rng = random.Random(seed)
    for _ in range(n):
        yield "".join(
            rng.choices("".join(rng.sample(ALPHABETS, rng.randint(1, 4))), k=rng.choice((1, 2, 3, 5, 8, 13)))
        )


def pairs(theirs):
    "Each of our normalizers with HF's."
    for ours in (NFC(), NFD(), NFKC(), NFKD(), Lowercase(), StripAccents(), Nmt(), ByteLevel()):
        yield ours, getattr(theirs, type(ours).__name__)()
    for clean, chinese, strip, lower in SETTINGS:
        yield (
            BertNormalizer(clean, chinese, strip, lower),
            theirs.BertNormalizer(
                clean_text=clean, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lower
            ),
        )


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hf_on_every_code_point(layout):
    "Alone, after a base letter, before a mark, among marks; for rarer settings of BERT, ideographs by sample."
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").normalizers
    every, some = ([layout.replace("{}", chr(i)) for i in some_of(codes, layout)] for codes in (CODES, SOME))
    for ours, other in pairs(theirs):
        texts = (
            every
            if not isinstance(ours, BertNormalizer)
            or ours in (BertNormalizer(), BertNormalizer(lowercase=False))
            else some
        )
        for k in range(0, len(texts), 20_000):
            part = ";".join(texts[k : k + 20_000])
            got, expected = ours.normalize(part), other.normalize_str(part)
            if got != expected:
                assert [ours.normalize(t) for t in texts[k : k + 20_000]] == [
                    other.normalize_str(t) for t in texts[k : k + 20_000]
                ], ours
            assert got == expected, ours


@pytest.mark.peers
@pytest.mark.slow
def test_hf_on_generated_strings():
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").normalizers
    texts = ["", *generated(12_000, seed=1)]
    for ours, other in pairs(theirs):
        for t in texts:
            assert ours.normalize(t) == other.normalize_str(t), (ours, t)


@pytest.mark.peers
def test_hf_on_golden_strings(shared_file):
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").normalizers
    for t in json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8")):
        for ours, other in pairs(theirs):
            assert ours.normalize(t) == other.normalize_str(t), (ours, t)


@pytest.mark.peers
def test_json_form_loads_in_hf():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    full, texts = json.loads(tk.Tokenizer(tk.models.BPE()).to_str()), list(generated(300, seed=2))
    for ours in (
        BertNormalizer(),
        BertNormalizer(False, False, True, False),
        NFC(),
        NFKD(),
        Sequence(),
        Sequence([NFD(), StripAccents(), Sequence([Lowercase(), NFKC()])]),
    ):
        loaded = tk.Tokenizer.from_str(json.dumps(full | {"normalizer": ours.to_dict()}))
        assert json.loads(loaded.to_str())["normalizer"] == ours.to_dict()
        for t in texts:
            assert ours.normalize(t) == loaded.normalizer.normalize_str(t), (ours, t)


def digest(*texts):
    return hashlib.sha256("".join(texts).encode("utf-8")).hexdigest()[:16]


def fingerprint(name):
    "A digest of what a normalizer does to all assigned code points, one in 32 of ideographs and unassigned ones, and generated strings."
    return digest(*map(normalizer(name).normalize, fingerprinted()))


@functools.cache
def fingerprinted():
    "The texts of the fingerprint."
    parts = [
        ";".join(LAYOUTS[3].replace("{}", chr(i)) for i in SOME[k : k + 500])
        for k in range(0, len(SOME), 500)
    ]
    return [*parts, *generated(3000, seed=3)]


PINNED = {
    "nfc": "d09380e4eefdc4a9",
    "nfd": "0256862f680d200e",
    "nfkc": "7b75cb72304cbf0a",
    "nfkd": "330fb0b73530cf56",
    "lowercase": "39043e7f431d09be",
    "strip_accents": "df6708a1d3248b90",
    "bert": "01fb6b403b03692d",
}


@pytest.mark.parametrize("name", PINNED)
def test_the_same_bytes_on_every_python(name):
    "It must not depend on the Unicode version of the running Python."
    assert fingerprint(name) == PINNED[name]


def test_bert_golden_ids(shared_file):
    "Normalizer, pre-tokenizer and greedy longest match give the ids that HF gave."
    texts = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    for name, lower in (("uncased", True), ("cased", False), ("chinese", True)):
        golden = json.loads(
            shared_file(f"golden/hf-wordpiece__bert-base-{name}.json").read_text(encoding="utf-8")
        )
        ids = {
            p.rstrip("\n"): i
            for i, p in enumerate(
                shared_file(f"vocab/bert-base-{name}/vocab.txt").open(encoding="utf-8", newline="\n")
            )
        }
        n = BertNormalizer(lowercase=lower)
        for text, expected in zip(texts, golden["ids"]):
            assert [
                i for w in BertPreTokenizer().raw_pretokens(n.normalize(text)) for i in greedy(w, ids)
            ] == expected, text


def greedy(word, ids):
    "The longest piece at each place; the whole word is unknown if there is none."
    out, a = [], 0
    while a < len(word) and len(word) <= 100:
        b = next((b for b in range(len(word), a, -1) if ("##" if a else "") + word[a:b] in ids), a)
        if a == b:
            return [ids["[UNK]"]]
        out.append(ids[("##" if a else "") + word[a:b]])
        a = b
    return out if len(word) <= 100 else [ids["[UNK]"]]


def test_generated_strings_match_the_references():
    for t in generated(1500, seed=4):
        for form in ("NFD", "NFKD"):
            assert normal_form(t, form=form) == nfd_ref(t, form=form), t
        for values in itertools.product((True, False), repeat=4):
            options = dict(zip(("clean", "chinese", "strip", "lower"), values))
            assert bert_normalize(t, **options) == bert_normalize_ref(t, **options), t


def test_a_megabyte_is_linear():
    "Runs of marks, which Python's own normalization sorts in quadratic time, and others."

    def work(text):
        for n in (NFC(), NFKD(), BertNormalizer(), Sequence([StripAccents(), Lowercase()])):
            n.normalize("a" + text)

    for unit in (
        "\u0301",
        "\u0301\u0323",
        "\u0344",
        "\u0f73",
        "a\u0301",
        "한",
        "你",
        "🚀",
        "\U0001d165",
        "\U0001d165\u302e",
        "\u0897\u0301",
        "ﷺ",
        "é ",
    ):
        assert_linear(work, unit, 80_000)
    half = 50_000
    assert NFD().normalize("\u0301" * half + "\u0323" * half) == "\u0323" * half + "\u0301" * half
    assert (
        NFC().normalize("a" + "\u0301" * half + "\u0323" * half)
        == "ạ" + "\u0323" * (half - 1) + "\u0301" * half
    )


def test_files_of_other_projects(shared_file):
    "Every normalizer in the tokenizer.json files at hand is read, and written back as it was."
    found = 0
    for file in sorted(shared_file("vocab").glob("*/tokenizer.json")):
        d = json.loads(file.read_text(encoding="utf-8")).get("normalizer")
        if d:
            assert normalizer_from_dict(d).to_dict() == d, file
            found += 1
    assert found


def test_import_is_light(project):
    code = (
        "import sys; from subword_nb.text.normalizers import normalizer; normalizer('bert').normalize('é'); "
        "print([m for m in ('numpy', 'numba', 'regex', 'fastcore', 'tqdm') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True
        ).stdout.strip()
        == "[]"
    )


TABLE = Precompiled(
    build_charsmap(
        {
            "ﬁ": "fi",
            "Ａ": "A",
            "\u3000": " ",
            "\u00ad": "",
            "é": "e",
            "e\u0301": "e",
            "①": "1",
            "1": "one",
            "\u200b": "",
        }
    )
)
COMPONENTS = [
    NFC(),
    NFD(),
    NFKC(),
    NFKD(),
    Lowercase(),
    StripAccents(),
    Nmt(),
    ByteLevel(),
    Strip(),
    Strip(False, True),
    Strip(True, False),
    Strip(False, False),
    Prepend("▁x"),
    Prepend("▁"),
    TABLE,
    BertNormalizer(),
    BertNormalizer(False, True, False, False),
    BertNormalizer(True, False, True, False),
    BertNormalizer(True, True, False, True),
    BertNormalizer(False, False, None, True),
    Replace(" ", "▁"),
    Replace("a", "éé"),
    Replace("\u0301", ""),
    Replace("ab", "a"),
    Replace("", "-"),
    Replace(".", "$1"),
    *[
        Replace(p, c, True)
        for p, c in (
            (r"\s+", " "),
            (r"\p{M}", ""),
            ("a|(?<=a)", "--"),
            (r"^a|\s$", "-"),
            (" {2,}", "▁"),
            ("(?i)ab", "e"),
            (".", "x"),
            (r"\w+|\d", "w"),
            (r"[^\p{L} ]+", ""),
            (r"\b", "|"),
            ("|b", "-"),
            ("(l)(e)", r"$1 \\1"),
            (r"(?=a)", "+"),
            (r"[\s\u3000]", " "),
            ("gpt2|a", "A"),
            ("$", "."),
            (r"\n", "\n\n"),
        )
    ],
]


def theirs(tk, component):
    "HF's text and spans, as a function; None where HF panics."
    empty = json.loads(tk.Tokenizer(tk.models.BPE()).to_str())
    made, every = (
        tk.Tokenizer.from_str(json.dumps(empty | {"normalizer": component.to_dict()})).normalizer,
        tk.Regex(r"[\s\S]"),
    )

    def run(text):
        try:
            made.normalize_str(text)  # a panic here can be caught
        except BaseException as e:
            if type(e).__name__ == "PanicException":
                return None
            raise
        whole = tk.PreTokenizedString(text)
        whole.normalize(made.normalize)
        whole.split(lambda i, part: part.split(every, "isolated"))
        splits = whole.get_splits("original", "char")
        return "".join(s[0] for s in splits), [s[1] for s in splits]

    return run


def ours(component, text):
    "The same from us, with the promise between the two methods."
    x = component.align(text)
    assert component.normalize(text) == x.text, (component, text)
    return x.text, x.char_spans()


@pytest.mark.peers
@pytest.mark.parametrize("k", range(len(COMPONENTS)), ids=lambda k: type(COMPONENTS[k]).__name__ + str(k))
def test_spans_are_hf_s(k):
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    hf = theirs(tk, COMPONENTS[k])
    for text in ("", " ", "a", "\n", *generated(250, seed=100 + k)):
        assert ours(COMPONENTS[k], text) == hf(text), text


@pytest.mark.peers
@pytest.mark.slow
def test_spans_of_sequences_are_hf_s():
    "Behind a step that has put something in front of everything, HF panics or writes it twice; we go on, see the next test but one."
    tk, rng, panics = (
        pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers"),
        random.Random(11),
        0,
    )
    for _ in range(500):
        n = Sequence(rng.choices(COMPONENTS, k=rng.randint(2, 4)))
        hf = theirs(tk, n)
        for text in generated(10, seed=rng.randrange(10**6)):
            expected = hf(text)
            if expected is None:
                panics += 1
                break  # what has panicked once is poisoned
            if any(
                Sequence(n.normalizers[:k]).align(text).char_spans()[:1] == [(0, 0)]
                for k in range(1, len(n.normalizers))
            ):
                continue
            assert ours(n, text) == expected, (n, text)
    assert panics < 200


@pytest.mark.peers
def test_real_maps_have_hf_s_spans(shared_file):
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    for file in sorted(shared_file("vocab").glob("*/tokenizer.json")):
        n = normalizer_from_dict(json.loads(file.read_text(encoding="utf-8")).get("normalizer"))
        if n is None:
            continue
        hf = theirs(tk, n)
        for text in generated(600, seed=12):
            assert ours(n, text) == hf(text), (file, text)


CASES = [
    (BertNormalizer(False, False, True, False), "Crème brûlée", "Creme brulee"),
    (BertNormalizer(False, True, False, False), "学问", " 学  问 "),
    (BertNormalizer(True, False, False, False), "\ufeffBonjour\x07\u200e", "Bonjour"),
    (BertNormalizer(False, False, False, True), "Crème BRÛLÉE", "crème brûlée"),
    (BertNormalizer(False, False, None, True), "BRÛLÉE", "brulee"),
    (BertNormalizer(False, False, None, False), "BRÛLÉE", "BRÛLÉE"),
    (Sequence([Lowercase(), Strip()]), "\t GOOD Day \n", "good day"),
    (Sequence([NFD(), StripAccents()]), "Où êtes-vous, Zoë?", "Ou etes-vous, Zoe?"),
    (Sequence([]), " Ab ", " Ab "),
    (Lowercase(), "ÀÉ", "àé"),
    (Strip(True, False), "  day  ", "day  "),
    (Strip(False, True), "  day  ", "  day"),
    (Strip(True, True), "\u2003day\u3000", "day"),
    (Strip(False, False), " day ", " day "),
    (Prepend("▁"), "day", "▁day"),
    (Prepend("▁"), "", ""),
    (Replace("day", "night"), "day by day", "night by night"),
    (Replace({"Regex": r"\s+"}, " "), "day \t\n by", "day by"),
    (Replace({"Regex": "(d)(a)"}, "$2 $1"), "day", "$2 $1y"),
    (Replace({"Regex": r"(\w+)"}, "[$0]"), "a day", "[$0] [$0]"),
    (Replace("''", '"'), "''day''", '"day"'),
    (Nmt(), "a\u200bb\x01", "a b"),
    (ByteLevel(), "é ", "Ã©Ġ"),
    (NFKC(), "①ﬁ㎏", "1fikg"),
    (NFC(), "e\u0301", "é"),
    (StripAccents(), "e\u0301é", "eé"),
]


@pytest.mark.parametrize("n, text, expected", CASES, ids=lambda x: ascii(x)[:40])
def test_small_cases(n, text, expected):
    "What HF's own tests ask of each component, with words of our own."
    assert n.normalize(text) == n.align(text).text == expected
    assert (
        isinstance(n, N.Normalizer)
        and pickle.loads(pickle.dumps(n)) == n
        and hash(pickle.loads(pickle.dumps(n))) == hash(n)
        and eval(repr(n), vars(N)) == n
    )


@pytest.mark.peers
def test_small_cases_are_hf_s():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    for n, text, expected in CASES:
        assert theirs(tk, n)(text)[0] == expected == theirs(tk, normalizer_from_dict(n.to_dict()))(text)[0], n
    for n in {n for n, _, _ in CASES}:
        for text in (" ", "Día  \u0301de SOL\u200b在", "''x''  "):
            assert ours(n, text) == theirs(tk, n)(text), (n, text)


def test_components_are_values():
    "HF's can be changed in place; ours are replaced: a changed one is another one."
    n = Sequence([BertNormalizer(), Strip(), Prepend("_"), Replace("some", "else")])
    assert [type(x).__name__ for x in n.normalizers] == [
        "BertNormalizer",
        "Strip",
        "Prepend",
        "Replace",
    ] and n.normalizers[3].pattern == "some"
    for component, name, value in (
        (n.normalizers[0], "lowercase", False),
        (n.normalizers[1], "left", False),
        (n.normalizers[2], "prepend", " "),
        (n.normalizers[3], "content", ""),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(component, name, value)
        other = dataclasses.replace(component, **{name: value})
        assert getattr(other, name) == value and other != component and type(other) is type(component)
    assert (
        NFC() != NFD()
        and len({*COMPONENTS, *COMPONENTS}) == len(COMPONENTS)
        and copy.deepcopy(COMPONENTS) == COMPONENTS
    )
    with pytest.raises(ValueError, match="lowercase must .*got 'no'"):
        dataclasses.replace(BertNormalizer(), lowercase="no")


def test_a_panic_of_hf_s_is_none_of_ours():
    "A pattern that matches before the first character, then another step: the sign stays in front, once, without a source."
    n = Sequence([Replace("^", "▁", True), Lowercase(), NFC()])
    assert ours(n, "AB") == ("▁ab", [(0, 0), (0, 1), (1, 2)])
    assert ours(Sequence([Replace("^", "|", True), Strip()]), "AB ")[0] == "|AB"


def test_cutting_before_a_space():
    "Where a component says that it splits there, the parts join to the whole; also when it is a step behind others."
    rng, split = random.Random(13), 0
    for text in generated(800, seed=14):
        x, y = text[: len(text) // 2] + rng.choice("aZ9e"), " " + rng.choice("bC0a") + text[len(text) // 2 :]
        for n in (
            *COMPONENTS,
            Sequence(rng.choices(COMPONENTS, k=2)),
            Sequence(rng.choices(COMPONENTS, k=3)),
        ):
            if n.splits_at_space:
                split += 1
                assert n.normalize(x + y) == n.normalize(x) + n.normalize(y), (n, x, y)
    assert split > 10_000
    chained = [
        NFC(),
        NFKC(),
        StripAccents(),
        Lowercase(),
        BertNormalizer(),
        TABLE,
        *(
            Precompiled(build_charsmap(r))
            for r in ({"\u0600": ""}, {" \u0301": "z"}, {"e\u0301": "\u0301", "é": " "})
        ),
        *(
            Replace(p, c)
            for p, c in (
                ("b é", ""),
                (" é", "x"),
                ("bx", ""),
                ("é", "\u0301"),
                ("b ", "z"),
                (" ", "▁"),
                ("▁b", ""),
            )
        ),
    ] + [Replace(p, c, True) for p, c in ((r"\s+", " "), (" {2,}", "x"), (" ", "▁"))]
    for _ in range(15_000):
        n = Sequence(rng.choices(chained, k=rng.randint(1, 4)))
        x, y = ("".join(rng.choices("ab é\u0301\u0600", k=rng.randrange(4))) for _ in "xy")
        x, y = x + rng.choice("abe"), " " + rng.choice("abe") + y
        if n.splits_at_space:
            assert n.normalize(x + y) == n.normalize(x) + n.normalize(y), (n, x, y)
    assert [
        n.splits_at_space
        for n in (
            Sequence([NFKC(), Replace(" {2,}", "▁", True)]),
            Sequence([TABLE, Replace(r"\s+", " ", True)]),
            Sequence([Replace(r"\s+", " ", True), NFC()]),
        )
    ] == [True, False, True]
    splits = {
        n: n.splits_at_space
        for n in (
            Strip(),
            Prepend("x"),
            Replace("a b", ""),
            Replace("a ", ""),
            Replace("", "x"),
            Replace("a|b", "", True),
            N.Callable(str.title),
            NFC(),
            BertNormalizer(),
            TABLE,
            Replace(" ", "▁"),
            Replace(r"\s+", " ", True),
            Replace(" a", "b"),
            ByteLevel(),
            Sequence([Replace(" ", "a"), Replace("aa", "b")]),
        )
    }
    assert [*splits.values()] == [False] * 7 + [True] * 7 + [False]


def files():
    "What stands in a file → whether HF reads it."
    bert, strip = BertNormalizer().to_dict(), Strip().to_dict()
    good = [
        None,
        *(
            {"type": t}
            for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")
        ),
        bert,
        {k: v for k, v in bert.items() if k != "strip_accents"},
        strip,
        bert | {"type": "Bert"},
        strip | {"type": "StripNormalizer"},
        {k: v for k, v in bert.items() if k != "type"},
        {k: v for k, v in strip.items() if k != "type"},
        {"prepend": "x"},
        {"type": None, "prepend": "x"},
        {"pattern": {"String": "a"}, "content": "b"},
        {"normalizers": [{"type": "NFC"}, {"prepend": "x"}]},
        {"type": "Sequence", "normalizers": []},
        {"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""},
        {"type": "Prepend", "prepend": ""},
        TABLE.to_dict(),
    ]
    bad = [
        {},
        "NFC",
        {"type": "nfc"},
        {"type": "Nope"},
        {"type": 3},
        {"type": "BertNormalizer"},
        bert | {"clean_text": 1},
        bert | {"lowercase": None},
        bert | {"strip_accents": "no"},
        {"type": "Strip"},
        {"type": "Strip", "strip_left": True},
        strip | {"strip_right": 1},
        {"type": "Prepend"},
        {"type": "Prepend", "prepend": None},
        {"type": "Sequence"},
        {"type": "Sequence", "normalizers": [None]},
        {"type": "Sequence", "normalizers": ["x"]},
        {"type": "Sequence", "normalizers": {}},
        {"type": "Replace", "pattern": "a", "content": "b"},
        {"type": "Replace", "pattern": {"Regex": "a"}},
        {"type": "Replace", "pattern": {"Regex": "("}, "content": ""},
        {"type": "Replace", "pattern": {"Regex": "a", "String": "b"}, "content": ""},
        {"type": "Replace", "pattern": {"Regexp": "a"}, "content": ""},
        {"type": "Replace", "pattern": {"String": 1}, "content": ""},
        {"type": "Precompiled"},
        {"type": "Precompiled", "precompiled_charsmap": None},
        {"type": "Precompiled", "precompiled_charsmap": ""},
        {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
        {"type": "Precompiled", "precompiled_charsmap": "!!"},
    ]
    return [(d, True) for d in good] + [(d, False) for d in bad]


def test_files_are_read_or_refused():
    for d, good in files():
        if good:
            n = normalizer_from_dict(d)
            assert (
                n is None
                or normalizer_from_dict(n.to_dict()) == n == pickle.loads(pickle.dumps(n))
                and hash(n) == hash(normalizer_from_dict(d))
            )
        else:
            with pytest.raises(ValueError, match=r"^normalizer"):
                normalizer_from_dict(d)
    with pytest.warns(
        UserWarning,
        match=r"^model\.normalizer: ignored model\.normalizer\.x, model\.normalizer\.y: no such option",
    ):
        assert normalizer_from_dict({"type": "NFC", "x": 1, "y": None}, path="model.normalizer") == NFC()
    for d in ([["NFC"]], {"type": "Nope", "prepend": "x"}):  # HF reads these
        with pytest.raises(ValueError, match=r"^model\.normalizer"):
            normalizer_from_dict(d, path="model.normalizer")


@pytest.mark.peers
def test_files_are_read_as_hf_reads_them():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    empty = json.loads(tk.Tokenizer(tk.models.BPE()).to_str())
    for d, good in files():
        text = json.dumps(empty | {"normalizer": d})
        if good:
            assert json.loads(tk.Tokenizer.from_str(text).to_str())["normalizer"] == (
                d and normalizer_from_dict(d).to_dict()
            ), d
        else:
            with pytest.raises(BaseException):  # noqa: B017 (for some of these HF panics)
                tk.Tokenizer.from_str(text)


def test_functions(tmp_path, monkeypatch):
    "A function is saved by its path, loaded only where that is allowed, and found again by another process."
    (tmp_path / "my_steps.py").write_text("def shout(text): return text.upper()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    n = Sequence([NFC(), N.Callable("my_steps:shout")])
    assert (
        normalizer_from_dict(n.to_dict(), allow_code=True) == n == normalizer(["nfc", "my_steps:shout"])
        and n.normalize("e\u0301") == "É"
    )
    with pytest.raises(
        ValueError,
        match=r"normalizer\.normalizers\[1\]\.function must .*got 'my_steps:shout'; .*allow_code=True",
    ):
        normalizer_from_dict(n.to_dict())
    with pytest.raises(ValueError, match="function must .*got <lambda>: it is a lambda"):
        N.Callable(lambda text: text).to_dict()
    with pytest.raises(ValueError, match="my_other"):
        normalizer_from_dict({"type": "Callable", "function": "my_other:f"}, allow_code=True)
    assert N.Callable(html.unescape).align(Aligned("a&lt;", at=2)) == Aligned("a<", [(2, 3), (3, 7)], 2)
    with pytest.raises(ValueError, match="print must .*got NoneType"):
        N.Callable(print).normalize("")
    assert pickle.loads(pickle.dumps(n)) == n


def test_functions_that_say_what_they_return():
    "A function, one with its annotation as text, an object, and one with its first arguments given are asked by their signature."

    def cut(x, n):
        return x.slice(0, n)

    def exact(x: Aligned, n: int = 1) -> Aligned:
        return cut(x, n)

    def named(x: "Aligned") -> "Aligned":
        return cut(x, 1)

    class First:
        n: int = 1

        def __call__(self, x: Aligned) -> Aligned:
            return cut(x, self.n)

    for function in (exact, named, First(), functools.partial(exact, n=1), First().__call__):
        assert (
            N.Callable(function).align(Aligned("ab", at=4)) == Aligned("a", at=4)
            and N.Callable(function).normalize("ab") == "a"
        )
    for function in (str.title, html.unescape, str, functools.partial(max, "aa"), lambda text: text):
        assert N.Callable(function).normalize("ab") == function("ab")  # they are given plain text
    with pytest.raises(ValueError, match="len must .*got int"):
        N.Callable(len).normalize("ab")
    with pytest.raises(ValueError, match=r"lambda_of\.<locals>\.broken must .*got str"):
        N.Callable(lambda_of(str)).normalize("a")


def lambda_of(made):
    "A function that promises an aligned text and does not keep its word."

    def broken(x: Aligned) -> Aligned:
        return made(x.text)

    return broken


@pytest.mark.peers
def test_sequences_in_sequences_as_deep_as_hf_s():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    empty, d, read = (
        json.loads(tk.Tokenizer(tk.models.BPE()).to_str()),
        {"type": "Sequence", "normalizers": []},
        [],
    )
    for _ in range(66):
        try:
            tk.Tokenizer.from_str(json.dumps(empty | {"normalizer": d}))
        except Exception as e:
            hf = str(e)
        else:
            hf = ""
        try:
            normalizer_from_dict(d)
        except ValueError as e:
            mine = str(e)
        else:
            mine = ""
        assert bool(hf) == bool(mine) and (
            not mine or re.match(r"normalizer\.normalizers\[0\].* must be nested at most 62 deep", mine)
        ), (hf, mine)
        read.append(not mine)
        d = {"type": "Sequence", "normalizers": [d]}
    assert True in read and False in read


def test_a_megabyte_through_every_component():
    "Of one letter, of spaces, of marks, of what every component changes: time proportional to the text."
    for unit in ("a", " ", "\u0301", "\u3000", "ﬁ", "\r\n", "\x00"):
        for n in (*COMPONENTS[:24], Replace(r"\s+", " ", True), Replace(r"\s+$", "", True)):
            assert_linear(n.normalize, unit, 100_000, what=(unit, n))
    for n in (NFKD(), BertNormalizer(), Strip(), Replace("ﬁ", "fi"), TABLE):

        def align(text, n=n):
            x = n.align(text)
            assert len(x.char_spans()) == len(x.text)

        assert_linear(align, "ﬁ", 80_000, what=n)


def test_what_names_a_normalizer():
    kinds = {
        "bert": BertNormalizer,
        "nfc": NFC,
        "nfd": NFD,
        "nfkc": NFKC,
        "nfkd": NFKD,
        "lowercase": N.Lowercase,
        "strip_accents": StripAccents,
        "strip": Strip,
        "prepend": N.Prepend,
        "nmt": N.Nmt,
        "byte_level": N.ByteLevel,
    }
    for name, kind in kinds.items():
        assert normalizer(name) == kind()
    with pytest.raises(ValueError, match=re.escape(f"normalizer must be a name ({', '.join(kinds)})")):
        normalizer("no such name")
    assert (
        normalizer(("nfd", "strip_accents")) == Sequence([NFD(), StripAccents()]) and normalizer(None) is None
    )
    for bad in ("NFC", "x", 3, NFC, {}, b"nfc"):
        with pytest.raises(ValueError, match=r"normalizer must be a name \(bert, nfc, .*got"):
            normalizer(bad)
    for bad in (
        lambda: Strip("left"),
        lambda: Prepend(1),
        lambda: Replace(None, ""),
        lambda: Replace("a", None),
        lambda: Precompiled("AAAA"),
        lambda: Sequence([None]),
        lambda: Sequence(NFC()),
        lambda: Sequence(3),
        lambda: Sequence(None),
        lambda: Sequence("nfc"),
        lambda: NFC().align(3),
        lambda: NFC().normalize(b"a"),
        lambda: Lowercase().normalize(None),
        lambda: Precompiled(bytearray(4)),
        lambda: Precompiled(b""),
    ):
        with pytest.raises(ValueError):
            bad()


def test_alignment_of_a_long_text_is_quick():
    text = "Ｚoë\u0301 a\u0301 \U0001f469\u200d\U0001f680  한ß &amp; "
    for n in (*COMPONENTS[:20], Sequence([NFKC(), Replace(r"\s+", " ", True), Lowercase(), Strip()])):

        def work(text, n=n):
            assert n.align(text).text == n.normalize(text)

        assert_linear(work, text, 60_000, what=n)


@pytest.mark.peers
def test_parts_of_a_text_are_normalized_as_hf_does():
    "Added tokens cut a text before it is normalized: the offsets of a part are offsets of the whole text."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    empty, every = json.loads(tk.Tokenizer(tk.models.BPE()).to_str()), tk.Regex(r"[\s\S]")
    for n in (
        *COMPONENTS,
        Sequence([Strip(), Prepend("▁x")]),
        Sequence([StripAccents(), Replace(r"\A", "|", True)]),
        Sequence([NFKD(), StripAccents(), Lowercase()]),
    ):
        made = tk.Tokenizer.from_str(json.dumps(empty | {"normalizer": n.to_dict()})).normalizer
        for text in generated(40, seed=15):
            text = text + "#" + text[::-1]
            whole = tk.PreTokenizedString(text)
            whole.split(lambda i, part: part.split("#", "removed"))
            whole.normalize(made.normalize)
            whole.split(lambda i, part: part.split(every, "isolated"))
            cut = text.index("#") if "#" in text else 0
            parts = [n.align(Aligned(text).slice(a, b)) for a, b in ((0, cut), (cut + 1, len(text)))]
            got = [(c, span) for x in parts for c, span in zip(x.text, x.char_spans())]
            assert got == [s[:2] for s in whole.get_splits("original", "char")], (n, text)
