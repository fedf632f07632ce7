"""Tracing modules without a GPU: what cannot be followed, what is compiled, and which errors are no module's fault."""

from __future__ import annotations

from typing import Any

import pytest

from presage.static.trace import COMPILED, NO_TENSOR, SCRIPTED

HEAD = "import torch\n"
X = ((64, 128), "float32")


@pytest.mark.parametrize("value", ["x.max().item()", "torch.from_numpy(x.cpu().numpy()).cuda()"])
def test_values_of_inputs_cannot_be_read(inspect_source: Any, value: str) -> None:
    report = inspect_source(HEAD + f"def custom_kernel(data):\n    x, = data\n    return x * {value}\n", ".py", X)
    assert report.status == "unknown"
    assert "value" in report.error


@pytest.mark.parametrize("result", ["{'x': x}", "(x for x in data)", "x.to_sparse()"])
def test_what_is_returned_and_no_tensor_is_named(inspect_source: Any, result: str) -> None:
    report = inspect_source(HEAD + f"def custom_kernel(data):\n    x, = data\n    return {result}\n", ".py", X)
    assert report.status == "unknown" or report.trace.lacks.startswith(NO_TENSOR)


NOT_KNOWN = {
    "a thread fails": ("pool.submit(int, 'x').result()", "starts threads"),
    "a thread works": ("pool.submit(torch.add, x, 1).result()", "starts threads"),
    "a program": ("subprocess.run(['uname'], check=True) and x", "starts a program"),
    "flex_attention": ("flex_attention(*[x[None, None]] * 3)", "takes functions"),
    "cond": ("torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))", "takes functions"),
    "CuPy's arrays": ("__import__('cupy').square(x)", "a part of CuPy"),
    "CuPy's modules": ("importlib.import_module('cupy.fft') and x", "a part of CuPy"),
    "CuPy's names": ("exec('from cupy import ElementwiseKernel') or x", "a part of CuPy"),
    "the driver": ("ctypes.CDLL('libcuda.so.1') and x", "cannot do without a GPU"),
}


@pytest.mark.parametrize(("result", "says"), NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_what_cannot_be_followed_is_not_known(inspect_source: Any, result: str, says: str) -> None:
    head = (
        f"{HEAD}import ctypes, importlib, subprocess\nimport cupy\nfrom concurrent.futures import ThreadPoolExecutor\n"
    )
    head += "from torch.nn.attention.flex_attention import flex_attention\n"
    body = f"pool = ThreadPoolExecutor(1)\ndef custom_kernel(data):\n    x, = data\n    return {result}\n"
    report = inspect_source(head + body, ".py", X)
    assert (report.status, says in str(report.error)) == ("unknown", True), report.error


def test_a_model_that_keeps_its_compiled_self(inspect_source: Any) -> None:
    """What is compiled does not see what the model is given later, so it does not call itself."""
    body = """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.script = torch.nn.Linear(128, 8), None
        self.script = torch.jit.script(self)

    def forward(self, x):
        return self.script(x) if self.script is not None else self.layer(x)
"""
    report = inspect_source(HEAD + body, ".py", X)
    assert [step.name for step in report.trace.steps if step.kind == "operator"] == ["aten::addmm.default"]
    assert SCRIPTED in report.trace.notes


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param("@torch.compile\ndef f(x):\n    return x + 1\n", True, id="a function"),
        pytest.param("f = torch.compile(torch.nn.ReLU())\n", True, id="a model"),
        pytest.param("f = torch.nn.ReLU()\nf.compile()\n", True, id="a model that compiles itself"),
        pytest.param("@torch.compile(mode='max-autotune')\ndef f(x):\n    return x + 1\n", True, id="with options"),
        pytest.param("g = torch.compile(torch.relu)\ndef f(x):\n    return x + 1\n", False, id="never called"),
    ],
)
def test_a_trace_says_that_torch_compiles_what_is_called(inspect_source: Any, body: str, told: bool) -> None:
    call = "def custom_kernel(data):\n    return f(data[0])\n"
    trace = inspect_source(HEAD + body + call, ".py", X).trace
    assert (COMPILED in trace.notes) is told


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Error building extension 'x': cuda.cu:6:2: error: ‘cublasSgemm’ was not declared in this scope", "unknown"),
        ("Error building extension 'x': main.cpp:1:10: fatal error: cudnn.h: No such file or directory", "unknown"),
        ('cuda.cu(2): catastrophic error: cannot open source file "curand_kernel.h"', "unknown"),
        ("Error building extension 'x': cuda.cu:6:2: error: ‘product’ was not declared in this scope", "runtime_error"),
        ("Cannot access accelerator device when none is available.", "unknown"),
        ("Error building extension 'x': x.so: undefined symbol: cudaStreamBeginCapture", "unknown"),
        ("Error building extension 'x': x.so: undefined symbol: cublasSgemm_v2", "unknown"),
        ("x.so: undefined symbol: _ZN2at4cuda24getCurrentCUDABlasHandleEb", "unknown"),
        ("x.so: undefined symbol: custom_kernel", "runtime_error"),
        ("x.so: undefined symbol: _Z8my_cuda_kv", "runtime_error"),
        ("a cublas handle was expected", "runtime_error"),
    ],
)
def test_what_is_not_here_is_no_fault_of_the_module(has_triton: None, message: str, status: str) -> None:
    from presage.static.tracing import run

    assert run._status(RuntimeError(message)) == status


@pytest.mark.parametrize(
    ("reason", "is_unknown", "says"),
    [
        ("Block pointers have been removed in favor of descriptors", True, "lacks what it uses: Block pointers have"),
        ("input and other must have equal ranks", False, "CompilationError: input and other must"),
    ],
)
def test_of_what_triton_s_compiler_says_the_reason_comes_first(
    has_triton: None, reason: str, is_unknown: bool, says: str
) -> None:
    import ast

    from triton.compiler.errors import CompilationError

    from presage.static.tracing import run

    error = CompilationError("x = tl.dot(a, b)", ast.parse("x = 1").body[0], reason)
    told = run._explain(error).splitlines()
    assert says in told[0]
    assert told[1] == "at 1:0:"
    assert (run._status(error) == "unknown") is is_unknown
