"""A run's folder that somebody has prepared: nothing outside it is written, and nothing in it unpacks without limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import zlib
from pathlib import Path

import pytest

from presage import Kernel, Measurement, PresageError, Status, search
from presage.cli.main import main
from presage.kernels import header as headers
from presage.report import frozen
from presage.store.lock import Lock, owner
from presage.store.store import FILE, LOCK, OWN, Store

SOURCE = "// presage: entry f\nvoid f(void) { }\n"
KERNEL = Kernel(SOURCE, "c", headers.parse(SOURCE, "toy.c"), "toy.c")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    search("softmax", device="recorded:h200", forecaster="none", budget=3, run=folder)
    frozen.write(folder)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A finished search."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Store(tmp_path / "store") as opened:
        opened.append("begun", {}, [KERNEL], measurements=[Measurement("toy", KERNEL, "cpu", Status.TIMEOUT, "slow")])
    return tmp_path / "store"


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("name", OWN)
def test_nothing_is_written_through_a_link(name: str, link: object, run: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (run / name).unlink(missing_ok=True)
    link(victim, run / name)  # type: ignore[operator]
    for ask in (lambda: frozen.write(run), lambda: search("softmax", device="recorded:h200", budget=3, run=run)):
        with pytest.raises(PresageError, match=rf"{name} is not a regular file"):
            ask()
    assert victim.read_text() == "precious"


def test_the_command_says_so_in_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "report.html").unlink()
    (run / "report.html").symlink_to(tmp_path / "nowhere")
    assert main(["report", str(run)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_pipe_for_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    for ask in (lambda: owner(tmp_path / LOCK), lambda: Lock(tmp_path / LOCK), lambda: Store(tmp_path)):
        with pytest.raises(PresageError, match="remove it"):
            ask()


@pytest.mark.parametrize("folder", ["a?b", "50%25", "a#b", "with space", "é"])
def test_a_folder_may_have_any_name(folder: str, tmp_path: Path) -> None:
    with Store(tmp_path / folder) as written:
        written.append("begun", {"x": 1})
    with Store(tmp_path / folder, writes=False) as read:
        assert [event.payload for event in read.events()] == [{"x": 1}]


def changed(folder: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    with contextlib.closing(sqlite3.connect(folder / FILE)) as database, database:
        for statement in statements:
            database.execute(statement, values)


@pytest.mark.parametrize("table", ["kernels SET source", "measurements SET document", "kernels SET reports"])
def test_what_unpacks_to_gigabytes_is_refused(table: str, store: Path) -> None:
    changed(store, f"UPDATE {table} = ?", values=(zlib.compress(b" " * (80 << 20)),))
    with Store(store, writes=False) as opened:
        asked = {"kernels SET source": opened.kernel, "kernels SET reports": opened.reports}
        with pytest.raises(PresageError, match="unpacks to more than"):
            asked.get(table, opened.measurements)(KERNEL.hash)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM kernels; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more (x)",
        "DROP INDEX measurements_of",
    ],
)
def test_a_database_with_more_or_less_in_it_is_refused(statement: str, store: Path) -> None:
    changed(store, statement)
    for writes in (True, False):
        with pytest.raises(PresageError, match="does not have the tables of a run"):
            Store(store, writes=writes)


@pytest.mark.parametrize("payload", ["[]", "1", "", "{", "[" * 100_000, "{},{}", '{"a": 1e999999}x', None])
def test_an_event_that_is_none_is_damage(payload: str | None, store: Path) -> None:
    changed(store, "UPDATE events SET payload = ?", values=(b"blob" if payload is None else payload,))
    with Store(store, writes=False) as opened:
        with pytest.raises(PresageError, match="damaged"):
            list(opened.events())
        with pytest.raises(PresageError, match="damaged"):
            opened.last()


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("UPDATE kernels SET language = ?", "rust"),
        ("UPDATE kernels SET tunables = ?", "[1]"),
        ("UPDATE kernels SET tunables = ?", "{"),
        ("UPDATE kernels SET source = ?", zlib.compress(b"\xff")),
        ("UPDATE measurements SET document = ?", zlib.compress(b"{}")),
        ("UPDATE measurements SET document = ?", "text"),
    ],
)
def test_a_row_that_does_not_hold_what_it_should_is_damage(statement: str, value: object, store: Path) -> None:
    changed(store, statement, values=(value,))
    with Store(store, writes=False) as opened, pytest.raises(PresageError, match="damaged"):
        opened.measurements(KERNEL.hash)
