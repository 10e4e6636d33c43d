"""The boundary of a prompt: canonical ids, healing and covers, on trained and published tokenizers."""

import os
import pickle
import random
from pathlib import Path

import pytest

from subword_nb.bpe.model import BPE
from subword_nb.corpus.documents import default_corpus
from subword_nb.insight.canonical import (
    ValidPairs,
    canonicalize,
    cover,
    cover_ref,
    heal,
    is_canonical,
    next_byte_probabilities,
    piece_table,
    prefix_probability,
)
from subword_nb.pipeline.decoders import ByteFallback, Fuse, Sequence
from subword_nb.tokenizer.tokenizer import Tokenizer

DATA = Path(os.environ.get("SUBWORD_NB_DATA") or Path(__file__).parents[3] / "shared/data") / "vocab"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    "A byte-level tokenizer."
    return Tokenizer.train(default_corpus()[:20], vocab_size=1000, special_tokens=["<s>"])


def test_pairs_agree_with_encoding_again(tok):
    "Over whole texts, with added tokens, parts of characters and pretokens that ids cross."
    pairs, rng, answers = ValidPairs(tok.model), random.Random(7), []
    ids = tok.encode("".join(default_corpus()[:3])[:5000] + " é 中 <s> \n\n x")
    for _ in range(600):
        at = rng.randrange(len(ids))
        some = ids[at : at + rng.randrange(1, 9)]
        if rng.random() < 0.6:
            some[rng.randrange(len(some))] = rng.randrange(1000)
        if rng.random() < 0.1:
            some.append(0)
        answers.append(is_canonical(tok, some))
        assert is_canonical(tok, some, pairs=pairs) == answers[-1], some
    assert 60 < sum(answers) < 540


def test_a_canonical_text_is_its_own_canonical_form(tok):
    "And of any ids, the canonical form has the same text."
    rng = random.Random(2)
    for _ in range(100):
        ids = [tok.piece2id[c] for c in rng.choices("abcdeĠ.", k=8)]
        new = canonicalize(tok, ids)
        assert tok.decode(new) == tok.decode(ids)
        assert is_canonical(tok, new) and canonicalize(tok, new) == new


def test_healing_allows_what_the_whole_text_has(tok):
    "Where the whole text keeps the first ids of the prompt, its next id is allowed."
    text, n_checked = default_corpus()[1][:2000], 0
    for end in range(5, 400, 3):
        healed = tok.heal(text[:end])
        assert tok.decode_bytes(healed.ids) + healed.prefix == text[:end].encode()
        whole = tok.encode(text)
        if whole[: len(healed.ids)] == healed.ids:
            n_checked += 1
            assert healed.mask()[whole[len(healed.ids)]]
    assert n_checked > 50


def test_masks_lead_to_the_prefix(tok):
    "Whatever allowed ids are taken one after another, they spell the prefix, and then anything."
    rng = random.Random(4)
    for prompt in ("the import", "def f(x):\n    return", "é"):
        healed = heal(tok, prompt, n=2)
        written = b""
        while not written.startswith(healed.prefix):
            allowed = healed.mask(written).nonzero()[0].tolist()
            assert allowed
            written += tok.decode_bytes([rng.choice(allowed)])
        assert healed.mask(written).sum() == len(piece_table(tok).ids)


def test_a_table_is_made_once_and_not_stored(tok):
    "It follows from the parts, so that a pickle does not hold it."
    before = pickle.dumps(Tokenizer.train(["ab ab"], vocab_size=258))
    other = pickle.loads(before)
    assert piece_table(other) is piece_table(other)
    assert pickle.dumps(other) == before
    other.add_tokens(["zzz"])
    assert b"zzz" in piece_table(other).spelled


def test_every_sequence_of_a_cover_is_minimal(tok):
    "It spells the prefix, and not without its last id."
    found = [*cover(piece_table(tok), b" the")]
    assert len(found) == len(set(found)) > 3
    for ids in found:
        assert tok.decode_bytes(ids).startswith(b" the") and not tok.decode_bytes(ids[:-1]).startswith(
            b" the"
        )


@pytest.mark.slow
def test_a_published_vocabulary():
    "The example of the page: `://` after a prompt that ends with `:`."
    path = DATA / "gpt2/tokenizer.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    gpt2 = Tokenizer.load(path)
    healed = gpt2.heal("see http:")
    assert healed.prefix == b":" and healed.mask(parts=False)[gpt2.piece2id["://"]]
    assert not is_canonical(gpt2, gpt2.encode("see http:") + gpt2.encode("//"), pairs=ValidPairs(gpt2.model))


def test_the_next_byte_where_characters_are_spelled_in_bytes():
    "Pieces of bytes share the work of spelling: the first byte of a character comes from its pieces as well."
    import numpy as np

    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "a", "é", "aé"]
    model = BPE({p: i for i, p in enumerate(pieces)}, [("a", "é")], unk_piece="<unk>", byte_fallback=True)
    one = Tokenizer(model, decoder=Sequence([ByteFallback(), Fuse()]))
    table = piece_table(one)
    spelled = dict(zip(table.ids.tolist(), table.spelled, strict=True))
    assert spelled[one.piece2id["<0xC3>"]] == b"\xc3" and spelled[one.piece2id["aé"]] == "aé".encode()
    rng = np.random.default_rng(5)
    rows = {last: rng.dirichlet(np.ones(table.size)) for last in (None, *spelled)}

    def bigram(ids):
        return rows[ids[-1] if ids else None]

    def by_all_covers(prefix):
        total = 0.0
        for ids in cover_ref(spelled, prefix):
            p = 1.0
            for k, i in enumerate(ids):
                p *= bigram(ids[:k])[i]
            total += p
        return total

    prefix = b"a"
    found, whole = next_byte_probabilities(table, prefix, bigram), by_all_covers(prefix)
    for byte in (0x61, 0xC3, 0xA9, 0xFF):
        assert found[byte] == pytest.approx(by_all_covers(prefix + bytes([byte])) / whole)
    assert found[0xC3] > found[0xFF] and 0.9 < found.sum() <= 1 + 1e-9
    for data in (b"a\xc3", b"\xc3\xa9", b"a\xc3\xa9"):
        assert prefix_probability(table, data, bigram) == pytest.approx(by_all_covers(data))


def test_ids_with_an_unknown_piece_are_judged_by_what_it_decodes_to(shared_file):
    "SentencePiece's stand-in is other text: its ids are not canonical, and have no canonical form."
    t5 = Tokenizer.load(shared_file("vocab/t5-small/spiece.model"))
    ids = t5.encode("你", add_special_tokens=False)
    assert ids == [3, 2] and t5.decode(ids) == " ⁇ " and not is_canonical(t5, ids)
    with pytest.raises(ValueError, match="ids must have a text, got the unknown piece '<unk>'"):
        canonicalize(t5, ids)
    bert = Tokenizer.load(shared_file("vocab/bert-base-uncased/vocab.txt"))
    ids = bert.encode("a 🤗 b", add_special_tokens=False)
    assert bert.piece2id["[UNK]"] in ids and is_canonical(bert, ids) and canonicalize(bert, ids) == ids


@pytest.mark.parametrize("file", ["llama-2/tokenizer.model", "t5-small/spiece.model", "gpt2/tokenizer.json"])
def test_special_tokens_spelled_in_a_text_stay_as_they_are(shared_file, file):
    "In ordinary pieces or as the special token, whichever the ids have; no text becomes a control symbol."
    published = Tokenizer.load(shared_file(f"vocab/{file}"))
    name = next(t.content for t, _ in published.added_tokens if t.special and t.content != "<unk>")
    unknown = published.piece2id.get(published.model.unk_piece)
    for text in (f"a {name} b", name, f"{name}{name} c"):
        ids = published.encode(text, add_special_tokens=False, allowed_special=())
        if unknown in ids and file.startswith("t5"):  # `<` has no piece, and its text is lost
            with pytest.raises(ValueError, match="ids must have a text, got the unknown piece"):
                canonicalize(published, ids)
            continue
        assert canonicalize(published, ids) == ids and is_canonical(published, ids)
        assert published.piece2id[name] not in ids
        both = [*ids, published.piece2id[name]]
        assert not is_canonical(published, both)
        if published.decode(both) != published.decode(ids):  # `decode` leaves out control symbols
            with pytest.raises(ValueError, match="ids must spell .* in one way"):
                canonicalize(published, both)
        found = published.encode(text, add_special_tokens=False, allowed_special="all")
        text_of_both = published.decode(canonicalize(published, found))
        assert text_of_both == published.decode(found)


def test_ids_of_one_text_are_decoded_once(tok, monkeypatch):
    "Also where they are canonical with the unknown piece."
    from subword_nb.insight import canonical

    decoded = []
    plain = canonical.decode
    monkeypatch.setattr(canonical, "decode", lambda *a, **k: decoded.append(a[1]) or plain(*a, **k))
    words = Tokenizer.train(default_corpus()[:5], algorithm="wordpiece", vocab_size=400)
    for one, text in ((tok, "the import"), (words, "the 中 a")):
        ids = one.encode(text, add_special_tokens=False)
        decoded.clear()
        assert canonicalize(one, ids) == ids and len(decoded) == 1
        decoded.clear()
        canonicalize(one, [*ids, *ids])
        assert len(decoded) <= 2
