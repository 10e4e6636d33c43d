"""Unigram's best splits against SentencePiece and Hugging Face, with real vocabularies and with random ones."""

import cProfile
import json
import random

import pytest
from costs import assert_linear
from peers import sp_loaded

from subword_nb import Tokenizer
from subword_nb.unigram.lattice import (
    LONG,
    Lattice,
    LongPieces,
    Node,
    backward,
    build_lattice,
    forward,
    lengths_by_first,
    nbest,
    pieces_at,
    viterbi,
)
from subword_nb.unigram.explain_sentencepiece import explain_sentencepiece
from subword_nb.formats.sentencepiece_models import (
    SentencePieceChars,
    SentencePieceUnigram,
    sentencepiece_unigram_ref,
)
from subword_nb.formats.sentencepiece_normalizer import SentencePieceNormalizer
from subword_nb.formats.sentencepiece_proto import (
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    ModelProto,
    Piece,
    read_model_proto,
    write_model_proto,
)
from subword_nb.pipeline.tokens import tokens, tokens_ref
from subword_nb.unigram.model import part_ids, unigram_encode, unigram_encode_ref, unigram_model
from subword_nb.unigram.explain import explain_unigram
from subword_nb.unigram.sampling import sample
from subword_nb.wordpiece.model import WordPiece
from subword_nb.wordpiece.explain import explain_wordpiece


def model_of(pieces: list, byte_fallback: bool = False):
    "The Unigram model of a SentencePiece file."
    kinds = {kind: [p for p, _, k in pieces if k == kind] for kind in range(1, 7)}
    special = {*kinds[UNKNOWN], *kinds[CONTROL], *kinds[UNUSED], *kinds[BYTE]}
    scores = [(p, 0.0 if p in special or p in kinds[USER_DEFINED] else s) for p, s, _ in pieces]
    return unigram_model(
        scores,
        unk_piece=kinds[UNKNOWN][0],
        byte_fallback=byte_fallback,
        control=sorted(special),
        user_defined=kinds[USER_DEFINED],
    )


def sentencepiece_model(spm, pieces: list, byte_fallback: bool = False):
    "A Unigram model of (piece, score, kind) in SentencePiece that changes nothing in a text before it is split."
    trainer = {
        "model_type": UNIGRAM,
        "byte_fallback": byte_fallback,
        "unk_id": 0,
        "bos_id": -1,
        "eos_id": -1,
        "pad_id": -1,
    }
    normalizer = {
        "name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "escape_whitespaces": False,
    }
    return sp_loaded(spm, ModelProto([Piece(*p) for p in pieces], trainer, normalizer))


def lines_of(shared_file, most: int) -> list:
    "Strings of all kinds, and lines of an English book."
    strings = json.loads(shared_file("golden/strings.json").read_text())
    return strings + shared_file("corpus/english_small.txt").read_text().split("\n")[:most]


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    [
        "xlnet-base-cased/spiece.model",
        "t5-small/spiece.model",
        "tf-text/fast_sentencepiece.model",
        "chatglm-6b/ice_text.model",
        "sentencepiece/test_model.model",
        "sentencepiece/test_ja_model.model",
        "transformers-fixtures/test_sentencepiece_with_bytefallback.model",
    ],
)
def test_best_splits_are_those_of_sentencepiece(shared_file, name):
    "The score of a split is the sum, in 64 bits, of the scores in use: of ours and of theirs alike."
    spm = pytest.importorskip("sentencepiece")
    path = shared_file(f"vocab/{name}")
    sp = spm.SentencePieceProcessor(model_file=str(path))
    pieces = read_model_proto(path.read_bytes()).pieces
    model = model_of(pieces, any(kind == BYTE for *_, kind in pieces))
    assert list(model.piece2id) == [sp.id_to_piece(i) for i in range(len(sp))]

    def score_of(parts):
        return sum(model.table[p] if p in model.table else model.unk_score * len(p) for p in parts)

    ties = 0
    for text in lines_of(shared_file, 1500):
        normal, theirs, their_ids = sp.normalize(text), sp.encode(text, out_type=str), sp.encode(text)
        ours = [node.piece for node in viterbi(model.lattice(normal))[0]]
        ids = model.encode(normal)
        assert ids == part_ids(model, ours)
        if "".join(theirs) == normal:
            assert abs(score_of(ours) - score_of(theirs)) < 1e-6, text
            ties += ids != their_ids  # equal scores, told apart by rounding in 32 bits
        else:  # it spells bytes
            assert ids == their_ids, text
    assert ties <= 2, ties


@pytest.mark.parametrize("name", ["xlnet-base-cased", "t5-small"])
def test_the_walk_is_the_lattice_on_real_vocabularies(shared_file, name):
    model = model_of(read_model_proto(shared_file(f"vocab/{name}/spiece.model").read_bytes()).pieces)
    for text in lines_of(shared_file, 100):
        text = "▁" + text.replace(" ", "▁")
        assert unigram_encode(model, text) == unigram_encode_ref(model, text)


@pytest.mark.peers
@pytest.mark.parametrize("kinds", ["normal", "unused", "user_defined", "bytes"])
def test_random_models_against_sentencepiece(kinds):
    "Scores are multiples of a quarter, which are exact in 32 bits too: the same ids, ties included."
    spm = pytest.importorskip("sentencepiece")
    rng, unknowns, fused = random.Random(len(kinds)), 0, 0
    for _ in range(600):
        spelled = sorted(
            {
                "".join(rng.choices("abcé", weights=(5, 5, 3, 1), k=rng.randrange(1, 5)))
                for _ in range(rng.randrange(1, 15))
            }
        )
        pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL)] + [
            (p, -rng.randrange(1, 30) / 4, NORMAL) for p in spelled
        ]
        if kinds == "bytes":
            pieces += [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
        elif kinds != "normal":
            chosen = rng.sample(spelled, rng.randrange(1, 3) if len(spelled) > 2 else 0)
            kind = UNUSED if kinds == "unused" else USER_DEFINED
            pieces = [(p, s, kind if p in chosen else k) for p, s, k in pieces]
        sp = sentencepiece_model(spm, pieces, kinds == "bytes")
        model = model_of(pieces, kinds == "bytes")
        for _ in range(6):
            text = "".join(
                rng.choices(
                    ["a", "b", "c", "é", "x", "你", "<s>", "<unk>", "<0x41>"],
                    weights=(8, 8, 6, 3, 2, 1, 0.3, 0.3, 0.3),
                    k=rng.randrange(1, 12),
                )
            )
            assert model.encode(text) == sp.encode(text), (pieces, text)
            parts = [node.piece for node in viterbi(model.lattice(text))[0]]
            unknowns += 0 in sp.encode(text)
            fused += any(a not in model.known and b not in model.known for a, b in zip(parts, parts[1:]))
    assert unknowns > 500 or kinds == "bytes"
    assert fused > 100


@pytest.mark.peers
def test_user_defined_pieces_score_a_tenth_per_byte_after_the_first():
    "Where a competing piece begins to win tells the score that SentencePiece gives to a user-defined piece."
    spm = pytest.importorskip("sentencepiece")
    for piece in ("zz", "zzzzzzzzzz", "éé", "漢字漢字"):
        for top in (-1.0, -8.0):
            wins = []
            for step in (-0.01, 0.01):
                rival = top + 0.1 * (len(piece.encode()) - 1) + step
                pieces = [
                    ("<unk>", 0.0, UNKNOWN),
                    ("a", top, NORMAL),
                    ("b", -500.0, NORMAL),
                    (piece, -7.0, USER_DEFINED),
                    (piece + "a", rival, NORMAL),
                ]
                sp = sentencepiece_model(spm, pieces)
                wins.append(len(sp.encode(piece + "a")) == 1)
                if rival <= 0:
                    assert model_of(pieces).encode(piece + "a") == sp.encode(piece + "a")
            assert wins == [False, True]


@pytest.mark.peers
def test_ties_unknowns_and_missing_bytes_against_hugging_face():
    "Scores are multiples of a half; texts spell special pieces; some byte pieces are missing."
    tokenizers = pytest.importorskip("tokenizers")
    rng, ties = random.Random(3), 0
    for _ in range(1500):
        pieces = sorted(
            {
                "".join(rng.choices("abé", weights=(4, 4, 1), k=rng.randrange(1, 5)))
                for _ in range(rng.randrange(1, 15))
            }
        )
        scored = [("<unk>", rng.choice([0.0, -9.0])), *((p, -rng.randrange(1, 5) / 2) for p in pieces)]
        spells = rng.random() < 0.5
        if spells:
            missing = rng.choice([b"", b"x", "é".encode()])
            scored += [(f"<0x{b:02X}>", -5.0) for b in range(256) if b not in missing]
        theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(scored, 0, spells))
        ours = unigram_model(scored, unk_piece="<unk>", byte_fallback=spells)
        for _ in range(5):
            text = "".join(
                rng.choices(
                    ["a", "b", "é", "x", "<unk>", "<0x61>"],
                    weights=(5, 5, 2, 2, 0.5, 0.3),
                    k=rng.randrange(1, 10),
                )
            )
            assert ours.encode(text) == theirs.encode(text).ids, (scored, text)
            scores = [score for _, score in nbest(ours.lattice(text), 2)]
            ties += len(scores) == 2 and scores[0] == scores[1]
    assert ties > 300


@pytest.mark.peers
def test_random_models_against_hugging_face():
    tokenizers = pytest.importorskip("tokenizers")
    rng = random.Random(0)
    for _ in range(1500):
        pieces = sorted(
            {"".join(rng.choices("abcé", k=rng.randrange(1, 4))) for _ in range(rng.randrange(1, 15))}
        )
        scored = [("<unk>", 0.0), *((p, -rng.randrange(1, 400) / 37) for p in pieces)]
        spells = rng.random() < 0.5
        if spells:
            scored += [(f"<0x{b:02X}>", -99.0) for b in range(256)]
        theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(scored, 0, spells))
        ours = unigram_model(scored, unk_piece="<unk>", byte_fallback=spells)
        for _ in range(5):
            text = "".join(rng.choices("abcéx你", weights=(5, 5, 5, 2, 1, 1), k=rng.randrange(1, 12)))
            assert ours.encode(text) == theirs.encode(text).ids, (scored, text)


def test_a_megabyte_without_a_space():
    model = unigram_model(
        [("<unk>", 0.0), ("a", -2.0), ("aa", -3.0), ("ab", -3.5), ("b", -2.5)],
        unk_piece="<unk>",
        control=["<unk>"],
    )
    rng = random.Random(1)
    for text in ("a" * 1_000_000, "".join(rng.choices("abx", k=1_000_000))):
        ids = model.encode(text)
        assert sum(len(p) for p in (list(model.piece2id)[i] for i in ids) if p != "<unk>") == len(
            text
        ) - text.count("x")


def test_paths_of_a_long_text_neither_overflow_nor_recurse():
    model = unigram_model(
        [("<unk>", 0.0), ("a", -700.0), ("aa", -1.0), ("b", -0.001)], unk_piece="<unk>", control=["<unk>"]
    )
    lattice = model.lattice("aab" * 30_000)
    ahead, back = forward(lattice), backward(lattice)
    assert ahead[-1] == pytest.approx(back[0]) and ahead[-1] == pytest.approx(-1.001 * 30_000)
    best = nbest(lattice, 3)
    assert [len(path) for path, _ in best] == [60_000, 60_001, 60_001]


@pytest.mark.peers
def test_the_ten_best_are_those_of_sentencepiece(shared_file):
    spm = pytest.importorskip("sentencepiece")
    path = shared_file("vocab/t5-small/spiece.model")
    sp = spm.SentencePieceProcessor(model_file=str(path))
    model = model_of(read_model_proto(path.read_bytes()).pieces)
    for text in ["unbelievable", "Hello world", "tokenization", "internationalization", "New York", "aaaaaa"]:
        ours = nbest(model.lattice(sp.normalize(text)), 10)
        theirs = [sum(model.table[p] for p in pieces) for pieces in sp.nbest_encode_as_pieces(text, 10)]
        assert [score for _, score in ours] == pytest.approx(theirs, abs=1e-4), text


# Chains: many pieces that begin alike, up to long ones.


def naively_at(text, start, pieces):
    return [text[start:end] for end in range(start + 1, len(text) + 1) if text[start:end] in pieces]


def periodic(rng, n):
    "A text with long repeats."
    unit = "".join(rng.choices("ab", k=rng.randrange(1, 4)))
    text = unit * n
    for _ in range(rng.randrange(3)):
        at = rng.randrange(n)
        text = text[:at] + rng.choice("abc") + text[at:]
    return text[:n]


def chained_pieces(rng):
    "Pieces of all lengths, most of which lie in each other, and a text that holds them."
    text = periodic(rng, 400)
    pieces = {text[a : a + rng.randrange(1, 250)] for a in rng.choices(range(300), k=rng.randrange(1, 40))}
    pieces |= {text[:n] for n in rng.choices(range(1, 300), k=20)}
    pieces |= {p + "c" for p in rng.choices(sorted(pieces), k=5)}
    return sorted(pieces), text


def test_long_pieces_are_found_where_they_stand():
    rng, long = random.Random(29), 0
    for _ in range(15):
        pieces, text = chained_pieces(rng)
        rng.shuffle(pieces)
        known, lengths = set(pieces), lengths_by_first(pieces)
        fewer = set(pieces[::2])  # those that were taken out since
        for start in rng.sample(range(400), 30):
            expected = naively_at(text, start, known)
            assert pieces_at(text, start, known, lengths) == expected
            assert pieces_at(text, start, fewer, lengths) == [p for p in expected if p in fewer]
            long += sum(len(p) > LONG for p in expected)
    assert long > 500
    assert [LongPieces(found).at("aab", 0) for found in ([], ["b"], ["aab"], ["aac"], ["aa", "aa"])] == [
        [],
        [],
        ["aab"],
        [],
        ["aa"],
    ]


def test_chains_are_split_as_by_the_reference():
    rng, used = random.Random(30), 0
    for k in range(8):
        pieces, text = chained_pieces(rng)
        pieces = sorted({*pieces, "a", "b"})
        scored = [
            ("<unk>", 0.0),
            *((p, -rng.randrange(1, 9) * 3 ** (k % 8)) for p in pieces),
        ]  # totals beyond 100,000, too, from where 32-bit sums begin anew
        model = unigram_model(scored, unk_piece="<unk>", control=["<unk>"])
        ids = model.encode(text)
        assert ids == unigram_encode_ref(model, text)
        assert tokens(model, text) == tokens_ref(model, text)
        theirs = SentencePieceUnigram(
            {p: i for i, (p, _) in enumerate(scored)},
            [score * (1 + 1e4 * (k % 3)) for _, score in scored],
            "<unk>",
        )
        assert theirs.encode(text) == sentencepiece_unigram_ref(theirs, text)
        used += sum(len(scored[i][0]) > LONG for i in ids)
    assert used > 10


@pytest.mark.peers
def test_chains_are_split_as_by_their_libraries(hf, spm):
    rng = random.Random(31)
    for _ in range(40):
        pieces, text = chained_pieces(rng)
        pieces = sorted({*pieces, "a", "b"})
        scored = [("<unk>", 0.0), *((p, -rng.randrange(1, 40) / 4) for p in pieces)]
        assert (
            unigram_model(scored, unk_piece="<unk>").encode(text)
            == hf.Tokenizer(hf.models.Unigram(scored, 0, False)).encode(text).ids
        )
        ours = SentencePieceUnigram(
            {p: i for i, (p, _) in enumerate(scored)}, [score for _, score in scored], "<unk>"
        )
        assert ours.encode(text) == sentencepiece_model(
            spm, [("<unk>", 0.0, UNKNOWN), *((p, score, NORMAL) for p, score in scored[1:])]
        ).encode(text)


class Counted(str):
    "A text that counts the characters that are copied out of it."

    copied = 0

    def __getitem__(self, key):
        out = str.__getitem__(self, key)
        self.copied += len(out)
        return out


def chain_of(longest):
    return ["a" * n for n in range(1, longest + 1)]


def of_unigram(pieces):
    return unigram_model([("<unk>", 0.0), *((p, -10.0 - len(p) / 1e6) for p in pieces)], unk_piece="<unk>")


def of_sentencepiece(pieces):
    model = SentencePieceUnigram(
        {p: i for i, p in enumerate(["<unk>", *pieces])},
        [0.0, *(-10.0 - len(p) / 1e6 for p in pieces)],
        "<unk>",
    )
    model._cut = lambda text: [text]
    return model


def every_call(model_of, explain):
    "The calls that look at all splits, of the same text."

    def calls(pieces):
        model = model_of(pieces)

        def run(text):
            lattice = model.lattice(text)
            return explain(model, text), nbest(lattice, 2), sample(lattice, 1.0, seed=1)

        return run

    return calls


def characters(pieces):
    return SentencePieceChars(
        {p: i for i, p in enumerate(["<unk>", "a", *(p + "b" for p in pieces)])},
        [0.0] * (len(pieces) + 2),
        "<unk>",
        user_defined=[p + "b" for p in pieces],
    ).encode


CHAINS = {
    "unigram": lambda pieces: of_unigram(pieces).encode,
    "lattice": lambda pieces: lambda text: build_lattice(text, dict.fromkeys(pieces, -1.0)),
    "sentencepiece": lambda pieces: of_sentencepiece(pieces).encode,
    "spellings": lambda pieces: (
        SentencePieceNormalizer(
            b"", False, False, False, user_defined=tuple(p + "b" for p in pieces)
        ).normalize
    ),
    "characters": characters,
}


@pytest.mark.parametrize("kind", CHAINS)
def test_looking_up_a_chain_copies_no_more_than_its_longest_piece(kind):
    "Not every piece that may fit: that is half the square of the longest. What is left is that square for the short pieces."
    longest, text = 300, Counted("a" * 400)
    CHAINS[kind](chain_of(longest))(text)
    assert 400 <= text.copied <= len(text) * (4 * longest + LONG**2)


SPLITS = {
    "unigram": every_call(of_unigram, explain_unigram),
    "sentencepiece": every_call(of_sentencepiece, explain_sentencepiece),
}


@pytest.mark.parametrize("kind", SPLITS)
def test_looking_at_all_splits_copies_no_more_than_the_longest_piece(kind):
    "A few times at each place, where each edge copying its piece would be half the square of the longest."
    longest, text = 300, Counted("a" * 400)
    SPLITS[kind](chain_of(longest))(text)
    assert 400 <= text.copied <= 5 * len(text) * (4 * longest + LONG**2)


def chain_file(folder, kind, longest):
    "A tokenizer.json or a .model whose pieces are a, aa, aaa … and which changes nothing in a text."
    scored = [("<unk>", 0.0), *((p, -10.0 - len(p) / 1e6) for p in chain_of(longest))]
    if kind == "tokenizer.json":
        model = {"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": False}
        empty = dict.fromkeys(
            ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
        )
        data = json.dumps({"version": "1.0", "added_tokens": [], **empty, "model": model}).encode()
    else:
        trainer = {"model_type": UNIGRAM, "unk_id": 0, "bos_id": -1, "eos_id": -1, "pad_id": -1}
        normalizer = {
            "name": "identity",
            "add_dummy_prefix": False,
            "remove_extra_whitespaces": False,
            "escape_whitespaces": False,
        }
        pieces = [Piece(p, score, UNKNOWN if p == "<unk>" else NORMAL) for p, score in scored]
        data = write_model_proto(ModelProto(pieces, trainer, normalizer))
    path = folder / kind
    path.write_bytes(data)
    return Tokenizer.load(path)


CALLS = {
    "explain": lambda tokenizer, text: tokenizer.explain(text),
    "nbest": lambda tokenizer, text: tokenizer.nbest(text, n=2),
    "sample": lambda tokenizer, text: tokenizer.sample(text, seed=1),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["tokenizer.json", "tokenizer.model"])
def test_all_splits_of_a_chain_cost_one_step_for_each_edge(tmp_path, kind, call):
    work = CALLS[call]
    # Both grow: 16 times the edges. Four times `grows` passes, which is half of what a cube would take.
    tokenizer = chain_file(tmp_path, kind, 400)
    assert_linear(
        lambda n: work(tokenizer, "a" * n),
        lambda n: n,
        400,
        times=4,
        grows=8,
        what=f"{kind} {call}, text and pieces",
    )
    # Only the text grows, and with it the edges.
    shorter = chain_file(tmp_path, kind, 80)
    assert_linear(lambda n: work(shorter, "a" * n), lambda n: n, 1600, what=f"{kind} {call}, text")


@pytest.mark.parametrize("call", CALLS)
def test_the_calls_that_an_edge_costs_do_not_grow(tmp_path, call):
    "Python's calls, and those of its built-in functions, for each edge: counted, so that no clock is asked."
    tokenizer, work = chain_file(tmp_path, "tokenizer.json", 200), CALLS[call]

    def calls_per_edge(n):
        profile = cProfile.Profile()
        profile.runcall(work, tokenizer, "a" * n)
        return sum(entry.callcount for entry in profile.getstats()) / (n * (n + 1) / 2)

    calls_per_edge(10)
    assert calls_per_edge(200) <= 1.1 * calls_per_edge(100)


class Added(float):
    "A score that counts how often it is added to another number or taken from one."

    times = 0

    def __radd__(self, other):
        Added.times += 1
        return other + float(self)

    def __rsub__(self, other):
        Added.times += 1
        return other - float(self)


def test_the_first_few_look_at_each_edge_once():
    "Not once for each of the few: after one look at all edges, so many lists of so many are left at each place."
    size, n = 100, 5
    score = Added(-1.0)
    nodes = [Node(a, b, b - a, score, "a" * (b - a)) for a in range(size) for b in range(a + 1, size + 1)]
    lattice, Added.times = Lattice("a" * size, nodes), 0
    assert len(nbest(lattice, n)) == n
    assert Added.times <= len(nodes) + size * n * n


def test_the_first_few_are_those_of_a_whole_sort():
    "Every candidate in its order, where many tie, where nodes stand twice and where some lead from nowhere."
    rng = random.Random(32)
    for _ in range(300):
        size = rng.randrange(1, 9)
        places = [tuple(sorted(rng.sample(range(size + 1), 2))) for _ in range(rng.randrange(1, 25))]
        nodes = [Node(a, b, i, -rng.randrange(3) / 2, "?") for i, (a, b) in enumerate(places)]
        lattice = Lattice("a" * size, nodes)
        for n in (1, 2, 5, 1000):
            assert nbest(lattice, n) == nbest_by_sorting(lattice, n)


def nbest_by_sorting(lattice, n):
    ways = [[([], 0.0)]]
    for ending in lattice.end_nodes[1:]:
        found = [([*path, node], score + node.score) for node in ending for path, score in ways[node.start]]
        ways.append(sorted(found, key=lambda way: -way[1])[:n])
    return ways[-1]


def test_sums_that_begin_anew_at_every_place_cost_no_more_than_the_longest_piece():
    "All sums ahead are moved, as SentencePiece does it; each is moved in one step."

    def work(longest):
        pieces = ["<unk>", *chain_of(longest)[longest // 25 - 1 :: longest // 25], "a"]
        model = SentencePieceUnigram(
            {p: i for i, p in enumerate(pieces)}, [0.0, *(-2e5 for _ in pieces[1:])], "<unk>"
        )
        assert len(model.encode("a" * 2000)) >= 2000 // longest

    assert_linear(work, lambda longest: longest, 1600)


def test_reasons_of_long_words_are_quick():
    "A word and its tokens, however many beginnings of it are pieces."

    def work(n):
        model = WordPiece(
            {"[UNK]": 0, "a": 1, "##a": 2, "a" * n: 3, "##" + "a" * (n // 2) + "b": 4},
            max_input_chars_per_word=10**6,
        )
        text = "a" * (2 * n)
        reason = explain_wordpiece(model, text, limit=10)
        assert reason.pieces == [list(model.piece2id)[i] for i in model.encode(text)]

    assert_linear(work, lambda n: n, 1600, grows=256)
    model = WordPiece({"a": 0, "##b": 1}, "a", max_input_chars_per_word=10**6)
    assert_linear(lambda text: tokens(model, text), lambda n: "a" + "b" * n, 16_000)
