"""subword-nmt codes: the text that subword-nmt 0.3.8 writes, on its own codes and generated ones, and damaged files."""

import io
import random
from pathlib import Path

import pytest
from seeds import TEXTS as N, fresh
from tests.pipeline.test_align import generated

from subword_nb import Tokenizer
from subword_nb.pipeline.decoding import decode, decode_stream, decode_stream_ref
from subword_nb.pipeline.encoder import Engine
from subword_nb.formats.subword_nmt import (
    SPECIAL,
    WORDS,
    NmtBPE,
    NmtDecoder,
    bpe_from_nmt,
    looks_like_codes,
    nmt_from_bpe,
    nmt_merge,
    nmt_merge_ref,
    nmt_notes,
    read_codes,
    read_counts,
    read_nmt,
    segment,
    segment_word,
    write_codes,
    write_dictionary,
)

SMALL = (
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest it's don't "
    "1934USABUSA USA <name>Bo</name> a b ab abab héllo wörld 你好 世界 😀😀 x@@ @@ </w> a</w>\n"
)


def peer():
    return pytest.importorskip("subword_nmt.apply_bpe")


def learned(text=SMALL * 3, rules=120, capsys=None):
    "Codes that the peer learns."
    learn, out = pytest.importorskip("subword_nmt.learn_bpe"), io.StringIO()
    learn.learn_bpe(io.StringIO(text), out, rules)
    return out.getvalue()


def put(folder, text, name="codes"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def chars(rng, n):
    return "".join(rng.choices("abcdelowrstni USA19@<>/w' é你😀\t\u00a0\u3000\u2028\x0b\x85\x00", k=n))


def lines(n, seed):
    "Lines without line ends."
    rng = fresh(seed)
    words = SMALL.split()
    made = [
        " ".join(rng.choices(words, k=rng.randint(0, 6)))
        if rng.random() < 0.5
        else chars(rng, rng.randint(0, 24))
        for _ in range(n // 2)
    ]
    return [
        t.replace("\n", " ").replace("\r", " ")
        for t in [
            *made,
            *generated(n - len(made), seed, ["USA", "<name>Bo</name>", "low", "est", "@@", "</w>"]),
        ]
    ]


@pytest.mark.peers
@pytest.mark.parametrize("version", ["#version: 0.2\n", "#version: 0.1\n", ""])
def test_codes_that_the_peer_learned(version, tmp_path, capsys, record_property):
    codes = version + learned().partition("\n")[2]
    ref, model = peer().BPE(io.StringIO(codes)), read_nmt(put(tmp_path, codes)).model
    for text in lines(N, 1):
        assert segment(model, text) == ref.process_line(text), text
    record_property("texts", N)


@pytest.mark.peers
@pytest.mark.parametrize("version", ["#version: 0.2\n", ""])
def test_vocabulary_threshold_and_glossaries(version, tmp_path, capsys):
    codes = version + learned().partition("\n")[2]
    plain = peer().BPE(io.StringIO(codes))
    counted = {}
    for text in lines(300, 5):
        for p in plain.process_line(text).split(" "):
            counted[p] = counted.get(p, 0) + 1
    counted = {p: n for p, n in counted.items() if p and not set(p) & set("\r\n")}
    listed = "".join(f"{p} {n}\n" for p, n in sorted(counted.items(), key=lambda item: -item[1]))
    vocab = put(tmp_path, listed, "vocab")
    glossaries = ["USA", "<name>\\w*</name>", r"\d+", "lo"]
    for threshold in (None, 3, 12):
        allowed = peer().read_vocabulary(io.StringIO(listed), threshold)
        for words in ((), glossaries):
            ref = peer().BPE(io.StringIO(codes), vocab=allowed, glossaries=list(words))
            parts = read_nmt(put(tmp_path, codes), vocabulary=vocab, threshold=threshold, glossaries=words)
            assert (
                parts.model.vocabulary == allowed
                and list(parts.model.piece2id)[4:] == [p for p in counted if p not in SPECIAL]
                or sorted(counted) != list(counted)
            )
            for text in lines(N // 6, 7):
                assert segment(parts.model, text) == ref.process_line(text), text


@pytest.mark.peers
def test_dropout_takes_the_same_chances(tmp_path, capsys):
    codes = learned()
    ref, model = (
        peer().BPE(io.StringIO(codes), glossaries=["USA"]),
        read_nmt(put(tmp_path, codes), glossaries=["USA"]).model,
    )
    for seed, text in enumerate(lines(N // 4, 3)):
        for rate in (0.1, 0.5, 1.0):
            random.seed(seed)
            expected = ref.process_line(text, rate)
            assert segment(model, text, dropout=rate, seed=seed) == expected
    assert segment(model, "newest lowest", dropout=0) == segment(model, "newest lowest")


def random_rules(rng):
    "Rules in any order, some twice, some that nothing makes."
    symbols, rules = ["a", "b", "c", "a</w>", "b</w>"], []
    for _ in range(rng.randint(1, 12)):
        rules.append(
            (rng.choice([s for s in symbols if not s.endswith("</w>")]), rng.choice([*symbols, "</w>"]))
        )
        symbols.append("".join(rules[-1]))
    rng.shuffle(rules)
    return rules + rng.choices(rules, k=rng.choice((0, 0, 1, 2)))


@pytest.mark.peers
def test_rules_in_any_order(capsys):
    "Rules in the wrong order, twice, with two ways to one symbol: rounds, first lines and undoing are those of the peer."
    rng = fresh(11)
    for _ in range(N // 4):
        rules, version = random_rules(rng), rng.choice(((0, 1), (0, 2)))
        source = f"#version: {version[0]}.{version[1]}\n" + "".join(f"{a} {b}\n" for a, b in rules)
        allowed = frozenset(
            rng.sample(
                ["a@@", "b@@", "c@@", "ab@@", "ab", "a", "b", "c", "aba", "ba@@", "bb"], k=rng.randint(1, 9)
            )
        )
        glossaries = rng.choice(((), ("ab+c", "^a", "c")))
        model, ref = (
            NmtBPE({"<unk>": 0}, rules, version, glossaries=glossaries),
            peer().BPE(io.StringIO(source), glossaries=list(glossaries)),
        )
        strict, ref2 = (
            NmtBPE({"<unk>": 0}, rules, version, glossaries=glossaries, vocabulary=allowed),
            peer().BPE(io.StringIO(source), vocab=set(allowed), glossaries=list(glossaries)),
        )
        for _ in range(4):
            text = "".join(rng.choices("abc d", k=rng.randint(0, 30)))
            assert segment(model, text) == ref.process_line(text), (source, text)
            assert segment(strict, text) == ref2.process_line(text), (source, text, allowed)


def test_heap_and_rounds_agree():
    rng = fresh(2)
    for _ in range(3000):
        ranks = {pair: k for k, pair in reversed([*enumerate(random_rules(rng))])}
        symbols = rng.choices("abc", k=rng.choice((0, 1, 2, 5, 40)))
        symbols[-1:] = [s + "</w>" for s in symbols[-1:]]
        assert nmt_merge(symbols, ranks) == nmt_merge_ref(symbols, ranks)


def test_long_words_take_no_longer_than_they_must():
    rules = [("a", "a"), ("aa", "aa"), ("aaaa", "aaaa")]
    model = NmtBPE({"<unk>": 0}, rules, vocabulary=frozenset({"a@@", "a"}))
    for word in ("a" * 60_000, "ab" * 30_000):
        assert "".join(segment_word(model, word)) == word
    deep = NmtBPE({"<unk>": 0}, [("a" * n, "a") for n in range(1, 3000)], vocabulary=frozenset({"a@@", "a"}))
    assert segment_word(deep, "a" * 2900) == ["a"] * 2900


CODES = "#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\n"


def test_ids_by_dictionary_by_vocabulary_and_by_codes(tmp_path):
    codes = put(tmp_path, CODES)
    fair = put(tmp_path, "low 5\nlow@@ 3\ner 2\n", "dict.txt")
    parts = read_nmt(codes, dictionary=fair)
    assert parts.model.piece2id == {
        "<s>": 0,
        "<pad>": 1,
        "</s>": 2,
        "<unk>": 3,
        "low": 4,
        "low@@": 5,
        "er": 6,
    }
    tok = Tokenizer(**parts._replace(source=None, allowed_special=())._asdict())
    assert tok.encode("low lower  low\nx") == [4, 5, 6, 4, 3] and tok.tokenize("lower") == ["low@@", "er"]
    assert (
        tok.decode([4, 5, 6, 4]) == "low lower low"
        and tok.decode([0, 4, 2], skip_special_tokens=True) == "low"
    )
    assert read_nmt(codes, vocabulary={"er": 2, "low": 1}).model.piece2id == {
        **dict(zip(SPECIAL, range(4))),
        "er": 4,
        "low": 5,
    }
    own = read_nmt(codes).model.piece2id
    assert list(own)[4:] == [
        "l@@",
        "l",
        "o@@",
        "o",
        "w@@",
        "w",
        "e@@",
        "e",
        "r@@",
        "r",
        "lo@@",
        "low",
        "low@@",
        "er",
    ] and list(own.values()) == list(range(18))


def test_places_and_streams(tmp_path):
    tok = Tokenizer(
        **read_nmt(put(tmp_path, CODES), glossaries=["USA"])
        ._replace(source=None, allowed_special=())
        ._asdict()
    )
    rng = fresh(4)
    for text in ["low lower 你好 lowUSAer  e\r\n r", *lines(200, 9)]:
        e = tok.align(text)
        assert e.ids == tok.encode(text)
        assert "".join(text[a:b] for a, b in e.offsets) == "".join(c for p in WORDS.split(text) for c in p[0])
    for _ in range(300):
        ids = rng.choices(range(tok.vocab_size), k=rng.randint(0, 8))
        assert (
            "".join(decode_stream(tok, ids))
            == decode(tok, ids)
            == (" ".join(tok.id2piece[i] for i in ids) + " ").replace("@@ ", "").removesuffix(" ")
        )
        stream, hindsight = tok.stream(), decode_stream_ref(tok, ids)
        for i, text in zip(ids, hindsight):
            assert stream.step(i) == text or len(text) > 0


def test_dropout_through_the_tokenizer(tmp_path):
    parts = read_nmt(put(tmp_path, CODES))
    rows = {tuple(parts.model.encode("lower", dropout=0.5, rng=fresh(seed))) for seed in range(40)}
    assert len(rows) > 3 and tuple(parts.model.encode("lower")) in rows
    tokens = parts.model.tokens("lower", dropout=0.5, rng=fresh(3))
    assert [t.id for t in tokens] == parts.model.encode("lower", dropout=0.5, rng=fresh(3)) and tokens[
        -1
    ].end == 5
    with pytest.raises(ValueError, match=r"dropout must .*got 1\.5"):
        parts.model.encode("lower", dropout=1.5)


@pytest.mark.parametrize(
    "data, message",
    [
        ("#version: 0.3\na b\n", r"codes, line 1 must .*got '#version: 0\.3'"),
        ("#version:\na b\n", "line 1"),
        ("#version: 0.2\na b c\n", "codes, line 2 must .*got 'a b c'"),
        ("a b\n\nc d\n", "line 2"),
        ("", "line 1"),
        ("#version: 0.2\n\n\n", "codes must .*got none"),
        ("a b 3\nc d\n", "codes, line 2 must .*got 'c d'"),
        ("a b x\n", "line 1"),
        ("a  b\n", "line 1"),
        (b"a \xff\n", r"codes must .*got the byte 0xff at offset 2 \(invalid start byte\)"),
        ("\ufeff#version: 0.2\na b\n", "byte order mark"),
        ("#version: 0.2\na b 4\n", "line 2"),
        ("a\n", "line 1"),
        ("a b " + "9" * 30 + "\n", "line 1"),
    ],
)
def test_broken_codes(data, message, tmp_path):
    with pytest.raises(ValueError, match=message) as e:
        read_codes(put(tmp_path, data))
    assert str(e.value).startswith(str(tmp_path))


def test_other_spellings_of_codes(tmp_path):
    assert read_codes(put(tmp_path, "#version: 0.2\r\na b\r\nc d</w>\r\n")) == (
        [("a", "b"), ("c", "d</w>")],
        (0, 2),
    )
    assert read_codes(put(tmp_path, "a b\nc d\n\n\n")) == ([("a", "b"), ("c", "d")], (0, 1))
    assert read_codes(put(tmp_path, "a b 12\nc d</w> 4\n")) == ([("a", "b"), ("c", "d</w>")], (0, 2))
    assert read_codes(put(tmp_path, "#version: 0.2.0\na b\n")).version == (0, 2)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a\n", "codes, line 1 must .*got 'a'"),
        ("a 1\na 2\n", "codes must .*got 'a' again in line 2"),
        ("a b 1\n", "line 1"),
        ("a -1\n", "line 1"),
        ("", "line 1"),
        ("a 1\n\nb 1\n", "line 2"),
        ("\ufeffa 1\n", "byte order mark"),
    ],
)
def test_broken_dictionaries(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_counts(put(tmp_path, text))


def test_arguments_that_mean_nothing(tmp_path):
    codes = put(tmp_path, CODES)
    for options, message in [
        (dict(threshold=3), "there is none; pass vocabulary="),
        (dict(vocabulary={"a": 1}, threshold=9), "pass a lower one"),
        (dict(glossaries=["(a)b"]), r"glossaries must .*got '\(a\)b'"),
        (
            dict(glossaries=["["]),
            r"glossaries must be regular expressions, got '\[': unterminated character set at position 1",
        ),
        (dict(glossaries=[""]), "glossaries must .*got ''"),
        (dict(separator=""), "separator must .*got ''"),
        (dict(separator="a b"), "separator must .*got 'a b'"),
        (dict(dictionary=put(tmp_path, "<s> 1\n", "d")), "remove its line"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_nmt(codes, **options)
    with pytest.raises(ValueError, match="the dictionary must have an id for the piece 'x', got none"):
        NmtBPE({"a": 0}, [("a", "b")], unk_piece=None).encode("x")
    with pytest.raises(ValueError, match="word must be a str, got bytes"):
        NmtBPE({"<unk>": 0}, []).encode(b"x")
    with pytest.raises(FileNotFoundError):
        read_nmt(tmp_path / "none")


def test_recognition(shared_data):
    assert (
        looks_like_codes(CODES.encode())
        and looks_like_codes(b"e n</w> 12\nt h 3\n")
        and looks_like_codes(b"t h\ne r</w>\r\nhalf")
    )
    for other in (
        b"",
        b"#version: 0.2\n\xc4\xa0 t\nh e\n",
        b"[PAD]\n[UNK]\n",
        b"minbpe v1\n\n0\n97 97\n",
        b"\x0a\x0e\x0a\x05<unk>",
        b"{}",
        b"IQ== 0\nIg== 1\n",
    ):
        assert not looks_like_codes(other), other
    for path in shared_data.glob("vocab/*/*"):
        if path.is_file():
            assert not looks_like_codes(path.read_bytes()[: 1 << 16]), path


def trained(**options):
    return Tokenizer.train(
        [SMALL.replace("x@@ @@ ", "") * 3],
        vocab_size=160,
        algorithm="char_bpe",
        end_of_word_suffix="</w>",
        special_tokens=list(SPECIAL),
        unk_piece="<unk>",
        **{"pre_tokenizer": "whitespace_split", **options},
    )


@pytest.mark.peers
def test_our_own_codes_in_the_peer(tmp_path, capsys):
    "Trained here, written, applied by the peer, and read again with dict.txt: the same pieces and ids."
    tok = trained()
    write_codes(tok.parts, tmp_path / "codes")
    write_dictionary(tok.parts, tmp_path / "dict.txt")
    ref = peer().BPE(io.StringIO((tmp_path / "codes").read_text(encoding="utf-8")))
    again = read_nmt(tmp_path / "codes", dictionary=tmp_path / "dict.txt")
    assert again.model == nmt_from_bpe(tok.parts).model
    back = Tokenizer(**again._replace(source=None, allowed_special=())._asdict())
    for text in lines(N, 21):
        text = " ".join(text.split())
        ids = tok.encode(text, allowed_special=())
        assert back.encode(text) == ids
        assert ref.process_line(text) == segment(again.model, text)
        assert [back.piece2id.get(p, 3) for p in ref.process_line(text).split(" ") if p] == ids


def test_as_ordinary_bpe_and_back(tmp_path):
    tok = trained()
    nmt = nmt_from_bpe(tok.parts)
    bpe = bpe_from_nmt(nmt)
    assert bpe.model.piece2id == tok.model.piece2id and bpe.model.merges == tok.model.merges
    one, two = (
        Tokenizer(**bpe._replace(source=None, allowed_special=())._asdict()),
        Tokenizer(**nmt._replace(source=None, allowed_special=())._asdict()),
    )
    one.save(tmp_path / "tokenizer.json")
    saved = Tokenizer.load(tmp_path / "tokenizer.json", allowed_special=())
    for text in [*lines(500, 31), "a\r\n b\r \n\n c", " \r a"]:
        assert one.encode(text) == two.encode(text) == saved.encode(text)
    assert (
        nmt_from_bpe(bpe).model == nmt.model
        and bpe_from_nmt(read_nmt(put(tmp_path, CODES))).model.end_of_word_suffix == "</w>"
    )


def test_what_codes_cannot_say(tmp_path):
    parts = trained().parts
    m = parts.model
    from dataclasses import replace

    for change, message in [
        (dict(end_of_word_suffix=""), "end_of_word_suffix must .*got ''"),
        (dict(fuse_unk=True), "fuse_unk must .*got True"),
        (dict(ignore_merges=True), "ignore_merges"),
        (dict(unk_piece=None, drop_unknown=True), "drop_unknown"),
        (dict(merges=[*m.merges, m.merges[0]]), "codes must .*got e s again as rule 57"),
        (dict(merges=m.merges[::-1]), "put the rules in order"),
        (dict(merges=[]), "the model must .*got none"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_codes(parts._replace(model=replace(m, **change)), tmp_path / "no")
    with pytest.raises(ValueError, match="must have the ids 0 to 3 .*train with these special_tokens"):
        write_dictionary(
            Tokenizer.train([SMALL], vocab_size=120, algorithm="char_bpe", end_of_word_suffix="</w>").parts,
            tmp_path / "no",
        )
    assert not (tmp_path / "no").exists()
    nmt = read_nmt(put(tmp_path, CODES), vocabulary={"low": 1}, glossaries=["a"])
    with pytest.raises(ValueError, match="subword-nmt's own"):
        bpe_from_nmt(nmt)
    with pytest.raises(ValueError, match=r"codes must be of version 0\.2 .*got 0\.1"):
        bpe_from_nmt(read_nmt(put(tmp_path, "a b\n")))
    with pytest.raises(ValueError, match="does not list all"):
        bpe_from_nmt(read_nmt(put(tmp_path, CODES), dictionary=put(tmp_path, "low 1\n", "d")))
    notes = " ".join(nmt_notes(nmt))
    assert (
        "dict.txt" in notes
        and "glossaries" in notes
        and "vocabulary" in notes
        and "Whitespace" in " ".join(nmt_notes(trained(pre_tokenizer="whitespace").parts))
    )
    path = write_codes(nmt, tmp_path / "again")
    assert path.read_text() == CODES and read_codes(
        write_codes(read_nmt(put(tmp_path, "a b\n")), tmp_path / "old")
    ).version == (0, 1)


def mutated(data, rng):
    "A file with something wrong with it."
    data, k = bytearray(data), rng.randrange(6)
    at = rng.randrange(len(data) + 1)
    if k == 0:
        del data[at:]
    elif k == 1:
        data[at:at] = rng.randbytes(rng.randint(1, 9))
    elif k == 2 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    elif k == 3:
        data[at : at + rng.randint(1, 20)] = b""
    elif k == 4:
        data[at:at] = rng.choice([b"\n", b" ", b"\r\n", b"\0", b"</w>", b" 99999999999", "\u2028".encode()])
    else:
        data[at:at] = data[: rng.randrange(len(data) + 1)]
    return bytes(data)


def check_mutations(n, folder, seed):
    rng = fresh(seed)
    for _ in range(n):
        codes, listed = (
            put(folder, mutated(CODES.encode(), rng)),
            put(folder, mutated(b"low 5\nlow@@ 3\ner 2\n", rng), "dict.txt"),
        )
        for options in ({}, {"dictionary": listed}, {"vocabulary": listed}):
            try:
                parts = read_nmt(codes, **options)
            except ValueError as e:
                assert str(folder) in str(e) or "vocabulary" in str(e)
                continue
            model = parts.model
            assert "".join(segment_word(model, "lower</w>")) == "lower</w>"
            assert read_codes(write_codes(parts, folder / "again"))[0] == model.merges


def test_mutated_files(tmp_path):
    check_mutations(60, tmp_path, 1)


@pytest.mark.slow
def test_many_mutated_files(tmp_path):
    check_mutations(max(1000, 5 * N), tmp_path, 2)


def test_parts_are_plain_data(tmp_path):
    import pickle

    parts = read_nmt(put(tmp_path, CODES), vocabulary={"low": 3, "er": 1}, threshold=2, glossaries=["USA"])
    assert pickle.loads(pickle.dumps(parts)) == parts and repr(parts.model) == "NmtBPE(6 pieces, 4 merges)"
    assert parts.decoder == NmtDecoder("@@") and parts.decoder.to_dict() == {
        "type": "NmtDecoder",
        "separator": "@@",
    }
    tok = Engine(parts.model, pre_tokenizer=parts.pre_tokenizer)
    assert tok.encode("low") == [4] and isinstance(tok.encode_array("low lower").tolist(), list)
    assert Path(tmp_path).is_dir()
