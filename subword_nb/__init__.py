"""Subword tokenization you can read: BPE, WordPiece and Unigram explained, trained and run. Start with `Tokenizer`."""

__version__ = "0.1.0"
__all__ = [
    "AddedToken",
    "Tokenizer",
    "TrainingReport",
    "decoders",
    "models",
    "normalizers",
    "pre_tokenizers",
    "processors",
    "scale",
    "warm_up",
]

TYPE_CHECKING = False  # True for a type checker; importing `typing` would cost more than the rest of this file
if TYPE_CHECKING:
    from subword_nb.bulk import distributed as scale
    from subword_nb.pipeline import decoders, models, processors
    from subword_nb.pipeline.vocab import AddedToken
    from subword_nb.text import normalizers
    from subword_nb.text import pretokenizers as pre_tokenizers
    from subword_nb.tokenizer.tokenizer import Tokenizer
    from subword_nb.train.train import TrainingReport

_CLASSES = {
    "AddedToken": "subword_nb.pipeline.vocab",
    "Tokenizer": "subword_nb.tokenizer.tokenizer",
    "TrainingReport": "subword_nb.train.train",
}
_NAMESPACES = {
    "decoders": "subword_nb.pipeline.decoders",
    "models": "subword_nb.pipeline.models",
    "normalizers": "subword_nb.text.normalizers",
    "pre_tokenizers": "subword_nb.text.pretokenizers",
    "processors": "subword_nb.pipeline.processors",
    "scale": "subword_nb.bulk.distributed",
}


if not TYPE_CHECKING:

    def __getattr__(name):
        "Import a public name when it is first used, so that `import subword_nb` costs next to nothing."
        if name not in __all__:
            raise AttributeError(f"module 'subword_nb' has no attribute {name!r}; its names are: {', '.join(__all__)}")
        from importlib import import_module

        import_module("subword_nb.core.processes")  # before anything that a fork must not cut in two
        if name in _NAMESPACES:
            value = import_module(_NAMESPACES[name])
        else:
            value = getattr(import_module(_CLASSES[name]), name)
        globals()[name] = value
        return value


def __dir__():
    return sorted([*globals(), *__all__])


def warm_up() -> list[str]:
    "Load all kernels, so that the first bulk call does not wait; where there is no library of them, build one."
    import pkgutil
    from importlib import import_module

    import_module("subword_nb.core.native_build").ensure()
    for page in pkgutil.walk_packages(__path__, "subword_nb."):
        if not page.name.endswith("__main__"):
            import_module(page.name)  # which registers its kernels
    return import_module("subword_nb.core.jit").warm_up()
