"""What a person gets who installs the package: built and installed away from the repository."""

import configparser
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
LEFT_OUT = (
    ".git",
    "_kernels",
    "_docs",
    "_proc",
    "_site",
    "build",
    "dist",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".ipynb_checkpoints",
    "venv",
    ".venv",
    "node_modules",
)
DATA = ("py.typed", "unicode_classes.txt", "view.css", "view.js")
SUPPORTED = range(10, 15)  # 3.10 to 3.14
ELSEWHERE = (
    "core/test_unicode.py",
    "pipeline/test_encoding.py",
    "pipeline/test_processors.py",
    "pipeline/test_decoders.py",
    "bpe/test_reference.py",
)  # what is run from the installed wheel
MACHINE = re.compile(rb"/(?:root|home/\w+|work|opt|Users/\w+)/|[A-Z]:\\Users|/tmp/\w")


def run(*command, cwd: Path, timeout: float = 600, **env) -> str:
    "Standard output of a command that must succeed."
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": "", **env},  # the installed package, not one that a shell points at
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def settings(project):
    parser = configparser.ConfigParser(delimiters=["="])
    parser.read(project / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


@pytest.fixture(scope="module")
def source(project, tmp_path_factory) -> Path:
    "A copy of the repository, to build from; its library of kernels need not be compiled again."
    folder = tmp_path_factory.mktemp("source") / "src"
    left_out = [name for name in LEFT_OUT if name != "_kernels"]
    shutil.copytree(project, folder, symlinks=True, ignore=shutil.ignore_patterns(*left_out))
    return folder


def built_wheel(source: Path, out: Path) -> Path:
    "The wheel of a folder, or of a source distribution."
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--wheel-dir",
        out,
        source,
        cwd=out.parent,
    )
    [built] = out.glob("*.whl")
    return built


def built_sdist(source: Path, out: Path) -> Path:
    "The source distribution of a folder, from a copy: building leaves notes beside the sources."
    copy = out / "copy"
    shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    run(sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", out, cwd=copy)
    [archive] = out.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory) -> Path:
    return built_wheel(source, tmp_path_factory.mktemp("wheel") / "out")


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory) -> Path:
    pytest.importorskip("setuptools")
    return built_sdist(source, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    "The `bin` folder of a new virtual environment with the wheel in it; what the package needs is lent by this environment."
    folder = tmp_path_factory.mktemp("env") / "venv"
    venv.create(folder, with_pip=False)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder,
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        wheel,
        cwd=folder,
    )
    site = run(
        scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    ).strip()
    lent = dict.fromkeys(sysconfig.get_path(k) for k in ("purelib", "platlib"))
    Path(site, "lent.pth").write_text("\n".join(lent) + "\n", encoding="utf-8")
    return scripts


def contents(archive: Path) -> dict[str, bytes]:
    "The files of a wheel, or of a source distribution without its top folder."
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as z:
            return {n: z.read(n) for n in z.namelist()}
    with tarfile.open(archive) as tar:
        return {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}


def test_wheel_holds_the_package_and_nothing_else(wheel, settings, source):
    names = set(contents(wheel))
    info = f"subword_nb-{settings['version']}.dist-info/"
    assert re.fullmatch(rf"subword_nb-{re.escape(settings['version'])}-py3-none-(?!any)\w+\.whl", wheel.name)
    modules = {p.relative_to(source).as_posix() for p in (source / "subword_nb").rglob("*.py")}
    compiled = {n for n in names if n.startswith("subword_nb/_kernels/")}
    assert {Path(n).suffix for n in compiled} - {".so", ".dylib", ".dll"} == {".json", ".bin"}
    assert len(compiled) == 3  # the library, what it was made of, and tables of Unicode
    assert {n for n in names if not n.startswith(info)} - compiled == modules | {
        f"subword_nb/{n}" for n in DATA
    }
    assert any(n.startswith(info) and n.endswith("LICENSE") for n in names), "no licence"


def test_a_wheel_of_python_alone(source, settings, tmp_path, monkeypatch):
    "For browsers, and for systems that have no wheel of their own."
    monkeypatch.setenv("SUBWORD_NB_KERNELS", "none")
    pure = built_wheel(source, tmp_path / "out")
    assert pure.name == f"subword_nb-{settings['version']}-py3-none-any.whl"
    assert not [n for n in contents(pure) if "/_kernels/" in n]


def test_source_distribution_holds_what_the_wheel_is_built_from(sdist, settings, source):
    names = set(contents(sdist))
    assert sdist.name == f"subword_nb-{settings['version']}.tar.gz"
    modules = {p.relative_to(source).as_posix() for p in (source / "subword_nb").rglob("*.py")} | {
        f"subword_nb/{n}" for n in DATA
    }
    assert modules == {n for n in names if n.startswith("subword_nb/")}
    assert {
        "setup.py",
        "settings.ini",
        "MANIFEST.in",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "PKG-INFO",
    } <= names
    invalid = [n for n in names - modules if "/" in n and not n.startswith("subword_nb.egg-info/")]
    assert not invalid, invalid


def test_nothing_names_the_machine_it_was_built_on(wheel, sdist, source):
    for archive in (wheel, sdist):
        for name, data in contents(archive).items():
            assert not (m := MACHINE.search(data)), (
                f"{archive.name}: {name}: {m and data[max(0, m.start() - 40) : m.end() + 40]}"
            )
            assert str(source).encode() not in data, f"{archive.name}: {name}"
    with tarfile.open(sdist) as tar:
        assert {(m.uid, m.gid, m.uname, m.gname) for m in tar.getmembers()} == {(0, 0, "", "")}
        assert all(m.isfile() or m.isdir() for m in tar.getmembers())


def test_the_same_sources_give_the_same_files(wheel, sdist, source, tmp_path):
    def digest(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    assert digest(built_wheel(sdist, tmp_path / "from sdist")) == digest(wheel), (
        "the source distribution gives another wheel"
    )
    again = tmp_path / "again"
    shutil.copytree(source, again, symlinks=True)
    for path in again.rglob("*"):
        if path.is_file():
            os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
    assert digest(built_sdist(again, tmp_path / "sdist")) == digest(sdist)
    assert digest(built_wheel(again, tmp_path / "wheel")) == digest(wheel)


def test_metadata(wheel, settings):
    files = contents(wheel)
    [said] = [
        Parser().parsestr(data.decode("utf-8"))
        for n, data in files.items()
        if n.endswith(".dist-info/METADATA")
    ]
    [entry_points] = [data.decode("utf-8") for n, data in files.items() if n.endswith("entry_points.txt")]
    assert said["Requires-Python"] == f">={settings['min_python']}"
    always = [r for r in said.get_all("Requires-Dist") if "extra ==" not in r]
    assert len(always) == len(settings["requirements"].split()), always
    assert not [r for r in always if r.startswith(("nbdev", "fastcore"))], always
    extras = {k.removesuffix("_requirements") for k in settings if k.endswith("_requirements")}
    assert extras == set(said.get_all("Provides-Extra"))
    classifiers = said.get_all("Classifier")
    assert {
        "Typing :: Typed",
        "Programming Language :: Python :: 3 :: Only",
        "Operating System :: OS Independent",
    } <= set(classifiers)
    assert [c for c in classifiers if re.search(r":: 3\.\d+$", c)] == [
        f"Programming Language :: Python :: 3.{minor}" for minor in SUPPORTED
    ]
    assert settings["min_python"] == f"3.{SUPPORTED[0]}"
    assert "Apache-2.0" in (said["License"] or said["License-Expression"])
    assert "# subword_nb" in said.get_payload()
    assert "subword-nb = subword_nb.cli.main:main" in entry_points.replace("=", " = ").replace("  ", " ")
    assert "subword_nb._modidx:d" in entry_points


def interpreters() -> dict[int, str]:
    "The supported Pythons that are here: minor version → command."
    found = {sys.version_info[1]: sys.executable}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in SUPPORTED:
        for path in [shutil.which(f"python3.{minor}"), *sorted(pyenv.glob(f"3.{minor}.*/bin/python"))]:
            if path and minor not in found:
                probe = "import sys, ensurepip, venv; print(sys.version_info[1])"
                done = subprocess.run([str(path), "-c", probe], capture_output=True, text=True, timeout=60)
                if done.returncode == 0 and done.stdout.strip() == str(minor):
                    found[minor] = str(path)
    return dict(sorted(found.items()))


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_it_installs_without_a_compiler_and_passes_tests_elsewhere(which, wheel, project, tmp_path):
    found = interpreters()
    minor = min(found) if which == "oldest" else max(found)
    if which == "newest" and len(found) == 1:
        pytest.skip("there is only one Python, which was the oldest")
    run(found[minor], "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    bare = {
        "PATH": str(scripts),
        "CC": "false",
        "CXX": "false",
        "SUBWORD_NB_DATA": str(tmp_path / "none"),
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "PYTHONUTF8": "1",
        "PYTEST_ADDOPTS": "",
        "SUBWORD_NB_TEXTS": "60",
        "SUBWORD_NB_ONE_IN": "1",  # whatever the run around draws, all of these tests
    }
    try:
        run(
            scripts / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            wheel,
            "pytest",
            "pytest-xdist",
            cwd=tmp_path,
            **bare,
        )
    except AssertionError as e:
        if not os.environ.get("CI") and re.search(
            "connection|resolution|network|timed out|no matching distribution", str(e), re.IGNORECASE
        ):
            pytest.skip("the package index cannot be reached")
        raise
    where = Path(
        run(
            scripts / "python",
            "-c",
            "import subword_nb.pipeline.encoder; print(subword_nb.__file__)",
            cwd=tmp_path,
            **bare,
        ).strip()
    )
    assert where.parent.parent.name.endswith("-packages") and where.is_relative_to(
        (tmp_path / "venv").resolve()
    ), where
    assert "subword-nb" in run(scripts / "subword-nb", "--help", cwd=tmp_path, **bare)
    assert "Trained" in run(scripts / "subword-nb", "demo", cwd=tmp_path, **bare)
    code = (
        "import importlib.util; from subword_nb.core import jit, native; "
        "print(importlib.util.find_spec('numba') is None, native.library() is not None, jit.available())"
    )
    assert run(scripts / "python", "-c", code, cwd=tmp_path, **bare).split() == ["True"] * 3
    helpers = [p.name for p in (project / "tests").glob("*.py") if not p.name.startswith("test_")]
    for name in (*helpers, *ELSEWHERE):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / "tests" / name, tmp_path / "tests" / name)
    shutil.copy(project / "pytest.ini", tmp_path)
    said = run(
        scripts / "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(f"tests/{n}" for n in ELSEWHERE),
        cwd=tmp_path,
        **bare,
    )
    passed = re.search(r"(\d+) passed", said)
    assert passed and int(passed[1]) >= 100, said


def test_checkers_see_the_types_of_what_is_installed(installed, project, tmp_path):
    pytest.importorskip("mypy")
    for name in ("right.py", "wrong.py"):
        shutil.copy(project / "tests" / "types" / name, tmp_path)
    check = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "",
        "--python-executable",
        installed / "python",
        "--cache-dir",
        tmp_path / "cache",
        "--ignore-missing-imports",
    ]
    assert "Success" in run(*check, "right.py", cwd=tmp_path, MYPYPATH="")
    done = subprocess.run(
        [str(c) for c in [*check, "wrong.py"]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": ""},
    )
    assert done.returncode == 1 and "Found" in done.stdout, (
        "without py.typed a checker takes everything for Any"
    )


def test_installed_command_and_package(installed, settings, tmp_path):
    assert settings["version"] in run(installed / "subword-nb", "--version", cwd=tmp_path)
    where = run(
        installed / "python", "-c", "import subword_nb; print(subword_nb.__file__)", cwd=tmp_path
    ).strip()
    assert Path(where).is_relative_to(installed.parent.resolve()) or Path(where).is_relative_to(
        installed.parent
    ), where


def test_installed_package_trains_and_encodes(installed, tmp_path):
    code = (
        "from subword_nb import Tokenizer\n"
        "from subword_nb.corpus.documents import COURSE_CORPUS\n"
        "tok = Tokenizer.train(COURSE_CORPUS, algorithm='bpe', vocab_size=300)\n"
        "assert tok.decode(tok.encode('héllo wörld')) == 'héllo wörld'\n"
        "tok.save('tok.json')\n"
        "assert Tokenizer.load('tok.json').encode('This is the') == tok.encode('This is the')\n"
    )
    run(installed / "python", "-c", code, cwd=tmp_path)
