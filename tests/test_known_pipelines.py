"""The pipelines of well-known models, put together with the Hugging Face library's components on small vocabularies,
saved there and loaded here: ids, pieces, offsets, masks, pairs, limits and decoded texts are those of that library.
"""

import json
from functools import lru_cache

import pytest
import seeds
from seeds import fresh
from tests.pipeline.test_align import compare, generated, same

from subword_nb import Tokenizer
from subword_nb.text.charsmap import build_charsmap

LINES = [
    "the hugging face course is about tokenization",
    "Hello, World! It's 2024 and I'll see you at 10:30; they've 1,000 apples.",
    "Héllo wörld, naïve café! ÉCOLE Ångström",
    "def f(x):\n    return x['a'] + 12345  # ok\n\tif (x) { y }\r\n",
    "你好世界，我们在学习。 日本語のテキスト カタカナ",
    "привет мир, שלום עולם, مرحبا",
    "한국어 안녕 देवनागरी ไทย",
    "e\u0301a\u0308 ﬁ Ⅳ 🤗 ok",
    "don't can't HELLO hello isn't",
    "user_name@mail.com https://a.b/c?d=e",
    "the cat sat on the mat and the dog sat on the log",
]
LATIN = [chr(c) for c in range(33, 127)] + list("éàüñçøΩжйшש中文日本語한국กक。，！、")
BYTES = [f"<0x{b:02X}>" for b in range(256)]

GPT2_LIKE = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LOW, ENDING = (
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
)
HEAD = r"[^\r\n\p{L}\p{N}]?"
O200K = "|".join(
    [
        f"{HEAD}{UP}*{LOW}+{ENDING}",
        f"{HEAD}{UP}+{LOW}*{ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
TEKKEN = "|".join(
    [
        f"{HEAD}{UP}*{LOW}+",
        f"{HEAD}{UP}+{LOW}*",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
TEKKEN_OLD = "|".join(
    [
        HEAD + r"((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+",
        HEAD + r"((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
NO_HAN = [x[:-1] + r"&&[^\p{Han}]]" for x in (UP, LOW)]
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        f"{HEAD}{NO_HAN[0]}*{NO_HAN[1]}+{ENDING}",
        f"{HEAD}{NO_HAN[0]}+{NO_HAN[1]}*{ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
DEEPSEEK_LETTERS = (
    r"\s?[A-Za-z"
    + "".join(
        "-".join(chr(int(x, 16)) for x in r.split("-"))
        for r in [
            "b5",
            "c0-d6",
            "d8-f6",
            "f8-1ba",
            "1bc-1bf",
            "1c4-293",
            "295-2af",
            "370-373",
            "376",
            "377",
            "37b-37d",
            "37f",
            "386",
            "388-38a",
            "38c",
            "38e-3a1",
            "3a3-3f5",
            "3f7-481",
            "48a-52f",
            "531-556",
            "10a0-10c5",
            "13a0-13f5",
            "13f8-13fd",
            "1c90-1cba",
            "1cbd-1cbf",
            "1d00-1d2b",
            "1d6b-1d77",
            "1d79-1d9a",
            "1e00-1f15",
            "1f18-1f1d",
            "1f20-1f45",
            "1f48-1f4d",
            "1f50-1f57",
            "1f59",
            "1f5b",
            "1f5d",
            "1f5f-1f7d",
            "1f80-1fb4",
            "1fb6-1fbc",
            "1fbe",
            "1fc2-1fc4",
            "1fc6-1fcc",
            "1fd0-1fd3",
            "1fd6-1fdb",
            "1fe0-1fec",
            "1ff2-1ff4",
            "1ff6-1ffc",
            "2102",
            "2107",
            "210a-2113",
            "2115",
            "2119-211d",
            "2124",
            "2126",
            "2128",
            "212a-212d",
            "212f-2134",
            "2139",
            "213c-213f",
            "2145-2149",
            "214e",
            "2183",
            "2184",
            "2c00-2c7b",
            "2c7e-2ce4",
            "2ceb-2cee",
            "2cf2",
            "2cf3",
            "a640-a66d",
            "a680-a69b",
            "a722-a76f",
            "a771-a787",
            "a78b-a78e",
            "ab70-abbf",
            "fb00-fb06",
            "fb13-fb17",
            "ff21-ff3a",
            "ff41-ff5a",
            "10400-1044f",
            "104b0-104d3",
            "104d8-104fb",
            "10c80-10cb2",
            "10cc0-10cf2",
            "118a0-118df",
            "1e900-1e943",
        ]
    )
    + "]+"
)
DEEPSEEK = ["[\r\n]", DEEPSEEK_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", "[一-龥ࠀ-一가-\ud7ff]+"]
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+"]
DEEPSEEK_V3 = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]
YOUTU = ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+", O200K]
SMILES = (
    r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
)


def lib():
    return pytest.importorskip("tokenizers")


def seq(parts):
    "One component, or a sequence of several."
    kind = lib().normalizers if isinstance(parts[0], lib().normalizers.Normalizer) else lib().pre_tokenizers
    return kind.Sequence(list(parts))


def split(pattern, behavior="isolated", invert=False, text=False):
    return lib().pre_tokenizers.Split(pattern if text else lib().Regex(pattern), behavior, invert)


def pattern_bytes(*patterns, digits=False, behavior="isolated", invert=False):
    "Splits by patterns, then bytes as characters."
    p = lib().pre_tokenizers
    return p.Sequence(
        [
            *(split(x, behavior, invert) for x in patterns),
            *([p.Digits(True)] if digits else []),
            p.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def token(content, **flags):
    return lib().AddedToken(content, **flags)


def mask(content, **flags):
    "A mask that takes the space before it."
    return token(content, lstrip=True, normalized=flags.pop("normalized", False), special=True, **flags)


@lru_cache(None)
def charsmap():
    "A character map like nmt_nfkc's, small."
    rules = {
        "\t": " ",
        "\n": " ",
        "\r": " ",
        "\u00a0": " ",
        "\u3000": " ",
        "\u2003": " ",
        "\u200b": " ",
        "\u200e": "",
        "\x01": "",
        "\x07": "",
        "\x1b": "",
        "\x7f": "",
        "\u00ad": "",
        "ﬁ": "fi",
        "ﬀ": "ff",
        "Ⅳ": "IV",
        "①": "1",
        "½": "1⁄2",
        "㎏": "kg",
        "℃": "°C",
        "™": "TM",
        "e\u0301": "é",
        "a\u0308": "ä",
        "\u1112\u1161\u11ab": "한",
        "１": "1",
        "２": "2",
        "Ａ": "A",
        "Ｂ": "B",
        "ﾊﾟ": "パ",
        "！": "!",
        "，": ",",
        "ﻻ": "لا",
        "…": "...",
    }
    return build_charsmap(rules)


@lru_cache(None)
def learned_bpe(normalizer, pre_tokenizer, size=360, **options):
    "Pieces and merges of BPE learned on a few lines after a normalizer and a pre-tokenizer, which are given as functions."
    t = lib()
    tok = t.Tokenizer(
        t.models.BPE(
            **(
                {"end_of_word_suffix": options["end_of_word_suffix"]}
                if "end_of_word_suffix" in options
                else {}
            )
        )
    )
    if normalizer:
        tok.normalizer = normalizer()
    if pre_tokenizer:
        tok.pre_tokenizer = pre_tokenizer()
    tok.train_from_iterator(LINES * 3, t.trainers.BpeTrainer(vocab_size=size, show_progress=False, **options))
    model = json.loads(tok.to_str())["model"]
    return tuple(sorted(model["vocab"], key=model["vocab"].get)), tuple(map(tuple, model["merges"]))


@lru_cache(None)
def byte_bpe():
    "Byte-level pieces and merges; the splits of the pipelines differ, and the pieces fit all of them."
    t = lib()
    tok = t.Tokenizer(t.models.BPE())
    tok.pre_tokenizer = t.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.train_from_iterator(
        [*LINES * 3, *("  " * k for k in range(9)), "\n\n\n", "123 4567", " 你好"],
        t.trainers.BpeTrainer(
            vocab_size=560,
            initial_alphabet=sorted(t.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    model = json.loads(tok.to_str())["model"]
    return tuple(sorted(model["vocab"], key=model["vocab"].get)), tuple(map(tuple, model["merges"]))


def piece_ids(*groups):
    "Pieces numbered in order; one that comes again keeps its first id."
    ids = {}
    for group in groups:
        for piece in group:
            ids.setdefault(piece, len(ids))
    return ids


def level(pre=None, norm=None, head=(), tail=(), specials=(), tokens=(), post=None, decoder=None, **model):
    "A byte-level BPE tokenizer."
    t = lib()
    pieces, merges = byte_bpe()
    tok = t.Tokenizer(t.models.BPE(piece_ids(head, pieces, tail), list(merges), **model))
    tok.pre_tokenizer = pre or t.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return finished(tok, norm, specials, tokens, post, decoder or t.decoders.ByteLevel())


def finished(tok, norm, specials, tokens, post, decoder):
    "The rest of a pipeline; special tokens are added before the others, and the template knows their ids."
    if norm is not None:
        tok.normalizer = norm
    if specials:
        tok.add_special_tokens(list(specials))
    if tokens:
        tok.add_tokens(list(tokens))
    if post is not None:
        tok.post_processor = (
            post(tok) if callable(post) and not hasattr(post, "num_special_tokens_to_add") else post
        )
    if decoder is not None:
        tok.decoder = decoder
    return tok


def template(single, pair=None):
    "A template whose ids are looked up."

    def made(tok):
        names = {
            w.rpartition(":")[0] if w[-2:-1] == ":" else w
            for w in f"{single} {pair or ''}".split()
            if not w.startswith("$")
        }
        return lib().processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=[(n, tok.token_to_id(n)) for n in sorted(names)]
        )

    return made


def roberta(sep="</s>", cls="<s>", trim=True, prefix=False):
    return lambda tok: lib().processors.RobertaProcessing(
        (sep, tok.token_to_id(sep)), (cls, tok.token_to_id(cls)), trim, prefix
    )


def bert_processing(tok):
    return lib().processors.BertProcessing(
        ("[SEP]", tok.token_to_id("[SEP]")), ("[CLS]", tok.token_to_id("[CLS]"))
    )


def after_bytes(single, pair=None):
    "Llama 3's: bytes first, then a template."
    return lambda tok: lib().processors.Sequence(
        [lib().processors.ByteLevel(True, trim_offsets=False), template(single, pair)(tok)]
    )


def no_trim(tok):
    return lib().processors.ByteLevel(trim_offsets=False)


ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")


def wordpiece(
    lower,
    chinese=True,
    accents=None,
    clean=True,
    specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    post="bert",
    tokens=(),
    prefix="##",
    unused=3,
    norm=None,
    pre=None,
    most=100,
):
    t = lib()
    n = norm or t.normalizers.BertNormalizer(
        clean_text=clean, handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower
    )
    pieces = learned_wordpiece(lower)
    head = [specials[0], *(f"[unused{k}]" for k in range(unused)), *specials[1:]]
    tok = t.Tokenizer(
        t.models.WordPiece(
            piece_ids(head, pieces),
            unk_token=specials[1],
            max_input_chars_per_word=most,
            continuing_subword_prefix=prefix,
        )
    )
    tok.pre_tokenizer = pre or t.pre_tokenizers.BertPreTokenizer()
    cls, sep = specials[2], specials[3]
    ready = {
        "bert": template(f"{cls}:0 $A:0 {sep}:0", f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1"),
        "mpnet": template(f"{cls}:0 $A:0 {sep}:0", f"{cls}:0 $A:0 {sep}:0 {sep}:0 $B:1 {sep}:1"),
        "funnel": template(f"{cls}:2 $A:0 {sep}:0", f"{cls}:2 $A:0 {sep}:0 $B:1 {sep}:1"),
        "splinter": template(f"{cls}:0 $A:0 {sep}:0", f"{cls}:0 $A:0 [QUESTION] . {sep}:0 $B:1 {sep}:1"),
        "old": bert_processing,
    }
    return finished(tok, n, specials, tokens, ready[post], t.decoders.WordPiece(prefix=prefix))


@lru_cache(None)
def learned_wordpiece(lower):
    t = lib()
    tok = t.Tokenizer(t.models.WordPiece(unk_token="[UNK]"))
    tok.normalizer, tok.pre_tokenizer = (
        t.normalizers.BertNormalizer(lowercase=lower),
        t.pre_tokenizers.BertPreTokenizer(),
    )
    tok.train_from_iterator(LINES * 3, t.trainers.WordPieceTrainer(vocab_size=380, show_progress=False))
    return tuple(sorted(tok.get_vocab(), key=tok.get_vocab().get))


@lru_cache(None)
def learned_unigram(size=260, lower=False):
    t = lib()
    tok = t.Tokenizer(t.models.Unigram())
    tok.normalizer = t.normalizers.Sequence(
        [t.normalizers.NFKC(), *([t.normalizers.Lowercase()] if lower else [])]
    )
    tok.pre_tokenizer = t.pre_tokenizers.Metaspace()
    tok.train_from_iterator(
        LINES * 3,
        t.trainers.UnigramTrainer(
            vocab_size=size, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
        ),
    )
    return tuple((p, s) for p, s in json.loads(tok.to_str())["model"]["vocab"] if p != "<unk>")


def unigram(
    head,
    tail=(),
    norm="spm",
    pre=None,
    unk="<unk>",
    specials=(),
    tokens=(),
    post=None,
    decoder=None,
    byte_fallback=False,
    lower=False,
    extra=(),
):
    "A SentencePiece Unigram model as converted; head and tail hold control pieces."
    t = lib()
    known = {p for p, _ in (*head, *tail)}
    vocab = [*head, *(x for x in (*learned_unigram(lower=lower), *extra) if x[0] not in known), *tail]
    tok = t.Tokenizer(
        t.models.Unigram(vocab, unk_id=[p for p, _ in vocab].index(unk), byte_fallback=byte_fallback)
    )
    n = t.normalizers
    if norm == "spm":
        norm = n.Sequence(
            [n.Precompiled(charsmap()), n.Strip(left=False, right=True), n.Replace(t.Regex(" {2,}"), "▁")]
        )
    if norm == "old":
        norm = n.Sequence([n.Precompiled(charsmap()), n.Replace(t.Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre or t.pre_tokenizers.Metaspace()
    return finished(tok, norm, specials, tokens, post, decoder or t.decoders.Metaspace())


def zeros(*pieces):
    return [(p, 0.0) for p in pieces]


def xlm_roberta(tail=("<mask>",), **options):
    options = (
        dict(
            norm="spm",
            specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>")],
            post=template("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
        )
        | options
    )
    return unigram(zeros("<s>", "<pad>", "</s>", "<unk>"), zeros(*tail), **options)


def _spaces():
    return lib().normalizers.Replace(" ", "▁")


def llama_bpe(
    norm="legacy",
    pre=None,
    head=("<unk>", "<s>", "</s>"),
    tail=(),
    specials=None,
    tokens=(),
    post=None,
    decoder="strip",
    bytes=BYTES,
    unk="<unk>",
    fuse=True,
    fallback=True,
):
    "A SentencePiece BPE model as converted."
    t = lib()
    n, d = t.normalizers, t.decoders
    pieces, merges = learned_bpe(_with_mark, None, 420)
    runs = ["▁▁", "▁▁▁▁", "\n\n"]
    more = [("▁", "▁"), ("▁▁", "▁▁"), ("\n", "\n")]
    ids = piece_ids(head, bytes, pieces, ["\n", "\t"], runs, tail)
    tok = t.Tokenizer(
        t.models.BPE(ids, [*more, *merges], unk_token=unk, fuse_unk=fuse, byte_fallback=fallback)
    )
    norm = (
        {"legacy": lambda: n.Sequence([n.Prepend("▁"), _spaces()]), "spaces": _spaces, None: lambda: None}[
            norm
        ]()
        if norm is None or isinstance(norm, str)
        else norm
    )
    if pre is not None:
        tok.pre_tokenizer = pre
    plain = [d.Replace("▁", " "), d.ByteFallback(), d.Fuse()]
    decoder = (
        {"strip": lambda: d.Sequence([*plain, d.Strip(" ", 1, 0)]), "plain": lambda: d.Sequence(plain)}[
            decoder
        ]()
        if isinstance(decoder, str)
        else decoder
    )
    return finished(
        tok,
        norm,
        specials if specials is not None else [token(x, normalized=False, special=True) for x in head],
        tokens,
        post,
        decoder,
    )


def _with_mark():
    n = lib().normalizers
    return n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁"), n.Replace(lib().Regex("(?=▁)"), "")])


def metaspace_first(**options):
    return lib().pre_tokenizers.Metaspace("▁", options.pop("scheme", "first"), options.pop("split", False))


def gemma(pre=True, lower=False, template_=True, bytes=BYTES, tokens=(), norm="spaces", pattern=None):
    t = lib()
    n = norm if not lower else t.normalizers.Sequence([t.normalizers.Lowercase(), _spaces()])
    extra = [
        token("<mask>", normalized=False),
        token("<2mass>", normalized=False),
        *(token(f"<unused{k}>", normalized=False) for k in range(4)),
        *(token("\n" * k, normalized=False) for k in range(1, 6)),
        *(token("▁" * k, normalized=False) for k in range(2, 6)),
        token("<table>", normalized=False),
        token("<b>", normalized=False),
        token("</b>", normalized=False),
        *tokens,
    ]
    specials = [
        token(x, normalized=False, special=True)
        for x in ("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>")
    ]
    splitter = split(pattern) if pattern else split(" ", "merged_with_previous", text=True)
    return llama_bpe(
        n,
        splitter if pre else None,
        ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"),
        ("<start_of_turn>", "<end_of_turn>", "<2mass>"),
        specials,
        extra,
        template("<bos> $A", "<bos> $A <bos>:1 $B:1") if template_ else None,
        "plain",
        bytes,
    )


def helium():
    t = lib()
    n, d = t.normalizers, t.decoders
    tok = unigram(
        zeros("<unk>", "<s>", "</s>", "<pad>"),
        zeros("\n"),
        norm=n.Sequence([n.Prepend(" "), n.Replace(" ", "▁")]),
        pre=t.pre_tokenizers.Sequence([split("\n", "contiguous", text=True)]),
        byte_fallback=True,
        extra=[(b, -20.0) for b in BYTES if b != "<0x0A>"],
        tokens=[
            *(
                token(x, normalized=False, special=True, single_word=True)
                for x in ("<unk>", "<s>", "</s>", "<pad>")
            ),
            token("\n", normalized=False),
        ],
        post=template("<s> $A", "<s> $A <s> $B"),
        decoder=d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]),
    )
    tok.enable_padding(pad_id=3, pad_token="<pad>")
    return tok


def suffix_bpe(norm, pre, specials, post=None, unk="<unk>", tokens=(), head=(), decoder=None):
    "BPE whose words end in a mark."
    t = lib()
    pieces, merges = learned_bpe(_lower, _bert_split, 420, end_of_word_suffix="</w>")
    tok = t.Tokenizer(
        t.models.BPE(
            piece_ids(head, pieces, specials), list(merges), unk_token=unk, end_of_word_suffix="</w>"
        )
    )
    tok.pre_tokenizer = pre
    return finished(tok, norm, specials, tokens, post, decoder or t.decoders.BPEDecoder("</w>"))


def _lower():
    return lib().normalizers.Lowercase()


def _bert_split():
    return lib().pre_tokenizers.BertPreTokenizer()


def clip(pattern):
    t = lib()
    n, p = t.normalizers, t.pre_tokenizers
    chars = sorted(p.ByteLevel.alphabet())
    pieces, merges = learned_bpe(_lower, _clip_split, 500, end_of_word_suffix="</w>")
    tok = t.Tokenizer(
        t.models.BPE(
            piece_ids(chars, [c + "</w>" for c in chars], pieces, ["<|startoftext|>", "<|endoftext|>"]),
            list(merges),
            unk_token="<|endoftext|>",
            continuing_subword_prefix="",
            end_of_word_suffix="</w>",
        )
    )
    tok.pre_tokenizer = p.Sequence([split(pattern, "removed", True), p.ByteLevel(add_prefix_space=False)])
    specials = [
        token("<|startoftext|>", normalized=True, special=True),
        token("<|endoftext|>", normalized=False, special=True),
    ]
    return finished(
        tok,
        n.Sequence([n.NFC(), n.Replace(t.Regex(r"\s+"), " "), n.Lowercase()]),
        specials,
        (),
        roberta("<|endoftext|>", "<|startoftext|>", False, False),
        t.decoders.ByteLevel(),
    )


def _clip_split():
    p = lib().pre_tokenizers
    return p.Sequence([p.WhitespaceSplit(), p.ByteLevel(add_prefix_space=False)])


def words(vocab, unk, norm, pre, specials, post=None, decoder=None, tokens=()):
    "A model of whole words or characters."
    t = lib()
    tok = t.Tokenizer(t.models.WordLevel(piece_ids(vocab), unk_token=unk))
    if pre is not None:
        tok.pre_tokenizer = pre
    return finished(tok, norm, specials, tokens, post, decoder)


def protein_bpe():
    "ESM C: letters as BPE without a single merge, and no pre-tokenizer."
    t = lib()
    specials = ["<cls>", "<pad>", "<eos>", "<unk>"]
    tok = t.Tokenizer(
        t.models.BPE(piece_ids(specials, "LAGVSERTIDPKQNFYMHWCXBUZO.-|", ["<mask>"]), [], unk_token="<unk>")
    )
    return finished(tok, None, [*specials, "<mask>", "|"], (), template("<cls> $A <eos>"), None)


def dna_bpe():
    t = lib()
    tok = t.Tokenizer(
        t.models.BPE(
            piece_ids(
                ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"],
                "ACGTthecaosn",
                ["AC", "GT", "ACGT", "th", "the"],
            ),
            [("A", "C"), ("G", "T"), ("AC", "GT"), ("t", "h"), ("th", "e")],
            unk_token="[UNK]",
        )
    )
    tok.pre_tokenizer = t.pre_tokenizers.Whitespace()
    return finished(
        tok,
        None,
        ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"],
        (),
        template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
        None,
    )


def albert(
    lower=True,
    keep_accents=False,
    order="albert",
    post=None,
    specials=("[CLS]", "[SEP]", "<unk>", "<pad>"),
    mask_name="[MASK]",
    head=("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
):
    t = lib()
    n = t.normalizers
    steps, squeeze = [n.Replace("``", '"'), n.Replace("''", '"')], n.Replace(t.Regex(" {2,}"), " ")
    steps += [squeeze] if order == "rembert" else []
    steps += [] if keep_accents else [n.NFKD(), n.StripAccents()]
    steps += (
        ([n.Lowercase()] if lower else [])
        + [n.Precompiled(charsmap())]
        + ([squeeze] if order != "rembert" else [])
    )
    return unigram(
        zeros(*head),
        norm=n.Sequence(steps),
        specials=[*specials, mask(mask_name)],
        post=post or template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"),
        lower=lower,
        extra=[("1,", -108.0), ("▁10,", -109.5)],
    )


def t5(extra=12, norm="spm", unk="<unk>", pre=None, **options):
    names = [f"<extra_id_{k}>" for k in range(extra - 1, -1, -1)]
    return unigram(
        zeros("<pad>", "</s>", "<unk>"),
        zeros(*names),
        norm,
        pre,
        specials=[
            "</s>",
            "<unk>",
            "<pad>",
            *(token(x, normalized=False, special=True) for x in reversed(names)),
        ],
        post=template("$A </s>", "$A </s> $B </s>"),
        **options,
    )


def siglip():
    t = lib()
    n = t.normalizers
    steps = n.Sequence(
        [
            n.Lowercase(),
            n.Replace(t.Regex(r"[!\"\#\$%\&'\(\)\*\+,\-\.:;=\?@\[\\\]\^_`\{\|\}\~]"), ""),
            n.Replace(t.Regex(r"\s+"), " "),
            n.Strip(),
            n.Precompiled(charsmap()),
            n.Strip(False, True),
            n.Replace(t.Regex(" {2,}"), "▁"),
        ]
    )
    tok = unigram(
        zeros("<pad>", "</s>", "<unk>"),
        norm=steps,
        specials=["</s>", "<unk>"],
        post=template("$A </s>", "$A </s> $B </s>"),
        lower=True,
    )
    tok.enable_padding(length=20, pad_id=1, pad_token="</s>")
    tok.enable_truncation(20)
    return tok


def deberta_v2(by_punctuation=False, lower=False):
    t = lib()
    n, p = t.normalizers, t.pre_tokenizers
    norm = n.Sequence(
        [
            *([n.Lowercase()] if lower else []),
            n.Strip(),
            n.Precompiled(charsmap()),
            n.Replace(t.Regex(" {2,}"), " "),
        ]
    )
    pre = p.Sequence([*([p.Punctuation("isolated")] if by_punctuation else []), p.Metaspace("▁", "always")])
    return unigram(
        zeros("[PAD]", "[CLS]", "[SEP]", "[UNK]"),
        norm=norm,
        pre=pre,
        unk="[UNK]",
        specials=[
            "[PAD]",
            "[CLS]",
            "[SEP]",
            token("[UNK]", normalized=True, special=True),
            token("[MASK]", special=True),
        ],
        lower=lower,
        post=template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"),
    )


def wordlevel_ctc(pattern, text):
    t = lib()
    vocab = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ", *"etaonihsrdlu"]
    return words(
        vocab,
        "<unk>",
        t.normalizers.Replace(" ", "|"),
        split(pattern, text=text),
        [token(x, normalized=True, special=True) for x in vocab[:4]],
        None,
        t.decoders.CTC(pad_token="<pad>", word_delimiter_token="|", cleanup=True),
    )


def vits():
    "Speech synthesis: letters that it knows, and a blank between them, put there by a pattern that matches nothing."
    t = lib()
    n = t.normalizers
    steps = n.Sequence(
        [
            n.Lowercase(),
            n.Replace(t.Regex("[^abcdefghijklmnopqrstuvwxyz' \\-]"), ""),
            n.Strip(),
            n.Replace(t.Regex("(?=.)|(?<!^)$"), "k"),
        ]
    )
    return words(
        ["k", *"abcdefghij", *"lmnopqrstuvwxyz' -", "<unk>"], "<unk>", steps, split("", text=True), ["<unk>"]
    )


def nougat():
    t = lib()
    p = t.pre_tokenizers
    pre = p.Sequence(
        [
            split("SPL1T-TH1S-Pl3A5E", "removed", text=True),
            p.Digits(True),
            split(r"[\(\)\[\]\{\}]|([!\"#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*"),
            split("\n", text=True),
            p.ByteLevel(add_prefix_space=False),
        ]
    )
    tok = level(
        pre,
        t.normalizers.NFKC(),
        ROBERTA,
        ["[START_REF]"],
        [*ROBERTA, "[START_REF]", "[IMAGE]", "[END_SUP]"],
        post=template("<s>:0 $A:0 </s>:0", "$A:0 $B:1"),
        decoder=t.decoders.ByteLevel(),
    )
    tok.enable_truncation(40)
    tok.enable_padding(length=40, pad_id=1, pad_token="<pad>")
    return tok


def falcon():
    p = lib().pre_tokenizers
    return p.Sequence(
        [
            p.Punctuation("contiguous"),
            p.ByteLevel(add_prefix_space=False),
            p.Digits(False),
            split("[0-9][0-9][0-9]"),
        ]
    )


def starcoder():
    p = lib().pre_tokenizers
    return p.Sequence([p.Digits(True), p.ByteLevel(add_prefix_space=False)])


def words_then_marks(**options):
    p = lib().pre_tokenizers
    return p.Sequence([p.WhitespaceSplit(), p.Metaspace("▁", options.get("scheme", "always"))])


def indents(n=12):
    return [token(" " * k, normalized=True) for k in range(n, 1, -1)]


def reserved(*names):
    return [token(n, normalized=False, special=True) for n in names]


def nfc():
    return lib().normalizers.NFC()


def pad(**options):
    return lambda tok: (tok.enable_padding(**options), tok)[1]


def limited(
    tok, size, pad_id=0, pad_token="[PAD]", side="right", stride=0, strategy="longest_first", **padding
):
    "With the truncation and padding blocks that many published files carry."
    tok.enable_truncation(size, stride=stride, strategy=strategy)
    tok.enable_padding(direction=side, pad_id=pad_id, pad_token=pad_token, **padding)
    return tok


END = "<|endoftext|>"
CHAT = ("<|im_start|>", "<|im_end|>")
ROB = dict(head=ROBERTA, tail=["<mask>"])


def families():
    "Name of a model → a function that makes its tokenizer."
    t = lib()
    n, p, d = t.normalizers, t.pre_tokenizers, t.decoders

    def prefix():
        return p.ByteLevel(add_prefix_space=True)

    def plain():
        return p.ByteLevel(add_prefix_space=False)

    def rob(**o):
        return level(plain(), specials=[*ROBERTA, mask("<mask>")], **ROB, **({"post": roberta()} | o))

    return {
        # byte-level BPE
        "gpt2": lambda: level(plain(), tail=[END], specials=[END], post=no_trim),
        "gpt2 trimmed": lambda: level(
            plain(), tail=[END], specials=[END], post=lambda tok: t.processors.ByteLevel(trim_offsets=True)
        ),
        "gpt2 prefix space": lambda: level(
            prefix(), tail=[END], specials=[END], post=lambda tok: t.processors.ByteLevel(trim_offsets=True)
        ),
        "dialogpt": lambda: level(
            plain(), tail=[END], specials=[token(END, normalized=True, special=True)], post=no_trim
        ),
        "roberta": rob,
        "bart": lambda: rob(tokens=[]),
        "bart normalized specials": lambda: level(
            plain(),
            specials=[token(x, normalized=True, special=True) for x in ROBERTA]
            + [mask("<mask>", normalized=True)],
            post=roberta(),
            **ROB,
        ),
        "longformer": lambda: limited(rob(), 30, 1, "<pad>"),
        "roberta prefix": lambda: level(
            prefix(), specials=[*ROBERTA, mask("<mask>")], post=roberta(prefix=True), **ROB
        ),
        "roberta without trim": lambda: rob(post=roberta(trim=False)),
        "codet5": lambda: rob(
            tokens=[token(f"<extra_id_{k}>", lstrip=True, normalized=False, special=True) for k in range(4)]
        ),
        "codebert": lambda: level(
            plain(),
            specials=[
                *(token(x, normalized=True, special=True) for x in ROBERTA),
                mask("<mask>", normalized=True),
            ],
            post=roberta(),
            **ROB,
        ),
        "luke": lambda: level(
            plain(),
            specials=[*ROBERTA, mask("<mask>"), token("<ent>", special=True), token("<ent2>", special=True)],
            post=roberta(),
            **ROB,
        ),
        "markuplm": lambda: level(
            plain(),
            specials=[*ROBERTA, "<mask>"],
            post=template("<s> $A </s>", "<s> $A </s> $B </s>"),
            unk_token="<unk>",
            **ROB,
        ),
        "deberta v1": lambda: level(
            plain(),
            head=["[CLS]", "[PAD]", "[SEP]", "[UNK]"],
            tail=["[MASK]"],
            specials=["[CLS]", "[PAD]", "[SEP]", "[UNK]", mask("[MASK]", normalized=True)],
            post=template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"),
        ),
        "blenderbot": lambda: level(
            prefix(),
            specials=[*ROBERTA, mask("<mask>", normalized=True)],
            post=lambda tok: t.processors.TemplateProcessing(
                single="$A:0 </s>:0", special_tokens=[("</s>", tok.token_to_id("</s>"))]
            ),
            **ROB,
        ),
        "opt": lambda: level(
            plain(),
            head=ROBERTA,
            specials=[token(x, normalized=True, special=True) for x in ROBERTA],
            post=template("</s> $A", "</s> $A </s>:1 $B:1"),
        ),
        "codegen": lambda: level(
            plain(),
            tail=[END],
            specials=[END],
            tokens=[*indents(), *(token("\t" * k, normalized=True) for k in range(9, 1, -1))],
            post=no_trim,
        ),
        "phi-1, phi-2": lambda: level(
            plain(),
            tail=[END],
            specials=[token(END, special=True)],
            tokens=[*indents(31), *(token("\t" * k, normalized=True) for k in range(9, 1, -1))],
            post=no_trim,
        ),
        "santacoder": lambda: level(
            starcoder(),
            tail=[END],
            specials=[END, "<fim-prefix>", "<fim-middle>", "<fim-suffix>", "<fim-pad>"],
            post=no_trim,
        ),
        "starcoder, granite": lambda: level(
            starcoder(),
            head=[END, "<fim_prefix>", "<fim_middle>", "<reponame>"],
            specials=[END, "<fim_prefix>", "<fim_middle>", "<reponame>"],
            unk_token=END,
            post=None,
        ),
        "smollm": lambda: level(
            starcoder(), head=[END, *CHAT], specials=[END, *CHAT, "<repo_name>"], unk_token=END
        ),
        "gpt-neox, pythia": lambda: level(
            plain(), nfc(), [END, "<|padding|>"], (), [END, "<|padding|>"], indents(25), no_trim
        ),
        "gpt-neox trimmed": lambda: level(
            p.ByteLevel(add_prefix_space=False, trim_offsets=True),
            nfc(),
            [END, "<|padding|>"],
            (),
            reserved(END, "<|padding|>"),
            indents(25),
            lambda tok: t.processors.ByteLevel(False, trim_offsets=True),
        ),
        "gpt-neox template": lambda: level(
            plain(), nfc(), [END], (), [END], (), template("$A:0", "$A:0 $B:1")
        ),
        "olmo": lambda: level(
            plain(),
            nfc(),
            ["<|padding|>"],
            (),
            reserved("<|padding|>", END),
            [
                token("|||IP_ADDRESS|||", normalized=True),
                token("|||EMAIL_ADDRESS|||", normalized=True),
                *indents(24),
            ],
            template("$A", "$A $B"),
        ),
        "olmo 2": lambda: level(
            pattern_bytes(LLAMA3),
            tail=[END],
            specials=[END, "<|fim_prefix|>", "<|pad|>"],
            tokens=[token("|||PHONE_NUMBER|||", normalized=False)],
        ),
        "mpt": lambda: level(plain(), nfc(), [END, "<|padding|>"], (), [END, "<|padding|>"], indents(24)),
        "stablelm": lambda: level(
            plain(), nfc(), [END], (), [END], [token("  ", normalized=True), *indents(5)], no_trim
        ),
        "stablelm 2": lambda: level(
            pattern_bytes(LLAMA3), nfc(), tail=[END], specials=reserved(END, *CHAT, "<|reg0|>"), post=no_trim
        ),
        "modernbert": lambda: level(
            plain(),
            nfc(),
            (),
            (),
            ["[UNK]", "[CLS]", "[SEP]", "[PAD]", mask("[MASK]"), END, "<|padding|>"],
            [
                *indents(24),
                token("|||IP_ADDRESS|||", normalized=True),
                *(token(f"[unused{k}]", normalized=True) for k in range(5)),
            ],
            template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0"),
        ),
        "bloom": lambda: level(
            pattern_bytes(BLOOM),
            head=["<unk>", "<s>", "</s>", "<pad>"],
            specials=["<unk>", "<s>", "</s>", "<pad>"],
            post=no_trim,
        ),
        "bloom trimmed": lambda: level(
            pattern_bytes(BLOOM),
            head=["<unk>"],
            specials=["<unk>"],
            post=lambda tok: t.processors.ByteLevel(True, trim_offsets=True),
        ),
        "falcon": lambda: level(
            falcon(),
            head=[">>TITLE<<", ">>ABSTRACT<<"],
            tail=[END],
            specials=reserved(">>TITLE<<", ">>ABSTRACT<<", END),
        ),
        "falcon 3": lambda: level(
            p.Sequence([p.Punctuation("contiguous"), p.Digits(True), p.ByteLevel(add_prefix_space=False)]),
            specials=reserved(END),
        ),
        "qwen": lambda: level(
            pattern_bytes(QWEN2),
            nfc(),
            specials=reserved(END, *CHAT),
            tokens=[
                token("<tool_call>", normalized=False),
                token("</tool_call>", normalized=False),
                token("<think>", normalized=False),
            ],
            post=no_trim,
        ),
        "qwen 3.5": lambda: level(pattern_bytes(QWEN35), nfc(), specials=reserved(END, *CHAT)),
        "llama 3": lambda: level(
            pattern_bytes(LLAMA3),
            specials=reserved(
                "<|begin_of_text|>", "<|eot_id|>", *(f"<|reserved_special_token_{k}|>" for k in range(4))
            ),
            post=after_bytes("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1"),
            ignore_merges=True,
        ),
        "llama 3 template": lambda: level(
            pattern_bytes(LLAMA3),
            specials=reserved("<|begin_of_text|>", "<|eot_id|>"),
            post=template("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1"),
            ignore_merges=True,
        ),
        "llama 4": lambda: level(
            pattern_bytes(O200K),
            specials=reserved("<|begin_of_text|>", "<|image|>"),
            post=after_bytes("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1"),
            ignore_merges=True,
        ),
        "gpt-4, dbrx": lambda: level(pattern_bytes(CL100K), specials=[END, "<|fim_prefix|>"]),
        "phi-4": lambda: level(
            pattern_bytes(CL100K, behavior="removed", invert=True),
            specials=[
                token(END, lstrip=True, rstrip=True, normalized=False, special=True),
                token("<|im_start|>", rstrip=True, lstrip=True, normalized=False, special=True),
                token("<|im_end|>", rstrip=True, lstrip=True, normalized=False, special=True),
            ],
        ),
        "gpt-oss, o200k": lambda: level(
            pattern_bytes(O200K),
            specials=reserved(
                "<|startoftext|>", END, "<|return|>", "<|channel|>", "<|start|>", "<|message|>"
            ),
            ignore_merges=True,
            post=lambda tok: t.processors.ByteLevel(False, trim_offsets=True),
        ),
        "o200k removed": lambda: level(
            pattern_bytes(O200K, behavior="removed", invert=True), specials=[END, "<|endofprompt|>"]
        ),
        "mistral nemo": lambda: level(
            pattern_bytes(TEKKEN),
            head=["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<SPECIAL_20>"],
            specials=reserved("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<SPECIAL_20>"),
            post=template("<s> $A", "<s> $A <s>:1 $B:1"),
            ignore_merges=True,
        ),
        "mistral nemo as elsewhere": lambda: level(
            pattern_bytes(TEKKEN_OLD),
            head=["<unk>", "<s>", "</s>"],
            specials=reserved("<unk>", "<s>", "</s>"),
            post=after_bytes("<s> $A", "<s> $A <s>:1 $B:1"),
            ignore_merges=True,
        ),
        "deepseek, v2": lambda: level(
            pattern_bytes(*DEEPSEEK, digits=True),
            specials=reserved("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
            tokens=[
                token("<｜fim▁hole｜>", normalized=False),
                token("ø", normalized=True),
                token("û", normalized=True),
            ],
            post=template(
                "<｜begin▁of▁sentence｜> $A", "<｜begin▁of▁sentence｜> $A <｜begin▁of▁sentence｜>:1 $B:1"
            ),
        ),
        "deepseek coder": lambda: level(
            pattern_bytes(*DEEPSEEK_CODER, digits=True),
            n.Sequence([]),
            specials=[token("<｜begin▁of▁sentence｜>", normalized=True, special=True)],
            tokens=[
                token("õ", normalized=True),
                token("ÿ", normalized=True),
                token("<|EOT|>", normalized=True),
            ],
        ),
        "deepseek v3, r1": lambda: level(
            pattern_bytes(*DEEPSEEK_V3),
            n.Sequence([]),
            ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"],
            (),
            reserved(
                "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜place▁holder▁no▁0｜>"
            ),
            [token("<｜User｜>", normalized=False), token("<think>", normalized=False)],
            after_bytes(
                "<｜begin▁of▁sentence｜> $A", "<｜begin▁of▁sentence｜> $A <｜begin▁of▁sentence｜>:1 $B:1"
            ),
        ),
        "youtu": lambda: level(pattern_bytes(*YOUTU), specials=reserved(END)),
        "kimi": lambda: level(
            pattern_bytes(KIMI),
            specials=reserved("[BOS]", "[EOS]", "<|im_end|>", "[UNK]"),
            ignore_merges=True,
        ),
        "glm-4": lambda: level(
            pattern_bytes(LLAMA3),
            specials=[token(x, special=True) for x in (END, "[MASK]", "[gMASK]", "<sop>", "<|user|>")],
            post=after_bytes("[gMASK] <sop> $A", "[gMASK] <sop> $A $B:1"),
            ignore_merges=True,
        ),
        "command-r": lambda: level(
            starcoder(),
            nfc(),
            ["<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<BOS_TOKEN>", "<EOS_TOKEN>"],
            (),
            reserved("<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<BOS_TOKEN>", "<EOS_TOKEN>"),
            [token("<|START_OF_TURN_TOKEN|>", normalized=False), token("<|YES_TOKEN|>", normalized=False)],
            template("<BOS_TOKEN> $A", "<BOS_TOKEN> $A <BOS_TOKEN>:1 $B:1"),
        ),
        "whisper": lambda: level(
            plain(),
            tail=[END],
            specials=[
                token(x, normalized=True, special=True)
                for x in (END, "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")
            ],
            tokens=[token(f"<|{k / 50:.2f}|>", normalized=False) for k in range(6)],
            post=template(
                f"<|startoftranscript|>:0 <|notimestamps|>:0 $A:0 {END}:0",
                f"<|startoftranscript|>:0 <|notimestamps|>:0 $A:0 $B:1 {END}:1",
            ),
        ),
        "nougat, galactica": nougat,
        "exaone": lambda: level(
            p.Sequence([p.Digits(True), plain()]), n.NFKC(), specials=reserved("[PAD]", "[BOS]", "[|user|]")
        ),
        "nemotron": lambda: level(
            pattern_bytes(TEKKEN.replace(r"\p{N}|", r"\p{N}|")),
            specials=reserved("<unk>", "<s>", "<SPECIAL_10>"),
            post=after_bytes("<s> $A", "<s> $A <s>:1 $B:1"),
            ignore_merges=True,
        ),
        "gpt-j extra": lambda: level(
            plain(),
            tail=[END],
            specials=[END],
            tokens=[token(f"<|extratoken_{k}|>", normalized=True) for k in range(1, 14)],
        ),
        "byte-level normalizer": lambda: level(split(GPT2_LIKE), n.ByteLevel(), specials=[END]),
        "jina code": lambda: level(
            p.Sequence([p.Digits(True), prefix()]),
            specials=[*ROBERTA, mask("<mask>")],
            post=roberta(prefix=True),
            **ROB,
        ),
        "hunyuan": lambda: level(
            pattern_bytes(DEEPSEEK_V3[2]), specials=reserved("<|startoftext|>", END, "<|extra_0|>")
        ),
        "bytes behind metaspace": lambda: level(
            p.Sequence([p.Metaspace("▁", "first"), plain()]), specials=[END]
        ),
        "no pattern": lambda: level(
            p.ByteLevel(add_prefix_space=True, use_regex=False),
            specials=[END],
            post=lambda tok: t.processors.ByteLevel(True, trim_offsets=True),
        ),
        # words
        "bert uncased": lambda: wordpiece(True),
        "bert cased": lambda: wordpiece(False),
        "bert multilingual": lambda: wordpiece(False, True, False),
        "bert chinese": lambda: wordpiece(True, True),
        "bert base, published": lambda: limited(wordpiece(True, unused=9), 24),
        "distilbert": lambda: limited(wordpiece(True), 20, length=20),
        "electra": lambda: wordpiece(True, post="old"),
        "minilm sentences": lambda: limited(wordpiece(True), 16, strategy="longest_first", length=16),
        "mobilebert": lambda: wordpiece(True, accents=True),
        "mpnet": lambda: wordpiece(True, specials=("<pad>", "[UNK]", "<s>", "</s>", "<mask>"), post="mpnet"),
        "mpnet sentences": lambda: limited(
            wordpiece(
                True,
                specials=("<pad>", "[UNK]", "<s>", "</s>", "<mask>"),
                post="mpnet",
                tokens=[mask("<mask>", normalized=True)],
            ),
            18,
            1,
            "<pad>",
        ),
        "funnel": lambda: wordpiece(
            True,
            specials=("<pad>", "<unk>", "<cls>", "<sep>", "<mask>"),
            post="funnel",
            tokens=["<s>", "</s>"],
        ),
        "layoutlm": lambda: wordpiece(True, chinese=True),
        "layoutlm v2": lambda: wordpiece(True, chinese=False, accents=False),
        "splinter": lambda: wordpiece(
            False, specials=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[QUESTION]", "."), post="splinter"
        ),
        "splade, bge, e5, gte, nomic": lambda: limited(wordpiece(True, unused=40), 32, stride=2),
        "tapas": lambda: wordpiece(True, tokens=["[EMPTY]"]),
        "german": lambda: wordpiece(
            False, False, False, tokens=[token("ß", normalized=True), token("§", single_word=True)]
        ),
        "portuguese": lambda: wordpiece(False, False, False),
        "arabic": lambda: wordpiece(
            False,
            tokens=[
                token("[رابط]", special=False),
                token("[مستخدم]", special=False),
                token("+ا", normalized=True),
            ],
        ),
        "minilm padded left": lambda: limited(wordpiece(True), 17, side="left", pad_to_multiple_of=8),
        "no cleaning": lambda: wordpiece(True, clean=False, chinese=False),
        "short words": lambda: wordpiece(True, most=6),
        "colbert": lambda: wordpiece(
            True, tokens=[token("[unused0]", normalized=False), token("[unused1]", normalized=False)]
        ),
        "korean": lambda: wordpiece(
            False, True, False, norm=n.Sequence([n.NFKC(), n.BertNormalizer(lowercase=False)])
        ),
        "camembert 2": lambda: wordpiece(
            False,
            prefix="##",
            norm=n.Sequence([n.Replace("\n", " "), n.NFC(), n.Replace(t.Regex(r"\s+"), " "), n.Strip()]),
            pre=p.Sequence([p.WhitespaceSplit(), p.Digits(True), p.Punctuation("isolated")]),
        ),
        "wordpiece with metaspace": lambda: wordpiece(
            False,
            norm=n.NFKC(),
            pre=p.Sequence([p.Metaspace("▁", "always"), p.Punctuation("merged_with_previous")]),
        ),
        # Unigram
        "t5": t5,
        "flan": lambda: limited(t5(), 25, 0, "<pad>"),
        "t5 old": lambda: t5(norm="old", pre=words_then_marks()),
        "t5 v1.0 charsmap only": lambda: t5(norm=n.Precompiled(charsmap()), pre=words_then_marks()),
        "ul2": lambda: t5(norm="old", pre=p.Metaspace("▁", "always")),
        "mt5, umt5": lambda: unigram(
            zeros("<pad>", "</s>", "<unk>"),
            zeros("▁<extra_id_99>", "▁<extra_id_0>"),
            "old",
            words_then_marks(),
            specials=["</s>", "<unk>", "<pad>"],
            post=template("$A </s>", "$A </s> $B </s>"),
            byte_fallback=True,
            extra=[(b, -30.0) for b in BYTES],
        ),
        "udop": lambda: t5(pre=p.Metaspace("▁", "first")),
        "siglip": siglip,
        "pegasus": lambda: unigram(
            zeros("<pad>", "</s>", "<mask_1>", "<mask_2>")
            + [(f"<unk_{k}>", -100.0) for k in range(2, 9)]
            + zeros("<unk>"),
            norm=n.Sequence(
                [
                    n.Precompiled(charsmap()),
                    n.Replace(t.Regex(r"(\n|\r)"), " "),
                    n.Replace(t.Regex(" {2,}"), " "),
                ]
            ),
            pre=words_then_marks(),
            specials=[
                "<pad>",
                "</s>",
                "<mask_1>",
                mask("<mask_2>"),
                "<unk>",
                *(f"<unk_{k}>" for k in range(2, 9)),
            ],
            post=template("$A </s>", "$A $B </s>"),
        ),
        "bigbird": lambda: unigram(
            zeros("<pad>", "</s>", "<s>", "<unk>", "[MASK]", "[CLS]", "[SEP]"),
            specials=["<pad>", "</s>", "<s>", "<unk>", "[CLS]", "[SEP]", mask("[MASK]")],
            post=template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"),
            norm="old",
        ),
        "xlm-r": xlm_roberta,
        "xlm-r old": lambda: xlm_roberta(norm=n.Precompiled(charsmap()), pre=words_then_marks()),
        "multilingual e5, bge-m3": lambda: limited(
            xlm_roberta(norm="old", pre=words_then_marks()), 20, 1, "<pad>"
        ),
        "paraphrase multilingual": lambda: limited(
            xlm_roberta(
                norm=n.Precompiled(charsmap()),
                pre=words_then_marks(),
                specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>", normalized=True)],
            ),
            16,
            1,
            "<pad>",
        ),
        "mbart": lambda: xlm_roberta(
            tail=["ar_AR", "en_XX", "zh_CN", "<mask>"],
            specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>"), "ar_AR", "en_XX", "zh_CN"],
            post=template("$A </s> en_XX", "$A $B </s> en_XX"),
        ),
        "mbart 50": lambda: xlm_roberta(
            tail=["ar_AR", "en_XX", "gl_ES", "<mask>"],
            specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>"), "ar_AR", "en_XX", "gl_ES"],
            post=template("en_XX $A </s>", "en_XX $A $B </s>"),
        ),
        "seamless": lambda: unigram(
            zeros("<pad>", "<unk>", "<s>", "</s>"),
            (),
            specials=["<pad>", "<unk>", "<s>", "</s>", "__eng__", "__fra__"],
            post=template("__eng__ $A </s>", "__eng__ $A $B </s>"),
        ),
        "xglm": lambda: xlm_roberta(
            tail=[f"<madeupword{k}>" for k in range(7)],
            specials=[*ROBERTA],
            tokens=[token(f"<madeupword{k}>", normalized=True) for k in range(7)],
            post=template("</s> $A", "</s> $A </s> </s> $B"),
        ),
        "camembert": lambda: unigram(
            zeros("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>")
            + [("<unk>NOTUSED", -100.0)]
            + zeros("<s>", "</s>"),
            zeros("<mask>"),
            specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>")],
            tokens=["<s>NOTUSED", "</s>NOTUSED"],
            post=template("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
        ),
        "camembert old": lambda: unigram(
            zeros("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>")
            + [("<unk>NOTUSED", -100.0)]
            + zeros("<s>", "</s>"),
            zeros("<mask>"),
            norm="old",
            pre=words_then_marks(),
            specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>"), "<s>NOTUSED", "</s>NOTUSED"],
            post=template("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
        ),
        "barthez": lambda: xlm_roberta(
            norm="old", specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>", normalized=True)]
        ),
        "xlnet": lambda: albert(
            False,
            True,
            post=template("$A:0 <sep>:0 <cls>:2", "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2"),
            head=("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>", "."),
            specials=("<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<eop>", "<eod>"),
            mask_name="<mask>",
        ),
        "xlnet without accents": lambda: albert(
            True,
            False,
            post=template("$A:0 <sep>:0 <cls>:2", "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2"),
            head=("<unk>", "<cls>", "<sep>", "<mask>"),
            specials=("<unk>", "<sep>", "<cls>"),
            mask_name="<mask>",
        ),
        "albert": albert,
        "albert accents": lambda: albert(True, True),
        "fnet": lambda: albert(False, True),
        "rembert": lambda: albert(False, True, "rembert"),
        "reformer": lambda: unigram(
            zeros("<unk>", "<s>", "</s>"),
            norm=n.Sequence([n.Strip(False, True), n.Replace(t.Regex(" {2,}"), "▁")]),
            specials=["</s>", "<unk>"],
        ),
        "bert generation": lambda: unigram(
            zeros("<pad>", "</s>", "<s>", "<unk>"),
            norm=n.Sequence([n.Replace(t.Regex(" {2,}"), " ")]),
            specials=["<pad>", "</s>", "<s>", "<unk>"],
        ),
        "deberta v2": deberta_v2,
        "deberta v2 punctuation": lambda: deberta_v2(True, True),
        "deberta v3": lambda: limited(deberta_v2(), 24),
        "marian": lambda: unigram(
            zeros("</s>", "<unk>"),
            [("<pad>", 0.0)],
            n.Precompiled(charsmap()),
            words_then_marks(),
            specials=["</s>", "<unk>", "<pad>", token(">>fr<<", special=True)],
            post=template("$A:0 </s>:0", "$A:0 $B:1 </s>:1"),
        ),
        "helium": helium,
        "speecht5": lambda: unigram(
            zeros("<s>", "<pad>", "</s>", "<unk>"),
            zeros("<mask>", "<ctc_blank>"),
            pre=p.Sequence([p.Metaspace("▁", "always"), split("", text=True)]),
            specials=["<s>", "<pad>", "</s>", "<unk>", mask("<mask>"), "<ctc_blank>"],
            post=template("$A </s>", "$A $B </s>"),
        ),
        "unigram without normalizer": lambda: unigram(
            zeros("<unk>", "<s>", "</s>"),
            norm=None,
            pre=p.Metaspace("▁", "never"),
            specials=reserved("<s>", "</s>"),
            byte_fallback=True,
            extra=[(b, -25.0) for b in BYTES],
            decoder=d.Sequence([d.ByteFallback(), d.Metaspace("▁", "never")]),
        ),
        "unigram, script splits": lambda: unigram(
            zeros("<unk>"),
            pre=p.Sequence([p.UnicodeScripts(), p.Metaspace("▁", "first"), p.Digits(True)]),
            norm=n.NFKC(),
            specials=["<unk>"],
        ),
        "phobert-like": lambda: xlm_roberta(
            norm=n.NFC(), pre=p.Sequence([p.Whitespace(), p.Metaspace("▁", "always", False)])
        ),
        # SentencePiece's BPE
        "llama legacy": lambda: llama_bpe(post=template("<s> $A", "<s> $A <s>:1 $B:1")),
        "llama normalized specials": lambda: llama_bpe(
            specials=[token(x, normalized=True, special=True) for x in ("<unk>", "<s>", "</s>")],
            post=template("<s> $A", "<s> $A $B"),
        ),
        "llama new": lambda: llama_bpe(None, metaspace_first(), post=template("<s> $A", "<s> $A <s>:1 $B:1")),
        "llama always": lambda: llama_bpe(
            None, metaspace_first(scheme="always"), post=template("<s> $A", "<s> $A <s> $B")
        ),
        "mistral v3": lambda: llama_bpe(
            None,
            metaspace_first(),
            tail=["[INST]", "[/INST]", "[control_8]"],
            tokens=reserved("[INST]", "[/INST]", "[control_8]"),
            post=template("<s> $A", "<s> $A <s>:1 $B:1"),
        ),
        "mixtral": lambda: llama_bpe(tokens=[*CHAT]),
        "code llama": lambda: llama_bpe(
            tail=["▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>"],
            tokens=reserved("▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>"),
            post=template("<s> $A", "<s> $A <s> $B"),
        ),
        "code llama normalized": lambda: llama_bpe(
            tail=["▁<PRE>", "▁<MID>"],
            tokens=[
                token("▁<PRE>", special=True, normalized=True),
                token("▁<MID>", lstrip=True, special=False),
            ],
        ),
        "phi-3": lambda: llama_bpe(
            tokens=[
                token("<|user|>", rstrip=True, normalized=False, special=True),
                token("<|end|>", rstrip=True, normalized=False, special=True),
                token("</s>", rstrip=True, normalized=False),
            ]
        ),
        "vicuna": lambda: limited(llama_bpe(), 22, 0, "<unk>", "left"),
        "yi": lambda: llama_bpe("spaces", decoder="plain", tokens=reserved("<|startoftext|>", END, *CHAT)),
        "internlm 2": lambda: llama_bpe(
            tail=["[UNUSED_TOKEN_141]"],
            tokens=reserved(*CHAT, "<|plugin|>"),
            post=template("<s> $A", "<s> $A <s>:1 $B:1"),
        ),
        "baichuan": lambda: llama_bpe(
            "spaces", decoder="plain", tokens=reserved("<reserved_106>", "<reserved_107>")
        ),
        "baichuan split": lambda: llama_bpe(None, p.Metaspace("▁", "always", True)),
        "chatglm 3": lambda: llama_bpe(
            tokens=reserved("[gMASK]", "sop", "<|user|>"),
            post=template("[gMASK] sop $A", "[gMASK] sop $A $B:1"),
        ),
        "nllb": lambda: llama_bpe(
            n.Sequence([n.Precompiled(charsmap()), n.Strip(False, True), n.Replace(t.Regex(" {2,}"), "▁")]),
            p.Metaspace("▁", "always"),
            ROBERTA,
            ["<mask>"],
            [*ROBERTA, mask("<mask>"), "eng_Latn", "fra_Latn"],
            (),
            template("eng_Latn $A </s>", "eng_Latn $A $B </s>"),
            d.Metaspace("▁", "always"),
            (),
            fallback=False,
        ),
        "nllb old": lambda: llama_bpe(
            n.Precompiled(charsmap()),
            words_then_marks(),
            ROBERTA,
            (),
            [*ROBERTA, "ace_Arab", "eng_Latn", mask("<mask>", normalized=True)],
            (),
            template("$A </s> eng_Latn", "$A $B </s> eng_Latn"),
            d.Metaspace(),
            (),
            fallback=False,
        ),
        "gemma": gemma,
        "gemma without split": lambda: gemma(False),
        "gemma without tab byte": lambda: gemma(bytes=[b for b in BYTES if b != "<0x09>"]),
        "siglip 2": lambda: gemma(lower=True, template_=False),
        "gemma 3": lambda: gemma(
            tokens=[
                token("<image_soft_token>", normalized=False, special=True),
                token("\t", normalized=False),
                token("\t\t", normalized=False),
            ]
        ),
        "gemma 4, sarvam": lambda: gemma(pattern=r"[^\n]+|[\n]+"),
        "jamba": lambda: llama_bpe(
            None,
            p.Sequence([p.Digits(True), metaspace_first()]),
            ("<|pad|>", "<|startoftext|>", END, "<|unk|>"),
            unk="<|unk|>",
            tokens=reserved("<|bom|>", "<|eom|>"),
            post=template("<|startoftext|> $A", "<|startoftext|> $A <|startoftext|>:1 $B:1"),
        ),
        "moshi": lambda: llama_bpe(n.Sequence([n.Precompiled(charsmap()), _spaces()]), metaspace_first()),
        "persimmon, fuyu": lambda: llama_bpe(
            tokens=[token("|ENDOFTEXT|", normalized=False, special=True)], fuse=False
        ),
        "tipsv2": lambda: llama_bpe(
            n.Sequence([n.Lowercase(), n.Precompiled(charsmap())]),
            words_then_marks(),
            decoder=d.Sequence([d.Metaspace(), d.ByteFallback(), d.Fuse()]),
            unk=None,
        ),
        "no unknown, no bytes": lambda: llama_bpe(bytes=(), unk=None, fallback=False),
        "unknown not fused": lambda: llama_bpe(bytes=(), fuse=False),
        "unknown fused": lambda: llama_bpe(bytes=(), fuse=True, fallback=False),
        "minicpm": lambda: llama_bpe(
            tokens=[token(x, normalized=False, special=True) for x in ("<|im_end|>", "<|fim_prefix|>")],
            post=template("<s> $A", "<s> $A <s>:1 $B:1"),
        ),
        "zephyr": lambda: limited(llama_bpe(tokens=["<|user|>"]), 20, 2, "</s>", "left"),
        "deepseek math spm": lambda: llama_bpe(
            n.Sequence([n.NFKC(), n.Prepend("▁"), _spaces()]), p.Digits(True)
        ),
        # marks at the ends of words
        "openai gpt": lambda: suffix_bpe(n.BertNormalizer(lowercase=True), p.BertPreTokenizer(), ["<unk>"]),
        "openai gpt old": lambda: suffix_bpe(
            n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()]), p.Whitespace(), ["<unk>"]
        ),
        "openai gpt without unk token": lambda: suffix_bpe(
            n.BertNormalizer(lowercase=True), p.BertPreTokenizer(), ["<pad>"], head=["<unk>"]
        ),
        "herbert": lambda: suffix_bpe(
            n.BertNormalizer(lowercase=False, strip_accents=False),
            p.BertPreTokenizer(),
            ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
            lambda tok: t.processors.BertProcessing(
                ("</s>", tok.token_to_id("</s>")), ("<s>", tok.token_to_id("<s>"))
            ),
        ),
        "flaubert, xlm": lambda: suffix_bpe(
            n.Sequence([n.NFC(), n.Lowercase()]),
            p.Sequence([p.WhitespaceSplit(), p.Punctuation()]),
            ["<s>", "</s>", "<unk>", "<special0>", "<special1>"],
            template("<s> $A </s>", "<s> $A </s> $B </s>"),
        ),
        "clip": lambda: clip(r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""),
        "clip with specials": lambda: clip(
            r"""<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
        ),
        # words and characters
        "esm": lambda: words(
            ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"],
            "<unk>",
            None,
            p.Sequence([p.WhitespaceSplit(), split("", text=True)]),
            ["<cls>", "<pad>", "<eos>", "<unk>", "<mask>"],
            template("<cls> $A <eos>", "<cls> $A <eos> $B <eos>"),
        ),
        "esm c": protein_bpe,
        "protbert": lambda: wordpiece(False, chinese=True),
        "dna": dna_bpe,
        "smiles": lambda: words(
            [
                "<bos>",
                "<pad>",
                "<eos>",
                "<mask>",
                "<unk>",
                "C",
                "c",
                "Cl",
                "Br",
                "1",
                "2",
                "(",
                ")",
                "=",
                "O",
                "N",
                "n",
                "o",
                "[CLS]",
            ],
            "<unk>",
            None,
            split(SMILES),
            ["<bos>", "<pad>", "<eos>", "<mask>", "<unk>"],
            template("<bos> $A <eos>", "<bos> $A <eos> $B <eos>"),
            d.Fuse(),
        ),
        "smiles inverted": lambda: words(
            ["<unk>", "C", "c", "Cl", "1", "(", ")", "="],
            "<unk>",
            None,
            split(SMILES, "removed", True),
            ["<unk>"],
        ),
        "wav2vec2": lambda: wordlevel_ctc("", False),
        "wav2vec2 text": lambda: wordlevel_ctc("", True),
        "vits": vits,
        "characters": lambda: words(
            ["<unk>", *LATIN, " "], "<unk>", n.NFC(), split(r"(?m:.)"), ["<unk>", "<pad>"]
        ),
        "characters of fixed length": lambda: words(
            ["<unk>", *LATIN, " "], "<unk>", None, p.FixedLength(1), ["<unk>"]
        ),
        "k-mers": lambda: words(
            ["<unk>", "the", "cat", "ACG", "TTA"],
            "<unk>",
            n.Lowercase(),
            p.FixedLength(3),
            ["<unk>"],
            template("<unk> $A", "<unk> $A $B"),
        ),
        "words": lambda: words(
            ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "Hello", "world", ",", "don", "'", "t", "你好世界"],
            "[UNK]",
            None,
            p.Whitespace(),
            ["[UNK]", "[CLS]", "[SEP]"],
            template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
        ),
        "words and digits": lambda: words(
            ["[UNK]", "the", "cat", "1", "2", "#"],
            "[UNK]",
            n.Replace(t.Regex(r"\d"), "1"),
            p.Sequence([p.WhitespaceSplit(), p.Digits(True)]),
            ["[UNK]"],
            None,
            d.WordPiece(),
        ),
        "words between bars": lambda: words(
            ["[UNK]", "the", "cat sat", "on"], "[UNK]", None, p.CharDelimiterSplit("|"), ["[UNK]"]
        ),
        "minecraft actions": lambda: words(
            ["<unk>", "a", "b", "c", " "],
            "<unk>",
            n.Sequence([n.Nmt(), n.NFKD(), n.Lowercase(), n.StripAccents()]),
            p.Sequence([p.Punctuation("removed"), p.WhitespaceSplit(), split("", text=True)]),
            ["<unk>"],
        ),
    }


def made(name):
    return families()[name]()


def names():
    try:
        return list(families())
    except BaseException:
        return ["none"]  # without the other library every test is skipped


SPECIAL_TEXTS = [
    "",
    " ",
    "  ",
    "   a",
    "a   ",
    " a  b ",
    "Hello, World! It's 2024",
    " <mask> ",
    "a <mask> b",
    "Hello<mask>world",
    "[MASK]",
    "a [MASK] b",
    "<s>",
    "</s> x",
    " </s>  x",
    END,
    f"a {END} b",
    "a\nb",
    "a\r\nb",
    "\n\n",
    "\t\t",
    "x  y   z    w",
    "▁a",
    "a▁▁b",
    "<|im_start|>user\nHi<|im_end|>",
    "<|user|>  Hi <|end|>\n",
    "<extra_id_0> a <extra_id_11>",
    "``quoted''",
    "1,000 10, 12345",
    "héllo HÉLLO",
    "ßøõûÿ",
    "e\u0301a\u0308",
    "ﬁ Ⅳ ½",
    "℃🇩",
    "éa é",
    "<0x0A>",
    "<0x41>",
    "DON'T don’t I'LL",
    "   \u3000 x",
    "a\u00a0b",
    "\u200bx",
    "中文 and English混合123",
    "🤗 ok 👩🏽‍🚀",
    "İstanbul ıI",
    "ΣΑΣ σας",
    "\x00\x01a",
    "".join(map(chr, (*range(1, 9), *range(14, 32), 127))),
    "Cl[C@H](N)c1ccccc1",
    "ACGTTTA",
    "a|b the|cat",
    "x" * 120,
    "the " * 12,
]


def check(name, folder, n, seed):
    "One family: there, here, and back."
    ref = made(name)
    path = folder / "tokenizer.json"
    ref.save(str(path))
    tok, ref = Tokenizer.load(path), type(ref).from_file(str(path))
    added = [t.content for t, _ in tok.added_tokens]
    texts = [
        *SPECIAL_TEXTS,
        *LINES,
        *generated(n, seed, added[:8] + added[-8:] + [f" {a}  " for a in added[:4]]),
    ]
    compare(tok, ref, texts)
    rng = fresh(seed)
    top = max(tok.piece2id.values())
    for k in range(n):
        ids = [
            rng.choice(range(min(top + 1, 24))) if rng.random() < 0.3 else rng.randrange(top + 1)
            for _ in range(k % 9)
        ]
        ids = [i for i in ids if tok.id2piece[i] is not None]
        for skip in (False, True):
            assert tok.decode(ids, skip_special_tokens=skip) == ref.decode(ids, skip_special_tokens=skip), (
                ids,
                skip,
            )
    again = tok.save(folder / "again.json")
    there = type(ref).from_file(str(again))
    for text in texts[:80]:
        same(
            Tokenizer.load(again).align(text) if text in SPECIAL_TEXTS[:8] else tok.align(text),
            there.encode(text),
            "again",
            text,
        )


@pytest.mark.one_in(3)
@pytest.mark.peers
@pytest.mark.parametrize("name", names())
def test_known_pipeline(name, tmp_path):
    lib()
    check(name, tmp_path, 60, len(name))


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_known_pipeline_on_many_texts(name, tmp_path):
    lib()
    check(name, tmp_path, seeds.TEXTS, 4242 + len(name))


@pytest.mark.peers
@pytest.mark.parametrize("name", names()[::4])
def test_a_long_text(name, tmp_path):
    "Long texts go other ways through the engine than short ones."
    ref = made(name)
    ref.no_truncation()
    ref.no_padding()
    ref.save(str(tmp_path / "tokenizer.json"))
    tok = Tokenizer.load(tmp_path / "tokenizer.json")
    rng = fresh(len(name))
    texts = [
        " ".join(rng.choices([*LINES, *generated(40, len(name))], k=150)),
        "".join(rng.choices("的一是不了人我在有他这为之大来以个中上们。，\n", k=3000)),
        "a" + " " * 700 + "b" + "\n" * 500 + "-" * 600 + "x" * 900,
    ]
    for text in texts:
        assert tok.encode(text) == ref.encode(text).ids
    same(tok.align(texts[0]), ref.encode(texts[0]))


def edited(name, edit):
    "The file of a family after a change."
    d = json.loads(made(name).to_str())
    edit(d)
    return d


def put(d, *path_and_value):
    *path, value = path_and_value
    for key in path[:-1]:
        d = d[key]
    if value is None:
        d.pop(path[-1], None)
    else:
        d[path[-1]] = value


OLD_METASPACE = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
OLD = {
    "metaspace of 2020": (
        "xlm-r",
        lambda d: (
            put(d, "pre_tokenizer", {**OLD_METASPACE, "str_rep": "▁"}),
            put(d, "decoder", {**OLD_METASPACE, "str_rep": "▁"}),
        ),
    ),
    "metaspace without prefix": (
        "t5",
        lambda d: (
            put(d, "pre_tokenizer", {**OLD_METASPACE, "add_prefix_space": False}),
            put(d, "decoder", {**OLD_METASPACE, "add_prefix_space": False}),
        ),
    ),
    "metaspace of 2023": (
        "t5",
        lambda d: (
            put(d, "pre_tokenizer", {**OLD_METASPACE, "prepend_scheme": "first"}),
            put(d, "decoder", {**OLD_METASPACE, "prepend_scheme": "always"}),
        ),
    ),
    "merges as lines": (
        "gpt2",
        lambda d: put(d, "model", "merges", [" ".join(m) for m in d["model"]["merges"]]),
    ),
    "no model type": ("bert cased", lambda d: put(d, "model", "type", None)),
    "no model type, bpe": ("gpt2", lambda d: put(d, "model", "type", None)),
    "no model type, unigram": ("t5", lambda d: put(d, "model", "type", None)),
    "no byte_fallback": ("xlm-r", lambda d: put(d, "model", "byte_fallback", None)),
    "no use_regex": ("gpt2", lambda d: put(d, "pre_tokenizer", "use_regex", None)),
    "no trim_offsets in roberta": (
        "roberta",
        lambda d: put(d, "post_processor", "type", "RobertaProcessing"),
    ),
    "no ignore_merges": ("llama 3", lambda d: put(d, "model", "ignore_merges", None)),
    "no truncation, no padding": (
        "bert cased",
        lambda d: (put(d, "truncation", None), put(d, "padding", None)),
    ),
    "truncation without direction": ("deberta v3", lambda d: put(d, "truncation", "direction", None)),
    "strip accents null": ("bert cased", lambda d: put(d, "normalizer", "strip_accents", None)),
    "ids of added tokens that disagree": (
        "qwen",
        lambda d: [put(t, "id", t["id"] + 7) for t in d["added_tokens"]],
    ),
    "added tokens in another order": ("qwen", lambda d: d["added_tokens"].reverse()),
    "vocabulary in another order": (
        "gpt2",
        lambda d: put(d, "model", "vocab", dict(reversed(d["model"]["vocab"].items()))),
    ),
    "added token twice": ("qwen", lambda d: d["added_tokens"].append(d["added_tokens"][0])),
    "empty prefix and suffix": (
        "llama new",
        lambda d: (
            put(d, "model", "continuing_subword_prefix", ""),
            put(d, "model", "end_of_word_suffix", ""),
        ),
    ),
    "dropout null": ("gpt2", lambda d: d["model"].__setitem__("dropout", None)),
    "punctuation without behavior": (
        "camembert 2",
        lambda d: put(d, "pre_tokenizer", "pretokenizers", 2, "behavior", None),
    ),
    "split without invert": ("qwen", lambda d: put(d, "pre_tokenizer", "pretokenizers", 0, "invert", None)),
    "a file that says only what it must": (
        "words",
        lambda d: [
            put(d, k, None) for k in ("truncation", "padding", "normalizer", "decoder", "post_processor")
        ],
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", OLD)
def test_files_as_they_were_written(name, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(edited(*OLD[name])), encoding="utf-8")
    try:
        ref = lib().Tokenizer.from_file(str(path))
    except Exception:  # what is refused there is refused here
        with pytest.raises(ValueError):
            Tokenizer.load(path)
        return
    compare(
        Tokenizer.load(path),
        ref,
        [*SPECIAL_TEXTS, *LINES, *generated(40, len(name), ["<|im_start|>", "<think>"])],
    )


TOY = [["<unk>", 0.0], ["b", -1.0], ["qb", -15.0], ["cd", -15.0], ["bcd", -1.0]]
UNIGRAMS = {
    "a rare piece among the added ones": ([*TOY, ["<N>", -100.0]], ["<N>"], False),
    "a rare piece": ([*TOY, ["<N>", -100.0]], [], False),
    "rare bytes": (
        [
            ["<unk>", 0.0],
            ["0", -1.0],
            ["x", -1.0],
            ["4", -1.0],
            ["1", -1.0],
            [">", -1.0],
            *([b, -500.0] for b in BYTES),
        ],
        [],
        True,
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", UNIGRAMS)
def test_unigram_scores_far_below_the_others(name, tmp_path):
    "The rarest piece decides how unlikely an unknown character is."
    vocab, added, spells = UNIGRAMS[name]
    tokens = [
        dict(
            id=[p for p, _ in vocab].index(c),
            content=c,
            single_word=False,
            lstrip=False,
            rstrip=False,
            normalized=False,
            special=True,
        )
        for c in added
    ]
    path = tmp_path / "tokenizer.json"
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": tokens,
                "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": spells},
            }
        ),
        encoding="utf-8",
    )
    tok, ref = Tokenizer.load(path), lib().Tokenizer.from_file(str(path))
    for text in ("qbcd", "bcdq", "qqb<N>cd", "a", "zqbcdz"):
        same(tok.align(text), ref.encode(text), text)
    if spells:  # a byte piece that cannot be meant is never matched here, see `formats.huggingface`
        assert tok.tokenize("<0x41>") == ["<0x3C>", "0", "x", "4", "1", ">"] and ref.encode(
            "<0x41>"
        ).tokens == ["<0x41>"]


@pytest.mark.peers
def test_what_overflows_from_a_pair_has_its_byte_offsets(tmp_path):
    path = tmp_path / "tokenizer.json"
    cut = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": cut,
                "added_tokens": [],
                "pre_tokenizer": {"type": "Whitespace"},
                "model": {"type": "WordLevel", "vocab": {"u": 0}, "unk_token": "u"},
            }
        ),
        encoding="utf-8",
    )
    tok, ref = Tokenizer.load(path), lib().Tokenizer.from_file(str(path))
    for a, b in (
        ("é", "a b c d e f"),
        ("a b c d e f", "é é é"),
        ("é a b c d e f", "x y z a b c"),
        ("ab é cd", "ü"),
    ):
        same(tok.align(a, b), ref.encode(a, b), a, b)
    assert [e.offsets_bytes for e in tok.align("é a b c", "x y z w").overflowing][0] == [
        (5, 6),
        (7, 8),
        (0, 1),
        (2, 3),
    ]
