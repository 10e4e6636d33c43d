"""Damaged and malicious files of every kind end in a tokenizer or in an error, within ten seconds and bounded memory."""

import os
import random
import sys

import pytest
from hostile import cases_of, run, small_files

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="limits of memory and alarms are those of Unix"
)
FILES = small_files()
REAL = [
    "gpt2/tokenizer.json",
    "bert-base-uncased/tokenizer.json",
    "t5-small/tokenizer.json",
    "wordlevel-vulrepair/wordlevel.json",
    "sentencepiece/test_model.model",
    "transformers-fixtures/test_sentencepiece_bpe.model",
    "tiktoken/r50k_base.tiktoken",
    "bert-base-cased/vocab.txt",
]
N = int(os.environ.get("SUBWORD_NB_HOSTILE", "40"))  # damaged copies of each real file, in the full form


def options_of(name):
    return {"pattern": "gpt2"} if name.endswith(".tiktoken") else {}


def check(cases):
    "None may go wrong, and each is either loaded or refused in words."
    found = run(list(cases))
    wrong = [(name, what) for name, what, _, _ in found if what]
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong)
    assert all(loaded or said for _, _, said, loaded in found)
    return found


def test_small_files_are_good(tmp_path):
    cases = []
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
        cases.append((name, tmp_path / name, options_of(name)))
    assert [(name, said) for name, _, said, loaded in check(cases) if not loaded] == []


def test_small_files_damaged(tmp_path):
    cases = [
        case
        for name, data in FILES.items()
        for case in cases_of(tmp_path / name, name, data, random.Random(name), 25, options_of(name))
    ]
    found = check(cases)
    assert sum(not loaded for *_, loaded in found) > len(found) // 4  # the damage is real


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files_damaged(shared_file, tmp_path, name):
    data = shared_file("vocab/" + name).read_bytes()
    check(cases_of(tmp_path, name.split("/")[1], data, random.Random(name), 10, options_of(name)))


@pytest.mark.soak
@pytest.mark.parametrize("name", REAL)
def test_real_files_damaged_many_times(shared_file, tmp_path, name):
    data = shared_file("vocab/" + name).read_bytes()
    for k in range(0, N, 10):
        check(
            cases_of(
                tmp_path / str(k), name.split("/")[1], data, random.Random(f"{name}{k}"), 10, options_of(name)
            )
        )


@pytest.mark.soak
@pytest.mark.parametrize("name", FILES)
def test_small_files_damaged_many_times(tmp_path, name):
    for k in range(0, 25 * N, 250):
        check(
            cases_of(tmp_path / str(k), name, FILES[name], random.Random(f"{name}{k}"), 250, options_of(name))
        )
