"""What runs in children on a GPU, with a driver that is made up and the host's memory in place of the GPU's."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
on_gpu = pytest.importorskip("presage.static.tracing.on_gpu")

from presage.devices.worker import gpu as gpu_side  # noqa: E402
from presage.devices.worker import tensors, wire  # noqa: E402
from presage.devices.worker.gpu import Gpu, IdleRunner, TorchRunner  # noqa: E402
from presage.devices.worker.main import serve  # noqa: E402
from presage.devices.worker.replay import MachineCode, ReplayRunner  # noqa: E402
from presage.static import inline_cuda  # noqa: E402
from presage.static.tracing.recorder import current_flags, set_flags  # noqa: E402

N = 64
BYTES = 4 * N


class Model(torch.nn.Module):  # type: ignore[misc]
    """Stands for a foreign one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(N, N)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Any, y: Any) -> Any:
        self.calls.add_(1)
        return self.linear(x + y) * (self.calls > 0)


class Called:
    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, data: Any) -> Any:
        return self.model(*data)


class Driver:
    """Its memory is the host's."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}
        self.mapped: list[int] = []
        self.unloaded: list[Any] = []
        self.CUipcMemHandle = SimpleNamespace

    def cuMemAlloc(self, size: int) -> Any:  # noqa: N802
        block = ctypes.create_string_buffer(size)
        self.blocks[ctypes.addressof(block)] = block
        return 0, ctypes.addressof(block)

    def cuMemFree(self, address: int) -> Any:  # noqa: N802
        del self.blocks[address]
        return (0,)

    def cuMemcpyDtoDAsync(self, to: int, source: int, size: int, stream: int) -> Any:  # noqa: N802
        ctypes.memmove(to, source, size)
        return (0,)

    def cuIpcGetMemHandle(self, address: int) -> Any:  # noqa: N802
        return 0, SimpleNamespace(reserved=address.to_bytes(64, "little"))

    def cuIpcOpenMemHandle(self, handle: Any, flags: int) -> Any:  # noqa: N802
        self.mapped.append(int.from_bytes(handle.reserved, "little"))
        return 0, self.mapped[-1]

    def cuIpcCloseMemHandle(self, address: int) -> Any:  # noqa: N802
        self.mapped.remove(address)
        return (0,)

    def cuMemGetAddressRange(self, address: int) -> Any:  # noqa: N802
        return 0, address, len(self.blocks[address])

    def cuModuleUnload(self, module: Any) -> Any:  # noqa: N802
        self.unloaded.append(module)
        return (0,)

    def cuCtxSynchronize(self) -> Any:  # noqa: N802
        return (0,)


class HostGpu(Gpu):
    """Everything but a GPU."""

    def __init__(self, arena: Any) -> None:
        self.driver: Any = Driver()
        self.arena, self._persists, self._events = ctypes.addressof(arena), False, [1, 2]
        self._record = lambda event, stream: (0,)
        self._wait = lambda event: (0,)
        self._elapsed = lambda start, end: (0, 0.25)
        self._synchronise, self._clock = self.driver.cuCtxSynchronize, lambda: 0
        self._set_byte, self._flush = (lambda address, value, size: (0,)), 0
        self.leads: list[int] = []

    def lead(self, hold_ns: int) -> None:
        self.leads.append(hold_ns)


@pytest.fixture
def arena() -> Any:
    return ctypes.create_string_buffer(16 * BYTES)


@pytest.fixture
def gpu(arena: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostGpu]:
    monkeypatch.setattr(gpu_side, "load_candidate", lambda command, device: Called(Model()))
    monkeypatch.setattr(tensors, "gpu_bytes", tensors.host_bytes)
    monkeypatch.setattr(on_gpu, "install", lambda recorder, driver: None)
    yield HostGpu(arena)
    torch.set_grad_enabled(True)
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack(), "whoever records slows all that follows"


EXPECTED = {"type": "torch.Tensor", "dtype": "float32", "shape": [N], "contiguous": True, "on_gpu": False}


def layout(calls: int, **more: Any) -> dict[str, Any]:
    """Two inputs and an output for each call, one after the other."""
    slots = [[3 * call * BYTES + part * BYTES for part in range(3)] for call in range(calls)]
    inputs = [{"dtype": "float32", "shape": [N]}] * 2
    return {"slots": slots, "inputs": inputs, "parameters": [], "outputs": [EXPECTED], **more}


def fill(arena: Any, calls: int) -> list[tuple[Any, Any]]:
    made = [(torch.rand(N), torch.rand(N)) for _ in range(calls)]
    for call, pair in enumerate(made):
        for part, values in enumerate(pair):
            ctypes.memmove(ctypes.addressof(arena) + (3 * call + part) * BYTES, values.data_ptr(), BYTES)
    return made


def output(arena: Any, call: int) -> Any:
    start = (3 * call + 2) * BYTES
    return torch.frombuffer(bytearray(arena.raw[start : start + BYTES]), dtype=torch.float32)


def test_a_module_is_recorded_and_replayed_in_another_process(gpu: HostGpu, arena: Any, tmp_path: Path) -> None:
    worker = TorchRunner({"records": True}, gpu)
    worker.lay_out(layout(1))
    fill(arena, 1)
    answer = worker.record({"path": str(tmp_path / "trace.json")})
    assert len(bytes.fromhex(answer["handle"])) == 64
    replayer = ReplayRunner({}, gpu)
    replayer.program({"name": "a case", "path": str(tmp_path / "trace.json"), "handle": answer["handle"]})
    assert gpu.driver.mapped == [], "it has copied what it needs"
    worker.stop_recording({})
    assert gpu.driver.blocks == {}
    function = worker._function
    for _ in range(2):
        pairs = fill(arena, 2)
        replayer.lay_out(layout(2, program="a case"))
        answer = replayer.run({"hold_ns": 5000})
        assert answer["samples_ns"] == [250_000.0] * 2
        assert [parts[0]["is_input"] for parts in answer["outputs"]] == [False, False]
        for call, pair in enumerate(pairs):
            assert torch.allclose(output(arena, call), function(pair), atol=1e-6)
    assert gpu.leads == [5000] * 4
    with pytest.raises(KeyError):
        replayer.lay_out(layout(1, program="another case"))


def test_a_replayer_leaves_nothing_of_a_module_for_the_next(gpu: HostGpu, arena: Any, tmp_path: Path) -> None:
    before = current_flags()
    worker = TorchRunner({"records": True}, gpu)
    worker.lay_out(layout(1))
    fill(arena, 1)
    answer = worker.record({"path": str(tmp_path / "trace.json")})
    replayer = ReplayRunner({}, gpu)
    replayer.program({"name": "a case", "path": str(tmp_path / "trace.json"), "handle": answer["handle"]})
    worker.stop_recording({})
    replayer.lay_out(layout(1, program="a case"))
    code = MachineCode(gpu, [])
    code._modules[0] = "machine code"
    replayer._loaded.append(code)
    set_flags({name: not flag for name, flag in before.items()})  # as a program does
    replayer.close({})
    assert gpu.driver.unloaded == ["machine code"]
    assert current_flags() == before
    with pytest.raises(KeyError):
        replayer.lay_out(layout(1, program="a case"))


def test_a_module_in_its_worker_is_only_run(gpu: HostGpu, arena: Any) -> None:
    worker = TorchRunner({}, gpu)
    worker.lay_out(layout(2))
    pairs = fill(arena, 2)
    for paced in (True, False):
        answer = worker.run({"paced": paced, "collects": True, "repeats": 1})
        assert (answer["ns"], len(answer["outputs"])) == (0, 2)
        assert torch.allclose(output(arena, 1), worker._function(pairs[1]))
    before = float(worker._function.model.calls)
    answer = worker.run({"paced": False, "collects": False, "repeats": 3})
    assert answer["outputs"] == []
    assert float(worker._function.model.calls) == before + 6
    assert gpu.leads == []


def test_an_idle_worker_has_as_much_to_copy(gpu: HostGpu, arena: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IdleRunner, "_blank", lambda self, array: torch.full(array["shape"], 3.0))
    idle = IdleRunner({}, gpu)
    idle.lay_out(layout(2))
    assert len(idle.run({"paced": False, "collects": True, "repeats": 1})["outputs"]) == 2
    assert output(arena, 1).tolist() == [3.0] * N
    idle.lay_out({"slots": [[]], "inputs": [], "parameters": [], "outputs": []})
    assert idle.run({"hold_ns": 5000})["tails_ns"] == [0]


@pytest.mark.parametrize("kind", ["torch", "null"])
def test_whoever_it_is_waits_for_the_signal_and_says_that_it_is_done_before_it_answers(
    gpu: HostGpu, arena: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An idle worker goes the same way as a module, since it shows what that way costs."""
    monkeypatch.setattr(IdleRunner, "_blank", lambda self, array: torch.full(array["shape"], 3.0))
    (theirs, commands), (answers, told) = os.pipe(), os.pipe()
    worker = threading.Thread(target=_serve, args=(theirs, told, gpu), daemon=True)
    worker.start()

    def ask(**command: Any) -> Any:
        wire.send(commands, {"token": "asked", **command})
        return wire.receive(answers)

    assert ask(do="load", kind=kind) == {"token": "asked"}
    assert ask(do="lay out", **layout(2)) == {"token": "asked"}
    for asked, signal in ((wire.token(), wire.token()) for _ in range(2)):
        fill(arena, 2)
        ctypes.memset(ctypes.addressof(arena) + 5 * BYTES, 0, BYTES)
        run = {"do": "run", "paced": False, "collects": True, "repeats": 1, "awaits": True}
        wire.send(commands, {"token": asked, **run})
        assert wire.receive_token(answers) == asked
        time.sleep(0.05)
        assert not output(arena, 1).any()
        assert not wire.pending(answers)
        wire.send_token(commands, signal)
        assert wire.receive_token(answers) == signal
        assert output(arena, 1).any()
        answer = wire.receive(answers)
        assert (answer["token"], len(answer["outputs"])) == (signal, 2)
    os.close(commands)
    worker.join(10)
    assert not worker.is_alive()
    for fd in (theirs, answers, told):
        os.close(fd)


def _serve(commands: int, answers: int, gpu: HostGpu) -> None:
    with contextlib.suppress(wire.ClosedError):
        serve(commands, answers, gpu.load)


def test_a_call_that_fails_while_it_is_recorded(gpu: HostGpu, tmp_path: Path) -> None:
    worker = TorchRunner({"records": True}, gpu)
    worker.lay_out(layout(1))
    function, worker._function = worker._function, lambda data: 1 / 0
    with pytest.raises(ZeroDivisionError):
        worker.record({"path": str(tmp_path / "trace.json")})
    worker._function = function
    worker.record({"path": str(tmp_path / "trace.json")})
    assert json.loads((tmp_path / "trace.json").read_text())["lacks"] is None
    worker.stop_recording({})
    worker.stop_recording({})


def test_a_module_is_called_ahead_and_then_loaded_anew(gpu: HostGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN chooses no algorithm meanwhile, since other kernels are being timed; what the module has kept is gone."""
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(TorchRunner, "_blank", lambda self, array: torch.zeros(array["shape"]))
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    worker, seen = TorchRunner({}, gpu), []
    first = worker._function.model
    first.register_forward_pre_hook(lambda *_: seen.append(torch.backends.cudnn.benchmark))
    worker.prepare({"layouts": [layout(1), layout(1)], "anew": True})
    assert seen == [False, False]
    assert torch.backends.cudnn.benchmark
    assert (float(first.calls), float(worker._function.model.calls)) == (2, 0)


def test_kernels_are_loaded_and_not_launched_while_they_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()

    def told(name: str) -> Any:
        return lambda *_: (done.append(name), (0, name))[1]

    driver = SimpleNamespace(
        cuModuleLoadData=told("load"), cuModuleGetFunction=told("find"), cuLaunchKernel=told("launch")
    )
    captures = False
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: captures)
    kernels = on_gpu.LoadedKernels(driver)
    launch: Any = (b"code", "f", inline_cuda.Configuration((1, 1, 1), (32, 1, 1)), [b"1234"])
    with kernels.held_back():
        kernels(*launch)
        assert done == ["load", "find"]
        captures = True
        kernels(*launch)
        assert done == ["load", "find", "launch"], "a graph must have it"
        captures = False
    kernels(*launch)
    assert done == ["load", "find", "launch", "launch"]


def test_copies_to_variables_reach_all_of_a_source_s_machine_code() -> None:
    """The values that kernels see, as the host's memory. A template's instances have machine code of their own."""
    memory: dict[Any, Any] = {}

    def allocate(key: Any, size: int) -> int:
        return ctypes.addressof(memory.setdefault(key, ctypes.create_string_buffer(size)))

    def copy(to: int, source: int, size: int, stream: int) -> Any:
        ctypes.memmove(to, source, size)
        return (0,)

    driver = SimpleNamespace(
        cuModuleLoadData=lambda code: (0, code),
        cuModuleGetFunction=lambda module, name: (0, name),
        cuModuleGetGlobal=lambda module, name: (0, allocate((module, name), 8), 8),
        cuMemAlloc=lambda size: (0, allocate(len(memory), size)),
        cuMemcpyAsync=copy,
        cuLaunchKernel=lambda *_: (0,),
    )
    kernels = on_gpu.LoadedKernels(driver)
    unit = inline_cuda.Unit("", "k.cu", "sm_90a")

    def launch(code: bytes, name: str) -> bytes:
        ptx = f".const .align 4 .b8 {name}[8];\n.visible .global .align 4 .u32 other;"
        if all(each.cubin != code for each in unit.codes):
            unit.codes.append(inline_cuda.DeviceCode(code, ptx, "", "sm_90a"))
        kernels(code, "f", inline_cuda.Configuration((1, 1, 1), (32, 1, 1)), [])
        return bytes(memory[code, name.encode()])

    def write(values: bytes, offset: int = 0) -> None:
        source = ctypes.create_string_buffer(values, len(values))
        kernels.write(unit, "ns::taps", offset, ctypes.addressof(source), len(values), 0)

    write(b"abcdefgh")
    assert launch(b"first", "_ZN2ns4tapsE") == b"abcdefgh", "written before anything was loaded"
    write(b"XY", 2)
    assert launch(b"first", "_ZN2ns4tapsE") == b"abXYefgh"
    assert launch(b"second", "_ZN2ns4tapsE") == b"abXYefgh", "another instance is loaded later"
    write(b"12345678")
    assert [launch(code, "_ZN2ns4tapsE") for code in (b"first", b"second")] == [b"12345678"] * 2
    for unknown in ("nothing", "taps<float>"):
        with pytest.raises(RuntimeError, match="no variable of the device is known as"):
            kernels.write(unit, unknown, 0, 0, 8, 0)


def test_outputs_are_completed_where_no_mode_sees_it() -> None:
    """A module could do its work when the harness calls a function of torch's, after it has returned."""
    seen = []

    class Late(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
            seen.append(function)
            return function(*arguments, **(options or {}))

    conjugated = torch.ones(3, dtype=torch.complex64).mul(1j).conj()
    with Late():
        (completed,) = tensors.completing(torch)((conjugated,))
    assert seen == []
    assert conjugated.is_conj()
    assert not completed.is_conj()
    assert torch.equal(completed, conjugated)
