"""What is fuzzed: functions from bytes to None that may raise the documented errors and no others."""

import contextlib
import gzip
import importlib.util
import json
import lzma
import tempfile
import warnings
from functools import cache
from pathlib import Path

import made
from inputs import Choices, text_of
from ways import REFUSED, check_all, check_decode, same, sizes, tried

from subword_nb import Tokenizer
from subword_nb.text.alignment import Aligned
from subword_nb.text.dfa import automaton, automaton_scanner, find_ref
from subword_nb.bpe.reference import bpe_encode_ref, bpe_train_ref
from subword_nb.bpe.trainer import bpe_train
from subword_nb.text.charsmap import Charsmap, charsmap_rules, longest_ref
from subword_nb.train.checkpoints import Checkpoint, load_snapshot
from subword_nb.insight.compare import compare
from subword_nb.train.counting import batches_of, count_corpus, count_corpus_ref
from subword_nb.corpus.counts import load_counts
from subword_nb.pipeline.decoders import decode_pieces, decoder_from_dict
from subword_nb.insight.explain import explain
from subword_nb.formats.detect import kind_of_head, read_file
from subword_nb.formats.gguf import explain_gguf, looks_like_gguf, read_gguf, read_gguf_metadata
from subword_nb.formats.huggingface import read_gpt2_files, read_hf
from subword_nb.bulk.id_files import load_encoded
from subword_nb.core.simd import scan_spans
from subword_nb.formats.subword_nmt import read_codes, read_counts, read_nmt
from subword_nb.text.normalizers import normalizer_from_dict
from subword_nb.formats.vocab_files import read_minbpe, read_vocab_txt
from subword_nb.text.regex import compile_pattern
from subword_nb.text.pretokenizers import pretokenizer_from_dict
from subword_nb.pipeline.processors import processor_from_dict
from subword_nb.formats.sentencepiece import read_sentencepiece
from subword_nb.formats.sentencepiece_proto import (
    explain_model_proto,
    looks_like_model_proto,
    read_model_proto,
    write_model_proto,
)
from subword_nb.corpus.sources import Corpus, files
from subword_nb.text.splitters import Split
from subword_nb.pipeline.encoder import encode_blocks
from subword_nb.core.unicode import decode_text
from subword_nb.formats.tiktoken import encode_by_ranks_ref, read_ranks, read_tiktoken
from subword_nb.wordpiece.reference import wordpiece_encode_ref, wordpiece_train_ref
from subword_nb.wordpiece.trainer import wordpiece_train

DOCUMENTED = (ValueError, KeyError, FileNotFoundError)  # UnicodeError and JSONDecodeError are ValueErrors
if importlib.util.find_spec("pyarrow") is None:
    DOCUMENTED += (ImportError,)  # which says what to install
TARGETS = {}
CUT = b"\n----\n"  # stands between the files of inputs that have several
TEXT = "The low light, isn't it? été 你好 <s> ▁a  12\n"


def target(fn):
    "Make a function a target: the documented errors are answers, all others are faults."

    def run(data: bytes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(DOCUMENTED):
                fn(data)

    TARGETS[fn.__name__] = run
    return run


@cache
def folder() -> Path:
    "Where the files of this process are."
    kept = tempfile.TemporaryDirectory(prefix="subword-nb-fuzz-")
    folder.kept = kept  # removed when the process ends
    return Path(kept.name)


def put(name: str, data: bytes) -> Path:
    "The data as a file."
    path = folder() / name
    path.write_bytes(data)
    return path


def parts_of(data: bytes, n: int) -> list[bytes]:
    return (data.split(CUT, n - 1) + [b""] * n)[:n]


def use(parts, data: bytes):
    "What was loaded, at work: the same ids on every way."
    tok = Tokenizer(**parts._asdict())
    tried(tok.inspect)
    check_all(tok, TEXT, Choices(data[-8:]))
    c = Choices(bytes(data[:16]))
    check_all(tok, c.text(), c)
    tried(tok.decode, [0, 1, 2, 5])


@target
def tokenizer_json(data):
    use(read_hf(put("tokenizer.json", data)), data)


@target
def gpt2_files(data):
    vocab, merges = parts_of(data, 2)
    use(read_gpt2_files(put("vocab.json", vocab), put("merges.txt", merges)), data)


@target
def vocab_txt(data):
    use(read_vocab_txt(put("vocab.txt", data)), data)


@target
def tiktoken_ranks(data):
    ranks = read_ranks(data)
    use(read_tiktoken(put("own.tiktoken", data), pattern="gpt2"), data)
    tried(encode_by_ranks_ref, TEXT.encode()[:20], ranks)


@target
def sentencepiece_model(data):
    use(read_sentencepiece(put("spm.model", data)), data)


@target
def sentencepiece_wire(data):
    looks_like_model_proto(data)
    tried(explain_model_proto, data)
    proto = read_model_proto(data)
    written = write_model_proto(proto)
    again = read_model_proto(written)
    same("a model written again", write_model_proto(again), written, "")
    if "nan" not in repr(proto):
        same("its pieces", again.pieces, proto.pieces, "")
    same(
        "what nobody understands", sorted(map(repr, again.rest)), sorted(map(repr, proto.rest)), ""
    )  # fields of a kind are written together, so their order may change


@target
def charsmap(data):
    blob, text = data.rsplit(b"\n", 1) if b"\n" in data else (data, b"")
    found = Charsmap(blob)
    text = text_of(text) or TEXT
    found.normalize(text)
    made_ = found.longest(text)
    same(
        "the characters of changes", "".join(ch for ch, _ in found.changes(text)), found.normalize(text), text
    )
    rules = tried(charsmap_rules, blob)
    if (
        rules is not REFUSED and "\0" not in text and len(rules) < 2000 and len(text) < 1000
    ):  # the reference looks at every stretch
        expected = tried(longest_ref, rules, text)
        if expected is not REFUSED and all(rules):
            same("longest", made_, expected, text)


@target
def minbpe(data):
    use(read_minbpe(put("own.model", data)), data)


@target
def nmt_codes(data):
    codes, vocabulary, dictionary = parts_of(data, 3)
    path = put("codes.bpe", codes)
    read_codes(path)
    more = {"vocabulary": put("vocabulary.txt", vocabulary)} if vocabulary else {}
    if dictionary:
        more["dictionary"] = put("dict.txt", dictionary)
        tried(read_counts, more["dictionary"])
    use(read_nmt(path, **more), data)


@target
def gguf(data):
    looks_like_gguf(data)
    tried(explain_gguf, data)
    path = put("own.gguf", data)
    read_gguf_metadata(path)
    use(read_gguf(path), data)


@target
def any_file(data):
    kind_of_head(data)
    kind_of_head(data, is_complete=False)
    use(read_file(put("file", data))[1], data)


@target
def model_folder(data):
    tokenizer, config = parts_of(data, 2)
    inside = folder() / "model"
    inside.mkdir(exist_ok=True)
    (inside / "tokenizer.model").write_bytes(tokenizer)
    (inside / "tokenizer_config.json").write_bytes(config)
    use(read_file(inside)[1], data)


@target
def counts_npz(data):
    load_counts(put("counts.npz", data))


@target
def checkpoint(data):
    inside = folder() / "checkpoint"
    inside.mkdir(exist_ok=True)
    for name, part in zip(("run.json", "counts.npz", "state.npz"), parts_of(data, 3)):
        (inside / name).write_bytes(part)
    tried(load_snapshot, inside / "state.npz")
    Checkpoint(inside, {"algorithm": "bpe", "vocab_size": 300})


@target
def encoded_files(data):
    inside = folder() / "encoded"
    inside.mkdir(exist_ok=True)
    for name, part in zip(("index.json", "00000.npy", "00000.npy.bounds.npy"), parts_of(data, 3)):
        (inside / name).write_bytes(part)
    for shard in load_encoded(inside):
        shard.bounds[:3].tolist(), shard.ids[:3].tolist()


@target
def json_lines(data):
    path, c = put("rows.jsonl", data), Choices(data)
    for options in ({}, {"field": "a.b", "errors": c.pick(("strict", "replace", "ignore"))}):
        tried(lambda options=options: [*Corpus(path, **options).documents()])


@target
def packed_text(data):
    kind, body = data[:1], data[1:]
    name, pack = {b"g": (".gz", gzip.compress), b"x": (".xz", lzma.compress)}.get(kind, (".gz", None))
    list(Corpus(put("text.txt" + name, body if pack is None else pack(body)), errors="replace").documents())


@target
def tables(data):
    list(Corpus(files(put("rows.parquet" if data[:4] == b"PAR1" else "rows.arrow", data))).documents())


@target
def pattern(data):
    c = Choices(data[:4])
    dialect, text, source = (
        c.pick(("rust", "oniguruma")),
        c.text(3) + "ab1 é\nA",
        decode_text(data[4:], errors="replace"),
    )
    if len(source) > 300:
        return
    expected = compile_pattern(source, dialect=dialect).spans(text)
    found = find_ref(automaton(source, dialect=dialect), text)
    same("the automaton", found, expected, (source, text))
    scanner = tried(automaton_scanner, source, dialect=dialect)
    if scanner is not REFUSED:
        cuts = {0, len(text), *(i for span in found for i in span)}
        same(
            "the scanner",
            [s.decode() for s in scan_spans(scanner, text.encode(), block=16)],
            [text[a:b] for a, b in zip(sorted(cuts), sorted(cuts)[1:])],
            (source, text),
        )


def loaded_json(data: bytes):
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@target
def normalizer(data):
    spec, text = parts_of(data, 2)
    norm, text = normalizer_from_dict(loaded_json(spec)), text_of(text)[:500] or TEXT
    if norm is None:
        return
    done, aligned = tried(norm.normalize, text), tried(lambda: norm.align(Aligned(text)).text)
    same("align", aligned, done, text)
    same("a normalizer written and read", normalizer_from_dict(norm.to_dict()), norm, spec)


@target
def pre_tokenizer(data):
    spec, text = parts_of(data, 2)
    pre, text = pretokenizer_from_dict(loaded_json(spec)), text_of(text)[:500] or TEXT
    pieces = tried(pre.split, text)
    if pieces is not REFUSED:
        same(
            "raw_pretokens",
            [pre.piece_of(raw) for raw in pre.raw_pretokens(text)],
            [p for p, _, _ in pieces],
            text,
        )
        same(
            "split_aligned",
            [(p.text, *p.span(0, len(p.text))) for p in pre.split_aligned(text)],
            pieces,
            text,
        )


@target
def decoder(data):
    spec, pieces = parts_of(data, 2)
    found = decoder_from_dict(loaded_json(spec))
    pieces = [text_of(p) for p in pieces.split(b"\n")][:60]
    decode_pieces(found, pieces)
    model = {p: i for i, p in enumerate(dict.fromkeys(pieces))}
    from subword_nb.wordpiece.wordlevel import WordLevel

    tok = Tokenizer(WordLevel(model, None), pre_tokenizer=None, decoder=found)
    check_decode(tok, [model[p] for p in pieces])


@target
def processor(data):
    from subword_nb.pipeline.encoding import Encoding

    found = processor_from_dict(loaded_json(data))
    if found is not None:
        text = Encoding([5, 6], ["a", "b"], [(0, 1), (1, 2)])
        for texts in ([text], [text, text]):
            for add in (True, False):
                ids = found.process_ids(
                    [5, 6], [5, 6] if len(texts) == 2 else None, add_special_tokens=add
                ).ids
                same("process", found.process(texts, add_special_tokens=add).ids, ids, "")


@cache
def trained(kind: str):
    "A tokenizer of our own, made of a few lines."
    lines = [
        "the low light in rooms, isn't it? 12 34",
        "été, ça va 你好 🤗 <0x41>",
        "low lower lowest; they've 1,000 rooms hug hugs",
    ] * 3
    algorithm, options = {
        "bpe": ("bpe", {}),
        "cl100k": ("bpe", {"pre_tokenizer": "cl100k"}),
        "o200k": ("bpe", {"pre_tokenizer": "o200k"}),
        "own_pattern": ("bpe", {"pre_tokenizer": r"\p{L}+|\d|\s+"}),
        "char_bpe": ("char_bpe", {"unk_piece": "<unk>", "fuse_unk": True}),
        "llama": ("char_bpe", {"byte_fallback": True, "pre_tokenizer": "metaspace"}),
        "wordpiece": ("wordpiece", {}),
        "unigram": ("unigram", {}),
        "unigram_bytes": ("unigram", {"byte_fallback": True, "pre_tokenizer": "metaspace"}),
        "wordlevel": ("wordlevel", {}),
    }[kind]
    return Tokenizer.train(
        lines, algorithm=algorithm, vocab_size=380, special_tokens=["<s>", "</s>"], progress=False, **options
    )


def encodes(data: bytes, *kinds: str):
    c = Choices(data[:6])
    kind = c.pick(kinds)
    with sizes():
        check_all(
            trained(kind), text_of(data[6:]), c, whole=kind in ("bpe", "cl100k", "o200k", "own_pattern")
        )


@target
def encode_bpe(data):
    encodes(data, "bpe", "cl100k", "o200k", "own_pattern")


@target
def encode_char_bpe(data):
    encodes(data, "char_bpe", "llama")


@target
def encode_wordpiece(data):
    encodes(data, "wordpiece", "wordlevel")


@target
def encode_unigram(data):
    encodes(data, "unigram", "unigram_bytes")


@target
def encode_made(data):
    "Tokenizers with unusual vocabularies and options, see `made`."
    c = Choices(data[:320])
    tok = made.some_tokenizer(c)
    for _ in range(2):
        check_all(tok, c.text(14), c)
    check_all(tok, text_of(data[320:]), c)


@target
def references(data):
    "Models against the slow functions that define them."
    from subword_nb.bpe.model import BPE
    from subword_nb.wordpiece.model import WordPiece

    c = Choices(data)
    word = "".join(made.LETTERS[b % len(made.LETTERS)] for b in data[200:240])
    model = made.some_bpe(c, False) if c.flag() else made.some_wordpiece(c)
    if isinstance(model, WordPiece) and model.unk_piece and word:
        pieces = wordpiece_encode_ref(
            word,
            model.piece2id,
            unk_piece=model.unk_piece,
            continuing_subword_prefix=model.continuing_subword_prefix,
            max_input_chars_per_word=model.max_input_chars_per_word,
        )
        same("WordPiece", model.encode(word), [model.piece2id[p] for p in pieces], word)
    if (
        isinstance(model, BPE)
        and not (model.continuing_subword_prefix or model.end_of_word_suffix or model.ignore_merges)
        and all(ch in model.piece2id for ch in word)
    ):
        same(
            "BPE",
            [
                model.piece2id[p]
                for p in bpe_encode_ref(list(word), {pair: r for r, pair in enumerate(model.merges)})
            ],
            model.encode(word),
            word,
        )


@target
def explain_compare(data):
    c = Choices(data[:4])
    kinds = ("bpe", "char_bpe", "llama", "wordpiece", "unigram", "wordlevel")
    one, other, text = trained(c.pick(kinds)), trained(c.pick(kinds)), text_of(data[4:])[:400]
    json.dumps(explain(one, text).to_dict())
    str(explain(one, text)), explain(one, text)._repr_html_()
    found = compare(one, other, text)
    same(
        "compare",
        found.counts,
        (len(one.encode(text, add_special_tokens=False)), len(other.encode(text, add_special_tokens=False))),
        text,
    )
    str(found), found._repr_html_(), json.dumps(found.to_dict())


@target
def decode_ids(data):
    tok = trained(
        ("bpe", "llama", "wordpiece", "unigram", "char_bpe", "wordlevel")[data[0] % 6 if data else 0]
    )
    check_decode(
        tok, [a | (b & 1) << 8 if b < 250 else a << 24 | b for a, b in zip(data[1::2], data[2::2])][:60]
    )


@target
def bytes_that_are_no_text(data):
    "UTF-8 is checked as Python does, and repaired as Python does."
    tok = trained("bpe")
    for errors in ("strict", "replace", "ignore"):
        text = tried(decode_text, data, errors=errors)
        expected = text if text is REFUSED else tok.encode(text)
        with sizes(bulk=0, loaded=0, block=16):
            same(
                f"errors={errors}",
                tried(lambda errors=errors: tok.encode_array(data, errors=errors).tolist()),
                expected,
                data,
            )
            if errors == "strict":
                same(
                    "blocks",
                    tried(
                        lambda: [
                            i
                            for ids in encode_blocks(tok, [data[k : k + 7] for k in range(0, len(data), 7)])
                            for i in ids.tolist()
                        ]
                    ),
                    expected,
                    data,
                )
        same("encode", tried(tok.encode, data, errors=errors), expected, data)


@target
def counting(data):
    from subword_nb.text.normalizers import Lowercase
    from subword_nb.text.pretokenizers import BertPreTokenizer, Metaspace, byte_level
    from subword_nb.text.splitters import WhitespaceSplit

    c = Choices(data[:6])
    norm, pre = (
        c.pick((None, Lowercase())),
        c.pick(
            (
                byte_level("gpt2"),
                byte_level("cl100k"),
                BertPreTokenizer(),
                WhitespaceSplit(),
                Metaspace(),
                Split("gpt2"),
                Split(" ", "removed"),
            )
        ),
    )
    docs = [text_of(part) for part in data[6:].split(b"\x01")]
    expected = count_corpus_ref(docs, norm, pre)
    for memory, most in ((1 << 30, 1 << 20), (1, 1 << 20), (1 << 30, 40)):
        found = count_corpus(batches_of(docs, size=most), norm, pre, memory=memory)
        same(
            "count_corpus",
            (found.data.tobytes(), found.bounds.tolist(), found.counts.tolist()),
            (expected.data.tobytes(), expected.bounds.tolist(), expected.counts.tolist()),
            docs,
        )


@target
def train(data):
    c = Choices(data[:8])
    counts = {text_of(w)[:40]: 1 + len(w) for w in data[8:300].split(b"\x02") if w}
    size, prefix, ties = 20 + c.number(60), c.pick(("", "##")), c.pick(("ids", "first", "bytes"))
    for fast, slow, options in (
        (bpe_train, bpe_train_ref, {"bulk": True, "end_of_word_suffix": c.pick(("", "</w>"))}),
        (wordpiece_train, wordpiece_train_ref, {}),
    ):
        given = {"continuing_subword_prefix": prefix, "tie_break": ties, "min_frequency": 1 + c.number(2)} | {
            k: v for k, v in options.items() if k != "bulk"
        }
        expected = tried(slow, counts, size, special_tokens=["<s>"], **given)
        for bulk_ in (False, True) if "bulk" in options else (None,):
            more = {} if bulk_ is None else {"bulk": bulk_}
            same(
                fast.__name__,
                tried(fast, counts, size, special_tokens=["<s>"], progress=False, **given, **more),
                expected,
                counts,
            )


@target
def train_whole(data):
    c = Choices(data[:8])
    lines = [text_of(part) for part in data[8:400].split(b"\n")]
    algorithm = c.pick(("bpe", "char_bpe", "wordpiece", "unigram", "wordlevel"))
    options = {"byte_fallback": c.flag()} if algorithm in ("char_bpe", "unigram") else {}
    made_ = tried(
        Tokenizer.train,
        lines,
        algorithm=algorithm,
        vocab_size=c.pick((5, 60, 280, 600)),
        special_tokens=["<s>"],
        progress=False,
        **options,
    )
    if made_ is not REFUSED:
        check_all(made_, "".join(lines)[:300], c)
        path = folder() / "trained.json"
        made_.save(path)
        same("a saved tokenizer", Tokenizer.load(path), made_, lines)


@target
def journal(data):
    "A run of `encode_files` that goes on from what stands in its folder."
    from subword_nb.bulk.encode_files import encode_files
    from subword_nb.bulk.id_files import LOG

    source, out = put("source.txt", b"the low light\nin rooms\n" * 20), folder() / "out.npy"
    expected, work = written(), folder() / "out.npy.partial"
    work.mkdir(exist_ok=True)
    (work / LOG).write_bytes(data)
    with contextlib.suppress(*DOCUMENTED):
        encode_files(trained("bpe"), source, out, progress=False, threads=1, overwrite=True)
        same("ids in the file", load_encoded(out).ids.tolist(), expected, data)
    encode_files(trained("bpe"), source, out, progress=False, threads=1, resume=False, overwrite=True)
    same("ids in the file", load_encoded(out).ids.tolist(), expected, data)


@cache
def written() -> list[int]:
    "The ids of the text that `journal` encodes."
    from subword_nb.bulk.encode_files import encode_files

    encode_files(trained("bpe"), folder() / "source.txt", folder() / "first.npy", progress=False, threads=1)
    return load_encoded(folder() / "first.npy").ids.tolist()


@target
def console_choices(data):
    "What takes names from users: splits, options, names of patterns."
    c, word = Choices(data), decode_text(data[:40], errors="replace")
    tried(Split, word)
    tried(
        Tokenizer.load,
        word if not Path(word).exists() and "/" not in word and "\0" not in word else "no-such-file",
    )
    tried(
        Tokenizer.train,
        ["a b"],
        algorithm=c.pick(("bpe", word)),
        vocab_size=c.pick((300, -1, 0, 2**70)),
        pre_tokenizer=c.pick(("default", word)),
        normalizer=c.pick(("default", word)),
        progress=False,
    )
    tried(
        trained("bpe").encode,
        "a <s>",
        allowed_special=c.pick(("all", (), word)),
        errors=c.pick(("strict", word)),
    )
