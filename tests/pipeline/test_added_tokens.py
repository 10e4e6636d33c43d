"""Added tokens: the finder against its reference, against Hugging Face's and OpenAI's libraries, and its costs."""

import pickle
import random

import pytest
from costs import assert_linear

from subword_nb.pipeline.added_tokens import AddedFinder, refuse_special, split_added_ref
from subword_nb.pipeline.vocab import AddedToken, check_vocabulary, invert

SPACES = [
    " ",
    "\xa0",
    "\u2003",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\t",
    "\r",
    "\n",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1f",
    "\x85",
    "\u2028",
    "\u1680",
    "\u202f",
    "\u205f",
    "\u180e",
]
SIGNS = [
    *"aZ_9-'<>|.",
    *"éßЯשم你กあ한",
    "\u0301",
    "\u0308",
    "\u0e33",
    "\u094d",
    "\u0903",
    "\u1100",
    "\u1161",
    "\u200d",
    "\u200c",
    "\u203f",
    "\ufe0f",
    "٣",
    "Ⅷ",
    "²",
    "ⓐ",
    "€",
    "\x00",
    "\x7f",
    "\u00ad",
    "\ue000",
    "\u0378",
    "▁",
    "Ġ",
    "🚀",
    "🏽",
    "👩\u200d🚀",
    "𐌰",
    "𝟙",
    "\U000e0100",
    "\U0010ffff",
    "\U0001f1e6",
]
PARTS = [
    "<s>",
    "</s>",
    "<mask>",
    "hug",
    "HUG",
    "Hug",
    "ug",
    "s",
    "é",
    "e\u0301",
    "ﬁ",
    "你好",
    "🚀",
    "▁",
    "▁hug",
    " ",
    "  ",
    "\t ",
    " a",
    "a ",
    "<",
    "<s",
    "s>",
    "Ⅷ",
    "İ",
    "ǅ",
    "\u0301",
]


def rnd_text(rng: random.Random, most: int = 12) -> str:
    "Text of many scripts, spaces of every kind, and what tokens are made of."
    return "".join(
        rng.choice(rng.choice([SPACES, SPACES[:1], SIGNS, PARTS, PARTS])) for _ in range(rng.randrange(most))
    )


def rnd_tokens(rng: random.Random, normalized: bool = False) -> list[AddedToken]:
    "Tokens with every option, each content once."

    def flag():
        return rng.random() < 0.35

    contents = {
        rng.choice(PARTS) if rng.random() < 0.7 else rnd_text(rng, 4) for _ in range(rng.randrange(1, 6))
    } - {""}
    return [
        AddedToken(c, flag(), flag(), flag(), normalized and rng.random() < 0.6, flag())
        for c in sorted(contents)
    ]


def theirs_with(tokenizers, tokens, normalizer=None):
    "A Hugging Face tokenizer of nothing but an unknown piece (id 0) and these tokens (ids from 1)."
    theirs = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    if normalizer is not None:
        theirs.normalizer = normalizer
    theirs.add_tokens(
        [
            tokenizers.AddedToken(
                t.content,
                single_word=t.single_word,
                lstrip=t.lstrip,
                rstrip=t.rstrip,
                normalized=t.normalized,
                special=t.special,
            )
            for t in tokens
        ]
    )
    return theirs


def answer(theirs, text):
    "Its ids and offsets; None where the library panics."
    try:
        found = theirs.encode(text, add_special_tokens=False)
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        return None
    return list(zip(found.ids, found.offsets))


@pytest.mark.parametrize("seed", range(4))
def test_finder_is_the_reference(seed):
    rng = random.Random(seed)
    for _ in range(400):
        tokens = rnd_tokens(rng)
        finder = AddedFinder(tokens)
        for _ in range(3):
            text = rnd_text(rng, 30)
            expected = split_added_ref(text, tokens)
            assert finder.split(text) == expected, (tokens, text)
            assert [(text[a:b], t and t.content) for a, b, t in finder.spans(text)] == expected
            if any(c for _, c in expected):
                assert finder.any(text)
            if not finder.any(text):
                assert expected == ([(text, None)] if text else [])


@pytest.mark.parametrize(
    "letters, longest",
    [
        ("ab", 12),
        ("abc ", 5),
        ("".join(map(chr, range(0x4E00, 0x4E80))), 2),
        ("".join(map(chr, range(0x1F600, 0x1F650))) + "ab", 3),
    ],
    ids=["ab", "words", "ideographs", "emoji"],
)
def test_many_tokens_are_found_as_few_are(letters, longest):
    "Sets too many for a look at heads, or with heads everywhere: the walk takes over in the middle of a text."
    rng = random.Random(5)
    for _ in range(12):
        tokens = [
            AddedToken(c)
            for c in {
                "".join(rng.choices(letters, k=rng.randrange(1, longest + 1)))
                for _ in range(rng.choice([5, 150]))
            }
        ]
        text = "".join(rng.choices(letters + "x", k=2500))
        assert AddedFinder(tokens).split(text) == split_added_ref(text, tokens)


def test_spans_cover_the_text():
    rng = random.Random(6)
    for _ in range(1500):
        finder, text = AddedFinder(rnd_tokens(rng)), rnd_text(rng, 25)
        at = 0
        for start, end, token in finder.spans(text):
            assert start < end and start <= at, (finder.tokens, text)
            assert token or start == at
            at = end
        assert at == len(text) or not text or finder.spans(text)[-1][1] == len(text)


@pytest.mark.peers
@pytest.mark.parametrize("seed", range(3))
def test_raw_tokens_as_in_hugging_face(seed):
    tokenizers = pytest.importorskip("tokenizers")
    rng, panics = random.Random(100 + seed), 0
    for _ in range(250):
        tokens = rnd_tokens(rng)
        theirs, finder, ids = (
            theirs_with(tokenizers, tokens),
            AddedFinder(tokens),
            {t.content: i for i, t in enumerate(tokens, 1)},
        )
        for _ in range(8):
            text, special = rnd_text(rng, 14), rng.random() < 0.8
            theirs.encode_special_tokens = not special
            expected = answer(theirs, text)
            panics += expected is None
            ours = [(ids[t.content] if t else 0, (a, b)) for a, b, t in finder.spans(text, special=special)]
            assert expected is None or ours == expected, (tokens, text, special)
    assert panics < 60


@pytest.mark.peers
@pytest.mark.parametrize(
    "name", ["Lowercase", "NFKC", "NFD", "Strip", "StripAccents", "BertNormalizer", "Replace", "Prepend"]
)
def test_normalized_tokens_as_in_hugging_face(name):
    tokenizers = pytest.importorskip("tokenizers")
    normalizer = getattr(tokenizers.normalizers, name)(
        *{"Replace": ("s", ""), "Prepend": ("▁",)}.get(name, ())
    )
    rng, several = random.Random(name), 0
    for _ in range(120):
        tokens = rnd_tokens(rng, normalized=True)
        spellings = [normalizer.normalize_str(t.content) for t in tokens if t.normalized]
        if len(set(spellings)) < len(spellings) or "" in spellings:
            continue
        several += 1
        theirs, ids = (
            theirs_with(tokenizers, tokens, normalizer),
            {t.content: i for i, t in enumerate(tokens, 1)},
        )
        raw, in_normalized = (
            AddedFinder(t for t in tokens if not t.normalized),
            AddedFinder((t for t in tokens if t.normalized), spell=normalizer.normalize_str),
        )
        for _ in range(10):
            text, ours = rnd_text(rng, 12), []
            for a, b, token in raw.spans(text):
                if token:
                    ours.append(ids[token.content])
                else:
                    ours += [
                        ids[t.content] if t else 0
                        for *_, t in in_normalized.spans(normalizer.normalize_str(text[a:b]))
                    ]
            expected = answer(theirs, text)
            assert expected is None or ours == [i for i, _ in expected], (tokens, text)
    assert several > 40


@pytest.mark.peers
def test_empty_spellings_as_in_hugging_face():
    "Only in ASCII text and beside single characters: elsewhere an empty spelling makes the library panic or hang."
    tokenizers = pytest.importorskip("tokenizers")
    normalizer = tokenizers.normalizers.Replace("s", "")
    rng, flag = random.Random(9), lambda: rng.random() < 0.4
    for _ in range(300):
        contents = ["s", *rng.sample(["a", " ", "b", "<"], rng.randrange(4))]
        tokens = [AddedToken(c, flag(), flag(), flag(), True, flag()) for c in contents]
        theirs, in_normalized, ids = (
            theirs_with(tokenizers, tokens, normalizer),
            AddedFinder(tokens, spell=normalizer.normalize_str),
            {t.content: i for i, t in enumerate(tokens, 1)},
        )
        assert "" in in_normalized.tokens
        for _ in range(6):
            text = "".join(rng.choices(["a", "b", " ", " ", "<a>", "<", "-"], k=rng.randrange(9)))
            expected = answer(theirs, text)
            assert (
                expected is None
                or [(ids[t.content] if t else 0, (a, b)) for a, b, t in in_normalized.spans(text)] == expected
            ), (tokens, text)


@pytest.mark.peers
def test_facts_about_normalized_tokens():
    "What Hugging Face's library does with them; other pages rely on it."
    tokenizers = pytest.importorskip("tokenizers")
    lower, normalizers = tokenizers.normalizers.Lowercase(), tokenizers.normalizers
    theirs = theirs_with(
        tokenizers,
        [
            AddedToken("HUG", normalized=True, special=False),
            AddedToken("PUG", normalized=False),
            AddedToken("Bug", normalized=True),
        ],
        lower,
    )
    assert [theirs.id_to_token(i) for i in (1, 2, 3)] == [
        "hug",
        "PUG",
        "bug",
    ]  # shown as they are spelled after normalizing
    assert theirs.token_to_id("HUG") == 1 and theirs.token_to_id("hug") is None
    assert theirs.decode([1, 2, 3], skip_special_tokens=False) == "hug PUG bug"
    assert (
        theirs.decode([1, 2, 3]) == "hug bug"
    )  # special by its content "Bug", but shown as "bug", and so it is not left out
    theirs.normalizer = normalizers.NFC()
    assert theirs.id_to_token(1) == "HUG"  # spelled anew
    # Left out is what is shown as some special token's content, whichever id it has.
    theirs = theirs_with(
        tokenizers, [AddedToken("Hug", normalized=True, special=False), AddedToken("hug")], lower
    )
    assert theirs.decode([1, 2]) == "" and theirs.decode([1, 2], skip_special_tokens=False) == "hug hug"
    # Nothing is left of it: it cuts the text everywhere, is shown as nothing, and other text than ASCII makes the library panic.
    theirs = theirs_with(tokenizers, [AddedToken(" ", normalized=True)], normalizers.Strip())
    assert (
        theirs.id_to_token(1) == ""
        and answer(theirs, "a b") == [(0, (0, 1)), (0, (1, 2)), (0, (2, 3))]
        and answer(theirs, "é") is None
    )
    # Two contents, one spelling: which of them is found is chance there; here the last.
    twice = [AddedToken("HUG", normalized=True), AddedToken("Hug", normalized=True)]
    assert {answer(theirs_with(tokenizers, twice, lower), "hug")[0][0] for _ in range(40)} <= {1, 2}
    assert AddedFinder(twice, spell=str.lower).split("hug") == [("hug", "Hug")]
    # In the vocabulary already: the id stays, and the entry becomes an added token.
    theirs = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, "Hug": 1, "hug": 2}, unk_token="[UNK]")
    )
    theirs.normalizer = lower
    assert (
        theirs.add_tokens([tokenizers.AddedToken("Hug", normalized=True)]) == 1
        and theirs.get_vocab_size() == 3
    )
    assert (
        answer(theirs, "hug") == [(1, (0, 3))]
        and theirs.id_to_token(1) == "hug"
        and theirs.decode([1, 2]) == "hug hug"
    )
    # Added again with other options: the later ones count, in memory and in the file.
    theirs = theirs_with(tokenizers, [AddedToken("x", lstrip=True, normalized=True, special=False)])
    theirs.add_tokens([tokenizers.AddedToken("x", rstrip=True, normalized=False)])
    assert answer(theirs, "a x ") == [(0, (0, 2)), (1, (2, 4))]


@pytest.mark.peers
def test_the_cases_of_the_lesson_in_hugging_face():
    tokenizers = pytest.importorskip("tokenizers")
    tokens = [
        AddedToken("<s>"),
        AddedToken("<mask>", lstrip=True),
        AddedToken("hug", single_word=True),
        AddedToken("ug"),
        AddedToken("<a>", rstrip=True),
        AddedToken(" b"),
        AddedToken("\tc", lstrip=True),
    ]
    theirs, finder, ids = (
        theirs_with(tokenizers, tokens),
        AddedFinder(tokens),
        {t.content: i for i, t in enumerate(tokens, 1)},
    )
    for text in (
        "<s>a  <mask> hug hugs",
        "fill \n\t<mask>",
        "hug's",
        "hug\u0301",
        "hug_",
        "hug-hug",
        "你hug",
        "<a> b",
        "<a>  b",
        "<a> \tc",
        "<a>\t\tc",
        "<mask><mask> <mask>",
        "ahug hug",
        "<s>hug<s>",
    ):
        assert [(ids[t.content] if t else 0, (a, b)) for a, b, t in finder.spans(text)] == answer(
            theirs, text
        ), text


def refuses(function, *args, **options) -> bool:
    "Does it raise ValueError?"
    try:
        function(*args, **options)
    except ValueError:
        return True
    return False


@pytest.mark.peers
def test_refused_as_in_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    special = {"<s>": 256, "<|x|>": 257, "s>": 258}
    theirs = tiktoken.Encoding(
        "bytes",
        pat_str=r"[\s\S]",
        mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens=special,
    )
    rng, refused = random.Random(7), 0

    def some():
        return rng.choice(["all", set(), set(rng.sample(sorted(special), rng.randrange(3)))])

    for _ in range(1500):
        text = "".join(rng.choices(["<s>", "<|x|>", "<", "s", ">", "a", "é"], k=rng.randrange(6)))
        allowed, disallowed = some(), some()
        ours = refuses(refuse_special, text, special, disallowed=disallowed, allowed=allowed)
        assert ours == refuses(theirs.encode, text, allowed_special=allowed, disallowed_special=disallowed), (
            text,
            allowed,
            disallowed,
        )
        refused += ours
    assert 200 < refused < 1300


def test_refusal_names_token_place_and_ways_out():
    with pytest.raises(
        ValueError, match=r"'<s>' at position 2.*allowed_special=\{'<s>'\}.*disallowed_special=\(\)"
    ):
        refuse_special("a <s>", ["<s>"])
    with pytest.raises(ValueError, match="'<s>>' at position 0"):
        refuse_special("<s>>", ["<s>", "<s>>"])
    finder = AddedFinder([AddedToken("<s>"), AddedToken("<t>", special=False)])
    refuse_special("<t>", finder)
    with pytest.raises(ValueError, match="'<s>'"):
        refuse_special("<s>", finder)
    for invalid in ("<s>", "", 5, None, ["<s>", 5], [["<s>"]]):
        with pytest.raises(ValueError, match='contents must be "all"'):
            refuse_special("<", invalid)
    with pytest.raises(ValueError, match="text must be a str, got bytes"):
        refuse_special(b"<s>", ["<s>"])
    for invalid in ("<s>", 5, None, [5], [["<s>"]]):
        with pytest.raises(ValueError, match="disallowed_special"):
            refuse_special("", finder, disallowed=invalid)
        with pytest.raises(ValueError, match="allowed_special"):
            refuse_special("", finder, allowed=invalid)


def test_of_two_with_one_spelling_the_last_counts():
    assert AddedFinder([AddedToken("x", lstrip=True), AddedToken("x")]).split("a x") == [
        ("a ", None),
        ("x", "x"),
    ]
    assert AddedFinder([AddedToken("HUG"), AddedToken("Hug")], spell=str.lower).split("hug") == [
        ("hug", "Hug")
    ]


def test_pickles():
    finder = AddedFinder(
        [AddedToken("HUG", rstrip=True), AddedToken("é", single_word=True)], spell=lambda text: text.lower()
    )
    finder.split("hug é" * 2000)
    again = pickle.loads(pickle.dumps(finder))
    assert again.tokens == finder.tokens
    assert again.split("a hug é") == finder.split("a hug é")


def test_tokens_are_plain_objects():
    "Equal, hashed, pickled and shown by all options; an option that is no truth value is refused, as it would count as true."
    for k in range(5):
        one = AddedToken("<m>", *(i == k for i in range(5)))
        assert (
            pickle.loads(pickle.dumps(one)) == one == eval(repr(one))
            and hash(one) == hash(eval(repr(one)))
            and one != AddedToken("<m>", False, False, False, False, False)
        )
        with pytest.raises(
            ValueError, match=r"options must be True or False, got AddedToken\(content='<m>', single_word="
        ):
            AddedToken("<m>", *("no" if i == k else False for i in range(5)))
    for invalid in (["<s>"], [None], [AddedToken("a"), ("b", 1)]):
        with pytest.raises(ValueError, match="tokens must be AddedToken objects, got"):
            AddedFinder(invalid)
    for invalid in (b"<s>", 5):
        with pytest.raises(ValueError, match="text must be a str, got"):
            AddedFinder([AddedToken("a")]).any(invalid)


@pytest.mark.peers
def test_the_usual_cases_in_hugging_face():
    "Words that touch, white space on both sides, the same token twice, special tokens as text, one token inside another."
    tokenizers = pytest.importorskip("tokenizers")
    sets = {
        "words": (
            [
                AddedToken("ing", single_word=True, special=False),
                AddedToken("at", single_word=True, special=False),
            ],
            ["sitting", "sit ing", "a cat at it", "ing", "_ing-at", "at,ing", "éat", "at\u0301", "1at"],
        ),
        "spaces": (
            [AddedToken("<m>", lstrip=True, rstrip=True, normalized=True)],
            ["a <m> b", "  <m>  ", "<m><m> <m>", "\n<m>\t\u00a0a", "a<m>\u200bb"],
        ),
        "left": (
            [AddedToken("<m>", lstrip=True), AddedToken("<n>", rstrip=True)],
            ["a <m> <n> b", "<n> <m>", "<m> <n>", "<n>  <n>", " <m>"],
        ),
        "nested": (
            [AddedToken("<a>"), AddedToken("<a><b>"), AddedToken("b>c")],
            ["<a><b>", "<a><a><b>", "<a><b>c", "<b>c<a>", "<a"],
        ),
        "special or not": (
            [AddedToken("[X]"), AddedToken("[Y]", special=False)],
            ["[X][Y]", "[Y] [X]", "[X[Y]]", ""],
        ),
        "emoji": (
            [AddedToken("👩"), AddedToken("\u200d🚀"), AddedToken("e\u0301")],
            ["👩\u200d🚀", "e\u0301é", "👩👩"],
        ),
        "spaces as tokens": (
            [AddedToken(" " * n, special=False, normalized=False) for n in range(2, 9)],
            ["a" + " " * n + "b" for n in range(20)],
        ),
    }
    for name, (tokens, texts) in sets.items():
        theirs, finder, ids = (
            theirs_with(tokenizers, tokens),
            AddedFinder(tokens),
            {t.content: i for i, t in enumerate(tokens, 1)},
        )
        for special in (True, False):
            theirs.encode_special_tokens = not special
            for text in texts:
                assert [
                    (ids[t.content] if t else 0, (a, b)) for a, b, t in finder.spans(text, special=special)
                ] == answer(theirs, text), (name, text)


@pytest.mark.parametrize(
    "text",
    ["a", " ", "\u0301", "e\u0301", "<", "<mask>", " <mask> ", "hug", "hug ", "\u200d", "é"],
    ids=ascii,
)
def test_a_megabyte_of_one_thing(text):
    finder = AddedFinder(
        [
            AddedToken("<s>"),
            AddedToken("<mask>", lstrip=True),
            AddedToken("hug", single_word=True),
            AddedToken("é", rstrip=True),
            AddedToken("   ", special=False),
        ]
    )

    def work(long):
        assert finder.spans(long)[-1][1] == len(long)
        refuse_special(long, finder, disallowed={"<pad>"})

    assert_linear(work, text, 200_000)


@pytest.mark.slow
def test_fifty_thousand_tokens_cost_little():
    rng = random.Random(8)
    text = " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randrange(1, 10))) for _ in range(60_000))

    def split(finder):
        assert "".join(p for p, _ in finder.split(text)) == text

    for tokens in (
        [AddedToken(f"<extra_id_{i}>") for i in range(50_000)],
        [
            AddedToken("".join(rng.choices("etaoinshrdlucmfwypvbgkq", k=rng.randrange(5, 12))))
            for _ in range(50_000)
        ],
        [AddedToken(chr(0x4E00 + i // 4) + "xyzw"[i % 4]) for i in range(50_000)],
    ):
        assert_linear(AddedFinder, tokens, 50_000)
        assert_linear(split, lambda n, tokens=tokens: AddedFinder(tokens[:n]), 50_000, grows=2)


@pytest.mark.parametrize(
    "contents, unit",
    [
        (lambda k: ["a" * n for n in range(1, k + 1)], "a"),
        (lambda k: ["a" * n + "b" for n in range(1, k + 1)], "a"),
        (lambda k: ["a", *("a" * n + "b" for n in range(1, k + 1))], "a"),
        (lambda k: ["b" + "a" * n for n in range(1, k + 1)] + ["a"], "a"),
        (lambda k: ["a" * (100 * k) + "b", "a"], "a"),
        (lambda k: ["ab" * (k // 2) + "c", "ba" * (k // 2) + "d"], "ab"),
    ],
    ids=["a^n", "a^n b", "a^n b and a", "b a^n", "one long", "two in step"],
)
def test_hostile_sets_stay_linear(contents, unit):
    "The tokens grow with the text."

    def work(case):
        finder, text = case
        assert finder.spans(text)[-1][1] == len(text)

    assert_linear(work, lambda k: (AddedFinder(map(AddedToken, contents(k))), unit * (150 * k)), 1000)


def test_white_space_is_measured_once():
    finder = AddedFinder([AddedToken(" ", rstrip=True), AddedToken("\t", lstrip=True)])
    assert_linear(finder.spans, lambda n: " " * n, 100_000)
    spans = finder.spans(" " * 100_000)
    assert len(spans) == 100_000 and {end for _, end, _ in spans} == {100_000}


def test_vocabularies():
    assert invert(check_vocabulary({"b": 2, "a": 0})) == ["a", None, "b"]
    for invalid in (
        {"a": 0, "b": 0},
        {"a": -1},
        {"a": 2**32},
        {"a": 0.0},
        {"a": None},
        {1: 0},
        [("a", 0)],
        None,
    ):
        with pytest.raises(ValueError, match="vocab"):
            check_vocabulary(invalid)
