"""Normal forms and BERT's steps: texts, and what each character came from, against HF tokenizers; the same on every Python."""

import functools
import hashlib
import importlib.util
import itertools
import random
import subprocess
import sys
import unicodedata
from types import SimpleNamespace

import pytest
from characters import code_points
from seeds import some_of
from costs import assert_linear

from subword_nb.text import unicode_forms as F
from subword_nb.text.unicode_forms import (
    LOWER,
    UNMARKED,
    CharTable,
    bert_normalize,
    bert_normalize_ref,
    bert_pieces,
    clean_text,
    drop_marks,
    is_control,
    is_mark,
    is_nonspacing,
    lower_char,
    lower_each,
    nfd_ref,
    normal_form,
    normal_form_changes,
    space_chinese,
    strip_marks,
)
from subword_nb.core.unicode import category

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
CODES = code_points()
SOME = [
    i
    for i in CODES
    if i % 32 == 0 or i < 0x3400 or 0x10000 <= i < 0x17000 or category(chr(i)) not in ("Cn", "Co", "Lo")
]  # one in 32 of ideographs and unassigned ones
LAYOUTS = ("a{}b", "{}\u0301", "a\u0345{}\u0334\u0301", "\u0307{}a{}\u0323")
SETTINGS = list(itertools.product((True, False), repeat=4))


def flags(options) -> dict[str, bool]:
    "A row of `SETTINGS` by name."
    return dict(zip(("clean", "chinese", "strip", "lower"), options))


# marks of many classes, old and young; letters that compose; Hangul parts; controls, spaces, joiners; ideographs in and out of the blocks
ALPHABETS = [
    "aeiouAEIOU\u0300\u0301\u0302\u0308\u0323\u0327\u0345\u0338",
    "éÉüÜñÑçÇşŞÅåǺǻṩṨẛ",
    "\u0301\u0323\u0334\u0345\u05b0\u064b\u0e38\u302a\u302e",
    "αΑσΣςά\u0342\u0313\u0345ΐ",
    "İIıiŁłØøßẞſﬁﬀ",
    "한글각\u1100\u1161\u11a8\u1112\u11ab\u11a7",
    "がぎはパか\u3099\u309aｶﾊ\uff9e\uff9f",
    "हिंदीक़\u093c\u094d",
    "ไทยกำ\u0e33\u0e48",
    "\u0f73\u0f75\u0f81\u0f71\u0f72\u0f74\u0f40",
    "שׁלום\u05c1\u05b8",
    "\u0627\u0653\u0654\u064b\u0651ﷺ",
    " \t\n\r\x0b\x0c\x85\xa0\u2003\u3000\u2028",
    "\x00\x01\x7f\xad\u200b\u200c\u200d\ufeff\u2060\ufffd\ufffe",
    "你好世界豈㐀\U00020000\U0002a700\U0002b820\U0002b920\U0002ceb0\U0002f800\U00030000",
    "々〇ㄅㇰ⺀⼀㈠",
    "①²½ⅣＡａ㎏℃™ℌ𝐀𝔞",
    "\U0001d15f\U0001d15e\U0001d165\U0001d16d\U0001d157\u0301\u302e",
    "\u08d4\u08e1\u1dfb\U0001e000\U0001e944\U0001e94a\u0301\u0323\u0334a",
    "\u0897\u07fd\u1ac1\U0001e2ae\U00010d69\u0301\u0323\u0334a",
    "\U00011935\U00011930\U00011938\U000105d2\u0307\U00011382\U000113c9\U0001611e",
    "\u1c89\ua7ce\ua7dc\U00016ea0\U00010d50ǅǄᲐა",
    "\u0378\ue000\U000e0001\U0010ffff\u0890\u08e2\U000110cd\u180e\u1734\U0001171e\u1cf2\u1885",
    "abc ABC 123 .,!",
    "👩\u200d🚀👍🏽🇩🇪",
    "\U000111cf\U0001145e\U00011a34\U00010f46\U0001bc9e\u20d0\u20db\u0488",
]


def generated(n, seed=0):
    "n strings, each from a few of the alphabets."
    rng = random.Random(seed)
    for _ in range(n):
        yield "".join(
            rng.choices(
                "".join(rng.sample(ALPHABETS, rng.randint(1, 4))) + "ab ",
                k=rng.choice((1, 2, 3, 5, 8, 13, 30)),
            )
        )


def spans(changes):
    "Where each character comes from, by the rule of changes."
    out, at = [], -1
    for _, n in changes:
        at += n <= 0
        out.append((at, at + 1))
        at -= min(n, 0)
    return out


def theirs(name, **options):
    "A function from a text to HF's normalized text, and the span of each of its characters."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    normalizer = getattr(tk.normalizers, name)(**options)
    tokenizer = tk.Tokenizer(tk.models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = (
        normalizer,
        tk.pre_tokenizers.Split(tk.Regex(r"[\s\S]"), "isolated"),
    )
    return lambda text: (normalizer.normalize_str(text), tokenizer.encode(text).offsets)


def bert(clean, chinese, strip, lower):
    return theirs(
        "BertNormalizer", clean_text=clean, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lower
    )


@pytest.mark.peers
@pytest.mark.parametrize("form", FORMS)
def test_changes_are_hf_s(form):
    other = theirs(form)
    for text in ["", *generated(2500, seed=1)]:
        changes = normal_form_changes(text, form=form)
        assert ("".join(ch for ch, _ in changes), spans(changes)) == other(text), ascii(text)


@pytest.mark.peers
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_changes_are_hf_s_on_every_code_point(form, layout):
    other, codes = theirs(form), some_of(SOME, form, layout)
    for k in range(0, len(codes), 400):
        text = ";".join(layout.replace("{}", chr(i)) for i in codes[k : k + 400])
        changes = normal_form_changes(text, form=form)
        assert ("".join(ch for ch, _ in changes), spans(changes)) == other(text), hex(codes[k])


@pytest.mark.peers
def test_bert_pieces_are_hf_s():
    for n, options in enumerate(SETTINGS):
        other = bert(*options)
        for text in ["", *generated(400, seed=2 + n)]:
            pieces = bert_pieces(text, **flags(options))
            assert ("".join(pieces), [(i, i + 1) for i, piece in enumerate(pieces) for _ in piece]) == other(
                text
            ), (options, ascii(text))
            assert bert_normalize(text, **flags(options)) == "".join(pieces)


@pytest.mark.peers
def test_single_steps_are_hf_s():
    lower, strip = theirs("Lowercase"), theirs("StripAccents")
    clean, chinese = bert(True, False, False, False), bert(False, True, False, False)
    stripped = bert(False, False, True, False)
    for text in generated(1500, seed=30):
        assert (
            lower_each(text),
            [(i, i + 1) for i, piece in enumerate(LOWER.pieces(text)) for _ in piece],
        ) == lower(text)
        assert (drop_marks(text), [(i, i + 1) for i, ch in enumerate(text) if not is_mark(ch)]) == strip(text)
        assert (clean_text(text), [(i, i + 1) for i, ch in enumerate(text) if not is_control(ch)]) == clean(
            text
        )
        assert space_chinese(text) == chinese(text)[0]
        assert strip_marks(text) == stripped(text)[0]


@pytest.mark.parametrize("form", FORMS)
def test_changes_give_the_text_and_account_for_every_character(form):
    for text in generated(2500, seed=40):
        changes = normal_form_changes(text, form=form)
        assert "".join(ch for ch, _ in changes) == normal_form(text, form=form)
        assert len(text) + sum(n for _, n in changes) == len(changes)
        if normal_form(text, form=form) == text:
            longer = normal_form_changes(text + "\nﬁ\u212b", form=form)  # has to be taken apart
            assert all(n == 0 for _, n in changes) and longer[: len(text)] == changes


def test_generated_strings_match_the_references():
    for text in generated(1000, seed=41):
        for form in ("NFD", "NFKD"):
            assert normal_form(text, form=form) == nfd_ref(text, form=form), ascii(text)
        for options in SETTINGS:
            assert (
                bert_normalize(text, **flags(options))
                == bert_normalize_ref(text, **flags(options))
                == "".join(bert_pieces(text, **flags(options)))
            ), ascii(text)
        assert lower_each(text) == "".join(map(lower_char, text)) and drop_marks(text) == "".join(
            ch for ch in text if not is_mark(ch)
        ) == "".join(UNMARKED.pieces(text))
        assert strip_marks(text) == "".join(ch for ch in nfd_ref(text) if not is_nonspacing(ch))


def test_lone_surrogates_stay():
    for form in FORMS:
        assert "".join(ch for ch, _ in normal_form_changes("e\u0301\ud800ﬁ\udfff", form=form)) == normal_form(
            "e\u0301\ud800ﬁ\udfff", form=form
        )
    assert bert_pieces("\ud800É") == ["\ud800", "e"]


@functools.cache
def fingerprinted():
    "The texts of the fingerprint: assigned code points, one in 32 of ideographs and unassigned ones, and generated strings."
    return [
        *(
            ";".join(LAYOUTS[2].replace("{}", chr(i)) for i in SOME[k : k + 500])
            for k in range(0, len(SOME), 500)
        ),
        *generated(2000, seed=3),
    ]


def fingerprint(form, changes=normal_form_changes):
    "A digest of the changes of a form."
    return hashlib.sha256(
        "".join(f"{ch}{n}" for text in fingerprinted() for ch, n in changes(text, form=form)).encode()
    ).hexdigest()[:16]


def on_another_python(unicodedata):
    "The module as it is where Python knows another Unicode."
    spec = importlib.util.spec_from_file_location(f"{F.__package__}.another_python", F.__file__)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "unicodedata", unicodedata)
        spec.loader.exec_module(module)
    return module


PINNED = {
    "NFC": "47ad579e1587ccff",
    "NFD": "ed7661dd3e3c7b70",
    "NFKC": "6e89f2421777d774",
    "NFKD": "64184c0981851055",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_changes_on_every_python(form):
    "They must not depend on the Unicode version of the running Python."
    assert fingerprint(form) == PINNED[form]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_changes_with_the_pinned_unicode(form):
    "As on a Python that has the pinned version itself."
    pinned = on_another_python(pytest.importorskip("unicodedata2"))
    assert fingerprint(form, pinned.normal_form_changes) == PINNED[form]


def test_a_newer_python_changes_nothing():
    "A later Unicode may give a character that is unassigned in the pinned one a class and a composition; it is left alone."

    def normalize(form, text):
        return unicodedata.normalize(form, text.replace("\u0378", "a"))

    def combining(ch):
        return 230 if ch == "\u0378" else unicodedata.combining(ch)

    newer = on_another_python(
        SimpleNamespace(unidata_version="99.0.0", normalize=normalize, combining=combining)
    )
    texts = [*generated(500, seed=5), *(t + "\u0378\u0323a" for t in generated(50, seed=6))]
    for form in ("NFC", "NFKD"):
        for text in texts:
            assert newer.normal_form_changes(text, form=form) == normal_form_changes(text, form=form), text
            assert newer.normal_form(text, form=form) == normal_form(text, form=form), text


def test_a_megabyte_is_linear():
    "Runs of marks, wrongly ordered or not, and texts that change everywhere."

    def work(text):
        for form in ("NFC", "NFKD"):
            normal_form_changes("a" + text, form=form)
        bert_pieces("a" + text)

    for unit in (
        "\u0301",
        "\u0301\u0323",
        "\u0344",
        "\u0f73",
        "a\u0301",
        "한",
        "🚀",
        "\U0001d165\u302e",
        "\u0897\u0301",
        "ﷺ",
        "é ",
        "ﬁ",
    ):
        assert_linear(work, unit, 40_000)
    half = 50_000
    changes = normal_form_changes("a" + "\u0301" * half + "\u0323" * half)
    assert changes[0] == ("ạ", -1) and len(changes) == 2 * half


def test_what_is_no_text_is_refused():
    "Bytes can be ASCII too, and would pass through unchanged."
    for function in (normal_form, lower_each, drop_marks, normal_form_changes):
        for wrong in (b"abc", bytearray(b"abc"), None, 3, ["a"]):
            with pytest.raises(ValueError, match="text must be a str, got .*decode bytes first"):
                function(wrong)
        assert type("Mine", (str,), {})("e\u0301") == "e\u0301" and function(
            type("Mine", (str,), {})("e\u0301")
        ) == function("e\u0301")


def test_memory_stays_bounded():
    "What is remembered of characters has a limit: there are more pairs of them than memory can hold."
    kept = [
        one.cache_info().maxsize for one in vars(F).values() if type(one).__name__ == "_lru_cache_wrapper"
    ]
    assert kept.count(1 << 16) == 1  # of pairs; the others keep tables, one for each form


def test_tables_answer_for_each_character():
    shout = CharTable(lambda ch: "" if ch == "-" else ch.upper())
    assert (
        shout.pieces("ß-a") == ["SS", "", "A"]
        and shout.translate("ß-a" * 300) == "SSA" * 300
        and shout.translate("a-b") == "AB"
    )


def test_import_is_light(project):
    code = (
        "import sys; from subword_nb.text.unicode_forms import normal_form_changes; normal_form_changes('e\u0301', form='NFC'); "
        "print([m for m in ('numpy', 'numba', 'regex', 'fastcore', 'tqdm') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True
        ).stdout.strip()
        == "[]"
    )
