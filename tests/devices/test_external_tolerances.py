"""Tolerances of problems from elsewhere: what has nothing to do with the inputs fails, and what is honest passes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from elsewhere import LINEAR, MODEL_NEW, WIDE, measure, needs_torch
from sweeps import others_in_sweeps

from presage import Device, Status

pytestmark = pytest.mark.slow
SOFTMAX = "torch.softmax(x, dim=1)"
IN_OTHER_ORDER = "(lambda e: e / e.flip(1).sum(1, keepdim=True))(torch.exp(x - x.max()))"
STRANGERS = {
    "zeros": "torch.zeros_like(x)",
    "constant": "torch.full_like(x, 1 / x.shape[1])",
    "of other inputs": "torch.softmax(torch.rand_like(x), dim=1)",
}


DRAWS = {"other for each seed": ("torch.rand(8, 64)", False), "the same": ("torch.ones(8, 64)", True)}


@needs_torch
@pytest.mark.parametrize(("draws", "said"), others_in_sweeps(DRAWS, "the same"))
def test_inputs_that_are_always_the_same_are_pointed_out(
    device: Device, tmp_path: Path, draws: str, said: bool
) -> None:
    path = tmp_path / "same.py"
    start = WIDE.index("def get_inputs")
    path.write_text(
        WIDE[:start].replace("{result}", "x + 1") + f"def get_inputs():\n    return [{draws}]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    measured = measure(device, path, {"right": MODEL_NEW.replace("{result}", "x + 1")})
    assert ("same for every seed" in str(measured["right"].facts.get("tolerance"))) is said


@needs_torch
@pytest.mark.parametrize(
    "keeps", others_in_sweeps({"relative to the scale": False, "as KernelBench does": True}, "relative to the scale")
)
def test_what_has_nothing_to_do_with_the_inputs_does_not_pass(device: Device, tmp_path: Path, keeps: bool) -> None:
    path = tmp_path / "wide.py"
    path.write_text(WIDE.replace("{result}", SOFTMAX).replace("{columns}", "65536"))
    sources = {"right": IN_OTHER_ORDER, "half": "torch.softmax(x.half().float(), 1)", **STRANGERS}
    measured = measure(
        device, path, {name: MODEL_NEW.replace("{result}", it) for name, it in sources.items()}, keeps_tolerance=keeps
    )
    assert [(measured[name].status, measured[name].reason) for name in ("reference", "right")] == [(Status.OK, "")] * 2
    said = measured["right"].facts["tolerance"]
    assert "0.0001 would let zeros, a constant and the answer to other inputs pass as the output" in said
    assert re.search(r"values are at most 2.\de-05 and differ by \d.\de-06", said)
    for name in ("half", *STRANGERS):
        assert measured[name].status is (Status.OK if keeps else Status.WRONG_RESULT), (name, measured[name])
        assert keeps or "relative to the output's scale" in measured[name].reason


AVERAGES: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "an average": (
        "(x * x).mean()",
        "(x.t() * x.t()).mean()",
        {
            "constant": "torch.full((), 100.01, device=x.device)",
            "first half": "(x[:32] * x[:32]).mean()",
            "every other row": "(x[::2] * x[::2]).mean()",
            "seven of eight values": "(x.view(64, -1, 8)[..., :7] ** 2).mean()",
        },
    ),
    "what is divided by one": (
        "x / (x * x).sum()",
        "x * (1 / (x.t() * x.t()).sum())",
        {"by what it always is": "x / (100.01 * x.numel())"},
    ),
}


@needs_torch
@pytest.mark.parametrize(("model", "right", "wrong"), others_in_sweeps(AVERAGES, "an average"))
def test_what_is_the_same_for_all_inputs_that_the_file_makes_has_to_be_computed(
    device: Device, tmp_path: Path, model: str, right: str, wrong: Mapping[str, str]
) -> None:
    path = tmp_path / "mean.py"
    like = WIDE.replace("torch.rand(4, {columns})", "10 + 0.001 * torch.rand(64, 1024)")
    path.write_text(like.replace("{result}", model))
    sources = {name: MODEL_NEW.replace("{result}", result) for name, result in {"right": right, **wrong}.items()}
    measured = measure(device, path, sources)
    assert (measured["right"].status, measured["right"].reason) == (Status.OK, "")
    for name in wrong:
        assert measured[name].status is Status.WRONG_RESULT, name
        assert "case thinned: output[" in measured[name].reason


REACHABLE = {
    "a small part of a large value": ("7 + 1e-4 * x", "(70000 + x) / 10000", "torch.full_like(x, 7.00005)"),
    "zeros that are right": ("x - x", "0 * x", "1e-4 * x"),
    "rounding errors alone": (
        "torch.layer_norm(x, x.shape[1:]).mean(1)",
        "torch.layer_norm(x.flip(1), x.shape[1:]).mean(1)",
        "x[:, 0]",
    ),
    "values of all sizes": (
        "torch.prod(2 * x[:, :256], 1)",
        "torch.prod(2 * x[:, :256].flip(1), 1)",
        "torch.prod(2.001 * x[:, :256], 1)",
    ),
}


@needs_torch
@pytest.mark.parametrize(("model", "right", "wrong"), others_in_sweeps(REACHABLE, "a small part of a large value"))
def test_an_honest_kernel_is_held_to_no_more_than_it_can_reach(
    device: Device, tmp_path: Path, model: str, right: str, wrong: str
) -> None:
    path = tmp_path / "wide.py"
    path.write_text(WIDE.replace("{result}", model).replace("{columns}", "4096"))
    measured = measure(
        device, path, {name: MODEL_NEW.replace("{result}", it) for name, it in (("right", right), ("wrong", wrong))}
    )
    assert [measured[name].status for name in ("reference", "right")] == [Status.OK] * 2, measured
    assert "pass as the output" in measured["right"].facts["tolerance"]
    assert measured["wrong"].status is Status.WRONG_RESULT


ROUNDED = "(x.half().to(x.dtype) if x.dtype == torch.float32 else x) * 8"
"""A reference that computes with fewer digits than its answer has, as torch does with TF32."""


@needs_torch
def test_a_kernel_may_be_as_inexact_as_the_reference(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "wide.py"
    path.write_text(WIDE.replace("{result}", ROUNDED).replace("{columns}", "4096"))
    sources = {
        "other digits": "(0.999 * x).half().float() * (8 / 0.999)",
        "fewer": "x.bfloat16().float() * 8",
    }
    measured = measure(device, path, {name: MODEL_NEW.replace("{result}", it) for name, it in sources.items()})
    assert [measured[name].status for name in ("reference", "other digits")] == [Status.OK] * 2, measured
    assert measured["fewer"].status is Status.WRONG_RESULT


@needs_torch
def test_where_the_tolerance_does_not_matter_nothing_is_said(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "linear.py"
    path.write_text(LINEAR)
    assert "tolerance" not in measure(device, path, {})["reference"].facts


TABLE = """
import torch

class Model(torch.nn.Module):
    def forward(self, table, index):
        return table[index]

def get_inputs():
    return [torch.rand(50_000, 64), torch.randint(50_000, (64,))]

def get_init_inputs():
    return []
"""


@needs_torch
def test_whoever_reads_a_part_of_its_inputs_is_not_accused(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "table.py"
    path.write_text(TABLE)
    candidate = TABLE.replace("class Model(", "class ModelNew(").replace("table[index]", "table.index_select(0, index)")
    measured = measure(device, path, {"candidate": candidate})
    assert [(m.status, m.reason) for m in measured.values()] == [(Status.OK, "")] * 2
