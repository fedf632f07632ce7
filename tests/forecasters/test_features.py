"""Features: what is worked out from reports and problems, by hand where that can be."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from presage import StaticReport
from presage.forecasters import features
from presage.static.hardware import Hardware, find
from presage.static.report import LaunchReport

GPU = find("h200")
LAUNCH = LaunchReport(
    name="f",
    grid=(64, 1, 1),
    block=(128, 1, 1),
    count=1,
    registers=32,
    spill_bytes=0,
    stack_bytes=0,
    shared_bytes=0,
    code_bytes=1024,
    occupancy=1.0,
    occupancy_limiter="warps",
    blocks_per_sm=16,
    waves=0.5,
    loops=1,
    instructions={"integer": 40},
    instructions_in_loops={"integer": 8},
    options={},
    executed={"instructions": 100.0, "lanes": 3200.0, "global_load": 3.0, "load_sectors": 12.0, "store_sectors": 4.0},
)
WARPS = 64 * 4


def row(*launches: LaunchReport, moved: float, gpu: Hardware = GPU) -> features.Row:
    report = StaticReport(gpu.name, gpu.compile_arch, "ok", "a compiler", launches)
    must = {"must_bytes": math.log2(moved), "must_seconds": math.log2(1e-9), "must_output": math.log2(4096)}
    return features.report_features(report, gpu, must)


def test_loops_that_memory_ends_run_as_often_as_the_bytes_need() -> None:
    """Of 16 sectors a warp, 8 are in such a loop: to move 40 it must run 4 times more."""
    loop = {"instructions": 10.0, "lanes": 320.0, "global_load": 2.0, "load_sectors": 8.0}
    found = row(replace(LAUNCH, unbounded=loop), moved=WARPS * 48 * 32)
    assert found["unbounded"] == pytest.approx(math.log2(5))
    assert found["warp_instructions"] == pytest.approx(math.log2(1 + 100 + 4 * 10))
    assert found["warp_load_sectors"] == pytest.approx(math.log2(1 + 12 + 4 * 8))
    assert row(replace(LAUNCH, unbounded=loop), moved=WARPS * 8 * 32)["unbounded"] == 0
    assert row(LAUNCH, moved=WARPS * 48 * 32)["unbounded"] == 0


@pytest.mark.parametrize("forged", ["many", None, [4], 10**400, -1, math.nan])
def test_options_that_a_module_has_forged_stop_no_forecast(forged: object) -> None:
    found = row(replace(LAUNCH, options={"num_warps": forged, "num_stages": 3}), moved=1e6)
    assert found["num_stages"] == 3
    assert all(math.isfinite(value) for value in found.values())


def test_launches_follow_each_other() -> None:
    once, twice = (row(*[LAUNCH] * times, moved=1e6)["in_a_row_instructions"] for times in (1, 2))
    assert (once, twice) == (pytest.approx(math.log2(101)), pytest.approx(math.log2(201)))
    waves = row(replace(LAUNCH, waves=2.5), moved=1e6)["in_a_row_instructions"]
    assert waves == pytest.approx(math.log2(301))


def test_atomic_additions_crowd_where_there_are_few_places() -> None:
    executed = {**LAUNCH.executed, "atomic": 1.0, "atomic_sectors": 32.0}
    found = row(replace(LAUNCH, executed=executed), moved=1e6)
    assert found["atomics_per_place"] == pytest.approx(math.log2(1 + WARPS * 32 / 1024))
    assert row(LAUNCH, moved=1e6)["atomics_per_place"] == 0


def test_other_gpus_than_the_one_learned_from_execute_machine_code() -> None:
    launch = replace(LAUNCH, machine={"issue": 400.0, "special": 50.0})
    plain, told = (row(each, moved=1e6, gpu=find("a100")) for each in (LAUNCH, launch))
    assert told["busy_issue"] - plain["busy_issue"] == pytest.approx(2, abs=0.02)
    assert told["busy_special"] > plain["busy_special"]
    assert told["lanes_in_use"] == pytest.approx(plain["lanes_in_use"])
    assert row(launch, moved=1e6) == row(LAUNCH, moved=1e6)


@pytest.mark.parametrize(("name", "passes"), [("a100", 1.0), ("a6000", 2.0), ("rtx2080ti", 2.0)])
def test_half_as_many_load_and_store_units_take_twice_as_long(name: str, passes: float) -> None:
    gpu = find(name)
    conflicts = [{"shared_load": 1000.0, "shared_wavefronts": 1000.0 * ways} for ways in (1.0, 2.0)]
    free, twofold = (row(replace(LAUNCH, executed=ran), moved=1e6, gpu=gpu)["busy_shared"] for ran in conflicts)
    seconds = WARPS * 1000 * passes / ((gpu.multiprocessors or 0) * (gpu.boost_hz or 0))
    assert free == pytest.approx(math.log2(1e-12 + seconds) - math.log2(1e-9))
    assert (twofold > free) == (passes == 1.0)
