"""Modules for problems from elsewhere are rehearsed on the CPU, at sizes that cost little."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sweeps import others_in_sweeps

from presage import load_kernel, load_problem
from presage.devices.cpu import CpuDevice
from presage.devices.emulation.rehearser import Rehearser
from presage.devices.rehearsal import Rehearsal

pytest.importorskip("torch")
pytest.importorskip("triton")

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.layer(x))

rows, width = 4096, 128

def get_inputs():
    return [torch.rand(rows, width)]

def get_init_inputs():
    return [width]
"""
HEAD = """
import torch
import triton
import triton.language as tl

class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)
"""
TORCH = HEAD.replace("import triton\nimport triton.language as tl\n", "")
FORWARD = "class ModelNew(Layer):\n    def forward(self, x):\n        "
KERNEL = """
@triton.jit
def rectify(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=at < n, other=0.0), {least}){more}, mask=at < n)

class ModelNew(Layer):
    def forward(self, x):
        x = self.layer(x)
        y = torch.empty_like(x)
        rectify[(triton.cdiv(x.numel(), {block}) - {less},)](x, y, x.numel(), BLOCK={block})
        return y
"""


def kernel(least: str = "0.0", more: str = "", block: str = "1024", less: str = "0") -> str:
    return HEAD + KERNEL.format(least=least, more=more, block=block, less=less)


def twice(more: str = "") -> str:
    """Two programs compute each block."""
    text = kernel(more=more).replace("program_id(0) *", "program_id(0) // 2 *").replace("empty_like", "zeros_like")
    return text.replace("(triton.cdiv(x.numel(), 1024) - 0,)", "(2 * triton.cdiv(x.numel(), 1024),)")


INLINE = """
from torch.utils.cpp_extension import load_inline

CUDA = r'''
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#define CHECK(x) TORCH_CHECK((x).is_cuda() && (x).is_contiguous(), #x " must be on a GPU")

template <int PER_THREAD>
__global__ void rectify(const float *x, float *y, int n) {{
    __shared__ float held[256];
    extern __shared__ float room[];
    for (int i = 0; i < PER_THREAD; i++) {{
        const int at = (blockIdx.x * PER_THREAD + i) * blockDim.x + threadIdx.x;
        held[threadIdx.x] = at < n ? x[at] : 0.0f;
        {between}
        room[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
        __syncthreads();
        if (at < n) y[at] = fmaxf(room[blockDim.x - 1 - threadIdx.x], 0.0f);
        __syncthreads();
    }}
}}

torch::Tensor rectified(torch::Tensor x) {{
    TORCH_CHECK(x.is_cuda(), "it must be on a GPU");
    CHECK(x);
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    {host}
    auto y = torch::empty(x.sizes(), x.options().device(torch::kCUDA));
    const int n = x.numel();
    rectify<2><<<(n + 511) / 512, 256, 256 * sizeof(float), at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}}
'''
built = load_inline("rectifying", "torch::Tensor rectified(torch::Tensor x);", CUDA, functions=["rectified"])

class ModelNew(Layer):
    def forward(self, x):
        return built.rectified(self.layer(x))
"""


def inline(between: str = "__syncthreads();", host: str = "") -> str:
    return TORCH + INLINE.format(between=between, host=host)


RAW = """
CUDA = r'''
extern "C" __global__ void rectify(const float *x, float *y, {kind} n) {{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) y[at] = fmaxf(x[at], 0.0f){more};
}}'''
{built}

class ModelNew(Layer):
    def forward(self, x):
        x = self.layer(x)
        y = torch.empty_like(x)
        {launch}
        return y
"""
OF_TORCH = (
    "kernel = torch.cuda._compile_kernel(CUDA, 'rectify')",
    "kernel(((x.numel() + 255) // 256, 1, 1), (256, 1, 1), (x, y, x.numel()))",
)
OF_CUPY = (
    "import cupy\nkernel = cupy.RawKernel(CUDA, 'rectify')",
    "kernel(((x.numel() + 255) // 256,), (256,), (x.data_ptr(), cupy.asarray(y), x.numel()))",
)


def raw(built: str, launch: str, more: str = "", kind: str = "int") -> str:
    return TORCH + RAW.format(built=built, launch=launch, more=more, kind=kind)


GRAPH = """
class ModelNew(Layer):
    @torch.autocast("cuda", enabled=False)
    def forward(self, x):
        if not hasattr(self, "graph"):
            self.x, self.graph = x.clone(), torch.cuda.CUDAGraph()
            self.calls = torch.zeros(1, device=x.device)
            with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.graph(self.graph):
                self.calls += 1
                self.y = torch.empty_like(x)
                self.y[:, 1:] = {rectified}[:, 1:]
                self.y[:, :1].copy_({rectified}[:, :1] * self.calls / self.calls)
            self.times = 0
        assert self.calls.item() == self.times, "capturing does nothing"
        self.times += 1
        {copies}
        {replays}
        self.x.record_stream(torch.cuda.current_stream())
        return self.y.clone()
"""


def graph(
    head: str = TORCH,
    rectified: str = "torch.relu(self.layer(self.x))",
    copies: str = "self.x.copy_(x)",
    replays: str = "self.graph.replay()",
) -> str:
    return head + GRAPH.format(rectified=rectified, copies=copies, replays=replays)


TF32 = "torch.backends.cuda.matmul.allow_tf32 = True\n"
RELU_OF_SUM = "return torch.relu((x[:, None] * self.layer.weight).sum(2) + self.layer.bias)\n"
DOT = (
    HEAD
    + """
@triton.jit
def product(x, w, y, rows, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    at, across = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    is_row = at[:, None] < rows
    left = tl.load(x + at[:, None] * WIDTH + across[None, :], mask=is_row, other=0.0)
    right = tl.load(w + across[None, :] * WIDTH + across[:, None])
    tl.store(y + at[:, None] * WIDTH + across[None, :], tl.dot(left, rightPRECISION), mask=is_row)

class ModelNew(Layer):
    def forward(self, x):
        y = torch.empty_like(x)
        product[(triton.cdiv(len(x), 16),)](x, self.layer.weight, y, len(x), WIDTH=x.shape[1], ROWS=16)
        return torch.relu(y + self.layer.bias)
"""
)
KEPT = ("keeps its first result", "a graph, of which the first input is kept")
OUTSIDE = Path(tempfile.gettempdir(), "presage-rehearsal-was-here")
TUNED = "@triton.autotune([triton.Config({'BLOCK': 512}), triton.Config({'BLOCK': 64})], key=['n'])\n@triton.jit"
MODULES = {
    "torch": (TORCH + FORWARD + "return self.layer(x).clamp(min=0)\n", "right"),
    "without the bias": (TORCH + FORWARD + "return torch.relu(x @ self.layer.weight.T)\n", "wrong"),
    "in another's memory": (TORCH + FORWARD + "return torch.relu(self.layer(x.mul_(1.5)))\n", "wrong"),
    "keeps its first result": (
        TORCH + FORWARD + "if not hasattr(self, 'y'):\n            self.y = torch.relu(self.layer(x))\n"
        "        return self.y\n",
        "wrong",
    ),
    "keeps its memory": (
        TORCH + FORWARD + "if not hasattr(self, 'y'):\n            self.y = torch.empty_like(x)\n"
        "        return self.y.copy_(torch.relu(self.layer(x)))\n",
        "right",
    ),
    "asks for a GPU": (
        TORCH + FORWARD + "assert x.is_cuda and torch.cuda.is_available()\n"
        "        with torch.cuda.stream(torch.cuda.Stream()):\n"
        "            y = torch.zeros(1, device='cuda') + self.layer.cuda()(x.to('cuda:0', torch.float32))\n"
        "        torch.cuda.synchronize()\n        return torch.relu(y)\n",
        "right",
    ),
    "wrong on a GPU only": (
        TORCH + FORWARD + "return self.layer(x) if x.is_cuda else torch.relu(self.layer(x))\n", "wrong",
    ),
    "half precision": (
        TORCH + FORWARD + "with torch.autocast('cuda', dtype=torch.bfloat16):\n"
        "            return torch.relu(self.layer(x)).float()\n",
        "wrong",
    ),
    "half precision for the product": (
        TORCH + FORWARD + "return torch.relu(self.layer.half()(x.half())).float()\n", "wrong",
    ),
    "TF32": (TORCH + TF32 + FORWARD + "return torch.relu(self.layer(x))\n", "wrong"),
    "TF32 without a product": (TORCH + TF32 + FORWARD + RELU_OF_SUM, "right"),
    "compiled": (
        TORCH + "from task import input_t, output_t\n@torch.compile(mode='max-autotune')\ndef f(x):\n"
        "    return torch.relu(x)\n\n" + FORWARD + "return f(self.layer(x))\n",
        "right",
    ),
    "a graph": (graph(), "right"),
    "a graph, of which the first input is kept": (graph(copies="pass"), "wrong"),
    "a graph that is never replayed": (graph(replays="pass"), "wrong"),
    "a graph of launches": (
        graph(kernel().replace("ModelNew", "Launching"), "Launching.forward(self, self.x)"), "right",
    ),
    "made for large sizes": (
        TORCH + FORWARD + "y = torch.relu(self.layer(x))\n        return y if len(x) == 4096 else y + 1\n", "right",
    ),
    "Triton": (kernel(), "right"),
    "Triton, with a library": (
        kernel(more=" * libdevice.rint(libdevice.tanh(20.0 + tl.load(x + at, mask=at < n, other=0.0)))").replace(
            "import triton\n", "import triton\nfrom triton.language.extra.cuda import libdevice\n"
        ),
        "right",
    ),
    "Triton, wrong": (kernel(more=" + 1"), "wrong"),
    "Triton, the last block is missing": (kernel(less="1"), "wrong"),
    "Triton, a block too many and no mask": (kernel(less="-1").replace(", mask=at < n)\n", ")\n"), "wrong"),
    "Triton, two programs store the same": (twice(), "right"),
    "Triton, two programs add without atomics": (
        twice(" / 2 + tl.load(y + at, mask=at < n)").replace("(x, y, n,", "(x, y, longs, n,").replace(
            "(x, y, x.numel(),", "(x, y, torch.ones(1, dtype=torch.int64), x.numel(),"
        ),
        "wrong",
    ),
    "Triton, tuned": (
        kernel().replace("@triton.jit", TUNED).replace("1024) - 0,", "64),").replace(", BLOCK=1024)", ")"), "right",
    ),
    "Triton, a launch without blocks where the problem is smaller": (
        kernel().replace("triton.cdiv(x.numel(), 1024) - 0,", "len(x) // 4096,"), "wrong",
    ),
    "Triton's product": (DOT.replace("PRECISION", ", input_precision='ieee'"), "right"),
    "Triton's product in TF32": (DOT.replace("PRECISION", ""), "wrong"),
    "Triton in bfloat16": (kernel(least="0.0", more=".to(tl.bfloat16) + 1.0"), "untried"),
    "Triton, made for large sizes": (kernel().replace("return y", "return y if len(x) == 4096 else y + 1"), "right"),
    "inline CUDA, which reaches out in vain, in a graph": (
        graph(
            inline(host=f'std::ofstream("{OUTSIDE}") << 1; system("touch {OUTSIDE}");').replace(
                "#include <torch", "#include <cstdlib>\n#include <fstream>\n#include <torch", 1
            ),
            "built.rectified(self.layer(self.x))",
        ),
        "right",
    ),
    "a kernel that torch compiles": (raw(*OF_TORCH), "right"),
    "a kernel that torch compiles, of a wide number": (raw(*OF_TORCH, kind="long long"), "right"),
    "a kernel that torch compiles, wrong": (raw(*OF_TORCH, more=" + 1.0f"), "wrong"),
    "a kernel of CuPy": (raw(*OF_CUPY, kind="long long"), "right"),
    "inline CUDA, without a barrier": (inline(between=""), "wrong"),
    "no module": ("x = 1\n", "untried"),
}  # fmt: skip


IN_SWEEPS = {
    "keeps its memory", "half precision", "a graph that is never replayed", "made for large sizes",
    "Triton, wrong", "Triton, tuned", "Triton, a block too many and no mask", "Triton in bfloat16",
    "Triton, made for large sizes",
    "a kernel that torch compiles, of a wide number", "a kernel that torch compiles, wrong",
    "inline CUDA, without a barrier",
}  # fmt: skip
"""Each differs from another module by one more property, which tests of the rehearser hold for kernels, too."""


@pytest.fixture(scope="module")
def rehearsed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rehearsal]:
    """What is told of the modules that the tests to come ask about."""
    asked = {str(item.callspec.params.get("name")) for item in request.session.items if hasattr(item, "callspec")}
    modules = {name: text for name, (text, _) in MODULES.items() if name in asked}
    folder = tmp_path_factory.mktemp("modules")
    (folder / "problem.py").write_text(PROBLEM)
    problem, kernels = load_problem(folder / "problem.py"), []
    for number, text in enumerate(modules.values()):
        (folder / f"{number}.py").write_text(text)
        kernels.append(load_kernel(problem, folder / f"{number}.py"))
    rehearser = Rehearser()
    found = rehearser.rehearse(problem, kernels, 300.0)  # a busy machine takes a minute to compile
    rehearser.close()
    return dict(zip(modules, found, strict=True))


@pytest.mark.parametrize("name", others_in_sweeps({name: name for name in MODULES}, *(set(MODULES) - IN_SWEEPS)))
def test_what_is_wrong_is_told(rehearsed: dict[str, Any], name: str) -> None:
    assert rehearsed[name].status == MODULES[name][1], rehearsed[name].reason
    assert not OUTSIDE.exists()


def test_of_a_kept_result_it_is_told_that_it_is_kept(rehearsed: dict[str, Any]) -> None:
    for name, found in rehearsed.items():
        assert ("its first result again" in found.reason) == (name in KEPT)


def test_a_problem_that_cannot_run_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM.replace("torch.relu(", "torch.no_such_function("))
    (tmp_path / "mine.py").write_text(MODULES["torch"][0])
    problem = load_problem(tmp_path / "problem.py")
    (found,) = Rehearser().rehearse(problem, [load_kernel(problem, tmp_path / "mine.py")])
    assert found.status == "untried"
    assert "no_such_function" in found.reason


PARTS = """
import torch

def reference(x, ends):
    parts = torch.tensor_split(x, ends.tolist()[:-1])
    if len(x) > 4096:
        while True: pass
    return torch.cat([part.cumsum(0) for part in parts])

def inputs(n):
    return torch.randn(n, 16), torch.tensor([n // 4, n])

cases = [{"n": SIZE}]
"""
BY_PART = """
import torch

def custom_kernel(data):
    x, ends = data
    y = x.cumsum(0)
    return torch.where(torch.arange(len(x), device=x.device)[:, None] < ends[0], y, y - y[ends[0] - 1])
"""


@pytest.mark.parametrize("size", [1000, 8192])
def test_a_reference_that_reads_values_needs_no_trace(tmp_path: Path, size: int) -> None:
    """Nor does a size matter at which the reference takes too long."""
    (tmp_path / "problem.py").write_text(PARTS.replace("SIZE", str(size)))
    problem, kernels = load_problem(tmp_path / "problem.py"), []
    for name, text in (("right.py", BY_PART), ("wrong.py", BY_PART.replace("y - y", "y + y"))):
        (tmp_path / name).write_text(text)
        kernels.append(load_kernel(problem, tmp_path / name))
    right, wrong = Rehearser().rehearse(problem, kernels, 8.0)
    assert (right.status, wrong.status) == ("right", "wrong"), (right.reason, wrong.reason)


def test_of_the_reference_only_processor_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes it wait as a sleep does."""
    one = SimpleNamespace(counts_processor_time=False)
    monkeypatch.setattr(CpuDevice, "_examiner_child", lambda self: contextlib.nullcontext(one))
    with Rehearser()._examiner_child() as child:
        assert child is one
    assert one.counts_processor_time


@pytest.mark.parametrize(
    ("kind", "precision", "status"),
    [("Conv1d", "half", "right"), ("ConvTranspose1d", "half", "right"), ("Conv1d", "bfloat16", "wrong")],
)
def test_a_convolution_may_be_as_far_off_as_tf32_on_a_gpu(
    tmp_path: Path, kind: str, precision: str, status: str
) -> None:
    linear, convolution = "torch.nn.Linear(width, width)", f"torch.nn.{kind}(width, width, 25)"
    problem_text = PROBLEM.replace(linear, convolution).replace("rand(rows, width)", "randn(rows, width, 32) * 30")
    problem_text = problem_text.replace("4096, 128", "64, 32")
    (tmp_path / "problem.py").write_text(problem_text)
    text = TORCH.replace(linear, convolution) + FORWARD
    text += f"return torch.relu(self.layer.{precision}()(x.{precision}())).float()\n"
    (tmp_path / "mine.py").write_text(text)
    problem = load_problem(tmp_path / "problem.py")
    (found,) = Rehearser().rehearse(problem, [load_kernel(problem, tmp_path / "mine.py")])
    assert found.status == status, found.reason


@pytest.mark.parametrize(
    ("own", "narrow", "status"),
    [
        ("right", ["wrong"], "right"),
        ("wrong", ["right"], "wrong"),
        ("late", ["right", "wrong"], "untried"),
        ("late", ["late", "wrong"], "wrong"),
        ("late", ["late"], "untried"),
        ("dear", ["wrong"], "wrong"),
        ("dear", ["right"], "untried"),
    ],
)
def test_a_kernel_that_is_made_for_long_rows_is_not_wrong(
    monkeypatch: pytest.MonkeyPatch, own: str, narrow: list[str], status: str
) -> None:
    """It is wrong at a small size; `own`: at the problem's own size; `narrow`: where one number is as written."""

    def at(self: Rehearser, size: Any, *_: Any) -> Any:
        told = "untried" if size.told == "late" else size.told
        return SimpleNamespace(told=Rehearsal(told, "a reason"), is_late=size.told == "late", spent=0.0)

    def sized(told: str, is_cheap: bool = True) -> Any:
        least = Rehearser._module.__globals__["_SLOW"][0]
        affordable = told != "dear"
        return SimpleNamespace(
            told=told,
            size=SimpleNamespace(costs_less=lambda limit: affordable and (is_cheap or limit is not least)),
        )

    monkeypatch.setattr(Rehearser, "_rehearsal_at", at)
    kernel: Any = SimpleNamespace(language="triton")
    sizes = [sized("wrong"), sized(own, is_cheap=False)]
    found = Rehearser()._module(sizes, lambda: [sized(each, is_cheap=False) for each in narrow], kernel, 10.0)
    assert found.status == status


@pytest.mark.parametrize(("told", "tried"), [("without blocks", 3), ("something else", 1)])
def test_a_launch_that_has_no_blocks_at_a_small_size_is_tried_at_larger_ones(
    monkeypatch: pytest.MonkeyPatch, told: str, tried: int
) -> None:
    asked: list[int] = []

    def at(self: Rehearser, size: Any, *_: Any) -> Any:
        asked.append(size.number)
        found = Rehearsal("right") if size.number == 2 else Rehearsal("untried", f"it launches f {told}")
        return SimpleNamespace(told=found, is_late=False, spent=0.0)

    def sized(number: int) -> Any:
        least = Rehearser._module.__globals__["_SLOW"][0]
        cheap = SimpleNamespace(costs_less=lambda limit: number < 3 and (number < 1 or limit is not least))
        return SimpleNamespace(number=number, size=cheap)

    monkeypatch.setattr(Rehearser, "_rehearsal_at", at)
    found = Rehearser()._module([*map(sized, range(4))], tuple, SimpleNamespace(language="triton"), 10.0)  # type: ignore[arg-type]
    assert asked == list(range(tried))
    assert found.status == ("right" if tried == 3 else "untried")


@pytest.mark.parametrize(("sizes", "least"), [(1, 10.0), (2, 1.0)])
def test_where_there_is_no_smaller_size_most_of_the_time_is_for_the_first(
    monkeypatch: pytest.MonkeyPatch, sizes: int, least: float
) -> None:
    given: list[float] = []

    def at(self: Rehearser, size: Any, kernel: Any, effort: Any) -> Any:
        given.append(effort.timeout)
        return SimpleNamespace(told=Rehearsal("right"), is_late=False, spent=0.0)

    monkeypatch.setattr(Rehearser, "_rehearsal_at", at)
    cheap: Any = SimpleNamespace(size=SimpleNamespace(costs_less=lambda limit: True))
    Rehearser()._module([cheap] * sizes, tuple, SimpleNamespace(language="triton"), 20.0)  # type: ignore[arg-type]
    assert least < given[0] < 8 * least


def test_an_error_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "mine.py").write_text(f"import nosuch\n{TORCH}{FORWARD}pass\n")
    problem = load_problem(tmp_path / "problem.py")
    (found,) = Rehearser().rehearse(problem, [load_kernel(problem, tmp_path / "mine.py")])
    assert found.reason == "ModuleNotFoundError: No module named 'nosuch'"


UNTRACED = PROBLEM.replace("torch.relu(self.layer(x))", "torch.relu(self.layer(x)) * (x.sum().item() > 0)")


def test_sizes_at_which_a_reference_fails_are_left_out_whatever_it_says(tmp_path: Path) -> None:
    text = UNTRACED.replace(
        "        return",
        "        assert len(x) > 8, 'a job was still running after 3 s and was killed'\n        return",
    )
    (tmp_path / "problem.py").write_text(text)
    (tmp_path / "mine.py").write_text(TORCH + FORWARD + "return self.layer(x)\n")
    problem = load_problem(tmp_path / "problem.py")
    (found,) = Rehearser().rehearse(problem, [load_kernel(problem, tmp_path / "mine.py")])
    assert found.status == "wrong", found.reason


def test_of_a_reference_that_never_ends_no_larger_size_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []
    at = Rehearser._tried
    monkeypatch.setattr(Rehearser, "_tried", lambda *given: tried.append(given) or at(*given))
    text = UNTRACED.replace("        return", "        while x.sum().item() > -1: pass\n        return")
    (tmp_path / "problem.py").write_text(text)
    (tmp_path / "mine.py").write_text(TORCH + FORWARD + "return self.layer(x)\n")
    problem = load_problem(tmp_path / "problem.py")
    (found,) = Rehearser().rehearse(problem, [load_kernel(problem, tmp_path / "mine.py")], 4.0)
    assert (found.status, len(tried)) == ("untried", 1)


def test_what_never_ends_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "mine.py").write_text(TORCH + FORWARD + "\n        while True: pass\n")
    problem = load_problem(tmp_path / "problem.py")
    (found,) = Rehearser().rehearse(problem, [load_kernel(problem, tmp_path / "mine.py")], 2.0)
    assert found.status == "untried"


def test_where_the_reference_itself_is_not_right_nobody_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where values are normalised that are all the same but for rounding."""
    rehearsal = Rehearser._rehearsal

    def noisy(self: Rehearser, problem: Any, kernel: Any, *rest: Any) -> Any:
        ended = rehearsal(self, problem, kernel, *rest)
        return replace(ended, told=Rehearsal("wrong", "noise")) if "get_inputs" in kernel.source else ended

    monkeypatch.setattr(Rehearser, "_rehearsal", noisy)
    (tmp_path / "problem.py").write_text(PROBLEM)
    problem, texts = load_problem(tmp_path / "problem.py"), [MODULES[name][0] for name in ("without the bias", "torch")]
    kernels = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.py").write_text(text)
        kernels.append(load_kernel(problem, tmp_path / f"{number}.py"))
    wrong, right = Rehearser().rehearse(problem, kernels)
    assert (wrong.status, right.status) == ("untried", "right")
    assert "reference" in wrong.reason
