"""Tokenizers out of bytes: every model, with the unusual vocabularies and options that files may contain."""

from inputs import Choices

from subword_nb import Tokenizer, decoders, normalizers, processors
from subword_nb.text import pretokenizers
from subword_nb.bpe.model import BPE
from subword_nb.pipeline.encoding import Padding, Truncation
from subword_nb.formats.subword_nmt import NmtBPE, NmtDecoder
from subword_nb.formats.sentencepiece import parts_from_proto
from subword_nb.formats.sentencepiece_proto import ModelProto, Piece
from subword_nb.core.unicode import BYTE2CHAR
from subword_nb.unigram.model import Unigram
from subword_nb.pipeline.vocab import AddedToken
from subword_nb.wordpiece.wordlevel import WordLevel
from subword_nb.wordpiece.model import WordPiece

LETTERS = [
    "a",
    "b",
    "e",
    "h",
    "l",
    "o",
    "w",
    "t",
    "▁",
    " ",
    "é",
    "你",
    "🤗",
    "A",
    "1",
    ".",
    "'",
    "\n",
    "s",
    "\x00",
]


def words(c: Choices, letters, most: int) -> list[str]:
    return ["".join(c.pick(letters) for _ in range(1 + c.number(3))) for _ in range(c.number(most))]


def letters_of(c: Choices) -> list[str]:
    "Most of the letters."
    bits = c.byte() | c.byte() << 8 | c.byte() << 16
    return [x for k, x in enumerate(LETTERS) if not bits >> k & 1] or ["a"]


def numbered(c: Choices, pieces) -> dict:
    "Pieces with ids, now and then with holes between them."
    step = c.pick((1, 1, 1, 3))
    return {p: step * i for i, p in enumerate(dict.fromkeys(pieces))}


def byte_pieces(c: Choices) -> list[str]:
    "All byte pieces, or some."
    how = c.number(3)
    return [f"<0x{b:02X}>" for b in range(256) if how == 0 or how == 1 and b >= 0x80 or how == 2 and b % 7]


def some_bpe(c: Choices, byte_level: bool):
    unk, extra = c.pick((None, "<unk>", "▁", "a")), []
    prefix, suffix = (c.pick(("", "", "", "##")), c.pick(("", "", "", "</w>")))
    alphabet = list(BYTE2CHAR) if byte_level else letters_of(c)
    if byte_level and c.byte() < 30:
        alphabet = alphabet[c.number(40) :]
    pieces = alphabet + ([prefix + x for x in alphabet] if prefix else [])
    pieces += [x + suffix for x in pieces] if suffix else []
    joined, merges = ([x for x in pieces if x[0] in "abehlowtĠs▁ é你Ã©'"] or pieces)[:], []
    for _ in range(c.number(40)):
        a, b = c.pick(joined), c.pick(joined)
        if prefix and not b.startswith(prefix) or suffix and a.endswith(suffix):
            continue
        new = a + (b[len(prefix) :] if prefix else b)
        if (a, b) not in merges and len(new) < 30:
            merges.append((a, b))
            joined.append(new)
    if c.flag():
        extra = words(c, LETTERS, 8)
    fallback = not byte_level and c.flag()
    pieces += (
        [m[0] + m[1][len(prefix) :] for m in merges]
        + extra
        + ([unk] if unk else [])
        + (byte_pieces(c) if fallback else [])
    )
    return BPE(
        numbered(c, pieces), merges, c.pick((None, 0.0, 0)), unk, prefix, suffix, c.flag(), fallback, c.flag()
    )


def some_unigram(c: Choices):
    letters, scores = letters_of(c), (-1.0, -2.0, -2.5, -3.0, -7.25, 0.0, -1e-3)
    unk, fallback = c.pick((None, "<unk>", "<unk>", "▁", "a")), c.flag()
    pieces = (
        (["<unk>"] if unk else [])
        + letters
        + words(c, LETTERS, 30)
        + (byte_pieces(c) if fallback else [])
        + ([unk] if unk else [])
    )
    pieces = list(dict.fromkeys(pieces))
    return Unigram(
        {p: i for i, p in enumerate(pieces)},
        [c.pick(scores) for _ in pieces],
        unk,
        fallback,
        c.pick((10.0, 0.0, 3.5)),
        c.flag(),
        tuple(p for p in words(c, LETTERS, 3) if p in pieces),
        tuple(p for p in words(c, LETTERS, 2) if p in pieces and p != unk),
    )


def some_wordpiece(c: Choices):
    prefix = c.pick(("##", "##", "", "▁"))
    parts = letters_of(c) + words(c, LETTERS, 20)
    pieces = ["[UNK]"] + [p for x in parts for p in ((x, prefix + x) if c.flag() else (x,))]
    return WordPiece(numbered(c, pieces), c.pick(("[UNK]", "[UNK]", None, "a")), prefix, c.pick((100, 3, 1)))


def some_nmt(c: Choices):
    joined, merges = letters_of(c), []
    joined = [x for x in joined if not x.isspace()] or ["a"]
    joined += [x + "</w>" for x in joined]
    for _ in range(c.number(30)):
        a, b = c.pick(joined), c.pick(joined)
        if not a.endswith("</w>") and (a, b) not in merges:
            merges.append((a, b))
            joined.append(a + b)
    pieces = [p[:-4] if p.endswith("</w>") else p + "@@" for p in joined] + ["<unk>"]
    return NmtBPE(
        numbered(c, pieces),
        merges,
        c.pick(((0, 2), (0, 1))),
        "@@",
        c.pick(((), ("lo",), ("\\d+",))),
        None,
        c.pick(("<unk>", None)),
    )


def some_sentencepiece(c: Choices, kind: int):
    "A .model file's message: kind 1 is unigram, 2 is BPE."
    letters, fallback = letters_of(c), c.flag()
    texts = list(
        dict.fromkeys(
            [
                *(p for p in letters if p != " "),
                *(["▁"] if c.byte() < 200 else []),
                *words(c, [x for x in LETTERS if x not in " \x00" or c.byte() < 4], 30),
            ]
        )
    )
    unk = c.pick(("<unk>", "<unk>", "<unk>", "▁", "a"))
    pieces = [Piece(unk, 0.0, 2), Piece("<s>", 0.0, 3), Piece("</s>", 0.0, 3)] + [
        Piece(p, 0.0, 6) for p in (byte_pieces(c) if fallback else [])
    ]
    scores = (-1.0, -2.0, -2.5, -3.0, 0.0, -7.0) if c.flag() else None
    for k, p in enumerate(texts):
        if p not in (unk, "<s>", "</s>"):
            pieces.append(
                Piece(
                    p,
                    c.pick(scores) if scores else -float(k),
                    {250: 3, 251: 4, 252: 4, 253: 5, 254: 5}.get(c.byte(), 1),
                )
            )
    trainer = {"model_type": kind, "byte_fallback": fallback}
    normal = {
        name: c.byte() < 128
        for name in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    }
    trainer["treat_whitespace_as_suffix"] = c.byte() > 230
    return Tokenizer(
        **parts_from_proto(ModelProto(pieces, trainer, normal), add_bos=c.flag(), add_eos=c.flag())._asdict()
    )


def some_normalizer(c: Choices, deep: bool = True):
    n = normalizers
    if deep and c.number(3) == 0:
        return n.Sequence([some_normalizer(c, False) for _ in range(c.number(3))])
    return c.pick(
        [
            lambda: None if deep else n.NFC(),
            lambda: None if deep else n.NFD(),
            n.NFC,
            n.NFKC,
            n.NFD,
            n.Lowercase,
            n.StripAccents,
            n.Nmt,
            lambda: n.Strip(c.flag(), c.flag()),
            lambda: n.Prepend(c.pick(("▁", "ab"))),
            lambda: n.Replace(c.pick((" ", "a", "é", "  ")), c.pick(("▁", "", "xy", " "))),
            lambda: n.Replace(
                {"Regex": c.pick((r"\s+", "[aeiou]", r"\p{L}{2}", "^ ", r" +$"))}, c.pick((" ", "", "▁"))
            ),
            lambda: n.BertNormalizer(c.flag(), c.flag(), c.pick((None, True, False)), c.flag()),
            lambda: n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]),
            lambda: n.Replace(" ", "▁"),
        ]
    )()


def some_pre_tokenizer(c: Choices, deep: bool = True):
    p, behaviors = (
        pretokenizers,
        ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"),
    )
    if deep and c.number(4) == 0:
        return p.Sequence([some_pre_tokenizer(c, False) for _ in range(1 + c.number(2))])
    return c.pick(
        [
            lambda: None if deep else p.WhitespaceSplit(),
            p.Whitespace,
            p.WhitespaceSplit,
            p.BertPreTokenizer,
            p.UnicodeScripts,
            lambda: p.Punctuation(c.pick(behaviors)),
            lambda: p.Digits(c.flag()),
            lambda: p.CharDelimiterSplit(c.pick((" ", "e", "▁"))),
            lambda: p.FixedLength(1 + c.number(5)),
            lambda: p.Metaspace(
                replacement=c.pick("▁▁_"), prepend_scheme=c.pick(("always", "never", "first")), split=c.flag()
            ),
            lambda: p.Metaspace(prepend_scheme=c.pick(("always", "never", "first")), split=c.flag()),
            lambda: p.Split(
                c.pick(
                    (" ", "a", "▁", {"Regex": r"\s+"}, {"Regex": r"\w+|[^\w\s]+"}, "gpt2", "cl100k", "o200k")
                ),
                c.pick(behaviors),
                c.flag(),
            ),
        ]
    )()


def some_decoder(c: Choices, deep: bool = True):
    d = decoders
    if deep and c.number(3) == 0:
        return d.Sequence([some_decoder(c, False) for _ in range(1 + c.number(3))])
    return c.pick(
        [
            lambda: None if deep else d.Fuse(),
            d.ByteLevel,
            d.ByteFallback,
            d.Fuse,
            lambda: d.WordPiece(c.pick(("##", "")), c.flag()),
            lambda: d.BPEDecoder(c.pick(("</w>", ""))),
            lambda: d.Metaspace("▁", c.pick(("always", "never", "first"))),
            d.CTC,
            lambda: d.Strip(c.pick((" ", "a")), c.number(2), c.number(2)),
            lambda: d.Replace("▁", " "),
            lambda: NmtDecoder() if deep else d.Fuse(),
        ]
    )()


def some_added(c: Choices, known: dict) -> list:
    free, out = max(known.values(), default=-1) + 1, {}
    for _ in range(c.number(3)):
        content = c.pick(
            ("<s>", "low", "the ", " x", "é", "▁", "▁low", "[SEP]", "\n", "a", "你好", "  ", "<0x41>", "ab")
        )
        i = known.get(content, free)
        free += i == free
        out.setdefault(
            content, (AddedToken(content, c.byte() < 60, c.byte() < 60, c.byte() < 60, c.flag(), c.flag()), i)
        )
        known = known | {content: i}
    return list(out.values())


def some_processor(c: Choices, added):
    if not added or c.flag():
        return None
    (one, i), (other, j) = added[0], added[-1]
    return c.pick(
        [
            lambda: processors.BertProcessing((other.content, j), (one.content, i)),
            lambda: processors.RobertaProcessing((other.content, j), (one.content, i), c.flag(), c.flag()),
            lambda: processors.ByteLevel(c.flag()),
        ]
    )()


def some_tokenizer(c: Choices):
    "Any tokenizer; a ValueError where its parts refuse each other."
    kind = c.pick(
        (
            "char_bpe",
            "char_bpe",
            "char_bpe",
            "byte_bpe",
            "byte_bpe",
            "unigram",
            "unigram",
            "sp_bpe",
            "sp_bpe",
            "sp_unigram",
            "sp_unigram",
            "wordpiece",
            "wordlevel",
            "nmt",
        )
    )
    if kind.startswith("sp_"):
        tok = some_sentencepiece(c, 1 if kind == "sp_unigram" else 2)
        added = some_added(c, tok.piece2id) if c.byte() < 80 else []
        if added:
            tok.added_tokens = (
                *tok.added_tokens,
                *(pair for pair in added if pair[0].content not in {t.content for t, _ in tok.added_tokens}),
            )
        return tok
    pre, norm = some_pre_tokenizer(c), some_normalizer(c)
    if kind == "byte_bpe":
        pre = c.pick(
            [
                lambda: pretokenizers.ByteLevel(c.flag(), c.flag(), c.flag()),
                lambda: pretokenizers.byte_level(
                    c.pick(("gpt2", "cl100k", "o200k", "llama3", r"\p{L}+|\d|\s+"))
                ),
                lambda: pretokenizers.Sequence(
                    [some_pre_tokenizer(c, False), pretokenizers.ByteLevel(c.flag(), c.flag(), c.flag())]
                ),
            ]
        )()
    if kind in ("char_bpe", "unigram") and c.byte() < 140:
        pre, norm = c.pick(
            [
                lambda: (
                    pretokenizers.Metaspace(
                        replacement="▁", prepend_scheme=c.pick(("always", "never", "first")), split=c.flag()
                    ),
                    None if c.flag() else norm,
                ),
                lambda: (None, normalizers.Replace(" ", "▁")),
                lambda: (
                    None,
                    normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
                ),
            ]
        )()
    model = {
        "char_bpe": lambda: some_bpe(c, False),
        "byte_bpe": lambda: some_bpe(c, True),
        "unigram": lambda: some_unigram(c),
        "wordpiece": lambda: some_wordpiece(c),
        "nmt": lambda: some_nmt(c),
        "wordlevel": lambda: WordLevel(
            numbered(c, ["<unk>", *LETTERS, *words(c, LETTERS, 20)]), c.pick(("<unk>", None))
        ),
    }[kind]()
    added = some_added(c, model.piece2id)
    decoder = decoders.ByteLevel() if kind == "byte_bpe" and c.flag() else some_decoder(c)
    truncation = Truncation(2 + c.number(6)) if c.byte() > 240 else None
    padding = Padding() if c.byte() > 240 else None
    return Tokenizer(
        model,
        pre_tokenizer=pre,
        decoder=decoder,
        added_tokens=added,
        post_processor=some_processor(c, added),
        normalizer=norm,
        truncation=truncation,
        padding=padding,
    )
