"BPE with whole characters: against Hugging Face's library, in files, on real text."

import lzma

import pytest
from characters import same_ids, strange_texts
from seeds import TEXTS, fresh

from subword_nb import Tokenizer
from subword_nb.bpe.characters import character_train, character_train_ref
from subword_nb.bpe.span_encoder import PairSpanEncoder
from subword_nb.core.unicode import from_visible
from subword_nb.corpus.counts import count_pretokens
from subword_nb.corpus.segmentation import SegmentationPlan

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
    with lzma.open(shared_file("corpus/multilingual_mixed.txt.xz"), "rt", encoding="utf-8") as file:
        text = file.read(400_000)
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


def test_scripts_instead_of_bytes(tmp_path):
    corpus = [*texts(fresh("corpus"), 60)]
    how = {"algorithm": "char_bpe", "pre_tokenizer": "script", "vocab_size": 2960}
    tok = Tokenizer.train(corpus, whole_characters=True, **how)
    with pytest.warns(UserWarning, match="only this library reads ScriptPairs"):
        tok.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == tok
    assert all(len(p) % 2 == 0 for p in tok.id2piece[2883:])
    for text in [*texts(fresh(), 30), "\ue000\U000f0000\U0010ffff\0\u0378"]:
        ids = tok.encode(text)
        assert ids == again.encode(text) == tok.encode_array(text).tolist()
        assert tok.decode(ids) == text
    assert tok.explain("да 東京")


def test_what_has_no_characters_is_refused():
    with pytest.raises(ValueError, match="pretokens must be UTF-8"):
        Tokenizer.train({b"\xd0": 2}, vocab_size=300, whole_characters=True)
    with pytest.raises(ValueError, match="must be left out for characters"):
        Tokenizer.train(["a b"], algorithm="char_bpe", vocab_size=300, whole_characters=True)


def test_kernels_give_the_ids_of_pairs():
    corpus = [*texts(fresh("corpus"), 60)]
    options = dict(algorithm="char_bpe", pre_tokenizer="script", whole_characters=True, vocab_size=3000)
    tok = Tokenizer.train(corpus, **options)
    plan = SegmentationPlan(None, tok.pre_tokenizer)
    assert isinstance(tok.model.span_encoder(plan.byte_spans), PairSpanEncoder)
    some = [*strange_texts(fresh(), TEXT.split(), TEXTS), "\u070f\uff00\ufffb a"]
    same_ids(tok, some)
    for text in some:
        assert tok.decode(tok.encode(text)) == text
        aligned = tok.align(text)
        assert aligned.ids == tok.encode(text)
        cuts = {place for _, a, b in tok.pre_tokenizer.split(text) for place in (a, b)}
        assert cuts <= {place for offsets in aligned.offsets for place in offsets}
