"""Mistakes that a checker must find, each with mypy's word for it at the end of the line. Read by `test_types.py`, and never run."""

import numpy as np

import subword_nb
from subword_nb import AddedToken, Tokenizer
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.text.normalizers import Lowercase

tok = Tokenizer.load("tokenizer.json")

tok.encode(["a", "b"])  # E: arg-type
tok.encode("text", add_special_tokens=None)  # E: arg-type
tok.encode("text", drop_out=0.1)  # E: call-arg
tok.encode()  # E: call-arg
tok.encod("text")  # E: attr-defined
text: str = tok.encode("text")  # E: assignment
first: int = tok.encode_batch(["text"])  # E: assignment
array: np.ndarray = tok.encode_batch(["text"])  # E: assignment
tok.encode_batch(["text"], threads="two")  # E: arg-type
tok.encode_batch(5)  # E: arg-type
tok.encode_batch(["text"])["ids"]  # E: call-overload
print(tok.encode_batch(["text"]).lengths)  # E: attr-defined
tok.encode_array("text").encode("utf-8")  # E: attr-defined
tok.decode("text")  # E: arg-type
tok.decode(7)  # E: arg-type
tok.decode_bytes([1]) + "text"  # E: operator
tok.stream(after="text")  # E: arg-type
tok.align(7)  # E: arg-type
print(tok.align("text").offset)  # E: attr-defined
tok.align("text").ids + "text"  # E: operator
tok(["a"], padding=7)  # E: arg-type
tok.save(7)  # E: arg-type
tok.compare("other.json", "text")  # E: arg-type
tok.sample("text", alpha="high")  # E: call-overload
tok.encode_files("corpus.txt", "ids", "npy")  # E: call-arg
tok.add_tokens([7])  # E: list-item
tok.n_vocab = 7  # E: misc
tok.truncation = 128  # E: assignment
Tokenizer.load(7)  # E: arg-type
Tokenizer.train(["text"], vocab_size="32k")  # E: arg-type
print(Tokenizer.train(["text"]).encoded)  # E: attr-defined
Truncation("long")  # E: arg-type
Padding(pad_id="[PAD]")  # E: arg-type
AddedToken(7)  # E: arg-type
Lowercase().normalize(b"TEXT")  # E: arg-type
print(subword_nb.Tokeniser)  # E: attr-defined
Tokenizer("gpt2")  # E: arg-type
