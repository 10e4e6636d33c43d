"""All ways to the ids of a text, and back, which must agree."""

import contextlib

from inputs import Choices

from subword_nb.pipeline import blocks
from subword_nb.core import jit
from subword_nb.core.records import fields
from subword_nb.pipeline import align as pipeline
from subword_nb.bulk.align import LongEncoding, align_long
from subword_nb.insight.compare import compare
from subword_nb.pipeline.decoding import decode_stream, decode_stream_ref
from subword_nb.pipeline.encoding import Encoding
from subword_nb.pipeline.encoder import encode_blocks, encode_general, encoder_of, choose_fast_path
from subword_nb.pipeline.engine import prefix_suffix_ids
from subword_nb.insight.explain import explain

COLUMNS = [field.name for field in fields(Encoding)]
REFUSED = "refused"


@contextlib.contextmanager
def sizes(**some):
    "Other limits between the ways."
    before = vars(blocks.SIZES).copy()
    vars(blocks.SIZES).update(some)
    try:
        yield
    finally:
        vars(blocks.SIZES).clear()
        vars(blocks.SIZES).update(before)


def tried(fn, *args, **options):
    "What a call gives; an error that the calls document is an answer, too."
    try:
        return fn(*args, **options)
    except (ValueError, KeyError):
        return REFUSED


def same(way: str, found, expected, text):
    assert found is expected or found == expected, (
        f"{way} gives {found!r:.300}, expected {expected!r:.300}, for {text!r:.300}"
    )


def cut(data: bytes, c: Choices) -> list[bytes]:
    "Bytes in blocks."
    out, at = [], 0
    while at < len(data):
        n = 1 + c.number(40)
        out.append(data[at : at + n])
        at += n
    return out


def check_encode(tok, text: str, c: Choices):
    "Every way to the ids of a text; returns them, or None if it is refused."
    engine_compiled = encoder_of(tok)
    with sizes(bulk=1 << 40, loaded=1 << 40):
        placed = tried(pipeline.place_tokens_ref, engine_compiled, text)
        expected = tried(encode_general, tok, text)
        if placed is not REFUSED:
            bare = tried(encode_general, tok, text, add_special_tokens=False)
            if tok.truncation is tok.padding is None and prefix_suffix_ids(engine_compiled, False) == (
                [],
                [],
            ):
                same("the engine", bare, list(placed[0]), text)
        same("encode", tried(tok.encode, text), expected, text)
        same(
            "encode_batch without kernels",
            tried(lambda: tok.encode_batch(["a", text, ""]).tolist()[1]) if tok.padding is None else REFUSED,
            expected if tok.padding is None and tried(encode_general, tok, "a") is not REFUSED else REFUSED,
            text,
        )
        aligned = tried(pipeline.align, tok, text)
        same("align", aligned if aligned is REFUSED else aligned.ids, expected, text)
        if len(text) < 200:
            said = tried(explain, tok, text)
            if said is not REFUSED and tok.truncation is tok.padding is None:
                same("explain", said.ids, expected, text)
    if jit.available() and engine_compiled.bulk is not None:
        check_kernels(tok, text, c, expected, aligned)
    if c.byte() < 40 and len(text) < 200:
        tried(compare, tok, tok, text)
    return None if expected is REFUSED else expected


def check_kernels(tok, text, c, expected, aligned):
    "The ways of the kernels, in blocks of any size."
    data = text.encode()
    with sizes(bulk=0, loaded=0, block=c.pick((4, 7, 64, 1 << 18))):
        same("encode by kernels", tried(tok.encode, text), expected, text)
        same("encode_array", tried(lambda: tok.encode_array(text).tolist()), expected, text)
        same("encode_array of bytes", tried(lambda: tok.encode_array(data).tolist()), expected, text)
        if tok.padding is None and expected is not REFUSED:
            same(
                "encode_batch",
                tried(
                    lambda: tok.encode_batch(
                        [text, "", text[:5] * 0, text], threads=c.pick((1, 1, 1, 2))
                    ).tolist()[::3]
                ),
                [expected, expected],
                text,
            )
        encoder = encoder_of(tok)
        if (short := tried(choose_fast_path(encoder, bulk=encoder.bulk), text)) is not None:
            same("choose_fast_path", short, expected, text)
        streamed = tried(lambda: [i for ids in encode_blocks(tok, cut(data, c)) for i in ids.tolist()])
        same("encode_blocks", streamed, expected, text)
        if tok.truncation is tok.padding is None and aligned is not REFUSED:
            found = align_long(encoder_of(tok), text, add_special_tokens=True)
            if isinstance(found, LongEncoding):
                for name in COLUMNS:
                    same(f"align by kernels, {name},", getattr(found, name), getattr(aligned, name), text)


def check_decode(tok, ids: list[int]):
    "Decoding as a whole, in batches, and id by id."
    text = tried(tok.decode, ids)
    same(
        "decode_batch",
        tried(tok.decode_batch, [ids, ids[:1]]),
        [text, tried(tok.decode, ids[:1])] if text is not REFUSED else REFUSED,
        ids,
    )
    streamed = tried(lambda: "".join(decode_stream(tok, ids)))
    if (
        streamed is REFUSED or text is REFUSED or "\ufffd" not in text
    ):  # a run of bytes that are not UTF-8 has a rule of its own in a stream
        same("decode_stream", streamed, text, ids)
    if len(ids) < 24 and text is not REFUSED:
        same("decode_stream_ref", "".join(decode_stream_ref(tok, ids)), streamed, ids)
    tried(tok.decode, ids, skip_special_tokens=True)
    tried(tok.decode, ids, errors="strict")
    return text


def check_all(tok, text: str, c: Choices, whole: bool = False):
    "Encode, decode; `whole`: decoding must give the text back."
    ids = check_encode(tok, text, c)
    if ids is None:
        return
    with sizes(bulk=1 << 40, loaded=1 << 40):
        decoded = check_decode(tok, ids)
        if whole:
            same("the round trip", decoded, text, text)
