"""What a person gets who installs the package: built and installed away from the repository."""
import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
LEFT_OUT = (".git", "_docs", "_proc", "_site", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".ipynb_checkpoints", "venv", ".venv", "node_modules")


def run(*command, cwd: Path, **env) -> str:
    "Standard output of a command that must succeed."
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, **env})
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def settings(project):
    parser = configparser.ConfigParser(delimiters=["="])
    parser.read(project / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


@pytest.fixture(scope="module")
def wheel(project, tmp_path_factory) -> Path:
    "The wheel, built from a copy."
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(project, folder / "src", symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", folder / "out", folder / "src", cwd=folder)
    [built] = (folder / "out").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    "The `bin` folder of a new virtual environment with the wheel in it; what the package needs is lent by this environment."
    folder = tmp_path_factory.mktemp("env") / "venv"
    venv.create(folder, with_pip=False)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    run(sys.executable, "-m", "pip", "--python", folder, "install", "--no-deps", "--no-index", "--quiet", wheel, cwd=folder)
    site = run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    lent = dict.fromkeys(sysconfig.get_path(k) for k in ("purelib", "platlib"))
    Path(site, "lent.pth").write_text("\n".join(lent) + "\n", encoding="utf-8")
    return scripts


def test_wheel_holds_the_package_and_nothing_else(wheel, settings, project):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name.startswith(f"subword_nb-{settings['version']}-py3-none-any")
    modules = {f"subword_nb/{p.name}" for p in (project / "subword_nb").glob("*.py")}
    assert modules <= set(names), sorted(modules - set(names))
    assert "subword_nb/unicode_classes.txt" in names
    assert any(n.endswith("LICENSE") for n in names), "no licence"
    odd = [n for n in names if not n.startswith(("subword_nb/", f"subword_nb-{settings['version']}.dist-info/"))]
    assert not odd, odd


def test_metadata(wheel, settings):
    with zipfile.ZipFile(wheel) as z:
        [name] = [n for n in z.namelist() if n.endswith(".dist-info/METADATA")]
        text = z.read(name).decode("utf-8")
        [entry] = [n for n in z.namelist() if n.endswith("entry_points.txt")]
        entry_points = z.read(entry).decode("utf-8")
    head = text.split("\n\n")[0]
    assert f"Requires-Python: >={settings['min_python']}" in head
    always = [line.split(": ")[1] for line in head.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert len(always) == len(settings["requirements"].split()), always
    assert not [r for r in always if r.startswith(("nbdev", "fastcore"))], always
    assert {"dev", "peers", "viz"} <= {line.split(": ")[1] for line in head.splitlines() if line.startswith("Provides-Extra")}
    assert "subword-nb = subword_nb.cli:main" in entry_points.replace("=", " = ").replace("  ", " ")
    assert "subword_nb._modidx:d" in entry_points


def test_installed_command_and_package(installed, settings, tmp_path):
    assert settings["version"] in run(installed / "subword-nb", "--version", cwd=tmp_path)
    where = run(installed / "python", "-c", "import subword_nb; print(subword_nb.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(installed.parent.resolve()) or Path(where).is_relative_to(installed.parent), where


def test_installed_package_trains_and_encodes(installed, tmp_path):
    code = (
        "from subword_nb import Tokenizer\n"
        "from subword_nb.corpus import COURSE_CORPUS\n"
        "tok = Tokenizer.train(COURSE_CORPUS, algorithm='bpe', vocab_size=300)\n"
        "assert tok.decode(tok.encode('héllo wörld')) == 'héllo wörld'\n"
        "tok.save('tok.json')\n"
        "assert Tokenizer.load('tok.json').encode('This is the') == tok.encode('This is the')\n"
    )
    run(installed / "python", "-c", code, cwd=tmp_path)


def test_source_distribution_builds(project, tmp_path):
    shutil.copytree(project, tmp_path / "src", symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    try:
        import setuptools  # noqa: F401
    except ImportError:
        pytest.skip("setuptools is missing")
    run(sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", tmp_path / "out", cwd=tmp_path / "src")
    [archive] = (tmp_path / "out").glob("*.tar.gz")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", tmp_path / "wheels", archive, cwd=tmp_path)
    [built] = (tmp_path / "wheels").glob("*.whl")
    assert "subword_nb/unicode_classes.txt" in zipfile.ZipFile(built).namelist()
