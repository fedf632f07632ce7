"""The store: what is appended is there after a kill; who may write; what damage and a full disk look like."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from presage import Kernel, Measurement, PresageError, StaticReport, Status
from presage.devices.base import CaseTiming
from presage.kernels import header as headers
from presage.store.lock import Lock, owner
from presage.store.store import FILE, LOCK, Store

SOURCE = "// presage: entry f\n#define A 3\nvoid f(void) { }\n"
KERNEL = Kernel(SOURCE, "c", headers.parse(SOURCE, "toy.c"), "toy.c@A=3", {"A": 3})
TIMING = CaseTiming("n=1", (1.5, 2.25, 0.1 + 0.2), (4, 5, 9), 0.25, 7, (1, 2), 2.5)
MEASUREMENT = Measurement(
    "toy", KERNEL, "cpu", Status.OK, cases=(TIMING,), output="hm", facts={"clock": 1.5}, believed="worker",
    not_replayed="it cannot",
)  # fmt: skip
REPORT = StaticReport("h200", "sm_90a", "compile_error", "NVRTC", error="x.cu(3): no")


def test_what_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    with Store(tmp_path / "new" / "run") as store:
        store.append("proposed", {"x": 0.1 + 0.2}, kernels=[KERNEL], reports={KERNEL.hash: [REPORT]})
        store.append("measured", {"y": None}, measurements=[MEASUREMENT])
    with Store(tmp_path / "new" / "run") as store:
        first, second = store.events()
        assert (first.seq, first.kind, first.payload) == (1, "proposed", {"x": 0.1 + 0.2})
        assert store.last() == second
        assert list(store.events("measured")) == [second]
        assert store.kernel(KERNEL.hash) == KERNEL
        assert store.kernel(KERNEL.hash).hash == KERNEL.hash
        assert store.reports(KERNEL.hash) == (REPORT,)
        assert store.measurements(KERNEL.hash) == [MEASUREMENT]
        assert list(store.measured()) == [KERNEL.hash]
        assert store.names() == {KERNEL.hash: "toy.c@A=3"}
        assert len(store) == 2


def test_what_was_kept_when_one_process_was_all_there_was_is_read(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append("measured", {}, kernels=[KERNEL], measurements=[MEASUREMENT])
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database, database:
        ((packed,),) = database.execute("SELECT document FROM measurements")
        document = json.loads(zlib.decompress(packed))
        document["cases"] = [case[:5] for case in document["cases"]]
        del document["believed"], document["not_replayed"]
        database.execute("UPDATE measurements SET document = ?", (zlib.compress(json.dumps(document).encode()),))
    with Store(tmp_path) as store:
        (found,) = store.measurements(KERNEL.hash)
        assert found.cases == (replace(TIMING, processes=(), wait_ns=None),)
        assert (found.believed, found.not_replayed) == (None, "")


def test_a_kernel_s_source_is_kept_once(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for _ in range(3):
            store.append("proposed", {}, kernels=[KERNEL])
        assert len(store.names()) == 1


def test_an_event_and_what_belongs_to_it_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    stranger = Measurement("toy", KERNEL, "cpu", Status.OK, cases=(TIMING,), facts={"object": {1, 2}})
    with Store(tmp_path) as store:
        with pytest.raises(AttributeError):
            store.append("measured", {}, kernels=[KERNEL, None], measurements=[stranger])  # type: ignore[list-item]
        assert list(store.events()) == []
        assert store.names() == {}
        assert store.append("asked", {}).seq == 1


def test_a_second_writer_is_refused_by_name_and_a_reader_is_not(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append("begun", {})
        with pytest.raises(PresageError, match=f"process {os.getpid()} is working on"):
            Store(tmp_path)
        with Store(tmp_path, writes=False) as reader:
            assert [event.kind for event in reader.events()] == ["begun"]
    assert owner(tmp_path / LOCK) is None
    Store(tmp_path).close()


def test_a_run_is_read_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite would write two files beside a database to read it, and fail, as in the folder of another user."""
    with Store(tmp_path) as store:
        store.append("begun", {})
        monkeypatch.setattr(os, "access", lambda *_: False)
        with Store(tmp_path, writes=False) as reader:  # beside the files of who is writing
            assert len(reader) == 1
    with Store(tmp_path, writes=False) as reader:
        assert [event.kind for event in reader.events()] == ["begun"]
        assert sorted(file.name for file in tmp_path.iterdir()) == [FILE, LOCK]


def test_a_killed_process_leaves_nothing_locked_and_what_it_appended(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from presage.store.store import Store\n"
        f"store = Store(Path({str(tmp_path)!r}))\n"
        "for i in range(5): store.append('asked', {'i': i})\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert owner(tmp_path / LOCK) == f"process {child.pid}"
        child.send_signal(signal.SIGKILL)
    with Store(tmp_path) as store:
        assert [event.payload["i"] for event in store.events()] == list(range(5))


def test_a_look_at_the_lock_does_not_keep_a_search_from_beginning(tmp_path: Path) -> None:
    Lock(tmp_path / "lock").close()
    with (tmp_path / "lock").open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)  # as `owner` does for a moment
        end = threading.Timer(0.05, fcntl.flock, (looked_at, fcntl.LOCK_UN))
        end.start()
        Lock(tmp_path / "lock").close()
        end.join()


def test_the_lock_tells_when_its_holder_was_last_alive(tmp_path: Path) -> None:
    Lock(tmp_path / "lock").close()
    os.utime(tmp_path / "lock", (1e9, 1e9))
    held = Lock(tmp_path / "lock")
    assert held.last_alive == 1e9
    before = (tmp_path / "lock").stat().st_mtime
    deadline = time.monotonic() + 20
    while (tmp_path / "lock").stat().st_mtime == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "lock").stat().st_mtime > before
    held.close()


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_database_is_explained(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(
        PresageError, match=r"damaged: .*; restore a copy of it, or name another folder with --run; 'sqlite3"
    ):
        Store(tmp_path)


def test_somebody_else_s_database_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE events (x)")
    other.close()
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(PresageError, match="is a database of another program"):
        Store(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(PresageError, match="has version 99; this presage reads version 1"):
        Store(tmp_path)


def test_a_database_that_was_cut_short_is_explained(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for i in range(2000):
            store.append("asked", {"i": i})
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PresageError, match="damaged"), Store(tmp_path) as store:
        list(store.events())


def test_a_run_whose_process_died_while_making_the_file_begins_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    with Store(tmp_path) as store:
        assert list(store.events()) == []


@pytest.mark.parametrize("begun", [True, False])
def test_reading_where_there_is_no_run_is_explained(tmp_path: Path, begun: bool) -> None:
    if begun:
        (tmp_path / FILE).touch()
    with pytest.raises(PresageError, match="has not begun" if begun else "holds no run"):
        Store(tmp_path, writes=False)


def test_a_full_disk_is_explained_and_nothing_is_lost(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.append("begun", {})
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(PresageError, match="full; what was written before is safe; make room and run the same"):
            store.append("proposed", {"text": "x" * 500_000})
        kept = [event.seq for event in store.events()]
        store._database.execute("PRAGMA max_page_count = 100000")
        store.append("asked", {})
    with Store(tmp_path) as store:
        assert [event.seq for event in store.events()] == [*kept, len(kept) + 1]


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PresageError, match=r"cannot write to .*/file"):
        Store(tmp_path / "file")
