"""What the worker calls in Python: load or learn a tokenizer, explain a text, compare two tokenizers.

Answers are JSON; a refusal is {"error": …}.
"""

import importlib
import json
import math
from pathlib import Path

from subword_nb import Tokenizer
from subword_nb.insight.explain import explain as explanation

loaded: dict = {}  # "current": the tokenizer that explains; "other": the one it is compared with


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


def facts(tok) -> dict:
    "What the page says of a tokenizer."

    def name(part):
        return type(part).__name__ if part is not None else None

    return {
        "model": type(tok.model).__name__,
        "pieces": len(tok.id2piece),
        "normalizer": name(tok.normalizer),
        "pre_tokenizer": name(tok.pre_tokenizer),
        "added": len(tok.added_tokens),
        "chats": bool(tok.config and dict(tok.config.chat_templates).get("default")),
    }


def load(path: str, options: str = "{}", place: str = "current") -> dict:
    "Load a tokenizer from a file or a folder, in place of the one before."
    loaded.pop(place, None)
    loaded[place] = Tokenizer.load(Path(path), allow_code=False, **json.loads(options))
    return facts(loaded[place])


def learn(text: str, algorithm: str, vocab_size: int) -> dict:
    "Learn a tokenizer from a text, in place of the one before."
    from learn import learn as learned  # only when asked for: it imports the trainers

    loaded.pop("current", None)
    loaded["current"] = learned(text, algorithm, vocab_size)
    return facts(loaded["current"])


def import_first(folder: str) -> None:
    "Import the package's modules that are in a folder now: those that nearly every answer needs."
    for path in sorted(Path(folder, "subword_nb").rglob("*.py")):
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        importlib.import_module(name.removesuffix(".__init__"))


def tokenizer(place: str) -> Tokenizer:
    if place not in loaded:
        raise ValueError("no tokenizer is loaded; choose one")
    return loaded[place]


def compare(text: str, name: str, other: str) -> dict:
    "Where two tokenizers divide a text differently, drawn in characters."
    from subword_nb.insight.compare import compare as comparison

    return {"drawn": str(comparison(tokenizer("current"), tokenizer("other"), text, names=(name, other)))}


def explain(text: str) -> dict:
    "Why the text became its tokens."
    return explanation(tokenizer("current"), text).to_dict()


def chat(request: str) -> dict:
    "The tokens of a chat, each with who wrote it."
    from chat import chat as written  # only when asked for: it imports Jinja

    return written(tokenizer("current"), request)


def try_load(*args):
    return answer(load, *args)


def try_learn(*args):
    return answer(learn, *args)


def try_explain(text):
    return answer(explain, text)


def try_compare(*args):
    return answer(compare, *args)


def try_chat(request):
    return answer(chat, request)
