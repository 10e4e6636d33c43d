"""Lattices and tries as pictures: well-formed, escaped, nothing hidden, the same every time."""

import random
import re
import xml.etree.ElementTree as ET

import pytest

from subword_nb.core.diagrams import draw_lattice, draw_splits, draw_trie

HOSTILE = [
    "<script>alert(1)</script>",
    '" onload="x',
    "&amp;",
    "\u202edrow",
    "\x1b[31m",
    "\x00",
    "\ud800",
    "e" + "\u0300" * 99,
    "\u0300",
    "東京",
    " ",
    "",
    "=" * 500,
]
NS = "{http://www.w3.org/2000/svg}"


def parsed(figure) -> ET.Element:
    "The picture as XML, after the checks that hold for every picture."
    root = ET.fromstring(figure.svg)
    assert (
        root.tag == NS + "svg"
        and root.get("role") == "img"
        and root.get("aria-label") == figure.alt == root.find(NS + "title").text
    )
    assert not {e.tag for e in root.iter()} & {NS + "script", NS + "a", NS + "image", NS + "foreignObject"}
    assert not [a for e in root.iter() for a in e.attrib if a.startswith("on") or "href" in a]
    assert not set(figure.svg + figure.text) & set("\x1b\x00\u202e\ud800")
    return root


def boxes(root: ET.Element) -> list:
    "Left, top, right and bottom of all chips."
    out = []
    for r in root.iter(NS + "rect"):
        x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
        out.append((x, y, x + w, y + h))
    return out


def assert_apart(root: ET.Element) -> None:
    "No chip covers another, and all lie in the picture."
    found, (wide, high) = boxes(root), (float(root.get(k)) for k in ("width", "height"))
    for i, (a, b, c, d) in enumerate(found):
        assert a >= 0 and b >= 0 and c <= wide + 1 and d <= high + 1, (a, b, c, d)
        for e, f, g, h in found[:i]:
            assert c <= e or g <= a or d <= f or h <= b, "two chips overlap"


def random_lattice(rng: random.Random) -> tuple:
    text = "".join(rng.choices("abé京", k=rng.randrange(1, 13)))
    spans = [(i, j) for i in range(len(text)) for j in range(i + 1, min(len(text), i + 6) + 1)]
    spans = [rng.choice(spans) for _ in range(rng.randrange(25))]
    return text, [(i, j, text[i:j], *([-rng.random() * 20] if rng.random() < 0.7 else [])) for i, j in spans]


def test_chips_of_random_lattices_do_not_overlap():
    rng = random.Random(0)
    for _ in range(200):
        text, arcs = random_lattice(rng)
        best = [i for i in range(len(arcs)) if rng.random() < 0.3]
        figure = draw_lattice(text, arcs, best=best, title="t" * rng.randrange(30))
        root = parsed(figure)
        assert_apart(root)
        assert (
            figure.svg
            == draw_lattice(
                text,
                list(map(list, arcs)),
                best=tuple(best),
                title=figure.alt.split(": ")[0] if "t: " in figure.alt else "",
            ).svg
        )
        assert len(list(root.iter(NS + "circle"))) == len(text) + 1


def test_no_line_runs_through_a_chip_of_a_lattice():
    "Vertical sides keep clear of all chips but at their ends; a chip sits on its own line only."
    rng = random.Random(1)
    for _ in range(200):
        text, arcs = random_lattice(rng)
        root = parsed(draw_lattice(text, arcs))
        for c in root.iter(NS + "circle"):
            x, y = float(c.get("cx")), float(c.get("cy"))
            assert not [b for b in boxes(root) if b[0] - 11 < x < b[2] + 11 and b[1] < y < b[3]]
        for path in root.iter(NS + "path"):
            if m := re.fullmatch(
                r"M([\d.]+) ([\d.]+)V([\d.]+)q0 -9 9 -9H([\d.]+)q9 0 9 9V[\d.]+", path.get("d")
            ):
                x1, foot, top, x2 = map(float, m.groups())
                for x in (x1, x2 + 9):
                    assert not [
                        b for b in boxes(root) if b[0] - 1 < x < b[2] + 1 and b[1] < foot and b[3] > top
                    ], (text, arcs)


def test_hostile_labels_titles_and_texts():
    for s in HOSTILE:
        word = s[:40]
        arcs = [(0, len(word), s, s)] if word else []
        root = parsed(draw_lattice(word, arcs, title=s))
        assert_apart(root)
        root = parsed(
            draw_trie([(0, 1, s), (1, 2, s)], {2: s}, links={2: 0}, notes={2: s, 1: s}, title=s, names={0: s})
        )
        assert_apart(root)


def test_lattice_text_rows_end_where_they_should():
    rng = random.Random(2)
    for _ in range(200):
        text, arcs = random_lattice(rng)
        drawn = str(draw_lattice(text.replace("京", "b"), [(i, j, "x") for i, j, *_ in arcs]))
        lines = drawn.splitlines()
        ruler = lines[-2]
        at = {int(m.group()): m.start() for m in re.finditer(r"\d+", ruler)}
        found = sorted((m.start(), m.end()) for ln in lines[:-2] for m in re.finditer(r"├[^┤]*┤", ln))
        assert found == sorted((at[i], at[j]) for i, j, *_ in arcs)


def test_long_lattices_are_lists_in_text():
    lines = str(draw_lattice("a" * 40, [(0, 20, "a" * 20, -1.0), (20, 40, "b", "x")], best=[1])).splitlines()
    assert lines == ["  0–20 ─ " + "a" * 20 + "  −1.00", " 20–40 ━ b  x"]


@pytest.mark.parametrize("bad", [(1, 1), (-1, 2), (0, 4), ("0", 1), (0, None), (2, 1)])
def test_arcs_outside_the_text(bad):
    with pytest.raises(
        ValueError, match=r"arcs\[1\] must go from a lower to a higher position between 0 and"
    ):
        draw_lattice("abc", [(0, 1, "a"), (*bad, "x")])


def test_lattice_errors():
    for args, message in [
        (("abc", [(0, 1)]), r"arcs\[0\] must be \(start, end, label\).*got \(0, 1\)"),
        ((b"abc", []), "got a bytes"),
        (("a" * 41, []), "41 characters"),
    ]:
        with pytest.raises(ValueError, match=message):
            draw_lattice(*args)
    for arc in (1, -1):
        with pytest.raises(ValueError, match=f"best must .*got {arc}$"):
            draw_lattice("abc", [(0, 1, "a")], best=[arc])


def random_trie(rng: random.Random) -> tuple:
    "Edges, labels, and links to nodes that are less deep."
    depth, edges = {0: 0, 1: 0}, []
    for n in range(2, rng.randrange(3, 25)):
        parent = rng.choice(list(depth))
        edges.append((parent, n, rng.choice("abé京")))
        depth[n] = depth[parent] + 1
    used = {n for a, b, _ in edges for n in (a, b)}
    links = {
        n: rng.choice([m for m in used if depth[m] < depth[n]])
        for n in used
        if depth[n] and rng.random() < 0.7
    }
    return (
        edges,
        {n: f"p{n}" for n in used if rng.random() < 0.5},
        links,
        {n: "pops p" for n in links if rng.random() < 0.5},
    )


def test_random_tries():
    rng = random.Random(3)
    for _ in range(200):
        edges, labels, links, notes = random_trie(rng)
        figure = draw_trie(edges, labels, links=links, notes=notes)
        root = parsed(figure)
        assert_apart(root)
        nodes = {n for a, b, _ in edges for n in (a, b)}
        assert len(figure.text.splitlines()) == len(nodes)
        assert figure.text.count("⇢") == len(links) and figure.text.count("pops p") == len(notes)
        assert figure.svg.count("stroke-dasharray") == len(links)
        assert figure.svg == draw_trie(edges, labels, links=links, notes=notes).svg


def test_a_deep_trie_needs_no_recursion_and_a_big_one_is_refused():
    assert len(str(draw_trie([(i, i + 1, "a") for i in range(149)], {149: "end"})).splitlines()) == 150
    with pytest.raises(ValueError, match="edges must .*got 151"):
        draw_trie([(i, i + 1, "a") for i in range(150)], {})


def test_a_single_node():
    assert str(draw_trie([], {0: "a"})) == "0  [a]"
    parsed(draw_trie([], {0: "a"}, links={0: 0}))


def test_splits_of_random_words():
    rng = random.Random(4)
    for _ in range(50):
        words = ["".join(rng.choices("abé京<", k=rng.randrange(1, 9))) for _ in range(rng.randrange(1, 6))]
        splits = {
            name: [[w[i : i + k] for i in range(0, len(w), k)] for w in words]
            for name, k in (("one", 1), ("two", 2), ("all", 9))
        }
        figure = draw_splits(words, splits, title="t" * rng.randrange(40))
        root = parsed(figure)
        assert_apart(root)
        assert len(boxes(root)) == sum(len(cell) for column in splits.values() for cell in column)
        assert [ln.split()[0] for ln in figure.text.splitlines()[-len(words) :]] == words


def test_hostile_splits():
    root = parsed(
        draw_splits(HOSTILE, {s or "nothing": [[p, s] for p in HOSTILE] for s in HOSTILE}, title=HOSTILE[0])
    )
    assert_apart(root)
