"Every variant of BPE, by one table: any number of threads, files, progress, checkpoints, traces, and what is refused."

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from seeds import fresh

from subword_nb import Tokenizer
from subword_nb.bpe.parity import Parity
from subword_nb.corpus.segmentation import pretokens_ref
from subword_nb.train import train as train_page
from subword_nb.train.trace import load_trace
from subword_nb.train.recipes import VARIANTS, learn_bpe

pytestmark = pytest.mark.filterwarnings("ignore:.*only this library reads", "ignore:training ended")
ROOT = Path(__file__).resolve().parents[2]
TEXT = "the hug of a pug, in 1984… der Hügel; 東京都 and don't “stop”! hugs hugging हिन्दी \0 \x85"
WORDS = TEXT.split(" ")
SMALL = {"superwords": 300, "parity": Parity(), "picky": 0.6, "trim": 5}
CASES = [(name, SMALL.get(name, VARIANTS[name].example)) for name in VARIANTS] + [("superwords", "boundless")]
IDS = [f"{name}={value}"[:24] for name, value in CASES]


def texts(rng, n):
    return [
        rng.choice([" ", " ", "\n"]).join(rng.choices(WORDS, k=rng.randrange(1, 20))) + "\n" for _ in range(n)
    ]


def source_of(name):
    some = texts(fresh("corpus"), 120)
    return {"one": some[:60], "two": some[60:]} if VARIANTS[name].source == "corpora" else some


def trained(name, value, **options):
    return Tokenizer.train(source_of(name), vocab_size=330, progress=False, **{name: value}, **options)


def test_each_variant_is_an_option_and_has_its_page():
    options = inspect.signature(learn_bpe).parameters
    for name, variant in VARIANTS.items():
        assert options[name].default in (None, False)
        assert (ROOT / "nbs" / variant.page).is_file()
        assert variant.source in ("counts", "corpus", "corpora")


def test_the_help_of_the_command_names_each_that_it_can_train():
    from subword_nb.cli.train import TRAIN_EXAMPLES

    for name in VARIANTS:
        assert name in TRAIN_EXAMPLES


@pytest.mark.parametrize(("name", "value"), CASES, ids=IDS)
def test_threads_files_and_progress(name, value, tmp_path):
    seen = []
    tok = trained(name, value, threads=1, special_tokens=["<s>"], on_progress=lambda *args: seen.append(args))
    assert {what for _, _, what, _ in seen} >= {"merging"} or len(tok.id2piece) < 330
    assert trained(name, value, threads=3, special_tokens=["<s>"]) == tok
    tok.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    for text in [*texts(fresh(), 20), "", " ", "\0", "a" * 3000, "\U0010ffff\ud7ff"]:
        ids = tok.encode(text)
        assert tok.decode(ids) == text
        assert again.encode(text) == ids == tok.encode_array(text).tolist()
    assert tok.explain("hugging the pug")


@pytest.mark.parametrize(("name", "value"), CASES, ids=IDS)
def test_what_a_variant_does_not_have_is_refused(name, value):
    other = next(n for n in ("picky", "trim") if n != name)
    with pytest.raises(ValueError, match="must be left out with"):
        trained(name, value, **{other: SMALL[other]})
    with pytest.raises(ValueError, match="must be None for characters|must be left out for characters"):
        trained(name, value, algorithm="char_bpe")


@pytest.mark.parametrize(("name", "value"), CASES, ids=IDS)
def test_counts_are_enough_or_refused(name, value):
    counts = {b"hug": 9, b" pug": 4, " Hügel".encode(): 3, b" hugs": 2}
    if VARIANTS[name].source == "counts":
        with pytest.warns(UserWarning, match="training ended"):
            assert Tokenizer.train(counts, vocab_size=300, **{name: value}).decode([104, 103]) is not None
        return
    with pytest.raises(ValueError, match="source"):
        Tokenizer.train(counts, vocab_size=300, **{name: value})


@pytest.mark.parametrize(("name", "value"), CASES, ids=IDS)
def test_a_run_with_a_checkpoint_gives_the_same(name, value, tmp_path, monkeypatch):
    source = source_of(name)
    if isinstance(source, dict):
        source = {label: written(tmp_path / label, texts) for label, texts in source.items()}
        value = Parity(dev=source)
    else:
        source = written(tmp_path / "corpus", source)
    how = {"vocab_size": 330, "progress": False, name: value}
    tok = Tokenizer.train(source, **how)
    folder = tmp_path / "kept"

    class Stopped(Exception):
        pass

    def stop(done, total, what, state):
        if what == "merging":
            raise Stopped

    with pytest.raises(Stopped):
        Tokenizer.train(source, checkpoint=folder, on_progress=stop, **how)
    monkeypatch.setattr(train_page, "count_corpus", None)  # whatever was counted is not counted again
    assert Tokenizer.train(source, checkpoint=folder, **how) == tok
    with pytest.raises(ValueError, match="vocab_size was"):
        Tokenizer.train(source, checkpoint=folder, **how | {"vocab_size": 340})


def written(path, texts):
    path.write_text("".join(texts), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "value"), CASES, ids=IDS)
def test_a_trace_explains_every_piece(name, value, tmp_path):
    rng, path = fresh("pieces"), tmp_path / "trace.npz"
    tok = trained(name, value, special_tokens=["<s>"], trace=path)
    assert tok == trained(name, value, special_tokens=["<s>"])
    trace = load_trace(path)
    assert trace == tok.training.trace
    merged = ~trace.arrays["event_removed"]
    names, chose = trace.facts["names"], {None, *trace.facts["who"]}
    assert {*names} >= {*tok.piece2id} and trace.facts["pieces"] == [*tok.piece2id]
    for piece in rng.sample([*tok.piece2id], 12) + [names[i] for i in trace.arrays["event_piece"][-3:]]:
        explained = tok.explain_training(piece, trace=path)
        assert explained.to_dict()["summary"] and str(explained) and explained._repr_html_()
        if explained.kind != "merge":
            assert explained.kind == ("special" if piece == "<s>" else "alphabet")
            continue
        f = explained.facts
        assert merged[f["step"]] and f["count"] == trace.arrays["worth"][f["step"]] and f["who"] in chose
        assert (f["order"][0]["left"], f["order"][0]["right"]) == (f["left"], f["right"])
        assert f["left"] + f["right"] == f["piece"] == piece and f["kept"] == (piece in tok.piece2id)
    never = tok.explain_training("qjx" if "q" in names else "gggbb")
    assert never.kind == "never" and "".join(never.facts["split"]) in ("qjx", "gggbb")


def test_damaged_events_are_refused(tmp_path):
    tok = trained("picky", 0.6, trace=True)
    trace = tok.training.trace
    for name, change, said in (
        ("event_piece", lambda a: a + 10_000, "pieces that have names"),
        ("event_bounds", lambda a: a[:-1], "the same length"),
        ("event_who", lambda a: a + 1, "one that has a name"),
        ("worth", lambda a: a[1:], "the same length"),
    ):
        wrong = replace(trace, arrays=trace.arrays | {name: change(trace.arrays[name])})
        wrong.save(tmp_path / "wrong.npz")
        with pytest.raises(ValueError, match=said):
            load_trace(tmp_path / "wrong.npz")


@pytest.mark.parametrize(("name", "value"), CASES, ids=IDS)
def test_new_spans_are_encoded_as_the_model_does(name, value):
    tok = trained(name, value)
    for text in [*texts(fresh("spans"), 40), "a" * 100 + " hug" * 60, "\U0010ffff\ud7ff ü" * 9]:
        pretokens = pretokens_ref(text, None, tok.pre_tokenizer)
        assert tok.encode_array(text).tolist() == [i for p in pretokens for i in tok.model.encode(p)]
