"""Post-processors: on any encoding at all, equal to the same post-processor of Hugging Face's library."""

# ruff: noqa: B023
import json
import pickle
import random

import pytest
from tests.pipeline.test_encoding import random_encoding, read, said, state, theirs

from subword_nb.pipeline.encoding import Encoding, Padding, Truncation, byte_offsets, truncate_pair
from subword_nb.pipeline.processors import (
    BertProcessing,
    ByteLevel,
    RobertaProcessing,
    Sequence,
    TemplateProcessing,
    default_process,
    processor_from_dict,
    template,
    trim_offsets,
)

CLS, SEP = ("[CLS]", 101), ("[SEP]", 102)
SPECIAL = [
    CLS,
    SEP,
    {"id": "two", "ids": [7, 8], "tokens": ["x", "y"]},
    {"id": "none", "ids": [], "tokens": []},
]


def peer(p):
    "The same post-processor of the other library."
    P = pytest.importorskip("tokenizers.processors")
    if isinstance(p, ByteLevel):
        return P.ByteLevel(
            add_prefix_space=p.add_prefix_space, trim_offsets=p.trim_offsets, use_regex=p.use_regex
        )
    if isinstance(p, BertProcessing):
        return P.BertProcessing(p.sep, p.cls)
    if isinstance(p, RobertaProcessing):
        return P.RobertaProcessing(p.sep, p.cls, p.trim_offsets, p.add_prefix_space)
    if isinstance(p, Sequence):
        return P.Sequence([peer(q) for q in p.processors])

    def spell(steps):
        return [f"{'$' if n in ('A', 'B') else ''}{n}:{t}" for n, t in steps]

    return P.TemplateProcessing(
        spell(p.single), spell(p.pair), [{"id": k, **v} for k, v in p.special_tokens.items()]
    )


def random_template(rng):
    "A template with a place for every text, some of them twice."

    def steps(texts):
        names = list(texts) + rng.choices([*texts, "[CLS]", "[SEP]", "two", "none"], k=rng.randint(0, 4))
        rng.shuffle(names)
        return [(n, rng.randint(0, 3)) for n in names]

    return TemplateProcessing(steps("A"), steps("AB"), SPECIAL)


def random_processor(rng, nested=True):
    "Any post-processor, with any options."
    yes, kind = lambda: rng.random() < 0.5, rng.randrange(5 if nested else 4)
    if kind == 0:
        return ByteLevel(yes(), yes(), yes())
    if kind == 1:
        return BertProcessing(SEP, CLS)
    if kind == 2:
        return RobertaProcessing(("</s>", 2), ("<s>", 0), yes(), yes())
    return (
        random_template(rng)
        if kind == 3
        else Sequence([random_processor(rng, False) for _ in range(rng.randint(0, 3))])
    )


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(4))
def test_every_processor_on_every_encoding(seed):
    rng, kinds = random.Random(seed), []
    for _ in range(700):
        p = random_processor(rng)
        texts = [
            random_encoding(rng, 6, rng.choice([0, 1, 1]), ranges=rng.random() < 0.2)
            for _ in range(rng.choice([1, 2]))
        ]
        add = rng.random() < 0.7
        want = said(lambda: read(peer(p).process(*map(theirs, texts), *[None] * (len(texts) == 1), add)))
        got = said(lambda: state(p.process(texts, add_special_tokens=add)))
        kinds.append((type(p).__name__, got == "fails"))
        if got == "fails" and want != "fails":  # a text would be lost, or put in for another
            assert "Template" in repr(p)
            continue
        assert got == want, (p, texts, add)
        assert [p.n_added(pair) for pair in (False, True)] == [
            peer(p).num_special_tokens_to_add(pair) for pair in (False, True)
        ]
    assert {k for k, failed in kinds if not failed} == {
        "ByteLevel",
        "BertProcessing",
        "RobertaProcessing",
        "TemplateProcessing",
        "Sequence",
    }
    assert sum(failed for _, failed in kinds) < 70


@pytest.mark.peers
def test_trimming():
    P, rng = pytest.importorskip("tokenizers.processors"), random.Random(9)
    spaces = [
        chr(c)
        for c in [
            *range(0x21),
            0x7F,
            *range(0x80, 0xA1),
            0x1680,
            0x180E,
            *range(0x2000, 0x2010),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x2060,
            0x3000,
            0xFEFF,
            0x120,
            0x10A,
        ]
    ]
    for _ in range(600):
        n = rng.randint(1, 5)
        pieces = [
            "".join(rng.choices(spaces, k=rng.randint(0, 3)))
            + rng.choice(["", "a", "é", "🙂"])
            + "".join(rng.choices(spaces, k=rng.randint(0, 3)))
            for _ in range(n)
        ]
        starts = [rng.choice([0, 0, 3, 9]) for _ in range(n)]
        e, prefix = (
            Encoding([0] * n, pieces, [(s, s + rng.randint(0, 6)) for s in starts]),
            rng.random() < 0.5,
        )
        assert read(P.ByteLevel(prefix, True).process(theirs(e)))["offsets"] == [
            list(x) for x in trim_offsets(e, add_prefix_space=prefix).offsets
        ]
    e = Encoding([0] * 0x3000, [chr(c) for c in range(0x3000)] + [], [(1, 3)] * 0x3000)
    assert read(P.ByteLevel(False, True).process(theirs(e)))["offsets"] == [
        list(x) for x in trim_offsets(e, add_prefix_space=False).offsets
    ] or any(0xD800 <= ord(c) < 0xE000 for c in e.pieces)


def test_trimmed_bytes():
    text = " é  漢\u00a0b"
    spans = [(0, 2), (2, 5), (5, 7)]
    e = trim_offsets(
        Encoding([1, 2, 3], ["ĠÃ©", "ĠĠæ¼¢", "\u00a0b"], spans, byte_offsets(text, spans)),
        add_prefix_space=False,
    )
    assert e.offsets == [(1, 2), (4, 5), (6, 7)] and e.offsets_bytes == byte_offsets(text, e.offsets)
    e = trim_offsets(Encoding([1], ["Ãł\u3000Ġ"], [(0, 3)], [(0, 6)]), add_prefix_space=False)
    assert (e.offsets, e.offsets_bytes) == ([(0, 1)], [(0, 2)])


@pytest.mark.peers
@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
def test_truncation_and_then_the_processor(strategy):
    T, rng = pytest.importorskip("tokenizers"), random.Random(5)
    tok = T.Tokenizer(
        T.models.WordLevel({"[UNK]": 0} | {c: i for i, c in enumerate("abcdefghij", 1)}, "[UNK]")
    )
    tok.pre_tokenizer = T.pre_tokenizers.Whitespace()
    from tests.pipeline.test_encoding import ours

    for _ in range(500):
        texts = [
            " ".join(rng.choices("abcdefghij", k=rng.randint(0, 9))) for _ in range(rng.choice([1, 2, 2]))
        ]
        p = random_processor(rng, False)
        if isinstance(p, TemplateProcessing) and (len({n for n, _ in p.single} & {"A", "B"}) != 1):
            continue
        tok.no_truncation()
        tok.post_processor = peer(p)
        how, add = (
            Truncation(rng.randint(0, 14), rng.choice([0, 0, 1, 2]), strategy, rng.choice(["right", "left"])),
            rng.random() < 0.7,
        )
        if (
            said(
                lambda: tok.enable_truncation(
                    how.max_length, stride=how.stride, strategy=strategy, direction=how.direction
                )
            )
            == "fails"
        ):
            continue
        want = said(lambda: read(tok.encode(*texts, add_special_tokens=add)))
        n_added = p.n_added(len(texts) == 2) if add else 0
        got = said(
            lambda: state(
                p.process(
                    truncate_pair([ours(t, i) for i, t in enumerate(texts)], how, n_added=n_added),
                    add_special_tokens=add,
                )
            )
        )
        assert want == got, (texts, how, p)


@pytest.mark.peers
@pytest.mark.parametrize("text, type_id", [("a b", 0), ("", 0)])
def test_without_a_processor(text, type_id):
    T = pytest.importorskip("tokenizers")
    tok = T.Tokenizer(T.models.WordLevel({"a": 0, "b": 1}, "a"))
    tok.pre_tokenizer = T.pre_tokenizers.Whitespace()
    one = [
        Encoding([0, 1], ["a", "b"], [(0, 1), (2, 3)], word_ids=[0, 1]) if text else Encoding(),
        Encoding([1], ["b"], [(0, 1)], word_ids=[0], type_ids=[1]),
    ]
    assert read(tok.encode(text)) == state(default_process(one[:1]))
    assert read(tok.encode(text, "b")) == state(default_process(one))


WORDS = [
    {},
    {"single": "$A"},
    {"single": ["[CLS]", "$0"], "pair": "$A $B:1"},
    {"single": "[CLS]:1 $", "pair": "$ $B [SEP]:2"},
    {"pair": "$A"},
    {"single": "[C]"},
    {"single": "[CLS]"},
    {"single": "$A:"},
    {"single": "$A:-1"},
    {"single": "$A:+1"},
    {"single": "$C"},
    {"single": "a:b:1"},
    {"single": "$A  $A"},
    {"single": "$A:1:2"},
    {"single": "two none $A:7"},
    {"single": "$4294967296"},
    {"single": "$A:4294967296"},
    {"single": "$1:5 $a $b"},
    {"single": ""},
    {"single": []},
    {"single": "$12"},
    {"pair": "$b $a"},
    {"pair": []},
    {"pair": "$A $A"},
    {"single": "$+3"},
    {"single": "$ 1"},
]


@pytest.mark.peers
@pytest.mark.parametrize("words", WORDS, ids=str)
def test_words_of_a_template(words):
    P = pytest.importorskip("tokenizers.processors")
    special = [CLS, (102, "[SEP]"), *SPECIAL[2:]]
    want = said(lambda: json.loads(P.TemplateProcessing(**words, special_tokens=special).__getstate__()))
    assert said(lambda: template(**words, special_tokens=special).to_dict()) == want
    assert said(lambda: TemplateProcessing(**words, special_tokens=special).to_dict()) == want


def test_processors_from_files_and_back():
    rng = random.Random(3)
    for _ in range(200):
        p = random_processor(rng)
        assert processor_from_dict(json.loads(json.dumps(p.to_dict()))) == p
    assert processor_from_dict(None) is None


S, Q, TOKENS = (
    lambda i, t=0: {"SpecialToken": {"id": i, "type_id": t}},
    lambda i, t=0: {"Sequence": {"id": i, "type_id": t}},
    {"[C]": {"id": "[C]", "ids": [1], "tokens": ["[C]"]}},
)
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [S("[C]"), Q("A")],
    "pair": [Q("A"), Q("B", 1)],
    "special_tokens": TOKENS,
}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["s", 2],
    "cls": ["c", 1],
    "trim_offsets": True,
    "add_prefix_space": False,
}
BERT, BYTES = (
    {k: ROBERTA[k] for k in ("sep", "cls")},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False},
)
# A file, and what happens: "as theirs" (loaded alike, or refused by both), "refused" (here alone, because theirs
# continues with something else or fails when used).
FILES = [
    (ROBERTA, "as theirs"),
    (BYTES, "as theirs"),
    ({**BYTES, "use_regex": False}, "as theirs"),
    (TEMPLATE, "as theirs"),
    ({"type": "Sequence", "processors": [BYTES, TEMPLATE]}, "as theirs"),
    ({"type": "Sequence", "processors": []}, "as theirs"),
    ({**TEMPLATE, "pair": []}, "as theirs"),
    ({**TEMPLATE, "single": []}, "as theirs"),
    ({**TEMPLATE, "single": [S("[C]")]}, "as theirs"),
    ({**TEMPLATE, "single": [Q("A"), Q("A")], "pair": [Q("B")]}, "as theirs"),
    ({"type": "BertProcessing", **BERT}, "as theirs"),
    (BERT, "as theirs"),
    ({k: v for k, v in ROBERTA.items() if k != "type"}, "as theirs"),
    ({k: v for k, v in BYTES.items() if k != "type"}, "as theirs"),
    ({k: v for k, v in TEMPLATE.items() if k != "type"}, "as theirs"),
    ({"processors": [BERT]}, "as theirs"),
    (None, "as theirs"),
    ({"type": "Magic"}, "as theirs"),
    ({}, "as theirs"),
    ([], "as theirs"),
    ("ByteLevel", "as theirs"),
    ({"type": "ByteLevel"}, "as theirs"),
    ({**BYTES, "trim_offsets": 1}, "as theirs"),
    ({"type": "BertProcessing", "sep": ["s", 2]}, "as theirs"),
    ({"type": "BertProcessing", "sep": ["s", -2], "cls": ["c", 1]}, "as theirs"),
    ({"type": "BertProcessing", "sep": ["s", 2, 3], "cls": ["c", 1]}, "as theirs"),
    ({**TEMPLATE, "single": [Q("C")]}, "as theirs"),
    ({**TEMPLATE, "single": [Q("A", -1)]}, "as theirs"),
    ({**TEMPLATE, "single": [Q("A", 2**32)]}, "as theirs"),
    ({**TEMPLATE, "single": "$A"}, "as theirs"),
    ({**TEMPLATE, "single": ["$A"]}, "as theirs"),
    ({**TEMPLATE, "special_tokens": {"[C]": {"ids": [1], "tokens": ["x"]}}}, "as theirs"),
    ({**TEMPLATE, "special_tokens": []}, "as theirs"),
    ({**TEMPLATE, "special_tokens": {"[C]": {"id": "[C]", "ids": [-1], "tokens": ["x"]}}}, "as theirs"),
    ({k: v for k, v in TEMPLATE.items() if k != "pair"}, "as theirs"),
    ({"type": "Sequence"}, "as theirs"),
    ({"type": "Sequence", "processors": [BYTES, {"type": "Magic"}]}, "as theirs"),
    ({k: v for k, v in ROBERTA.items() if k != "trim_offsets"}, "refused"),
    ({**ROBERTA, "type": "BertProcessing"}, "refused"),
    ({**ROBERTA, "type": "Magic"}, "refused"),
    ({**BERT, **TEMPLATE}, "refused"),
    ({**TEMPLATE, "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, "as theirs"),
    ({**BYTES, "x": 1}, "as theirs"),
    ({**TEMPLATE, "single": [S("?")]}, "refused"),
    ({**TEMPLATE, "special_tokens": {"[C]": {"id": "[C]", "ids": [1, 2], "tokens": ["x"]}}}, "refused"),
    ({**BERT, "type": "Bert"}, "refused"),
    (
        {**TEMPLATE, "single": [S("A")], "special_tokens": {"A": {"id": "A", "ids": [1], "tokens": ["A"]}}},
        "refused",
    ),
]


@pytest.mark.peers
@pytest.mark.parametrize("d, happens", FILES, ids=lambda v: json.dumps(v)[:90])
def test_what_stands_in_files(d, happens):
    T = pytest.importorskip("tokenizers")
    file = json.loads(T.Tokenizer(T.models.WordLevel({"a": 0}, "a")).to_str())
    want = said(
        lambda: json.loads(T.Tokenizer.from_str(json.dumps({**file, "post_processor": d})).to_str())[
            "post_processor"
        ]
    )
    got = said(lambda: (p := processor_from_dict(d)) and p.to_dict())
    if happens == "refused":
        assert got == "fails" and want != "fails"
    else:
        assert got == want
    if got == "fails":
        with pytest.raises(ValueError, match="^post_processor"):
            processor_from_dict(d)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: template("[CLS] $A"), "single must name special_tokens (none), got '[CLS]'"),
        (
            lambda: template("$A:x"),
            "a whole number must follow the colon of a step of a template, got '$A:x'",
        ),
        (lambda: template("$X"), "a text in a template must be $A, $B"),
        (lambda: template(pair="$A"), "pair must have a place for text B, got none"),
        (
            lambda: BertProcessing(SEP, CLS).process([]),
            "encodings must be those of one text or of two, got 0",
        ),
        (lambda: default_process([Encoding()] * 3), "encodings must be those of one text or of two, got 3"),
        (
            lambda: TemplateProcessing("$A", []).process([Encoding()] * 2),
            "pair must have a place for text A, got none",
        ),
        (lambda: template("$A $B").process([Encoding()]), "texts must include B"),
        (
            lambda: Sequence([template("[CLS] $A [SEP]", special_tokens=[CLS, SEP])] * 2).process(
                [Encoding()]
            ),
            "a template must be filled with one part or two, got 3 of another post-processor",
        ),
        (lambda: ByteLevel().process([7, 8]), "encodings must be a list of one Encoding or two, got [7, 8]"),
        (lambda: ByteLevel().process(Encoding()), "encodings must be a list of one Encoding or two"),
        (lambda: default_process([None]), "encodings must be a list of one Encoding or two"),
        (lambda: BertProcessing(102, 101), 'sep must be a token and its id, such as ["[SEP]", 102], got 102'),
        (
            lambda: BertProcessing((102, "[SEP]"), CLS),
            "sep must be a token and its id, such as [\"[SEP]\", 102], got (102, '[SEP]')",
        ),
        (
            lambda: RobertaProcessing(SEP, ("[CLS]", -1)),
            "cls must be a token and its id, such as [\"[SEP]\", 102], got ('[CLS]', -1)",
        ),
        (lambda: RobertaProcessing(SEP, CLS, "no"), "trim_offsets must be True or False, got 'no'"),
        (lambda: ByteLevel(1), "add_prefix_space must be True or False, got 1"),
        (lambda: Sequence([ByteLevel(), "bert"]), "processors must be post-processors, got 'bert'"),
        (lambda: template(3), 'a template must be words such as "[CLS] $A [SEP]", or a list, got 3'),
        (
            lambda: TemplateProcessing([("A", "x")]),
            "a step of a template must be a token and its id, such as [\"[SEP]\", 102], got ('A', 'x')",
        ),
        (
            lambda: template("[C] $A", special_tokens=["[C]"]),
            "a special token must be a token and its id, such as [\"[SEP]\", 102], got '[C]'",
        ),
        (
            lambda: template("[C] $A", special_tokens=[("[C]", 1.5)]),
            "a special token must be a token and its id, such as [\"[SEP]\", 102], got ('[C]', 1.5)",
        ),
        (
            lambda: TemplateProcessing("[C] $A", special_tokens={"[C]": {"ids": ["x"], "tokens": ["[C]"]}}),
            "special_tokens['[C]'] must have ids from 0 on and tokens of text, got {'ids': ['x'], 'tokens': ['[C]",
        ),
    ],
)
def test_refusals(wrong, says):
    with pytest.raises(ValueError) as e:
        wrong()
    assert says in str(e.value)


@pytest.mark.slow
def test_every_published_file(shared_data):
    found = 0
    for path in sorted((shared_data / "vocab").rglob("*tokenizer.json")):
        if "invalid" in path.parts:
            continue
        d = json.loads(path.read_text(encoding="utf-8"))
        p = processor_from_dict(d["post_processor"])
        if p is not None:
            again = processor_from_dict(p.to_dict())
            assert again == p and p.n_added(False) == len(p.process([Encoding()]))
            found += 1
        for kind, block in ((Truncation, "truncation"), (Padding, "padding")):
            made = kind.from_dict(d.get(block))
            assert made is None or made.to_dict() == {"direction": "Right"} | d[block]
    assert found > 5


def test_plain_objects():
    "Pickled, hashed, compared and shown; lists are as good as tuples."
    assert BertProcessing(list(SEP), list(CLS)) == BertProcessing(SEP, CLS) and hash(
        BertProcessing(list(SEP), CLS)
    ) == hash(BertProcessing(SEP, CLS))
    assert (
        template("[CLS] $A", special_tokens=[list(CLS)])
        == template(["[CLS]", "$A"], special_tokens=[CLS[::-1]])
        == TemplateProcessing([["[CLS]", 0], ("A", 0)], special_tokens=[CLS])
    )
    for p in (random_processor(random.Random(k)) for k in range(60)):
        assert (
            pickle.loads(pickle.dumps(p)) == p
            and len({p, processor_from_dict(p.to_dict())}) == 1
            and type(p).__name__ in repr(p)
        )


@pytest.mark.peers
def test_nested_as_deep_as_theirs():
    T = pytest.importorskip("tokenizers")
    file = json.loads(T.Tokenizer(T.models.WordLevel({"a": 0}, "a")).to_str())
    for depth in (1, 61, 62, 63, 90):
        d = BYTES
        for _ in range(depth):
            d = {"type": "Sequence", "processors": [d]}
        theirs_reads = (
            said(lambda: T.Tokenizer.from_str(json.dumps({**file, "post_processor": d}))) != "fails"
        )
        assert (said(lambda: processor_from_dict(d)) != "fails") == theirs_reads == (depth <= 62)


@pytest.mark.peers
def test_trimming_before_a_template():
    "A sequence of both, on a text whose piece carries its space: alone, as a pair, and in the other library."
    T = pytest.importorskip("tokenizers")
    words = {"the": 2, "Ġpug": 3, "hugs": 4, "ĠĠme": 5}
    tok = T.Tokenizer(T.models.WordLevel({"[SEP]": 0, "[CLS]": 1, "[UNK]": 6} | words, "[UNK]"))
    tok.pre_tokenizer = T.pre_tokenizers.Split("|", "removed")
    own = template(
        "[CLS]:0 $A:0 [SEP]:0",
        "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 0)],
    )
    spans = {"the|Ġpug|hugs": [(0, 3), (4, 8), (9, 13)], "Ġpug|ĠĠme": [(0, 4), (5, 9)]}
    texts = [
        Encoding([words[w] for w in t.split("|")], t.split("|"), s, word_ids=list(range(len(s))))
        for t, s in spans.items()
    ]
    for p, starts in (
        (own, [0, 0, 4, 9, 0]),
        (Sequence([ByteLevel(), own]), [0, 0, 5, 9, 0]),
        (Sequence([own]), [0, 0, 4, 9, 0]),
    ):
        tok.post_processor = peer(p)
        assert [a for a, _ in p.process(texts[:1]).offsets] == starts
        assert read(tok.encode(*list(spans)[:1])) == state(p.process(texts[:1]))
        assert (
            read(tok.encode(*spans)) == state(p.process(texts))
            and p.process(texts).type_ids == [0] * 5 + [1] * 3
        )
        assert read(tok.encode(*spans, add_special_tokens=False)) == state(
            p.process(texts, add_special_tokens=False)
        )
