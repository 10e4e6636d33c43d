"""What may be passed by position, and what by name only.

The rule: a parameter with a default is keyword-only, except for the few of `NATURAL`, each with its reason.
It holds for the functions, classes and public methods of every module's `__all__`. Four kinds are left out:
the chapter `compat`, whose signatures are those of the libraries that it stands in for; constructors of dataclasses and
named tuples, whose parameters are their fields; methods that Python itself calls (`__getitem__`, `__get__`, …), apart from
`__init__` and `__call__`, and those of `str` in a class that is one; and kernels, which Numba compiles.
"""

import importlib
import inspect
import random
from dataclasses import is_dataclass, replace

import pytest
from notebooks import dotted, modules

from subword_nb import AddedToken, Tokenizer
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.core.jit import Kernel
from subword_nb.pipeline.processors import BertProcessing, template

NATURAL = {  # a parameter, or the place of one: module.function.parameter, module.Class.method.parameter
    "pair": "the second text belongs beside the first: encode(text, pair), as in Hugging Face's library",
    "pairs": "the second texts belong beside the first ones",
    "sequence_index": "with an index it is one place, the character 3 of the text 1; transformers passes it by position",
    "corpus": "the text that a vocabulary is judged or made smaller by: audit(corpus), prune(n, corpus)",
    "written": "what a model has written since: mask(written)",
    "core.records.record.cls": "the class itself, for `@record` without options",
    "pipeline.blocks.NotUTF8.__init__.what": "the message of an exception",
    "bulk.span_places.Unsure.__init__.what": "the message of an exception",
    "core.table_cache.Packed.__init__.digest": "what pickle restores a value from, by position",
    "core.limits.limited.limits": "the limits themselves, for `with limited(limits):`",
    "text.regex.SplitPattern.match.pos": "as in `re`: match(text, pos)",
    "text.pretokenizers.byte_level.pattern": 'what the function is asked for, by name: byte_level("gpt2")',
    "pipeline.processors.template.single": 'the template itself: template("[CLS] $A [SEP]")',
    "formats.sentencepiece_proto.read_varint.end": "the end of a range that has a beginning",
    "formats.sentencepiece_proto.wire_fields.start": "the beginning of a range: wire_fields(data, start, end)",
    "formats.sentencepiece_proto.wire_fields.end": "the end of that range",
    "corpus.sources.wikitext.split": 'what the function is asked for, by name: wikitext("test")',
    "core.ragged.Ragged.index.start": "as for every sequence: index(value, start, stop)",
    "core.ragged.Ragged.index.stop": "as for every sequence: index(value, start, stop)",
}
MODULES = [
    name
    for name in (dotted(path).removeprefix("subword_nb.") for path in modules())
    if not name.startswith("compat.")
]


def by_position(fn) -> list[str]:
    "The parameters of a function that have a default and need no name."
    return [
        p.name
        for p in inspect.signature(fn).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY) and p.default is not p.empty
    ]


def methods_of(cls):
    "The public methods of a class that are written here, the inherited ones too: (name, function)."
    for name in dir(cls):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if name == "__init__" and (is_dataclass(cls) or issubclass(cls, tuple)):
            continue
        if issubclass(cls, str) and hasattr(str, name):
            continue
        found = getattr(cls, name)
        if (inspect.isfunction(found) or inspect.ismethod(found)) and inspect.unwrap(
            found
        ).__module__.startswith("subword_nb."):
            yield name, found


def public_functions(module: str):
    "What a module offers to be called: (place, function)."
    whole = importlib.import_module(f"subword_nb.{module}")
    for name in getattr(whole, "__all__", ()):
        value = getattr(whole, name)
        if isinstance(value, type):
            yield from ((f"{module}.{name}.{method}", fn) for method, fn in methods_of(value))
        elif callable(value) and not isinstance(value, Kernel) and inspect.isfunction(inspect.unwrap(value)):
            yield f"{module}.{name}", value


@pytest.mark.parametrize("module", MODULES)
def test_options_are_passed_by_name(module):
    wrong = {}
    for place, fn in public_functions(module):
        if found := [p for p in by_position(fn) if p not in NATURAL and f"{place}.{p}" not in NATURAL]:
            wrong[place] = found
    assert not wrong, wrong


def test_every_exception_exists():
    "No reason outlives what it is about."
    found = {
        f"{place}.{p}"
        for module in MODULES
        for place, fn in public_functions(module)
        for p in by_position(fn)
    }
    assert {n for n in NATURAL if n not in found and n not in {f.rpartition(".")[2] for f in found}} == set()


def test_much_is_looked_at():
    seen = {place for module in MODULES for place, _ in public_functions(module)}
    assert len(seen) > 1000
    assert {
        "bpe.reference.bpe_train_ref",
        "corpus.sources.Corpus.__init__",
        "cli.train.train_command",
    } <= seen
    methods = (
        "__init__",
        "__call__",
        "encode",
        "encode_batch",
        "encode_array",
        "encode_files",
        "tokenize",
        "align",
        "decode",
        "train",
        "load",
        "save",
    )
    assert {f"tokenizer.tokenizer.Tokenizer.{name}" for name in methods} <= seen


def test_the_second_text_is_the_second_argument():
    paired = {
        "encode": "pair",
        "tokenize": "pair",
        "align": "pair",
        "encode_array": "pair",
        "draw": "pair",
        "encode_batch": "pairs",
        "align_batch": "pairs",
        "__call__": "pairs",
    }
    assert {
        name: list(inspect.signature(getattr(Tokenizer, name)).parameters)[2] for name in paired
    } == paired


@pytest.fixture(scope="module")
def toks(shared_file):
    "Tokenizers of several kinds, with and without a post-processor, limits and filling."
    bert = Tokenizer.load(shared_file("vocab/bert-base-uncased/tokenizer.json"))
    parts = bert.parts._asdict()
    words = ["hug", "hugs", "pug", "bun", " hug", "<s> pun"]
    bpe = Tokenizer.train(words * 20, vocab_size=280, special_tokens=["<s>"])
    special = [("<s>", bpe.piece2id["<s>"])]
    return {
        "bert": bert,
        "bare": Tokenizer(**parts | {"post_processor": None}),
        "cut": Tokenizer(**parts | {"truncation": Truncation(9, stride=2)}),
        "second": Tokenizer(**parts | {"truncation": Truncation(40, strategy="only_second")}),
        "filled": Tokenizer(
            **parts
            | {
                "padding": Padding(pad_to_multiple_of=8),
                "post_processor": BertProcessing(("[SEP]", 102), ("[CLS]", 101)),
            }
        ),
        "bpe": bpe,
        "turned": Tokenizer(
            **bpe.parts._asdict()
            | {"post_processor": template("<s> $A", pair="$B <s> $A <s>", special_tokens=special)}
        ),
        "drops": Tokenizer(**bpe.parts._asdict() | {"model": replace(bpe.model, dropout=0.4)}),
    }


def texts_of(rng) -> list[str]:
    "Short texts, empty ones among them."
    words = ["hug", "hugs ", " pug", "déjà vu", "<s>", "[SEP]", "上海", "", "\n", "unaffable"]
    return ["".join(rng.choices(words, k=rng.randrange(9))) for _ in range(8)]


@pytest.mark.parametrize("name", ["bert", "bare", "cut", "second", "filled", "bpe", "turned", "drops"])
def test_every_method_that_encodes_takes_a_pair(toks, name):
    tok, rng = toks[name], random.Random(f"pairs {name}")
    seed = {"seed": 5} if name == "drops" else {}
    firsts, seconds = texts_of(rng), texts_of(rng)
    if name == "second":
        seconds = [f"{text} hugs and hugs" * 3 for text in seconds]
    for add in (True, False):
        options = {"add_special_tokens": add, **seed}
        for text, pair in zip(firsts, seconds):
            wanted = tok.align(text, pair, **options)
            assert tok.encode(text, pair, **options) == wanted.ids
            assert tok.encode(text.encode(), pair.encode(), **options) == wanted.ids
            assert (
                tok.encode_array(text, pair, **options).tolist()
                == tok.encode_batch([text], [pair], **options).tolist()[0]
            )
            assert tok.tokenize(text, pair, **options) == wanted.pieces
            if not seed:
                assert tok.encode_array(text, pair, **options).tolist() == wanted.ids
                assert (
                    tok(
                        text,
                        pair,
                        padding=None,
                        truncation=tok.truncation and tok.truncation.strategy,
                        stride=tok.truncation.stride if tok.truncation else 0,
                        **options,
                    )["input_ids"].tolist()
                    == wanted.ids
                )
        rows = tok.encode_batch(firsts, seconds, **options).tolist()
        assert rows == [e.ids for e in tok.align_batch(firsts, seconds, **options)]


def test_a_pair_is_encoded_by_kernels_as_without_them(toks):
    rng = random.Random("long pairs")
    firsts, seconds = [
        [" ".join(rng.choices(["hug", "pugs", "<s>", "déjà", "[SEP]"], k=3000)) for _ in range(2)]
        for _ in range(2)
    ]
    for name in ("bert", "turned"):
        tok = toks[name]
        wanted = [e.ids for e in tok.align_batch(firsts, seconds)]
        assert tok.encode_batch(firsts, seconds).tolist() == wanted
        assert tok.encode_batch(firsts, seconds, threads=2).tolist() == wanted
        assert [tok.encode(a, b) for a, b in zip(firsts, seconds)] == wanted


def test_long_texts_keep_ids_that_only_the_post_processor_gives(toks):
    bpe = toks["bpe"]
    tok = Tokenizer(
        **bpe.parts._asdict()
        | {
            "added_tokens": (*bpe.added_tokens, (AddedToken("<new>"), 5000)),
            "post_processor": template("<new> $A", special_tokens=[("<new>", 5000)]),
        }
    )
    for size in (3, 50_000):
        assert tok.encode("hug " * size, allowed_special=())[0] == 5000


def test_what_is_no_second_text_is_refused_with_advice(toks):
    tok = toks["bert"]
    for call in (tok.encode, tok.tokenize, tok.align, tok.encode_array, tok.draw, tok, tok.encode_ordinary):
        with pytest.raises(
            TypeError,
            match="positional"
            if call == tok.encode_ordinary
            else "options are passed by name, such as add_special_tokens=False",
        ):
            call("a text", False)
    for call in (tok.encode_batch, tok.align_batch):
        with pytest.raises(
            TypeError,
            match="pairs must be the second texts, got True; options are passed by name, such as add_special_tokens=True",
        ):
            call(["a text"], True)
    for call in (tok.encode_batch, tok.align_batch):
        with pytest.raises(
            ValueError, match="must be one string for each|a second text for each of the 2 texts, got 1"
        ):
            call(["a", "b"], ["c"])
        with pytest.raises(ValueError, match="this is one; pass a list|pairs must be a list"):
            call(["a"], "b")
    for call in (tok.encode, tok.tokenize, tok.align):
        with pytest.raises(ValueError, match="must not|disallowed|special token"):
            call("a", "b [SEP]", allowed_special=(), disallowed_special="all")
