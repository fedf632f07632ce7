"""A pretended GPU for modules that are rehearsed: torch reports a GPU, and tensors for it stay on the CPU."""

from __future__ import annotations

import contextlib
import importlib
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from presage.devices.worker import captured, libdevice, pretended_tf32

_PROPERTIES = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    total_memory=140 << 30,
    L2_cache_size=60 << 20,
    warp_size=32,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    shared_memory_per_multiprocessor=228 << 10,
)


class _Stream(contextlib.nullcontext[Any]):
    """The only stream, on which all work is finished already. It also replaces events and device contexts."""

    cuda_stream, device_index = 0, 0

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__(self)

    def nothing(self, *_: Any) -> None:
        return

    synchronize = wait_stream = wait_event = record = wait = record_event = nothing

    def query(self) -> bool:
        return True

    def elapsed_time(self, _: Any) -> float:
        return 0.0


class _OnCpu(TorchFunctionMode):  # type: ignore[misc]
    """Replaces a GPU by the CPU in the arguments of torch functions."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {name: _here(value) for name, value in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*map(_here, args), **named)


def _here(value: Any) -> Any:
    is_gpu = isinstance(value, str | torch.device) and str(value).partition(":")[0] == "cuda"
    return torch.device("cpu") if is_gpu else value


class _Autocast(torch.autocast):  # type: ignore[misc]
    def __init__(self, device_type: str, dtype: Any = None, *arguments: Any, **named: Any) -> None:
        half = dtype or (torch.float16 if device_type == "cuda" else None)
        super().__init__("cpu", half, *arguments, **named)


def _uncompiled(function: Any = None, *_: Any, **__: Any) -> Any:
    """Replaces torch.compile by nothing: compiled code computes the same, and compiling takes longer."""
    return _uncompiled if function is None else function


_OPERATORS = torch.library.Library("aten", "IMPL")
"""Keeps replaced operators alive."""


def _convolution(*arguments: Any) -> Any:
    """Replaces convolutions in half precision, bfloat16 included, by ones that add in single precision, as a GPU does.
    Transposed ones add in half precision on a CPU."""
    dtype = arguments[0].dtype
    if dtype in (torch.float16, torch.bfloat16):
        tensors = [None if each is None else each.float() for each in arguments[:3]]
        return _convolution(*tensors, *arguments[3:]).to(dtype)
    return torch.ops.aten._convolution(*arguments, False, False, False, False)  # no cuDNN


class _Generator(torch.Generator):  # type: ignore[misc]
    """A generator of the CPU that accepts any device."""

    def __new__(cls, device: Any = None) -> Any:
        return super().__new__(cls)


def place_on_cpu() -> None:
    """For the rest of this process, make torch place on the CPU what is meant for a GPU."""
    torch.Generator = _Generator
    _OnCpu().__enter__()


def install() -> None:
    """Install the pretended GPU for the rest of this process."""
    stream = _Stream()
    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": _PROPERTIES,
        "get_device_capability": (9, 0),
        "get_device_name": _PROPERTIES.name,
        "current_stream": stream,
        "default_stream": stream,
        "mem_get_info": (140 << 30, 140 << 30),
        "stream": stream,
        "is_initialized": True,
        "can_device_access_peer": False,
        **dict.fromkeys(("synchronize", "empty_cache", "set_device", "set_stream", "manual_seed", "manual_seed_all")),
        **dict.fromkeys(("init", "ipc_collect", "reset_peak_memory_stats", "set_per_process_memory_fraction")),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: None)
    torch.cuda.Stream = torch.cuda.ExternalStream = torch.cuda.Event = torch.cuda.device = _Stream
    torch.Tensor.record_stream = lambda self, _: None
    torch.Tensor.pin_memory = lambda self, *_: self
    torch.Tensor.is_cuda = True
    torch.nn.Module.cuda = lambda self, *_: self
    torch.autocast = torch.amp.autocast = _Autocast
    torch.cuda.amp.autocast = lambda enabled=True, dtype=None, cache=None: _Autocast("cuda", dtype, enabled, cache)
    torch.compile = _uncompiled
    captured.install()
    _OPERATORS.impl("convolution", _convolution, "CPU")
    pretended_tf32.install()
    torch.use_deterministic_algorithms(True, warn_only=True)  # it fills uninitialised memory with NaN
    place_on_cpu()
    with contextlib.suppress(ImportError, AttributeError):
        _tune_nothing()
        _put_off_launches()
        libdevice.install()
        _refuse_empty_launches()


def _tune_nothing() -> None:
    """Take the first of a kernel's configurations, since there is no GPU to time them on."""
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    prune = autotuner.prune_configs
    autotuner.prune_configs = lambda self, named: prune(self, named)[:1]


def _put_off_launches() -> None:
    """Make launches part of a graph that is being captured."""
    executor = importlib.import_module("triton.runtime.interpreter").GridExecutor
    launch = executor.__call__

    def called(self: Any, *given: Any, **named: Any) -> Any:
        return None if captured.put_off(lambda: launch(self, *given, **named)) else launch(self, *given, **named)

    executor.__call__ = called


def _refuse_empty_launches() -> None:
    """Raise an error for a launch of no blocks. It shows that the sizes here are smaller than those that a kernel is
    made for."""
    builder = importlib.import_module("triton.runtime.interpreter").InterpreterBuilder
    set_grid = builder.set_grid_dim

    def set_grid_dim(self: Any, *grid: int) -> None:
        if 0 in grid:
            raise RuntimeError("it launches a kernel without blocks")
        set_grid(self, *grid)

    builder.set_grid_dim = set_grid_dim
