"""Write the development lock: every package that development needs, pinned, with hashes, for all supported Pythons and systems.

    python dev/lock.py              resolve anew, with the newest versions that `settings.ini` allows
    python dev/lock.py --keep       keep the pins there are, where they still fit
    python dev/lock.py --check      is the lock what `--keep` would write? Exit code 1 if not

It asks uv (`pip install uv`) and the package index. To install from it:

    python -m pip install --require-hashes -r dev/requirements.lock
    python -m pip install --no-deps -e .

What each package is for stands in `settings.ini`; `EXTRAS` names the extras that are locked.
"""

import argparse
import configparser
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "dev" / "requirements.lock"
EXTRAS = ("dev", "peers", "browser", "fuzz", "scale", "arrow", "remote", "hub")
HEAD = """# Made by `python dev/lock.py`, do not edit. Install with: python -m pip install --require-hashes -r dev/requirements.lock
# Of settings.ini: requirements and the extras {extras}; for Python {oldest} and later, on every system.
"""


def settings() -> configparser.SectionProxy:
    "What `settings.ini` says."
    parser = configparser.ConfigParser(delimiters=["="], inline_comment_prefixes=None)
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def wanted() -> list[str]:
    "The requirements that are locked, each once, in the order of `settings.ini`."
    options = settings()
    return list(
        dict.fromkeys(
            r
            for key in ("requirements", *(f"{e}_requirements" for e in EXTRAS))
            for r in options[key].split()
        )
    )


def uv() -> list[str]:
    "The command that runs uv: that of this Python's environment, or the one on the path."
    try:
        import uv as module
    except ImportError:
        found = shutil.which("uv")
        if not found:
            sys.exit("uv is missing: pip install uv")
        return [found]
    return [module.find_uv_bin()]


def resolved(keep: bool) -> str:
    "The lock as it should be; with `keep`, pins of the present one stay where they fit."
    options = settings()
    with tempfile.TemporaryDirectory() as folder:
        asked, out = Path(folder, "asked.in"), Path(folder, "out.lock")
        asked.write_text("\n".join(wanted()) + "\n", encoding="utf-8")
        if keep and LOCK.exists():
            shutil.copy(LOCK, out)
        options = [
            "--universal",
            "--python-version",
            options["min_python"],
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--no-emit-index-url",
            "--no-emit-find-links",
            "--no-config",
            "--quiet",
        ]
        done = subprocess.run(
            [
                *uv(),
                "pip",
                "compile",
                *options,
                *([] if keep else ["--upgrade"]),
                "--output-file",
                str(out),
                str(asked),
            ],
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        if done.returncode:
            sys.exit(done.stderr)
        return HEAD.format(extras=", ".join(EXTRAS), oldest=options["min_python"]) + out.read_text(
            encoding="utf-8"
        )


def main() -> None:
    "Read the command line, write or check the lock."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="keep pins where they fit")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the lock does not fit settings.ini"
    )
    given = parser.parse_args()
    text = resolved(given.keep or given.check)
    if not given.check:
        LOCK.write_text(text, encoding="utf-8")
        print(
            f"{LOCK.relative_to(ROOT)}: {sum('==' in line for line in text.splitlines() if not line.startswith('#'))} pins"
        )
    elif not LOCK.exists() or LOCK.read_text(encoding="utf-8") != text:
        sys.exit(f"{LOCK.relative_to(ROOT)} does not fit settings.ini: run python dev/lock.py --keep")


if __name__ == "__main__":
    main()
