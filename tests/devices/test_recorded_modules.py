"""What a recorder has seen a module do on the CPU gives the same on other inputs, without the module."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices.worker.replay import Program, constants, placed  # noqa: E402
from presage.static.trace import Trace  # noqa: E402

recording = pytest.importorskip("presage.static.tracing.recorder")
nn = torch.nn


class Counted(nn.Module):  # type: ignore[misc]
    """Has a buffer that it writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scratch", torch.zeros(8, 16))

    def forward(self, x: Any) -> Any:
        self.scratch.copy_(x)
        self.scratch.mul_(2.0)
        return self.scratch.sum(dim=1)


class Tied(nn.Module):  # type: ignore[misc]
    """Has one weight in two places, and one that is a view."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16))

    def forward(self, x: Any) -> Any:
        return x @ self.weight @ self.weight.t()


class Flat(nn.Module):  # type: ignore[misc]
    """Its weights lie in one piece of memory, which it also takes as one, as cuDNN's recurrent layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = torch.randn(600)
        self.first, self.second = self.memory[8:264].view(16, 16), self.memory[264:520].view(16, 16)
        self.rest = self.memory[592:]

    def forward(self, x: Any) -> Any:
        y = x @ self.first @ self.second
        whole = torch.empty(0).set_(self.first.untyped_storage(), 0, (600,), (1,))
        self.rest.copy_(x[0, :8])
        return y + whole[300] + whole[592:].sum()


class Scripted(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.jit.script(nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Sigmoid()))

    def forward(self, x: Any) -> Any:
        return self.inner(x)


def views(x: Any) -> Any:
    parts = x.reshape(4, 2, 16).transpose(0, 1).chunk(2, dim=2)
    return torch.cat([part.contiguous() for part in parts], dim=1)


def in_place(x: Any) -> Any:
    y = torch.empty_like(x)
    y[:4] = x[4:]
    y[4:].copy_(x[:4])
    return y.relu_().add_(1)


def several(x: Any) -> Any:
    values, indices = x.topk(3, dim=1)
    return values, indices.to(torch.int32)


def masked(x: Any) -> Any:
    return torch.where(x > 0, x, torch.tensor(-1.0)).masked_fill(x > 1, 0.5)


def attention(x: Any) -> Any:
    q = x.reshape(1, 2, 4, 16)
    return nn.functional.scaled_dot_product_attention(q, q, q)


MODULES: list[Callable[[], Any]] = [
    lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4), nn.Softmax(dim=-1)),
    lambda: nn.Sequential(nn.Unflatten(1, (1, 16)), nn.Conv1d(1, 3, 3), nn.BatchNorm1d(3).eval(), nn.ReLU()),
    lambda: nn.LayerNorm(16),
    lambda: nn.GRU(16, 8),
    Counted, Tied, Flat, Scripted,
    *(lambda function=function: function for function in (views, in_place, several, masked, attention)),
]  # fmt: skip


def replayed(module: Any, recorder: Any) -> Any:
    """A program of what the module did on one input, from text and bytes alone."""
    x = torch.randn(8, 16)
    with torch.no_grad(), recorder:
        recorder.begin([x])
        document, contents = recorder.end(module(x))
    return program_of(document, contents)


def program_of(document: Any, contents: Any) -> Any:
    trace = Trace.from_document(json.loads(json.dumps(document)))
    assert trace.lacks is None
    offsets, size = placed(trace)
    block = torch.zeros(max(1, size), dtype=torch.uint8)
    for offset, content in zip(offsets, contents, strict=True):
        block[offset : offset + content.numel()] = content
    return Program(trace, constants(trace, block, torch, "cpu"), torch, device="cpu")


def flat(result: Any) -> list[Any]:
    return [part for each in result for part in flat(each)] if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("make", MODULES)
def test_a_program_does_what_the_module_did(make: Callable[[], Any]) -> None:
    recorder = recording.Recorder(has_gpu=True)
    with recorder:
        module = make()
    program = replayed(module, recorder)
    for _ in range(2):
        x = torch.randn(8, 16)
        with torch.no_grad():
            right, got = flat(module(x)), flat(program([x]))
        assert len(right) == len(got)
        for one, other in zip(right, got, strict=True):
            assert one.dtype == other.dtype
            assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("which", ["inputs", "weights"])
def test_what_torch_tells_the_host_of_tensors_is_read_by_it(which: str) -> None:
    """As `torch.equal` does. The replay takes the branch that was recorded."""
    recorder, x = recording.Recorder(has_gpu=True), torch.randn(8)
    with recorder:
        weight = torch.ones(8)
        recorder.begin([x])
        other = x if which == "inputs" else weight
        result = x + 1 if torch.equal(other, weight) else x * 2
        document, _ = recorder.end(result)
    assert [step["kind"] for step in document["steps"]] == ["sync", "operator"]
    assert bool(document["lacks"]) == (which == "inputs")


def test_what_a_launch_takes_is_kept_and_not_part_of_the_call() -> None:
    """A weight that has other memory than when it was made, and that no operator takes."""
    recorder = recording.Recorder(has_gpu=True)
    with recorder:
        layer = nn.Linear(16, 16, bias=False)
        layer.weight.data = layer.weight.data.double()
        recorder.is_memory = lambda address: True
        recorder.begin([torch.randn(8)])
        parameter = recorder.parameter(layer.weight.data_ptr().to_bytes(8, "little"))
        document, contents = recorder.end(None)
    assert (document["steps"], document["lacks"]) == ([], None)
    ((_, number, offset),) = parameter.pointers
    assert (offset, recorder._specs[number].dtype) == (0, "float64")
    assert not contents  # no step takes it


def test_memory_that_a_tensor_once_had_is_not_its_own() -> None:
    recorder = recording.Recorder(has_gpu=True)
    with recorder:
        weight, other = torch.randn(16), torch.randn(16)
        old = weight.data_ptr()
        weight.data = torch.randn(16)
        recorder._places[old] = 64, recorder._places[weight.data_ptr()][1]  # as if nobody else had it since
        recorder.begin([])
        assert not recorder.parameter(old.to_bytes(8, "little")).pointers
        assert recorder.parameter(other.data_ptr().to_bytes(8, "little")).pointers


def test_memory_of_no_tensor_is_told() -> None:
    recorder = recording.Recorder(has_gpu=True)
    with recorder:
        recorder.is_memory = lambda address: True
        recorder.begin([])
        assert not recorder.parameter((1 << 40).to_bytes(8, "little")).pointers
        document, _ = recorder.end(None)
    assert "belongs to no tensor" in document["lacks"]


def test_a_result_that_nothing_has_made_is_told() -> None:
    recorder = recording.Recorder(has_gpu=True)
    x = torch.randn(8)
    with recorder:
        recorder.begin([x])
        with torch._C._DisableTorchDispatch():  # as kernels do that torch does not dispatch
            result = x + 1
        document, _ = recorder.end(result)
    assert "no recorded step has made" in document["lacks"]


def test_what_a_graph_captures_of_shared_memory() -> None:
    recorder, x = recording.Recorder(has_gpu=True), torch.randn(8, 16)
    with torch.no_grad(), recorder:
        module, static = Flat(), torch.zeros(8, 16)
        recorder.begin_capture()
        result = module(static)
        capture = recorder.end_capture()
        recorder.begin([x])
        static.copy_(x)
        recorder.replay(capture)
        document, contents = recorder.end(result)
    program = program_of(document, contents)
    other = torch.randn(8, 16)
    assert torch.allclose(program([other]), module(other), atol=1e-6)
