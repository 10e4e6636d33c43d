"""Faces of other libraries: one import line changes."""


def __getattr__(name):
    if name == "patch_transformers":
        from subword_nb.compat.transformers import patch_transformers

        return patch_transformers
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
