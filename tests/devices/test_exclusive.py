"""One process at a time has a device's lane, and a killed one gives it back."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from presage import PresageError
from presage.devices import exclusive

HOLDS = """
import sys, time
from presage.devices import exclusive
exclusive.PLACES = (sys.argv[1],)
with exclusive.only('test'):
    print(1, flush=True)
    time.sleep(60)
"""


def test_the_next_waits_until_the_first_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive, "PLACES", (str(tmp_path),))
    environment = {"TMPDIR": "/nowhere", "PYTHONPATH": ":".join(sys.path)}
    first = subprocess.Popen([sys.executable, "-c", HOLDS, tmp_path], stdout=subprocess.PIPE, env=environment)
    assert first.stdout is not None
    assert first.stdout.readline() == b"1\n"
    had = threading.Event()

    def wait() -> None:
        with exclusive.only("test"):
            had.set()

    second = threading.Thread(target=wait)
    second.start()
    assert not had.wait(0.3)
    first.kill()
    first.wait()
    first.stdout.close()
    second.join(30)
    assert had.is_set()


def test_who_waits_is_told_so_and_who_has_it_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement inside of another, as that of the peaks, goes on."""
    monkeypatch.setattr(exclusive, "PLACES", (str(tmp_path),))
    told, had = threading.Event(), threading.Event()

    def wait() -> None:
        with exclusive.only("test", told.set):
            had.set()

    with exclusive.only("test"):
        other = threading.Thread(target=wait)
        other.start()
        assert told.wait(30)
        with exclusive.only("test", pytest.fail):
            pass
        assert not had.is_set()
    other.join(30)
    assert had.is_set()


def test_devices_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive, "PLACES", (str(tmp_path),))
    with exclusive.only("one"), exclusive.only("other"):
        assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive, "PLACES", ())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(PresageError, match="cannot open"), exclusive.only("test"):
        pass
