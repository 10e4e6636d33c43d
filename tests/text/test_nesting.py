"""Components within components: however deep they lie in each other, everything costs what the components themselves cost."""

import copy
import json
import pickle
import random
import time
from contextlib import contextmanager

import pytest
from peers import hf_bpe, hf_file

from subword_nb import Tokenizer, decoders, normalizers, processors
from subword_nb.text import pretokenizers
from subword_nb.bpe.model import BPE
from subword_nb.formats.huggingface import parts_from_dict
from subword_nb.core.limits import LimitExceeded, limited

DEEP = 400
SECONDS = 5.0  # of one processor, for what takes milliseconds
TEXT = "aab Aab, aaa b"
PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
MODULES = {
    "normalizer": normalizers,
    "pre_tokenizer": pretokenizers,
    "post_processor": processors,
    "decoder": decoders,
}
# name → small components of each kind, at least two; among them those that a stage may ask about spaces,
# about the start of a text or about bytes
LEAVES = {
    "normalizer": [
        normalizers.Lowercase(),
        normalizers.NFC(),
        normalizers.Replace(" ", "▁"),
        normalizers.Prepend("▁"),
        normalizers.ByteLevel(),
        normalizers.Strip(),
    ],
    "pre_tokenizer": [
        pretokenizers.Digits(),
        pretokenizers.Whitespace(),
        pretokenizers.Metaspace(replacement="▁", prepend_scheme="first"),
        pretokenizers.ByteLevel(False),
        pretokenizers.UnicodeScripts(),
        pretokenizers.Punctuation(),
    ],
    "post_processor": [
        processors.ByteLevel(),
        processors.ByteLevel(trim_offsets=False),
        processors.RobertaProcessing(("b", 1), ("a", 0)),
        processors.TemplateProcessing("a $A", "$A a $B", [("a", 0)]),
    ],
    "decoder": [
        decoders.Fuse(),
        decoders.ByteLevel(),
        decoders.Metaspace(),
        decoders.Replace("a", "b"),
        decoders.Strip(),
        decoders.WordPiece(),
    ],
}
CASES = [(part, k) for part, leaves in LEAVES.items() for k in range(len(leaves))]
MODEL = hf_bpe({"a": 0, "b": 1, "aa": 2, " ": 3, "▁": 4, ",": 5, "Ġ": 6}, ["a a"], unk_token=",")
EMPTY = hf_file(MODEL)


@contextmanager
def bounded(what, seconds=SECONDS):
    "Refuse work that takes more than so many seconds of a processor."
    start = time.process_time()
    yield
    assert (took := time.process_time() - start) < seconds, f"{what} took {took:.1f} s"


def tower(part, leaf, depth, beside=()):
    "A component in so many Sequences; `beside` stands in each of them behind it."
    for _ in range(depth):
        leaf = MODULES[part].Sequence([leaf, *beside])
    return leaf


def tower_dict(part, leaf, depth, beside=()):
    "The same as a file has it."
    for _ in range(depth):
        leaf = {"type": "Sequence", PARTS[part]: [leaf, *beside]}
    return leaf


def with_part(part, component):
    "A tokenizer that has one component."
    return Tokenizer(
        BPE(MODEL["vocab"], [("a", "a")], unk_piece=","), **{"pre_tokenizer": None, part: component}
    )


def all_calls(tok):
    "What a user may ask a tokenizer for."
    ids = tok.encode(TEXT)
    return [
        ids,
        tok.encode_batch([TEXT, "b" * 9])[0].tolist(),
        tok.encode_array(TEXT * 200).tolist(),
        tok.tokenize(TEXT),
        tok.align(TEXT).to_dict(),
        tok.align_batch([TEXT, "b"])[1].to_dict(),
        tok.decode(ids),
        tok.decode_batch([ids, ids]),
        tok(TEXT)["input_ids"].tolist(),
        str(tok.stages(TEXT)),
        tok.explain(TEXT).to_dict(),
    ]


@pytest.mark.parametrize(
    "part, k", CASES, ids=[f"{part}-{type(LEAVES[part][k]).__name__}-{k}" for part, k in CASES]
)
def test_nested_components_cost_what_they_hold(part, k, tmp_path):
    "Four hundred deep, everything gives what the component gives alone, and takes no time to speak of."
    leaf, kind = LEAVES[part][k], MODULES[part].Sequence
    with bounded("making"):
        deep = tower(part, leaf, DEEP)
    flat = with_part(part, kind([leaf]))
    expected = all_calls(flat)
    with bounded("calls"):
        tok = with_part(part, deep)
        assert all_calls(tok) == expected
    with bounded("inspecting"):
        facts = tok.inspect()
        assert (
            json.loads(json.dumps(facts)) == json.loads(json.dumps(flat.inspect()))
            and repr(tok)
            and repr(deep).count("Sequence(") == DEEP
            and tok._repr_html_()
        )
    with bounded("comparing"):
        assert (
            deep == kind([leaf]) == tower(part, leaf, DEEP)
            and hash(deep) == hash(kind([leaf]))
            and deep != kind([leaf, leaf])
            and deep != leaf
        )
    with bounded("pickling"):
        again = pickle.loads(pickle.dumps(tok))
        assert (
            again == tok
            and all_calls(again) == expected
            and repr(copy.deepcopy(deep)) == repr(copy.copy(deep)) == repr(deep)
        )
    with bounded("saving and loading"):
        tok.save(tmp_path / "tokenizer.json")
        loaded = Tokenizer.load(tmp_path / "tokenizer.json")
        assert loaded == tok and all_calls(loaded) == expected


@pytest.mark.parametrize("part", PARTS)
def test_files_are_read_as_deep_as_readers_go(part, tmp_path):
    "At every depth a file is loaded with the meaning of its components, or refused in words; and it is written as it was."
    leaf = LEAVES[part][0]
    for depth in (1, 2, 20, 50, 60, 61, 62, 63, 100, DEEP):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(EMPTY | {part: tower_dict(part, leaf.to_dict(), depth)}))
        with bounded(f"a file {depth} deep"):
            if depth <= 62:
                tok = Tokenizer.load(path)
                assert (
                    all_calls(tok) == all_calls(with_part(part, leaf))
                    and tok.inspect()[part]["type"] == "Sequence"
                )
                if depth <= 60:
                    assert parts_from_dict(
                        EMPTY | {part: tower_dict(part, leaf.to_dict(), depth)}
                    ) == tok.parts._replace(allowed_special=None) and tok.inspect()[part] == tower_dict(
                        part, leaf.to_dict(), depth
                    )
            else:
                for limits in (None, {"json_depth": 5_000}):
                    with pytest.raises(
                        ValueError,
                        match="nested (at most 127 levels deep .*got (128|202|802)|too deeply, 802 levels)",
                    ):
                        Tokenizer.load(path, limits=limits)


@pytest.mark.parametrize("part", PARTS)
def test_a_step_at_every_level_is_a_step_more(part, tmp_path):
    "A tower with a step beside each Sequence does what one list of as many steps does, here and from a file."
    leaf, kind = LEAVES[part][0], MODULES[part].Sequence
    with bounded("a tower with steps"):
        deep = tower(part, leaf, DEEP, [leaf])
        assert deep.steps == (leaf,) * (DEEP + 1) and deep.depth == DEEP and deep == kind([leaf] * (DEEP + 1))
        tok, flat = with_part(part, deep), with_part(part, kind([leaf] * (DEEP + 1)))
        assert all_calls(tok) == all_calls(flat) and pickle.loads(pickle.dumps(tok)) == tok
        tok.save(tmp_path / "tokenizer.json")
        assert Tokenizer.load(tmp_path / "tokenizer.json") == tok
    (tmp_path / "wide.json").write_text(
        json.dumps(EMPTY | {part: tower_dict(part, leaf.to_dict(), 60, [leaf.to_dict()] * 15)})
    )
    with bounded("a file that is deep and wide"):
        wide = Tokenizer.load(tmp_path / "wide.json")
        assert len(wide.inspect()[part][PARTS[part]]) == 16 and all_calls(wide) == all_calls(
            with_part(part, kind([leaf] * 901))
        )


@pytest.mark.parametrize("part", PARTS)
def test_random_trees_do_what_their_steps_do(part):
    "However Sequences lie in each other; empty ones too."
    rng, kind = random.Random(27), MODULES[part].Sequence
    leaves = LEAVES[part][:3]

    def grown(depth):
        return kind(
            [
                grown(depth - 1) if depth and rng.random() < 0.5 else rng.choice(leaves)
                for _ in range(rng.randrange(4))
            ]
        )

    for _ in range(15):
        tree = grown(5)
        if len(tree.steps) > 12:
            continue
        flat = kind(tree.steps)
        assert (
            all_calls(with_part(part, tree)) == all_calls(with_part(part, flat))
            and tree == flat
            and hash(tree) == hash(flat)
        )
        assert pickle.loads(pickle.dumps(tree)).to_dict() == tree.to_dict() and parts_from_dict(
            EMPTY | {part: tree.to_dict()}
        ) == with_part(part, tree).parts._replace(allowed_special=None)


@pytest.mark.peers
@pytest.mark.parametrize("part", PARTS)
def test_other_readers_take_what_is_written(part, hf, tmp_path):
    "What is saved of a tower loads in Hugging Face's library, at every depth."
    for depth in (1, 59, 60, 61, 62, 63, DEEP):
        for leaf in LEAVES[part]:
            with_part(part, tower(part, leaf, depth)).save(tmp_path / "tokenizer.json")
            peer = hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
            assert peer.encode("aab").ids == with_part(part, leaf).encode("aab"), (depth, leaf)


@pytest.mark.parametrize("part", PARTS)
def test_a_sequence_that_doubles_itself_is_refused(part):
    leaf = tower(part, LEAVES[part][0], 1, [LEAVES[part][0]])
    with (
        bounded("doubling"),
        pytest.raises(LimitExceeded, match="a Sequence has 1,024 steps, and the limit components is 1,000"),
    ):
        for _ in range(60):
            leaf = MODULES[part].Sequence([leaf, leaf])
    with limited(components=5_000):
        assert len(MODULES[part].Sequence([LEAVES[part][0]] * 3_000).steps) == 3_000


@pytest.mark.parametrize("part", PARTS)
def test_a_class_derived_from_a_sequence_is_a_step(part):
    "It may do something else, so it is asked as a whole."

    class Own(MODULES[part].Sequence):
        pass

    leaf, kind = LEAVES[part][0], MODULES[part].Sequence
    own = Own([leaf, kind([leaf])])
    assert kind([own]).steps == (own,) and own.steps == (leaf, leaf) and own != kind([leaf, leaf])
