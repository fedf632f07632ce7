"""References that do not do as they should: a kernel is not blamed for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from elsewhere import LINEAR, PATIENT, REFERENCE, measure, needs_torch

import presage.devices.cpu as cpu_module
from presage import Device, Effort, PresageError, Problem
from presage.devices.cpu import CpuDevice
from presage.kernels.kernel import from_source
from presage.problems import registry

pytestmark = pytest.mark.slow
BROKEN = {
    "raises": ("    gen = torch.Generator()", "    raise KeyError('oh')", "its reference failed: KeyError: 'oh'"),
    "hangs": (
        "    gen = torch.Generator()",
        "    while True: pass",
        "its reference failed: was still running after 1 s",
    ),
    "import": ("import torch\n", "import torch\nimport nosuch\n", "ModuleNotFoundError: No module named 'nosuch'"),
    "object": ('"scale": scale', '"scale": object()', r"data\[1\]\['scale'\] is a builtins.object, which cannot be"),
    "shapes": ('"scale": scale', '"scale": scale, "more": torch.empty(seed % 997)', "when the seed is another"),
    "numbers": ('"scale": scale', '"scale": seed', "when the seed is another"),
    "answer": ("    return output\n", "    return 1.0\n", "the reference returns a builtins.float; only tensors"),
    "crashes": ("    gen = torch.Generator()", "    import ctypes; ctypes.string_at(0)", "was killed by SIGSEGV"),
}


@needs_torch
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reference_is_no_kernel_s_fault(device: Device, task: Path, name: str) -> None:
    old, new, complaint = BROKEN[name]
    (task / "reference.py").write_text(REFERENCE.replace(old, new))
    timeout = 1.0 if name == "hangs" else 60.0
    with pytest.raises(PresageError, match=complaint):
        measure(device, task, {}, Effort(precision=5.0, case_seconds=1.0, timeout=timeout))


FORGED = {
    "a shape": "tensors.describe = lambda tensor: {'shape': [-1], 'stride': [1], 'dtype': 'float32'}",
    "a type": "tensors.describe = lambda tensor: {'shape': [1], 'stride': [1], 'dtype': 'boo'}",
    "no cases": "examiner.ExaminerRunner.describe = lambda self, command: {'cases': [], 'written': []}",
    "no verdict": "examiner.ExaminerRunner.check = lambda self, command: {}",
}


@needs_torch
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_a_reference_forges_ends_its_own_measurement(cpu: CpuDevice, tmp_path: Path, forged: str) -> None:
    path = tmp_path / "linear.py"
    path.write_text(f"from presage.devices.worker import examiner, tensors\n{forged}\n{LINEAR}")
    with pytest.raises(PresageError, match="its process gave no answer that can be read"):
        measure(cpu, path, {})


def test_without_torch_it_is_said_what_is_missing(
    tmp_path: Path, cpu: CpuDevice, addition: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_module.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "linear.py").write_text(LINEAR)
    kernel = from_source("import torch\ndef custom_kernel(data): ...\n", ".py", "k.py")
    for problem in (addition, registry.get(str(tmp_path / "linear.py"))):
        with pytest.raises(PresageError, match="torch is not installed, which this needs"):
            cpu.measure(problem, [kernel], PATIENT, lambda doing, share: None)
