"""What the worker calls in Python: load a tokenizer, explain a text. Answers are JSON; a refusal is {"error": …}."""

import json
import math
from pathlib import Path

from subword_nb import Tokenizer
from subword_nb.insight.explain import explain as explanation

current = None


def finite(value):
    "The same data without infinities, which JSON does not have."
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return [finite(v) for v in value] if isinstance(value, list) else value


def as_json(data) -> str:
    "JSON text of plain data."
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(finite(data), ensure_ascii=False)


def refusal(e: BaseException) -> str:
    "What to tell the reader, without the places where the worker keeps files."
    if isinstance(e, ModuleNotFoundError):
        return f"this needs the Python module {e.name}, which is not in this page; the package on your own computer has it"
    if isinstance(e, RecursionError):
        return "it is nested too deeply"
    if isinstance(e, MemoryError):
        return "it is too large for this page"
    return str(e).replace("/given/", "").strip() or type(e).__name__


def answer(function, *args) -> str:
    "JSON of what a function returns, or of why it refuses."
    try:
        return as_json(function(*args))
    except Exception as e:  # whatever a file of a stranger leads to
        return as_json({"error": refusal(e)[:1000]})


def load(path: str, options: str = "{}") -> dict:
    "Load a tokenizer from a file or a folder; it takes the place of the one before."
    global current
    current = None
    tok = Tokenizer.load(Path(path), allow_code=False, **json.loads(options))
    current = tok

    def name(part):
        return type(part).__name__ if part is not None else None

    return {
        "model": type(tok.model).__name__,
        "pieces": len(tok.id2piece),
        "normalizer": name(tok.normalizer),
        "pre_tokenizer": name(tok.pre_tokenizer),
        "added": len(tok.added_tokens),
    }


def explain(text: str) -> dict:
    "Why the text became its tokens."
    if current is None:
        raise ValueError("no tokenizer is loaded; choose one")
    return explanation(current, text).to_dict()


def try_load(path, options="{}"):
    return answer(load, path, options)


def try_explain(text):
    return answer(explain, text)
