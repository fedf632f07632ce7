"""A search that rehearses its candidates spends no measurement on one that computes something else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from presage import PresageError, load_recording, search
from presage.devices.emulation.rehearser import Rehearser
from presage.devices.rehearsal import Rehearsal
from presage.store.store import Store


@pytest.fixture
def all_are_wrong_but(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The hashes of those that a rehearser finds right."""
    right: set[str] = set()

    def rehearse(self: Rehearser, problem: object, kernels: list, seconds: float) -> list[Rehearsal]:
        return [Rehearsal("right" if each.hash in right else "wrong", "y[0] is 1, not 2") for each in kernels]

    monkeypatch.setattr(Rehearser, "rehearse", rehearse)
    return right


def test_what_computes_something_else_is_not_measured(all_are_wrong_but: set[str], tmp_path: Path) -> None:
    rows = load_recording("h200").rows("softmax", reports=False)
    all_are_wrong_but |= {row.hash for row in rows if row.status == "ok"}
    search("softmax", rehearse=True, budget=40, run=tmp_path / "run")
    with Store(tmp_path / "run") as store:
        statuses = {event.payload["status"] for event in store.events("measured")}
        broken = {
            hash: why for event in store.events("forecast") for hash, why in event.payload.get("broken", {}).items()
        }
    assert statuses == {"ok"}
    assert "on the CPU it computes something else: y[0] is 1, not 2" in broken.values()
    assert not all_are_wrong_but & {hash for hash, why in broken.items() if "on the CPU" in why}


def test_a_rehearsal_on_the_cpu_before_a_measurement_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="on a CPU they are measured at once"):
        search("softmax", device="recorded:cpu", rehearse=True, budget=3, run=tmp_path / "run")


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
def test_it_goes_on_with_the_same_settings_only(tmp_path: Path) -> None:
    search("vector_add", rehearse=True, budget=2, batch=1, run=tmp_path / "run")
    with pytest.raises(PresageError, match="rehearse was True, is False"):
        search("vector_add", budget=2, batch=1, run=tmp_path / "run")
