"""The development lock: all that `settings.ini` asks for, at versions it allows, with hashes, for every supported Python."""

import importlib.util
import re
from pathlib import Path

import pytest

packaging = pytest.importorskip("packaging")
from packaging.requirements import Requirement  # noqa: E402
from packaging.utils import canonicalize_name  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "dev" / "requirements.lock"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "linux": dict(sys_platform="linux", platform_system="Linux", os_name="posix", platform_machine="x86_64"),
    "linux on arm": dict(
        sys_platform="linux", platform_system="Linux", os_name="posix", platform_machine="aarch64"
    ),
    "macos": dict(sys_platform="darwin", platform_system="Darwin", os_name="posix", platform_machine="arm64"),
    "windows": dict(sys_platform="win32", platform_system="Windows", os_name="nt", platform_machine="AMD64"),
}


def maker():
    "`dev/lock.py` as a module."
    spec = importlib.util.spec_from_file_location("lock", ROOT / "dev" / "lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins() -> list[tuple[Requirement, list[str]]]:
    "The pins of the lock, with their hashes."
    text = re.sub(r"\\\n", " ", LOCK.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [
        (Requirement(re.split(r"\s+--hash=", line)[0]), re.findall(r"--hash=(\S+)", line)) for line in lines
    ]


def environment(python: str, system: str) -> dict[str, str]:
    "What markers are asked about."
    return {
        "python_version": python,
        "python_full_version": f"{python}.5",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "implementation_version": f"{python}.5",
        **SYSTEMS[system],
    }


def applies(requirement: Requirement, where: dict[str, str]) -> bool:
    "Is a requirement one of this Python and system?"
    return requirement.marker is None or requirement.marker.evaluate({**where, "extra": ""})


def test_every_pin_is_exact_and_has_hashes():
    found = pins()
    assert len(found) > 100
    for pin, hashes in found:
        assert [s.operator for s in pin.specifier] == ["=="] and "*" not in str(pin.specifier), str(pin)
        assert pin.url is None, str(pin)
        assert hashes, f"{pin.name} has no hash"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes), (pin.name, hashes)


def test_it_names_no_index_and_no_machine():
    text = LOCK.read_text(encoding="utf-8")
    assert not re.search(r"https?://|file:|--(extra-)?index-url|--find-links|--trusted-host|-e |@ ", text)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_it_satisfies_settings(python, system):
    where = environment(python, system)
    here = {}
    for pin, _ in pins():
        if applies(pin, where):
            here.setdefault(canonicalize_name(pin.name), []).append(next(iter(pin.specifier)).version)
    twice = {name: versions for name, versions in here.items() if len(versions) > 1}
    assert not twice, twice
    for text in maker().wanted():
        asked = Requirement(text)
        if applies(asked, where):
            assert canonicalize_name(asked.name) in here, (
                f"{asked} is not in the lock; run python dev/lock.py --keep"
            )
            [version] = here[canonicalize_name(asked.name)]
            assert asked.specifier.contains(version, prereleases=True), (
                f"{asked.name} {version} is not {asked.specifier}; run python dev/lock.py --keep"
            )
    assert "distributed" in here  # which dask[distributed] brings


def test_settings_ask_for_what_can_be_locked():
    module = maker()
    options = module.settings()
    assert {f"{e}_requirements" for e in module.EXTRAS} <= set(options)
    names = [Requirement(r).name for r in module.wanted()]
    assert {
        "numpy",
        "nbdev",
        "tokenizers",
        "playwright",
        "atheris",
        "dask",
        "pyarrow",
        "fsspec",
        "huggingface_hub",
    } <= set(names)
    assert PYTHONS[0] == options["min_python"]
