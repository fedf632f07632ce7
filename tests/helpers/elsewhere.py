"""What the tests share that measure problems from elsewhere: how to measure them, and a few of them."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from presage import Device, Effort, Kernel, Measurement, Problem
from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.problems.external import ExternalProblem

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
PATIENT = Effort(precision=math.inf, case_seconds=3.0, timeout=120.0, rounds=2)
LINEAR = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x):
        return torch.relu(self.linear(x))

batch, features, hidden = 32, 64, 48

def get_inputs():
    return [torch.rand(batch, features)]

def get_init_inputs():
    return [features, hidden]
"""
WIDE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [torch.rand(4, {columns})]

def get_init_inputs():
    return []
"""
MODEL_NEW = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {result}
"""
TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: |
  Adds two matrices, scaled.
tests:
  - {"size": 7, "scale": 2, "seed": 1}
  - {"size": 64, "scale": 3, "seed": 2}
benchmarks:
  - {"size": 128, "scale": 3, "seed": 3}
"""
UTILS = """
import torch

def make_match_reference(reference, rtol=1e-5, atol=1e-8):
    def check(data, output):
        expected = reference(data)
        if torch.allclose(output, expected, rtol=rtol, atol=atol):
            return True, ""
        return False, "mismatch found: ERROR at " + str((output - expected).abs().argmax().item())
    return check
"""
REFERENCE = """
import torch
from task import input_t, output_t
from utils import make_match_reference

def generate_input(size: int, scale: int, seed: int) -> input_t:
    gen = torch.Generator()
    gen.manual_seed(seed)
    a, b = (torch.randn(size, size, generator=gen) for _ in range(2))
    return a, {"other": b, "scale": scale, "shape": (size, size)}, torch.empty(size, size)

def ref_kernel(data: input_t) -> output_t:
    a, more, output = data
    output[...] = a + more["scale"] * more["other"]
    return output

check_implementation = make_match_reference(ref_kernel)
"""


def measure(
    device: Device, path: Path, sources: Mapping[str, str], effort: Effort = PATIENT, keeps_tolerance: bool = False
) -> dict[str, Measurement]:
    """Candidates by name, and the problem's own reference as one of them."""
    problem = registry.get(str(path))
    assert isinstance(problem, ExternalProblem)
    problem.keeps_tolerance = keeps_tolerance
    kernels = {name: from_source(source, ".py", f"{name}.py") for name, source in sources.items()}
    anchor = registry.anchor(problem, device.kind)
    assert anchor is not None
    all_kernels = [anchor, *(problem.candidate(kernel) for kernel in kernels.values())]
    return dict(zip(["reference", *kernels], judge(device, problem, all_kernels, effort), strict=True))


def judge(device: Device, problem: Problem, kernels: Sequence[Kernel], effort: Effort) -> list[Measurement]:
    """Measure again where the machine was too busy to tell. What is asked here is whether answers are right."""
    for _ in range(3):
        measured = device.measure(problem, kernels, effort, lambda doing, share: None)
        busy = [m.reason for m in measured if "too busy" in m.reason]
        if not busy:
            return measured
    pytest.skip(busy[0])
