"""Problems from elsewhere, measured: their own code in one child, candidates in others."""

from __future__ import annotations

import importlib.util
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import presage.devices.cpu as cpu_module
from presage import Device, Effort, Kernel, Measurement, PresageError, Problem, Status
from presage.devices.cpu import CpuDevice
from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.problems.external import ExternalProblem

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
pytestmark = pytest.mark.slow
PATIENT = Effort(precision=math.inf, case_seconds=3.0, timeout=120.0, rounds=2)


# -- KernelBench ------------------------------------------------------------------------------------------------------

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
SOFTMAX = "torch.softmax(x, dim=1)"
IN_OTHER_ORDER = "(lambda e: e / e.flip(1).sum(1, keepdim=True))(torch.exp(x - x.max()))"
STRANGERS = {
    "zeros": "torch.zeros_like(x)",
    "constant": "torch.full_like(x, 1 / x.shape[1])",
    "of other inputs": "torch.softmax(torch.rand_like(x), dim=1)",
}


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
    "nothing beside something": ("(x + 1, x[:0])", "[1 + x, torch.empty(0, x.shape[1])]", "(x, x[:0])"),
    "a mask beside what is inexact": (
        "((x.half().to(x.dtype) if x.dtype == torch.float32 else x) * 8, x > 0.5)",
        "((0.999 * x).half().float() * (8 / 0.999), x > 0.5)",
        "((0.999 * x).half().float() * (8 / 0.999), x > 0.7)",
    ),
    "what is computed in place": ("x.mul_(2).add_(1)", "2 * x + 1", "2 * (2 * x + 1) + 1"),
}


@needs_torch
@pytest.mark.parametrize(("model", "right", "wrong"), KINDS_OF_OUTPUTS.values(), ids=KINDS_OF_OUTPUTS)
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


@needs_torch
def test_what_no_compiler_can_be_started_for_says_so(cpu: CpuDevice, addition: Problem) -> None:
    source = "import torch\n@torch.compile\ndef custom_kernel(data):\n    return data[0] + data[1]\n"
    (found,) = cpu.measure(addition, [from_source(source, ".py", "compiled.py")], PATIENT, lambda doing, share: None)
    assert found.status is Status.RUNTIME_ERROR
    assert "torch.compile needs a C++ compiler" in found.reason


@needs_torch
@pytest.mark.parametrize(("draws", "said"), [("torch.rand(8, 64)", False), ("torch.ones(8, 64)", True)])
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
@pytest.mark.parametrize("keeps", [False, True], ids=["relative to the scale", "as KernelBench does"])
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
@pytest.mark.parametrize(("model", "right", "wrong"), AVERAGES.values(), ids=AVERAGES)
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
@pytest.mark.parametrize(("model", "right", "wrong"), REACHABLE.values(), ids=REACHABLE)
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


# -- GPU MODE ---------------------------------------------------------------------------------------------------------

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
SUBMISSIONS = {
    "into the room offered": (
        """
        from task import input_t, output_t

        def custom_kernel(data: input_t) -> output_t:
            a, more, output = data
            assert more["shape"] == tuple(a.shape)
            output.copy_(more["other"]).mul_(more["scale"]).add_(a)
            return output
        """,
        Status.OK,
        "",
    ),
    "into its own": (
        "def custom_kernel(data):\n    return data[0] + data[1]['scale'] * data[1]['other']",
        Status.OK,
        "",
    ),
    "wrong": ("def custom_kernel(data):\n    return data[0]\n", Status.WRONG_RESULT, "mismatch found: ERROR at"),
    "in place": (
        "def custom_kernel(data):\n    return data[0].add_(data[1]['other'], alpha=data[1]['scale']).clone()",
        Status.WRONG_RESULT,
        r"changed its input data\[0\]",
    ),
    "returns nothing": ("def custom_kernel(data):\n    ...\n", Status.WRONG_RESULT, "NoneType for output"),
}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "scaled_add_py"
    folder.mkdir()
    (folder / "task.yml").write_text(TASK)
    (folder / "task.py").write_text("input_t = output_t = object\n")
    (folder / "reference.py").write_text(REFERENCE)
    (tmp_path / "utils.py").write_text(UTILS)
    return folder


@needs_torch
def test_gpu_mode_submissions(device: Device, task: Path) -> None:
    measured = measure(device, task, {name: _dedent(source) for name, (source, _, _) in SUBMISSIONS.items()})
    assert (measured["reference"].status, measured["reference"].reason) == (Status.OK, "")
    for name, (_, status, reason) in SUBMISSIONS.items():
        assert measured[name].status is status, (name, measured[name])
        assert re.search(reason, measured[name].reason), (name, measured[name].reason)
    assert [case.case for case in measured["into its own"].cases] == ["size=128 scale=3"]


def _dedent(source: str) -> str:
    return textwrap.dedent(source)


@needs_torch
def test_what_only_offers_room_is_found_and_not_counted(device: Device, task: Path) -> None:
    with device.posed(registry.get(str(task)), 60.0) as problem:
        assert [(array.name, array.written) for array in problem.inputs] == [
            ("data[0]", False),
            ("data[1]['other']", False),
            ("data[2]", True),
        ]
        (case,) = problem.timed[device.kind]
        assert problem.bytes(case) == 3 * 128 * 128 * 4


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
    sources = {name: _dedent(source) for name, source in FOR_A_GPU.items()}
    unbuilt = sources["extension"].replace("fmaxf(x[i]", "fmaxf(y[i]")
    measured = measure(gpu, path, {**sources, "unbuilt": unbuilt})
    for name in ("reference", *sources):
        assert (measured[name].status, measured[name].reason) == (Status.OK, ""), name
    assert measured["unbuilt"].status is Status.COMPILE_ERROR
    assert 'error: identifier "y" is undefined' in measured["unbuilt"].reason


# -- references that do not do as they should -------------------------------------------------------------------------

BROKEN = {
    "raises": ("    gen = torch.Generator()", "    raise KeyError('oh')", "its reference failed: KeyError: 'oh'"),
    "hangs": (
        "    gen = torch.Generator()",
        "    while True: pass",
        "its reference failed: was still running after 2 s",
    ),
    "import": ("import torch\n", "import torch\nimport nosuch\n", "ModuleNotFoundError: No module named 'nosuch'"),
    "object": ('"scale": scale', '"scale": object()', r"data\[1\]\['scale'\] is a builtins.object, which cannot be"),
    "shapes": ('"scale": scale', '"scale": scale, "more": torch.empty(seed % 997)', "when the seed is another"),
    "numbers": ('"scale": scale', '"scale": seed', "when the seed is another"),
    "answer": ("    return output\n", "    return 1.0\n", "the reference returns a builtins.float; only a tensor"),
    "crashes": ("    gen = torch.Generator()", "    import ctypes; ctypes.string_at(0)", "was killed by SIGSEGV"),
}


@needs_torch
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reference_is_no_kernel_s_fault(device: Device, task: Path, name: str) -> None:
    old, new, complaint = BROKEN[name]
    (task / "reference.py").write_text(REFERENCE.replace(old, new))
    timeout = 2.0 if name == "hangs" else 5.0
    with pytest.raises(PresageError, match=complaint):
        measure(device, task, {}, Effort(precision=5.0, case_seconds=1.0, timeout=timeout))


CHECKS = {
    "a text": ("'' if output.equal(ref_kernel(data)) else 'no'", ": no"),
    "a truth value": ("bool(output.equal(ref_kernel(data)))", "check_implementation refuses it"),
}


@needs_torch
@pytest.mark.parametrize(("verdict", "said"), CHECKS.values(), ids=CHECKS)
def test_a_check_that_says_only_one_thing(device: Device, task: Path, verdict: str, said: str) -> None:
    """What is wrong, if anything, as in an older form; or whether it is right."""
    check = f"def check_implementation(data, output):\n    return {verdict}\n"
    (task / "reference.py").write_text(REFERENCE.replace("check_implementation = ", "_ = ") + check)
    measured = measure(device, task, {"wrong": SUBMISSIONS["wrong"][0]})
    assert [m.status for m in measured.values()] == [Status.OK, Status.WRONG_RESULT]
    assert measured["wrong"].reason.endswith(said)


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


VIEWS = {
    "repeated": ("x.repeat(50, 1)", {"(x + 0).expand(50, -1)": Status.WRONG_RESULT, "torch.cat([x] * 50)": Status.OK}),
    "views": ("((x + 1).expand(50, -1), x.t())", {"((1 + x).expand(50, -1), x.t())": Status.OK}),
}


@needs_torch
@pytest.mark.parametrize(("reference", "candidates"), VIEWS.values(), ids=VIEWS)
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


# -- tensors on the catalogue's problems ------------------------------------------------------------------------------

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
