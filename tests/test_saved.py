"""A saved tokenizer is the same tokenizer: saved, loaded, pickled and compared with what a text may spell."""

import contextlib
import copy
import itertools
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from commands import run

from subword_nb.tokenizer.convert import convert
from subword_nb.corpus.documents import COURSE_CORPUS
from subword_nb.formats.detect import KINDS
from subword_nb.text.normalizers import Lowercase
from subword_nb.pipeline.processors import processor_from_dict
from subword_nb.tokenizer.tokenizer import Tokenizer
from subword_nb.pipeline.vocab import AddedToken

END, MASK = "<|endoftext|>", "[MASK]"
NAMES = {
    "tokenizer.json": "x.json",
    "sentencepiece": "x.model",
    "tiktoken": "x.tiktoken",
    "gpt2": "folder",
    "vocab.txt": "x.txt",
    "minbpe": "m.model",
    "nmt": "x.codes",
    "gguf": "x.gguf",
}
TEXTS = [
    "",
    "one",
    f"one{END}two",
    END,
    f" {END} ",
    f"the {MASK} token.",
    f"{MASK}{MASK}",
    "[UNK]",
    "<unk>",
    "<s>a</s>",
    "a<s>",
    "Hugging <X>face<x> course",
    "<n>the<n>",
    "<A> <a>",
    "it is  a [CLS] b[SEP]",
    "[PAD]",
    "é你",
]


def test_every_kind_is_tried():
    assert set(NAMES) == set(KINDS)


def trained(algorithm: str, special=(END, MASK), **options) -> Tokenizer:
    "A small tokenizer with special tokens."
    size = {"bpe": 300, "char_bpe": 80, "wordpiece": 90, "unigram": 60, "wordlevel": 30}[algorithm]
    return Tokenizer.train(
        COURSE_CORPUS, algorithm=algorithm, vocab_size=size, special_tokens=list(special), **options
    )


def several() -> dict:
    "Tokenizers of every model, with tokens of every kind."
    found = {}
    for algorithm in ("bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"):
        for name, allowed in (("all", "all"), ("none", ()), ("some", {END})):
            found[algorithm, name] = trained(algorithm, allowed_special=allowed)
    found["bpe", "lower"] = trained("bpe", normalizer=Lowercase())
    found["bpe", "pattern"] = trained("bpe", pre_tokenizer="cl100k")
    found["char_bpe", "metaspace"] = trained("char_bpe", pre_tokenizer="metaspace", unk_piece="<unk>")
    found["char_bpe", "end of word"] = trained(
        "char_bpe", end_of_word_suffix="</w>", pre_tokenizer="whitespace_split", unk_piece="<unk>"
    )
    found["wordpiece", "other unk"] = trained("wordpiece", unk_piece="<unk>", continuing_subword_prefix="@@")
    found["wordpiece", "usual"] = trained("wordpiece", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    found["wordpiece", "not special"] = trained("wordpiece", ["[UNK]"])
    found["bpe", "no special"] = trained("bpe", [])
    for key in [
        ("bpe", "all"),
        ("bpe", "none"),
        ("wordpiece", "all"),
        ("unigram", "all"),
        ("unigram", "none"),
        ("char_bpe", "all"),
        ("wordlevel", "all"),
    ]:
        tok = pickle.loads(pickle.dumps(found[key]))
        tok.add_tokens(
            [
                "<x>",
                AddedToken("<n>", single_word=True, special=False),
                AddedToken("<A>", normalized=True, special=False),
            ]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tok.add_tokens([AddedToken("<s>", lstrip=True), "</s>"], special=True)
        found[key[0], f"{key[1]} and more"] = tok
    for key in [("bpe", "all"), ("wordpiece", "all")]:
        tok = pickle.loads(pickle.dumps(found[key]))
        i = tok.piece2id[END]
        tok.post_processor = processor_from_dict(
            {
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": END, "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                ],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {END: {"id": END, "ids": [i], "tokens": [END]}},
            }
        )
        found[key[0], "around"] = tok
    return found


@pytest.fixture(scope="module")
def tokenizers() -> dict:
    return several()


def answers(tok: Tokenizer, texts=TEXTS) -> list:
    "The ids of texts, or what is said instead."
    found = []
    for text in texts:
        try:
            found.append(tok.encode(text))
        except ValueError:
            found.append("refused")
    return found


def saved(tok: Tokenizer, path, kind: str):
    "A tokenizer written and read, with what was said; None where the format refuses it."
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            path = tok.save(path, kind=kind)
        except ValueError:
            return None, []
    said = [str(w.message) for w in said]
    try:
        return Tokenizer.load(
            path, **({"pattern": "gpt2"} if kind == "tiktoken" else {})
        ), said  # without which no rank file is read
    except ValueError as error:  # its reader must be told more
        assert said, (path, error)
        return None, said


@pytest.mark.parametrize("kind", NAMES)
def test_what_is_loaded_gives_the_same_ids_or_save_warned(tokenizers, tmp_path, kind):
    "Every tokenizer in every format that takes it, and what came out once more in every format."
    again = {}
    for number, (key, tok) in enumerate(tokenizers.items()):
        other, said = saved(tok, tmp_path / f"{number}{NAMES[kind]}", kind)
        if other is None:
            continue
        again[key] = other
        assert answers(other) == answers(tok) or said, (key, kind)
        if kind == "tokenizer.json" and not said:
            assert other == tok and answers(other) == answers(tok), key
    assert again
    for number, ((key, tok), (second, name)) in enumerate(itertools.product(again.items(), NAMES.items())):
        other, said = saved(tok, tmp_path / f"again {number}{name}", second)
        assert other is None or said or answers(other) == answers(tok), (key, kind, second)


@pytest.mark.parametrize("kind", ["tokenizer.json", "tiktoken", "gpt2", "vocab.txt", "minbpe"])
def test_what_convert_says_is_enough(tokenizers, tmp_path, kind):
    "Read with the options that `convert` names, a file gives the same pieces, whatever the texts spell."
    tried = 0
    for number, (key, tok) in enumerate(tokenizers.items()):
        try:
            done = convert(tok, tmp_path / f"{number}{NAMES[kind]}", kind=kind, n=50)
        except ValueError:
            continue
        other = Tokenizer.load(done.path, **done.options)
        if (
            tok.post_processor is not None
            and kind != "tokenizer.json"
            or tok.normalizer is not None
            and kind in ("gpt2", "minbpe")
        ):
            assert done.notes
            continue
        tried += 1
        spelled = [
            [t.id2piece[i] for i in ids] if ids != "refused" else ids
            for t in (tok, other)
            for ids in answers(t)
        ]
        assert spelled[: len(TEXTS)] == spelled[len(TEXTS) :], (key, kind, done.options)
    assert tried > 3


def test_text_is_data_where_somebody_said_so(tmp_path):
    "For a call, a training, a file and a pickle; one who adds a special token then is told."
    found, text = trained("bpe"), f"one{END}two"
    plain = trained("bpe", allowed_special=())
    end = found.piece2id[END]
    assert (
        end in found.encode(text)
        and end not in found.encode(text, allowed_special=())
        and end not in plain.encode(text)
        and end in plain.encode(text, allowed_special="all")
    )
    path = plain.save(tmp_path / "t.json")
    loaded, asked = Tokenizer.load(path), Tokenizer.load(path, allowed_special="all")
    for tok in (loaded, pickle.loads(pickle.dumps(plain)), pickle.loads(pickle.dumps(loaded))):
        assert (
            tok == plain != found
            and tok.allowed_special == frozenset()
            and tok.encode(text) == plain.encode(text)
        )
    assert (
        asked == found
        and asked.encode(text) == found.encode(text)
        and found.translated("tokenizer.json")[0] == found
    )
    again = Tokenizer.load(
        Tokenizer.load(found.save(tmp_path / "all.json"), allowed_special=()).save(tmp_path / "none.json")
    )
    assert again == plain
    with pytest.warns(UserWarning, match="'<x>' is not found in texts"):
        again.add_tokens(["<x>"], special=True)
    again.add_tokens(["<y>"])
    assert again.piece2id["<x>"] not in again.encode("a<x>") and again.piece2id["<y>"] in again.encode("a<y>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.add_tokens(["<x>"], special=True)
    assert found.encode("<x>") == [found.piece2id["<x>"]] and Tokenizer.load(
        found.save(tmp_path / "x.json")
    ).encode("<x>") == found.encode("<x>")


def test_train_new_keeps_what_texts_may_spell():
    plain = trained("bpe", allowed_special=[MASK])
    assert (
        plain.train_new(COURSE_CORPUS, vocab_size=290).allowed_special
        == plain.extend(COURSE_CORPUS, vocab_size=310).allowed_special
        == plain.truncate(vocab_size=280).allowed_special
        == {MASK}
    )
    assert plain.train_new(COURSE_CORPUS, vocab_size=290, allowed_special="all").allowed_special == "all"
    assert trained("bpe").train_new(
        COURSE_CORPUS, vocab_size=290, special_tokens=["<x>"], allowed_special=["<x>"]
    ).allowed_special == {"<x>"}


def test_a_choice_is_checked_before_training():
    for wrong in (["<none>"], "<|endoftext|>", 5):
        with pytest.raises(ValueError, match="allowed_special"):
            Tokenizer.train(iter(()), vocab_size=300, special_tokens=[END], allowed_special=wrong)


def test_equal_means_equal_answers():
    tok = trained("bpe")
    every = pickle.loads(pickle.dumps(tok))
    every.allowed_special = [END, MASK]
    assert tok == every and hash(tok) == hash(every)
    for change in ({"allowed_special": ()}, {"allowed_special": [END]}, {"normalizer": Lowercase()}):
        other = pickle.loads(pickle.dumps(tok))
        for name, value in change.items():
            setattr(other, name, value)
        assert other != tok


@pytest.mark.peers
@pytest.mark.parametrize("algorithm", ["bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"])
def test_other_libraries_pass_over_our_key(tmp_path, hf, algorithm):
    "tokenizers reads the file, finds what it always finds, and writes it without the key."
    plain, found = trained(algorithm, allowed_special=[END]), trained(algorithm)
    path = plain.save(tmp_path / "t.json")
    assert json.loads(path.read_text(encoding="utf-8"))["model"]["subword_nb"] == {"allowed_special": [END]}
    theirs = hf.Tokenizer.from_file(str(path))
    for text in TEXTS:
        try:
            ids = found.encode(text)
        except ValueError:
            continue  # an unknown character without a piece for it
        assert theirs.encode(text).ids == ids, text
    assert "subword_nb" not in theirs.to_str()
    assert theirs.to_str() == hf.Tokenizer.from_file(str(found.save(tmp_path / "all.json"))).to_str()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("x", "must be an object with allowed_special"),
        ({}, "must be an object"),
        ({"allowed_special": [], "more": 1}, "and nothing else"),
        ({"allowed_special": "all"}, "must be a list"),
        ({"allowed_special": [1]}, "must be a list"),
        ({"allowed_special": ["<no>"]}, "allowed_special must contain contents of added_tokens, got '<no>'"),
    ],
)
def test_a_damaged_key_is_refused(tmp_path, own, message):
    path = trained("bpe").save(tmp_path / "t.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["subword_nb"] = own
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=f"model.subword_nb.*{message}"):
        Tokenizer.load(path)


def test_ids_survive_minbpe_or_save_says_which_change(tmp_path):
    "A special token keeps its id where no piece needs it."
    (tmp_path / "toy.model").write_text(
        "minbpe v1\n\n2\n<|end|> 100257\n<|fim|> 261\n97 98\n256 99\n257 257\n258 100\n"
    )
    tok = Tokenizer.load(tmp_path / "toy.model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = Tokenizer.load(tok.save(tmp_path / "again.model", kind="minbpe"))
    assert again.piece2id == tok.piece2id and again == tok and again.piece2id["<|end|>"] == 100257
    found = trained("bpe")
    found.add_tokens(["<|far|>"], special=True)
    with pytest.warns(UserWarning) as said:
        again = Tokenizer.load(found.save(tmp_path / "b.model", kind="minbpe"))
    text = next(str(w.message) for w in said if "ids change" in str(w.message))
    assert f"'{END}' from {found.piece2id[END]} to {again.piece2id[END]}" in text
    changed = [p for p, i in found.piece2id.items() if again.piece2id[p] != i]
    assert (
        again.piece2id["<|far|>"] == found.piece2id["<|far|>"] == 300
        and f"{len(changed)} of {len(found.piece2id)} ids" in text
        and len(set(again.piece2id.values())) == len(again.piece2id)
    )


def test_the_command_line_trains_for_text_as_data(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(COURSE_CORPUS), encoding="utf-8")

    def learned(name, *options):
        done = run("train", path, "--vocab-size", "300", "-o", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
        return Tokenizer.load(tmp_path / name)

    found, plain = (
        learned("all.json", "--special-token", END),
        learned("none.json", "--special-token", END, "--plain"),
    )
    assert [tok.piece2id[END] in tok.encode(END) for tok in (found, plain)] == [True, False]
    assert learned("like.json", "--like", tmp_path / "all.json", "--plain").allowed_special == frozenset()
    done = run(
        "train",
        path,
        "--vocab-size",
        "310",
        "--extend",
        tmp_path / "all.json",
        "--plain",
        "-o",
        tmp_path / "no.json",
    )
    assert done.returncode and b"--plain must be left out with --extend" in done.stderr


def use(tok: Tokenizer) -> None:
    "Call what works something out, also where a tokenizer refuses a text."
    for call in (
        tok.encode,
        tok.align,
        tok.tokenize,
        tok.stages,
        tok.explain,
        tok.encode_array,
        lambda text: tok([text, "one"]),
        lambda text: tok.encode_batch([text] * 9),
        lambda text: tok.decode(tok.encode(text)),
        lambda text: tok.nbest(text, n=2),
        lambda text: tok.encode(text, dropout=0.5, seed=1),
        lambda text: tok.draw(text),
    ):
        for text in (*TEXTS[:6], "Hugging tokens " * 200):
            with contextlib.suppress(ValueError, TypeError):
                call(text)
    assert tok.inspect() and repr(tok) and tok == pickle.loads(pickle.dumps(tok))


def test_a_pickle_is_the_same_before_and_after_use(tokenizers):
    "It holds parts only; a tokenizer from a pickle has the same pickle, and is the same."
    for key, tok in tokenizers.items():
        fresh = pickle.loads(pickle.dumps(tok))
        before = pickle.dumps(fresh)
        use(fresh)
        again = pickle.loads(pickle.dumps(fresh))
        assert pickle.dumps(fresh) == before == pickle.dumps(again) == pickle.dumps(copy.deepcopy(fresh)), key
        assert again == fresh == tok and answers(again) == answers(tok), key
        assert pickle.loads(pickle.dumps(fresh, protocol=2)) == tok


PICKLES = """
import hashlib, pickle, sys
from subword_nb.tokenizer.tokenizer import Tokenizer
for path in sys.argv[1:]:
    tok = Tokenizer.load(path)
    tok.encode("one two")
    print(hashlib.sha256(pickle.dumps(tok)).hexdigest())
"""


def test_a_pickle_is_the_same_in_every_process(tokenizers, tmp_path):
    paths = [
        tok.save(tmp_path / f"{number}.json")
        for number, tok in enumerate(tokenizers.values())
        if number % 4 == 0
    ]
    found = {
        subprocess.run(
            [sys.executable, "-c", PICKLES, *map(str, paths)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1 and len(found.pop().split()) == len(paths)


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    [
        "bert-base-uncased/tokenizer.json",
        "t5-small/tokenizer.json",
        "t5-small/spiece.model",
        "gpt2/tokenizer.json",
        "llama-2/tokenizer.json",
    ],
)
def test_pickles_of_published_tokenizers(shared_file, name):
    tok = Tokenizer.load(shared_file(f"vocab/{name}"))
    before = pickle.dumps(tok)
    use(tok)
    again = pickle.loads(before)
    assert (
        pickle.dumps(tok) == before == pickle.dumps(again)
        and again == tok
        and again.encode("naïve 你好 <s>") == tok.encode("naïve 你好 <s>")
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("pad_token", "pad_piece="),
        ("bos_token", "post_processor"),
        ("padding_side", "direction"),
        ("vocab_size", "follows from the model"),
        ("piece2id", "add_tokens"),
        ("nothing", "what can be set is model, pre_tokenizer"),
        ("_pad_token", "what can be set is"),
        ("encode", "what can be set"),
        ("model_max_length", "Truncation"),
        ("encode_special_tokens", r"allowed_special = \(\)"),
    ],
)
def test_unknown_attributes_cannot_be_set(tokenizers, name, advice):
    "What would do nothing is refused, and nothing changes."
    tok = tokenizers["bpe", "all"]
    before = pickle.dumps(tok)
    with pytest.raises(AttributeError, match=f"'{name}' cannot be set on a Tokenizer; .*{advice}"):
        setattr(tok, name, END)
    assert pickle.dumps(tok) == before


def test_parts_cannot_be_deleted(tokenizers):
    tok = tokenizers["bpe", "all"]
    with pytest.raises(AttributeError, match="'model' cannot be deleted"):
        del tok.model
    assert tok.encode("one")


def test_a_special_token_is_named_if_readers_find_it():
    "Readers of a vocab.txt find BERT's special tokens, and no others."
    tok = Tokenizer.train(
        ["a b"], algorithm="wordpiece", vocab_size=4, special_tokens=[END, "[UNK]"], allowed_special=()
    )
    notes = " ".join(tok.translated("vocab.txt")[1])
    assert f"1 of the added tokens, such as {END!r}, are pieces like any other" in notes
    assert "such as '[UNK]', are found by readers of the file" in notes


def test_every_part_can_be_set(tokenizers):
    tok, other = (pickle.loads(pickle.dumps(tokenizers["bpe", name])) for name in ("all", "pattern"))
    for name in other.parts._fields:
        setattr(tok, name, getattr(other, name))
    tok.training = None
    assert tok == other and answers(tok) == answers(other) and tok.training is None


@pytest.mark.parametrize("end", sorted({"/", os.sep}))
def test_a_path_that_ends_in_a_separator_is_a_folder(tmp_path, end):
    "It is made, with those above it; a folder that is there is one without a separator, too."
    tok = trained("bpe", [])
    for path in (f"{tmp_path}{os.sep}a.json{end}", f"{tmp_path}{os.sep}b{end}c{end}"):
        assert tok.save(path) == Path(path) / "tokenizer.json" and Tokenizer.load(path) == tok
    (tmp_path / "there").mkdir()
    for path in (tmp_path / "there", str(tmp_path / "there")):
        assert tok.save(path) == tmp_path / "there" / "tokenizer.json"
    with pytest.raises(NotADirectoryError, match="is a file"):
        tok.save(f"{tok.save(tmp_path / 'x.json')}{end}")


@pytest.mark.parametrize("kind", NAMES)
def test_a_folder_takes_every_kind(tmp_path, kind):
    model, options = {
        "sentencepiece": ("unigram", {}),
        "vocab.txt": ("wordpiece", {}),
        "nmt": (
            "char_bpe",
            {"end_of_word_suffix": "</w>", "pre_tokenizer": "whitespace_split", "unk_piece": "<unk>"},
        ),
    }.get(kind, ("bpe", {"special": []}))
    tok = trained(model, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = tok.save(f"{tmp_path}/new/one/", kind=kind)
        want = tok.save(tmp_path / NAMES[kind], kind=kind)
    assert path == tmp_path / "new/one" if kind == "gpt2" else path.parent == tmp_path / "new/one"
    for one, other in (
        zip(sorted(path.iterdir()), sorted(want.iterdir()), strict=True) if kind == "gpt2" else [(path, want)]
    ):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", ["noext", "x.xyz", "x.json.bak", "x.", ".json", "", "new/x", "x.bpe"])
def test_a_name_that_says_no_format_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    tok = trained("bpe", [])
    for call in (lambda: tok.save(name), lambda: convert(tok, name), lambda: convert("nothing.json", name)):
        with pytest.raises(
            ValueError, match=r"\.json \(tokenizer\.json\), \.txt .*\.model .*\.tiktoken .*\.codes .*kind="
        ):
            call()
    assert not list(tmp_path.iterdir())
    if name and "/" not in name:
        assert Tokenizer.load(tok.save(name, kind="tokenizer.json")) == tok and [
            p.name for p in tmp_path.iterdir()
        ] == [name]


def test_what_a_format_cannot_hold_makes_no_folder(tmp_path):
    with pytest.raises(ValueError, match="BPE"):
        trained("unigram").save(f"{tmp_path}/new/", kind="tiktoken")
    assert not list(tmp_path.iterdir())
