"""What was compiled once is not compiled again, and nothing that happens to what was kept costs more than compiling."""

from __future__ import annotations

import dataclasses
import os
import resource
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from presage.kernels.kernel import from_source
from presage.static import cache, compiling, reporting
from presage.static.hardware import find
from presage.static.launch_request import Job

pytestmark = pytest.mark.usefixtures("nvrtc_library")
SOURCE = """// presage: entry f
// presage: grid n
// presage: block %d
extern "C" __global__ void f(float *x, int n) { x[threadIdx.x] = %s; }
"""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kept"
    monkeypatch.setenv("PRESAGE_CACHE_DIR", str(folder))
    return folder / "reports.db"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests each call of the compiling process had."""
    counts: list[int] = []
    answers = compiling.answers

    def counted(requests, *arguments):  # type: ignore[no-untyped-def]
        counts.append(len(requests))
        return answers(requests, *arguments)

    monkeypatch.setattr(compiling, "answers", counted)
    return counts


def job(value: str = "1.f", target: str = "h200", n: int = 4, threads: int = 32) -> Job:
    return Job(from_source(SOURCE % (threads, value), ".cu", "f.cu"), {"n": n}, (), find(target))


def test_a_kernel_is_compiled_once(database: Path, compiled: list[int]) -> None:
    first = reporting.reports([job(), job("2.f")])
    again = reporting.reports([job("2.f"), job("3.f"), job()])
    assert compiled == [2, 1]
    assert [again[2], again[0]] == first
    assert [report.status for report in again] == ["ok"] * 3


@pytest.mark.parametrize("other", [{"value": "x[n] * 2.f"}, {"target": "a100"}, {"n": 5}, {"threads": 64}])
def test_whatever_a_report_depends_on_makes_it_another(
    database: Path, compiled: list[int], other: dict[str, Any]
) -> None:
    reporting.reports([job()])
    assert reporting.reports([job(**other)]) != reporting.reports([job()])
    assert compiled == [1, 1, 0]


def test_reports_of_other_code_of_ours_are_not_taken(
    database: Path, compiled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting.reports([job()])
    monkeypatch.setattr(cache, "_own_code", lambda: "changed")
    reporting.reports([job()])
    assert compiled == [1, 1]


def test_what_might_be_otherwise_next_time_is_not_kept(database: Path, compiled: list[int]) -> None:
    for _ in range(2):
        broken, too_large = reporting.reports([job("nonsense"), job(threads=2048)])
        assert (broken.status, too_large.status) == ("compile_error", "runtime_error")
    assert compiled == [2, 1]


def test_a_damaged_file_is_made_anew(database: Path, compiled: list[int]) -> None:
    (before,) = reporting.reports([job()])
    database.write_bytes(b"not a database" * 1000)
    assert reporting.reports([job()]) == [before]
    reporting.reports([job("2.f")])
    assert reporting.reports([job("2.f")])
    assert compiled == [1, 1, 1, 0]


def test_a_damaged_entry_is_made_anew(database: Path, compiled: list[int]) -> None:
    (before,) = reporting.reports([job()])
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE reports SET report = substr(report, 1, 50)")
    assert reporting.reports([job()]) == reporting.reports([job()]) == [before]
    assert compiled == [1, 1, 0]


def test_where_nothing_can_be_kept_kernels_are_compiled(
    tmp_path: Path, compiled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PRESAGE_CACHE_DIR", str(tmp_path / "file"))
    assert [reporting.reports([job()])[0].status for _ in range(2)] == ["ok", "ok"]
    os.mkdir(tmp_path / "folder")
    os.mkdir(tmp_path / "folder" / "reports.db")
    monkeypatch.setenv("PRESAGE_CACHE_DIR", str(tmp_path / "folder"))
    assert reporting.reports([job()])[0].status == "ok"
    assert compiled == [1, 1, 1]


def test_on_a_full_disk_what_was_kept_stays(database: Path) -> None:
    (report,) = reporting.reports([job()])
    cache.add({"before": report})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (database.stat().st_size, hard))
    try:
        cache.add({str(i): dataclasses.replace(report, error=os.urandom(1000).hex()) for i in range(100)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert cache.find(["before", "0"]) == {"before": report}


def test_the_oldest_go_when_there_are_too_many(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST", 3)
    (report,) = reporting.reports([job()])
    for i in range(5):
        cache.add({str(i): dataclasses.replace(report, notes=(str(i),))})
    assert [each.notes for each in cache.find(map(str, range(5))).values()] == [("2",), ("3",), ("4",)]


def test_many_may_write_at_once(database: Path) -> None:
    (report,) = reporting.reports([job()])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: cache.add({str(i): report}), range(64)))
    assert len(cache.find(map(str, range(64)))) == 64
