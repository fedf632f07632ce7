"""Trace: what is read back is what was written, what is broken is refused, and costs are those that one can work out."""

from __future__ import annotations

import copy
import json

import pytest

from presage.static import hardware, roofline
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


def test_the_roofline_of_a_product() -> None:
    trace, h200 = Trace.from_document(copy.deepcopy(VALID)), hardware.find("h200")
    assert h200.bandwidth
    least, own = roofline.step_ns(trace, h200).values()
    assert least == pytest.approx(1e9 * max(4_890_000 / h200.bandwidth, 67e9 / h200.peak_flops["fp32"]))
    assert roofline.step_ns(trace, hardware.find("sm_90")) == {}, "a bare architecture has no peaks"
    assert own == 0.0
    assert trace.own_share({0: 3.0, 1: 1.0}) == 0.25
