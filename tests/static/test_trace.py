"""Trace: what is read back is what was written, and costs are those that one can work out."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from presage.static import hardware, roofline, walk
from presage.static.trace import Trace

VALID = {
    "version": 1,
    "tensors": [{"dtype": "float32", "shape": [4, 8], "stride": [8, 1], "device": "cuda"} for _ in range(3)],
    "inputs": [0, 1],
    "constants": [],
    "steps": [
        {
            "kind": "operator",
            "name": "aten::add.Tensor",
            "arguments": [{"tensor": 0}, {"tensor": 1}],
            "named": {"alpha": 1},
            "results": {"tensor": 2},
            "bytes": 4_890_000,
            "flops": 67e9,
        },
        {
            "kind": "cuda",
            "name": "add",
            "cubin": 0,
            "grid": [4, 1, 1],
            "block": [128, 1, 1],
            "shared": 0,
            "parameters": [{"hex": "00" * 8, "pointers": [[0, 2, 0]]}, {"hex": "20000000", "pointers": []}],
        },
    ],
    "outputs": {"tensor": 2},
    "cubins": ["f0VMRgIBAQ=="],
}


def test_what_is_written_can_be_read() -> None:
    trace = Trace.from_document(copy.deepcopy(VALID))
    again = Trace.from_document(json.loads(json.dumps(trace.to_document(with_code=True))))
    assert again == trace
    assert again.hash == trace.hash
    assert Trace.from_document(trace.to_document()).hash == trace.hash, (
        "which code it is counts, not whether it is there"
    )


def test_a_hash_tells_programs_apart() -> None:
    trace = Trace.from_document(copy.deepcopy(VALID))
    other = copy.deepcopy(VALID)
    other["steps"][0]["named"]["alpha"] = 2
    assert Trace.from_document(other).hash != trace.hash


@pytest.mark.parametrize(
    ("opcode", "gpu", "precision", "tflops"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "h200", "tf32", 494.7),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "h200", "fp16", 989.4),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "h200", "bf16", 989.4),
        ("wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e5m2", "h200", "fp8", 1978.9),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", "h200", "int8", 1978.9),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "h200", "fp64", 66.9),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "rtx4090", "fp64", 1.29),
        ("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32", "h200", "fp16", 989.4),
    ],
)
def test_products_of_tensor_cores_are_priced_by_the_type_of_their_factors(
    opcode: str, gpu: str, precision: str, tflops: float
) -> None:
    body = f"    {opcode} %a, %b, %c;\n    ret;\n"
    text = f".version 8.0\n.target sm_90a\n.visible .entry add(.param .u64 p)\n{{\n{body}}}\n"
    trace, target = Trace.from_document(copy.deepcopy(VALID)), hardware.find(gpu)
    executed = walk.of_call(text, "add", [None], (4, 1, 1), (128, 1, 1))
    assert executed is not None
    step = replace(roofline.priced(trace.steps[1], executed), flops=1e15)
    assert step.precision == precision
    trace = replace(trace, steps=(step,))
    assert roofline.step_ns(trace, target)[0] == pytest.approx(1e24 / (tflops * 1e12), rel=0.01)
    assert roofline.trained_step_ns(trace, target)[0] == pytest.approx(1e24 / target.peak_flops["fp16"])
    assert not any(name.startswith("flops_of") for name in walk.parted(executed)[0]), "reports do not change"
    bare = walk.of_launch(text, "add", [], (4, 1, 1), (128, 1, 1))
    assert bare is not None
    assert not any(name.startswith("flops_of") for name in bare)


def test_the_roofline_of_a_product() -> None:
    trace, h200 = Trace.from_document(copy.deepcopy(VALID)), hardware.find("h200")
    assert h200.bandwidth
    least, own = roofline.step_ns(trace, h200).values()
    assert least == pytest.approx(1e9 * max(4_890_000 / h200.bandwidth, 67e9 / h200.peak_flops["fp32"]))
    assert roofline.step_ns(trace, hardware.find("sm_90")) == {}, "a bare architecture has no peaks"
    assert own == 0.0
    assert trace.own_share({0: 3.0, 1: 1.0}) == 0.25
