"""What problems from elsewhere may return: outputs of many kinds, views, signs that were put off."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from elsewhere import MODEL_NEW, WIDE, measure, needs_torch
from sweeps import others_in_sweeps

from presage import Device, Status

pytestmark = pytest.mark.slow


@needs_torch
def test_a_sign_that_torch_has_put_off_counts(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "product.py"
    path.write_text(WIDE.replace("{result}", "x @ x.t()").replace("{columns}", "8"))
    put_off = "torch._neg_view(x @ -x.t())"
    measured = measure(device, path, {"put off": MODEL_NEW.replace("{result}", put_off)})
    assert (measured["put off"].status, measured["put off"].reason) == (Status.OK, "")


KINDS_OF_OUTPUTS = {
    "complex numbers": ("torch.fft.fft(x)", "torch.fft.fft(x.double()).to(torch.complex64)", "torch.fft.ifft(x)"),
    "a tuple with names": ("torch.topk(x, 2)", "torch.sort(x, descending=True)", "torch.topk(x, 3)"),
    "nothing beside something": ("(x + 1, x[:0])", "[1 + x, x.new_empty(0, x.shape[1])]", "(x, x[:0])"),
    "a mask beside what is inexact": (
        "((x.half().to(x.dtype) if x.dtype == torch.float32 else x) * 8, x > 0.5)",
        "((0.999 * x).half().float() * (8 / 0.999), x > 0.5)",
        "((0.999 * x).half().float() * (8 / 0.999), x > 0.7)",
    ),
    "what is computed in place": ("x.mul_(2).add_(1)", "2 * x + 1", "2 * (2 * x + 1) + 1"),
}


@needs_torch
@pytest.mark.parametrize(
    ("model", "right", "wrong"),
    others_in_sweeps(KINDS_OF_OUTPUTS, "complex numbers"),
)
def test_outputs_of_many_kinds_can_be_compared(
    device: Device, tmp_path: Path, model: str, right: str, wrong: str
) -> None:
    path = tmp_path / "kinds.py"
    like = WIDE.replace("def get_inputs", "@torch.inference_mode()\ndef get_inputs") if "fft" in model else WIDE
    path.write_text(like.replace("{result}", model).replace("{columns}", "64"))
    if "sort" in right:
        right = f"tuple(part[:, :2] for part in {right})"
    sources = {name: MODEL_NEW.replace("{result}", it) for name, it in {"right": right, "wrong": wrong}.items()}
    measured = measure(device, path, sources)
    assert (measured["right"].status, measured["right"].reason) == (Status.OK, "")
    assert measured["wrong"].status is Status.WRONG_RESULT


VIEWS = {
    "repeated": ("x.repeat(50, 1)", {"(x + 0).expand(50, -1)": Status.WRONG_RESULT, "torch.cat([x] * 50)": Status.OK}),
    "views": ("((x + 1).expand(50, -1), x.t())", {"((1 + x).expand(50, -1), x.t())": Status.OK}),
}


@needs_torch
@pytest.mark.parametrize(("reference", "candidates"), others_in_sweeps(VIEWS, "repeated"))
def test_a_view_is_right_where_the_reference_returns_one(
    device: Device, tmp_path: Path, reference: str, candidates: Mapping[str, Status]
) -> None:
    path = tmp_path / "view.py"
    path.write_text(
        f"import torch\ndef reference(x):\n    return {reference}\ndef inputs():\n    return torch.rand(1, 4096)\n"
    )
    sources = {
        text: f"import torch\ndef custom_kernel(data):\n    (x,) = data\n    return {text}\n" for text in candidates
    }
    measured = measure(device, path, sources)
    assert {text: measured[text].status for text in measured} == {"reference": Status.OK, **candidates}, measured
