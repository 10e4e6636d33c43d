"""Fixtures of all tests: where the project is, its documentation site, and where the data of other projects is, if anywhere."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import seeds

ROOT = Path(__file__).resolve().parent.parent
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in what a shell starts in the background; tests interrupt processes by it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("SUBWORD_NB_BUILD", "0")  # kernels of a changed page are compiled in place, and tested
os.environ.setdefault("SUBWORD_NB_TABLES", "none")  # tests of tables that are stored say where
os.environ["RUST_BACKTRACE"] = "0"  # where a peer panics on a text, its name is enough


class FailuresAtOnce:
    "Names a test when it fails, and how it failed in a line, not only when all are done."

    def __init__(self, reporter):
        self.reporter = reporter

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message.partition("\n")[0][:200] if crash else ""
            self.reporter.write_line(f"\nfailed: {report.nodeid}: {message}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.register(FailuresAtOnce(reporter))


def pytest_collection_modifyitems(config, items):
    "Of $SUBWORD_NB_ONE_IN tests one, and of the long cases of a test marked `one_in(n)` one in n: others in each run."
    kept, left = [], []
    for item in items:
        one_in = int(os.environ.get("SUBWORD_NB_ONE_IN", "1"))
        mark = item.get_closest_marker("one_in")
        long = item.get_closest_marker("slow") or item.get_closest_marker("peers")
        if mark is not None and long and seeds.TEXTS < 2000:
            one_in *= mark.args[0]
        drawn = seeds.fresh("one in", item.nodeid).randrange(one_in) == 0
        (kept if drawn else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(seeds.repeat_with())


def data_folder() -> Path:
    "The folder with other projects' vocabularies and corpora: $SUBWORD_NB_DATA, else ../shared/data beside the repository."
    named = os.environ.get("SUBWORD_NB_DATA")
    return Path(named) if named else ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def project() -> Path:
    "The repository's folder."
    return ROOT


@pytest.fixture(scope="session")
def built_site(tmp_path_factory) -> Path:
    "The documentation site: $SUBWORD_NB_SITE if somebody has built it, else built now, once."
    named = os.environ.get("SUBWORD_NB_SITE")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, str(ROOT / "dev" / "docsite.py"), "build", "--out", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    "The data folder; the test is skipped where there is none."
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(
            f"no data folder {folder}: set SUBWORD_NB_DATA to one that has vocab/, golden/ and corpus/"
        )
    return folder


@pytest.fixture(scope="session")
def shared_file(shared_data):
    "A function from a name in the data folder (`vocab/gpt2/vocab.json`) to its path; the test is skipped where it is missing."

    def find(name: str) -> Path:
        path = shared_data / name
        if not path.exists():
            pytest.skip(f"{name} is missing in the data folder {shared_data}")
        return path

    return find


@pytest.fixture(scope="session")
def hf():
    "Hugging Face's library."
    return pytest.importorskip("tokenizers", reason="the peer tests need the extra 'peers'")


@pytest.fixture(scope="session")
def spm():
    "SentencePiece."
    return pytest.importorskip("sentencepiece", reason="the peer tests need the extra 'peers'")


@pytest.fixture(scope="session")
def tiktoken():
    "tiktoken."
    return pytest.importorskip("tiktoken", reason="the peer tests need the extra 'peers'")


@pytest.fixture(scope="session")
def openai_public(tiktoken):
    "tiktoken's list of published encodings."
    from tiktoken_ext import openai_public

    return openai_public


@pytest.fixture(scope="session")
def apply_bpe():
    "The module of subword-nmt that applies codes."
    return pytest.importorskip("subword_nmt.apply_bpe", reason="the peer tests need the extra 'peers'")


@pytest.fixture(scope="session")
def regex():
    "The module regex, by which other libraries cut texts."
    return pytest.importorskip("regex", reason="the peer tests need the extra 'peers'")


@pytest.fixture(scope="module")
def tok():
    "A tokenizer of 500 ids with an end of documents, for files and folders of ids."
    from subword_nb.corpus.documents import default_corpus
    from subword_nb.tokenizer.tokenizer import Tokenizer

    return Tokenizer.train(default_corpus()[:20], vocab_size=500, special_tokens=["<|endoftext|>"])


@pytest.fixture
def no_waiting(monkeypatch):
    "A killed process loses nothing that it has written, so there is no need to wait for the disk; real children do."
    monkeypatch.setattr(os, "fsync", lambda fd: None)
