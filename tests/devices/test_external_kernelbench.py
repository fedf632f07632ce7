"""Problems in KernelBench's form, measured: their own code in one child, candidates in others."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from elsewhere import LINEAR, measure, needs_torch

from presage import Device, PresageError, Status

pytestmark = pytest.mark.slow
FUSED = """
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x):
        return {result}

def get_inputs():
    raise RuntimeError("a candidate's own inputs are not asked for")
"""
RIGHT = "torch.addmm(self.linear.bias, x, self.linear.weight.t()).clamp_(min=0)"
CANDIDATES = {
    "right": (FUSED.replace("{result}", RIGHT), Status.OK, ""),
    "right, and lies column by column": (
        FUSED.replace("{result}", f"({RIGHT}).t().contiguous().t()"),
        Status.OK,
        "",
    ),
    "no relu": (FUSED.replace("{result}", "self.linear(x)"), Status.WRONG_RESULT, r"output\[\d+, \d+\] is -.*, not 0;"),
    "other weights": (
        FUSED.replace("{result}", RIGHT).replace("super().__init__()", "super().__init__(); torch.rand(1)"),
        Status.WRONG_RESULT,
        "elements are wrong",
    ),
    "half": (FUSED.replace("{result}", f"({RIGHT}).half()"), Status.WRONG_RESULT, r"output as float16\[32, 48\]"),
    "gaps": (
        FUSED.replace("{result}", f"torch.cat([{RIGHT}, x], 1)[:, :48]"),
        Status.OK,
        "",
    ),
    "in place": (
        FUSED.replace("{result}", f"[{RIGHT}, x.zero_()][0]"),
        Status.WRONG_RESULT,
        r"changed its input data\[0\]",
    ),
    "another model": ("class Model: ...\n", Status.RUNTIME_ERROR, "ModelNew"),
    "no tensor": (FUSED.replace("{result}", "x.tolist()"), Status.WRONG_RESULT, "returned 32 outputs, not 1"),
}


@needs_torch
def test_kernelbench_candidates(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "linear.py"
    path.write_text(LINEAR)
    measured = measure(device, path, {name: source for name, (source, _, _) in CANDIDATES.items()})
    assert (measured["reference"].status, measured["reference"].reason) == (Status.OK, "")
    for name, (_, status, reason) in CANDIDATES.items():
        assert measured[name].status is status, (name, measured[name])
        assert re.search(reason, measured[name].reason), (name, measured[name].reason)
    assert measured["right"].cases[0].case == "as written"
    assert measured["right"].cases[0].floor_ns > 0


PLAIN = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, labels, scale):
        best = (x * scale).max(dim=1)
        return best.values, best.indices + labels

def get_inputs():
    return [torch.randn(40, 30).to(torch.bfloat16).t(), torch.randint(0, 9, (30,)), 2.0]

def get_init_inputs():
    return []
"""
PLAIN_CANDIDATE = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x, labels, scale):
        assert (x.stride(), x.dtype, scale) == ((1, 30), torch.bfloat16, 2.0)
        x = x * scale
        found = x.argmax(1)
        return x.gather(1, found[:, None])[:, 0], found + labels
"""


@needs_torch
def test_kernelbench_without_weights_and_with_other_kinds_of_data(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(PLAIN)
    wrong = PLAIN_CANDIDATE.replace("found + labels", "found")
    measured = measure(device, path, {"right": PLAIN_CANDIDATE, "wrong": wrong})
    assert [(m.status, m.reason) for m in measured.values()][:2] == [(Status.OK, "")] * 2
    assert measured["wrong"].status is Status.WRONG_RESULT
    assert "output 1[" in measured["wrong"].reason


@needs_torch
def test_a_model_that_remembers_cannot_be_judged(device: Device, tmp_path: Path) -> None:
    stateful = "self.calls = getattr(self, 'calls', 0) + 1; return self.calls + torch.relu"
    path = tmp_path / "stateful.py"
    path.write_text(LINEAR.replace("return torch.relu", stateful))
    with pytest.raises(PresageError, match="answers the same inputs differently each time"):
        measure(device, path, {})


FOR_A_GPU = {
    "triton": """
        import torch, triton
        import triton.language as tl

        @triton.jit
        def relu(x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x + i, tl.maximum(tl.load(x + i, mask=i < n), 0), mask=i < n)

        class ModelNew(torch.nn.Module):
            def __init__(self, features, hidden):
                super().__init__()
                self.linear = torch.nn.Linear(features, hidden)

            def forward(self, x):
                y = self.linear(x)
                relu[(triton.cdiv(y.numel(), 256),)](y, y.numel(), BLOCK=256)
                return y
        """,
    "extension": """
        import torch
        from torch.utils.cpp_extension import load_inline

        source = '''
        __global__ void relu_kernel(float *x, int n) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] = fmaxf(x[i], 0.0f);
        }
        torch::Tensor relu(torch::Tensor x) {
            relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
            return x;
        }
        '''
        declared = "torch::Tensor relu(torch::Tensor x);"
        built = load_inline(name="relu_inline", cpp_sources=declared, cuda_sources=source, functions=["relu"])

        class ModelNew(torch.nn.Module):
            def __init__(self, features, hidden):
                super().__init__()
                self.linear = torch.nn.Linear(features, hidden)
                self.relu = built

            def forward(self, x):
                return self.relu.relu(self.linear(x))
        """,
}


@pytest.mark.cuda
def test_kernels_as_kernelbench_s_community_writes_them_for_a_gpu(gpu: Device, tmp_path: Path) -> None:
    path = tmp_path / "linear.py"
    path.write_text(LINEAR)
    sources = {name: textwrap.dedent(source) for name, source in FOR_A_GPU.items()}
    unbuilt = sources["extension"].replace("fmaxf(x[i]", "fmaxf(y[i]")
    measured = measure(gpu, path, {**sources, "unbuilt": unbuilt})
    for name in ("reference", *sources):
        assert (measured[name].status, measured[name].reason) == (Status.OK, ""), name
    assert measured["unbuilt"].status is Status.COMPILE_ERROR
    assert 'error: identifier "y" is undefined' in measured["unbuilt"].reason
