"""Normalizers against HF tokenizers on every code point, in every neighbourhood that matters, and the same bytes on every Python."""
import functools
import hashlib
import itertools
import json
import random
import subprocess
import sys
import time
import unicodedata

import pytest

from subword_nb import normalizers as N
from subword_nb.normalizers import (NFC, NFD, NFKC, NFKD, BertNormalizer, Lowercase, Sequence, StripAccents, bert_normalize, bert_normalize_ref, nfd_ref, normal_form, normalizer,
                                    normalizer_from_dict)
from subword_nb.pretokenizers import BertPreTokenizer
from subword_nb.text import category

CODES = [i for i in range(0x110000) if not 0xD800 <= i < 0xE000]
SOME = [i for i in CODES if i % 32 == 0 or i < 0x3400 or 0x10000 <= i < 0x17000 or category(chr(i)) not in ("Cn", "Co", "Lo")]  # one in 32 of ideographs and unassigned ones
LAYOUTS = ("{}", "a{}", "{}\u0301", "a\u0345{}\u0334\u0301", "\u0307{}a{}\u0323")
SETTINGS = list(itertools.product((True, False), (True, False), (None, True, False), (True, False)))

# marks of many classes, old and young; letters that compose; Hangul parts; controls, spaces, joiners; ideographs in and out of the blocks
ALPHABETS = [
    "aeiouAEIOU\u0300\u0301\u0302\u0308\u0323\u0327\u0345\u0338", "éÉüÜñÑçÇşŞÅåǺǻṩṨẛ", "\u0301\u0323\u0334\u0345\u05b0\u064b\u0e38\u302a\u302e", "αΑσΣςά\u0342\u0313\u0345ΐ", "İIıiŁłØøßẞſﬁﬀ",
    "한글각\u1100\u1161\u11a8\u1112\u11ab\u11a7", "がぎはパか\u3099\u309aｶﾊ\uff9e\uff9f", "हिंदीक़\u093c\u094d", "ไทยกำ\u0e33\u0e48", "\u0f73\u0f75\u0f81\u0f71\u0f72\u0f74\u0f40", "שׁלום\u05c1\u05b8", "\u0627\u0653\u0654\u064b\u0651ﷺ",
    " \t\n\r\x0b\x0c\x85\xa0\u2003\u3000\u2028", "\x00\x01\x7f\xad\u200b\u200c\u200d\ufeff\u2060\ufffd\ufffe", "你好世界豈㐀\U00020000\U0002a700\U0002b820\U0002b920\U0002ceb0\U0002f800\U00030000", "々〇ㄅㇰ⺀⼀㈠",
    "①²½ⅣＡａ㎏℃™ℌ𝐀𝔞", "\U0001d15f\U0001d15e\U0001d165\U0001d16d\U0001d157\u0301\u302e", "\u08d4\u08e1\u1dfb\U0001e000\U0001e944\U0001e94a\u0301\u0323\u0334a", "\u0897\u07fd\u1ac1\U0001e2ae\U00010d69\u0301\u0323\u0334a",
    "\U00011935\U00011930\U00011938\U000105d2\u0307\U00011382\U000113c9\U0001611e", "\u1c89\ua7ce\ua7dc\U00016ea0\U00010d50ǅǄᲐა", "\u0378\ue000\U000e0001\U0010ffff\u0890\u08e2\U000110cd\u180e\u1734\U0001171e\u1cf2\u1885",
    "abc ABC 123 .,!", "👩\u200d🚀👍🏽🇩🇪", "\U000111cf\U0001145e\U00011a34\U00010f46\U0001bc9e\u20d0\u20db\u0488",
]


def generated(n, seed=0):
    "n strings, each from a few of the alphabets."
    rng = random.Random(seed)
    for _ in range(n): yield "".join(rng.choices("".join(rng.sample(ALPHABETS, rng.randint(1, 4))), k=rng.choice((1, 2, 3, 5, 8, 13))))


def pairs(theirs):
    "Each of our normalizers with HF's."
    for ours in (NFC(), NFD(), NFKC(), NFKD(), Lowercase(), StripAccents()): yield ours, getattr(theirs, type(ours).__name__)()
    for clean, chinese, strip, lower in SETTINGS:
        yield BertNormalizer(clean, chinese, strip, lower), theirs.BertNormalizer(clean_text=clean, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lower)


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hf_on_every_code_point(layout):
    "Alone, after a base letter, before a mark, and among marks of other classes; for the rarer settings of BERT's, ideographs and unassigned code points by sample."
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").normalizers
    every, some = ([layout.replace("{}", chr(i)) for i in codes] for codes in (CODES, SOME))
    for ours, other in pairs(theirs):
        texts = every if not isinstance(ours, BertNormalizer) or ours in (BertNormalizer(), BertNormalizer(lowercase=False)) else some
        for k in range(0, len(texts), 20_000):
            part = ";".join(texts[k:k + 20_000])
            got, expected = ours.normalize(part), other.normalize_str(part)
            if got != expected: assert [ours.normalize(t) for t in texts[k:k + 20_000]] == [other.normalize_str(t) for t in texts[k:k + 20_000]], ours
            assert got == expected, ours


@pytest.mark.peers
@pytest.mark.slow
def test_hf_on_generated_strings():
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").normalizers
    texts = ["", *generated(12_000, seed=1)]
    for ours, other in pairs(theirs):
        for t in texts: assert ours.normalize(t) == other.normalize_str(t), (ours, t)


@pytest.mark.peers
def test_hf_on_golden_strings(shared_file):
    theirs = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers").normalizers
    for t in json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8")):
        for ours, other in pairs(theirs): assert ours.normalize(t) == other.normalize_str(t), (ours, t)


@pytest.mark.peers
def test_json_form_loads_in_hf():
    tk = pytest.importorskip("tokenizers", reason="HF tokenizers is one of the peers")
    full, texts = json.loads(tk.Tokenizer(tk.models.BPE()).to_str()), list(generated(300, seed=2))
    for ours in (BertNormalizer(), BertNormalizer(False, False, True, False), NFC(), NFKD(), Sequence(), Sequence([NFD(), StripAccents(), Sequence([Lowercase(), NFKC()])])):
        loaded = tk.Tokenizer.from_str(json.dumps(full | {"normalizer": ours.to_dict()}))
        assert json.loads(loaded.to_str())["normalizer"] == ours.to_dict()
        for t in texts: assert ours.normalize(t) == loaded.normalizer.normalize_str(t), (ours, t)


def digest(*texts): return hashlib.sha256("".join(texts).encode("utf-8")).hexdigest()[:16]


def fingerprint(name):
    "A digest of what a normalizer does to all assigned code points, one in 32 of ideographs and unassigned ones, and generated strings."
    return digest(*map(normalizer(name).normalize, fingerprinted()))


@functools.cache
def fingerprinted():
    "The texts of the fingerprint."
    parts = [";".join(LAYOUTS[3].replace("{}", chr(i)) for i in SOME[k:k + 500]) for k in range(0, len(SOME), 500)]
    return [*parts, *generated(3000, seed=3)]


PINNED = {
    "nfc": "520e8623f0ca0ee7",
    "nfd": "a55aa91a9deaabd6",
    "nfkc": "cfa8a4368ba58834",
    "nfkd": "814f01a9ba4f86cb",
    "lowercase": "6389e433e50d1bde",
    "strip_accents": "14f9141e54adeb4e",
    "bert": "4365cfad306e8a43",
}


@pytest.mark.parametrize("name", PINNED)
def test_the_same_bytes_on_every_python(name):
    "It must not depend on the Unicode version of the running Python."
    assert fingerprint(name) == PINNED[name]


@pytest.mark.parametrize("name", ("nfc", "nfd", "nfkc", "nfkd", "bert"))
def test_the_same_bytes_with_the_pinned_unicode(name, monkeypatch):
    "As on a Python that has the pinned version itself."
    monkeypatch.setattr(N, "unicodedata", pytest.importorskip("unicodedata2"))
    for made in (N._inert, N._bert_table): made.cache_clear()
    try: assert fingerprint(name) == PINNED[name]
    finally: N._bert_table.cache_clear()


def test_bert_golden_ids(shared_file):
    "Normalizer, pre-tokenizer and greedy longest match give the ids that HF gave."
    texts = json.loads(shared_file("golden/strings.json").read_text(encoding="utf-8"))
    for name, lower in (("uncased", True), ("cased", False), ("chinese", True)):
        golden = json.loads(shared_file(f"golden/hf-wordpiece__bert-base-{name}.json").read_text(encoding="utf-8"))
        ids = {p.rstrip("\n"): i for i, p in enumerate(shared_file(f"vocab/bert-base-{name}/vocab.txt").open(encoding="utf-8", newline="\n"))}
        n = BertNormalizer(lowercase=lower)
        for text, expected in zip(texts, golden["ids"]):
            assert [i for w in BertPreTokenizer().raw_pretokens(n.normalize(text)) for i in greedy(w, ids)] == expected, text


def greedy(word, ids):
    "The longest piece at each place; the whole word is unknown if there is none."
    out, a = [], 0
    while a < len(word) and len(word) <= 100:
        b = next((b for b in range(len(word), a, -1) if ("##" if a else "") + word[a:b] in ids), a)
        if a == b: return [ids["[UNK]"]]
        out.append(ids[("##" if a else "") + word[a:b]])
        a = b
    return out if len(word) <= 100 else [ids["[UNK]"]]


def test_generated_strings_match_the_references():
    for t in generated(1500, seed=4):
        for form in ("NFD", "NFKD"): assert normal_form(t, form) == nfd_ref(t, form), t
        for options in itertools.product((True, False), repeat=4): assert bert_normalize(t, *options) == bert_normalize_ref(t, *options), t


def test_a_newer_python_changes_nothing():
    "If Python knows a Unicode later than the pinned one, unassigned characters are left alone; on this one that is no difference."
    before = [normal_form(t, f) for t in generated(500, seed=5) for f in ("NFC", "NFKD")]
    newer, usual = N._inert("99.0.0"), N._inert
    assert newer.search("\u0378") and not usual().search("\u0378") or unicodedata.unidata_version > "16"
    N._inert = lambda: newer
    try: assert [normal_form(t, f) for t in generated(500, seed=5) for f in ("NFC", "NFKD")] == before
    finally: N._inert = usual


def test_a_megabyte_is_linear():
    "Runs of marks, which Python's own normalization sorts in quadratic time, and others."
    for unit in ("\u0301", "\u0301\u0323", "\u0344", "\u0f73", "a\u0301", "한", "你", "🚀", "\U0001d165", "\U0001d165\u302e", "\u0897\u0301", "ﷺ", "é "):
        text, started = "a" + unit * (300_000 // len(unit.encode())), time.process_time()
        for n in (NFC(), NFKD(), BertNormalizer(), Sequence([StripAccents(), Lowercase()])): n.normalize(text)
        assert time.process_time() - started < 10
    half = 50_000
    assert NFD().normalize("\u0301" * half + "\u0323" * half) == "\u0323" * half + "\u0301" * half
    assert NFC().normalize("a" + "\u0301" * half + "\u0323" * half) == "ạ" + "\u0323" * (half - 1) + "\u0301" * half


def test_files_of_other_projects(shared_file):
    "Every normalizer of these kinds in the tokenizer.json files at hand is read, and written back as it was."
    found = 0
    for file in sorted(shared_file("vocab").glob("*/tokenizer.json")):
        d = json.loads(file.read_text(encoding="utf-8")).get("normalizer")
        steps = d["normalizers"] if d and d["type"] == "Sequence" else [d] if d else []
        if d and all(s["type"] in N._KINDS for s in steps):
            assert normalizer_from_dict(d).to_dict() == d, file
            found += 1
    assert found


def test_import_is_light(project):
    code = ("import sys; from subword_nb.normalizers import normalizer; normalizer('bert').normalize('é'); "
            "print([m for m in ('numpy', 'numba', 'regex', 'fastcore', 'tqdm') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True).stdout.strip() == "[]"
