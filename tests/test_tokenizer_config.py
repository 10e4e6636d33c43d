"""Folders of model hubs: what `tokenizer_config.json` says about calls and decoded text, with transformers as the judge."""

import json
import pickle
import random
import shutil
import warnings

import pytest

from subword_nb import Tokenizer
from subword_nb.pipeline.encoding import Padding, TokenizerConfig, Truncation
from subword_nb.formats.sentencepiece_proto import CONTROL, UNKNOWN, ModelProto, Piece, write_model_proto

TEXTS = [
    "Hello world , this isn't it . ok",
    "Hi",
    "",
    "A  longer line ! Does n't it ' s fit ? I 'm sure , we 've been",
    "naïve café 漢字 🙂\n\ttabs",
]


def word_tokenizer(**parts) -> Tokenizer:
    "A tokenizer of a few pieces, by default of whole words."
    options = (
        dict(
            algorithm="wordlevel", vocab_size=60, unk_piece="[UNK]", special_tokens=["[UNK]", "[PAD]", "</s>"]
        )
        | parts
    )
    return Tokenizer.train(
        ["the pug is n't here . yes , it 's the pug ! 've 're 'm ' ? do not"] * 3, **options
    )


def folder_of(tmp_path, tok, config=None, special_tokens_map=None):
    "A folder with a tokenizer.json and what stands beside it."
    tmp_path.mkdir(exist_ok=True)
    tok.save(tmp_path / "tokenizer.json")
    for name, said in (("tokenizer_config.json", config), ("special_tokens_map.json", special_tokens_map)):
        if said is not None:
            (tmp_path / name).write_text(json.dumps(said))
    return tmp_path


def test_calls_follow_the_folder(tmp_path):
    config = {
        "tokenizer_class": "LlamaTokenizer",
        "pad_token": {"content": "</s>"},
        "padding_side": "left",
        "truncation_side": "left",
        "model_max_length": 4,
        "model_input_names": ["input_ids"],
    }
    tok = Tokenizer.load(folder_of(tmp_path, word_tokenizer(), config))
    assert tok.config == TokenizerConfig("</s>", "left", "left", 4, ("input_ids",))
    pug, pad = tok.encode("pug")[0], tok.piece2id["</s>"]
    assert {k: v.tolist() for k, v in tok(["pug", "the pug"], padding=True).items()} == {
        "input_ids": [[pad, pug], tok.encode("the pug")]
    }
    assert tok(["the pug is here"], truncation=True)["input_ids"].tolist() == [
        tok.encode("the pug is here")[-4:]
    ]
    assert tok(["pug"], padding="max_length")["input_ids"].tolist() == [[pad] * 3 + [pug]]
    asked = tok(
        ["pug"],
        padding="max_length",
        max_length=2,
        padding_side="right",
        pad_piece="[PAD]",
        return_attention_mask=True,
    )
    assert {k: v.tolist() for k, v in asked.items()} == {
        "input_ids": [[pug, tok.piece2id["[PAD]"]]],
        "attention_mask": [[1, 0]],
    }
    assert tok.encode("the pug is here now") == word_tokenizer().encode("the pug is here now"), (
        "ids are not cut by themselves"
    )
    assert Tokenizer.load(tmp_path / "tokenizer.json").config is None


@pytest.mark.parametrize(
    "config, expected",
    [
        ({}, None),
        ({"do_lower_case": True}, None),
        (
            {"tokenizer_class": "BertTokenizer"},
            TokenizerConfig(columns=("input_ids", "token_type_ids", "attention_mask")),
        ),
        ({"tokenizer_class": "T5TokenizerFast"}, TokenizerConfig(columns=("input_ids", "attention_mask"))),
        (
            {"tokenizer_class": "XLNetTokenizer"},
            TokenizerConfig(padding_side="left", columns=("input_ids", "attention_mask")),
        ),
        ({"tokenizer_class": "FNetTokenizer"}, TokenizerConfig(columns=("input_ids", "token_type_ids"))),
        ({"model_max_length": 1000000000000000019884624838656}, None),
        ({"model_max_length": 1e30}, None),
        (
            {"model_max_length": 512.0, "clean_up_tokenization_spaces": True},
            TokenizerConfig(max_length=512, clean_up=True),
        ),
        ({"pad_token": None, "clean_up_tokenization_spaces": False}, None),
    ],
)
def test_what_a_config_says(config, expected, tmp_path):
    assert Tokenizer.load(folder_of(tmp_path, word_tokenizer(), config)).config == expected


@pytest.mark.parametrize(
    "config, message",
    [
        ({"padding_side": "Left"}, 'padding_side must be "right" or "left", got \'Left\''),
        ({"truncation_side": 1}, "truncation_side must be"),
        ({"model_max_length": "long"}, "model_max_length must be"),
        ({"model_max_length": -1}, "model_max_length must be"),
        ({"model_max_length": 1.5}, "model_max_length must be"),
        ({"model_max_length": True}, "model_max_length must be"),
        ({"pad_token": 3}, "pad_token must be a text"),
        ({"model_input_names": "input_ids"}, "model_input_names must be a list"),
    ],
)
def test_a_config_that_says_nonsense_is_refused(config, message, tmp_path):
    with pytest.raises(ValueError, match="tokenizer_config.json: " + message):
        Tokenizer.load(folder_of(tmp_path, word_tokenizer(), config))


def test_older_folders_name_the_padding_in_another_file(tmp_path):
    tok = word_tokenizer()
    assert Tokenizer.load(
        folder_of(tmp_path / "a", tok, {}, {"pad_token": "</s>"})
    ).config == TokenizerConfig("</s>")
    assert Tokenizer.load(
        folder_of(tmp_path / "b", tok, None, {"pad_token": {"content": "</s>"}})
    ).config == TokenizerConfig("</s>")
    newer = {"added_tokens_decoder": {}, "pad_token": "[PAD]"}
    assert Tokenizer.load(
        folder_of(tmp_path / "c", tok, newer, {"pad_token": "</s>"})
    ).config == TokenizerConfig("[PAD]")


def test_the_file_decides_where_the_config_is_silent(tmp_path):
    tok = word_tokenizer()
    tok.padding, tok.truncation = (
        Padding(direction="left", pad_piece="</s>", pad_id=tok.piece2id["</s>"]),
        Truncation(9, direction="left"),
    )
    found = Tokenizer.load(folder_of(tmp_path, tok, {"tokenizer_class": "T5Tokenizer"})).config
    assert (found.padding_side, found.truncation_side, found.pad_piece) == ("left", "left", None)
    assert (
        Tokenizer.load(
            folder_of(tmp_path, tok, {"padding_side": "right", "tokenizer_class": "T5Tokenizer"})
        ).config.padding_side
        == "right"
    )


def test_a_config_is_part_of_the_tokenizer_and_saving_says_what_is_lost(tmp_path):
    tok = Tokenizer.load(folder_of(tmp_path, word_tokenizer(), {"padding_side": "left", "pad_token": "</s>"}))
    assert pickle.loads(pickle.dumps(tok)).config == tok.config == TokenizerConfig("</s>", "left")
    assert tok != Tokenizer.load(tmp_path / "tokenizer.json")
    with pytest.warns(
        UserWarning,
        match=r"the settings of tokenizer_config.json .* not in the file: pad_piece='</s>', padding_side='left'; keep that file",
    ):
        tok.save(tmp_path / "again.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tokenizer.load(tmp_path / "tokenizer.json").save(tmp_path / "again.json")
    assert tok.inspect()["config"]["padding_side"] == "left"


def tidied(text: str, word_end: str, clean_up: bool) -> str:
    if word_end:
        text = text.replace(word_end, " ").strip()
    for spaced in [".", "?", "!", ","] if clean_up else ():
        text = text.replace(" " + spaced, spaced)
    if clean_up:
        text = text.replace(" ' ", "'")
        for tail in ("n't", "'m", "'s", "'ve", "'re"):
            text = text.replace(" " + tail, tail)
    return text


@pytest.mark.parametrize(
    "config",
    [
        TokenizerConfig(clean_up=True),
        TokenizerConfig(word_end="</w>"),
        TokenizerConfig(word_end="</w>", clean_up=True),
        TokenizerConfig(word_end="is"),
    ],
)
@pytest.mark.parametrize("algorithm", ["wordlevel", "bpe"])
def test_decoded_text_is_tidied_at_once_and_id_by_id(config, algorithm):
    tok = (
        word_tokenizer()
        if algorithm == "wordlevel"
        else word_tokenizer(algorithm="bpe", vocab_size=300, unk_piece=None, special_tokens=["</w>", "[PAD]"])
    )
    rng, raw = (
        random.Random(5),
        word_tokenizer()
        if algorithm == "wordlevel"
        else word_tokenizer(
            algorithm="bpe", vocab_size=300, unk_piece=None, special_tokens=["</w>", "[PAD]"]
        ),
    )
    tok.config = config
    kept = [i for i in range(len(tok.id2piece)) if algorithm == "wordlevel" or i >= 256 or chr(i).isascii()]
    for _ in range(150):
        ids = rng.choices(kept, k=rng.randrange(12))
        assert tok.decode(ids) == tidied(raw.decode(ids), config.word_end, config.clean_up)
        for skip in (False, True):
            stream = tok.stream(skip_special_tokens=skip)
            assert "".join([*map(stream.step, ids), stream.finish()]) == tok.decode(
                ids, skip_special_tokens=skip
            ), ids
    tok.config = None
    assert tok.decode(kept[:9]) == raw.decode(kept[:9])


def spm_folder(tmp_path, config):
    "A folder with a small SentencePiece model and a config."
    pieces = [
        Piece("<unk>", 0.0, UNKNOWN),
        Piece("<s>", 0.0, CONTROL),
        Piece("</s>", 0.0, CONTROL),
        Piece("▁", -3.0),
        Piece("▁hug", -2.0),
        Piece("s", -4.0),
    ]
    (tmp_path / "tokenizer.model").write_bytes(write_model_proto(ModelProto(pieces)))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tmp_path


def test_flags_for_bos_and_eos_frame_a_model_file(tmp_path):
    both = {
        "add_bos_token": True,
        "add_eos_token": True,
        "bos_token": {"content": "<s>"},
        "eos_token": "</s>",
    }
    tok = Tokenizer.load(spm_folder(tmp_path, both))
    assert (tok.encode("hugs"), tok.encode("hugs", add_special_tokens=False)) == ([1, 4, 5, 2], [4, 5])
    pair = tok.align("hug", "hugs")
    assert (pair.ids, pair.type_ids) == ([1, 4, 2, 1, 4, 5, 2], [0, 0, 0, 1, 1, 1, 1])
    assert Tokenizer.load(tmp_path, add_eos=True).encode("hug") == [4, 2], "what the caller says counts"
    assert Tokenizer.load(spm_folder(tmp_path, {"add_bos_token": True, "bos_token": None})).encode("hug") == [
        4
    ]
    assert Tokenizer.load(spm_folder(tmp_path, {"bos_token": "<s>"})).encode("hug") == [4]
    with pytest.raises(
        ValueError, match="the bos_token must be in the vocabulary where add_bos_token is true, got '<x>'"
    ):
        Tokenizer.load(spm_folder(tmp_path, {"add_bos_token": True, "bos_token": "<x>"}))


@pytest.mark.peers
@pytest.mark.parametrize("name", ["clip", "phi-3-mini", "t5-small"])
def test_a_folder_is_used_as_transformers_uses_it(name, shared_file, tmp_path):
    transformers = pytest.importorskip("transformers", reason="the peer tests need the extra 'peers'")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(shared_file(f"vocab/{name}/{file}"), tmp_path / file)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(str(tmp_path)), Tokenizer.load(tmp_path)
    for options in (
        dict(padding=True),
        dict(padding="max_length", max_length=40),
        dict(padding=True, truncation=True, max_length=5),
        dict(padding=True, truncation=True),
        dict(padding=True, pad_to_multiple_of=8),
    ):
        expected = dict(theirs(TEXTS, **options).items())
        assert {k: v.tolist() for k, v in ours(TEXTS, **options).items()} == expected, options
    assert ours(TEXTS, padding="max_length", truncation=True)["input_ids"].shape == (
        len(TEXTS),
        theirs.model_max_length,
    )
    for ids in [*theirs(TEXTS)["input_ids"], [0, 1, 2, 3, 100, 101]]:
        for skip in (False, True):
            text = theirs.decode(ids, skip_special_tokens=skip)
            assert ours.decode(ids, skip_special_tokens=skip) == text
            stream = ours.stream(skip_special_tokens=skip)
            assert "".join([*map(stream.step, ids), stream.finish()]) == text
    alone = pytest.importorskip("tokenizers").Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for ids in theirs(TEXTS)["input_ids"]:
        assert Tokenizer.load(tmp_path / "tokenizer.json").decode(ids) == alone.decode(
            ids, skip_special_tokens=False
        )
