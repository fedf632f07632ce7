"""Modules of torch for the catalogue's problems, measured."""

from __future__ import annotations

import pytest
from elsewhere import PATIENT, judge, needs_torch

from presage import Problem, Status
from presage.devices.cpu import CpuDevice
from presage.kernels.kernel import from_source

pytestmark = pytest.mark.slow
TORCH = {
    "right": ("x + y", Status.OK, ""),
    "model": ("", Status.OK, ""),
    "wrong": ("x - y", Status.WRONG_RESULT, "elements are wrong"),
    "double": ("(x + y).double()", Status.WRONG_RESULT, "returned z as float64"),
    "view": ("torch.stack([x + y] * 2, 1)[:, 0]", Status.WRONG_RESULT, "strided view; it must be contiguous"),
    "nothing": ("None", Status.WRONG_RESULT, "returned a builtins.NoneType for z, not a torch.Tensor"),
    "parameter": ("torch.nn.Parameter(x + y)", Status.WRONG_RESULT, "returned a torch.nn.parameter.Parameter for z"),
    "input": ("x.add_(y)", Status.WRONG_RESULT, "changed its input x"),
    "process": ("[__import__('os').system('true'), x + y][1]", Status.CHEATING, "made a system call"),
}
MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n        return x + y\n"


@needs_torch
def test_the_catalogue_s_problems_take_torch_modules(cpu: CpuDevice, addition: Problem) -> None:
    sources = [
        f"import torch\ndef custom_kernel(data):\n    x, y = data\n    return {text}\n" if text else MODEL
        for text, _, _ in TORCH.values()
    ]
    kernels = [from_source(source, ".py", "k.py") for source in sources]
    measured = judge(cpu, addition, kernels, PATIENT)
    for (name, (_, status, reason)), m in zip(TORCH.items(), measured, strict=True):
        assert m.status is status, (name, m)
        assert reason in m.reason, (name, m.reason)


@needs_torch
def test_an_error_of_a_module_names_the_user_s_file(cpu: CpuDevice, addition: Problem) -> None:
    texts = {"wrong": "def custom_kernel(data)\n", "raises": "def custom_kernel(data):\n    return data.nothing\n"}
    kernels = [from_source(text, ".py", f"folder/{name}.py") for name, text in texts.items()]
    wrong, raises = judge(cpu, addition, kernels, PATIENT)
    assert 'File "wrong.py", line 1' in wrong.reason
    assert 'File "raises.py", line 2, in custom_kernel' in raises.output
    assert not [m for m in (wrong, raises) if "presage-" in m.reason + m.output]


@needs_torch
def test_what_no_compiler_can_be_started_for_says_so(cpu: CpuDevice, addition: Problem) -> None:
    source = "import torch\n@torch.compile\ndef custom_kernel(data):\n    return data[0] + data[1]\n"
    (found,) = cpu.measure(addition, [from_source(source, ".py", "compiled.py")], PATIENT, lambda doing, share: None)
    assert found.status is Status.RUNTIME_ERROR
    assert "torch.compile needs a C++ compiler" in found.reason
