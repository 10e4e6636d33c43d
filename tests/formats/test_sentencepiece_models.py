"""SentencePiece's four models against the installed library: real files, and thousands of small models made here."""

import copy
import json
import pickle
import random
import struct
import threading
from collections import Counter

import pytest
from seeds import TEXTS, fresh, window
from costs import assert_linear

from subword_nb import Tokenizer
from subword_nb.unigram import sampling as unigram_sample
from subword_nb.bpe.model import bpe_encode, merge_table
from subword_nb.unigram.lattice import nbest
from subword_nb.formats.sentencepiece_models import (
    SentencePieceBPE,
    SentencePieceChars,
    SentencePieceUnigram,
    SentencePieceWords,
    float32,
    merges_of,
    part_tokens,
    sentencepiece_bpe_ref,
    sentencepiece_unigram_ref,
)
from subword_nb.formats.sentencepiece_proto import read_model_proto
from subword_nb.unigram.model import part_ids
from subword_nb.pipeline.encoder import encoder_of
from subword_nb.text.pretokenizers import Metaspace

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MODELS = {
    "unigram": (1, SentencePieceUnigram),
    "bpe": (2, SentencePieceBPE),
    "word": (3, SentencePieceWords),
    "char": (4, SentencePieceChars),
}
FILES = [
    "barthez/sentencepiece.bpe.model",
    "chatglm-6b/ice_text.model",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "sentencepiece/test_ja_model.model",
    "sentencepiece/test_model.model",
    "t5-small/spiece.model",
    "tf-text/fast_sentencepiece.model",
    "transformers-fixtures/test_sentencepiece.model",
    "transformers-fixtures/test_sentencepiece_bpe.model",
    "transformers-fixtures/test_sentencepiece_bpe_char.model",
    "transformers-fixtures/test_sentencepiece_no_bos.model",
    "transformers-fixtures/test_sentencepiece_with_bytefallback.model",
    "xlnet-base-cased/spiece.model",
]


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    "One field on the wire: bytes by length, numbers as varints."
    return (
        varint(number << 3 | 2) + varint(len(value)) + value
        if isinstance(value, bytes)
        else varint(number << 3) + varint(value)
    )


def file_of(pieces, kind, byte_fallback=False):
    "A .model file whose normalizer leaves the text alone."
    listed = b"".join(
        field(1, field(1, p.encode()) + b"\x15" + struct.pack("<f", score) + field(3, type))
        for p, score, type in pieces
    )
    return (
        listed
        + field(2, field(3, MODELS[kind][0]) + field(35, int(byte_fallback)))
        + field(3, field(3, 0) + field(4, 0) + field(5, 0))
    )


def model_of(pieces, kind, byte_fallback=False):
    "Our model from the same list."

    def of(wanted):
        return [p for p, _, type in pieces if type == wanted]

    return MODELS[kind][1](
        {p: i for i, (p, _, _) in enumerate(pieces)},
        [score for _, score, _ in pieces],
        unk_piece=(of(UNKNOWN) or [None])[0],
        byte_fallback=byte_fallback,
        user_defined=of(USER_DEFINED),
        control=of(CONTROL),
        unused=of(UNUSED),
    )


def peer(data):
    return pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=data)


def random_model(rng):
    "Pieces of all types, scores of many sorts, with or without bytes, in any order."
    alphabet, byte_fallback = rng.choice(["ab", "ab▁", "abé▁", "aб▁中", "a▁-", "a-"]), rng.random() < 0.3
    draw = rng.choice(
        [
            lambda: -rng.randrange(1, 5) / 2,
            lambda: float32(-rng.random() * 10),
            lambda: rng.choice([0.0, -0.0, -1.0, 1.0]),
            lambda: -float(rng.randrange(1, 40)),
            lambda: 0.0,
        ]
    )
    weights, found = [20, 2, rng.choice([0, 0, 3]), 1], {}
    for _ in range(rng.randrange(1, 25)):
        piece = "".join(rng.choices(alphabet, k=rng.choice([1, 1, 2, 2, 2, 3, 3, 4, 6])))
        found.setdefault(piece, (draw(), rng.choices([NORMAL, USER_DEFINED, UNUSED, CONTROL], weights)[0]))
    pieces = [
        ("<unk>", 0.0, UNKNOWN),
        *((f"<0x{b:02X}>", 0.0, BYTE) for b in range(256 * byte_fallback)),
        *((p, *more) for p, more in found.items()),
    ]
    rng.shuffle(pieces)
    if not any(type in (NORMAL, USER_DEFINED, UNUSED) for *_, type in pieces):
        pieces.append(("ä", -1.0, NORMAL))
    return pieces, byte_fallback, alphabet


def random_text(rng, alphabet, lengths=(0, 1, 2, 3, 5, 8, 13, 30, 60)):
    return "".join(
        rng.choices(
            alphabet + rng.choice(["", "", "?", "?🤗", "\0", "▁▁▁", "\u00a0\u2028", "e\u0301\ue000"]),
            k=rng.choice(lengths),
        )
    )


@pytest.mark.peers
@pytest.mark.parametrize("kind", MODELS)
def test_generated_models(kind):
    rng, refs = fresh(kind), {"unigram": sentencepiece_unigram_ref, "bpe": sentencepiece_bpe_ref}
    for _ in range(max(40, TEXTS // 20)):
        pieces, byte_fallback, alphabet = random_model(rng)
        theirs, ours = peer(file_of(pieces, kind, byte_fallback)), model_of(pieces, kind, byte_fallback)
        for _ in range(10):
            text = random_text(rng, alphabet)
            ids, tokens = theirs.encode(text), ours.tokens(text)
            assert ours.encode(text) == ids, (pieces, text)
            assert ([t.id for t in tokens], [t.piece for t in tokens]) == (
                ids,
                theirs.encode(text, out_type=str),
            ), (pieces, text)
            assert refs.get(kind, type(ours).encode)(ours, text) == ids, (pieces, text)
            check_places(tokens, text, byte_fallback)


def check_places(tokens, text, byte_fallback):
    "Tokens cover the text; the bytes of a character share its place."
    at = 0
    for t in tokens:
        assert t.start in (at, *([tokens[0].start] if at == 0 else [])) or (byte_fallback and t.end == at)
        at = t.end
        if not t.piece.startswith("<0x"):
            assert text[t.start : t.end] == t.piece
    assert at == len(text)


def near_ties(rng):
    "A Unigram model whose splits nearly tie, with scores of any size."
    alphabet, scale, sign = (
        rng.choice(["ab▁", "abc▁", "ab▁▁"]),
        rng.choice([1, 10, 100, 1000, 30_000]),
        rng.choice([-1, -1, -1, 1]),
    )
    letters = {c: float32(sign * scale * rng.randrange(1, 64) / 7) for c in sorted(set(alphabet))}
    found = sorted(
        {
            rng.choice(["", "", "▁"]) + "".join(rng.choices(alphabet, k=rng.choice([1, 2, 2, 3, 4])))
            for _ in range(rng.randrange(3, 30))
        }
    )
    if rng.random() < 0.6:
        found = [p for p in found if "▁" not in p[1:]] or ["a"]
    scores = [
        float32(sum(letters[c] for c in p) * rng.choice([1, 1, 0.9, 1 + 2**-22, 1 - 2**-23])) for p in found
    ]
    return [
        ("<unk>", 0.0, UNKNOWN),
        *((p, s, rng.choice([NORMAL] * 9 + [USER_DEFINED])) for p, s in zip(found, scores)),
    ], alphabet


@pytest.mark.peers
@pytest.mark.parametrize(
    "seed, models, lengths",
    [
        (0, 30, (100, 1000, 5000)),
        pytest.param(1, 600 if TEXTS >= 2000 else 60, (1000, 5000, 30_000), marks=pytest.mark.slow),
    ],
)
def test_sums_in_32_bits_over_long_texts(seed, models, lengths):
    "Sums pass the point where SentencePiece starts to count anew, and rounding decides between splits."
    rng = fresh(seed)
    for _ in range(models):
        pieces, alphabet = near_ties(rng)
        theirs, ours = peer(file_of(pieces, "unigram")), model_of(pieces, "unigram")
        for _ in range(2):
            text = "".join(rng.choices(alphabet + rng.choice(["", "?"]), k=rng.choice(lengths)))
            assert ours.encode(text) == theirs.encode(text), (pieces, len(text))
            assert len(text) > 1000 or sentencepiece_unigram_ref(ours, text) == theirs.encode(text)


def real(shared_file, name):
    "The library's processor, and our model of the same file."
    data = shared_file(f"vocab/{name}").read_bytes()
    proto = read_model_proto(data, name=name)
    kind = {number: kind for kind, (number, _) in MODELS.items()}[proto.trainer("model_type")]
    return peer(data), model_of(
        [(p.piece, p.score, p.type) for p in proto.pieces], kind, proto.trainer("byte_fallback")
    )


@pytest.fixture(scope="module")
def strings(shared_data):
    found = json.loads((shared_data / "golden" / "strings.json").read_text(encoding="utf-8"))
    return found["strings"] if isinstance(found, dict) else found


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_so_many_user_defined_pieces_at_one_place(kind):
    "sentencepiece looks at 64 that begin at one place, the shortest ones."
    pieces = [("<unk>", 0.0, 2), ("▁", -1.0, 1), ("b", -2.0, 1), *(("a" * k, 0.0, 4) for k in range(1, 71))]
    theirs, ours = peer(file_of(pieces, kind)), model_of(pieces, kind)
    for text in ("a" * 72, "b" + "a" * 69, "a" * 200 + "b", "aab"):
        assert ours.encode(text) == theirs.encode(text), text


@pytest.mark.peers
@pytest.mark.parametrize("name", FILES)
def test_real_models(shared_file, strings, name):
    theirs, ours = real(shared_file, name)
    long = " ".join(fresh(0).choices(strings, k=200))
    for text in [*strings, long]:
        normalized = theirs.normalize(text)
        assert ours.encode(normalized) == theirs.encode(text), text[:80]
        assert [t.piece for t in ours.tokens(normalized)] == theirs.encode(text, out_type=str), text[:80]


@pytest.mark.one_in(3)
@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_real_models_on_long_texts(shared_file, shared_data, name):
    theirs, ours = real(shared_file, name)
    for path in sorted((shared_data / "corpus").glob("*.txt")):
        text = window(path.read_text(encoding="utf-8", errors="ignore"), 40_000, name, path.name)
        assert ours.encode(theirs.normalize(text)) == theirs.encode(text), path.name


def excess(a, b):
    "Distance of two samples: chi-square less its degrees of freedom, in standard deviations (three more for few degrees)."
    # above 6 in one of ten million pairs of samples
    total, x, df, rest = sum(a.values()) + sum(b.values()), 0.0, -1, [0, 0]
    pairs = [(a[k], b[k]) for k in a.keys() | b.keys()]
    for one, two in pairs:
        if one + two < 20:
            rest = [rest[0] + one, rest[1] + two]
    for one, two in [*(p for p in pairs if sum(p) >= 20), *([rest] if sum(rest) >= 20 else [])]:
        for n, side in ((one, a), (two, b)):
            expected = (one + two) * sum(side.values()) / total
            x += (n - expected) ** 2 / expected
        df += 1
    return (x - df) / ((2 * df) ** 0.5 + 3)


@pytest.mark.peers
@pytest.mark.parametrize(
    "name, text",
    [
        ("llama-2/tokenizer.model", "New York"),
        ("transformers-fixtures/test_sentencepiece_bpe.model", "this is it"),
    ],
)
def test_dropped_merges_are_as_frequent(shared_file, name, text):
    theirs, ours = real(shared_file, name)
    rng, normalized = random.Random(0), theirs.normalize(text)
    for alpha in (0.1, 0.5):
        want = Counter(
            tuple(theirs.encode(text, enable_sampling=True, alpha=alpha, nbest_size=-1)) for _ in range(2000)
        )
        assert (
            excess(want, Counter(tuple(ours.encode(normalized, dropout=alpha, rng=rng)) for _ in range(2000)))
            < 6
        )
    assert ours.encode(normalized, dropout=0.0) == theirs.encode(text)
    assert ours.encode(normalized, dropout=1.0) == theirs.encode(
        text, enable_sampling=True, alpha=1.0, nbest_size=-1
    )


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    [
        "t5-small/spiece.model",
        "chatglm-6b/ice_text.model",
        "sentencepiece/test_model.model",
        "xlnet-base-cased/spiece.model",
    ],
)
def test_unigram_samples_and_nbest(shared_file, name):
    theirs, ours = real(shared_file, name)
    rng = random.Random(0)
    for text in ("New York", "tokenization is fun", "naïve ☃☃ café"):
        lattice = ours.lattice(theirs.normalize(text))
        found, want = nbest(lattice, 20), theirs.nbest_encode(text, nbest_size=20)
        ids = [part_ids(ours, [node.piece for node in path]) for path, _ in found]
        scores = {tuple(i): score for i, (_, score) in zip(ids, found)}
        assert len(want) == len(found)
        assert [scores.get(tuple(i), found[-1][1]) for i in want] == pytest.approx(
            [score for _, score in found], abs=1e-3
        )
    lattice = ours.lattice(theirs.normalize("New York"))
    for alpha in (0.2, 1.0):
        want = Counter(
            tuple(theirs.encode("New York", enable_sampling=True, alpha=alpha, nbest_size=-1))
            for _ in range(1500)
        )
        drawn = Counter(
            tuple(
                t.id
                for t in part_tokens(
                    ours, [node.piece for node in unigram_sample.sample(lattice, alpha, rng=rng)[0]]
                )
            )
            for _ in range(1500)
        )
        assert excess(want, drawn) < 6


@pytest.mark.peers
def test_nbest_of_generated_models():
    "Scores of the best splits, with user-defined pieces counted by characters, unused ones left out, and unknown characters."
    rng = fresh(5)
    for _ in range(60):
        pieces, byte_fallback, alphabet = random_model(rng)
        if any(p and s > 0 for p, s, _ in pieces):
            continue
        theirs, ours = (
            peer(file_of(pieces, "unigram", byte_fallback)),
            model_of(pieces, "unigram", byte_fallback),
        )
        for _ in range(4):
            text = random_text(rng, alphabet, (1, 2, 4, 6)).replace("\0", "")
            if not text:
                continue
            found = nbest(ours.lattice(text), 200)
            if len(found) == 200:
                continue
            want, ids = (
                theirs.nbest_encode(text, nbest_size=200),
                [tuple(part_ids(ours, [n.piece for n in path])) for path, _ in found],
            )
            assert Counter(map(tuple, want)) == Counter(ids), (pieces, text)


def test_merges_encode_as_scores():
    "Any distinct scores, longer pieces above their parts too."
    rng, tried = fresh(3), 0
    for _ in range(1500):
        letters = rng.choice(["ab", "abc", "aé▁"])
        names = sorted(
            {
                *letters,
                *(
                    "".join(rng.choices(letters, k=rng.choice([2, 2, 3, 4, 6])))
                    for _ in range(rng.randrange(1, 20))
                ),
            }
        )
        scores = rng.sample(range(-99, 0), len(names))
        model = model_of(
            [("<unk>", 0.0, UNKNOWN), *((p, float(s), NORMAL) for p, s in zip(names, scores))], "bpe"
        )
        found = merges_of(model)
        assert found.doubtful == [] and len(found.merges) + len(found.whole) == sum(len(p) > 1 for p in names)
        table = merge_table(found.merges)
        for _ in range(3):
            text = "".join(rng.choices(letters, k=25))
            assert bpe_encode(list(text), table) == [t.piece for t in model.tokens(text)], (
                names,
                scores,
                text,
            )
            tried += 1
    assert tried == 4500


def test_doubtful_and_whole_pieces():
    def listed(pieces):
        return merges_of(model_of([("<unk>", 0.0, UNKNOWN), *pieces], "bpe"))

    letters = [(c, -9.0 - i, NORMAL) for i, c in enumerate("abc")]
    assert listed([*letters, ("ab", -1.0, NORMAL), ("bc", -1.0, NORMAL)]) == ([], [], ["ab", "bc"])
    assert listed([*letters, ("ab", 0.0, NORMAL), ("bc", -0.0, NORMAL)]) == ([("a", "b"), ("b", "c")], [], [])
    assert listed([*letters, ("abc", -1.0, NORMAL)]) == ([], ["abc"], [])
    assert listed([*letters, ("ab", -1.0, UNUSED), ("abc", -2.0, NORMAL)]) == ([], [], ["ab", "abc"])
    assert listed([*letters, ("xa", -1.0, NORMAL)]) == ([], [], ["xa"])  # x itself is unknown
    assert listed([*letters, ("ab", -1.0, USER_DEFINED), ("abc", -2.0, NORMAL)]) == ([], ["ab", "abc"], [])


def test_merges_of_real_models(shared_file):
    for name, merges, doubtful in (
        ("llama-2/tokenizer.model", 29_597, 15),
        ("transformers-fixtures/test_sentencepiece_bpe.model", 928, 0),
    ):
        proto = read_model_proto(shared_file(f"vocab/{name}").read_bytes(), name=name)
        found = merges_of(
            model_of(
                [(p.piece, p.score, p.type) for p in proto.pieces], "bpe", proto.trainer("byte_fallback")
            )
        )
        assert (len(found.merges), len(found.whole), len(found.doubtful)) == (merges, 0, doubtful)
        assert all(set(p) == {"▁"} for p in found.doubtful)


def test_models_are_values():
    rng = fresh(0)
    for kind in MODELS:
        pieces, byte_fallback, alphabet = random_model(rng)
        model, text = model_of(pieces, kind, byte_fallback), random_text(rng, alphabet, (30,))
        ids = model.encode(text)
        for again in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
            assert (again, again.encode(text), repr(again)) == (model, ids, repr(model))
        assert len(pickle.dumps(model)) < 100_000
        other = model_of([*pieces, ("new", -1.0, NORMAL)], kind, byte_fallback)
        assert other != model and repr(model) == f"{type(model).__name__}({len(pieces):,} pieces)"


def test_memory_is_bounded(monkeypatch):
    from subword_nb.formats import sentencepiece_models as page

    monkeypatch.setattr(page, "CACHE_LIMIT", 50)
    for kind in ("unigram", "bpe"):
        model = model_of(
            [
                ("<unk>", 0.0, UNKNOWN),
                ("▁", -1.0, NORMAL),
                *((c, -2.0 - i, NORMAL) for i, c in enumerate("0123456789")),
            ],
            kind,
        )
        text = "".join(f"▁{n}" for n in range(1000)) + "▁" + "1" * 1000
        assert [t.piece for t in model.tokens(text)] == list(text)
        assert len(model.cache) <= 50 and max(map(len, model.cache)) <= 64


@pytest.mark.parametrize("kind", MODELS)
def test_hostile_texts_take_linear_time(kind):
    pieces = [
        ("<unk>", 0.0, UNKNOWN),
        *((p, -1.0 - i, NORMAL) for i, p in enumerate(["a", "aa", "aaaa", "▁", "▁▁", "▁▁▁▁", "▁a"])),
    ]

    def work(text):
        model = model_of(pieces, kind)  # which remembers nothing yet
        tokens = model.tokens(text)
        assert model.encode(text) == [t.id for t in tokens] and "".join(t.piece for t in tokens) == text

    for unit in ("a", "▁", "?", "▁a", "a?"):
        assert_linear(work, unit, 40_000)


def test_threads_share_a_model():
    rng = fresh(7)
    pieces, alphabet = near_ties(rng)
    model, texts = model_of(pieces, "unigram"), ["".join(rng.choices(alphabet, k=400)) for _ in range(60)]
    want, got = [model_of(pieces, "unigram").encode(text) for text in texts], {}

    def work(k):
        got[k] = [model.encode(text) for text in texts]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert list(got.values()) == [want] * 4


def test_a_model_without_unknown_spells_by_bytes():
    pieces = [*((f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)), ("a", -1.0, NORMAL)]
    for kind in MODELS:
        model = model_of(pieces, kind, True)
        assert model.encode("aé" if kind != "word" else "a▁é") == [
            256,
            *((0xE2, 0x96, 0x81) if kind == "word" else ()),
            0xC3,
            0xA9,
        ]
        assert pickle.loads(pickle.dumps(model)) == model


def test_odd_arguments():
    "Numbers of other kinds are numbers; what is no list of pieces, no finite score or no text is refused."
    from fractions import Fraction

    def make(**more):
        return SentencePieceUnigram(
            **{"piece2id": {"<unk>": 0, "a": 1}, "scores": [0, Fraction(-1, 3)], "unk_piece": "<unk>", **more}
        )

    assert make().scores == [0.0, float32(-1 / 3)] and make(user_defined=iter(["a"])).user_defined == ("a",)
    assert make().encode(type("Text", (str,), {})("a\ud800a")) == [1, 0, 1]
    for more, message in [
        (
            dict(scores=[0, -(10**400)]),
            "scores must .*got -100000000000000000000000000000000000000 for the piece 'a'",
        ),
        (dict(scores=[0, float("nan")]), "scores must .*got nan for the piece 'a'"),
        (dict(scores=[0, 1e39]), "scores must .*got inf for the id 1"),
        (dict(scores=[0, True]), "scores must .*got True for the piece 'a'"),
        (dict(user_defined="a"), "user_defined must .*got one piece, 'a'"),
        (dict(control=b"a"), "control must .*got one piece, b'a'"),
        (dict(unk_penalty=-1.0), r"unk_penalty must .*got -1\.0"),
        (
            dict(piece2id={"<unk>": 0, b"a": 1}),
            "pieces must be text of at least one character, got b'a' with the id 1",
        ),
        (dict(piece2id={"<unk>": 0, "a": True}), "piece2id must .*got True for 'a'"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(**more)
    bytewise = SentencePieceChars({f"<0x{b:02X}>": b for b in range(256)}, [0.0] * 256, byte_fallback=True)
    with pytest.raises(ValueError, match="lone surrogate"):
        bytewise.encode("a\ud800")


@pytest.mark.peers
def test_many_user_defined_pieces():
    "The longest at each place, from left to right, whatever the scores say and however many begin alike."
    rng, names = fresh(11), [f"<{'x' * k}>" for k in range(1, 60)] + ["<xx", "x><", ">"]
    for kind in ("bpe", "char"):
        pieces = [
            ("<unk>", 0.0, UNKNOWN),
            *((p, -float(i), USER_DEFINED) for i, p in enumerate(names)),
            ("x", -70.0, NORMAL),
            ("xx", -1.0, NORMAL),
            ("<", -71.0, NORMAL),
        ]
        theirs, ours = peer(file_of(pieces, kind)), model_of(pieces, kind)
        for _ in range(100):
            text = "".join(
                rng.choice([rng.choice(names), "x", "<", "x" * rng.randrange(70)])
                for _ in range(rng.randrange(9))
            )
            assert ours.encode(text) == theirs.encode(text), text


def test_a_model_with_its_own_rule_of_joins_does_not_get_stored_cuts(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBWORD_NB_CACHE", str(tmp_path))
    monkeypatch.setenv("SUBWORD_NB_TABLES", "")
    rng = random.Random(0)
    words = {"".join(rng.choices("abcdefghijklmnop", k=rng.randrange(2, 9))) for _ in range(15_000)}
    ids = {piece: i for i, piece in enumerate(["<unk>", "▁", *"abcdefghijklmnop", *sorted(words)])}

    class Own(SentencePieceBPE):
        def joins(self):
            found = super().joins()
            return found._replace(spellings=[*found.spellings, "a▁b"])

    def spans(kind):
        model = kind(ids, [-float(i) for i in range(len(ids))], unk_piece="<unk>")
        tok = Tokenizer(model, pre_tokenizer=Metaspace())
        return model.own_spans(encoder_of(tok).plan)

    assert spans(SentencePieceBPE) is not None
    assert any(tmp_path.rglob("*.tables")) and spans(Own) is None
