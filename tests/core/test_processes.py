"""Processors that a process may use: the pages that share work take this number where the caller leaves it open."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from subword_nb.core.processes import cpu_count, group_limits


def said(code, *options, **environment):
    env = {k: v for k, v in os.environ.items() if k != "PYTHON_CPU_COUNT"} | environment
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=900,
    ).stdout.split()


def test_only_one_page_counts_processors(project):
    "So $PYTHON_CPU_COUNT, containers and bound processes are heeded everywhere."
    asks = re.compile(r"\b(os\.cpu_count|sched_getaffinity|process_cpu_count|multiprocessing\.cpu_count)\b")
    pages = {
        p.name for p in (project / "subword_nb").rglob("*.py") if asks.search(p.read_text(encoding="utf-8"))
    }
    assert pages == {
        "processes.py",
        "bench_process.py",
        "bench_rows.py",
    }  # benchmarks bind and name the machine


def test_work_is_shared_by_as_many_threads():
    code = (
        "import threading, concurrent.futures.thread as t\nmade = []\nclass Pool(t.ThreadPoolExecutor):\n"
        "    def __init__(self, n, *a, **k): made.append(n); super().__init__(n, *a, **k)\n"
        "from subword_nb.unigram import em_kernels as u\nimport numpy as np\n"
        "u.ThreadPoolExecutor, u.available, u.SIZES.block = Pool, lambda: True, 1\n"
        "edges = u.make_edges({'ab' * n: 1 for n in range(1, 99)}, ['a', 'b', 'ab'])\n"
        "u.e_step(edges, np.full(3, 1 / 3)); print(*made)"
    )
    assert said(code, PYTHON_CPU_COUNT="4") == ["4"]


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind a process to processors"
)
def test_a_bound_process_counts_what_it_is_bound_to():
    code = (
        "import os; all = sorted(os.sched_getaffinity(0)); os.sched_setaffinity(0, all[:1]); "
        "from subword_nb.core.processes import cpu_count; print(cpu_count())"
    )
    assert said(code) == ["1"]


def test_not_more_than_dask_or_python_count(monkeypatch):
    monkeypatch.delenv("PYTHON_CPU_COUNT", raising=False)
    assert 1 <= cpu_count() <= (os.cpu_count() or 1)
    system = pytest.importorskip("dask.system", reason="the extra 'scale' is not installed")
    assert cpu_count() <= system.CPU_COUNT


@pytest.mark.parametrize(
    "group", ["0::/a/b", "3:cpu:/a/b", "2:cpu,cpuacct:/a/b", "7:cpuacct,cpu:/a/b\n0::/a/b"]
)
@pytest.mark.parametrize(
    "quota, share",
    [
        ("100000", 1.0),
        ("250000", 2.5),
        ("1000", 0.01),
        ("max", None),
        ("-1", None),
        ("", None),
        ("0", None),
        ("1e6", None),
    ],
)
def test_limits_are_found_wherever_they_stand(tmp_path, group, quota, share):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(group + "\n", encoding="ascii")
    for place in ("", "a", "a/b"):
        controls = group.splitlines()[0].split(":")[1]
        folder = Path(tmp_path, "sys/fs/cgroup", controls, place)
        folder.mkdir(parents=True, exist_ok=True)
        files = (
            {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": "100000"}
            if controls
            else {"cpu.max": f"{quota} 100000"}
        )
        for name, text in files.items():
            (folder / name).write_text(text + "\n", encoding="ascii")
        assert {*group_limits(root=tmp_path)} == ({share} if share else set())
        assert cpu_count(root=tmp_path) >= 1
        for name in files:
            (folder / name).unlink()
    assert group_limits(root=tmp_path) == []


def test_files_that_cannot_be_read_are_no_limits(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_bytes(b"0::/\xff\xfe\n\x00:\n")
    (tmp_path / "sys/fs/cgroup/cpu.max").mkdir(parents=True)
    assert group_limits(root=tmp_path) == []
