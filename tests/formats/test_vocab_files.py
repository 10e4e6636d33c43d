"""minbpe's model files against its rules written again, GPT-2's two files against the real ones, and damaged files."""

import json
import re

import pytest
from seeds import TEXTS as N, fresh
from tests.pipeline.test_align import generated

from subword_nb import Tokenizer
from subword_nb.core.limits import limited
from subword_nb.formats.huggingface import read_gpt2, read_gpt2_files
from subword_nb.formats.vocab_files import (
    gpt2_files,
    looks_like_merges,
    looks_like_minbpe,
    looks_like_vocab_json,
    read_minbpe,
    read_vocab_txt,
    write_gpt2,
    write_minbpe,
    write_vocab_txt,
)
from subword_nb.text.regex import PATTERNS
from subword_nb.text.splitters import Split
from subword_nb.text.pretokenizers import byte_level
from subword_nb.pipeline.vocab import AddedToken

GPT4 = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
CORPUS = (
    "the hugging face course is about tokenization; hug hugs hugging pug pugs pun bun 1234 12 it's don't "
    "héllo wörld 你好世界 😀😀  \n\n  aaaa aaaaaaa\n"
) * (5)


class Peer:
    "What minbpe does with a file: bytes, merges by the lowest id, matches of the pattern, special tokens in the order of the file."

    def __init__(self, text):
        lines = text.split("\n")
        assert lines[0] == "minbpe v1"
        self.pattern, n = lines[1].strip(), int(lines[2])
        self.special = {line.split()[0]: int(line.split()[1]) for line in lines[3 : 3 + n]}
        self.merges = {
            tuple(map(int, line.split())): 256 + k for k, line in enumerate(lines[3 + n :]) if line
        }
        self.bytes = {i: bytes([i]) for i in range(256)}
        for (a, b), i in self.merges.items():
            self.bytes[i] = self.bytes[a] + self.bytes[b]
        self.bytes |= {i: t.encode() for t, i in self.special.items()}

    def chunk(self, data):
        ids = list(data)
        while len(ids) > 1:
            best = min(zip(ids, ids[1:]), key=lambda pair: self.merges.get(pair, float("inf")))
            if best not in self.merges:
                return ids
            out, i = [], 0
            while i < len(ids):
                same = tuple(ids[i : i + 2]) == best
                out.append(self.merges[best] if same else ids[i])
                i += 1 + same
            ids = out
        return ids

    def ordinary(self, text):
        found = pytest.importorskip("regex").findall(self.pattern, text) if self.pattern else [text]
        return [i for part in found for i in self.chunk(part.encode())]

    def encode(self, text, allowed="none_raise"):
        special = (
            self.special
            if allowed == "all"
            else {t: i for t, i in self.special.items() if t in allowed}
            if isinstance(allowed, set)
            else {}
        )
        if allowed == "none_raise":
            assert all(t not in text for t in self.special)
        if not special:
            return self.ordinary(text)
        return [
            i
            for part in re.split("(" + "|".join(map(re.escape, special)) + ")", text)
            for i in ([special[part]] if part in special else self.ordinary(part))
        ]

    def decode(self, ids):
        return b"".join(self.bytes[i] for i in ids).decode("utf-8", "replace")


def merges_by_counting(text, pattern, n):
    "Training as minbpe does it."
    chunks, merges = (
        [
            list(c.encode())
            for c in (pytest.importorskip("regex").findall(pattern, text) if pattern else [text])
        ],
        [],
    )
    for k in range(n):
        counts = {}
        for c in chunks:
            for pair in zip(c, c[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        merges.append(max(counts, key=counts.get))
        for c in chunks:
            i = 0
            while i < len(c) - 1:
                if (c[i], c[i + 1]) == merges[-1]:
                    c[i : i + 2] = [256 + k]
                i += 1
    return merges


def written(pattern, special=(), n=60, text=CORPUS):
    merges = merges_by_counting(text, pattern, n)
    return "".join(
        f"{line}\n"
        for line in [
            "minbpe v1",
            pattern,
            len(special),
            *(f"{t} {i}" for t, i in special),
            *(f"{a} {b}" for a, b in merges),
        ]
    )


def put(folder, text, name="x.model"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


SPECIAL = [("<|endoftext|>", 400), ("<|fim|>x", 319), ("<|fim|>", 316)]
KINDS = {
    "basic": "",
    "gpt4": GPT4,
    "gpt2": PATTERNS["gpt2"],
    "cl100k": PATTERNS["cl100k"],
    "gaps": r"\w+",
    "end": r"\s+$|\S+|\s",
    "lines": r"(?s:.{1,7})",
    "conditions": r"(?<!\w)\d++|(?=\S)\w+(?!x).|[^\\\]]{2,5}\b|(?>a+)\s|[\s\S]",
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_minbpe(kind, tmp_path):
    text = written(KINDS[kind], SPECIAL)
    ref, tok = (
        Peer(text),
        Tokenizer(**read_minbpe(put(tmp_path, text))._replace(source=None, allowed_special=())._asdict()),
    )
    for s in [
        "",
        CORPUS[:300],
        "a \n",
        "ſ'ſ it'S",
        *generated(max(N // 5, 50), len(kind), [t for t, _ in SPECIAL]),
    ]:
        if any(ord(c) > 0x323AF and not 0xE000 <= ord(c) < 0x110000 for c in s):
            continue
        for allowed in ("none", "all", {"<|fim|>"}):
            ids = ref.encode(s, allowed)
            assert tok.encode(s, allowed_special=() if allowed == "none" else allowed) == ids, (s, allowed)
            assert tok.decode(ids) == ref.decode(ids)
        if any(t in s for t, _ in SPECIAL):
            with pytest.raises(ValueError, match="special token"):
                tok.encode(s, disallowed_special="all")
            with pytest.raises(AssertionError):
                ref.encode(s)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_written_again(kind, tmp_path):
    text = written(KINDS[kind], SPECIAL)
    parts = read_minbpe(put(tmp_path, text))
    again = write_minbpe(parts, tmp_path / "again.model").read_text(encoding="utf-8")
    if kind not in ("end", "lines"):
        assert again.split("\n")[:2] + sorted(again.split("\n")) == text.split("\n")[:2] + sorted(
            text.split("\n")
        )
    assert read_minbpe(tmp_path / "again.model").model == parts.model and sorted(
        read_minbpe(tmp_path / "again.model").added_tokens, key=str
    ) == sorted(parts.added_tokens, key=str)


@pytest.mark.parametrize(
    "pre",
    [
        "gpt2",
        "cl100k",
        "o200k",
        "llama3",
        None,
        Split(r"\w+", dialect="rust"),
        Split(r" ?\p{L}+$| ?\p{L}+|.", dialect="rust"),
        Split("x|\\s+"),
    ],
    ids=str,
)
def test_trained_here_and_written_for_minbpe(pre, tmp_path):
    tok = Tokenizer.train([CORPUS], vocab_size=320, algorithm="bpe", pre_tokenizer=pre)
    tok.add_tokens(["<|a|>", "<|a|>b"], special=True)
    with pytest.raises(ValueError, match="renumber=True"):
        write_minbpe(tok.parts, tmp_path / "x.model")
    ref = Peer(write_minbpe(tok.parts, tmp_path / "x.model", renumber=True).read_text(encoding="utf-8"))
    back = Tokenizer(**read_minbpe(tmp_path / "x.model")._replace(source=None, allowed_special=())._asdict())
    for s in ["a \n", CORPUS[:200], *generated(max(N // 10, 50), 5, ["<|a|>", "<|a|>b", "hugging"])]:
        ids = back.encode(s, allowed_special="all")
        assert back.tokenize(s, allowed_special="all") == tok.tokenize(s, allowed_special="all")
        assert ids == ref.encode(s, "all"), s


BAD = [
    ("", "x.model, line 1 must be 'minbpe v1', got ''"),
    ("minbpe v2\n\n0\n", "line 1"),
    ("minbpe v1\n", "line 3"),
    ("minbpe v1\n\nx\n", "x.model, line 3 must be the number of special tokens, got 'x'"),
    ("minbpe v1\n\n-1\n", "line 3"),
    ("minbpe v1\n\n9\n1 2\n", "x.model must have 9 lines of special tokens, as line 3 says, got 1"),
    ("minbpe v1\n\n999999999\n", "cut short"),
    ("minbpe v1\n\n0\n97 256\n", "x.model, line 4 must join ids below 256, the one that it makes, got 256"),
    ("minbpe v1\n\n0\n97\n", "line 4: a merge must be two ids with a space between them, got '97'"),
    ("minbpe v1\n\n0\n97 98\n97 98\n", "x.model must make each piece once, got b'ab' in the lines 4 and 5"),
    ("minbpe v1\n\n0\n97 98\n\n99 98\n", "line 5: a merge must be two ids with a space between them, got ''"),
    (
        "minbpe v1\n\n1\n<s>\n",
        "line 4: a special token must be its spelling and its id with a space between them, got '<s>'",
    ),
    ("minbpe v1\n\n1\n<s> 9\n", "x.model, line 4 must give '<s>' an id that is free, from 256, got 9"),
    ("minbpe v1\n\n2\n<s> 300\n<t> 300\n", "line 5"),
    (
        "minbpe v1\n\n2\n<s> 300\n<s> 301\n",
        "x.model must list a special token once, got '<s>' again in line 5",
    ),
    (
        "minbpe v1\n\n2\n<s> 300\n<s>x 301\n",
        "got it after, where minbpe never finds it; put the longer one first",
    ),
    (
        "minbpe v1\n\n1\n<s> 900000000\n",
        "x.model, line 4 must give '<s>' an id close to the 256 pieces, got 900000000",
    ),
    (
        "minbpe v1\n\n1\na 300\n",
        "x.model: special tokens must be spelled unlike the pieces, got 'a', the piece 97",
    ),
    ("minbpe v1\n(a)|b\n0\n", "got one, whose text minbpe would take in place of the match; write (?:…)"),
    (
        "minbpe v1\n(?P<n>a)|b\n0\n",
        "got one, whose text minbpe would take in place of the match; write (?:…)",
    ),
    ("minbpe v1\n[a[b]\n0\n", "line 2"),
    (
        "minbpe v1\n[\\\\[]\n0\n",
        "x.model, line 2 must be a pattern that minbpe reads as this library does, got '",
    ),
    (
        "minbpe v1\n[x\\h]\n0\n",
        "x.model, line 2 must be a pattern that minbpe reads as this library does, got '",
    ),
    (
        "minbpe v1\n\\H|\\e\n0\n",
        "x.model, line 2 must be a pattern that minbpe reads as this library does, got '",
    ),
    ("minbpe v1\n(?=a)|.\n0\n", "x.model, line 2 must be a pattern that matches no empty text, got '"),
    ("minbpe v1\n\\w*?|b\n0\n", "x.model, line 2 must be a pattern that matches no empty text, got '"),
    (
        "minbpe v1\n\\h\n0\n",
        "x.model, line 2 must be a pattern that minbpe reads as this library does, got '",
    ),
    ("minbpe v1\n[a\n0\n", "line 2"),
    ("minbpe v1\n(?m:a$)\n0\n", "line 2"),
    (b"minbpe v1\n\n0\n\xff\n", "x.model must be UTF-8, got the byte 0xff at offset 13 (invalid start byte)"),
    (
        "minbpe v1\n\n0\n97 97\n" + "".join(f"{i} {i}\n" for i in range(256, 330)),
        "the piece has 16,384 bytes, and the limit piece_chars is 8,192",
    ),
]


@pytest.mark.parametrize("text, message", BAD, ids=[m for _, m in BAD])
def test_broken_minbpe_files(text, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)) as e:
        read_minbpe(put(tmp_path, text))
    assert str(e.value).startswith(str(tmp_path))


def test_no_wild_allocation(tmp_path):
    "A small file asks for pieces of half a terabyte, and for ten million pieces one longer than the other."
    chain = "minbpe v1\n\n0\n97 97\n" + "".join(f"{i} 97\n" for i in range(256, 40_000))
    with pytest.raises(ValueError, match="bytes together"):
        read_minbpe(put(tmp_path, chain))


def test_what_minbpe_cannot_say(tmp_path):
    parts = read_minbpe(put(tmp_path, written("", SPECIAL)))
    m, path = parts.model, tmp_path / "no.model"
    from dataclasses import replace

    from subword_nb.text.normalizers import NFC
    from subword_nb.pipeline.processors import BertProcessing

    for change, message in [
        (dict(normalizer=NFC()), "normalizer must .*got NFC"),
        (dict(post_processor=BertProcessing(("a", 1), ("b", 2))), "post_processor must .*got BertProcessing"),
        (dict(model=replace(m, dropout=0.1)), r"dropout must .*got 0\.1"),
        (dict(decoder=None), "the model must be byte-level BPE for .*got"),
        (dict(model=replace(m, piece2id={**m.piece2id, "zzz": 999})), "every piece must .*got 'zzz'"),
        (dict(added_tokens=((AddedToken("a b"), 400),)), "special tokens must .*got 'a b'"),
        (dict(added_tokens=((AddedToken("<s>"), 5),)), "of another piece"),
        (
            dict(added_tokens=((AddedToken("<s>", lstrip=True), 400),)),
            "added tokens must .*got some of '<s>'",
        ),
        (
            dict(pre_tokenizer=byte_level(Split("a", "removed"))),
            r"pre_tokenizer must take the matches of its pattern .*got Split\(pattern='a', behavior='removed'",
        ),
        (
            dict(pre_tokenizer=byte_level(Split({"String": "a"}))),
            "pre_tokenizer must be one split pattern for minbpe, got Sequence",
        ),
        (
            dict(pre_tokenizer=byte_level("deepseek")),
            "pre_tokenizer must be one split pattern for minbpe, got Sequence",
        ),
        (dict(pre_tokenizer=byte_level(Split("a\n"))), r"pattern must .*got 'a\\n'"),
        (dict(added_tokens=((AddedToken("a"), 400),)), "pieces must .*got 'a' twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_minbpe(parts._replace(**change), path)
    with pytest.raises(ValueError, match=r"path must end in \.model.*got .*x\.txt"):
        write_minbpe(parts, tmp_path / "x.txt")
    with pytest.raises(ValueError, match="found whole"):
        write_minbpe(parts._replace(model=replace(m, merges=m.merges[:-1], ignore_merges=True)), path)
    assert not path.exists()


def mutated(data, rng):
    data, at, k = bytearray(data), rng.randrange(len(data)), rng.randrange(5)
    if k == 0:
        del data[at:]
    elif k == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif k == 2:
        data[at : at + rng.randint(1, 30)] = b""
    elif k == 3:
        data[at:at] = rng.choice([b"\n", b" ", b"9", b"\0", b"(", b"[", b"99999999999 1\n", rng.randbytes(5)])
    else:
        data[at:at] = data[:at]
    return bytes(data)


def check_mutations(n, folder, seed):
    rng, whole = fresh(seed), written(GPT4, SPECIAL, 30).encode()
    for _ in range(n):
        path = put(folder, mutated(whole, rng))
        try:
            parts = read_minbpe(path)
        except ValueError as e:
            assert str(e).startswith(str(path)), e
            continue
        tok = Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())
        if any(t.content.isspace() for t, _ in parts.added_tokens):
            continue
        ids = tok.encode("hugging 12 it's")
        assert all(tok.id2piece[i] is not None for i in ids)
        assert read_minbpe(write_minbpe(parts, folder / "again.model")).model == parts.model


def test_mutated_minbpe_files(tmp_path):
    check_mutations(60, tmp_path, 1)


def test_a_carriage_return_ends_a_line_of_a_minbpe_file(tmp_path):
    "As in minbpe, which opens its files as text."
    whole = written(GPT4, SPECIAL, 30)
    assert read_minbpe(put(tmp_path, whole.replace("\n", "\r").encode())) == read_minbpe(
        put(tmp_path, whole.encode())
    )
    with pytest.raises(ValueError, match="line 3 must be the number"):
        read_minbpe(put(tmp_path, whole.replace("[^", "\r[^", 1).encode()))
    with limited(merges=1000), pytest.raises(ValueError, match="has more than 1,000 lines"):
        read_minbpe(put(tmp_path, whole.encode() + b"\r" * 2000))


@pytest.mark.slow
def test_many_mutated_minbpe_files(tmp_path):
    check_mutations(5 * N, tmp_path, 2)


def test_real_gpt2_files(shared_file, tmp_path):
    vocab, merges = shared_file("vocab/gpt2/encoder.json"), shared_file("vocab/gpt2/vocab.bpe")
    golden, strings = (
        json.loads(shared_file(f"golden/{n}.json").read_text(encoding="utf-8"))
        for n in ("hf-bbpe__gpt2", "strings")
    )
    parts = read_gpt2_files(vocab, merges)
    tok = Tokenizer(**parts._replace(source=None)._asdict())
    for text, ids in zip(strings, golden["ids"]):
        assert tok.encode(text) == ids
    assert read_gpt2(shared_file("vocab/gpt2/vocab.json").parent) == parts
    folder = write_gpt2(parts, tmp_path / "new")
    assert json.loads((folder / "vocab.json").read_text(encoding="utf-8")) == json.loads(
        vocab.read_text(encoding="utf-8")
    )
    assert (folder / "merges.txt").read_text(encoding="utf-8") == shared_file(
        "vocab/gpt2/merges.txt"
    ).read_text(encoding="utf-8")
    assert read_gpt2_files(*gpt2_files(folder)) == parts
    old = write_gpt2(parts, tmp_path / "old", names=("encoder.json", "vocab.bpe"))
    assert [p.name for p in gpt2_files(old)] == ["encoder.json", "vocab.bpe"] and gpt2_files(tmp_path) is None


@pytest.mark.peers
def test_gpt2_files_in_the_peer(tmp_path):
    "Trained here, written, opened by Hugging Face's library."
    tokenizers = pytest.importorskip("tokenizers")
    tok = Tokenizer.train([CORPUS], vocab_size=330, algorithm="bpe", special_tokens=["<|endoftext|>"])
    folder = write_gpt2(tok.parts, tmp_path / "new")
    ref = tokenizers.ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    back = Tokenizer(
        **read_gpt2_files(*gpt2_files(folder))._replace(source=None, allowed_special=())._asdict()
    )
    for s in generated(N // 4, 77, ["hugging", "<|endoftext|>"]):
        assert tok.encode(s, allowed_special=()) == back.encode(s) == ref.encode(s).ids, s


def test_what_gpt2_files_cannot_say(tmp_path):
    tok = Tokenizer.train([CORPUS], vocab_size=330, algorithm="bpe")
    from dataclasses import replace

    from subword_nb.text.normalizers import NFC

    for change, message in [
        (dict(normalizer=NFC()), "normalizer must .*got NFC"),
        (
            dict(pre_tokenizer=Split("a")),
            r"pre_tokenizer must make bytes for vocab\.json .*got Split\(pattern='a'",
        ),
        (dict(model=replace(tok.model, unk_piece="a")), "unk_piece"),
        (
            dict(model=read_vocab_txt(put(tmp_path, "[UNK]\na\n", "v.txt")).model),
            "the model must be byte-level BPE for .*got",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            write_gpt2(tok.parts._replace(**change), tmp_path / "no")
    assert not (tmp_path / "no").exists()
    folder = write_gpt2(
        Tokenizer.train([CORPUS], vocab_size=330, algorithm="bpe", pre_tokenizer="o200k").parts,
        tmp_path / "o",
    )
    assert read_gpt2_files(*gpt2_files(folder), pre_tokenizer="o200k").pre_tokenizer == byte_level("o200k")


def test_broken_gpt2_files(tmp_path):
    folder = write_gpt2(Tokenizer.train([CORPUS], vocab_size=300, algorithm="bpe").parts, tmp_path / "g")
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    good = vocab.read_text(encoding="utf-8"), merges.read_text(encoding="utf-8")
    for v, m, message in [
        (good[0], good[1] + "a b c\n", r"merges\.txt, line 46 must .*got 'a b c'"),
        (good[0], good[1] + "ĀĀ zz\n", "got no piece"),
        ('{"a": 1}', good[1], r"vocab\.json must .*got none for 255, such as 'Ā'"),
        (good[0][:-9], good[1], r"vocab\.json must be JSON, got "),
        ("[1]", good[1], "vocab.json must be a map from piece to id"),
        (good[0].replace(": 7,", ": 8,"), good[1], "vocab.json must have different ids, got 8"),
        (
            good[0],
            "a b\n\udc80".encode("utf-8", "surrogateescape"),
            r"merges\.txt must .*got the byte 0x80 at offset 4 \(invalid start byte\)",
        ),
    ]:
        put(folder, v, "vocab.json"), put(folder, m, "merges.txt")
        with pytest.raises(ValueError, match=message) as e:
            read_gpt2_files(vocab, merges)
        assert str(folder) in str(e.value)


def test_recognition(shared_data, tmp_path):
    is_vocab = {
        p.relative_to(shared_data / "vocab").as_posix()
        for p in shared_data.glob("vocab/*/*")
        if p.is_file() and looks_like_vocab_json(p.read_bytes()[:4096])
    }
    is_rules = {
        p.relative_to(shared_data / "vocab").as_posix()
        for p in shared_data.glob("vocab/*/*")
        if p.is_file() and looks_like_merges(p.read_bytes()[:4096])
    }
    assert {"gpt2/vocab.json", "gpt2/encoder.json"} <= is_vocab and not any(
        "tokenizer.json" in n or n.endswith((".txt", ".model", ".tiktoken")) for n in is_vocab
    )
    assert {"gpt2/merges.txt", "gpt2/vocab.bpe"} <= is_rules and all(
        n.endswith((".txt", ".bpe")) and "vocab.txt" not in n for n in is_rules
    )
    assert (
        looks_like_minbpe(written("").encode())
        and not looks_like_minbpe(b"minbpe v10")
        and not any(
            looks_like_minbpe(p.read_bytes()[:64]) for p in shared_data.glob("vocab/*/*") if p.is_file()
        )
    )
    for data in (b"", b"{", b"{}", b'{"a": "b"}', b"[1]", b"a b"):
        assert not looks_like_vocab_json(data) and not looks_like_merges(data)


def test_real_vocab_txt_written_again(shared_file, tmp_path):
    for name in ("bert-base-cased", "bert-base-uncased", "bert-base-chinese"):
        path = shared_file(f"vocab/{name}/vocab.txt")
        assert write_vocab_txt(read_vocab_txt(path), tmp_path / "v.txt").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "pattern",
    [
        r"\s*",
        r"a?|b",
        r"(?:ab|c{0,2})",
        r"(?!x)",
        r"x*+|y",
        r"a{0}b{0,}",
        r"(?>a*)(?<=b)",
        r"^|a",
        r"\b",
        r"(?i:a|)",
        r"(?:a|b|\Z)",
    ],
)
def test_patterns_that_match_nothing(pattern, tmp_path):
    "An empty match is where minbpe's regex module and the others part, so neither reader nor writer takes such a pattern."
    with pytest.raises(
        ValueError, match=r"x\.model, line 2 must be a pattern that matches no empty text, got"
    ):
        read_minbpe(put(tmp_path, f"minbpe v1\n{pattern}\n0\n"))
    if r"\Z" in pattern:
        return
    tok = Tokenizer.train([CORPUS], vocab_size=300, algorithm="bpe", pre_tokenizer="gpt2")
    parts = tok.parts._replace(pre_tokenizer=byte_level(Split(pattern, dialect="rust")))
    with pytest.raises(ValueError, match="pattern must match no empty text for minbpe"):
        write_minbpe(parts, tmp_path / "no.model", renumber=True)
    assert not (tmp_path / "no.model").exists()


@pytest.mark.parametrize(
    "pattern",
    [*PATTERNS.values(), GPT4, r"a|(?=b)b", r"\s+$|\S+", r"(?<=\w)\W++", r"x{1,}+", r"\bx\b", r"(?:|a)b"],
)
def test_patterns_that_match_something(pattern, tmp_path):
    assert read_minbpe(put(tmp_path, f"minbpe v1\n{pattern}\n0\n"))


def test_marks_that_editors_leave(tmp_path):
    for name, read in (("vocab.txt", read_vocab_txt), ("x.model", read_minbpe)):
        (tmp_path / name).write_bytes(
            b"\xef\xbb\xbf" + (b"[PAD]\n[UNK]\n" if name == "vocab.txt" else b"minbpe v1\n\n0\n")
        )
        with pytest.raises(
            ValueError,
            match="must not begin with a byte order mark|must be 'minbpe v1', got '.ufeffminbpe v1'",
        ):
            read(tmp_path / name)


def test_files_of_clip_are_not_read_as_those_of_gpt2(tmp_path):
    from subword_nb.core.unicode import CHAR2BYTE

    letters = [*CHAR2BYTE]
    (tmp_path / "vocab.json").write_text(
        json.dumps({p: i for i, p in enumerate([*letters, *(c + "</w>" for c in letters), "in</w>", "in"])}),
        encoding="utf-8",
    )
    (tmp_path / "merges.txt").write_text("#version: 0.2\ni n</w>\ni n\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"got one that marks ends of words by </w>, as CLIP's, .*open its tokenizer\.json"
    ):
        Tokenizer.load(tmp_path)
    (tmp_path / "vocab.json").write_text(
        json.dumps({p: i for i, p in enumerate([*letters, "in", "</w>", "!</w>"])}), encoding="utf-8"
    )
    (tmp_path / "merges.txt").write_text("#version: 0.2\ni n\n", encoding="utf-8")
    assert Tokenizer.load(tmp_path).encode("in") == [256], "pieces that only happen to hold it"
