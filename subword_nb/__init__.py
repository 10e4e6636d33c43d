"""Subword tokenization you can read: BPE, WordPiece and Unigram explained, trained and run. Start with `Tokenizer`."""

__version__ = "0.1.0"
__all__ = ["AddedToken", "Tokenizer", "TrainingReport", "warm_up"]

TYPE_CHECKING = False  # True for a type checker, which does not follow __getattr__; importing `typing` would cost more than the rest of this file
if TYPE_CHECKING:
    from subword_nb.tokenizer.tokenizer import Tokenizer as Tokenizer
    from subword_nb.train.train import TrainingReport as TrainingReport
    from subword_nb.pipeline.vocab import AddedToken as AddedToken

_HOME = {"AddedToken": "vocab", "Tokenizer": "tokenizer", "TrainingReport": "training"}
_KERNEL_ROOMS = ("machine", "automaton", "scanners", "word_scanners", "span_table", "bpe_train", "wordpiece_train", "unigram_arrays", "unigram_train", "span_counts", "bpe_kernels", "bpe_misses", "wordpiece_misses", "unigram_misses", "bulk", "bulk_align")


if not TYPE_CHECKING:

    def __getattr__(name):
        "Import a public name when it is first used, so that `import subword_nb` costs next to nothing."
        if name not in _HOME:
            raise AttributeError(f"module 'subword_nb' has no attribute {name!r}; its names are: {', '.join(__all__)}")
        from importlib import import_module

        import_module("subword_nb.core.processes")  # before anything that a fork must not cut in two
        value = getattr(import_module(f"subword_nb.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__():
    return sorted([*globals(), *__all__])


def warm_up() -> list[str]:
    "Compile, or load from the cache, all kernels, so that the first bulk call does not wait."
    from importlib import import_module

    for room in _KERNEL_ROOMS:  # importing them registers their kernels
        import_module(f"subword_nb.{room}")
    return import_module("subword_nb.core.jit").warm_up()
