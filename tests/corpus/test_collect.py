"""Collecting: it can be stopped anywhere, goes on, and measures nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from presage import Effort, Kernel, Measurement, PresageError, Problem, Recording, Status
from presage.corpus import collect, journal, pack
from presage.corpus.check import check
from presage.devices.recorded import RecordedDevice
from presage.problems import registry

GELU, SOFTMAX = registry.get("gelu"), registry.get("softmax")


class Replay(RecordedDevice):
    """Replays the pool only; counts what is asked, and can fail on request."""

    languages = ("c",)

    def __init__(
        self,
        recording: Recording,
        stop_after: int | None = None,
        faults: int = 0,
        fault: Status = Status.DEVICE_FAULT,
    ) -> None:
        super().__init__(recording)
        self.asked: Counter[str] = Counter()
        self._stop_after, self._faults, self._fault = stop_after, faults, fault

    def measure_each(
        self, work: Iterable[tuple[Problem, Kernel]], effort: Effort, foreign: bool = True
    ) -> Iterator[Measurement]:
        for problem, kernel in work:
            if self._stop_after is not None and self.asked.total() >= self._stop_after:
                raise KeyboardInterrupt
            self.asked[f"{problem.name} {kernel.hash}"] += 1
            if self._faults:
                self._faults -= 1
                yield Measurement(problem.name, kernel, self.name, self._fault, "on request")
            else:
                yield self.measure(problem, [kernel], effort, lambda doing, share: None)[0]


def run(device: Replay, folder: Path, **options: Any) -> int:
    settings = {"per_problem": 15, "chunk": 6, "repeat": 0.0, "say": lambda line: None, **options}
    return collect.collect(device, folder, [GELU, SOFTMAX], Effort(), **settings)


@pytest.fixture(autouse=True)
def _only_what_is_recorded(monkeypatch: pytest.MonkeyPatch, small: Recording) -> None:
    """The plan is that of the catalogue, of which the small recording has only a part."""
    known = {(row.problem, row.hash) for row in small.rows(reports=False)}
    every = collect.plan

    def recorded_plan(problem: Problem, device: RecordedDevice, *state: Any) -> Iterator[collect.PlannedKernel]:
        return (each for each in every(problem, device, *state) if (problem.name, each.kernel.hash) in known)

    monkeypatch.setattr(collect, "plan", recorded_plan)


def test_a_plan_s_beginning_has_every_family(small: Recording) -> None:
    plan = list(collect.plan(SOFTMAX, Replay(small)))
    families = {Path(each.family.name).name for each in plan}
    assert Path(plan[0].family.name).name == "naive.c"
    assert {Path(each.family.name).name for each in plan[: len(families)]} == families
    assert len({each.kernel.hash for each in plan}) == len(plan)
    assert [each.kernel.hash for each in plan] == [each.kernel.hash for each in collect.plan(SOFTMAX, Replay(small))]


def test_it_goes_on_where_it_was_stopped(small: Recording, tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    for stop in (0, 1, 5, 11, None):
        device = Replay(small, stop_after=stop)
        try:
            run(device, tmp_path)
        except KeyboardInterrupt:
            assert stop is not None
        total += device.asked
    assert total.total() == 30
    assert max(total.values()) == 1
    last = Replay(small)
    assert run(last, tmp_path) == 0
    assert run(last, tmp_path, per_problem=17) == 4
    assert run(last, tmp_path, again=True) == 30


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_line_cut_short_costs_only_itself(small: Recording, tmp_path: Path, cut: int) -> None:
    run(Replay(small), tmp_path)
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-cut])
    state = journal.read(tmp_path)
    assert state.damaged == (cut > 1)
    assert len(state.kernels) == 30 - (cut > 1)
    device = Replay(small)
    assert run(device, tmp_path) == (cut > 1)


def test_garbage_in_a_journal_is_left_out(small: Recording, tmp_path: Path) -> None:
    run(Replay(small), tmp_path)
    (tmp_path / "0.jsonl").write_bytes(b'\x00\xff{]\n[1]\n{"kind": "kernel"}\n{"kind": "family"}\n')
    state = journal.read(tmp_path)
    assert (len(state.kernels), state.damaged) == (30, 4)


def test_a_full_disk_is_said_and_nothing_is_lost(
    small: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = journal.Journal.write
    lines = 0

    def fill_up(self: journal.Journal, record: Any) -> None:
        nonlocal lines
        lines += 1
        if lines > 12:
            self._file.close()
            self._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
        written(self, record)

    monkeypatch.setattr(journal.Journal, "write", fill_up)
    with pytest.raises(PresageError, match="what was written before is safe; make room"):
        run(Replay(small), tmp_path)
    monkeypatch.undo()
    assert len(journal.read(tmp_path).kernels) > 5


def test_a_fault_of_the_machine_is_tried_again_and_not_kept(small: Recording, tmp_path: Path) -> None:
    run(Replay(small, faults=3), tmp_path)
    assert sum(each.status is None for each in journal.read(tmp_path).kernels.values()) == 3
    assert pack.summary(pack.pack(tmp_path, tmp_path / "early.parquet", "early"))["left_out"] == 3
    device = Replay(small)
    assert run(device, tmp_path) == 3
    assert all(each.status is not None for each in journal.read(tmp_path).kernels.values())


def test_time_is_kept(small: Recording, tmp_path: Path) -> None:
    assert run(Replay(small), tmp_path, seconds=1e-9) <= 1


def test_some_are_measured_again_by_another_run(small: Recording, tmp_path: Path) -> None:
    run(Replay(small), tmp_path)
    again = run(Replay(small), tmp_path, repeat=0.4)
    ok = sum(each.status is Status.OK for each in journal.read(tmp_path).kernels.values())
    assert 0 < again < ok
    assert run(Replay(small), tmp_path, repeat=0.4) == 0
    found = pack.pack(tmp_path, tmp_path / "packed.parquet", "packed")
    assert len(found.facts["between_runs"]) == again
    assert sum(bool(row.repeat_ns) for row in found.rows()) == again
    assert check(found)["noise"]["repeated"] == again


def test_what_is_found_wrong_in_a_process_of_its_own_is_wrong(small: Recording, tmp_path: Path) -> None:
    run(Replay(small), tmp_path)
    before = Counter(each.status for each in journal.read(tmp_path).kernels.values())
    run(Replay(small, faults=1, fault=Status.WRONG_RESULT), tmp_path, repeat=0.4)
    after = Counter(each.status for each in journal.read(tmp_path).kernels.values())
    assert after[Status.WRONG_RESULT] == before[Status.WRONG_RESULT] + 1
    assert after[Status.OK] == before[Status.OK] - 1
    found = pack.pack(tmp_path, tmp_path / "packed.parquet", "packed")
    assert not [problem for problem in check(found)["problems"] if not problem.endswith("is empty")]


def test_what_is_packed_keeps_its_promises(small: Recording, tmp_path: Path) -> None:
    run(Replay(small), tmp_path, per_problem=1000)
    found = pack.pack(tmp_path, tmp_path / "packed.parquet", "packed", "a test")
    card = check(found)
    assert [each for each in card["problems"] if "split" not in each] == []
    assert card["kernels"] == sum(small.counts.values())
    assert card["operations"] == 2
    assert card["statuses"] == Counter(str(row.status) for row in small.rows())
    naive = next(row for row in found.rows("gelu") if row.family == "naive.c")
    for row in found.rows("gelu"):
        assert row.anchor == naive.hash
        assert (row.speedup is None) == (row.status is not Status.OK)
        if row.speedup:
            assert row.speedup.value == pytest.approx(naive.total_ns / row.total_ns, rel=1e-6)
            assert row.speedup.low <= row.speedup.value <= row.speedup.high


def test_a_family_edited_later_does_not_change_what_was_measured(small: Recording, tmp_path: Path) -> None:
    run(Replay(small), tmp_path)
    (file,) = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "family":
            line["source"] = line["source"].replace("for", "while")
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(PresageError, match="was measured"):
        pack.pack(tmp_path, tmp_path / "packed.parquet", "packed")


def test_nothing_collected_is_said(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="'presage corpus collect --into"):
        pack.pack(tmp_path, tmp_path / "packed.parquet", "packed")
    with pytest.raises(PresageError, match="there is no problem or room 'nosuch'"):
        collect.find_problems(["gelu", "nosuch"])
    assert {problem.name for problem in collect.find_problems(["reductions"])} >= {"sum", "argmax"}
