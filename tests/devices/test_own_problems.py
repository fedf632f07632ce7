"""Problems of one's own in one file, measured: a Python function, and a kernel whose first configuration is right."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from elsewhere import PATIENT, judge

from presage import Device, Kernel, Measurement, PresageError, Problem, Status
from presage.devices.cpu import CpuDevice
from presage.problems import registry

pytestmark = pytest.mark.slow
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("gcc", "clang", "cc"))), reason="there is no C compiler")


def measure(device: Device, problem: Problem, kernels: list[Kernel]) -> list[Measurement]:
    anchor = registry.anchor(problem, device.kind)
    assert anchor is not None
    return judge(device, problem, [anchor, *kernels], PATIENT)


FUNCTION = """
import torch

def reference(x, y):
    return torch.relu(x + y)

def inputs(n):
    return torch.randn(n, n), torch.randn(n, n)

cases = [{"n": 16}, {"n": 32}]
"""
MODULES = {
    "right": "def custom_kernel(data):\n    return torch.add(*data).clamp_(min=0)\n",
    "wrong": "def custom_kernel(data):\n    return torch.add(*data)\n",
    "model": "class ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n        return (x + y).clamp(min=0)\n",
}


@needs_torch
def test_modules_for_a_function(device: Device, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION)
    problem = registry.get(str(tmp_path / "mine.py"))
    kernels = []
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(f"import torch\n\n{text}")
        kernels.append(registry.find_kernel(problem, f"{name}.py"))
    reference, right, wrong, model = measure(device, problem, kernels)
    assert (reference.reason, right.reason, model.reason) == ("", "", "")
    assert wrong.status is Status.WRONG_RESULT
    assert [case.case for case in right.cases] == ["n=16", "n=32"]


HEADER = """\
// presage: entry gather
// presage: tune SHIFT = 0, 1, 2
// presage: input x = float32[n]
// presage: input at = int32[n] below n
// presage: output y = float32[n]
// presage: case n = 1000
// presage: case n = 20000
"""
KERNELS = {
    "cpu": (
        "mine.c",
        """\
void gather(const float *x, const int *at, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = x[at[i]] * (SHIFT == 2 ? 1.0f : 2.0f);
}
""",
    ),
    "gpu": (
        "mine.cu",
        """\
// presage: grid cdiv(n, 128)
// presage: block 128
extern "C" __global__ void gather(const float *x, const int *at, float *y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] = x[at[i]] * (SHIFT == 2 ? 1.0f : 2.0f);
}
""",
    ),
}


@needs_compiler
def test_configurations_of_a_kernel_are_held_against_its_first(device: Device, tmp_path: Path) -> None:
    name, text = KERNELS[device.kind]
    path = tmp_path / name
    path.write_text(HEADER + text)
    problem = registry.get(str(path))
    kernels = registry.find_configurations(problem, str(path))[1:]
    reference, right, wrong = measure(device, problem, kernels)
    assert (reference.reason, right.reason) == ("", "")
    assert wrong.status is Status.WRONG_RESULT
    assert [case.case for case in right.cases] == ["n=1000", "n=20000"]
    assert right.facts["tolerance"].startswith(f"right is what agrees with the first configuration, {name}@SHIFT=0")


@needs_compiler
def test_a_first_configuration_that_does_not_work_ends_the_measurement(cpu: CpuDevice, tmp_path: Path) -> None:
    path = tmp_path / "mine.c"
    path.write_text(
        HEADER + "void gather(const float *x, const int *at, float *y, int n) { if (!SHIFT) *(int *)0 = 1; }\n"
    )
    problem = registry.get(str(path))
    second = registry.find_kernel(problem, f"{path}@SHIFT=1")
    with pytest.raises(PresageError, match=r"mine.c: its first configuration is runtime_error"):
        cpu.measure(problem, [second], PATIENT, lambda doing, share: None)
    path.write_text(HEADER + "void gather(\n")
    with pytest.raises(PresageError, match=r"mine.c is compile_error: mine.c:"):
        cpu.measure(registry.get(str(path)), [second], PATIENT, lambda doing, share: None)
