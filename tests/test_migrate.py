"""The migration pages: their first columns also hold for the libraries themselves, and no known name of theirs is missing."""

import json
import re

import pytest
from notebooks import NBS, Notebook

PAGES = {
    "tokenizers": ("from subword_nb.compat.tokenizers import", "from tokenizers import"),
    "tiktoken": ("import subword_nb.compat.tiktoken as tiktoken", "import tiktoken"),
    "sentencepiece": ("import subword_nb.compat.sentencepiece as spm", "import sentencepiece as spm"),
    "transformers": ("from subword_nb.compat.transformers import", "from transformers import"),
}

# Names that are like others in the tables, or whose advice is not a single expression with an equal value
NOT_IN_TABLES = """
    special_tokens_map bos_token eos_token unk_token sep_token cls_token mask_token unk_token_id sep_token_id
    cls_token_id mask_token_id pad_id train_from_iterator

    async_decode_batch async_encode async_encode_batch async_encode_batch_fast post_process name

    decode_ids_as_proto decode_pieces_as_proto detokenize encode_as_proto load_from_file nbest_encode
    nbest_encode_as_numpy nbest_encode_as_pieces nbest_encode_as_proto parallel_encode parallel_encode_as_numpy
    parallel_encode_as_pieces parallel_encode_as_proto sample_encode_as_numpy sample_encode_as_pieces
    sample_encode_as_proto

    add_bos_token add_eos_token add_prefix_space encode_message_with_chat_template get_chat_template
    get_special_tokens_mask max_len_sentences_pair max_len_single_sentence model_input_names push_to_hub
    save_chat_templates save_vocabulary set_truncation_and_padding split_special_tokens update_post_processor
"""


def code_of(library: str) -> list[str]:
    "The code cells of a page."
    return [cell.code for cell in Notebook(NBS / "migrate" / f"{library}.ipynb").code_cells]


@pytest.mark.parametrize("library", PAGES)
def test_one_line_is_the_whole_change(library):
    own, _ = PAGES[library]
    assert sum(code.count(own) for code in code_of(library)) == 1
    assert not any(
        "subword_nb.compat" in code.replace(own, "") for code in code_of(library) if "CallTable" not in code
    )


@pytest.mark.parametrize("library", PAGES)
def test_names_that_a_tokenizer_explains_are_in_the_table(library):
    "`Tokenizer` names what to write for these; the page has them, or says why not."
    from subword_nb.tokenizer.tokenizer import OTHER_NAMES

    text = "\n".join(code_of(library))
    named = set(re.findall(r"\w+", text))
    missing = {name for name in OTHER_NAMES[library] if name not in named}
    missing = {name for name in missing if not re.match(r"[A-Z]", name)}  # SentencePiece's second spelling
    assert missing <= set(NOT_IN_TABLES.split())


@pytest.mark.parametrize("library", PAGES)
def test_tables_have_stored_outputs(library):
    cells = [
        cell
        for cell in Notebook(NBS / "migrate" / f"{library}.ipynb").code_cells
        if "CallTable(" in cell.code
    ]
    assert len(cells) >= 2
    for cell in cells:
        assert any('class="calls"' in json.dumps(out).replace('\\"', '"') for out in cell.outputs)


@pytest.mark.peers
@pytest.mark.parametrize("library", PAGES)
def test_the_first_column_holds_for_the_library_itself(library, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    own, installed = PAGES[library]
    state = {"__name__": "__main__"}
    for index, code in enumerate(code_of(library)):
        exec(compile(code.replace(own, installed), f"{library}, code cell {index}", "exec"), state)
