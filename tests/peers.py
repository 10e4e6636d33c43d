"""What tests against other libraries share: small models for them, made or trained, and what they say of a text."""

import io

from subword_nb.corpus.documents import TOY_COUNTS
from subword_nb.formats.sentencepiece_proto import UNKNOWN, ModelProto, Piece, write_model_proto

TOY = [w for w, n in TOY_COUNTS.items() for _ in range(n)]
BYTES = {bytes([b]): b for b in range(256)}
PLAIN = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}


# Hugging Face's library


def hf_file(model: dict, **parts) -> dict:
    "What a tokenizer.json says that has a model, and nothing else but the parts that are given."
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": model,
    } | parts


def hf_bpe(vocab: dict, merges: list, **options) -> dict:
    "The model of a tokenizer.json: BPE, with its usual options and those that are given."
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocab,
        "merges": merges,
    } | options


def hf_trained(hf, kind, texts, pre_tokenizer=None, **options):
    "A tokenizer of one of its models (BPE, WordPiece, Unigram), trained on texts."
    tok = hf.Tokenizer(getattr(hf.models, kind)())
    tok.pre_tokenizer = pre_tokenizer
    trainer = {"BPE": "BpeTrainer", "WordPiece": "WordPieceTrainer", "Unigram": "UnigramTrainer"}[kind]
    tok.train_from_iterator(texts, getattr(hf.trainers, trainer)(show_progress=False, **options))
    return tok


def hf_pieces(tok):
    "All pieces by their ids."
    return sorted(tok.get_vocab(), key=tok.get_vocab().get)


def hf_split(hf, pattern, text):
    "A text cut by a pattern."
    return [
        piece for piece, _ in hf.pre_tokenizers.Split(hf.Regex(pattern), "isolated").pre_tokenize_str(text)
    ]


# SentencePiece


def sp_file(spm, lines, **options) -> bytes:
    "The file of a model that its trainer makes of lines."
    made = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=made,
        **{"vocab_size": 100, "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 1} | options,
    )
    return made.getvalue()


def sp_trained(spm, lines, **options):
    "A model that its trainer makes of lines."
    return spm.SentencePieceProcessor(model_proto=sp_file(spm, lines, **options))


def sp_loaded(spm, proto: ModelProto):
    "A model from what its file says."
    return spm.SentencePieceProcessor(model_proto=write_model_proto(proto))


def sp_model(spm, pieces, normalizer=PLAIN, **trainer):
    """A model of an unknown piece and these: (piece, score) or (piece, score, type).

    It is a Unigram model that puts no space in front and drops none, unless the options differ."""
    return sp_loaded(
        spm, ModelProto([Piece("<unk>", 0.0, UNKNOWN), *(Piece(*p) for p in pieces)], trainer, normalizer)
    )


def sp_scores(sp) -> dict:
    "Piece → score, by their ids, without control pieces and the unknown one."
    return {
        sp.id_to_piece(i): sp.get_score(i)
        for i in range(len(sp))
        if not (sp.is_control(i) or sp.is_unknown(i))
    }


# tiktoken


def tiktoken_of(tiktoken, pattern, tokens=(), special=None):
    "An encoding of the 256 bytes, and of tokens that have the next ranks."
    return tiktoken.Encoding(
        "of a test",
        pat_str=pattern,
        mergeable_ranks=BYTES | {t: 256 + k for k, t in enumerate(tokens)},
        special_tokens=special or {},
    )
