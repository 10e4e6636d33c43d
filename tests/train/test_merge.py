"""Vocabularies of real files joined: ids that stay, boundaries that stay, and files that hold the result."""

import warnings

import pytest

from subword_nb.tokenizer.tokenizer import Tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
PAIRS = [
    ("tiktoken/r50k_base.tiktoken", "tiktoken/cl100k_base.tiktoken"),
    ("gpt2/tokenizer.json", "tiktoken/r50k_base.tiktoken"),
    ("llama-2/tokenizer.model", "phi-3-mini/tokenizer.json"),
    ("t5-small/spiece.model", "xlnet-base-cased/spiece.model"),
    ("t5-small/tokenizer.json", "xlnet-base-cased/spiece.model"),
    ("bert-base-uncased/vocab.txt", "bert-base-chinese/vocab.txt"),
]


@pytest.fixture(scope="module")
def text(shared_file):
    return shared_file("corpus/english_small.txt").read_text(encoding="utf-8")[:40_000]


def plain(tok, text):
    return tok.encode_array(text, add_special_tokens=False, allowed_special=()).tolist()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rule", ["first", "equal"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_ids_of_the_first_stay_and_a_file_holds_the_result(shared_file, tmp_path, text, first, second, rule):
    first, second = (Tokenizer.load(shared_file(f"vocab/{file}")) for file in (first, second))
    new = first.merge(second, rule=rule)
    assert {piece: new.piece2id[piece] for piece in first.piece2id} == first.piece2id
    assert {*second.piece2id} - {*new.piece2id} <= {second.model.unk_piece}
    again = Tokenizer.load(new.save(tmp_path / "tokenizer.json"))
    assert plain(again, text) == plain(new, text)
    kept = first.id_map(new).overlap
    assert kept.tolist() == [[id, id] for id in sorted({*first.piece2id.values()})]


@pytest.mark.parametrize(("first", "second"), PAIRS[:3])
def test_merges_of_the_first_leave_no_new_boundaries(shared_file, text, first, second):
    first, second = (Tokenizer.load(shared_file(f"vocab/{file}")) for file in (first, second))
    new = first.merge(second)
    for line in text.split("\n")[:300]:
        ends = [{end for _, end in tok.align(line, add_special_tokens=False).offsets} for tok in (first, new)]
        assert ends[1] <= ends[0]


@pytest.mark.parametrize(
    "file", ["tiktoken/r50k_base.tiktoken", "t5-small/spiece.model", "bert-base-cased/vocab.txt"]
)
@pytest.mark.parametrize("rule", ["first", "equal"])
def test_a_vocabulary_joined_with_itself_is_the_same(shared_file, text, file, rule):
    tok = Tokenizer.load(shared_file(f"vocab/{file}"))
    new = tok.merge(tok, rule=rule)
    assert new.piece2id == tok.piece2id
    assert plain(new, text) == plain(tok, text)


def test_the_notes_of_both_files_are_told(shared_file):
    first, second = (
        Tokenizer.load(shared_file(f"vocab/{name}/spiece.model")) for name in ("t5-small", "xlnet-base-cased")
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first.merge(second)
    heads = "translated to tokenizer.json: ", "the other tokenizer, translated to tokenizer.json: "
    wanted = [
        head + note
        for head, tok in zip(heads, (first, second))
        for note in tok.translated("tokenizer.json")[1]
    ]
    assert [str(warning.message) for warning in told] == wanted
    assert any("'<eop>'" in text for text in wanted)  # a note of the second alone
    assert {warning.filename for warning in told} == {__file__}
