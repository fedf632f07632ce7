"""On a GPU: what honest modules of every sort are believed as, and that replays take as long as the modules."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from presage import Effort, Kernel, Measurement, PresageError, Problem, Status
from presage.devices.cuda import CudaDevice
from presage.kernels.kernel import from_source, read
from presage.problems import registry

HONEST = Path(__file__).parents[1] / "exploits" / "gpu" / "honest"
QUICK = Effort(precision=0.05, case_seconds=0.5, timeout=60.0, rounds=5, processes=1)
NEAR, LOOKS = 0.03, 3

TORCH = """
import torch

def custom_kernel(data):
    x, y = data
    return torch.add(x, y)
"""
STEPS = """
import torch

def custom_kernel(data):
    x, y = data
    both = x * 1
    both.add_(y)
    return both.view(-1).view(x.shape)
"""
WEIGHTS = """
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1))
        self.zero = torch.nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, x, y):
        return torch.addcmul(y + self.zero, x, self.one)
"""
BUFFER = """
import torch

room = {}

def custom_kernel(data):
    x, y = data
    if x.shape not in room:
        room[x.shape] = torch.empty_like(x)
    scratch = room[x.shape]
    scratch.copy_(x)
    scratch.add_(y)
    return scratch.clone()
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(z + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)

def custom_kernel(data):
    x, y = data
    z = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK=1024)
    return z
"""
MIXED = TRITON.replace("    return z\n", "    return z.mul_(2.0).mul(0.5)\n")
ITEM_OF_INPUTS = """
import torch

def custom_kernel(data):
    x, y = data
    return x + y if bool((x == x).any().item()) else y.clone()
"""
ITEM_OF_WEIGHTS = """
import torch

scale = torch.ones(1, device="cuda")

def custom_kernel(data):
    x, y = data
    return torch.add(x, y, alpha=scale.item())
"""
LIBRARY = """
import ctypes
import torch

cudart = ctypes.CDLL(None)

def custom_kernel(data):
    x, y = data
    z = torch.empty_like(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.add(x, y, out=z)
    torch.cuda.current_stream().wait_stream(stream)
    return z
"""
PROGRAM = """
import subprocess
import torch

assert subprocess.run(["/bin/echo", "hello"], capture_output=True, text=True).stdout == "hello\\n"

def custom_kernel(data):
    x, y = data
    return x + y
"""

SORTS: dict[str, tuple[str, set[str | None]]] = {
    "pure torch": (TORCH, {"replay"}),
    "several steps": (STEPS, {"replay"}),
    "weights": (WEIGHTS, {"replay"}),
    "a buffer of its own": (BUFFER, {"replay"}),
    "triton": (TRITON, {"replay"}),
    "torch and triton": (MIXED, {"replay"}),
    "a number read from the inputs": (ITEM_OF_INPUTS, {"worker"}),
    "a number read from a weight": (ITEM_OF_WEIGHTS, {"replay"}),
    "streams that are joined": (LIBRARY, {"replay", "worker"}),
    "a program that is run while it is loaded": (PROGRAM, {"replay"}),
}
FILES: dict[str, set[str | None]] = {
    "captured_graph.py": {"replay", "worker"},
    "captured_triton_graph.py": {"replay", "worker"},
    "autotuned.py": {"replay"},
    "compiled_ahead.py": {"replay", "worker"},
    "constant_memory.py": {"worker"},
    "copies_and_waits.py": {"replay"},
    "inline_extension.py": {"replay", "worker"},
    "joined_thread.py": {"worker"},
    "launched_by_pointer.py": {"replay"},
    "model_new.py": {"replay"},
    "value_to_the_host.py": {"worker"},
    "workspace.py": {"replay"},
    "counts_its_calls.cu": {"replay"},
}


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    try:
        device = CudaDevice()
    except PresageError as error:
        pytest.skip(str(error))
    yield device
    device.close()


def _problem(name: str) -> Problem:
    problem = copy.copy(registry.get(name))
    problem.timed = {**problem.timed, "gpu": problem.timed["gpu"][-1:]}  # type: ignore[misc]  # one is enough here
    return problem


def _measured(device: CudaDevice, kernel: Kernel, problem: str = "vector_add") -> Measurement:
    (found,) = device.measure(_problem(problem), [kernel], QUICK, lambda doing, share: None)
    assert found.status is Status.OK, f"{found.reason}\n{found.output}"
    return found


@pytest.mark.parametrize("name", SORTS)
def test_every_sort_is_a_kernel(name: str) -> None:
    assert from_source(SORTS[name][0], ".py", "k.py").language in CudaDevice.languages


@pytest.mark.cuda
@pytest.mark.parametrize("name", SORTS)
def test_what_a_module_is_believed_as(name: str, device: CudaDevice) -> None:
    source, believed = SORTS[name]
    found = _measured(device, from_source(source, ".py", "k.py"))
    assert found.believed in believed, found.not_replayed
    assert bool(found.not_replayed) == (found.believed == "worker")


@pytest.mark.cuda
@pytest.mark.parametrize("name", FILES)
def test_what_a_look_alike_is_believed_as(name: str, device: CudaDevice) -> None:
    kernel = read(HONEST / name)
    found = _measured(device, kernel, str(kernel.header.problem))
    assert found.believed in FILES[name], found.not_replayed


@pytest.mark.cuda
@pytest.mark.parametrize("source", [TORCH, TRITON], ids=["torch", "triton"])
def test_replay_and_worker_agree(source: str, device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large case, in which neither the host nor the cache decides. What else runs on the machine may slow one of
    them, so they are compared up to three times."""
    from presage.devices.module_trial import ModuleTrial

    ratios = []
    while len(ratios) < LOOKS and not (ratios and median(ratios) == pytest.approx(1, rel=NEAR)):
        replay = _measured(device, from_source(source, ".py", "k.py"))
        with monkeypatch.context() as patch:
            patch.setattr(ModuleTrial, "_why_not", lambda self, cases: "this is a test")
            worker = _measured(device, from_source(source, ".py", "k.py"))
        assert (replay.believed, worker.believed) == ("replay", "worker")
        ratios.append(worker.cases[0].median.value / replay.cases[0].median.value)
    assert median(ratios) == pytest.approx(1, rel=NEAR), ratios


@pytest.mark.cuda
def test_a_caller_waits_for_slow_host_code(device: CudaDevice) -> None:
    source = TORCH.replace("    x, y = data\n", "    x, y = data\n    sum(range(200_000))\n")
    found = _measured(device, from_source(source, ".py", "k.py"))
    wait = found.cases[0].wait_ns
    assert found.believed == "replay"
    assert wait is not None
    assert wait > 1.2 * found.cases[0].median.value


@pytest.mark.cuda
def test_the_share_of_its_own_kernels(device: CudaDevice) -> None:
    shares = []
    for source in (TORCH, TRITON, MIXED):
        found = _measured(device, from_source(source, ".py", "k.py"))
        assert found.believed == "replay", found.not_replayed
        (trace,) = found.facts["traces"].values()
        shares.append(trace["own_share"])
    assert shares[0] == 0
    assert shares[1] == 1
    assert 0 < shares[2] < 1
