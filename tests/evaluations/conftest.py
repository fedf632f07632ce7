"""A recording whose truth is known: six operations, whose kernels' times follow from their tunables, with no noise."""

from __future__ import annotations

import itertools
import math

import pytest

from presage import Recording, StaticReport, Status
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.normalise import digest

OPERATIONS = {
    "op_a": "train",
    "op_b": "train",
    "op_c": "train",
    "op_d": "test_op",
    "op_e": "test_op",
    "op_f": "test_op",
}
SEED = 'extern "C" __global__ void f(float *x) { x[0] = 1.0f; }\n'


def source(operation: str, block: int, unroll: int) -> str:
    body = f"for (int i = 0; i < BLOCK * UNROLL; i++) x[i] += {len(operation)}.0f;"
    return f'#define BLOCK {block}\n#define UNROLL {unroll}\nextern "C" __global__ void f(float *x) {{ {body} }}\n'


def log2_speedup(operation: str, block: int, unroll: int) -> float:
    """The truth: best at a block of 128 and an unroll of 4; operations differ in how much that matters."""
    slope = 0.3 + 0.15 * list(OPERATIONS).index(operation)
    return 2.0 - slope * (abs(math.log2(block / 128)) + 0.5 * abs(math.log2(unroll / 4)) ** 1.5)


def make_rows(operation: str, report: StaticReport) -> list[Row]:
    common = {"problem": operation, "room": "made_up", "split": OPERATIONS[operation], "language": "cuda"}
    seed = digest(SEED, "cuda")
    rows = [
        Row(
            **common, family="naive.cu", hash=seed, source=SEED, values={}, status=Status.OK, reports=(report,),
            cases=(RecordedCase("n=1", 10.0, (1e6,) * 8), RecordedCase("n=2", 10.0, (4e6,) * 8)), anchor=seed,
        )
    ]  # fmt: skip
    for block, unroll in itertools.product((16, 32, 64, 128, 256, 512, 1024), (1, 2, 4, 8, 16)):
        text = source(operation, block, unroll)
        failed = block * unroll >= 8192
        S = 2 ** log2_speedup(operation, block, unroll)
        cases = () if failed else tuple(RecordedCase(f"n={n}", 10.0, (t / S,) * 8) for n, t in ((1, 1e6), (2, 4e6)))
        rows.append(
            Row(
                **common,
                family="blocks.cu",
                hash=digest(text, "cuda"),
                source=text,
                values={"BLOCK": block, "UNROLL": unroll},
                status=Status.RUNTIME_ERROR if failed else Status.OK,
                reason="too many threads" if failed else "",
                cases=cases,
                anchor=seed,
                speedup=recording.speedup_over(rows[0].cases, cases) if cases else None,
                reports=(report,),
            )
        )
    return rows


@pytest.fixture(scope="session")
def truth(static_report: StaticReport, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("truth") / "truth.parquet"
    rows = [row for operation in OPERATIONS for row in make_rows(operation, static_report)]
    return recording.write(path, rows, {"name": "truth", "kind": "gpu", "hardware": "h200"})
