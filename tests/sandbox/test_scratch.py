"""Scratch folders: whenever a signal ends us, none is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from presage.sandbox import scratch


def test_a_folder_whose_making_is_interrupted_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    make = os.mkdir

    def interrupted(path: str, mode: int) -> None:
        make(path, mode)
        raise KeyboardInterrupt

    monkeypatch.setattr(scratch.os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scratch.make()
    assert len(list(tmp_path.iterdir())) == 1
    scratch._clear_up()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_removal_is_interrupted_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    folder = scratch.make()
    Path(folder, "file").write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr(scratch.os, "unlink", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            scratch.remove(folder)
    scratch._clear_up()
    assert list(tmp_path.iterdir()) == []
