"""Packaging: everything is read from settings.ini, the one place that is edited by hand.

The same sources give the same files, bit for bit. `SUBWORD_NB_KERNELS` names the processors that kernels are compiled for
("x86_64-v3,x86_64-v2"), or "none" for a wheel of Python alone; by default it is this machine's.
"""

import gzip
import os
import shutil
import sys
import tarfile
from configparser import ConfigParser
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # an old setuptools, which can make a source distribution and no wheel
    bdist_wheel = None

NEWEST_PYTHON = 14  # the newest 3.x that is meant
WHEN = os.environ.setdefault(
    "SOURCE_DATE_EPOCH", "315532800"
)  # the date of all files in wheel and sdist: 1980, the first that a zip can say
here = Path(__file__).parent
for earlier in (here / "build").glob("lib*"):  # its modules would be installed with today's
    shutil.rmtree(earlier, ignore_errors=True)
parser = ConfigParser(delimiters=["="], inline_comment_prefixes=None)
parser.read(here / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]
extras = {k.removesuffix("_requirements"): v.split() for k, v in cfg.items() if k.endswith("_requirements")}


class Sdist(sdist):
    "A source distribution without dates, owners and permissions of whoever builds it."

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):
        "Pack a folder; gzip'd tar files are the only ones that are asked for."
        if format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)
        top, name = Path(root_dir or ".", base_dir), f"{base_name}.tar.gz"
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        with (
            open(name, "wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=int(WHEN)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path in [top, *sorted(top.rglob("*"), key=lambda p: p.as_posix())]:
                entry = tar.gettarinfo(str(path), path.relative_to(top.parent).as_posix())
                entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime, entry.mode = (
                    0,
                    0,
                    "",
                    "",
                    int(WHEN),
                    0o755 if path.is_dir() else 0o644,
                )
                if path.is_file() and not entry.isreg():  # a hard link to a file that is there already
                    entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
                with open(path, "rb") if path.is_file() else open(os.devnull, "rb") as file:
                    tar.addfile(entry, file if path.is_file() else None)
        return name


KERNELS = os.environ.get(
    "SUBWORD_NB_KERNELS", ""
)  # families of processors, such as "x86_64-v3,x86_64-v2"; "none"


class BuildPy(build_py):
    "The modules, and the library of kernels beside them."

    def run(self):
        "Copy modules and the library of kernels, which is compiled in the source folder unless it is that of these sources."
        super().run()
        if KERNELS == "none":
            return
        sys.path.insert(0, str(here))
        from subword_nb.core import native, native_build

        own = here / cfg["lib_path"] / "_kernels"
        built = Path(self.build_lib).resolve() / cfg["lib_path"] / "_kernels"
        targets = KERNELS.split(",") if KERNELS else None
        try:
            # the library in the source folder may be one for other processors
            if targets and not self.editable_mode:
                native_build.build(built, targets=targets)
                return
            if native.library_at(own, native.PACKAGE, trusted=True) is None:
                native_build.build(own, targets=targets)
        except native_build.CannotBuild as e:
            if KERNELS:
                raise
            print(
                f"subword_nb: installed without compiled kernels, bulk work will be slow: {e}",
                file=sys.stderr,
            )
            return
        if not self.editable_mode:
            shutil.copytree(own, built, dirs_exist_ok=True)


COMMANDS = {"sdist": Sdist, "build_py": BuildPy}
if bdist_wheel is not None:

    class BdistWheel(bdist_wheel):
        "A wheel for one system, and for every Python."

        def get_tag(self):
            "The library is called by address, so it does not depend on the version of Python."
            _, _, platform = super().get_tag()
            return ("py3", "none", "any" if KERNELS == "none" else platform)

    COMMANDS["bdist_wheel"] = BdistWheel


class Binary(Distribution):
    "What is installed is for one system."

    def has_ext_modules(self):
        "Are there files of machine code?"
        return KERNELS != "none"


setup(
    cmdclass=COMMANDS,
    distclass=Binary,
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    license="Apache-2.0",
    keywords=cfg["keywords"],
    url=cfg["git_url"],
    packages=find_packages(include=[cfg["lib_path"], cfg["lib_path"] + ".*"]),
    package_dir={
        "": "."
    },  # an editable install is then a path, which a folder left behind by an earlier install cannot hide
    package_data={cfg["lib_path"]: ["*.txt", "*.js", "*.css", "py.typed"]},
    python_requires=">=" + cfg["min_python"],
    install_requires=cfg["requirements"].split(),
    extras_require=extras,
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{cfg['lib_path']}={cfg['lib_path']}._modidx:d"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Intended Audience :: Education",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        *(
            f"Programming Language :: Python :: 3.{minor}"
            for minor in range(int(cfg["min_python"].split(".")[1]), NEWEST_PYTHON + 1)
        ),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    zip_safe=False,
)
