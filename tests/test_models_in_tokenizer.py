"""WordPiece and Unigram behind the tokenizer: real vocabularies, saved files read by the peers, and sampling with its probabilities."""

import json
import math
import random
import subprocess
import sys

import pytest

from subword_nb import Tokenizer
from subword_nb.corpus.documents import COURSE_CORPUS, TOY_COUNTS
from subword_nb.pipeline.encoder import encoder_of
from subword_nb.pipeline.engine import units_of
from subword_nb.unigram.lattice import path_score, segmentations
from subword_nb.text.normalizers import BertNormalizer
from subword_nb.unigram.model import Unigram, part_ids
from subword_nb.pipeline.vocab import AddedToken

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def random_text(rng: random.Random, length: int = 40) -> str:
    "Words of the course, accents, other scripts, controls and the spellings of special tokens."
    words = [
        "Hugging",
        "tokens",
        "the",
        "This",
        "naïve",
        "Café",
        "你好",
        "привет",
        "ΣΑΣ",
        "İ",
        "ß",
        "ﬁ",
        "[MASK]",
        "<unk>",
        "hug's",
        "12,5",
        "e\u0301",
        "\u00ad",
        "\ufeff",
        "🤗",
    ]
    gaps = [" ", "  ", "\n", "\t", "", "-", ".", "\u00a0", "\u3000", "\x00", "\x85"]
    return "".join(rng.choice(words) + rng.choice(gaps) for _ in range(rng.randrange(length)))


def course_wordpiece(**options) -> Tokenizer:
    return Tokenizer.train(
        COURSE_CORPUS,
        algorithm="wordpiece",
        vocab_size=70,
        special_tokens=SPECIALS,
        tie_break="first",
        **options,
    )


def test_the_wordpiece_course_comes_out_as_published(shared_file):
    expected = json.loads(shared_file("course_expected.json").read_text())["wordpiece"]
    tok = course_wordpiece(normalizer=None, pre_tokenizer="bert")
    assert tok.id2piece == expected["vocab"]
    for text, pieces in expected["tokenize"].items():
        assert tok.tokenize(text) == pieces
    for word, pieces in expected["encode_word"].items():
        assert tok.tokenize(word) == pieces


def test_toy_words_in_wordpiece():
    tok = Tokenizer.train(TOY_COUNTS, algorithm="wordpiece", vocab_size=13, tie_break="first")
    assert tok.id2piece[-5:] == ["##gs", "hu", "hugs", "hug", "pu"]


@pytest.mark.parametrize(
    "name, lowercase", [("bert-base-uncased", True), ("bert-base-cased", False), ("bert-base-chinese", True)]
)
@pytest.mark.parametrize("said", [True, False])
def test_bert_vocabularies_are_golden(shared_file, name, lowercase, said):
    tok = Tokenizer.load(shared_file(f"vocab/{name}/vocab.txt"), **({"lowercase": lowercase} if said else {}))
    assert tok.normalizer.lowercase is lowercase
    strings = json.loads(shared_file("golden/strings.json").read_text())
    golden = json.loads(shared_file(f"golden/hf-wordpiece__{name}.json").read_text())
    assert [tok.encode(s) for s in strings] == golden["ids"]
    assert tok.encode_batch(strings).tolist() == golden["ids"]


def test_bert_json_adds_its_tokens_and_is_golden(shared_file):
    tok = Tokenizer.load(shared_file("vocab/bert-base-uncased/tokenizer.json"))
    strings = json.loads(shared_file("golden/strings.json").read_text())
    golden = json.loads(shared_file("golden/hf__bert-base-uncased.json").read_text())
    assert [tok.encode(s, add_special_tokens=False) for s in strings] == golden["ids"]
    assert [tok.encode(s) for s in strings] == [[101, *ids, 102] for ids in golden["ids"]]
    changed = (
        {int(i): text for i, text in golden["decoded_where_different"].items()}
        if isinstance(golden["decoded_where_different"], dict)
        else {}
    )
    for i, text in changed.items():
        assert tok.decode(golden["ids"][i]) == text


def trained() -> dict[str, Tokenizer]:
    corpus = COURSE_CORPUS + ["naïve Café привет 12,5 hug's", "[MASK] <unk>"]
    return {
        "score": course_wordpiece(),
        "frequency": Tokenizer.train(
            corpus,
            algorithm="wordpiece",
            vocab_size=120,
            special_tokens=SPECIALS,
            objective="frequency",
            normalizer=BertNormalizer(lowercase=False, strip_accents=True),
        ),
        "unigram": Tokenizer.train(corpus, algorithm="unigram", vocab_size=80, special_tokens=["<s>"]),
        "bytes behind": Tokenizer.train(corpus, algorithm="unigram", vocab_size=330, byte_fallback=True),
        "user-defined": Tokenizer.train(
            [*corpus, "a<n>b"], algorithm="unigram", vocab_size=90, user_defined=["<n>"], normalizer="nfkc"
        ),
        "whole text": Tokenizer.train(corpus, algorithm="unigram", vocab_size=80, pre_tokenizer=None),
        "byte-level unigram": Tokenizer.train(
            corpus, algorithm="unigram", vocab_size=100, pre_tokenizer="cl100k"
        ),
    }


@pytest.mark.parametrize(
    "name",
    ["score", "frequency", "unigram", "bytes behind", "user-defined", "whole text", "byte-level unigram"],
)
def test_saved_tokenizers_come_back(tmp_path, name):
    tok = trained()[name]
    again = Tokenizer.load(tok.save(tmp_path / "tokenizer.json"))
    assert again == tok
    rng = random.Random(1)
    for _ in range(200):
        text = random_text(rng)
        assert again.encode(text) == tok.encode(text)
        assert again.encode(text, allowed_special=()) == tok.encode(text, allowed_special=())
    assert again.encode_batch([random_text(rng) for _ in range(50)]).tolist()


@pytest.mark.peers
@pytest.mark.parametrize(
    "name",
    ["score", "frequency", "unigram", "bytes behind", "user-defined", "whole text", "byte-level unigram"],
)
def test_saved_tokenizers_in_the_hands_of_hugging_face(tmp_path, name):
    tokenizers = pytest.importorskip("tokenizers")
    tok = trained()[name]
    theirs = tokenizers.Tokenizer.from_file(str(tok.save(tmp_path / "tokenizer.json")))
    rng = random.Random(2)
    for _ in range(2000):
        text = random_text(rng)
        ids = tok.encode(text, allowed_special="all")
        assert ids == theirs.encode(text, add_special_tokens=False).ids, text
        assert tok.decode(ids) == theirs.decode(ids, skip_special_tokens=False), text


@pytest.mark.peers
def test_bert_pieces_on_random_text(shared_file):
    tokenizers = pytest.importorskip("tokenizers")
    for name, lowercase in (("bert-base-uncased", True), ("bert-base-cased", False)):
        path = shared_file(f"vocab/{name}/vocab.txt")
        ours, theirs = Tokenizer.load(path), tokenizers.BertWordPieceTokenizer(str(path), lowercase=lowercase)
        rng = random.Random(3)
        for _ in range(3000):
            text = (
                random_text(rng)
                if rng.random() < 0.5
                else "".join(
                    chr(c) if not 0xD800 <= c < 0xE000 else "?"
                    for c in (rng.randrange(rng.choice([0x80, 0x800, 0x10000, 0x110000])) for _ in range(30))
                )
            )
            assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, text


def test_best_splits_and_draws_of_a_text():
    tok = Tokenizer.train(COURSE_CORPUS, algorithm="unigram", vocab_size=60)
    text = "the tokens show"
    every = tok.nbest(text, n=10**6)
    assert len({tuple(s.ids) for s in every}) == len(every)
    assert every[0].ids == tok.encode(text)
    assert all(a.score >= b.score for a, b in zip(every, every[1:]))
    assert tok.nbest(text, n=7) == every[:7]
    for alpha in (0.0, 0.3, 1.0):
        weights = [math.exp(alpha * s.score) for s in every]
        total = sum(weights)
        entropy = -sum(w / total * math.log(w / total) for w in weights)
        assert math.isclose(tok.entropy(text, alpha=alpha), entropy, rel_tol=1e-9)
    log_weight = {tuple(s.ids): 0.3 * s.score for s in every}
    total = math.log(sum(map(math.exp, log_weight.values())))
    for seed in range(50):
        drawn = tok.sample(text, alpha=0.3, seed=seed)
        assert math.isclose(drawn.score, log_weight[tuple(drawn.ids)] - total, rel_tol=1e-9)
        few = tok.sample(text, alpha=0.3, nbest_size=5, seed=seed)
        assert few.ids in [s.ids for s in every[:5]]


def test_drawn_splits_follow_their_probabilities():
    tok = Tokenizer.train(COURSE_CORPUS, algorithm="unigram", vocab_size=60)
    text, alpha, n = "the tok", 0.5, 4000
    every = tok.nbest(text, n=10**6)
    weights = [math.exp(alpha * s.score) for s in every]
    expected = {tuple(s.ids): n * w / sum(weights) for s, w in zip(every, weights)}
    seen = dict.fromkeys(expected, 0)
    for seed in range(n):
        seen[tuple(tok.sample(text, alpha=alpha, seed=seed).ids)] += 1
    # splits expected fewer than five times are counted together, as the test asks for
    small = [k for k, e in expected.items() if e < 5]
    cells = [(seen[k], e) for k, e in expected.items() if e >= 5] + [
        (sum(seen[k] for k in small), sum(expected[k] for k in small))
    ]
    statistic = sum((o - e) ** 2 / e for o, e in cells if e)
    freedom = len(cells) - 1
    assert statistic < freedom + 5 * math.sqrt(2 * freedom), (statistic, freedom)


def hugging_face_tokenizer(rng: random.Random):
    "A WordPiece or Unigram tokenizer of any make, trained by Hugging Face's library on a few sentences."
    from tokenizers import AddedToken as Added
    from tokenizers import Tokenizer as Theirs
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

    def flag():
        return rng.random() < 0.5

    corpus, specials = (
        COURSE_CORPUS + ["naïve Café привет 12,5 hug's <n> [MASK] 你好 abc-def"],
        ["[CLS]", "[SEP]", "[MASK]"],
    )
    if flag():
        tok = Theirs(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=rng.choice([100, 6])))
        trainer = trainers.WordPieceTrainer(
            vocab_size=140, special_tokens=["[UNK]", *specials], show_progress=False
        )
    else:
        tok = Theirs(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=80, special_tokens=["<unk>", *specials], unk_token="<unk>", show_progress=False
        )
    norm = rng.choice(
        [
            None,
            normalizers.BertNormalizer(flag(), flag(), rng.choice([None, True, False]), flag()),
            normalizers.NFKC(),
            normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
        ]
    )
    pre = rng.choice(
        [
            None,
            pre_tokenizers.BertPreTokenizer(),
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(prepend_scheme=rng.choice(["always", "never"])),
            pre_tokenizers.Metaspace(split=False),
            pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
        ]
    )
    if norm:
        tok.normalizer = norm
    if pre:
        tok.pre_tokenizer = pre
    tok.train_from_iterator(corpus, trainer)
    tok.add_tokens(
        [
            Added(
                rng.choice(["<n>", "tok", "é", "hug's"]),
                single_word=flag(),
                lstrip=flag(),
                rstrip=flag(),
                normalized=flag(),
            )
        ]
    )
    begin, end = ((t, tok.token_to_id(t)) for t in ("[CLS]", "[SEP]"))
    post = rng.choice(
        [
            None,
            processors.BertProcessing(end, begin),
            processors.RobertaProcessing(end, begin),
            processors.TemplateProcessing(
                single="[CLS] $A [SEP]:1", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[begin, end]
            ),
        ]
    )
    if post:
        tok.post_processor = post
    tok.decoder = rng.choice([decoders.WordPiece(cleanup=flag()), decoders.Metaspace()])
    return tok


@pytest.mark.peers
def test_files_that_hugging_face_made(tmp_path):
    pytest.importorskip("tokenizers")
    rng = random.Random(4)
    for _ in range(150):
        theirs = hugging_face_tokenizer(rng)
        theirs.save(str(tmp_path / "theirs.json"))
        ours = Tokenizer.load(tmp_path / "theirs.json")
        for _ in range(15):
            text, added = random_text(rng, 12), rng.random() < 0.5
            assert (
                ours.encode(text, add_special_tokens=added)
                == theirs.encode(text, add_special_tokens=added).ids
            ), (text, (tmp_path / "theirs.json").read_text())


@pytest.mark.peers
def test_where_the_libraries_part(tmp_path):
    "The corners that `formats.huggingface` tells of; when one of them closes, its sentence goes."
    tokenizers = pytest.importorskip("tokenizers")

    def both(tok):
        return tok, tokenizers.Tokenizer.from_file(str(tok.save(tmp_path / "tokenizer.json")))

    ours, theirs = both(
        Tokenizer.train(
            COURSE_CORPUS,
            algorithm="unigram",
            vocab_size=60,
            special_tokens=["<s>"],
            normalizer="nfkc",
            allowed_special=(),
        )
    )
    assert "<s>" not in ours.tokenize("＜s＞") and "<s>" in theirs.encode("＜s＞").tokens
    ours, theirs = both(
        Tokenizer.train(COURSE_CORPUS, algorithm="unigram", vocab_size=340, byte_fallback=True)
    )
    assert (
        ours.decode(ours.encode("<0x41>")) == "<0x41>" and theirs.decode(theirs.encode("<0x41>").ids) == "A"
    )
    ours, theirs = both(
        Tokenizer.train(
            COURSE_CORPUS, algorithm="unigram", vocab_size=340, byte_fallback=True, unk_piece=None
        )
    )
    assert ours.tokenize("é") == ["▁", "<0xC3>", "<0xA9>"]
    with pytest.raises(Exception, match="unk_id"):
        theirs.encode("é")
    parts = course_wordpiece().parts
    ours, theirs = both(
        Tokenizer(
            **parts._replace(
                added_tokens=(*parts.added_tokens, (AddedToken("Pug!", normalized=True), 70)), source=None
            )._asdict()
        )
    )
    assert ours.encode("PUG!") == theirs.encode("PUG!", add_special_tokens=False).ids == [70]
    assert (ours.decode([70]), theirs.decode([70], skip_special_tokens=False)) == ("pug!", "pug!")
    twice = Tokenizer(
        **parts._replace(
            added_tokens=(
                (AddedToken("Pug!", normalized=True), 70),
                (AddedToken("PUG!", normalized=True), 71),
            ),
            source=None,
        )._asdict()
    )
    assert twice.encode("pug!") == [71]


@pytest.mark.parametrize(
    "algorithm, options",
    [
        ("wordpiece", dict(pre_tokenizer="whitespace_split")),
        ("wordpiece", dict(pre_tokenizer=None, normalizer=None)),
        ("wordpiece", {}),
        ("char_bpe", dict(pre_tokenizer="whitespace_split", ignore_merges=True, unk_piece="?")),
        ("bpe", dict(pre_tokenizer=None, ignore_merges=True)),
        ("unigram", {}),
        ("unigram", dict(normalizer="nfkc", pre_tokenizer=None)),
    ],
)
def test_what_is_not_allowed_never_comes(algorithm, options, tmp_path):
    "Text cannot spell a special token that is not allowed, whatever splits it and whatever the model matches."
    corpus = [*COURSE_CORPUS, "[ ] < > M A S K m a k"]
    tok = Tokenizer.train(
        corpus,
        algorithm=algorithm,
        vocab_size=400 if algorithm == "bpe" else 120,
        special_tokens=["[MASK]", AddedToken("<s>", single_word=True)],
        **options,
    )
    again = Tokenizer.load(tok.save(tmp_path / "tokenizer.json"))
    assert again == tok
    mask, s = tok.piece2id["[MASK]"], tok.piece2id["<s>"]
    rng = random.Random(6)
    texts = [
        "[MASK]",
        "<s>",
        "",
        *(
            "".join(rng.choices(["[MASK]", "<s>", "＜s＞", "a", "tokens", " "], k=rng.randrange(1, 8)))
            for _ in range(200)
        ),
    ]
    for t in (tok, again):
        for text in texts:
            assert not {mask, s} & {*t.encode(text, allowed_special=())}, text
            assert s not in t.encode(text, allowed_special={"[MASK]"}), text
        assert t.encode_batch(texts, allowed_special=()).tolist() == [
            t.encode(x, allowed_special=()) for x in texts
        ]
        assert (
            t.encode("[MASK]", allowed_special=["[MASK]"])
            == t.encode("[MASK]", allowed_special="all")
            == [mask]
        )
    if algorithm == "unigram":
        assert tok.nbest("a [MASK]", n=2, allowed_special=())[0].ids == tok.encode(
            "a [MASK]", allowed_special=()
        )


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_splits_of_any_text_are_those_of_brute_force(byte_fallback):
    "Random models, texts with added tokens, unknown characters and bytes behind them."
    rng = random.Random(7)
    for _ in range(120):
        pieces = dict.fromkeys(
            [
                "<unk>",
                "a",
                "b",
                "▁",
                *("".join(rng.choices("ab▁é", k=rng.randrange(2, 4))) for _ in range(rng.randrange(8))),
            ]
        )
        in_bytes = [f"<0x{b:02X}>" for b in range(256)] if byte_fallback else []
        pieces = [*pieces, *in_bytes]
        model = Unigram(
            {p: i for i, p in enumerate(pieces)},
            [-rng.randrange(1, 20) / 4 for _ in pieces],
            "<unk>",
            byte_fallback,
            fuse_unk=rng.random() < 0.5,
            control=("<unk>", *in_bytes),
        )
        tok = Tokenizer(
            model,
            pre_tokenizer=rng.choice(["metaspace", None]),
            decoder=None,
            added_tokens=[(AddedToken("<x>"), len(pieces))],
        )
        text = "".join(rng.choices(["a", "b", "é", " ", "<x>", "ab", "z", "你"], k=rng.randrange(6)))
        every = [((), 0.0)]
        for unit in units_of(encoder_of(tok), text):
            ways = (
                [((unit,), 0.0)]
                if isinstance(unit, int)
                else [
                    (tuple(part_ids(model, [n.piece for n in path])), path_score(path))
                    for path in segmentations(model.lattice(unit))
                ]
            )
            every = [(ids + more, score + s) for ids, score in every for more, s in ways]
        found = tok.nbest(text, n=10**5)
        assert sorted(tuple(s.ids) for s in found) == sorted(ids for ids, _ in every)
        assert all(
            math.isclose(s.score, score, abs_tol=1e-9)
            for s, score in zip(found, sorted((s for _, s in every), reverse=True))
        )
        weights = [math.exp(0.7 * s) for _, s in every]
        assert math.isclose(
            tok.entropy(text, alpha=0.7),
            -sum(w / sum(weights) * math.log(w / sum(weights)) for w in weights),
            abs_tol=1e-9,
        )
        assert tuple(tok.sample(text, alpha=0.7, seed=1).ids) in {ids for ids, _ in every}


@pytest.mark.peers
def test_they_load_in_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    for tok in trained().values():
        theirs = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(tok.save(tmp_path / "tokenizer.json"))
        )
        for text in [*COURSE_CORPUS, "naïve 你 <s> [MASK] x"]:
            assert theirs(text)["input_ids"] == tok.encode(text, allowed_special="all")


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert-base-cased", "bert-base-chinese"])
def test_vocab_txt_is_written_as_it_was(shared_file, tmp_path, name):
    path = shared_file(f"vocab/{name}/vocab.txt")
    tok = Tokenizer.load(
        path, lowercase=True, strip_accents=False, handle_chinese_chars=False, clean_text=False
    )
    assert tok.save(tmp_path / "vocab.txt").read_bytes() == path.read_bytes()


SHORT = """
import sys
from subword_nb import Tokenizer
tok = Tokenizer.load(sys.argv[1])
assert tok.decode(tok.encode("the tokens", allowed_special=())) == "the tokens"
if sys.argv[2] == "unigram": tok.nbest("the tokens", n=3), tok.sample("the tokens", seed=1), tok.entropy("the tokens")
print([m for m in ("numpy", "numba", "regex", "tqdm") if m in sys.modules])
"""


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_loaded_models_encode_without_numpy(tmp_path, algorithm):
    path = Tokenizer.train(COURSE_CORPUS, algorithm=algorithm, vocab_size=80).save(
        tmp_path / "tokenizer.json"
    )
    done = subprocess.run(
        [sys.executable, "-c", SHORT, str(path), algorithm], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
