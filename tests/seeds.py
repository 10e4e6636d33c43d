"""Where generated inputs start and how many there are: new ones in every run, the same again where $SUBWORD_NB_SEED names the run's number.

$SUBWORD_NB_TEXTS says how many texts a comparison draws (200; for a long run 20,000).
"""

import os
import random
import secrets

# Set for the processes that pytest starts, too, so that all of a run draw from one number.
SEED = os.environ.setdefault("SUBWORD_NB_SEED", str(secrets.randbelow(10**9)))
TEXTS = int(os.environ.get("SUBWORD_NB_TEXTS", "200"))


def fresh(*names) -> random.Random:
    "A generator of random numbers for the inputs that `names` tell apart, other ones in each run."
    return random.Random(f"{SEED} {names}")


def some_of(items: list, *names) -> list:
    "One in eight of a long list, others in each run, in their order; all of them where $SUBWORD_NB_TEXTS is 2,000 or more."
    if TEXTS >= 2000:
        return list(items)
    kept = fresh("some of", *names)
    return [x for x in items if kept.random() < 1 / 8]


def window(text: str, size: int, *names) -> str:
    "A stretch of `size` characters of a long text, another one in each run; eight times as many where $SUBWORD_NB_TEXTS is 2,000 or more."
    size *= 8 if TEXTS >= 2000 else 1
    start = fresh("window", *names).randrange(max(1, len(text) - size + 1))
    return text[start : start + size]


def repeat_with() -> str:
    "What a person does to draw the same inputs again."
    return f"generated inputs: SUBWORD_NB_SEED={SEED} SUBWORD_NB_TEXTS={TEXTS} draws the same again"
