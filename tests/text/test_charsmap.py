"""Character maps: written, read, damaged; applied by HF's rule and by SentencePiece's, against both libraries."""

import base64
import hashlib
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tracemalloc
import unicodedata
from collections import Counter

import pytest
from characters import code_points
from costs import assert_linear
from seeds import TEXTS, fresh, some_of

from subword_nb.core.limits import limited
from subword_nb.formats.sentencepiece_proto import read_model_proto, wire_fields, write_varint
from subword_nb.text.charsmap import (
    DROPPED,
    RULE_NAMES,
    Charsmap,
    build_charsmap,
    charsmap_for,
    charsmap_rules,
    graphemes,
    keeps_ascii,
    longest_prefix,
    longest_ref,
    nfkc_rules,
    prefixes,
    read_charsmap,
    read_rules_tsv,
    rules_for,
    simple_fold,
    unit_parts,
    without_redundant,
    write_rules_tsv,
)

# letters that compose, marks, joiners; Hangul; Indian conjuncts; prepended marks; pictures and flags;
# line ends and controls; full width and ligatures; wide and unassigned
ALPHABETS = [
    "aeiAE\u0300\u0301\u0302\u0323\u0345",
    "éÉüÅǺṩẛſﬁﬀ",
    "\u0301\u0323\u05b0\u064b\u302a\u200c\u200d",
    "\u1100\u1161\u11a8\uac00\uac01\ud7cb\ua960\u0301",
    "がぎはパか\u3099\u309aｶﾊ\uff9e\uff9f",
    "कष\u094d\u093c\u0903\u200dক\u09cd\u1000\u1039\u1780\u17d2\u1b13\u1b44",
    "\u0600\u0605\u06dd\u070f\u0890\u08e2\u0d4e\U000110bd\U000111c2\u0660",
    "©®‼🚀👩\u200d\ufe0f\U0001f3fb🇩🇪🇫",
    "\r\n\r\n\t\x0b\x0c\x85\x1c\u2028\u200b\u00ad\ufeff",
    " \u00a0\u2003\u3000▁abc",
    "①²½Ａａ㎏℃ﷺ",
    "\U0001d15f\U0001d165\U0001d16d\u11b6\U00011b61",
    "\u0378\ue000\U000e0001\U0010ffff你好\U00020000",
    "\u0e33\u0eb3ไทย\u0e38",
]


def text_of(rng, more=""):
    return "".join(
        rng.choices(
            more + "".join(rng.sample(ALPHABETS, rng.randint(1, 4))) + "ab ",
            k=rng.choice((0, 1, 2, 3, 5, 8, 13, 30)),
        )
    )


def rules_of(rng):
    "Some rules, and the alphabet they are made of."
    letters = "".join(rng.sample(ALPHABETS, 4))
    drawn = (
        "".join(rng.choices(letters, k=rng.choice((1, 1, 1, 2, 2, 3)))) for _ in range(rng.randint(0, 25))
    )
    return {key: "".join(rng.choices(letters, k=rng.choice((0, 1, 1, 2, 3)))) for key in drawn}, letters


def spans(changes):
    "Where each character comes from, by the rule of changes; (0, 0) if nothing has been consumed."
    out, at = [], -1
    for _, n in changes:
        at += n <= 0
        out.append((max(at, 0), at + 1))
        at -= min(n, 0)
    return out


def hf_rule(rules, text):
    "Clusters of less than six bytes at once, others by character; the shortest key that a part begins with replaces all of it."

    def replaced(part):
        return next((rules[part[:n]] for n in range(1, len(part) + 1) if part[:n] in rules), None)

    out = []
    for part in graphemes(text):
        whole = replaced(part) if len(part.encode()) < 6 else None
        out += [ch if (new := replaced(ch)) is None else new for ch in part] if whole is None else [whole]
    return "".join(out)


def test_what_is_written_is_read():
    rng = random.Random(1)
    for _ in range(500):
        rules, letters = rules_of(rng)
        blob = build_charsmap(rules)
        assert charsmap_rules(blob) == rules and [*charsmap_rules(blob)] == sorted(rules, key=str.encode)
        assert (
            build_charsmap(dict(reversed(rules.items()))) == blob or len({*rules.values()}) > 1
        )  # only the order of the replacements may differ
        units, pool = read_charsmap(blob)
        assert len(units) % 256 == 0 and pool[-1:] in (b"", b"\0")
        for _ in range(10):
            key = text_of(rng, letters).encode()
            assert [n for n, _ in prefixes(units, key)] == [
                n for n in range(1, len(key) + 1) if key[:n] in {k.encode() for k in rules}
            ]


def test_both_rules_match_their_references():
    rng = random.Random(2)
    for _ in range(400):
        rules, letters = rules_of(rng)
        charsmap = Charsmap(build_charsmap(rules))
        for _ in range(5):
            text = text_of(rng, letters)
            assert (
                charsmap.normalize(text)
                == hf_rule(rules, text)
                == "".join(ch for ch, _ in charsmap.changes(text))
            ), (rules, ascii(text))
            assert charsmap.longest(text) == longest_ref(rules, text), (rules, ascii(text))


def test_clusters():
    rng = random.Random(3)
    for _ in range(2000):
        text = text_of(rng)
        assert "".join(graphemes(text)) == text
    for parts in (
        ["a\u0301\u0323", "b"],
        ["\r\n", "\n", "\r", "\u0301", "a"],
        ["가\u11a8", "각", "\u1100\u1100\u1161\u11a8\u11a8"],
        ["🇩🇪", "🇫🇷", "🇩"],
        ["👩\u200d🚀", "👍🏽", "a\u200d", "🚀"],
        ["क\u094d\u200dष\u094dक", "क", "k"],
        ["\u0600a", "\u0600\u0601", "\n", "\u0600"],
        ["©\u200d©\u0301", "©\u200d", "a"],
        ["ก\u0e33", "า"],
        ["\u200b", "\u0301\u0301"],
        ["\ud800", "a"],
    ):
        assert graphemes("".join(parts)) == parts, parts


def test_clusters_are_those_of_regex():
    "On old characters, without the signs that join Indian consonants: regex joins there even without a consonant before."
    regex = pytest.importorskip("regex")
    old = [
        ch
        for letters in ALPHABETS
        for ch in letters
        if unicodedata.category(ch) not in ("Cn", "Co") and ch not in "\u094d\u09cd\u1039\u17d2\u1b44"
    ]
    rng = random.Random(4)
    for _ in range(3000):
        text = "".join(rng.choices(old, k=rng.randint(1, 8)))
        assert graphemes(text) == regex.findall(r"\X", text), ascii(text)


@pytest.mark.parametrize(
    ("blob", "said"),
    [
        (b"", "got 0 bytes, too few"),
        (b"\1\0", "got 2 bytes, too few"),
        (b"\4\0\0\0\0", "got 5 bytes, too few for a trie of 4"),
        (b"\0\0\0\0abc\0", "got a trie of 0 bytes"),
        (b"\5\0\0\0" + bytes(9), "got a trie of 5 bytes"),
        (b"\4\0\0\0" + bytes(4) + b"\xff\0", "got replacements that are not UTF-8 at byte 0"),
        ("abc", "must be bytes (in a file they are base64), got str"),
        (None, "must be bytes (in a file they are base64), got NoneType"),
    ],
)
def test_damaged_blobs_are_refused(blob, said):
    for use in (
        read_charsmap,
        charsmap_rules,
        lambda blob: Charsmap(blob).normalize("a"),
        lambda blob: Charsmap(blob).changes(""),
        lambda blob: Charsmap(blob).longest("é"),
    ):
        with pytest.raises(ValueError, match="precompiled_charsmap") as error:
            use(blob)
        assert said in str(error.value)


def test_flipped_bits_never_hang_or_crash():
    rng, rules = fresh(5), {"a": "b", "ab": "é", "é": "", "e\u0301": "é", "ﬁ": "fi", "你": "好好"}
    whole, refused = build_charsmap(rules), 0
    for _ in range(3 * TEXTS):
        blob = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            blob[rng.randrange(len(blob))] ^= 1 << rng.randrange(8)
        for _ in range(rng.randint(0, 3)):  # units in use, made to point anywhere
            place = rng.choice([i for i in range(4, len(whole) - 40, 4) if any(whole[i : i + 4])])
            blob[place : place + 4] = rng.randbytes(4)
        for use in ("normalize", "changes", "longest"):
            try:
                getattr(Charsmap(bytes(blob)), use)("ab é ﬁe\u0301你a")
            except ValueError as error:
                assert str(error).startswith("precompiled_charsmap must ")
                refused += 1
    assert refused > TEXTS // 2


def test_a_trie_in_circles_is_found_out():
    units, pool = read_charsmap(build_charsmap({"ab": "x"}))
    place = next(i for i, u in enumerate(units) if u & 0x800000FF == ord("b"))
    first = next(i for i, u in enumerate(units) if u & 0x800000FF == ord("a"))
    base = first ^ ord("a")
    units[place] = ord("b") | (place ^ base) << 10 | 1 << 8
    blob = (4 * len(units)).to_bytes(4, "little") + units.tobytes() + pool
    with pytest.raises(ValueError, match="circles"):
        charsmap_rules(blob)


def test_free_units_are_nobodys_children():
    "Whatever byte is tried, zero too, at whatever node: only children answer."
    rng = random.Random(12)
    for _ in range(150):
        rules, _ = rules_of(rng)
        units, _ = read_charsmap(build_charsmap(rules))
        keys, seen, todo = {key.encode() for key in rules}, 0, [(b"", unit_parts(units[0])[2])]
        while todo:
            start, base = todo.pop()
            found = [byte for byte in range(256) if unit_parts(units[base ^ byte])[0] == byte]
            assert found == sorted(
                {key[len(start)] for key in keys if key.startswith(start) and key != start}
            ), (rules, start)
            assert (units[base] >> 31 == 1) == (start in keys)
            todo += [
                (start + bytes([byte]), base ^ byte ^ unit_parts(units[base ^ byte])[2]) for byte in found
            ]
            seen += 1
        assert seen == len({key[:n] for key in keys for n in range(len(key) + 1)} | {b""})


@pytest.mark.slow
def test_a_trie_of_long_keys_is_refused():
    "A chain of twenty-two thousand letters on which every place ends a key: a megabyte of file, hundreds of keys."
    n = 22_000
    bases = [256 * (k // 32) + 256 + k % 32 for k in range(n + 1)]
    units = [0] * (256 * (n // 32 + 3))
    units[0] = bases[0] << 10
    for base, below in zip(bases, bases[1:]):
        away = base ^ ord("a") ^ below
        units[base ^ ord("a")], units[below] = (
            ord("a") | 1 << 8 | (away << 10 if away < 1 << 21 else away >> 8 << 10 | 1 << 9),
            1 << 31,
        )
    blob = (4 * len(units)).to_bytes(4, "little") + b"".join(u.to_bytes(4, "little") for u in units) + b"x\0"
    tracemalloc.start()
    with pytest.raises(ValueError, match="endless ones"):
        charsmap_rules(blob)
    assert Charsmap(blob).longest("aab") == "xb"  # which spells no keys
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150_000_000
    assert Charsmap(blob).normalize("b") == "b"


def test_replacements_that_lie_over_each_other_are_refused():
    "Ten thousand keys, and the replacement of each is nearly the whole pool."
    units, pool = read_charsmap(build_charsmap({f"{i:04d}": str(i) for i in range(10_000)}))
    values = [i for i, unit in enumerate(units) if unit >> 31]
    for k, i in enumerate(values):
        units[i] = 1 << 31 | k
    blob = (4 * len(units)).to_bytes(4, "little") + units.tobytes() + b"z" * 200_000
    with pytest.raises(ValueError, match="many that overlap"), limited(growth=10**6):
        charsmap_rules(blob)
    with pytest.raises(ValueError, match="a replacement has 200,000 characters"):
        charsmap_rules(blob)
    shared = read_charsmap(
        build_charsmap({"a": "xyz", "b": ""})
    )  # one replacement inside another is a fine way to save space
    ends = [i for i, unit in enumerate(shared[0]) if unit >> 31 and unit & 0xFF == 4]
    for i in ends:
        shared[0][i] = 1 << 31 | 2
    assert charsmap_rules((4 * len(shared[0])).to_bytes(4, "little") + shared[0].tobytes() + shared[1]) == {
        "a": "xyz",
        "b": "z",
    }


def test_thirty_two_keys_at_a_place():
    rules = {"a" * n: f"<{n}>" for n in range(1, 41)}
    units = read_charsmap(build_charsmap(rules))[0]
    assert [longest_prefix(units, b"a" * n)[0] for n in (0, 1, 32, 33, 99)] == [0, 1, 32, 32, 32] and len(
        [*prefixes(units, b"a" * 99)]
    ) == 40
    assert Charsmap(build_charsmap(rules)).longest("a" * 43) == longest_ref(rules, "a" * 43) == "<32><11>"
    assert charsmap_rules(build_charsmap(rules)) == rules


def test_shared_endings_are_no_circle():
    "Ten thousand ways through one block of units; and one key as long as a page."
    digits = {f"{i:04d}": "0" for i in range(10_000)}
    assert (
        len(read_charsmap(build_charsmap(digits))[0]) == 256
        and charsmap_rules(build_charsmap(digits)) == digits
    )
    assert Charsmap(build_charsmap(digits)).longest("012 01234567é") == "012 00é"
    long = {"ab" * 10_000: "x", "é" * 3000: "y"}
    assert charsmap_rules(build_charsmap(long)) == long


@pytest.mark.slow
def test_a_trie_of_endless_keys_is_refused():
    "Sixty letters, each a or b, all on the way to one value: no circle, but more keys than could ever be listed."
    bases, units = [256 * (k + 1) for k in range(61)], [0] * (256 * 62)
    units[0] = bases[0] << 10
    for k in range(60):
        for label in b"ab":
            place = bases[k] ^ label
            units[place] = label | (place ^ bases[k + 1]) << 10 | (k == 59) << 8
    units[bases[60]] = 1 << 31
    blob = (4 * len(units)).to_bytes(4, "little") + b"".join(u.to_bytes(4, "little") for u in units) + b"x\0"
    with pytest.raises(ValueError, match="millions of keys"):
        charsmap_rules(blob)
    assert Charsmap(blob).normalize("ab" * 30) == "ab" * 30


def test_memory_stays_bounded():
    "Clusters are remembered, but not all there are."
    assert Charsmap(build_charsmap({"ﬁ": "fi"}))._tables.whole.cache_info().maxsize == 1 << 16


def test_what_cutting_at_a_space_relies_on():
    for rules, kept in (
        ({}, True),
        ({"e\u0301": "é", "a\u0301b": "", "\u3000": " ", "a": "a"}, True),
        ({"a": "b"}, False),
        ({"9": ""}, False),
        ({" ": " "}, False),
        ({" \u0301": "´"}, False),
        ({"\u0600\u0601": "x"}, False),
    ):
        assert keeps_ascii(Charsmap(build_charsmap(rules))) == kept, rules


def test_rules_that_cannot_be_written():
    for rules, said in (
        ({"": "a"}, "nothing to replace"),
        ({"a\0": "b"}, "zero character"),
        ({"a": "\0"}, "zero character"),
        ({"\ud800": "a"}, "lone surrogate"),
        ({"a": 1}, "rules must be from str to str, got"),
        ({1: "a"}, "rules must be from str to str, got"),
    ):
        with pytest.raises(ValueError, match=said):
            build_charsmap(rules)


def test_an_object_is_its_blob():
    rules = {"ﬁ": "fi"}
    one, other = Charsmap(build_charsmap(rules)), Charsmap(build_charsmap(rules))
    one.normalize("ﬁ")
    assert (
        one == other
        and hash(one) == hash(other)
        and repr(one) == repr(other)
        and pickle.loads(pickle.dumps(one)) == one
        and one != Charsmap(build_charsmap({"a": "b"}))
    )
    with pytest.raises(AttributeError):
        one.blob = b""
    assert (
        Charsmap(build_charsmap({})).normalize("aé\r\n")
        == "aé\r\n"
        == Charsmap(build_charsmap({})).longest("aé\r\n")
    )


def test_hostile_texts_are_linear():
    blob = build_charsmap(
        {"\u0301": "x", "a\u0301\u0301\u0301": "y", "\u0301" * 50: "z", "क": "k", "\u0600": ""}
    )

    def work(text):
        charsmap, text = Charsmap(blob), "क" + text
        assert len(charsmap.changes(text)) == len(charsmap.normalize(text))
        charsmap.longest(text)

    for unit in (
        "\u0301",
        "a\u0301",
        "क\u094d",
        "\u094d",
        "\u0600",
        "©\u200d",
        "©\u0301",
        "\u1100",
        "\u1161",
        "🇩",
        "\r\n",
        "\u200d",
        "👩\u200d",
    ):
        assert_linear(work, unit, 16_000)


def test_import_is_light(project):
    code = (
        "import sys; from subword_nb.text.charsmap import Charsmap, build_charsmap; "
        "Charsmap(build_charsmap({'a': 'b'})).changes('ae\\u0301क\\u094d'); "
        "print([m for m in ('numpy', 'numba', 'regex', 'fastcore', 'tqdm') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True
        ).stdout.strip()
        == "[]"
    )


def many_rules():
    "A rule for every character that NFKC changes, and for every letter with a mark: about as many as SentencePiece's own map has."
    rules = {
        ch: new
        for i in range(1, 0x110000)
        if not 0xD800 <= i < 0xE000 and (new := unicodedata.normalize("NFKC", ch := chr(i))) != ch
    }
    letters = [chr(i) for i in range(0x41, 0x2000) if unicodedata.category(chr(i))[0] == "L"]
    return (
        rules
        | {
            ch + mark: unicodedata.normalize("NFC", ch + mark)
            for ch in letters
            for mark in "\u0300\u0301\u0302\u0303\u0308\u0323\u0327\u0328\u0331\u0338"
        }
        | {
            f"{chr(i)}{chr(j)}{chr(k)}": unicodedata.normalize("NFC", f"{chr(i)}{chr(j)}{chr(k)}")
            for i in range(0x1100, 0x1113)
            for j in range(0x1161, 0x1176)
            for k in range(0x11A8, 0x11C3)
        }
    )


@pytest.mark.slow
def test_a_quarter_of_a_million_rules():
    rules, rng = many_rules(), random.Random(6)
    while len(rules) < 250_000:
        rules["".join(rng.choices("abcdefghijéüñあいう한국어", k=rng.randint(2, 6)))] = rng.choice(
            ["x", "yy", "é"]
        )
    listed = list(rules.items())
    rng.shuffle(listed)
    assert_linear(lambda some: build_charsmap(dict(some)), listed, len(listed))
    blob = build_charsmap(rules)
    assert charsmap_rules(blob) == rules
    assert Charsmap(blob).longest("ﬁ e\u0301 \u1112\u1161\u11ab") == "fi é 한"


# The other libraries


def hf(blob):
    "A function from a text to HF's normalized text, and the span of each of its characters."
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    normalizer = tk.normalizers.Precompiled(blob)
    tokenizer = tk.Tokenizer(tk.models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = (
        normalizer,
        tk.pre_tokenizers.Split(tk.Regex(r"[\s\S]"), "isolated"),
    )
    return lambda text: (normalizer.normalize_str(text), tokenizer.encode(text).offsets)


def agree(charsmap, other, text):
    changes = charsmap.changes(text)
    assert (charsmap.normalize(text), spans(changes)) == other(text), ascii(text)
    assert charsmap.normalize(text) == "".join(ch for ch, _ in changes)


def lead_bytes():
    "A map that writes Z for whatever begins with a byte above 0x7F: it shows where HF sees clusters."
    units = [0] * 1024
    units[0] = 256 << 10
    for i, byte in enumerate(range(0xC2, 0xF5)):
        units[256 ^ byte] = byte | 1 << 8 | (256 ^ byte ^ (512 + i)) << 10
        units[512 + i] = 1 << 31
    return (4 * len(units)).to_bytes(4, "little") + b"".join(u.to_bytes(4, "little") for u in units) + b"Z\0"


def maps(shared_file):
    "The character maps of models at hand, each once."
    found = set()
    for file in sorted(shared_file("vocab").glob("*/tokenizer.json")):
        d = json.loads(file.read_text(encoding="utf-8")).get("normalizer") or {}
        found |= {
            base64.b64decode(n["precompiled_charsmap"])
            for n in d.get("normalizers", [d])
            if n.get("type") == "Precompiled"
        }
    assert found
    return sorted(found)


@pytest.mark.peers
def test_hf_reads_what_is_written():
    rng = random.Random(7)
    for _ in range(150):
        rules, letters = rules_of(rng)
        blob = build_charsmap(rules)
        charsmap, other = Charsmap(blob), hf(blob)
        for _ in range(20):
            agree(charsmap, other, text_of(rng, letters + rng.choice(("", "\0\0\0"))))


@pytest.mark.peers
def test_hf_on_real_maps(shared_file):
    rng = random.Random(8)
    strings = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    for blob in [*maps(shared_file), lead_bytes()]:
        charsmap, other = Charsmap(blob), hf(blob)
        for text in [*strings, *(text_of(rng) for _ in range(3000))]:
            agree(charsmap, other, text)


@pytest.mark.peers
@pytest.mark.slow
def test_hf_sees_the_same_clusters_at_every_code_point():
    "Before and after a letter, a mark, a picture and a conjunct; ideographs and Hangul by sample, but before marks."
    charsmap, other = (
        Charsmap(lead_bytes()),
        pytest.importorskip("tokenizers").normalizers.Precompiled(lead_bytes()),
    )
    every = some_of([chr(i) for i in code_points() if i >= 0x80], "clusters")
    some = [
        ch
        for ch in every
        if not (
            "\u3400" <= ch < "\ua000"
            or "\uac00" <= ch < "\ud7a4"
            or "\ue000" <= ch < "\uf900"
            or "\U00020000" <= ch < "\U00040000"
        )
        or ord(ch) % 29 == 0
    ]
    for layout in (
        "é{}",
        "{}a",
        "{}\u0301\u0301",
        "©\u200d{}",
        "©{}\u200d©\u0301",
        "\u0915\u094d{}\u0301",
        "{}\u094d\u0915\u0301",
        "\u0915\u094d{}\u0915\u0301",
        "\u0915{}\u0915\u0301",
        "\u0600{}\u0301",
    ):
        codes = every if layout == "{}\u0301\u0301" else some
        for k in range(0, len(codes), 50_000):
            text = ";".join(layout.replace("{}", ch) for ch in codes[k : k + 50_000])
            if (got := charsmap.normalize(text).split(";")) != (
                expected := other.normalize_str(text).split(";")
            ):
                raise AssertionError(
                    (
                        layout,
                        [(hex(ord(ch)), a, b) for ch, a, b in zip(codes[k:], got, expected) if a != b][:10],
                    )
                )


def sentencepiece(blob=None, name=None):
    "SentencePiece's normalizer with nothing but the map."
    spm, plain = (
        pytest.importorskip("sentencepiece", reason="SentencePiece is one of the peers"),
        {"add_dummy_prefix": False, "escape_whitespaces": False, "remove_extra_whitespaces": False},
    )
    if name:
        return spm.SentencePieceNormalizer(rule_name=name, **plain)
    return spm.SentencePieceNormalizer(
        normalizer_spec=b"\x0a\x01x\x12" + write_varint(len(blob)) + blob + b"\x18\0\x20\0\x28\0", **plain
    )


def named_map(name):
    "The map that SentencePiece has under a name, cut out of its serialized settings."
    spec = sentencepiece(name=name).serialized_normalizer_spec()
    return next(spec[f.body : f.end] for f in wire_fields(spec) if f.number == 2)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
def test_sentencepiece_s_maps_leave_spaces_alone(name):
    "So texts may be cut there; letters, of course, change where case is folded."
    assert keeps_ascii(Charsmap(named_map(name))) == (not name.endswith("cf"))


@pytest.mark.peers
def test_sentencepiece_on_its_own_map():
    blob, rng = named_map("nmt_nfkc"), random.Random(9)
    charsmap, other = Charsmap(blob), sentencepiece(blob)
    for _ in range(4000):
        text = text_of(rng)
        assert charsmap.longest(text) == other.normalize(text), ascii(text)


@pytest.mark.peers
def test_sentencepiece_reads_what_is_written():
    rng = random.Random(10)
    for _ in range(60):
        rules, letters = rules_of(rng)
        blob = build_charsmap(rules or {"a": "b"})
        charsmap, other = Charsmap(blob), sentencepiece(blob)
        for _ in range(20):
            text = text_of(rng, letters + rng.choice(("", "\0\0\0")))
            assert charsmap.longest(text) == other.normalize(text), (rules, ascii(text))
    for n in (31, 32, 33, 40, 100):
        rules = {"a" * k: f"<{k}>" for k in range(1, n + 1)}
        assert Charsmap(build_charsmap(rules)).longest("a" * (n + 3)) == sentencepiece(
            build_charsmap(rules)
        ).normalize("a" * (n + 3))


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
def test_sentencepiece_s_maps_written_again(name):
    "The same rules, in an array of about the same size, and read by SentencePiece with the same result."
    blob, rng = named_map(name), random.Random(11)
    again = build_charsmap(charsmap_rules(blob))
    assert charsmap_rules(again) == charsmap_rules(blob) and len(again) < 1.5 * len(blob)
    charsmap, other = Charsmap(again), sentencepiece(again)
    for _ in range(500):
        text = text_of(rng)
        assert charsmap.longest(text) == other.normalize(text), ascii(text)


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
    "aAeE iIoOuUzZsS09'-.,!?~\u00a0\u2003\u3000\u200b\ufeff\t\r\n\x0b\x0c\x1c\x1d\x1e\x1f\x85"
    "\u2028\u2029\u2581\x01\x07\x7f\x8f\x9f\u061c\u200c\u200d\u200e\u200f\ufffd"
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


def digest(rules):
    text = "".join(f"{key}\t{text}\n" for key, text in rules.items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_same_on_every_python_and_a_map_holds_its_rules():
    "One test, because the rules take seconds to make in each process."
    assert {name: digest(rules_for(name)) for name in RULE_NAMES} == DIGESTS
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
            refused[str(e).split(" must ")[1][:12]] += 1
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
        newer = {k for k in missing if len(k) == 1 and k not in DROPPED + "\u061c\u200c"}
        assert all(
            set(k) & newer or k in DROPPED + "\u061c\u200c" or ours[k] not in theirs.values() for k in missing
        ), path
        assert not any(c in text for c in newer for text in theirs.values())
        mine, its = Charsmap(charsmap_for(name)), Charsmap(blob)
        other = re.compile("|".join(map(re.escape, {*missing, *changed})))
        texts = [
            t for t in fresh(2).sample(list(theirs), 4 * TEXTS) + drawn_texts(TEXTS, 3) if not other.search(t)
        ]
        assert [t for t in texts if mine.longest(t) != its.longest(t)] == [], path


STORED_MAP = """
import sys

from subword_nb.text import charsmap

charsmap.nfkc_rules = lambda: {"a": "b"}  # the real ones take seconds
if sys.argv[1:] == ["read"]:
    charsmap.build_charsmap = None  # an error where it is called
print([charsmap.charsmap_rules(charsmap.charsmap_for(name)) for name in ("nfkc", "nfkc_cf")], charsmap.charsmap_for("identity"))
"""


def test_named_maps_are_stored_for_the_next_process(tmp_path):
    "Building one takes seconds; it is read from the file where the same program has built it before."

    def child(*args, **env):
        env = {**os.environ, "SUBWORD_NB_CACHE": str(tmp_path), "SUBWORD_NB_TABLES": "", **env}
        command = [sys.executable, "-c", STORED_MAP, *args]
        return subprocess.run(command, capture_output=True, text=True, env=env)

    first = child()
    assert first.stdout.startswith("[{'a': 'b'}, {"), first.stderr
    assert first.stdout.endswith("b''\n")
    assert child("read").stdout == first.stdout
    assert "not callable" in child("read", SUBWORD_NB_TABLES="none").stderr
