"""The public surface of the four faces beside that of the installed libraries: names, kinds, parameters and defaults."""

import importlib
import inspect

import pytest

MODULES = {  # module of a library: the module of the face
    "tokenizers": "subword_nb.compat.tokenizers",
    "tokenizers.models": "subword_nb.compat.tokenizers.models",
    "tokenizers.normalizers": "subword_nb.compat.tokenizers.normalizers",
    "tokenizers.pre_tokenizers": "subword_nb.compat.tokenizers.pre_tokenizers",
    "tokenizers.processors": "subword_nb.compat.tokenizers.processors",
    "tokenizers.decoders": "subword_nb.compat.tokenizers.decoders",
    "tokenizers.trainers": "subword_nb.compat.tokenizers.trainers",
    "tokenizers.implementations": "subword_nb.compat.tokenizers.implementations",
    "tokenizers.tools": "subword_nb.compat.tokenizers.tools",
    "tiktoken": "subword_nb.compat.tiktoken",
    "tiktoken.core": "subword_nb.compat.tiktoken.core",
    "tiktoken.load": "subword_nb.compat.tiktoken.load",
    "tiktoken.model": "subword_nb.compat.tiktoken.model",
    "tiktoken.registry": "subword_nb.compat.tiktoken.registry",
    "sentencepiece": "subword_nb.compat.sentencepiece",
}
OF_TRANSFORMERS = ["AutoTokenizer", "BatchEncoding", "CharSpan", "PreTrainedTokenizerFast", "TokenSpan"]
EVERY = {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__", "__match_args__"}
EVERY |= {"__orig_bases__", "__parameters__", "__text_signature__", *dir(object)}

# Every deliberate difference: what of theirs is not here, or has other parameters, and why
ABSENT = {
    "Sequence.__delitem__": "refuses there, too",
    "ParityBpeTrainer.alpha": "options are arguments",
    "ParityBpeTrainer.continuing_subword_prefix": "options are arguments",
    "ParityBpeTrainer.end_of_word_suffix": "options are arguments",
    "ParityBpeTrainer.global_merges": "options are arguments",
    "ParityBpeTrainer.limit_alphabet": "options are arguments",
    "ParityBpeTrainer.max_token_length": "options are arguments",
    "ParityBpeTrainer.min_frequency": "options are arguments",
    "ParityBpeTrainer.num_merges": "options are arguments",
    "ParityBpeTrainer.show_progress": "options are arguments",
    "ParityBpeTrainer.total_symbols": "options are arguments",
    "ParityBpeTrainer.window_size": "options are arguments",
    "BatchEncoding.__setstate__": "pickled without it",
}
OTHER = {
    "PreTrainedTokenizerFast.apply_chat_template": "only the template gives commands by default",
    "SentencePieceNormalizer.__setstate__": "only pickle calls it",
}
WRONG_THERE = {  # what signatures of tokenizers call an argument that only another name gives: that name
    "token_to_id": ("tokens", "token"),
    "pre_tokenize_str": ("sequence", "s"),
    "custom": ("normalizer", "obj"),
    "__deepcopy__": ("_memo", "memo"),
    "tokenizers.PreTokenizedString": ("sequence", "s"),
    "tokenizers.Regex": ("pattern", "s"),
    "tokenizers.pre_tokenizers.Sequence": ("pretokenizers", "pre_tokenizers"),
    "tokenizers.processors.Sequence": ("processors", "processors_py"),
    "tokenizers.decoders.Sequence": ("decoders", "decoders_py"),
}
OPERATORS = {"__getitem__", "__setitem__"}  # whose arguments nobody names
OTHER_DEFAULTS = {  # that signatures of tokenizers show otherwise than they are
    "tokenizers.processors.ByteLevel",  # None for True
    "tokenizers.pre_tokenizers.Metaspace",  # _ for ▁
}
OTHER |= {  # in both spellings
    f"SentencePieceProcessor.{name}": "out_type is second, as in 0.2.0"
    for both in (
        "Encode encode Decode decode Tokenize tokenize Detokenize detokenize",
        "NBestEncode nbest_encode ParallelEncode parallel_encode",
    )
    for name in both.split()
}


def public(kind):
    "The names of a class that a program may use."
    return {
        n for n in dir(kind) if n not in EVERY and (n[0] != "_" or n.startswith("__") and n.endswith("__"))
    }


def classes(theirs, ours):
    "The public classes of a library's module, with those of the face."
    a, b = importlib.import_module(theirs), importlib.import_module(ours)
    for name in dir(a):
        kind = getattr(a, name)
        if name[0] != "_" and inspect.isclass(kind) and kind.__module__.split(".")[0] == theirs.split(".")[0]:
            yield name, kind, getattr(b, name)


def parameters(value):
    "The parameters of a function; None if it does not say."
    try:
        return inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None


def differs(theirs, ours):
    "How the parameters of the face's function do not take what the library's takes; None if they do."
    a, b = parameters(theirs), parameters(ours)
    if a is None or b is None:
        return None
    known = {p.name: p for p in b}
    takes_any = any(p.kind == p.VAR_KEYWORD for p in b)
    for p in a:
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
            continue
        if p.name not in known:
            if not takes_any:
                return f"no parameter {p.name}"
        elif (
            p.default is not p.empty
            and known[p.name].default != p.default
            and str(p.default) != str(known[p.name].default)
        ):
            return f"{p.name}={known[p.name].default!r}, there {p.default!r}"
    places = [p.name for p in a if p.kind == p.POSITIONAL_OR_KEYWORD]
    here = [p.name for p in b if p.kind == p.POSITIONAL_OR_KEYWORD]
    if not takes_any and here[: len(places)] != places:
        return f"the order {here}, there {places}"
    return None


def names_differ(theirs, ours, wrong=None):
    "Which arguments of a function of tokenizers the face's function does not have, or gives another default."
    a, b = parameters(theirs), parameters(ours)
    if a is None or b is None:
        return None
    known = {p.name: p for p in b}
    if any(p.kind == p.VAR_KEYWORD for p in b):
        return None
    bad = []
    for p in a:
        name = wrong[1] if wrong and p.name == wrong[0] else p.name
        if name == "self" or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        same = name in known and (p.default is p.empty or str(p.default) == str(known[name].default))
        if not same:
            bad.append(f"{name}: {known.get(name)}, there {p}")
    return bad or None


def missing_names(name, theirs, ours):
    return {f"{name}.{n}" for n in public(theirs) - public(ours)}


@pytest.mark.peers
@pytest.mark.parametrize("module", MODULES)
def test_classes_have_the_names_of_the_library(module):
    pytest.importorskip(module.split(".")[0], reason="the peer tests need the extra 'peers'")
    missing = set()
    for name, theirs, ours in classes(module, MODULES[module]):
        missing |= missing_names(name, theirs, ours)
    assert missing <= set(ABSENT), sorted(missing - set(ABSENT))


@pytest.mark.peers
@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("tokenizers")])
def test_functions_take_the_same_arguments(module):
    pytest.importorskip(module.split(".")[0], reason="the peer tests need the extra 'peers'")
    found = {}
    a, b = importlib.import_module(module), importlib.import_module(MODULES[module])
    for name, theirs, ours in classes(module, MODULES[module]):
        for n in public(theirs) & public(ours):
            found[f"{name}.{n}"] = differs(getattr(theirs, n), getattr(ours, n))
        found[name] = differs(theirs, ours)
    for name in dir(a):
        if name[0] != "_" and inspect.isfunction(getattr(a, name)) and getattr(a, name).__module__ == module:
            found[name] = differs(getattr(a, name), getattr(b, name))
    assert not {k: v for k, v in found.items() if v and k not in OTHER}


@pytest.mark.peers
@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("tokenizers")])
def test_arguments_of_tokenizers_have_the_same_names_and_defaults(module):
    "Its signatures leave out `self` in places, so the order is not compared."
    pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")
    found = {}
    for name, theirs, ours in classes(module, MODULES[module]):
        for n in public(theirs) & public(ours) - OPERATORS:
            found[f"{name}.{n}"] = names_differ(getattr(theirs, n), getattr(ours, n), WRONG_THERE.get(n))
        full = f"{module}.{name}"
        if full not in OTHER_DEFAULTS:
            found[name] = names_differ(theirs, ours, WRONG_THERE.get(full))
    assert found and not {k: v for k, v in found.items() if v}


@pytest.mark.peers
@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_the_surface_of_transformers(name):
    library = pytest.importorskip("transformers")
    theirs = getattr(library, name)
    ours = getattr(importlib.import_module("subword_nb.compat.transformers"), name)
    missing = missing_names(name, theirs, ours)
    assert missing <= set(ABSENT), sorted(missing - set(ABSENT))
    found = {
        f"{name}.{n}": differs(getattr(theirs, n), getattr(ours, n)) for n in public(theirs) & public(ours)
    }
    assert not {k: v for k, v in found.items() if v and k not in OTHER and not k.endswith("__")}


@pytest.mark.peers
def test_the_table_of_differences_is_needed():
    "Every entry is a difference still."
    for library in ("tokenizers", "transformers", "sentencepiece", "tiktoken"):
        pytest.importorskip(library)
    found = set()
    for module, ours in MODULES.items():
        for name, a, b in classes(module, ours):
            found |= missing_names(name, a, b)
    library, face = (importlib.import_module(m) for m in ("transformers", "subword_nb.compat.transformers"))
    for name in OF_TRANSFORMERS:
        found |= missing_names(name, getattr(library, name), getattr(face, name))
    assert set(ABSENT) <= found, sorted(set(ABSENT) - found)
    assert set(OTHER) <= other_parameters(), sorted(set(OTHER) - other_parameters())


def other_parameters():
    "The functions of the faces that take other arguments."
    found = set()
    for module, face in MODULES.items():
        if module.startswith("tokenizers"):
            continue
        for name, a, b in classes(module, face):
            found |= {f"{name}.{n}" for n in public(a) & public(b) if differs(getattr(a, n), getattr(b, n))}
    library, face = (importlib.import_module(m) for m in ("transformers", "subword_nb.compat.transformers"))
    for name in OF_TRANSFORMERS:
        a, b = getattr(library, name), getattr(face, name)
        found |= {f"{name}.{n}" for n in public(a) & public(b) if differs(getattr(a, n), getattr(b, n))}
    return found
