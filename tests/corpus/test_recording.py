"""What a recording keeps, and how a device replays it."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from presage import Effort, PresageError, Recording, Status
from presage.corpus.check import card, check
from presage.devices import recorded, recording
from presage.devices import registry as devices
from presage.devices.base import speedup
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row, open_recording
from presage.problems import registry


def quiet(doing: str, share: float) -> None:
    return


def test_rows_come_back_as_they_were_written(small: Recording, rows: list[Row]) -> None:
    read = small.rows()
    assert {(row.problem, row.hash): row for row in read} == {(row.problem, row.hash): row for row in rows}
    assert read[0].reports[0].launches[0].instructions == {"fp32": 7, "other": 1}


def test_one_problem_is_read_alone(small: Recording) -> None:
    assert {row.problem for row in small.rows("gelu")} == {"gelu"}
    assert small.rows("gelu", reports=False)[0].reports == ()
    assert small.counts == {"gelu": 25, "softmax": len(small.rows("softmax"))}


def test_several_problems_are_read_at_once(small: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, read, asked = {name: small.rows(name) for name in small.counts}, recording.read_parquet, list[Path]()
    monkeypatch.setattr(recording, "read_parquet", lambda path, columns: asked.append(path) or read(path, columns))
    assert dict(small.each(["softmax", "nosuch", "gelu"])) == alone | {"nosuch": []}
    device = RecordedDevice(small)
    assert {name: list(rows.values()) for name, rows in device.each(list(alone))} == alone
    assert {name: list(device.rows(name).values()) for name in alone} == alone
    assert asked == [small.path] * 2


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_file_cut_short_is_named(small: Recording, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(small.path.read_bytes()[:keep])
    with pytest.raises(PresageError, match=r"cut\.parquet is no Parquet file, or was cut short"):
        open_recording(path)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="there is no recording"):
        open_recording(tmp_path / "nothing.parquet")
    path = tmp_path / "other.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), path)
    with pytest.raises(PresageError, match="'presage corpus import' makes one"):
        open_recording(path)


FORGED = {
    "no blocks": {"grid": (0, 1, 1)},
    "fewer dimensions": {"block": ()},
    "less than no launch": {"count": -3},
    "no number": {"waves": math.nan},
    "less than nothing": {"executed": {"instructions": -5.0}},
    "without end": {"unbounded": {"instructions": math.inf}},
    "no options": {"options": []},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_launch_that_cannot_be_is_damage(forged: Mapping[str, object], rows: list[Row], tmp_path: Path) -> None:
    row = next(row for row in rows if row.reports)
    launch = copy.copy(row.reports[0].launches[0])
    for name, value in forged.items():
        object.__setattr__(launch, name, value)  # as another program could write it
    written = recording.write(
        tmp_path / "forged.parquet", [replace(row, reports=(replace(row.reports[0], launches=(launch,)),))], {}
    )
    with pytest.raises(PresageError, match="holds a row that cannot be read"):
        written.rows()


@pytest.mark.parametrize("ns", [1e-300, 1e300])
def test_a_time_that_cannot_be_is_damage(ns: float, rows: list[Row], tmp_path: Path) -> None:
    row = next(row for row in rows if row.cases)
    cases = tuple(replace(case, samples_ns=(ns,)) for case in row.cases)
    written = recording.write(tmp_path / "forged.parquet", [replace(row, cases=cases)], {})
    with pytest.raises(PresageError, match="holds a row that cannot be read"):
        written.rows()


def test_a_tunable_that_cannot_be_is_damage(rows: list[Row], tmp_path: Path) -> None:
    forged: Any = {"A": [1]}
    written = recording.write(tmp_path / "forged.parquet", [replace(rows[0], values=forged)], {})
    with pytest.raises(PresageError, match="holds a row that cannot be read"):
        written.rows()


def test_a_check_names_columns_that_are_not_as_they_should_be(small: Recording, tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(small.path)
    table = table.append_column("odd", pyarrow.array([1] * len(table)))
    at = table.column_names.index("speedup")
    table = table.set_column(at, "speedup", table["speedup"].cast(pyarrow.float32()))
    pyarrow.parquet.write_table(table, tmp_path / "other.parquet")
    problems = check(open_recording(tmp_path / "other.parquet"), hashes=False)["problems"]
    assert problems[:2] == ["the column odd is unknown", "the column speedup holds float, not double"]


def test_a_recording_of_an_earlier_version_may_lack_newer_fields_of_reports(small: Recording, tmp_path: Path) -> None:
    def without(kind: pyarrow.DataType, name: str) -> pyarrow.DataType:
        if pyarrow.types.is_list(kind):
            return pyarrow.list_(without(kind.value_type, name))
        if pyarrow.types.is_struct(kind):
            return pyarrow.struct([(f.name, without(f.type, name)) for f in kind.fields if f.name != name])
        return kind

    table = pyarrow.parquet.read_table(small.path)
    older = pyarrow.schema([(f.name, without(f.type, "unbounded")) for f in table.schema], table.schema.metadata)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table.to_pylist(), older), tmp_path / "older.parquet")
    problems = check(open_recording(tmp_path / "older.parquet"), hashes=False)["problems"]
    assert not [problem for problem in problems if "column" in problem]


def test_a_check_names_kernels_with_other_cases_than_their_anchors(small: Recording, tmp_path: Path) -> None:
    changed = small.rows()
    anchor, at, *_ = (i for i, row in enumerate(changed) if row.cases and row.problem == "gelu")
    changed[at] = replace(changed[at], cases=changed[at].cases[:1], anchor=changed[anchor].hash)
    found = check(recording.write(tmp_path / "changed.parquet", changed, small.facts), hashes=False)
    assert f"gelu {changed[at].hash} has other cases than its anchor" in found["problems"]


def test_operations_without_a_kernel_that_works_do_not_count_as_searched(small: Recording, tmp_path: Path) -> None:
    known = small.rows()
    failed = [replace(row, problem="other", status=Status.TIMEOUT, reason="late", cases=()) for row in known[:9]]
    of_torch = [replace(row, problem="third", language="torch") for row in known if row.problem == "gelu"]
    for rows in (known, [*known, *failed, *of_torch]):
        found = recording.write(tmp_path / f"{len(rows)}.parquet", rows, small.facts)
        assert card(found, rows)["near_best"] == card(small, known)["near_best"]
    assert card(found, failed)["near_best"] is None


def test_a_recording_that_cannot_be_written_leaves_the_old_one(
    small: Recording, rows: list[Row], tmp_path: Path
) -> None:
    path = tmp_path / "kept.parquet"
    path.write_bytes(small.path.read_bytes())
    with pytest.raises(AttributeError):
        recording.write(path, [*rows, "no row"], {})  # type: ignore[list-item]
    assert [file.name for file in tmp_path.iterdir()] == ["kept.parquet"]
    assert open_recording(path).counts == small.counts


def test_the_device_knows_its_pool_and_replays_it(device: RecordedDevice) -> None:
    problem = registry.get("gelu")
    pool = device.pool("gelu")
    assert len(pool) == 25
    assert all(kernel.hash == registry.find_kernel(problem, kernel.name).hash for kernel in pool)
    measured = device.measure(problem, pool, Effort(), quiet)
    statuses = {m.kernel.hash: m.status for m in measured}
    assert statuses == {row.hash: row.status for row in device.rows("gelu").values()}
    assert {m.device for m in measured} == {"recorded:small"}


def test_two_measurements_differ_by_the_recorded_noise(device: RecordedDevice, small: Recording) -> None:
    problem = registry.get("gelu")
    kernel = device.pool("gelu")[0]
    first, second = (device.measure(problem, [kernel], Effort(), quiet)[0] for _ in range(2))
    again = RecordedDevice(small).measure(problem, [kernel], Effort(), quiet)[0]
    other = RecordedDevice(small, seed=1).measure(problem, [kernel], Effort(), quiet)[0]
    assert first.cases[0].samples_ns == again.cases[0].samples_ns
    assert first.cases[0].samples_ns != second.cases[0].samples_ns
    assert first.cases[0].samples_ns != other.cases[0].samples_ns
    assert np.isclose(first.cases[0].median.value, second.cases[0].median.value, rtol=0.05)
    recorded_samples = next(row for row in small.rows("gelu") if row.hash == kernel.hash).cases[0].samples_ns
    assert np.isin(first.cases[0].samples_ns, recorded_samples).all()


def test_runs_that_differed_shift_what_is_replayed(small: Recording) -> None:
    disturbed = RecordedDevice(Recording(small.path, {**small.facts, "between_runs": [-0.5, -0.01, 0.01, 0.02, 0.5]}))
    assert disturbed._shifts == [-0.01, 0.01, 0.02, 0.5]
    shifted = RecordedDevice(Recording(small.path, {**small.facts, "between_runs": [0.5]}))
    problem, kernel = registry.get("gelu"), shifted.pool("gelu")[0]
    plain = RecordedDevice(small).measure(problem, [kernel], Effort(), quiet)[0]
    ratio = shifted.measure(problem, [kernel], Effort(), quiet)[0].cases[0].median.value / plain.cases[0].median.value
    assert ratio == pytest.approx(np.exp(0.5), rel=0.05)


def test_speedups_of_recorded_kernels_have_an_interval(device: RecordedDevice) -> None:
    problem = registry.get("gelu")
    ok = [kernel for kernel in device.pool("gelu") if device.rows("gelu")[kernel.hash].status is Status.OK]
    slow, quick = device.measure(problem, ok[:2], Effort(), quiet)
    ratio = speedup(slow, quick)
    assert ratio is not None
    assert ratio.low < ratio.value < ratio.high


def test_a_kernel_that_was_not_recorded_is_refused(device: RecordedDevice) -> None:
    problem = registry.get("gelu")
    eager = registry.find_kernel(problem, "eager.py")
    with pytest.raises(PresageError, match=r"eager\.py is not among the 25 kernels of gelu .* ask a live device"):
        device.measure(problem, [eager], Effort(), quiet)
    with pytest.raises(PresageError, match="has no recorded kernel of 'matmul'; it has: gelu, softmax"):
        device.pool("matmul")


def test_recordings_are_found_by_name_or_path(small: Recording) -> None:
    assert devices.get(f"recorded:{small.path}").name == "recorded:small"
    with pytest.raises(PresageError, match="there is no recording 'h9'"):
        devices.get("recorded:h9")
    for name in recorded.packaged():
        assert f"recorded:{name}" in devices.names()
        assert sum(recorded.find(name).counts.values()) > 500
