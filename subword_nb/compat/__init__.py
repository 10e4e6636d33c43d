"""Replacements for other libraries: change one import line."""


def __getattr__(name):
    if name == "patch_transformers":
        from subword_nb.compat.transformers import patch_transformers

        return patch_transformers
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
