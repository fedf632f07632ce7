"""Score how the forecaster `learned`, which was trained on an H200 alone, ranks configurations on other GPUs.

    python benchmarks/other_gpus.py SPACES [--sample 150] [--only NAME,...] [--search SEEDS] [--to FOLDER]

SPACES is a folder of tuning spaces (autotune_spaces), each with the measurements of all configurations and the kernel's
source. A sample of each space, drawn with a fixed seed, is compiled for the measured GPU and forecast. The forecaster
sees only the anchor's time. Compiled results are kept in FOLDER and in the report cache: run the command again to
resume. With --search, `presage search` with the surrogate searches each sample instead, with and without the reports.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow

from presage import Recording, evaluate, search
from presage.corpus import pack
from presage.corpus.importing import import_space
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row, open_recording
from presage.problems import static
from presage.store.store import Store

_SEED = 0
_SHARE = "0.02"
_AT_ONCE = 16
BUDGETS = (10, 25, 50, 100)
_FINALS = 4
"""Measurements that a search reserves for its finals: three finalists and the anchor."""


@dataclass(frozen=True)
class Source:
    """The parts that a published source lacks for a static report: its launch, its arrays, and constants."""

    header: str
    defines: str = ""
    without: str = ""
    """A line to remove from the source."""
    only: tuple[str, int] | None = None
    """A tunable and the value of it to which the published source applies; None if it applies to all configurations."""


_IMAGE = """entry convolution_kernel
grid cdiv(4096, block_size_x * tile_size_x), cdiv(4096, block_size_y * tile_size_y)
block block_size_x, block_size_y
input image = float32[4110, 4110]
input weights = float32[15, 15]
output result = float32[4096, 4096]"""
SOURCES = {
    "convolution_milo": Source(_IMAGE, only=("use_shmem", 1)),
    "kt_convolution": Source(_IMAGE),
    "dedispersion_milo": Source(
        """entry dedispersion_kernel
grid cdiv(25000, block_size_x * tile_size_x), cdiv(2048, block_size_y * tile_size_y)
block block_size_x, block_size_y
input samples = uint8[1536, 25650]
input shifts = float32[1536]
output result = float32[2048, 25000]""",
        "#define nr_dms 2048\n#define nr_samples 25000\n#define nr_channels 1536\n"
        "#define nr_samples_per_channel 25650\n"
        "#define dm_first 0.0f\n#define dm_step 0.02f\n",
        '#include "dedispersion.h"',
    ),
    "kt_pnpoly": Source(
        """entry cn_pnpoly
grid cdiv(n, block_size_x * tile_size)
block block_size_x
input points = float32[n, 2]
output inside = int32[n]
case n = 20000000"""
    ),
}
SPACES = (
    "convolution_milo__A100",
    "convolution_milo__A6000",
    "dedispersion_milo__A100",
    "dedispersion_milo__A4000",
    "kt_convolution__RTX_2080_Ti",
    "kt_pnpoly__RTX_3090",
)


def written(kernel: str, spaces: Path, to: Path) -> Path:
    """Write the published source with a header to a file, and return the path."""
    with pyarrow.input_stream(spaces / "sources.jsonl.zst", compression="zstd") as stream:
        published = [json.loads(line) for line in stream.read().splitlines()]
    text = next(one["text"] for one in published if one["kernel"] == kernel and one["path"].endswith(".cu"))
    source = SOURCES[kernel]
    entry = source.header.split()[1]
    text = text.replace(source.without, "").replace(f"__global__ void {entry}", f'extern "C" __global__ void {entry}')
    path = to / f"{kernel}.cu"
    header = "".join(f"// presage: {line}\n" for line in source.header.splitlines())
    path.write_text(header + source.defines + text)
    return path


def sampled(name: str, spaces: Path, to: Path, count: int) -> Recording:
    """Return a recording of a sample of a space, with the anchor and static reports. It is cached in `to`."""
    path = to / f"{name}-{count}.parquet"
    if not path.exists():
        kernel = name.partition("__")[0]
        whole = import_space(spaces / f"{name}.parquet", to / "whole.parquet", source=written(kernel, spaces, to))
        described = json.loads((spaces / "spaces.json").read_text())
        product = next(one["device_name"] for one in described if one["space"] == name)
        rows = [row for row in whole.rows() if is_of_source(row, SOURCES[kernel])]
        random.Random(_SEED).shuffle(rows)
        anchor = next(row for row in rows if row.cases)
        rows = [_relative(row, anchor) for row in rows[: max(count, rows.index(anchor) + 1)]]
        recording.write(path, rows, {**whole.facts, "name": name, "hardware": product})
    found = open_recording(path)
    compile_some(RecordedDevice(found), [row for row in found.rows() if not row.reports])
    pack.add_reports_to(path, None, None, 1, say=lambda line: None)
    return open_recording(path)


def compile_some(device: RecordedDevice, rows: list[Row]) -> None:
    """Compile the kernels in small batches, so that little work is lost if the program is stopped."""
    assert device.hardware is not None
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        problem = device.problem(some[0].problem)
        static.of_several([(problem, row.kernel, problem.timed["gpu"]) for row in some], device.hardware, processes=1)
        print(f"{device.recording.name}: {start + len(some)} of {len(rows)} compiled", file=sys.stderr, flush=True)


def _relative(row: Row, anchor: Row) -> Row:
    speedup = recording.speedup_over(anchor.cases, row.cases) if row.cases else None
    return replace(row, anchor=anchor.hash, speedup=speedup)


def is_of_source(row: Row, source: Source) -> bool:
    return source.only is None or row.values[source.only[0]] == source.only[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spaces", type=Path)
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--only", default=",".join(SPACES))
    parser.add_argument("--forecaster", default="learned")
    parser.add_argument("--search", type=int, default=0, metavar="SEEDS")
    parser.add_argument("--to", type=Path, default=Path("build/other_gpus"))
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    if arguments.search:
        return compare_searches(arguments)
    print("| space | configurations | Spearman | top 2 % | as many at random | failures known | 90 % interval |")
    print("|---|---|---|---|---|---|---|")
    rankings = []
    for name in arguments.only.split(","):
        found = sampled(name, arguments.spaces, arguments.to, arguments.sample)
        row, spearman = line(found, arguments.forecaster)
        rankings.append(spearman)
        print(row, flush=True)
    print(f"mean Spearman: {np.mean(rankings):.3f}")
    return 0


def compare_searches(arguments: argparse.Namespace) -> int:
    print(f"| space | reports | {' | '.join(map(str, BUDGETS))} |")
    print("|---" * (len(BUDGETS) + 2) + "|")
    for name in arguments.only.split(","):
        found = sampled(name, arguments.spaces, arguments.to, arguments.sample)
        bare = [replace(row, reports=()) for row in found.rows()]
        without = recording.write(arguments.to / f"{name}-without.parquet", bare, found.facts)
        for what, each in (("without", without), ("with", found)):
            off = np.median([searched(each, seed) for seed in range(arguments.search)], axis=0)
            print(f"| {name} | {what} | {' | '.join(f'{one:.3f}' for one in off)} |", flush=True)
    return 0


def searched(found: Recording, seed: int) -> list[float]:
    """Search a sample. For each of BUDGETS, return the best time after so many measurements over the sample's best."""
    times = {row.hash: row.total_ns if row.cases else math.inf for row in found.rows(reports=False)}
    device, most = f"recorded:{found.path}", BUDGETS[-1] + _FINALS
    with tempfile.TemporaryDirectory() as folder:
        search(next(iter(found.counts)), device=device, forecaster="surrogate", seed=seed, budget=most, run=folder)
        with Store(Path(folder), writes=False) as store:
            order = [times[event.payload["kernel"]] for event in store.events("measured")]
    return [min(order[:budget]) / min(times.values()) for budget in BUDGETS]


def line(found: Recording, forecaster: str) -> tuple[str, float]:
    numbers = evaluate(forecaster, recording=str(found.path), split="all").numbers
    rows = found.rows(reports=False)
    failed = sum(not row.cases for row in rows)
    known = f"{numbers['failure_auroc'].value:.2f} of {failed}" if failed else "none failed"
    cells = (
        found.name,
        str(len(rows)),
        f"{numbers['spearman'].value:.3f}",
        f"{1 + numbers[f'recovery {_SHARE}'].value:.3f}",
        f"{1 + numbers[f'recovery_random {_SHARE}'].value:.3f}",
        known,
        f"{numbers['coverage_90'].value:.2f}",
    )
    return f"| {' | '.join(cells)} |", numbers["spearman"].value


if __name__ == "__main__":
    raise SystemExit(main())
