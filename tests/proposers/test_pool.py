"""The `pool` proposer: unseen kernels of a recorded device, near the parent and from anywhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from still_device import StillDevice, parent_of

from presage import Ground, Measured, PresageError, Status
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row
from presage.kernels.kernel import from_source
from presage.proposers import registry


def test_every_kernel_is_proposed_once_and_then_none(pool_ground: Ground) -> None:
    proposer = registry.get("pool", pool_ground)
    parent, known, rng = parent_of(pool_ground.anchor.kernel), set(), random.Random(0)
    pool = {kernel.hash for kernel in pool_ground.device.pool("softmax")}
    while proposals := proposer.propose(parent, [], 5, known, rng):
        hashes = {proposal.kernel.hash for proposal in proposals}
        assert len(hashes) == len(proposals) <= 5
        assert not hashes & known
        known |= hashes
    assert known == pool - {pool_ground.anchor.kernel.hash} or known == pool
    assert proposer.propose(parent, [], 5, pool, rng) == []


def test_proposals_depend_only_on_chance_and_what_is_known(pool_ground: Ground) -> None:
    parent = parent_of(pool_ground.anchor.kernel)
    one, other = (registry.get("pool", pool_ground) for _ in range(2))
    one.propose(parent, [], 8, set(), random.Random(5))
    assert one.propose(parent, [], 8, {"x"}, random.Random(1)) == other.propose(parent, [], 8, {"x"}, random.Random(1))


def grid_ground(tmp_path: Path, side: int = 40) -> Ground:
    rows = [
        Row("grid", "imported", "", family, "cuda", f"{family}{x:03}{y:03}", f"// {x} {y}", {"X": x, "Y": y, "Z": "on"},
            Status.RUNTIME_ERROR, "it is slow")
        for family in ("a", "b") for x in range(side) for y in range(side)
    ]  # fmt: skip
    device = RecordedDevice(recording.write(tmp_path / "grid.parquet", rows, {"name": "grid", "kind": "gpu"}))
    return Ground(device.problem("grid"), device, Measured(device.rows("grid")["a020020"].kernel))


def test_half_are_neighbours_of_the_parent(tmp_path: Path) -> None:
    ground = grid_ground(tmp_path)
    proposals = registry.get("pool", ground).propose(parent_of(ground.anchor.kernel), [], 20, set(), random.Random(0))
    away = [abs(p.kernel.values["X"] - 20) + abs(p.kernel.values["Y"] - 20) for p in proposals]
    near = [p.why == "near its parent" for p in proposals]
    assert sum(near) == 10
    assert all(p.kernel.hash.startswith("a") for p in proposals[:10])
    assert max(away[:10]) <= 5
    assert max(away[10:]) > 10
    assert {p.kernel.hash[0] for p in proposals} == {"a", "b"}


def test_only_what_is_proposed_is_made_into_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = grid_ground(tmp_path)
    proposer = registry.get("pool", ground)
    made = []
    real = Row.kernel.fget
    monkeypatch.setattr(Row, "kernel", property(lambda row: (made.append(row.hash), real(row))[1]))
    assert len(proposer.propose(parent_of(ground.anchor.kernel), [], 6, set(), random.Random(0))) == 6
    assert len(made) == 6


def test_a_parent_from_elsewhere_has_no_neighbours(pool_ground: Ground) -> None:
    stranger = from_source("// presage: entry f\nvoid f(void) {}", ".c", "mine.c")
    proposals = registry.get("pool", pool_ground).propose(parent_of(stranger), [], 4, set(), random.Random(0))
    assert {proposal.why for proposal in proposals} == {"from anywhere"}
    assert len(proposals) == 4


def test_the_pool_needs_a_recorded_device(pool_ground: Ground) -> None:
    with pytest.raises(PresageError, match="needs a recorded device"):
        registry.get("pool", Ground(pool_ground.problem, StillDevice(), pool_ground.anchor))


def test_proposers_have_names(pool_ground: Ground) -> None:
    assert {"knobs", "llm", "pool"} <= {*registry.names()}
    with pytest.raises(PresageError, match=r"no proposer 'pol'; there are: .*knobs, .*llm, .*pool"):
        registry.get("pol", pool_ground)
    with pytest.raises(PresageError, match="pool has no setting 'models'; it has: none"):
        registry.get("pool", pool_ground, models={})
