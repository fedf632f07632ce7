"""A tuning cache together with the kernel's source: what was measured elsewhere can be compiled, forecast and searched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from presage import PresageError, forecast, search
from presage.corpus import pack
from presage.corpus.importing import import_tuning
from presage.devices.recorded import RecordedDevice

SOURCE = """// presage: entry scale
// presage: grid cdiv(n, THREADS * ITEMS)
// presage: block THREADS
{tunes}// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 1000000
extern "C" __global__ void scale(const float *x, float *y, int n) {{
    for (int k = 0; k < ITEMS; k++) {{
        int i = (blockIdx.x * ITEMS + k) * THREADS + threadIdx.x;
        if (i < n) y[i] = 2 * x[i];
    }}
}}
"""
TUNES = "// presage: tune THREADS = 64, 128\n// presage: tune ITEMS = 1, 4\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    results = {
        f"{threads},{items}": {"THREADS": threads, "ITEMS": items, "time": (ms := 0.01 + items / threads), "times": [ms]}
        for threads in (64, 128)
        for items in (1, 4)
    }
    document = {
        "device_name": "NVIDIA GeForce RTX 3090", "kernel_name": "scale", "problem_size": 1000000,
        "tune_params_keys": ["THREADS", "ITEMS"], "cache": results,
    }  # fmt: skip
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(document))
    return path


def imported(cache: Path, tunes: str = TUNES) -> Path:
    source = cache.with_name("scale.cu")
    source.write_text(SOURCE.format(tunes=tunes))
    import_tuning(cache, cache.with_suffix(".parquet"), source=source)
    return cache.with_suffix(".parquet")


@pytest.mark.parametrize("tunes", [TUNES, ""], ids=["with tune lines", "without"])
def test_the_header_says_what_the_problem_moves(cache: Path, tunes: str) -> None:
    device = RecordedDevice.from_text(str(imported(cache, tunes)))
    problem = device.problem("scale")
    (case,) = problem.timed["gpu"]
    assert (case.name, dict(case.dims)) == ("1000000", {"n": 1000000})
    assert problem.bytes(case) == 8_000_000
    assert {kernel.hash for kernel in device.pool("scale")} == set(device.rows("scale"))
    with pytest.raises(PresageError, match="known from a recording alone"):
        problem.oracle(None, case)  # type: ignore[arg-type]


def test_a_tunable_that_was_not_tuned_is_an_error(cache: Path) -> None:
    with pytest.raises(PresageError, match="declares the tunable UNROLL, of which the file has no values"):
        imported(cache, f"{TUNES}// presage: tune UNROLL = 1, 2\n")


def test_what_was_measured_elsewhere_is_compiled_forecast_and_searched(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings")
    path = imported(cache)
    assert pack.add_reports_to(path, None, None, say=lambda line: None) == 4
    assert pack.add_reports_to(path, None, None, say=lambda line: None) == 0
    rows = RecordedDevice.from_text(str(path)).rows("scale").values()
    assert {row.reports[0].target for row in rows} == {"rtx3090"}
    said = forecast("scale", [row.kernel for row in rows], target=f"recorded:{path}")
    assert all(each.forecast for each in said)
    found = search("scale", device=f"recorded:{path}", forecaster="learned", budget=4, run=tmp_path / "run")
    assert found.best.kernel.values == {"THREADS": 128, "ITEMS": 1}


def test_without_a_header_nothing_can_be_compiled(cache: Path) -> None:
    import_tuning(cache, cache.with_suffix(".parquet"))
    with pytest.raises(PresageError, match="import it with --source"):
        pack.add_reports_to(cache.with_suffix(".parquet"), None, None)
