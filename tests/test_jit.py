"""Kernels where Numba is switched off, has no cache folder, or meets two threads at once."""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from subword_nb import jit

PLAIN = """
import random, sys, warnings
warnings.simplefilter("error")
from subword_nb.bpe import bpe_train_ref
from subword_nb.bpe_bulk import encode_pretokens
from subword_nb.bpe_encode import BPE, encode_pretoken
from subword_nb.bpe_train import bpe_train
rng = random.Random(3)
for _ in range(25):
    counts = {"".join(rng.choices("aéb", k=rng.randrange(1, 9))): rng.randrange(1, 4) for _ in range(rng.randrange(1, 9))}
    for rule in ("first", "ids", "bytes"):
        rules = bpe_train_ref(counts, 40, tie_break=rule)
        assert bpe_train(counts, 40, tie_break=rule, bulk=True) == rules
    model = BPE({p: i for i, p in enumerate(rules.pieces)}, rules.merges)
    words = ["".join(rng.choices(sorted(set("".join(counts))), k=k)) for k in (0, 3, 50)]
    ids, bounds = encode_pretokens(model, words, short=8)
    assert [ids[a:b].tolist() for a, b in zip(bounds, bounds[1:])] == [encode_pretoken(model, w) for w in words]
print("numba" in sys.modules)
"""


def test_kernels_are_right_without_numba():
    done = subprocess.run([sys.executable, "-c", PLAIN], env={**os.environ, "SUBWORD_NB_JIT": "0"}, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_without_a_cache_folder_kernels_still_compile(monkeypatch):
    numba = pytest.importorskip("numba")
    real = numba.njit

    def njit(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(numba, "njit", njit)
    assert jit.kernel(lambda x: x + 1)(1) == 2


def test_threads_meet_at_a_first_call():
    pytest.importorskip("numba")
    kernel = jit.kernel(lambda x: 2 * x)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(kernel, range(64))) == [2 * x for x in range(64)]


@pytest.mark.slow
def test_the_notice_is_one_line_and_only_for_compiling(tmp_path):
    pytest.importorskip("numba")
    code = "from subword_nb import warm_up; print(len(warm_up()))"
    env = {k: v for k, v in os.environ.items() if k != "SUBWORD_NB_QUIET"} | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    second = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert first.stdout == second.stdout == "3\n"  # BPE encoding, BPE training, Unigram training
    assert first.stderr.count("\n") == 1 and "compiling" in first.stderr
    assert second.stderr == ""
