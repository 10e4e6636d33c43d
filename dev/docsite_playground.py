"""The playground's files in the site: the package as zips, small tokenizers trained now, Pyodide, and the page's scripts.

Pyodide comes from npm: `npm ci --prefix dev/web`, or a folder named by SUBWORD_NB_NODE_MODULES. Without it the page
shows what the package said of the first text when the site was built, and says how to get the rest.
"""

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "docsite" / "playground"
PAGE = "playground.ipynb"  # the notebook whose page takes the playground
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
NOTICE = (
    "Pyodide {version}, https://github.com/pyodide/pyodide, under the Mozilla Public License 2.0.\n"
    "It holds CPython, https://www.python.org, under the Python Software Foundation License 2.\n"
)


def node_modules() -> Path:
    "Where npm's packages are."
    named = os.environ.get("SUBWORD_NB_NODE_MODULES")
    return Path(named) if named else ROOT / "dev" / "web" / "node_modules"


def pyodide_folder() -> Path | None:
    "Pyodide's folder, if it is whole."
    folder = node_modules() / "pyodide"
    return (
        folder
        if all((folder / name).is_file() for name in (*PYODIDE, "pyodide-lock.json", "package.json"))
        else None
    )


def package_files() -> dict[str, Path]:  # Name within the archive → file
    "The package's modules and tables."
    files = sorted((ROOT / "subword_nb").rglob("*"))
    return {f.relative_to(ROOT).as_posix(): f for f in files if f.suffix in (".py", ".txt") and f.is_file()}


def installed_files(*packages: str) -> dict[str, Path]:  # Name within the archive → file
    "The modules and licences of packages that are installed here."
    found = {}
    for package in packages:
        for file in importlib.metadata.files(package) or ():
            if file.suffix == ".py" or "LICENSE" in file.name:
                found[file.as_posix()] = Path(file.locate())
    return found


def write_zip(
    path: Path,  # The zip file
    files: dict[str, Path],  # Name within it → file
) -> None:
    "Put files into a zip, the same bytes for the same files."
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, file in sorted(files.items()):
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), file.read_bytes(), zipfile.ZIP_DEFLATED)


def write_archives(
    out: Path,  # The playground's folder, with the small tokenizers
) -> None:
    "Write what the worker unpacks at its start (first.zip), and what it fetches when a module is imported."
    done = run_python("needed.py", out)
    names = {f"{name.replace('.', '/')}{end}" for name in json.loads(done) for end in (".py", "/__init__.py")}
    files = package_files()
    first = {name: file for name, file in files.items() if name in names or file.suffix == ".txt"}
    write_zip(out / "first.zip", first)
    write_zip(out / "rest.zip", {name: file for name, file in files.items() if name not in first})
    write_zip(out / "chat.zip", installed_files("jinja2", "markupsafe"))


def run_python(script: str, out: Path) -> str:  # What it printed
    "Run a script of the playground on its folder, in a process of its own."
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)]),
        "PYTHONHASHSEED": "0",
        "SUBWORD_NB_QUIET": "1",
    }
    done = subprocess.run(
        [sys.executable, str(HERE / script), str(out)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=env,
    )
    if done.returncode:
        raise SystemExit(f"{script} of the playground failed:\n{done.stderr[-4000:]}")
    return done.stdout


def train(out: Path) -> None:
    "Train the small tokenizers."
    run_python("train.py", out)


def write_version(
    out: Path,  # The playground's folder, complete
) -> None:
    "Name, in the worker, the version of all that it loads: what a browser keeps of another version is not used."
    digest = hashlib.sha256()
    for path in sorted(
        p for p in out.rglob("*") if p.suffix in (".zip", ".py", ".js", ".json", ".mjs", ".wasm")
    ):
        digest.update(path.relative_to(out).as_posix().encode() + b"\0" + path.read_bytes())
    worker = out / "worker.js"
    text = worker.read_text(encoding="utf-8")
    worker.write_text(text.replace("%VERSION%", digest.hexdigest()[:16]), encoding="utf-8")


def copy_pyodide(out: Path) -> bool:  # Was it there?
    "Copy what of Pyodide a page loads; of its list of packages only what it is for, because none is used."
    folder = pyodide_folder()
    if folder is None:
        print(
            f"warning: no Pyodide in {node_modules()}: the playground will only show its first text; run `npm ci --prefix dev/web`",
            file=sys.stderr,
        )
        return False
    (out / "pyodide").mkdir()
    for name in PYODIDE:
        shutil.copyfile(folder / name, out / "pyodide" / name)
    lock = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))
    (out / "pyodide" / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": {}}), encoding="utf-8")
    version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
    (out / "pyodide" / "NOTICE.txt").write_text(NOTICE.format(version=version), encoding="utf-8")
    return True


def write_playground(
    out: Path,  # The site's folder
) -> None:
    "Write the folder `playground/` of the site."
    folder = out / "playground"
    folder.mkdir(parents=True)
    for file in (
        HERE / "engine.js",
        HERE / "lesson.js",
        HERE / "lesson.py",
        HERE / "page.js",
        HERE / "page.css",
        HERE / "worker.js",
        HERE / "archives.py",
        HERE / "chat.js",
        HERE / "chat.py",
        HERE / "chats.json",
        HERE / "glue.py",
        HERE / "learn.py",
        ROOT / "subword_nb" / "view.js",
        ROOT / "subword_nb" / "view.css",
    ):
        shutil.copyfile(file, folder / file.name)
    train(folder)
    write_archives(folder)
    listed = folder / "tokenizers.json"
    listed.write_text(
        json.dumps(
            {**json.loads(listed.read_text(encoding="utf-8")), "pyodide": copy_pyodide(folder)},
            indent=1,
            ensure_ascii=False,
        )
        + "\n",
        encoding="utf-8",
    )
    write_version(folder)


def with_policy(
    text: str,  # The page
) -> str:  # With a policy: its own scripts and files only
    "Forbid a page to run any script that it did not come with, and to talk to any other place."
    inline = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in inline
    )
    policy = (
        f"default-src 'self'; script-src 'self' 'wasm-unsafe-eval' {hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'"
    )
    return text.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        1,
    )
