"Encoding from left to right with real vocabularies."

import pytest
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.bpe.linear import bpe_linear, tokens_of_prefix, trained_rules
from subword_nb.bpe.model import bpe_encode, merge_table


@pytest.mark.parametrize("name", ["gpt2", "roberta-base"])
def test_real_vocabularies_from_left_to_right(name, shared_file):
    model = Tokenizer.load(shared_file(f"vocab/{name}/tokenizer.json")).model
    merges = list(model.merges)
    rules, table = trained_rules(merges), merge_table(merges)
    text = shared_file("corpus/english_small.txt").read_text(encoding="utf-8")
    rng = fresh("linear", name)
    letters = [c for c in model.piece2id if len(c) == 1]
    for _ in range(40):
        at = rng.randrange(len(text) - 60)
        word = text[at : at + 60].replace(" ", "Ġ").replace("\n", "Ċ")
        for some in (word, "".join(rng.choices(letters, k=40)), "a" * rng.randrange(50)):
            assert tokens_of_prefix(bpe_linear(some, rules)) == bpe_encode(list(some), table)
