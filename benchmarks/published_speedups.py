"""Compare CUDA-L1's published speedups with our measurements of the same modules, as foreign kernels on an H200.

    python benchmarks/published_speedups.py DATA [--recording h200_modules] [--hardware "NVIDIA H100"]

DATA holds `pairs.parquet`. Both speedups are over PyTorch's eager reference. The published speedups were measured on
other GPUs; the default is the GPU that is most similar to an H200.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import presage
from presage import Status
from presage.core import scoring

WITHIN = (1.1, 1.25, 1.5, 2.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--recording", default="h200_modules")
    parser.add_argument("--hardware", default="NVIDIA H100")
    arguments = parser.parse_args()
    published = {
        (f"level{pair['level']}_{pair['problem_id']}", f"{pair['candidate_code_id']}.py"): float(pair["speedup"])
        for pair in pq.read_table(arguments.data / "pairs.parquet").to_pylist()
        if pair["hardware"] == arguments.hardware and pair["reference_kind"] == "torch_eager"
    }
    rows = {(row.problem, row.family): row for row in presage.load_recording(arguments.recording).rows()}
    both = [(said, rows[key]) for key, said in published.items() if key in rows]
    works = [(said, row) for said, row in both if row.status is Status.OK and row.speedup is not None]
    print(f"{len(published)} speedups were published for {arguments.hardware}; {len(both)} of them were measured here")
    print(f"{len(both) - len(works)} of them are not right here:")
    for status in sorted({row.status for _, row in both} - {Status.OK}):
        print(f"  {sum(row.status is status for _, row in both)} {status}")
    said, found = (np.array(each) for each in zip(*((s, row.speedup.value) for s, row in works), strict=True))
    off = np.abs(np.log2(found / said))
    print(f"of {len(works)} that are right:")
    for most in WITHIN:
        print(f"  {np.mean(off <= math.log2(most)):.0%} within {most:g} times of what was published")
    print(f"  {np.mean(found < said):.0%} are slower than published, {np.mean(found < 0.97):.0%} slower than eager")
    rank = scoring.spearman(np.log2(said), np.log2(found), np.zeros(len(works), dtype=np.intp))[0]
    print(f"  published {np.exp2(np.log2(said).mean()):.2f} times as fast as eager in the mean, measured", end=" ")
    print(f"{np.exp2(np.log2(found).mean()):.2f}; rank correlation {rank:.2f}")
    large = said > 10
    if large.any():
        print(f"  of {large.sum()} published above 10, {np.sum(found[large] > 10)} are measured above 10")


if __name__ == "__main__":
    main()
