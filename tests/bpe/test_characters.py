"BPE with whole characters: against Hugging Face's library, in files, on real text."

import lzma

import pytest
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.bpe.characters import character_train, character_train_ref
from subword_nb.core.unicode import from_visible
from subword_nb.corpus.counts import count_pretokens

TEXT = "東京都の天気は晴れ、 हिन्दी में और ไม่มีอะไร der Hügel 😀😁 привет, да и нет 中丮丣 é"


def texts(rng, n):
    for _ in range(n):
        yield "".join(rng.choice([" ", "", "\n"]) + w for w in rng.choices([*TEXT, *TEXT.split()], k=40))


@pytest.fixture(scope="module")
def trained():
    return Tokenizer.train(list(texts(fresh("corpus"), 200)), vocab_size=420, whole_characters=True)


def is_utf8(piece):
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_no_piece_has_a_part_of_a_character_and_another(trained):
    pieces = [from_visible(p) for p in trained.id2piece]
    characters = [c.encode() for c in TEXT]
    assert len(pieces) == 420
    for piece in pieces[256:]:
        assert is_utf8(piece) or any(c.startswith(piece) for c in characters)


@pytest.mark.peers
def test_hugging_faces_library_gives_the_same_ids(trained, hf, tmp_path):
    trained.save(tmp_path / "tokenizer.json")
    theirs = hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in texts(fresh(), 50):
        assert theirs.encode(text).ids == trained.encode(text)
        assert trained.decode(trained.encode(text)) == text


def counted(shared_file, n):
    text = lzma.open(shared_file("corpus/multilingual_mixed.txt.xz"), "rt", encoding="utf-8").read(400_000)
    start = fresh().randrange(len(text) - n)
    found = count_pretokens(text[start : start + n].splitlines(keepends=True), "gpt2")
    return {p.encode(): n for p, n in found.items()}


@pytest.mark.slow
def test_kernels_and_dictionaries_agree_on_real_text(shared_file):
    counts = counted(shared_file, 100_000)
    size = len({b for p in counts for b in p}) + 1500
    assert character_train(counts, size, bulk=True) == character_train(counts, size, bulk=False)


@pytest.mark.slow
def test_the_reference_agrees_on_real_text(shared_file):
    counts = counted(shared_file, 3000)
    size = len({b for p in counts for b in p}) + 80
    assert character_train(counts, size) == character_train_ref(counts, size)
