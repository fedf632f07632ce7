"""`presage inspect`, as a user calls it."""

import json
import re

import pytest
from sweeps import others_in_sweeps

from presage.cli import main
from presage.static import toolkit


@pytest.fixture
def inspect(monkeypatch, capsys):
    """inspect(*arguments): exit status, standard output, standard error."""
    monkeypatch.setitem(main.COMMANDS, "inspect", "what compiling tells")

    def run(*arguments):
        status = main.main(["inspect", *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def _compiler():
    try:
        toolkit.nvrtc(), toolkit.includes(), toolkit.program("nvdisasm")
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("_compiler")
def test_table(inspect):
    status, output, _ = inspect("softmax", "block_row.cu@THREADS=512", "--target", "h200", "--fail")
    assert status == 0
    assert inspect("softmax", "block_row.cu@THREADS=512", "--device", "recorded:h200")[1] == output
    assert "NVIDIA H200" in output
    assert "16384  512" in output
    assert "rows=1024 cols=32768" in output
    assert "global load 128" in output


def test_a_cpu_is_no_target(inspect):
    status, output, errors = inspect("softmax", "block_row.cu", "--device", "cpu")
    assert (status, output) == (2, "")
    assert errors == "presage: nothing is compiled for cpu; name a GPU with --target\n"


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize("target", others_in_sweeps({name: name for name in ("sm_80", "sm_90", "sm_100")}, "sm_90"))
def test_json(inspect, target):
    status, output, _ = inspect("softmax", "block_row.cu", "--target", target, "--case", "2", "--json")
    document = json.loads(output)
    assert (status, document["status"], document["error"]) == (0, "ok", None)
    (launch,) = document["launches"]
    assert launch["case"] == "rows=1024 cols=32768"
    assert launch["grid"] == [1024, 1, 1]
    assert launch["block"] == [256, 1, 1]
    wanted = {"name", "registers", "spill_bytes", "stack_bytes", "shared_bytes", "occupancy", "instructions"}
    assert wanted <= set(launch)
    assert launch["shared_bytes"] == 256


MATRICES = """
// presage: entry tile
// presage: grid 1
// presage: block 32
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void tile(const float *x, float *y, int rows, int cols) {
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> a;
    fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> b;
    fragment<accumulator, 16, 16, 8, float> c;
    fill_fragment(c, 0.0f);
    load_matrix_sync(a, x, 16);
    load_matrix_sync(b, x, 16);
    mma_sync(c, a, b, c);
    store_matrix_sync(y, c, 16, mem_row_major);
}
"""


@pytest.mark.usefixtures("_compiler")
def test_what_is_not_known_is_not_said_to_be_nothing(inspect, tmp_path):
    file = tmp_path / "tile.cu"
    file.write_text(MATRICES)
    status, output, _ = inspect("softmax", str(file), "--case", "1")
    assert status == 0
    *_, last = output.splitlines()
    assert last.split()[-4:] == ["?", "?", "-", "-"]


@pytest.mark.usefixtures("_compiler")
def test_a_kernel_that_does_not_compile_is_a_result(inspect, tmp_path):
    file = tmp_path / "bad.cu"
    file.write_text('// presage: entry softmax\nextern "C" __global__ void softmax() { nonsense; }\n')
    status, output, _ = inspect("softmax", str(file), "--json")
    document = json.loads(output)
    assert (status, document["status"], document["launches"]) == (0, "compile_error", [])
    assert 'identifier "nonsense" is undefined' in document["error"]
    status, output, _ = inspect("softmax", str(file))
    assert status == 0
    assert output.count("nonsense") == 2
    assert inspect("softmax", str(file), "--fail")[0] == 1
    assert "all cases: compile_error" in output


SCALED = """
import torch

class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x, shift):
        return torch.relu(x * self.weight + shift)

def get_inputs():
    return [torch.rand(300, 1000), 2.0]

def get_init_inputs():
    return [1000]
"""
SCALED_CANDIDATE = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, weight, y, shift, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + i
    scaled = tl.load(x + at, mask=i < columns) * tl.load(weight + i, mask=i < columns) + shift
    tl.store(y + at, tl.maximum(scaled, 0.0), mask=i < columns)

class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x, shift):
        y = torch.empty_like(x)
        scale[(len(x),)](x, self.weight, y, shift, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return y
"""


@pytest.fixture
def _triton():
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    try:
        toolkit.program("nvdisasm")
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.usefixtures("_triton")
def test_a_kernelbench_candidate(inspect, tmp_path):
    problem, kernel = tmp_path / "scaled.py", tmp_path / "new.py"
    problem.write_text(SCALED)
    kernel.write_text(SCALED_CANDIDATE)
    status, output, _ = inspect("--problem", str(problem), str(kernel), "--json")
    document = json.loads(output)
    assert (status, document["status"], document["error"]) == (0, "ok", None)
    (launch,) = document["launches"]
    assert (launch["case"], launch["grid"], launch["options"]["constants"]["BLOCK"]) == (
        "as written",
        [300, 1, 1],
        1024,
    )
    problem.write_text(SCALED.replace("return [1000]", "return [torch.rand(3).argmax().item()]"))
    _, output, _ = inspect(str(problem), str(kernel))
    assert "as written: unknown\n  the problem's reference failed here, where tensors have no values" in output


@pytest.mark.slow
@pytest.mark.usefixtures("_triton")
def test_what_the_host_computes_has_no_time_of_the_gpu(inspect, tmp_path):
    module = "import torch\ndef custom_kernel(data):\n    %s\n    return torch.softmax(data[0].cpu(), -1).cuda()\n"
    two = "[torch.zeros(size, device='cuda') for size in (8, 24)]"
    (tmp_path / "mine.py").write_text(module % two)
    _, output, _ = inspect("softmax", str(tmp_path / "mine.py"))
    assert re.search(r"^_softmax +host +1  +float32\[16384, 1024\]  134.2 MB  16.78 M$", output, re.MULTILINE)
    assert re.search(r"^_to_copy +copy +2 .* 100.0%$", output, re.MULTILINE)
    assert re.search(r"^zeros +operator  2  +128 B  +32 ", output, re.MULTILINE), "two sizes in one line"
    assert "the host computes 1 of its steps, on tensors in its own memory" in output


TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "task.py", "source": "task.py"}
tests:
  - {"size": 16, "seed": 1}
benchmarks:
  - {"size": 1000, "seed": 2}
  - {"size": 5000, "seed": 3}
"""
INCREMENT = """
import torch
from task import input_t, output_t

def generate_input(size: int, seed: int) -> input_t:
    chance = torch.Generator(device="cuda").manual_seed(seed)
    heavy = torch.distributions.Cauchy(torch.tensor(0.0, device="cuda"), torch.tensor(2.0, device="cuda"))
    options = {"by": 1, "noise": heavy.sample((size,)), "order": torch.randperm(size, generator=torch.Generator())}
    return torch.rand(size, device="cuda", dtype=torch.float16, generator=chance), options

def ref_kernel(data: input_t) -> output_t:
    return data[0] + data[1]["by"]

def check_implementation(data, output):
    return True, ""
"""
INCREMENT_SUBMISSION = """
import torch
import triton
import triton.language as tl
from task import input_t, output_t

@triton.jit
def increment(x, y, by, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + by, mask=i < n)

def custom_kernel(data: input_t) -> output_t:
    x, options = data
    assert options["noise"].is_cuda and options["order"].is_cuda
    y = torch.empty_like(x)
    increment[(triton.cdiv(len(x), 256),)](x, y, options["by"], len(x), 256)
    return y
"""


@pytest.mark.slow
@pytest.mark.usefixtures("_triton")
def test_a_gpu_mode_submission(inspect, tmp_path):
    (tmp_path / "task.yml").write_text(TASK)
    (tmp_path / "task.py").write_text("input_t = output_t = tuple\n")
    (tmp_path / "reference.py").write_text(INCREMENT)
    (tmp_path / "mine.py").write_text(INCREMENT_SUBMISSION)
    status, output, _ = inspect(str(tmp_path), str(tmp_path / "mine.py"), "--json")
    document = json.loads(output)
    assert (status, document["status"], document["error"]) == (0, "ok", None)
    assert [(each["case"], each["grid"][0]) for each in document["launches"]] == [("size=1000", 4), ("size=5000", 20)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("softmax", "block_row.cu", "--target", "h2000"), "did you mean h200"),
        (("softmax", "block_row.cu", "--case", "9"), "softmax has no case 9; it has 1: rows=16384 cols=1024"),
        (("softmax", "naive.c"), "is a c kernel"),
        (("softmax", "missing.cu"), "no kernel file"),
        (("block_row.cu",), "a problem and a kernel are needed"),
        (("softmax", "block_row.cu", "--problem", "softmax"), "a problem and a kernel are needed"),
    ],
)
def test_mistakes_of_the_caller(inspect, arguments, message):
    status, output, errors = inspect(*arguments)
    assert (status, output) == (2, "")
    assert message in errors


def test_missing_compiler_names_the_command_that_installs_it(inspect, monkeypatch):
    monkeypatch.setattr(toolkit, "_roots", lambda: iter(()))
    monkeypatch.setenv("PATH", "")
    status, _, errors = inspect("softmax", "block_row.cu")
    assert status == 2
    assert "pip install 'presage-kernels[cuda]'" in errors
