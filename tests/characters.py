"""The code points that tests go through one by one, and texts of strange ones."""

from functools import cache


@cache
def code_points(one_in: int = 64) -> list[int]:
    "All but surrogates; of planes 4 to 13, in which no Unicode has a character yet, and of the private planes 15 and 16, one in so many."
    return [
        i
        for i in range(0x110000)
        if not 0xD800 <= i < 0xE000
        and (not 0x40000 <= i < 0xE0000 and i < 0xF0000 or i % one_in == 0 or i & 0xFFFF >= 0xFFF0)
    ]


STRANGE = [
    *"aé中😀'’ \n\t.-_0²\u0301\u200d\u00a0\u3000\u1680ﬁ१ก\U0001f3fd\ufeff\uffff",
    "  ",
    "'s",
    "'ll",
    "12345",
    "\r\n",
    "a" * 70,
    " the" * 9,
]


def strange_texts(rng, words: list[str], n: int) -> list[str]:
    "Texts of words, of spaces, signs and characters of all planes, and of long repeats; each second one ends with its beginning."
    texts = []
    for k in range(n):
        parts = rng.choices([*words, *STRANGE, " ", " ", " "], k=rng.randrange(1, 30))
        parts += [chr(i) for i in rng.choices(code_points(), k=rng.randrange(3))] if k % 8 == 0 else []
        rng.shuffle(parts)
        texts.append("".join(parts) + (parts[0] * rng.randrange(40) if k % 2 else ""))
    return texts


def same_ids(tok, texts: list[str]):
    "Assert that kernels give the ids of the model in Python, for texts in one batch, twice, and for threads."
    pre, encode = tok.pre_tokenizer, tok.model.encode
    wanted = [[i for p, _, _ in pre.split(text) for i in encode(p)] for text in texts]
    for threads in (1, 1, 3):
        found = tok.encode_batch(texts, allowed_special=(), threads=threads)
        assert [ids.tolist() for ids in found] == wanted
    assert tok.encode_array("".join(texts), allowed_special=()).tolist() == [
        i for p, _, _ in pre.split("".join(texts)) for i in encode(p)
    ]
