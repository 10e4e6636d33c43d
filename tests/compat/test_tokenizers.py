"""The face of the tokenizers library: its names, arguments, errors and reprs, and what it computes, beside the installed library."""

import asyncio
import copy
import gc
import importlib
import itertools
import json
import pickle
import subprocess
import sys
import types
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from seeds import TEXTS, fresh

import subword_nb.compat.tokenizers as face

# every public name of tokenizers 0.23.3, module by module
NAMES = {
    "": """AddedToken BertWordPieceTokenizer ByteLevelBPETokenizer CharBPETokenizer EncodeInput Encoding InputSequence
        NormalizedString OffsetReferential OffsetType Offsets PreTokenizedEncodeInput PreTokenizedInputSequence
        PreTokenizedString Regex SentencePieceBPETokenizer SentencePieceUnigramTokenizer SplitDelimiterBehavior
        TextEncodeInput TextInputSequence Token Tokenizer decoders implementations models normalizers pre_tokenizers
        processors trainers __version__""",
    "models": "BPE Model Unigram WordLevel WordPiece",
    "normalizers": """BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD NORMALIZERS Nmt Normalizer Precompiled Prepend
        Replace Sequence Strip StripAccents unicode_normalizer_from_str""",
    "pre_tokenizers": """BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace PreTokenizer Punctuation
        Sequence Split UnicodeScripts Whitespace WhitespaceSplit""",
    "processors": "BertProcessing ByteLevel PostProcessor RobertaProcessing Sequence TemplateProcessing",
    "decoders": """BPEDecoder ByteFallback ByteLevel CTC DecodeStream Decoder Fuse Metaspace Replace Sequence Strip
        WordPiece""",
    "trainers": "BpeTrainer ParityBpeTrainer Trainer UnigramTrainer WordLevelTrainer WordPieceTrainer",
    "implementations": """BaseTokenizer BertWordPieceTokenizer ByteLevelBPETokenizer CharBPETokenizer
        SentencePieceBPETokenizer SentencePieceUnigramTokenizer""",
    "tools": "Annotation EncodingVisualizer",
}
MEMBERS = {
    "Tokenizer": """add_special_tokens add_tokens async_decode_batch async_encode async_encode_batch
        async_encode_batch_fast decode decode_batch decoder enable_padding enable_truncation encode encode_batch
        encode_batch_fast encode_special_tokens from_buffer from_file from_pretrained from_str
        get_added_tokens_decoder get_vocab get_vocab_size id_to_token model no_padding no_truncation normalizer
        num_special_tokens_to_add padding post_process post_processor pre_tokenizer save to_str token_to_id train
        train_from_iterator truncation""",
    "Encoding": """attention_mask char_to_token char_to_word ids merge n_sequences offsets overflowing pad sequence_ids
        set_sequence_id special_tokens_mask token_to_chars token_to_sequence token_to_word tokens truncate type_ids
        word_ids word_to_chars word_to_tokens words""",
    "NormalizedString": """append clear filter for_each lowercase lstrip map nfc nfd nfkc nfkd normalized original
        prepend replace rstrip slice split strip uppercase""",
    "PreTokenizedString": "get_splits normalize split to_encoding tokenize",
    "AddedToken": "content lstrip normalized rstrip single_word special",
    "Token": "as_tuple id offsets value",
}
CORPUS = ["hug " * 10, "pug " * 5, "pun " * 12, "bun " * 4, "hugs " * 5, "Ünal naïve, it's 12 o'clock!\n"]


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("tokenizers")


def module(library, name):
    return importlib.import_module(f"{library.__name__}.{name}" if name else library.__name__)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there(name):
    found = module(face, name)
    assert not [n for n in NAMES[name].split() if not hasattr(found, n)]


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_is_there(name):
    assert not [n for n in MEMBERS[name].split() if not hasattr(getattr(face, name), n)]


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_the_lists_of_names_are_those_of_the_library(theirs, name):
    helpers = {"Enum", "List", "Tuple", "Union", "tokenizers", name}
    there = {n for n in dir(module(theirs, name)) if not n.startswith("_") and not n[0].islower()} - helpers
    assert there <= {*NAMES[name].split()}


@pytest.mark.peers
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("tools", "implementations")])
def test_classes_have_the_same_members(theirs, name):
    wrong = []
    for kind in NAMES[name].split():
        a, b = (getattr(module(library, name), kind) for library in (theirs, face))
        if not isinstance(a, type) or kind in ("OffsetReferential", "OffsetType", "SplitDelimiterBehavior"):
            continue
        found = {*dir(b), *vars(b())} if kind == "ParityBpeTrainer" else {*dir(b)}
        wrong += [f"{kind}.{n}" for n in dir(a) if not n.startswith("_") and n not in found]
    assert not wrong, wrong


def test_the_import_line():
    code = (
        "from subword_nb.compat.tokenizers.models import BPE\n"
        "from subword_nb.compat.tokenizers.decoders import DecodeStream\n"
        "from subword_nb.compat.tokenizers.implementations import ByteLevelBPETokenizer\n"
        "from subword_nb.compat.tokenizers.tools import EncodingVisualizer\n"
        "import subword_nb.compat.tokenizers.pre_tokenizers as p, sys\n"
        "assert p.ByteLevel and 'tokenizers' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# one expression for both libraries: values and reprs, or types and messages of errors
SAME = """n.Strip("a")
n.BertNormalizer(strip_accents=None)
n.Sequence([n.NFC(), n.Strip(left=False)])
n.Sequence([3])
n.Sequence([n.NFC()])[1]
n.Sequence([n.NFC()])[-1]
n.Replace(Regex("a+"), "b")
n.Replace("a", "b").pattern
n.unicode_normalizer_from_str("nfx")
n.Precompiled({})
n.Precompiled(3)
t.ParityBpeTrainer(variant=["base"])
n.Sequence([n.NFC()] * 6)
str(n.Sequence([n.NFC()] * 6))
str(n.Replace("a" * 101, "b"))
n.Replace("a" * 101, "b")
str(m.BPE({c: i for i, c in enumerate("abcdefgh")}, []))
m.BPE({c: i for i, c in enumerate("abcdefgh")}, [])
str(m.WordLevel({str(i): i for i in range(101)}, "0"))
m.WordLevel({str(i): i for i in range(101)}, "0")
m.Unigram([(c, -float(i)) for i, c in enumerate("abcdefgh")], 0)
str(t.BpeTrainer(special_tokens=list("abcdefgh")))
str(q.TemplateProcessing("a b c d e f $A", special_tokens=[(c, i) for i, c in enumerate("abcdef")]))
p.CharDelimiterSplit("ab")
p.Split("a", "foo")
p.Split(Regex("a|b"), "removed", invert=True)
p.Metaspace(prepend_scheme="x")
p.Metaspace(add_prefix_space=True)
p.ByteLevel(False, use_regex=False)
p.PreTokenizer()
p.PreTokenizer.custom(3).pre_tokenize_str("a")
q.BertProcessing(("[SEP]", 1), ("[CLS]", 2))
q.RobertaProcessing(("a", 1), ("b", 2), add_prefix_space=False)
q.BertProcessing(("a", -1), ("b", 1))
q.TemplateProcessing("[CLS] $0", "$A $B")
q.TemplateProcessing("$0 $Z", "$A $B")
q.TemplateProcessing("$A", "$A")
q.TemplateProcessing("[CLS] $A:1", "[CLS] $A $B:1", [("[CLS]", 7)])
q.TemplateProcessing(["a", "$A:1"], ["$A", "$B"], [("a", 1)]).single
q.TemplateProcessing("$A", "$A $B", special_tokens=[("a", "b")])
q.Sequence([q.ByteLevel()])[3]
d.Strip("ab")
d.Strip("a", 1, 2)
d.WordPiece().decode("abc")
d.WordPiece().decode([1])
d.CTC(cleanup=False)
d.Sequence([d.ByteFallback(), d.Fuse()])
m.BPE()
m.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")], dropout=0.5, unk_token="a")
m.BPE({"a": 0})
m.BPE(vocab="vocab.json")
m.BPE(merges="merges.txt")
m.BPE({"a": 0}, [("a", "b")])
m.BPE(dropout=1.5)
m.BPE(cache_capacity=-1)
m.BPE.from_file("nothing.json", "nothing.txt")
m.BPE({"a": 0, "b": 1}, [], unk_token="u").tokenize("c")
m.WordPiece({"a": 0}).tokenize("b")
m.WordLevel({"a": 0}).tokenize("b")
m.Unigram([("a", -1.0)]).tokenize("ab")
m.Unigram([("a", -1.0)], 2)
m.Unigram(None, 2)
m.Unigram()
m.BPE().get_trainer()
m.WordPiece().get_trainer()
m.Unigram().get_trainer()
m.WordLevel().get_trainer()
m.BPE().id_to_token(-1)
AddedToken("a", lstrip=True)
AddedToken("a", special=True)
AddedToken("a") == AddedToken("a", lstrip=True)
AddedToken("a", lstrip=3)
t.BpeTrainer(special_tokens=["<a>", AddedToken("b", lstrip=True)], initial_alphabet=["xy"])
t.BpeTrainer(special_tokens=[3])
t.BpeTrainer(vocab_size=-1)
t.ParityBpeTrainer(variant="x")
t.ParityBpeTrainer(alpha=0.5)
Tokenizer(3)
Tokenizer(m.BPE())
Tokenizer(m.BPE()).encode(3)
Tokenizer(m.BPE()).encode(["a"])
Tokenizer(m.BPE()).encode("a", is_pretokenized=True)
Tokenizer(m.BPE()).encode_batch("a")
Tokenizer(m.BPE()).encode_batch(None)
Tokenizer(m.BPE()).encode_batch(["a", ("a", "b", "c")])
Tokenizer(m.BPE()).encode("\\ud800")
Tokenizer(m.BPE()).decode("a")
Tokenizer(m.BPE()).decode([-1])
Tokenizer(m.BPE()).decode([1, 2])
Tokenizer(m.BPE()).add_tokens("ab")
Tokenizer(m.BPE()).add_tokens([3])
Tokenizer(m.BPE()).add_tokens([""])
Tokenizer(m.BPE()).enable_truncation(5, strategy="x")
Tokenizer(m.BPE()).enable_truncation(5, direction="x")
Tokenizer(m.BPE()).enable_truncation(2, stride=3)
Tokenizer(m.BPE()).enable_padding(direction="x")
Tokenizer(m.BPE()).enable_padding(pad_id=-1)
Tokenizer(m.BPE()).to_str(pretty=True)
Tokenizer(m.BPE()).__getstate__()
Tokenizer.from_str("x")
Tokenizer.from_str(3)
Tokenizer.from_buffer(b"x")
Tokenizer.from_file("nothing.json")
Tokenizer(m.BPE()).train(["nothing.txt"])
Tokenizer(m.BPE()).train_from_iterator(["a"], t.WordLevelTrainer(show_progress=False))
Tokenizer(m.BPE()).train_from_iterator(3)
Tokenizer(m.BPE()).train_from_iterator(["a"], 3)
Tokenizer(m.BPE()).num_special_tokens_to_add(3)
Tokenizer(m.BPE()).encode_batch(np.array([["a", "b"], ["c", "d"]]))
Encoding().__getstate__()
Encoding().pad(3, direction="x")
Encoding().truncate(3, direction="x")
Encoding().char_to_token(-1)
NormalizedString("abc")[-2:]
NormalizedString("abc")[3]
NormalizedString("abc")[-5]
NormalizedString("abc").slice((1, 1))
NormalizedString("abcb").split("b", "merged_with_previous")
NormalizedString("abcb").split("b", "foo")
NormalizedString("abc").map(3)
PreTokenizedString("abc").get_splits("x")
PreTokenizedString("abc").split(lambda i, n: 3)
PreTokenizedString("abc").split(lambda n: [n])
PreTokenizedString("abc").tokenize(lambda s: [3])
PreTokenizedString("abc").to_encoding()
d.DecodeStream().step(Tokenizer(m.BPE()), "a")
q.BertProcessing(("b", 1), ("a", 0)).process(None)
q.BertProcessing(("b", 1), ("a", 0)).process(None, Encoding())
q.TemplateProcessing("$A", "$A $B").process(Encoding(), 3)
Tokenizer(m.BPE()).post_process(None)
Tokenizer(m.BPE()).post_process(None, Encoding())
Tokenizer(m.BPE()).post_process(Encoding(), None, False).ids
Tokenizer(m.BPE()).add_tokens(["\\ud800"])
Tokenizer(m.BPE()).add_special_tokens([AddedToken("a"), "a", "a"])
Tokenizer(m.BPE()).token_to_id("\\ud800")
Tokenizer(m.BPE()).decode([1], None)
Tokenizer(m.BPE()).train(["nothing.txt", 3])
Tokenizer(m.BPE()).train([])
n.NFC().normalize_str("\\ud800")
n.Prepend("\\ud800")
p.Whitespace().pre_tokenize_str("\\ud800")
d.Fuse().decode(["\\ud800"])
NormalizedString("\\ud800")
PreTokenizedString("abc").to_encoding("a")
d.DecodeStream(skip_special_tokens=3)
d.DecodeStream().step(Tokenizer(m.BPE()), -1)
d.DecodeStream().step(Tokenizer(m.BPE()), ["a"])
t.UnigramTrainer(shrinking_factor="a")
t.UnigramTrainer(shrinking_factor=None)
m.WordPiece(unk_token=3)
m.WordLevel("vocab.json", 3)
m.BPE("vocab.json", [])
m.BPE({}, "merges.txt")
m.Unigram("ab")
m.Unigram([["a", -1.0]])
m.Unigram([("a", -1.0, 2)])
m.Unigram({"a": -1.0})
m.Unigram([("a", "b")])
m.Unigram([("a", -1.0)], alpha="x")
m.Unigram(byte_fallback=True)
m.Unigram(byte_fallback=3)
m.Unigram(unk_id="x")
t.BpeTrainer(initial_alphabet="ab")
t.BpeTrainer(progress_format="json").progress_format
t.BpeTrainer().progress_format
t.BpeTrainer(initial_alphabet=np.array(["q"]))
t.UnigramTrainer(initial_alphabet=np.array([1]))
setattr(t.BpeTrainer(), "initial_alphabet", ["ab"])
setattr(t.WordPieceTrainer(), "initial_alphabet", [""])
setattr(t.UnigramTrainer(), "initial_alphabet", "ab")
d.Fuse().decode(np.array(["a", "b"]))
d.Fuse().decode(np.array([1]))
Encoding.merge(e for e in [])
Encoding.merge({})
Encoding.merge(np.array([Encoding()]))
m.Unigram([("a", float("nan")), ("b", float("-inf"))])
AddedToken("a").__lt__(3)
AddedToken("a") < AddedToken("b")
AddedToken("a", lstrip=True).__setstate__({})
AddedToken("a").__setstate__("b")
[x := AddedToken("a", lstrip=True, special=True), x.__setstate__({"content": "b"}), x]
q.TemplateProcessing(("a", "$A"), np.array(["$A", "$B"]), (("a", 1),))
q.TemplateProcessing([3], ["$A", "$B"])
q.TemplateProcessing("$A", "$A $B", "a")
q.TemplateProcessing("$A", "$A $B", 3)
q.TemplateProcessing("$A", "$A $B", {("a", 0)})
q.TemplateProcessing("$A", "$A $B", [{}])
q.TemplateProcessing("$A", "$A $B", [{"id": "a"}])
q.TemplateProcessing("$A", "$A $B", [{"id": "a", "ids": [0]}])
q.TemplateProcessing("a $A", "$A $B", [{"id": "a", "ids": [0, 1], "tokens": ("x", "y")}])
q.TemplateProcessing("a $A", "$A $B", [{"id": "a", "ids": 0, "tokens": ["x"]}])
q.TemplateProcessing("a $A", "$A $B", [{"id": "a", "ids": [0], "tokens": "x"}])
q.TemplateProcessing("a $A", "$A $B", [{"id": 3, "ids": [0], "tokens": ["x"]}])
Tokenizer(m.BPE()).train_from_iterator(["a"], length=1.5)
Tokenizer(m.BPE()).train_from_iterator(["a"], length=-1)
Tokenizer(m.BPE()).train_from_iterator(["\\ud800"])
Tokenizer(m.BPE()).train_from_iterator([["\\ud800"]])
Tokenizer(m.BPE()).train_from_iterator(int(s) for s in "x")""".splitlines()


def outcome(library, expression):
    "What an expression gives: its repr, or the type of its error and the message."
    names = {k: getattr(library, k) for k in NAMES[""].split()} | {"np": np}
    short = dict(n="normalizers", p="pre_tokenizers", q="processors", d="decoders", m="models", t="trainers")
    try:
        return repr(eval(expression, names | {k: names[v] for k, v in short.items()}))
    except Exception as e:
        kind = "Exception" if type(e).__name__ == "TokenizersError" else type(e).__name__
        return kind, str(e)


@pytest.mark.peers
@pytest.mark.parametrize("expression", SAME)
def test_values_and_errors_are_the_same(theirs, expression):
    assert outcome(face, expression) == outcome(theirs, expression)


@pytest.mark.parametrize("error", [ValueError, KeyError, OSError, RuntimeError])
def test_training_raises_the_error_of_the_iterator(error):
    def texts():
        yield "a b"
        raise error("stop")

    class Spaces:
        def pre_tokenize(self, text):
            text.split(lambda i, part: part.split(" ", "removed"))

    tok = face.Tokenizer(face.models.WordLevel())
    for pre in (None, face.pre_tokenizers.Whitespace(), face.pre_tokenizers.PreTokenizer.custom(Spaces())):
        tok.pre_tokenizer = pre
        with pytest.raises(error, match="stop"):
            tok.train_from_iterator(texts())


def test_a_text_that_names_a_file_is_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pug").write_text("hug")
    tok = face.Tokenizer(face.models.WordLevel(unk_token="u"))
    tok.train_from_iterator(["pug"], face.trainers.WordLevelTrainer(show_progress=False))
    assert tok.get_vocab() == {"pug": 0}


def test_functions_that_fail_are_named():
    for name, func in (("filter", lambda c: 3), ("map", lambda c: None), ("map", lambda c: 1 / 0)):
        with pytest.raises(Exception, match=f"`{name}` expect a callable"):
            getattr(face.NormalizedString("abc"), name)(func)


def test_options_that_a_trainer_does_not_have():
    trainer = face.trainers.WordPieceTrainer()
    with pytest.raises(AttributeError, match="max_token_length"):
        _ = trainer.max_token_length
    with pytest.raises(AttributeError, match="max_token_length"):
        trainer.max_token_length = 3


def cut_pair(lib, texts, most, stride, strategy, direction, special):
    "What truncation leaves of one text or two; the name of an error."
    tok = lib.Tokenizer(lib.models.WordLevel({"[UNK]": 0, "a": 1, "b": 2, "[CLS]": 3, "[SEP]": 4}, "[UNK]"))
    tok.pre_tokenizer = lib.pre_tokenizers.Whitespace()
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    tok.post_processor = lib.processors.TemplateProcessing(
        "[CLS] $A [SEP]", pair, [("[CLS]", 3), ("[SEP]", 4)]
    )
    try:
        tok.enable_truncation(most, stride=stride, strategy=strategy, direction=direction)
    except ValueError as e:
        return str(e)
    try:
        found = tok.encode(*texts, add_special_tokens=special)
    except BaseException as e:  # a panic there
        if type(e).__name__ not in ("Exception", "PanicException", "TokenizersError"):
            raise
        return "failed"
    return found.ids, found.special_tokens_mask, [e.ids for e in found.overflowing], tok.truncation


@pytest.mark.peers
@pytest.mark.parametrize("most", range(7))
def test_every_truncation_is_the_same(theirs, most, capfd):
    texts = [("a b a b a",), ("a b a", "b a b a"), ("a",), ("",), ("", "b")]
    strategies = ["longest_first", "only_first", "only_second"]
    for given in itertools.product(texts, [most], range(5), strategies, ["left", "right"], [True, False]):
        wanted, found = cut_pair(theirs, *given), cut_pair(face, *given)
        assert found == wanted, given
    capfd.readouterr()  # what panics print


@pytest.mark.parametrize(
    "name", ["xlnet-base-cased/spiece.model", "llama-2/tokenizer.model", "t5-small/spiece.model"]
)
def test_sentencepiece_models_have_this_face(shared_file, name):
    from subword_nb import Tokenizer as Native

    native = Native.load(shared_file(f"vocab/{name}"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tok = face.Tokenizer.of_parts(native.parts)
        again = face.Tokenizer.from_str(tok.to_str())
    assert "subword_nb" not in tok.to_str()
    for text in ("Hello world", "two  blanks", "naïve 漢字 🙂", ""):
        assert again.encode(text).ids == tok.encode(text).ids == native.encode(text)


# builders of tokenizers, each for either library


def byte_level(lib):
    tok = lib.Tokenizer(lib.models.BPE())
    tok.pre_tokenizer = lib.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tok.decoder, tok.post_processor = lib.decoders.ByteLevel(), lib.processors.ByteLevel(trim_offsets=True)
    alphabet = sorted(lib.pre_tokenizers.ByteLevel.alphabet())
    trainer = lib.trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False
    )
    tok.train_from_iterator(CORPUS, trainer)
    return tok


def bert(lib):
    tok = lib.Tokenizer(lib.models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = lib.normalizers.BertNormalizer()
    tok.pre_tokenizer = lib.pre_tokenizers.BertPreTokenizer()
    specials = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.model = lib.models.WordPiece(
        {
            p: i
            for i, p in enumerate(
                [*specials, "hug", "##s", "pu", "##n", "##g", "un", "b", "it", "'", "!", "s"]
            )
        },
        unk_token="[UNK]",
    )
    tok.add_special_tokens(specials)
    tok.post_processor = lib.processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)]
    )
    tok.decoder = lib.decoders.WordPiece()
    return tok


def metaspace(lib):
    tok = lib.Tokenizer(
        lib.models.Unigram([("<unk>", 0.0), ("▁", -2.0), *[(c, -4.0) for c in "hugpnbs"], ("▁hug", -3.0)], 0)
    )
    tok.normalizer = lib.normalizers.Sequence(
        [lib.normalizers.NFKC(), lib.normalizers.Replace(lib.Regex(" {2,}"), " ")]
    )
    tok.pre_tokenizer, tok.decoder = lib.pre_tokenizers.Metaspace(), lib.decoders.Metaspace()
    tok.add_tokens([lib.AddedToken("<x>", lstrip=True), "pun bun"])
    return tok


def words(lib):
    tok = lib.Tokenizer(lib.models.WordLevel(unk_token="?"))
    tok.normalizer = lib.normalizers.Sequence(
        [lib.normalizers.NFD(), lib.normalizers.StripAccents(), lib.normalizers.Lowercase()]
    )
    tok.pre_tokenizer = lib.pre_tokenizers.Sequence(
        [lib.pre_tokenizers.Whitespace(), lib.pre_tokenizers.Digits(True)]
    )
    trainer = lib.trainers.WordLevelTrainer(vocab_size=30, special_tokens=["?"], show_progress=False)
    tok.train_from_iterator([CORPUS[:3], CORPUS[3:]], trainer)
    tok.post_processor = lib.processors.BertProcessing(("z", 99), ("c", 98))
    return tok


BUILT = [byte_level, bert, metaspace, words]
PARTS = [
    "hug",
    "hugs",
    " pun",
    "  ",
    "Pug",
    "bun!",
    "it's",
    "<x>",
    "[MASK]",
    "<s>",
    "naïve",
    "ﬁ",
    "🤗",
    "ü",
    "\n",
    "12",
    "你好",
    "pun bun",
    "",
]


def texts(*names, n=TEXTS):
    rng = fresh("face", *names)
    return ["".join(rng.choices(PARTS, k=rng.randrange(9))) for _ in range(n)]


def columns(e):
    "All that an encoding says."
    return {
        "ids": e.ids,
        "tokens": e.tokens,
        "offsets": e.offsets,
        "words": e.word_ids,
        "sequences": e.sequence_ids,
        "types": e.type_ids,
        "special": e.special_tokens_mask,
        "attention": e.attention_mask,
        "n": e.n_sequences,
        "more": [columns(o) for o in e.overflowing],
    }


def lengths(tok, kind):
    if "cut" in kind:
        tok.enable_truncation(9, stride=1, direction="left" if "left" in kind else "right")
    if "filled" in kind:
        tok.enable_padding(pad_id=3, pad_token="#", pad_to_multiple_of=4, direction="left")


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["plain", "cut", "cut left", "filled", "cut filled"])
@pytest.mark.parametrize("build", BUILT)
def test_encodings_are_the_same(theirs, build, kind):
    a, b = build(theirs), build(face)
    lengths(a, kind), lengths(b, kind)
    found = texts(build.__name__, kind, n=max(TEXTS // 8, 20))
    for x, y in zip(found, reversed(found)):
        for args in (
            (x,),
            (x, y),
            (x.split(), None, True),
            (x.split(), y.split(), True),
            (x, y, False, False),
        ):
            assert columns(b.encode(*args)) == columns(a.encode(*args)), args
        batch = [x, (x, y), y]
        for call in ("encode_batch", "encode_batch_fast"):
            ours, ref = ([columns(e) for e in getattr(t, call)(batch)] for t in (b, a))
            assert ours == ref, (call, batch)
        ids = a.encode(x, y).ids
        for skip in (True, False):
            assert b.decode(ids, skip) == a.decode(ids, skip)
        assert b.decode_batch([ids, ids[1:]]) == a.decode_batch([ids, ids[1:]])
        streams = theirs.decoders.DecodeStream(), face.decoders.DecodeStream()
        assert [streams[1].step(b, i) for i in ids] == [streams[0].step(a, i) for i in ids]


@pytest.mark.parametrize("change", ["none", "cut", "added", "normalizer", "processor"])
@pytest.mark.parametrize("build", [byte_level, bert, metaspace])
def test_a_batch_shows_the_tokenizer_that_encoded_it(build, change):
    "Only ids are made at first; the rest is that of each text, and of the tokenizer as it was then."
    some = ["hug pun bun!", "", "Pug [MASK] <x> hugs hugs it's", "naïve 12 hug"]
    tok = build(face)
    tok.enable_truncation(6)
    wanted = [columns(tok.encode(text)) for text in some]
    assert len({tuple(one["tokens"]) for one in wanted}) == len(some)
    found = tok.encode_batch(some)
    assert [e.ids for e in found] == [one["ids"] for one in wanted]
    found[0].ids.append(3)  # a list of the caller
    if change == "cut":
        tok.no_truncation()
        tok.enable_padding()
    elif change == "added":
        tok.add_tokens(["hug", "bun"])
    elif change == "normalizer":
        tok.normalizer = face.normalizers.Replace("u", "n")
    elif change == "processor":
        tok.post_processor = face.processors.TemplateProcessing("$A <x>", special_tokens=[("<x>", 0)])
    copied, pickled = copy.deepcopy(found), pickle.loads(pickle.dumps(found))
    for encodings in (found, copied, pickled):
        assert [columns(e) for e in encodings] == wanted
    found = tok.encode_batch(some)
    found[2].pad(40)
    found[3].truncate(2)
    assert found[2].tokens[-1] == "[PAD]" and len(found[2]) == 40
    assert found[3].ids == tok.encode(some[3]).ids[:2] and len(found[3].tokens) == 2


def test_one_encoding_does_not_keep_its_batch():
    "What is kept of a batch of encodings is what is kept of it, not the other ones."
    tok = byte_level(face)
    kept = tok.encode_batch(["hug pun bun " * 20] * 300)[0]
    assert kept.tokens
    gc.collect()
    assert not any(isinstance(x, list) and len(x) == 300 for x in _reached(kept))


def _reached(value):
    "The objects that a value keeps in memory, but for modules and classes."
    seen, todo = {}, [value]
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, (type, types.ModuleType)):
            seen[id(one)] = one
            todo += gc.get_referents(one)
    return seen.values()


def test_a_token_that_was_added_twice_is_decoded_as_it_is_shown():
    tok = byte_level(face)
    tok.normalizer = face.normalizers.Lowercase()
    tok.add_tokens([face.AddedToken("HUGE", normalized=True)])
    tok.add_tokens([face.AddedToken("HUGE", normalized=False)])
    i = tok.token_to_id("HUGE") or tok.token_to_id("huge")
    assert tok.decode([i]) == tok.id_to_token(i) and tok.decode_batch([[i], []]) == [tok.id_to_token(i), ""]


@pytest.mark.peers
@pytest.mark.parametrize("build", BUILT)
def test_questions_to_encodings_have_the_same_answers(theirs, build):
    a, b = build(theirs), build(face)
    for x, y in zip(texts(build.__name__, n=15), texts("second", n=15)):
        e, f = a.encode(x, y), b.encode(x, y)
        for one in ("token_to_sequence", "token_to_chars", "token_to_word"):
            assert [getattr(f, one)(i) for i in range(len(f) + 2)] == [
                getattr(e, one)(i) for i in range(len(e) + 2)
            ]
        for two in ("word_to_tokens", "word_to_chars", "char_to_token", "char_to_word"):
            answers = [[getattr(g, two)(i, s) for s in (0, 1, 2) for i in range(len(x) + 2)] for g in (e, f)]
            assert answers[0] == answers[1], two
        assert json.loads(pickle.loads(pickle.dumps(f)).__getstate__()) == json.loads(e.__getstate__())
        merged = [L.Encoding.merge([g, g], growing_offsets=True) for L, g in ((theirs, e), (face, f))]
        assert columns(merged[0]) == columns(merged[1])
        for g in (e, f):
            g.truncate(5, stride=2)
            g.pad(8, direction="left", pad_id=4, pad_type_id=1, pad_token="!")
        assert columns(f) == columns(e)
        e.set_sequence_id(1), f.set_sequence_id(1)
        assert columns(f) == columns(e)


@pytest.mark.peers
@pytest.mark.parametrize("build", BUILT)
def test_files_pickles_and_vocabularies_are_the_same(theirs, build, tmp_path):
    a, b = build(theirs), build(face)
    lengths(a, "cut filled"), lengths(b, "cut filled")
    assert json.loads(b.to_str()) == json.loads(a.to_str())
    assert b.get_vocab() == a.get_vocab() and b.get_vocab(False) == a.get_vocab(False)
    assert b.get_vocab_size() == a.get_vocab_size() and b.get_vocab_size(False) == a.get_vocab_size(False)
    assert {i: repr(t) for i, t in b.get_added_tokens_decoder().items()} == {
        i: repr(t) for i, t in a.get_added_tokens_decoder().items()
    }
    assert (b.truncation, b.padding) == (a.truncation, a.padding)
    b.save(str(tmp_path / "ours.json"))
    again = [theirs.Tokenizer.from_file(str(tmp_path / "ours.json")), pickle.loads(pickle.dumps(b))]
    again.append(face.Tokenizer.from_buffer(a.to_str().encode()))
    for text in texts(build.__name__, n=10):
        assert len({tuple(t.encode(text, text).ids) for t in (a, b, *again)}) == 1
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, tok in zip(folders, (a, b)):
        folder.mkdir()
        assert [f.rpartition("/")[2] for f in tok.model.save(str(folder), "x")]
    for file in folders[0].iterdir():
        assert (folders[1] / file.name).read_text("utf-8") == file.read_text("utf-8")
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        x, y = getattr(a, name), getattr(b, name)
        assert repr(x) == repr(y)
        if x is not None:
            assert json.loads(x.__getstate__()) == json.loads(y.__getstate__())
            assert repr(pickle.loads(pickle.dumps(y))) == repr(y)


TRAINED = [
    ("BPE", "BpeTrainer", {"vocab_size": 40, "min_frequency": 2}),
    ("BPE", "BpeTrainer", {"vocab_size": 3, "special_tokens": ["<s>", "</s>"], "limit_alphabet": 5}),
    ("BPE", "BpeTrainer", {"vocab_size": 60, "initial_alphabet": ["q", "xyz"], "max_token_length": 3}),
    ("BPE", "BpeTrainer", {"vocab_size": 60, "end_of_word_suffix": "</w>"}),
    ("WordPiece", "WordPieceTrainer", {"vocab_size": 50, "special_tokens": ["[UNK]"]}),
    ("WordLevel", "WordLevelTrainer", {"vocab_size": 8, "special_tokens": ["<unk>"]}),
    ("WordLevel", "WordLevelTrainer", {"min_frequency": 3}),
]


@pytest.mark.peers
@pytest.mark.parametrize("model, trainer, options", TRAINED)
def test_trainers_learn_the_same(theirs, model, trainer, options, tmp_path):
    found = []
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS), "utf-8")
    for lib in (theirs, face):
        rows = []
        for how in ("files", "texts"):
            tok = lib.Tokenizer(getattr(lib.models, model)())
            tok.pre_tokenizer = lib.pre_tokenizers.Whitespace()
            made = getattr(lib.trainers, trainer)(show_progress=False, **options)
            if how == "files":
                tok.train([str(tmp_path / "corpus.txt")], made)
            else:
                tok.train_from_iterator(iter([CORPUS[:2], *CORPUS[2:]]), made)
            rows.append(tok)
        found.append(rows)
    for a, b in zip(*found):
        d, e = json.loads(a.to_str()), json.loads(b.to_str())
        if (
            "suffix" in str(options) or model == "WordPiece"
        ):  # their marked letters are numbered by a hash table
            assert {*d["model"].pop("vocab")} == {*e["model"].pop("vocab")}
            d["model"].pop("merges", None), e["model"].pop("merges", None)
        assert d == e


@pytest.mark.peers
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"variant": "window", "window_size": 5},
        {"global_merges": 4},
        {"total_symbols": True},
        {"min_frequency": 3},
        {"max_token_length": 3},
    ],
)
@pytest.mark.parametrize("how", ["train", "dev", "ratio"])
def test_parity_between_languages(theirs, how, options):
    train = [
        ["hug hugs pug pun bun " * 4, "hugging puns"],
        ["uno dos tres cuatro " * 2, "dos tres unos"],
        ["abab abba baab"],
    ]
    more = (
        {"dev_iterators": [["hug pun puns"], ["dos tres cuatro"], ["abba abab abab"]]} if how == "dev" else {}
    )
    more = {"ratio": [1.0, 2.0, 0.7]} if how == "ratio" else more
    found = []
    for lib in (theirs, face):
        tok = lib.Tokenizer(lib.models.BPE())
        tok.pre_tokenizer = lib.pre_tokenizers.Whitespace()
        made = lib.trainers.ParityBpeTrainer(
            num_merges=40, special_tokens=["<s>"], show_progress=False, **options
        )
        made.train_from_iterator(tok, train, **more)
        found.append(json.loads(tok.to_str()))
    assert found[0] == found[1]


class OwnNormalizer:
    def normalize(self, text):
        text.nfkd()
        text.filter(lambda c: c != "s")
        text.lowercase()
        text.prepend("_")
        text.append("~")
        text.replace("u", "oo")


class OwnPreTokenizer:
    def pre_tokenize(self, text):
        text.split(lambda i, part: part.split(" ", "merged_with_next"))
        text.split(lambda i, part: [part[:2], part[2:]] if len(part.normalized) > 2 else [part])


class OwnDecoder:
    def decode_chain(self, tokens):
        return [f"<{t}>" for t in tokens]


@pytest.mark.peers
def test_components_in_python(theirs):
    found = []
    for lib in (theirs, face):
        tok = lib.Tokenizer(
            lib.models.BPE({c: i for i, c in enumerate("hoogpnb_~ i")} | {"?": 99}, [], unk_token="?")
        )
        tok.normalizer = lib.normalizers.Normalizer.custom(OwnNormalizer())
        tok.pre_tokenizer = lib.pre_tokenizers.PreTokenizer.custom(OwnPreTokenizer())
        tok.decoder = lib.decoders.Decoder.custom(OwnDecoder())
        found.append(tok)
    a, b = found
    for x in [t for t in texts("custom", n=40) if t]:
        assert columns(b.encode(x)) == columns(a.encode(x)), x
        assert b.decode(b.encode(x).ids) == a.decode(a.encode(x).ids)
    for tok in (a, b):
        with pytest.raises(Exception, match="Custom Normalizer cannot be serialized"):
            tok.to_str()
        with pytest.raises(Exception, match="Error while attempting to pickle Tokenizer"):
            pickle.dumps(tok)


class Letters:
    def pre_tokenize(self, text):
        text.normalize(lambda part: part.filter(str.isalpha))


@pytest.mark.peers
def test_a_part_that_a_component_empties_counts_as_a_word(theirs):
    for lib in (theirs, face):
        tok = lib.Tokenizer(lib.models.BPE({"a": 0, "b": 1}, []))
        own = lib.pre_tokenizers.PreTokenizer.custom(Letters())
        tok.pre_tokenizer = lib.pre_tokenizers.Sequence([lib.pre_tokenizers.Whitespace(), own])
        encoding = tok.encode("a _ b")
        assert encoding.word_ids == [0, 2] and encoding.offsets == [(0, 1), (4, 5)]
        with pytest.raises(Exception, match="pickle PreTokenizer: Custom PreTokenizer cannot be serialized"):
            own.__getstate__()


class Keeper:
    "A component that keeps what it was given."

    def normalize(self, text):
        self.text = text
        text.lowercase()

    def pre_tokenize(self, text):
        self.text = text
        text.normalize(self.part)

    def part(self, text):
        self.inner = text
        text.append("!")


@pytest.mark.peers
def test_texts_are_lent_to_components(theirs):
    "What a custom component keeps cannot be used later; the text that the caller gave can."
    for lib in (theirs, face):
        keeper = Keeper()
        text = lib.NormalizedString("AB")
        steps = lib.normalizers.Sequence(
            [lib.normalizers.Normalizer.custom(keeper), lib.normalizers.Prepend(">")]
        )
        steps.normalize(text)
        assert text.normalized == ">ab"
        for call in (lambda k=keeper: k.text.normalized, lambda k=keeper: k.text.replace("a", "b")):
            with pytest.raises(Exception, match="Cannot use a NormalizedStringRefMut outside `normalize`"):
                call()
        text = lib.PreTokenizedString("A b")
        lib.pre_tokenizers.PreTokenizer.custom(keeper).pre_tokenize(text)
        assert text.get_splits() == [("A b!", (0, 3), None)]
        for call in (
            lambda k=keeper: k.text.get_splits(),
            lambda k=keeper: k.text.split(lambda i, n: [n]),
            lambda k=keeper: k.text.normalize(lambda n: None),
        ):
            with pytest.raises(
                Exception, match="Cannot use a PreTokenizedStringRefMut outside `pre_tokenize`"
            ):
                call()
        with pytest.raises(Exception, match="Cannot use a NormalizedStringRefMut"):
            keeper.inner.nfc()
        assert "object at" in repr(keeper.text)


STEPS = ["nfd", "nfc", "nfkd", "nfkc", "lowercase", "uppercase", "lstrip", "rstrip", "strip", "clear"]


@pytest.mark.peers
def test_strings_that_remember(theirs):
    rng = fresh("strings")
    for _ in range(TEXTS):
        text = "".join(
            rng.choices(["a", "b", " ", "é", "ﬁ", "ß", "İ", "e\u0301", "你", "🤗"], k=rng.randrange(7))
        )
        a, b = theirs.NormalizedString(text), face.NormalizedString(text)
        for _ in range(rng.randrange(4)):
            step = rng.choice([*STEPS[:-1], "prepend", "append", "filter", "map", "replace"])
            if step == "append" and not a.normalized:
                continue  # theirs says twice what is put behind nothing, as soon as it is changed again
            for lib, s in ((theirs, a), (face, b)):
                given = {
                    "prepend": ("xy",),
                    "append": ("zz",),
                    "filter": (lambda c: c != "a",),
                    "map": (lambda c: "q" if c == "b" else c,),
                    "replace": (lib.Regex("[ab]+"), "--"),
                }.get(step, ())
                getattr(s, step)(*given)
        assert repr(b) == repr(a)
        for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
            parts = [s.split(lib.Regex("[a ]"), behavior) for lib, s in ((theirs, a), (face, b))]
            assert repr(parts[1]) == repr(parts[0])
        for i in range(len(b.normalized) + 2):
            assert repr(b[i]) == repr(a[i]) and repr(b[: i + 1]) == repr(a[: i + 1])
            for j in range(len(b.normalized) + 2):
                assert repr(b.slice((i, j))) == repr(a.slice((i, j))) and repr(b[i:j]) == repr(a[i:j])
        places = []
        for lib in (theirs, face):
            t = lib.PreTokenizedString(text)
            t.split(lambda i, part: part.split(" ", "isolated"))
            t.normalize(lambda part: part.nfkd())
            splits = [
                t.get_splits(r, o)
                for r, o in (("original", "char"), ("original", "byte"), ("normalized", "byte"))
            ]
            t.tokenize(lambda s: [lib.Token(1, s, (0, len(s.encode())))])  # noqa: B023
            places.append((splits, columns(t.to_encoding(3, 5)), columns(t.to_encoding())))
        assert places[0] == places[1]


@pytest.mark.peers
def test_added_tokens_come_and_change(theirs):
    rng = fresh("added")
    for _ in range(30):
        found = []
        state = rng.getrandbits(32)
        for lib in (theirs, face):
            own = fresh("added", state)
            tok = lib.Tokenizer(lib.models.BPE({c: i for i, c in enumerate("abcd ")} | {"zz": 9}, []))
            tok.normalizer = own.choice([None, lib.normalizers.Lowercase()])
            row = []
            for _ in range(6):
                content = own.choice(["a", "ab", "Q", "zz", "q r", ""])
                flags = {k: own.random() < 0.3 for k in ("lstrip", "rstrip", "single_word")}
                token = own.choice([content, lib.AddedToken(content, **flags)])
                row.append(getattr(tok, own.choice(["add_tokens", "add_special_tokens"]))([token]))
                text = "".join(own.choices(["a", "ab", " ", "Q", "q r", "zz", "d"], k=6))
                row += [
                    text,
                    tok.encode(text).ids,
                    tok.encode(text).offsets,
                    tok.decode([9, 10, 11, 0]),
                    tok.get_vocab_size(),
                ]
                tok.encode_special_tokens = own.random() < 0.3
            found.append((row, json.loads(tok.to_str())["added_tokens"], tok.get_vocab()))
        assert found[0] == found[1]


def test_parts_can_be_changed_in_place():
    tok = byte_level(face)
    before = tok.encode("hug").tokens
    tok.pre_tokenizer.add_prefix_space = False
    after = tok.encode("hug").tokens
    assert (before[0][0], after[0][0]) == ("Ġ", "h")
    tok.normalizer = face.normalizers.Sequence([face.normalizers.Strip(), face.normalizers.Lowercase()])
    tok.normalizer[0] = face.normalizers.Prepend("pun ")
    assert tok.decode(tok.encode("HUG").ids) == "pun hug"
    tok.model.dropout = 1.0
    assert len(tok.encode("hug").ids) == len("pun hug")
    tok.model.dropout = None
    tok.normalizer = None
    assert tok.encode("hug").tokens == after


def test_what_does_not_block_an_event_loop():
    tok = bert(face)

    async def calls():
        one = await tok.async_encode("hugs")
        many = await tok.async_encode_batch(["hugs", ("hug", "it")])
        fast = await tok.async_encode_batch_fast(["hugs"])
        split = await tok.async_encode_batch([["hugs", "hug"], ["it"]], is_pretokenized=True)
        assert [e.ids for e in split] == [
            e.ids for e in tok.encode_batch([["hugs", "hug"], ["it"]], is_pretokenized=True)
        ]
        return one.ids, [e.ids for e in many], fast[0].ids, await tok.async_decode_batch([one.ids])

    one, many, fast, said = asyncio.run(calls())
    assert one == many[0] == fast == tok.encode("hugs").ids
    assert (said, len(many[1])) == (["hugs"], 5)


def test_a_unigram_model_that_draws():
    vocab = [("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -1.5), ("<0xC3>", -9.0), ("<0xA9>", -9.0)]
    tok = face.Tokenizer(face.models.Unigram(vocab, 0, True, alpha=0.5))
    drawn = {tuple(tok.encode("abé").tokens) for _ in range(200)}
    assert drawn == {("ab", "<0xC3>", "<0xA9>"), ("a", "b", "<0xC3>", "<0xA9>")}
    tok.model.alpha = None
    assert {tuple(tok.encode("ab").tokens) for _ in range(20)} == {("ab",)}


def test_what_a_unigram_trainer_learns():
    tok = face.SentencePieceUnigramTokenizer()
    tok.train_from_iterator(
        CORPUS * 5, vocab_size=45, special_tokens=["<s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    assert tok.get_vocab_size() <= 45 and [tok.id_to_token(i) for i in (0, 1)] == ["<s>", "<unk>"]
    assert tok.decode(tok.encode("hugs pun").ids) == "hugs pun"
    assert tok.encode("日").ids[-1] == 1


def unigram_learned(lib, texts, **options):
    "The pieces that a UnigramTrainer learns, with their scores."
    tok = lib.Tokenizer(lib.models.Unigram())
    tok.pre_tokenizer = lib.pre_tokenizers.WhitespaceSplit()
    tok.train_from_iterator(texts, lib.trainers.UnigramTrainer(show_progress=False, **options))
    return dict(json.loads(tok.to_str())["model"]["vocab"])


@pytest.mark.peers
def test_unigram_trainers_learn_the_same_where_nothing_is_cut(theirs):
    rng = fresh("unigram trainers")
    for _ in range(max(10, TEXTS // 4)):
        alphabet = rng.choice(["ab", "abcdefgh", "aéb你"])
        words = ["".join(rng.choices(alphabet, k=rng.randrange(1, 9))) for _ in range(rng.randrange(3, 80))]
        texts = rng.choices(words, k=2 * len(words))
        options = {"max_piece_length": rng.choice([1, 3, 16]), "n_sub_iterations": rng.choice([1, 2, 3])}
        options |= rng.choice(
            [{}, {"special_tokens": ["<s>"]}, {"unk_token": "<u>", "initial_alphabet": ["x"]}]
        )
        a, b = (unigram_learned(lib, texts, **options) for lib in (theirs, face))
        assert a.keys() == b.keys() and max(abs(a[p] - b[p]) for p in a) < 0.01, (texts, options)


@pytest.mark.peers
def test_unigram_trainers_learn_the_same_where_pieces_are_cut(theirs):
    "Except for pieces whose removal costs the same up to rounding."
    rng, exchanged, n_corpora = fresh("cut"), 0, max(10, TEXTS // 8)
    for _ in range(n_corpora):
        alphabet, n = rng.choice([("abcdef", 60), ("abcdef", 200), ("abcdefghijkl", 80)])
        words = ["".join(rng.choices(alphabet, k=rng.randrange(1, 9))) for _ in range(n)]
        options = {"vocab_size": rng.choice([20, 30, 60]), "shrinking_factor": rng.choice([0.5, 0.75, 0.9])}
        a, b = (unigram_learned(lib, words * 2, **options) for lib in (theirs, face))
        assert len(a) == len(b), (words, options)
        exchanged += a.keys() != b.keys() or max(abs(a[p] - b[p]) for p in a) >= 0.01
    assert exchanged <= 2 + n_corpora // 50


def test_characters_that_do_not_fit_are_refused():
    with pytest.raises(Exception, match="at least 3, the number of characters"):
        unigram_learned(face, ["abc"], vocab_size=2)


def test_ready_made_tokenizers(tmp_path):
    for made in (face.ByteLevelBPETokenizer(), face.CharBPETokenizer(), face.SentencePieceBPETokenizer()):
        made.train_from_iterator(CORPUS, vocab_size=300, show_progress=False)
        files = made.save_model(str(tmp_path), type(made).__name__)
        again = type(made).from_file(*files)
        assert again.encode("hugs pun").ids == made.encode("hugs pun").ids
        assert made.decode(made.encode("hugs pun").ids) == "hugs pun"
    bert_like = face.BertWordPieceTokenizer()
    bert_like.train_from_iterator(CORPUS, vocab_size=60, show_progress=False)
    assert bert_like.token_to_id("[PAD]") == 0 and "hug" in bert_like.encode("Hug").tokens


@pytest.mark.peers
def test_ready_made_tokenizers_learn_the_same(theirs):
    for name in ("ByteLevelBPETokenizer", "SentencePieceBPETokenizer"):
        a, b = (getattr(lib, name)() for lib in (theirs, face))
        for tok in (a, b):
            tok.train_from_iterator(CORPUS, vocab_size=290, show_progress=False)
        assert json.loads(b.to_str()) == json.loads(a.to_str()) and repr(b) == repr(a)


def test_a_sentencepiece_model_opens(shared_file):
    path = shared_file("vocab/t5-small/spiece.model")
    tok = face.SentencePieceUnigramTokenizer.from_spm(str(path))
    assert tok.decode(tok.encode("Hello world").ids) == "Hello world"


@pytest.mark.peers
@pytest.mark.parametrize("name", ["gpt2", "bert-base-uncased", "t5-small", "roberta-base"])
def test_published_tokenizers(theirs, shared_file, name):
    path = str(shared_file(f"vocab/{name}/tokenizer.json"))
    a, b = theirs.Tokenizer.from_file(path), face.Tokenizer.from_file(path)
    assert json.loads(a.to_str()) == json.loads(b.to_str())
    assert a.get_vocab() == b.get_vocab()
    golden = json.loads(shared_file("golden/strings.json").read_text("utf-8"))
    rng = fresh("published", name)
    for x, y in zip(rng.sample(golden, 40), rng.sample(golden, 40)):
        if name == "t5-small" and not x.strip():
            continue
        assert columns(b.encode(x, y)) == columns(a.encode(x, y)), (x, y)
        ids = a.encode(x).ids
        assert b.decode(ids) == a.decode(ids)


class Elements(HTMLParser):
    "The elements of the drawn text, in order, with their attributes and their content."

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page[page.index("<body>") :])

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, sorted(attrs)))

    def handle_endtag(self, tag):
        self.found.append(tag)

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "span":
            self.found.append(data)


@pytest.mark.peers
def test_texts_are_drawn_with_the_same_elements(theirs):
    library = importlib.import_module("tokenizers.tools.visualizer")
    rng = fresh("drawn")
    trained = theirs.ByteLevelBPETokenizer()
    trained.train_from_iterator(CORPUS, vocab_size=280, special_tokens=["<unk>", "punk"], show_progress=False)
    words = theirs.Tokenizer(theirs.models.WordLevel({"hug": 0, "[UNK]": 1, "pug": 2}, "[UNK]"))
    words.pre_tokenizer = theirs.pre_tokenizers.Whitespace()
    for tok in (trained._tokenizer, words):
        a = library.EncodingVisualizer(tok, False, lambda a: library.Annotation(*a))
        b = face.tools.EncodingVisualizer(
            face.Tokenizer.from_str(tok.to_str()), False, lambda a: face.tools.Annotation(*a)
        )
        for _ in range(max(TEXTS // 2, 1)):
            text = "".join(rng.choices(["hug", "pun", " ", "<unk>", "é", "你", "&", '"', "punk", "\n"], k=6))
            marked = []
            for label in rng.choices("xyz", k=rng.randrange(3)):
                start = rng.randrange(-2, len(text))
                marked.append((start, rng.randint(start, len(text)), label))
            assert Elements(b(text, marked)).found == Elements(a(text, marked)).found, (text, marked)
        with pytest.raises(IndexError):
            a("hug", [(0, 4, "x")])
        with pytest.raises(IndexError):
            b("hug", [(0, 4, "x")])


@pytest.mark.peers
def test_an_element_is_drawn_alone(theirs):
    library = importlib.import_module("tokenizers.tools.visualizer")
    encoding = types.SimpleNamespace(tokens=["hug", "[CLS]", "a-OOV-b"])
    for position, tokens in [(None, [1]), (0, []), (0, [0]), (1, [1, 2]), (0, [2])]:
        found = []
        for module in (library, face.tools):
            state = module.CharState(position)
            state.tokens = tokens
            html = module.EncodingVisualizer.consecutive_chars_to_html([state], "a<", encoding)
            found.append(Elements("<body>" + html).found)
        assert found[0] == found[1], (position, tokens)
