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


METASPACE = [
    "derived/llama-2-legacy.tokenizer.json",
    "phi-3-mini/tokenizer.json",
    "llama-2/tokenizer.model",
    "mistral-v1/tokenizer.model.v1",
    "barthez/tokenizer.json",
    "barthez/sentencepiece.bpe.model",
    "pegasus/tokenizer.json",
    "t5-small/tokenizer.json",
    "t5-small/spiece.model",
    "xlnet-base-cased/spiece.model",
    "tf-text/fast_sentencepiece.model",
    "sentencepiece/test_model.model",
    "sentencepiece/test_ja_model.model",
    "chatglm-6b/ice_text.model",
    "transformers-fixtures/test_sentencepiece_bpe.model",
    "transformers-fixtures/test_sentencepiece_no_bos.model",
    "transformers-fixtures/test_sentencepiece_with_bytefallback.model",
]


@pytest.mark.slow
@pytest.mark.parametrize("file", METASPACE)
def test_special_tokens_before_words_and_spaces(shared_file, file):
    "The canonical form decodes to the same text, or one that differs only before normalization."
    published, rng, n_canonical = Tokenizer.load(shared_file(f"vocab/{file}")), random.Random(file), 0
    names = [t.content for t, _ in published.added_tokens if t.special and t.content != "<unk>"][:2]
    for _ in range(200):
        text = "".join(rng.choices([*names, " ", "  ", "the", "a", "b c", "."], k=rng.randrange(1, 7)))
        ids = published.encode(text, add_special_tokens=False, allowed_special="all")
        if published.piece2id.get(published.model.unk_piece) in ids:
            continue
        if rng.random() < 0.5:  # ids that no text may have
            at = rng.randrange(len(ids) + 1)
            ids[at:at] = published.encode(rng.choice("abct"), add_special_tokens=False)
        try:
            usual = canonicalize(published, ids)
        except ValueError as e:
            assert "ids must decode to a text whose own ids decode to it" in str(e)
            continue
        n_canonical += 1
        texts = published.decode(usual), published.decode(ids)
        assert texts[0] == texts[1] or len({*map(published.normalizer.normalize, texts)}) == 1
        assert is_canonical(published, usual) and canonicalize(published, usual) == usual
        assert is_canonical(published, ids) == (usual == ids)
    assert n_canonical > 100


@pytest.fixture(scope="module")
def marked(tmp_path_factory) -> Tokenizer:
    "A file like CLIP's: words in bytes with a mark at their ends, which the decoder leaves in the text."
    import json

    spelled = Tokenizer.train(
        default_corpus()[:8], algorithm="char_bpe", vocab_size=700, end_of_word_suffix="</w>"
    )
    path = tmp_path_factory.mktemp("marked") / "tokenizer.json"
    spelled.save(path)
    data = json.loads(path.read_text())
    pattern = {"Regex": r"'s|'t|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"}
    steps = [
        {"type": "Split", "pattern": pattern, "behavior": "Removed", "invert": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
    ]
    data["normalizer"] = {"type": "Lowercase"}
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    data["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    path.write_text(json.dumps(data))
    return Tokenizer.load(path)


def test_marks_at_the_ends_of_words_are_spaces(marked):
    "Ids of a text are canonical, split words become whole, and healing works, though decoding shows the marks."
    assert marked.decode(marked.encode("the end")).count("</w>") == 2
    rng, words, n_heals = random.Random(8), ["the", "Text", "it's", "of", "a", "(x)", "import", "12"], 0
    for _ in range(300):
        text = " ".join(rng.choices(words, k=rng.randrange(1, 6))) + rng.choice(["", " "])
        ids = marked.encode(text, add_special_tokens=False)
        assert canonicalize(marked, ids) == ids and is_canonical(marked, ids), text
        letters = [marked.piece2id[c] for c in text.split()[0].lower() if c.isalpha()]
        if text.split()[0].isalpha():
            usual = marked.encode(text.split()[0] + text)
            assert canonicalize(marked, letters + ids) == usual
            assert is_canonical(marked, letters + ids) == (usual == letters + ids)
        healed = marked.heal(text, n=rng.randrange(4))
        assert healed.ids == ids[: len(healed.ids)]
        if len(healed.ids) < len(ids):
            n_heals += 1
            assert healed.mask()[ids[len(healed.ids)]]
            assert text.lower().endswith(healed.prefix.decode()) or " " in healed.prefix.decode()
    assert n_heals > 150


def test_the_table_of_a_vocabulary_with_marks_has_spaces(marked):
    "So that what a model may write next is compared with text."
    table = piece_table(marked)
    spelled = dict(zip(table.ids.tolist(), table.spelled, strict=True))
    assert spelled[marked.piece2id["the</w>"]] == b"the " and not any(b"</w>" in s for s in spelled.values())
    assert marked.heal("the ").prefix == b"the " and marked.heal("the").prefix == b"the"


def test_clip(shared_file):
    "Its canonical form, healing, and its special tokens, of which one is the unknown piece, too."
    clip = Tokenizer.load(shared_file("vocab/clip/tokenizer.json"))
    for text in (
        "Hello world!  Two  spaces",
        "it's 12:30 é 中 😀",
        "hello<|endoftext|>there",
        "<|startoftext|>a b",
    ):
        ids = clip.encode(text, add_special_tokens=False)
        assert canonicalize(clip, ids) == ids and is_canonical(clip, ids), text
    assert canonicalize(clip, [clip.piece2id[p] for p in ("hel", "lo</w>")]) == [clip.piece2id["hello</w>"]]
    healed = clip.heal("hello wor")
    assert healed.mask()[clip.piece2id["or</w>"]] and clip.decode(healed.ids) == "hello</w>w"


def test_arguments_of_other_types_are_named(tok):
    with pytest.raises(ValueError, match="n must be 0 or more, .* got 'x'"):
        tok.heal("hello", n="x")
    with pytest.raises(TypeError, match="ids must be whole numbers, got str"):
        is_canonical(tok, "ab")
