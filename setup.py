"""Packaging: everything is read from settings.ini, the one place that is edited by hand."""
import shutil
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
shutil.rmtree(here / "build" / "lib", ignore_errors=True)  # modules of an earlier build would be installed with today's
parser = ConfigParser(delimiters=["="], inline_comment_prefixes=None)
parser.read(here / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]
extras = {k.removesuffix("_requirements"): v.split() for k, v in cfg.items() if k.endswith("_requirements")}

setup(
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
    package_dir={"": "."},  # an editable install is then a path, which a folder left behind by an earlier install cannot hide
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
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3",
        "Topic :: Text Processing :: Linguistic",
    ],
    zip_safe=False,
)
