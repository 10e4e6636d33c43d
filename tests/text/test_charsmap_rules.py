"""SentencePiece's rules by name: the same as the installed library's, on every Python, and what published models have of them."""

import hashlib
import re
from collections import Counter

import pytest
from seeds import TEXTS, fresh, some_of

from subword_nb.text.charsmap import Charsmap, charsmap_rules, longest_ref
from subword_nb.text.charsmap_rules import (
    DROPPED,
    RULE_NAMES,
    charsmap_for,
    nfkc_rules,
    read_rules_tsv,
    rules_for,
    simple_fold,
    without_redundant,
    write_rules_tsv,
)
from subword_nb.formats.sentencepiece_proto import read_model_proto

MAPS = RULE_NAMES[1:]
# What the rules are on every Python: Unicode's younger characters do not come from the interpreter's tables.
DIGESTS = {
    "identity": "e3b0c44298fc1c14",
    "nfkc": "1496e823a4e0b516",
    "nmt_nfkc": "c2f8c3f74566eb75",
    "nfkc_cf": "b0435e8ae5a06b14",
    "nmt_nfkc_cf": "e307ee1a76fc0e57",
}
ALPHABET = (
    "aAeE iIoOuUzZsS09'-.,!?~\u00a0\u2003\u3000\u200b\ufeff\t\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\u2581\x01\x07\x7f\x8f\x9f\u061c\u200c\u200d\u200e\u200f\ufffd"
    "\u0300\u0301\u0302\u0303\u0304\u0307\u0308\u030a\u0323\u0327\u0328\u0338\u0340\u0341\u0345Åéçñßẞİıǅǆﬁﬃﬅ²½№℃ℌ㍿㌔ｱﾞｶﾞｈ～゛がガΑάΐᾈϓſK각ᄀ하가ᅡᆨᆺㄱㅏﾡￂ힣"
    "فاﷺﻻกำຳދি"
    "\u0958\u0915\u093c\u09c7\u09be\u0f71\u0f72\U0001d15e\U0001d165\U00011099\U000110ba\U0001f600\U0001f1e6👩\U0001d400\U0002f800豈\ue000\U000e0001\U0010fffd"
    "\ua7f1\ua7f2\U00010781\U0001e030\U0001ccd6\U000105d2\U000113c2\U0001611e\U0001611f\U00016d67\U00016ea0\U00010d50"
)


def drawn_texts(n: int, seed: int = 0) -> list[str]:
    "Texts in which characters with rules meet characters that lengthen a key."
    rng = fresh(seed)
    keys = list(nfkc_rules())
    word = [
        lambda: rng.choice(ALPHABET),
        lambda: rng.choice(keys),
        lambda: rng.choice(ALPHABET) * rng.randrange(1, 4),
        lambda: chr(rng.choice((rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x110000)))),
    ]
    return ["".join(rng.choice(word)() for _ in range(rng.randrange(13))) for _ in range(n)]


@pytest.mark.parametrize("name", RULE_NAMES)
def test_the_same_on_every_python(name):
    assert (
        hashlib.sha256(
            "".join(f"{key}\t{text}\n" for key, text in rules_for(name).items()).encode()
        ).hexdigest()[:16]
        == DIGESTS[name]
    )


def test_a_map_holds_its_rules():
    assert charsmap_rules(charsmap_for("nmt_nfkc_cf")) == rules_for("nmt_nfkc_cf")


def test_tsv_there_and_back(tmp_path):
    rules = dict(fresh(0).sample(sorted(rules_for("nmt_nfkc").items()), 5000))
    assert (
        read_rules_tsv(write_rules_tsv(rules, path=tmp_path / "rules.tsv"))
        == read_rules_tsv(tmp_path / "rules.tsv")
        == read_rules_tsv(str(tmp_path / "rules.tsv"))
        == rules
    )


def test_what_the_librarys_own_tests_ask():
    "A rule that shorter ones make needless goes, one that only looks so stays; lines may have no second field, or several spaces."
    assert without_redundant({"a": "A", "b": "B", "ab": "AB", "abc": "ABC", "abcd": "AB"}) == {
        "a": "A",
        "abc": "ABC",
        "abcd": "AB",
        "b": "B",
    }
    assert without_redundant({"a": "", "aa": "", "aaa": "a"}) == {"a": "", "aaa": "a"}
    assert read_rules_tsv("0061\t0041\n0062  0063\t0042 \n0064\n0065\t\n") == {
        "a": "A",
        "bc": "B",
        "d": "",
        "e": "",
    }
    rules = rules_for("nmt_nfkc")
    assert [rules.get(ch) for ch in "Ａ①㍿\u3000\u200bﬁ～▁\x07a"] == [
        "A",
        "1",
        "株式会社",
        " ",
        " ",
        "fi",
        None,
        " ",
        "",
        None,
    ]
    assert [longest_ref(rules, t) for t in ("ｸﾞｰｸﾞﾙ", "①②③", "が", "e\u0301\u0323")] == [
        "グーグル",
        "123",
        "が",
        "é\u0323",
    ]


@pytest.mark.parametrize(
    "use",
    [
        lambda: rules_for("nfc"),
        lambda: rules_for(["nfkc"]),
        lambda: charsmap_for(None),
        lambda: charsmap_for(["nfkc"]),
        lambda: read_rules_tsv(b"41\t42\n"),
        lambda: read_rules_tsv(None),
        lambda: read_rules_tsv("\ufeff41\t42\n"),
        lambda: write_rules_tsv({"a": None}),
        lambda: write_rules_tsv({1: "a"}),
        lambda: write_rules_tsv({"\ud800": "a"}),
        lambda: write_rules_tsv({"a": "\0"}),
        lambda: simple_fold("ab"),
        lambda: simple_fold(""),
    ],
)
def test_wrong_arguments(use):
    with pytest.raises(ValueError):
        use()


def test_names_may_be_other_strings():
    class Name(str):
        pass

    assert rules_for(Name("nmt_nfkc")) == rules_for("nmt_nfkc") and charsmap_for(Name("identity")) == b""
    changed = rules_for("nmt_nfkc")
    changed.clear()
    assert rules_for("nmt_nfkc") != {}  # a copy each


def test_tsv_survives_any_bytes(tmp_path):
    rng, path = fresh(5), tmp_path / "rules.tsv"
    good, refused = write_rules_tsv({"ﬁ": "fi", "\t": "", "e\u0301": "é"}).encode(), Counter()
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice(b"\t\n #0129afgU+x\x00\xff\xd8")
        path.write_bytes(data)
        try:
            read_rules_tsv(path)
        except ValueError as e:
            assert str(path) in str(e)
            refused[str(e).split(": ")[1][:12]] += 1
    assert 80 < refused.total() < 400


@pytest.mark.peers
@pytest.mark.parametrize("name", MAPS)
def test_rules_are_sentencepieces(name):
    sp = pytest.importorskip("sentencepiece")
    blob = read_model_proto(sp.SentencePieceNormalizer(rule_name=name).serialized_model_proto()).normalizer(
        "precompiled_charsmap"
    )
    theirs, ours = charsmap_rules(blob), rules_for(name)
    if "\ua7f1" not in theirs:
        pytest.skip(f"sentencepiece {sp.__version__} has the rules of an older Unicode")
    different = {k for k in theirs.keys() | ours.keys() if theirs.get(k) != ours.get(k)}
    assert not different, f"{len(different)} rules differ, such as {sorted(different)[:5]}"


@pytest.mark.peers
@pytest.mark.parametrize("name", MAPS)
def test_normalizes_as_sentencepiece(name):
    sp = pytest.importorskip("sentencepiece")
    peer = sp.SentencePieceNormalizer(
        rule_name=name, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    ours = Charsmap(charsmap_for(name))
    if peer.normalize("\ua7f1") == "\ua7f1":
        pytest.skip(f"sentencepiece {sp.__version__} has the rules of an older Unicode")
    everything = some_of([chr(i) for i in range(1, 0x110000) if not 0xD800 <= i < 0xE000], name)
    assert [c for c, theirs in zip(everything, peer.normalize(everything)) if ours.longest(c) != theirs] == []
    texts = drawn_texts(10 * TEXTS) + [
        key + tail for key in fresh(1).sample(sorted(rules_for(name)), TEXTS) for tail in ("", "\u0301", "ᆨ")
    ]
    assert [t for t, theirs in zip(texts, peer.normalize(texts)) if ours.longest(t) != theirs] == []


@pytest.mark.peers
def test_sentencepiece_reads_our_rules(tmp_path, capfd):
    sp = pytest.importorskip("sentencepiece")
    rules = {"ﬁ": "fi", "\t": "", "e\u0301": "é", "\u2028": " ", "\U0001f600": "\u00e9\u0301"}
    write_rules_tsv(rules, path=tmp_path / "rules.tsv")
    peer = sp.SentencePieceNormalizer(rule_tsv=str(tmp_path / "rules.tsv"))
    assert dict(peer.Decompile()) == rules
    assert peer.normalize("ﬁn\te\u0301e\u2028😀") == "▁finée▁é\u0301"


@pytest.mark.slow
def test_published_models_differ_by_what_was_added_since(shared_data):
    models = sorted(p for p in shared_data.glob("vocab/*/*.model*") if "llama-3" not in str(p))
    kinds = {}
    for path in models:
        proto = read_model_proto(path.read_bytes(), name=str(path))
        name, blob = proto.normalizer("name"), proto.normalizer("precompiled_charsmap")
        assert blob or name == "identity"
        if blob:
            kinds.setdefault((name, blob), path)
    for (name, blob), path in kinds.items():
        theirs, ours = charsmap_rules(blob), rules_for(name)
        changed = {k for k, text in theirs.items() if ours.get(k) != text}
        assert changed <= {"\u200d", " "}, (
            path
        )  # the joiner was a space for translators; and one old map replaces a space by itself
        missing = ours.keys() - theirs.keys()
        # A model of an older Unicode lacks characters that came later, and sequences with them or to them.
        late = {k for k in missing if len(k) == 1 and k not in DROPPED + "\u061c\u200c"}
        assert all(
            set(k) & late or k in DROPPED + "\u061c\u200c" or ours[k] not in theirs.values() for k in missing
        ), path
        assert not any(c in text for c in late for text in theirs.values())
        mine, its = Charsmap(charsmap_for(name)), Charsmap(blob)
        other = re.compile("|".join(map(re.escape, {*missing, *changed})))
        texts = [
            t for t in fresh(2).sample(list(theirs), 4 * TEXTS) + drawn_texts(TEXTS, 3) if not other.search(t)
        ]
        assert [t for t in texts if mine.longest(t) != its.longest(t)] == [], path
