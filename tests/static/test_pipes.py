"""Machine code: what a warp executes of it, by the unit that does it."""

from __future__ import annotations

import pytest

from presage.static import pipes
from presage.static.sass import Instruction

LOOP = """// presage: entry f
// presage: grid 64
// presage: block 128
extern "C" __global__ void f(const float *x, float *y, int n) {{
    float sum = 0.0f;
    #pragma unroll 1
    for (int i = 0; i < n; i++) sum += x[i] {operator} x[n + i];
    y[blockIdx.x * 128 + threadIdx.x] = sum;
}}
"""


@pytest.mark.parametrize("target", ["sm_75", "sm_86", "sm_90"])
def test_a_division_is_a_reciprocal_and_a_few_more(inspect_sources, nvrtc_library, target: str) -> None:
    texts = [LOOP.format(operator=operator) for operator in "*/"]
    times, divided = (each.launches[0] for each in inspect_sources(texts, ".cu", target=target, dims={"n": 1000}))
    assert divided.executed["instructions"] - times.executed["instructions"] == 1000  # a product is added in one go
    assert 6_000 <= divided.machine["issue"] - times.machine["issue"] <= 12_000
    assert (times.machine.get("special", 0.0), divided.machine["special"]) == (0.0, 1000.0)


def test_other_loops_than_those_that_were_walked_tell_nothing() -> None:
    code = pipes.bodies([Instruction(0, "FFMA", ""), Instruction(16, "BRA", "0x0"), Instruction(32, "EXIT", "")])
    assert pipes.executed(code, [(0, 7.0)]) == {"fma": 7.0, "control": 8.0, "issue": 15.0}
    assert pipes.executed(code, []) is None
    assert pipes.executed(code, [(0, 7.0), (1, 7.0)]) is None
