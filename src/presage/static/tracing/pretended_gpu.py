"""Pretends to torch that there is a GPU: torch.cuda answers for the target, and GPU work appears to have run."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import importlib
import os
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import triton
from torch._prims_common import suggest_memory_format
from torch._subclasses import fake_impls, fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from presage.static.trace import COMPILED, GRAPHED, SCRIPTED
from presage.static.tracing.recorder import Capture

if TYPE_CHECKING:
    from presage.static.tracing.recorder import Recorder
    from presage.static.tracing.triton_driver import RecordingDriver

_CHANNELS_LAST = (torch.channels_last, torch.channels_last_3d)


class WithoutGpu(TorchFunctionMode):  # type: ignore[misc]
    """Replaces what torch functions cannot do without a GPU. Random generators of any device are ignored, since no
    values are drawn. A tensor made of numbers is made on the host and then moved."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {name: value for name, value in (kwargs or {}).items() if name != "generator"}
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            args = (args[0], _with_index_tensors(args[1], args[0].device), *args[2:])
        device = named.pop("device", None) if func in (torch.tensor, torch.as_tensor) else None
        made = func(*args, **named)
        return made if device is None else made.to(device)


def _with_index_tensors(index: Any, device: torch.device) -> Any:
    """An index with its lists of integers as tensors, which torch would make without asking any mode."""
    if isinstance(index, tuple):
        return tuple(_with_index_tensors(each, device) for each in index)
    is_plain = isinstance(index, list) and all(type(each) in (int, bool) for each in index)
    return torch.tensor(index).to(device) if is_plain and index else index


def _events_and_streams(recorder: Recorder) -> tuple[type, type]:
    """Return torch's Event and Stream, whose waits are recorded."""

    class Event(_Event):
        def synchronize(self) -> None:
            recorder.sync("synchronize")

    class Stream(_Stream):
        def synchronize(self) -> None:
            recorder.sync("synchronize")

    return Event, Stream


class _Event:
    """A CUDA event. All events happen at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.record = self.wait = lambda *_: None
        self.query, self.elapsed_time = lambda: True, lambda _: 0.0


class _Stream:
    """The only CUDA stream."""

    cuda_stream, device_index, device = 0, 0, torch.device("cuda", 0)
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.wait_stream = self.wait_event = lambda *_: None
        self.query, self.record_event = lambda: True, lambda event=None: event or torch.cuda.Event()

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        return


def _graphs(recorder: Recorder) -> tuple[type, type]:
    """Return a CUDAGraph, whose replay repeats the steps recorded during its capture, and its context manager."""

    class Graph:
        def __init__(self, *_: Any, **__: Any) -> None:
            self._captured = Capture()
            self.pool = self.reset = self.enable_debug_mode = lambda *_: None

        def capture_begin(self, *_: Any, **__: Any) -> None:
            recorder.begin_capture()

        def capture_end(self) -> None:
            self._captured = recorder.end_capture()

        def replay(self) -> None:
            recorder.replay(self._captured)

    class Graphing:
        def __init__(self, graph: Graph, *_: Any, **__: Any) -> None:
            self._graph = graph

        def __enter__(self) -> None:
            self._graph.capture_begin()

        def __exit__(self, *_: Any) -> None:
            self._graph.capture_end()

    return Graph, Graphing


def _generators() -> type:
    class Generator(torch.Generator):  # type: ignore[misc]
        """A generator of the CPU that accepts any device."""

        def __new__(cls, device: Any = None) -> Any:
            return super().__new__(cls)

    return Generator


class _Device(contextlib.nullcontext[None]):
    """torch.cuda.device. It is a class because torch itself needs one."""


def _move_parameters(module: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
    """Replaces Module._apply, which changes a module's parameters. torch's own keeps each Parameter object, which fails
    without values, so new ones are made here. Other holders of a parameter (another module, a list) get the new one,
    too."""
    moved: dict[int, tuple[Any, Any]] = {}
    with torch.no_grad():
        for each in module.modules() if recurse else (module,):
            for name, found in each._parameters.items():
                if found is None:
                    continue
                if id(found) not in moved:
                    moved[id(found)] = found, torch.nn.Parameter(change(found), found.requires_grad)
                each._parameters[name] = moved[id(found)][1]
            for name, found in each._buffers.items():
                each._buffers[name] = None if found is None else change(found)
    for each in module.modules() if recurse else (module,):
        for name, held in vars(each).items():
            if not name.startswith("_") and isinstance(held, list | tuple | dict):
                vars(each)[name] = _with_moved(held, moved)
    return module


def _with_moved(held: Any, moved: Mapping[int, tuple[Any, Any]]) -> Any:
    """A list, tuple or dictionary with moved parameters in place of the old ones; unchanged if it holds none."""
    values = list(held.values() if isinstance(held, dict) else held)
    if not any(id(value) in moved for value in values):
        return held
    new = [moved[id(value)][1] if id(value) in moved else value for value in values]
    if isinstance(held, dict):
        return dict(zip(held, new, strict=True))
    return held._make(new) if hasattr(held, "_make") else type(held)(new)  # named tuples need their own constructor


def _plain_operator(name: Any, function: Any = None, /, **_: Any) -> Any:
    """Replaces torch.library.custom_op: the module's own operator is the plain function that it is made from."""

    def made(function: Any) -> Any:
        with contextlib.suppress(ValueError):  # the name is made up by the caller, and torch checks it
            space, short = str(name).split("::")
            setattr(getattr(torch.ops, space), short, function)
            function.default = function
        for registering in ("register_fake", "register_kernel", "register_autograd", "register_vmap"):
            setattr(function, registering, lambda first=None, *_, **__: first if callable(first) else lambda f: f)
        return function

    return made(function) if function else made


def _addresses() -> Callable[[Any], int]:
    """Make a `data_ptr` that gives tensors of different memory different addresses."""
    bases: dict[int, int] = {}

    def data_ptr(tensor: Any) -> int:
        base = bases.setdefault(tensor.untyped_storage()._cdata, (len(bases) + 1) << 36)
        return int(base + tensor.storage_offset() * tensor.element_size())

    return data_ptr


def pretend(request: Mapping[str, Any], recorder: Recorder, driver: RecordingDriver) -> None:
    """Make torch.cuda answer for the target, also where torch was built without CUDA."""
    major, minor = request["capability"]
    device = request["device"]

    class Properties(SimpleNamespace):
        @property
        def multi_processor_count(self) -> int:
            if not device["multiprocessors"]:
                recorder.notes["the host code asks for the number of multiprocessors, and is told 1: name a GPU"] = None
            return device["multiprocessors"] or 1

    properties = Properties(
        name=device["name"],
        major=major,
        minor=minor,
        total_memory=device["memory"],
        L2_cache_size=device["l2"],
        warp_size=32,
        max_threads_per_multi_processor=device["threads_per_sm"],
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=device["shared_per_block"],
        shared_memory_per_multiprocessor=device["shared_per_sm"],
        gcnArchName="",
    )
    torch.cuda.Event, torch.cuda.Stream = _events_and_streams(recorder)
    torch.cuda.ExternalStream = torch.cuda.Stream
    stream = torch.cuda.Stream()
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": properties,
        "get_device_capability": (major, minor),
        "get_device_name": device["name"],
        "current_stream": stream,
        "default_stream": stream,
        "set_device": None,
        "empty_cache": None,
        "is_current_stream_capturing": False,
        "mem_get_info": (device["memory"], device["memory"]),
        "set_stream": None,
        "stream": contextlib.nullcontext(),
        "graph_pool_handle": (0, 0),
        "can_device_access_peer": False,
        **dict.fromkeys(("init", "ipc_collect", "reset_peak_memory_stats", "set_per_process_memory_fraction")),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: None)
    torch.cuda.synchronize = lambda *_: recorder.sync("synchronize")
    fake_tensor.init_gpu_context = lambda _: None  # the original looks for the GPU that torch.cuda now reports
    torch.cuda.device = torch.cuda.device_of = _Device
    torch.Generator = _generators()
    torch.distributions.Distribution.set_default_validate_args(False)  # validation reads values
    torch.nn.init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor.normal_()  # draws until all values fit
    torch.cuda.CUDAGraph, torch.cuda.graph = _graphs(recorder)
    FakeTensor.data_ptr = _addresses()
    FakeTensor.get_device = lambda self: 0 if self.device.type == "cuda" else -1
    torch.nn.Module._apply = _move_parameters
    torch.library.custom_op = torch.library.triton_op = _plain_operator
    torch.library.wrap_triton = lambda kernel: kernel
    _describe_bincount(recorder)
    _describe_convolution()
    _leave_uncompiled(recorder)
    _use_cudnn()
    _use_fused_attention()
    torch.rms_norm = _rms_norm(torch.rms_norm, recorder)
    _tune_without_timing(recorder, driver)
    torch.Tensor.to = _move_tensors(torch.Tensor.to)
    torch.Tensor.cuda = lambda self, *_, **__: self.to("cuda")
    torch.Tensor.pin_memory = lambda self, *_: self.clone()
    torch.Tensor.is_pinned = lambda self, *_: False
    torch.Tensor.record_stream = lambda self, _: None
    torch.nn.Module.cuda = lambda self, *_: self.to("cuda")
    _register_cuda_guard()


def _use_cudnn() -> None:
    """Make recurrent layers and batch normalisations one cuDNN operator each, as torch does on a GPU."""
    modes = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}

    def layer(mode: int) -> Callable[..., Any]:
        def run(x: Any, state: Any, weights: Any, biased: bool, layers: int, dropout: float, training: bool,
                both_ways: bool, batch_first: bool) -> Any:  # fmt: skip
            hidden, cell = state if mode == 2 else (state, None)
            width = (hidden if cell is None else cell).shape[2]
            projected = hidden.shape[2] if hidden.shape[2] != width else 0
            found = torch.ops.aten._cudnn_rnn(
                x, weights, (4 if biased else 2) + bool(projected), None, hidden, cell, mode, width,
                projected, layers, batch_first, dropout, training, both_ways, [], None,
            )  # fmt: skip
            return found[:3] if mode == 2 else found[:2]

        return run

    torch.nn.modules.rnn._rnn_impls.update(RNN_TANH=layer(1), RNN_RELU=layer(0))
    for name, mode in modes.items():
        setattr(torch._VF, name, layer(mode))
    torch.nn.RNNBase.flatten_parameters = lambda self: None
    _describe_gru_cell()
    torch.batch_norm = _batch_norm(torch.batch_norm)


def _describe_gru_cell() -> None:
    """Tell torch the shapes of what its fused GRU cell returns, which it does not know without a GPU."""

    def described(mode: Any, func: Any, inputs: Any, states: Any, state: Any, *_: Any, **__: Any) -> Any:
        with mode:
            return torch.empty_like(state), state.new_empty(state.shape[0], 5 * state.shape[1])

    fake_impls.register_op_impl(torch.ops.aten._thnn_fused_gru_cell.default)(described)


def _describe_convolution() -> None:
    """Tell torch that the results of cuDNN's convolutions have their channels last if the image or the weights have. A
    torch without CUDA does not know."""
    operator = torch.ops.aten.convolution.default
    original = fake_impls.op_implementations_dict[operator]

    def described(mode: Any, func: Any, x: Any, weight: Any, *rest: Any, **named: Any) -> Any:
        made = original(mode, func, x, weight, *rest, **named)
        wanted = next((each for each in map(suggest_memory_format, (x, weight)) if each in _CHANNELS_LAST), None)
        if wanted is None or x.device.type != "cuda" or torch.float64 in (x.dtype, weight.dtype):
            return made
        with mode:
            return made.contiguous(memory_format=wanted)

    fake_impls.op_implementations_dict[operator] = described


def _describe_bincount(recorder: Recorder) -> None:
    """Tell torch the shape of what bincount returns if the caller names the least one. The largest value may make it
    longer; for a number of experts or classes it does not. torch looks for that value, so the host waits."""

    def described(mode: Any, func: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
        if minlength == 0:
            raise fake_tensor.DynamicOutputShapeException(func)
        recorder.notes[f"bincount is taken to return {minlength} numbers, its minlength"] = None
        recorder.sync("bincount")
        dtype = torch.int64 if weights is None else weights.dtype if weights.dtype is torch.float32 else torch.float64
        with mode:
            return torch.empty(minlength, dtype=dtype, device=x.device)

    fake_impls.op_implementations_dict[torch.ops.aten.bincount.default] = described


def _batch_norm(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces batch_norm, using cuDNN where torch does on a GPU: for images in single precision, or in half precision
    with single-precision weights, if weights and biases are given."""

    def batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float,
                   eps: float, enabled: bool) -> Any:  # fmt: skip
        has_kernel = x.dtype is torch.float32 or (x.dtype is torch.float16 and _is_single(weight))
        has_all = weight is not None and bias is not None and (mean is None) == (variance is None)
        fits = x.dim() >= 3 and x.shape[0] <= (880_801 if training else 65_535) and x.numel() < 1 << 31
        if enabled and has_kernel and has_all and fits and (training or mean is not None):
            x = x.contiguous(memory_format=suggest_memory_format(x))  # a part of a larger tensor is copied first
            return torch.ops.aten.cudnn_batch_norm(x, weight, bias, mean, variance, training, momentum, eps)[0]
        return original(x, weight, bias, mean, variance, training, momentum, eps, enabled)

    return batch_norm


def _is_single(tensor: Any) -> bool:
    return tensor is not None and tensor.dtype is torch.float32


def _rms_norm(original: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Replaces rms_norm, for which torch has one kernel on a GPU if all dtypes are the same. Without a GPU torch
    decomposes it into other operators, so the fused operator is recorded here."""

    def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
        if weight is not None and weight.dtype is not x.dtype:
            return original(x, shape, weight, eps)
        with recorder.pausing():
            made = torch.ops.aten._fused_rms_norm(x, list(shape), weight, eps)
        recorder.operator("operator", "aten::_fused_rms_norm.default", (x, list(shape), weight, eps), {}, made)
        return made[0]

    return rms_norm


def _use_fused_attention() -> None:
    """Make attention one fused operator, as torch does on a GPU: one for half precision without a mask, another for
    other cases. With fewer heads of keys than of queries, the latter is cuDNN's, for half precision only."""
    original, aten = torch.nn.functional.scaled_dot_product_attention, torch.ops.aten

    def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                  is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Any:  # fmt: skip
        is_half, width = query.dtype in (torch.float16, torch.bfloat16), query.shape[-1]
        fits = query.dim() == 4 and query.dtype is key.dtype is value.dtype
        if fits and is_half and attn_mask is None and width == value.shape[-1] <= 256 and width % 8 == 0:
            return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[0]
        has_kernel = is_half or (query.dtype is torch.float32 and not enable_gqa)
        if fits and has_kernel and width % (8 if is_half else 4) == 0:
            mask = attn_mask
            if mask is not None:
                if mask.dtype is torch.bool:
                    at = {"dtype": query.dtype, "device": query.device}
                    mask = torch.where(mask, torch.scalar_tensor(0.0, **at), torch.scalar_tensor(-torch.inf, **at))
                mask = mask.expand(*query.shape[:3], key.shape[2])
            kernel = (
                aten._scaled_dot_product_cudnn_attention if enable_gqa else aten._scaled_dot_product_efficient_attention
            )
            return kernel(query, key, value, mask, False, dropout_p, is_causal, scale=scale)[0]
        return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    torch.nn.functional.scaled_dot_product_attention = attention


def _as_it_is(model: Any) -> Any:
    """A copy that has the same parts. Parts that the model gets later are not added to the copy."""
    made = copy.copy(model)
    for name in ("_modules", "_parameters", "_buffers", "_forward_pre_hooks"):
        made.__dict__[name] = model.__dict__[name].copy()
    return made


def _told(function: Callable[..., Any], tell: Callable[[], None]) -> Callable[..., Any]:
    """Wrap a function so that each call first calls `tell`."""

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        tell()
        return function(*arguments, **named)

    return called


def _leave_uncompiled(recorder: Recorder) -> None:
    """Make functions that compile another function return it uncompiled. Its operators are then recorded as if computed
    one by one, and a note in the trace says so. For a model they return a copy, since a compiled model does not see
    what the model is given later."""

    def leaving(note: str) -> Callable[..., Any]:
        def tell(*_: Any) -> None:
            recorder.notes[note] = None

        def same(function: Any = None, *_: Any, **__: Any) -> Any:
            if function is None:
                return same
            if isinstance(function, torch.nn.Module):
                made = _as_it_is(function)
                made.register_forward_pre_hook(tell)
                return made
            return _told(function, tell) if isinstance(function, FunctionType | MethodType) else function

        return same

    torch.compile = leaving(COMPILED)
    torch.jit.script = torch.jit.trace = torch.jit.freeze = torch.jit.optimize_for_inference = leaving(SCRIPTED)
    graphed = leaving(GRAPHED)
    torch.cuda.make_graphed_callables = lambda called, *_, **__: (
        tuple(map(graphed, called)) if isinstance(called, tuple) else graphed(called)
    )


def _tune_without_timing(recorder: Recorder, driver: RecordingDriver) -> None:
    """Make timing, by Triton's autotuner or the module itself, only call the function, unrecorded, and return 0."""

    def do_bench(call: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
        with recorder.pausing():
            call()
        return [0.0] * len(quantiles) if quantiles else 0.0

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = do_bench
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    prune, bench = autotuner.prune_configs, autotuner._bench

    def prune_configs(self: Any, *arguments: Any, **named: Any) -> Any:
        return driver.begin_tuning(self.base_fn.__name__, list(prune(self, *arguments, **named)))

    def trying(self: Any, *arguments: Any, config: Any, **named: Any) -> Any:
        driver.tries = config
        return bench(self, *arguments, config=config, **named)

    autotuner.prune_configs, autotuner._bench = prune_configs, trying


def _move_tensors(to: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap Tensor.to. torch knows the values of a tensor that was made of plain numbers. When it moves to the GPU they
    are dropped, since torch would compute with them there."""

    def moved(self: Any, *arguments: Any, **named: Any) -> Any:
        arguments = tuple(map(_indexed, arguments))
        named = {name: _indexed(value) for name, value in named.items()}
        known = getattr(self, "constant", None)
        if known is None or torch.device("cuda", 0) not in (*arguments, *named.values()):
            return to(self, *arguments, **named)
        self.constant = None
        try:
            return to(self, *arguments, **named)
        finally:
            self.constant = known

    return moved


def _indexed(argument: Any) -> Any:
    """Replace the device `cuda` by `cuda:0`, since there is no runtime that knows the current device."""
    is_cuda = argument == "cuda" if isinstance(argument, str) else isinstance(argument, torch.device)
    return torch.device("cuda", 0) if is_cuda and torch.device(argument).type == "cuda" else argument


def _register_cuda_guard() -> None:
    """Without a guard for CUDA devices, a torch built for the CPU cannot index or copy its own fake CUDA tensors.

    FakeTensorMode sets a guard that does nothing, but only in builds with CUDA; here the meta device's guard is used.
    """
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so")
    with contextlib.suppress(OSError, ValueError):
        registry = (ctypes.c_void_p * 16).in_dll(ctypes.CDLL(library), "_ZN3c104impl26device_guard_impl_registryE")
        cuda, meta = 1, 14
        if not registry[cuda]:
            registry[cuda] = registry[meta]
