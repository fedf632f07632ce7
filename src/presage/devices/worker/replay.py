"""Replay: runs the steps of a trace in a process in which no foreign host code has ever run.

Everything that can be prepared before a call is prepared: a call runs a list of closures over a list of values.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from presage.devices.worker import tensors
from presage.devices.worker.gpu import Gpu, TensorRunner
from presage.static.trace import (
    COPY,
    FILL,
    FLAGS,
    FREE,
    ITEM_SIZES,
    LAUNCHES,
    Launch,
    Step,
    TensorSpec,
    Trace,
    TraceError,
    tensors_in,
)
from presage.static.tracing import arguments
from presage.static.tracing.driver_launch import PORTABLE_CLUSTER, starting
from presage.static.tracing.recorder import cost, current_flags, kind_of, set_flags

_OPERATOR = re.compile(r"aten::(\w+)\.(\w+)")
_SAFE = """
    _softmax _to_copy _unsafe_view abs add add_ addmm alias all amax amin any arange as_strided bitwise_and
    bitwise_not bitwise_or bmm cat ceil clamp clamp_max clamp_min clone complex copy_ cos cumsum detach div div_
    empty_like eq erf exp exp_ expand expm1 fill_ flip floor floor_divide fmod full_like ge gt le lift_fresh
    linalg_vector_norm log log1p logical_and logical_not logical_or lt masked_fill maximum mean minimum mm mul
    mul_ ne neg new_empty new_empty_strided new_full new_ones new_zeros normal_ ones_like permute polar pow prod
    real reciprocal remainder repeat round rsqrt rsub scalar_tensor select sigmoid sign sin slice split
    split_with_sizes sqrt squeeze std sub sub_ sum t tan tanh transpose tril triu unbind uniform_ unsqueeze var
    view view_as_complex view_as_real where zero_ zeros_like
"""
_SAFE_ON_HOST = frozenset(_SAFE.split())
"""Operators that a replay may run on tensors of the host. They are what host code prepares small tensors with. Some
others of torch's read or write wherever an index says, without a check."""
_ALIGN = 256
_HIDDEN = 2
"""How many more pointer parameters a Triton kernel may have than its trace names, for memory that it does not use."""
UNDERSTATED = 2
"""How many times the work that its step says an operator may do, where its results are as large as the inputs' values
ask for."""
_KEPT = 256 << 20
"""Bytes of GPU memory that stay allocated for the next module. Asking the driver for memory takes tens of
milliseconds."""
Values = list[Any]
"""A call's tensors by their numbers; None before a tensor is made and after its last use."""
Action = Callable[[Values], None]


class Program:
    """A trace that can be called. As in a module, what a call writes to constants is there in the next call."""

    def __init__(
        self,
        trace: Trace,
        constants: Sequence[Any],
        torch: Any,
        launcher: Callable[[str, Launch], Action] | None = None,
        device: str = "cuda",
        is_ours: bool = False,
    ) -> None:
        """is_ours: whether we have written the trace, so that what it says of its steps need not be checked."""
        if trace.lacks:
            raise TraceError(trace.lacks)
        self._torch, self._device, self._launcher, self._is_ours = torch, device, launcher, is_ours
        self._inputs, self._size = trace.inputs, len(trace.tensors)
        self._constants = list(zip(trace.constants, constants, strict=True))
        self._flags: dict[str, bool] = {}
        self._actions = self._prepared(trace)
        self._outputs = self._builder([trace.outputs])

    def __call__(self, inputs: Sequence[Any]) -> Any:
        values: Values = [None] * self._size
        for number, tensor in zip(self._inputs, inputs, strict=True):
            values[number] = tensor
        for number, tensor in self._constants:
            values[number] = tensor
        for action in self._actions:
            action(values)
        return self._outputs(values)[0]

    def _prepared(self, trace: Trace) -> list[Action]:
        """An action for each step that does something, and one after a tensor's last use that releases the tensor."""
        last = {number: at for at, step in enumerate(trace.steps) for number in (*step.reads, *step.makes)}
        kept = {*trace.inputs, *trace.constants, *tensors_in([trace.outputs])}
        found: list[Action] = []
        launched = False
        for at, step in enumerate(trace.steps):
            if step.flags:
                found.append(self._set(dict(step.flags)))
            if step.kind in LAUNCHES:
                found.append(self._launch(step, may_overlap=launched))
                launched = True
            elif step.name in (COPY, FILL):
                found.append(self._memory(step))
            elif step.kind != "sync":  # the value that the host waited for is already written into later steps
                found.append(self._operator(step))
            if done := [number for number in {*step.reads, *step.makes} if last[number] == at and number not in kept]:
                found.append(_forgetting(done))
        return found

    def _set(self, flags: dict[str, bool]) -> Action:
        if flags.keys() != set(FLAGS):
            raise TraceError("a step has some of torch's settings, and not others")

        def change(values: Values) -> None:
            if self._flags != flags:
                set_flags(flags)
                self._flags = flags

        return change

    def _launch(self, step: Step, may_overlap: bool) -> Action:
        """An action that launches a kernel. The first one of a call must not start before what lies in front of the
        call has ended, since the time of the call begins there."""
        if self._launcher is None or step.launch is None:
            raise TraceError("a kernel cannot be launched here")
        how = replace(step.launch, overlapping=step.launch.overlapping and may_overlap)
        given, launch = [*step.reads], self._launcher(step.name, how)

        def first_launch(values: Values) -> None:
            if any(values[number].device.type != self._device for number in given):
                raise TraceError("a kernel is given memory of the host, where the host could go on with what it writes")
            launch(values)

        return _first(first_launch, launch)

    def _memory(self, step: Step) -> Action:
        """An action that copies bytes of a tensor to another one, or fills them with one value."""
        try:
            size, *rest = step.arguments
            value = None if step.name == COPY else rest.pop(0)
            places = [(code["tensor"], offset) for code, offset in zip(rest[::2], rest[1::2], strict=True)]
            (into, to), *source = places
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError("bytes that are copied or filled, but not where") from error
        if any(type(number) is not int for number in (size, to, *(offset for _, offset in source))):
            raise TraceError("bytes that are copied or filled, but not how many")
        if step.kind != "operator" or step.bytes < size * len(places):
            raise TraceError("bytes that are copied or filled, but more than the step says")
        if value is None and len(source) == 1:
            ((origin, start),) = source

            def copy(values: Values) -> None:
                _bytes(values[into], to, size, self._torch).copy_(_bytes(values[origin], start, size, self._torch))

            return copy
        if type(value) is not int or source:
            raise TraceError("bytes that are copied or filled, but not with what")

        def fill(values: Values) -> None:
            _bytes(values[into], to, size, self._torch).fill_(value)

        return fill

    def _operator(self, step: Step) -> Action:
        function = operator(step.name, self._torch)
        _refuse_unseen(step, function)
        if not _works_on_tensors(function):
            return lambda values: None  # the value that it gave the host is already written into later steps
        names, others = tuple(step.named), self._builder(tuple(step.named.values()))
        build, store = self._builder(step.arguments), _storing(step.results)

        def first_call(values: Values) -> None:
            if reason := self._why_not(step, values):
                raise TraceError(reason)
            given, named = build(values), dict(zip(names, others(values), strict=True))
            result = function(*given, **named)
            if not self._is_ours:
                _refuse_understated(step, function, given, named, result)
            store(values, result)
            if not all(isinstance(values[number], self._torch.Tensor) for number in step.makes):
                raise TraceError(f"{step.name} gives no tensor where a later step takes one")

        def call(values: Values) -> None:
            store(values, function(*build(values)))

        def call_named(values: Values) -> None:
            store(values, function(*build(values), **dict(zip(names, others(values), strict=True))))

        return _first(first_call, call_named if names else call)

    def _why_not(self, step: Step, values: Values) -> str:
        """Why an operator cannot be run on these tensors: it would compute on the host what it might not do safely
        there."""
        first = next(iter(step.reads), None)
        if self._device == "cpu" or first is None or step.base_name in _SAFE_ON_HOST:
            return ""
        return f"it runs {step.base_name} on tensors of the host" if values[first].device.type == "cpu" else ""

    def _builder(self, codes: Sequence[Any]) -> Callable[[Values], list[Any]]:
        """A function that makes a list of arguments from a call's values. Arguments that do not change are made
        once."""
        fixed: list[Any] = []
        places: list[tuple[int, int]] = []
        inner: list[tuple[int, Callable[[Values], list[Any]]]] = []
        for at, code in enumerate(codes):
            if isinstance(code, dict) and "tensor" in code:
                places.append((at, code["tensor"]))
            elif any(True for _ in tensors_in([code])):
                inner.append((at, self._builder(code["list"])))
            else:
                fixed.append(self._fixed(code))
                continue
            fixed.append(None)

        def build(values: Values) -> list[Any]:
            made = fixed.copy()
            for at, number in places:
                made[at] = values[number]
            for at, part in inner:
                made[at] = part(values)
            return made

        return build

    def _fixed(self, code: Any) -> Any:
        """Decode an argument that contains no tensors. Raises TraceError."""
        try:
            return arguments.decode(code, lambda number: None, self._device)
        except (RuntimeError, TypeError, ValueError) as error:
            raise TraceError(f"a value that torch does not know: {error}") from error


def operator(name: str, torch: Any) -> Any:
    """One of torch's own operators by its full name. Raises TraceError."""
    if not (found := _OPERATOR.fullmatch(name)):
        raise TraceError(f"{name[:100]} is not an operator of torch's own")
    try:
        return getattr(getattr(torch.ops.aten, found[1]), found[2])
    except AttributeError as error:
        raise TraceError(f"this torch has no operator {name}") from error


def _bytes(tensor: Any, offset: int, size: int, torch: Any) -> Any:
    """`size` bytes of a tensor's memory, from `offset` bytes after its first element. Raises TraceError if they lie
    outside of it."""
    start, storage = tensor.storage_offset() * tensor.element_size() + offset, tensor.untyped_storage()
    if start < 0 or size < 0 or start + size > storage.nbytes():
        raise TraceError("bytes outside of a tensor's memory are copied or filled")
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, start, (size,), (1,))


def _forgetting(numbers: Sequence[int]) -> Action:
    def forget(values: Values) -> None:
        for number in numbers:
            values[number] = None

    return forget


def _first(first: Action, run: Action) -> Action:
    """An action that is `first` until that has succeeded once, and then `run`."""
    done = False

    def action(values: Values) -> None:
        nonlocal done
        (run if done else first)(values)
        done = True

    return action


def _refuse_unseen(step: Step, function: Any) -> None:
    """Raise TraceError for a step that says it does no work, and does, and for a copy to the host that the host does
    not wait for: such memory changes while the host goes on, whose time is not measured."""
    given = dict(zip((argument.name for argument in function._schema.arguments), step.arguments, strict=False))
    given |= step.named
    to_host = given.get("device") == {"device": "cpu"} or "other" in given
    if given.get("pin_memory") or (given.get("non_blocking") and to_host):
        raise TraceError("it asks for memory of the host that the GPU writes to while the host goes on")
    if step.kind in FREE and kind_of(function, (), ()) != step.kind:
        raise TraceError(f"{step.name} is said to be no work")


def _works_on_tensors(function: Any) -> bool:
    """Whether an operator returns tensors or writes to them. Others tell the host a value, or change torch's state."""
    returned, taken = function._schema.returns, function._schema.arguments
    written = [each for each in taken if each.alias_info is not None and each.alias_info.is_write]
    return any("Tensor" in str(each.type) for each in (*returned, *written))


def _refuse_understated(step: Step, function: Any, given: Any, named: Any, result: Any) -> None:
    """Raise TraceError if an operator does much more than its step says. By what the steps say, the share of a module's
    own kernels is told."""
    size, flops, _ = cost(function, given, named, result, kind_of(function, given, result), current_flags())
    if size > UNDERSTATED * step.bytes or flops > UNDERSTATED * step.flops:
        raise TraceError(f"{step.name} does more work than its step says")


def _storing(code: Any) -> Callable[[Values, Any], None]:
    """A function that stores an operator's results where later steps find them."""
    if code is None or not isinstance(code, dict):
        return lambda values, result: None
    if "tensor" in code:
        number = code["tensor"]

        def store(values: Values, result: Any) -> None:
            values[number] = result

        return store
    parts = [_storing(part) for part in code.get("list", ())]

    def store_each(values: Values, result: Any) -> None:
        for part, value in zip(parts, result, strict=True):
            part(values, value)

    return store_each


# -- constants --------------------------------------------------------------------------------------------------------


def span(spec: TensorSpec) -> int:
    """The bytes from a tensor's first element to its last."""
    if 0 in spec.shape:
        return 0
    steps = spec.stride or _rows(spec.shape)
    return (1 + sum((size - 1) * step for size, step in zip(spec.shape, steps, strict=True))) * ITEM_SIZES[spec.dtype]


def _rows(shape: Sequence[int]) -> tuple[int, ...]:
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * size)
    return tuple(reversed(steps[: len(shape)]))


def placed(trace: Trace) -> tuple[list[int], int]:
    """The offset of each constant in one block of all constants, and the size of the block, in bytes."""
    offsets, end = [], 0
    for number in trace.constants:
        offsets.append(end)
        end = -(-(end + span(trace.tensors[number])) // _ALIGN) * _ALIGN
    return offsets, end


def constants(trace: Trace, block: Any, torch: Any, device: str = "cuda") -> list[Any]:
    """The trace's constants, each copied from a block of bytes to memory of its own."""
    found = []
    for number, offset in zip(trace.constants, placed(trace)[0], strict=True):
        spec = trace.tensors[number]
        place = device if spec.device == "cuda" else spec.device
        steps = spec.stride or _rows(spec.shape)
        tensor = torch.empty_strided(spec.shape, steps, dtype=getattr(torch, spec.dtype), device=place)
        if size := span(spec):
            flat = tensor.as_strided((size // ITEM_SIZES[spec.dtype],), (1,)).view(torch.uint8)
            flat.copy_(block[offset : offset + size])
        found.append(tensor)
    return found


# -- launches ---------------------------------------------------------------------------------------------------------


class MachineCode:
    """Loads a trace's machine code and prepares its launches, on the current stream."""

    def __init__(self, gpu: Gpu, cubins: Sequence[bytes]) -> None:
        self._gpu, self._driver, self._cubins = gpu, gpu.driver, cubins
        self._modules: dict[int, Any] = {}
        self._functions: dict[tuple[int, str], Any] = {}
        self._shared: dict[tuple[int, str], int] = {}

    def __call__(self, name: str, launch: Launch) -> Action:
        function = self._function(name, launch)
        contents = [parameter.content for parameter in launch.parameters]
        contents += [bytes(8)] * self._hidden(function, launch)
        buffers = [ctypes.create_string_buffer(content, len(content)) for content in contents]
        addresses = [ctypes.addressof(buffer) for buffer in buffers]
        array = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        pointers = [
            (ctypes.c_uint64.from_buffer(buffer, at), number, offset)
            for buffer, parameter in zip(buffers, launch.parameters, strict=False)
            for at, number, offset in parameter.pointers
        ]
        start = starting(self._driver, function, launch, ctypes.addressof(array))
        check, kept = self._gpu, (buffers, array)

        def run(values: Values) -> None:
            for place, number, offset in pointers:
                place.value = values[number].data_ptr() + offset
            check(start())

        run.kept = kept  # type: ignore[attr-defined]  # the driver has only their addresses
        return run

    def _function(self, name: str, launch: Launch) -> Any:
        key, gpu, driver = (launch.cubin, name), self._gpu, self._driver
        if launch.cubin not in self._modules:
            self._modules[launch.cubin] = gpu(driver.cuModuleLoadData(self._cubins[launch.cubin]))
        if key not in self._functions:
            self._functions[key] = gpu(driver.cuModuleGetFunction(self._modules[launch.cubin], name.encode()))
        function, (x, y, z) = self._functions[key], launch.cluster
        if launch.shared > self._shared.get(key, 0):
            self._shared[key] = launch.shared
            gpu(driver.cuFuncSetAttribute(function, gpu.dynamic_shared, launch.shared))
        if x * y * z > PORTABLE_CLUSTER:
            wide = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            gpu(driver.cuFuncSetAttribute(function, wide, 1))
        return function

    def close(self) -> None:
        """Unload the machine code. Prepared launches cannot run any more."""
        for module in self._modules.values():
            self._gpu(self._driver.cuModuleUnload(module))
        self._modules, self._functions = {}, {}

    def _hidden(self, function: Any, launch: Launch) -> int:
        """The number of the kernel's parameters that the trace does not name. Raises TraceError if named ones are too
        short."""
        try:
            sizes = self._sizes(function)
        except (AttributeError, RuntimeError):  # before CUDA 12.4; surplus parameters do no harm
            return _HIDDEN
        named = [len(parameter.content) for parameter in launch.parameters]
        fits = all(size <= given for size, given in zip(sizes, named, strict=False))
        if not fits or not len(named) <= len(sizes) <= len(named) + _HIDDEN or max([8, *sizes[len(named) :]]) > 8:
            raise TraceError(f"a kernel with parameters of {sizes} bytes is launched with {named}")
        return len(sizes) - len(named)

    def _sizes(self, function: Any) -> list[int]:
        """The sizes of the kernel's parameters in bytes."""
        sizes: list[int] = []
        while not int((found := self._driver.cuFuncGetParamInfo(function, len(sizes)))[0]):
            sizes.append(int(found[2]))
        return sizes


# -- in the child -----------------------------------------------------------------------------------------------------


class ReplayRunner(TensorRunner):
    """Runs the programs of one module, by name, on inputs in the arena. After `close` another module can use the
    process."""

    def __init__(self, command: dict[str, Any], gpu: Gpu) -> None:
        super().__init__(gpu)
        self._torch.set_grad_enabled(False)
        self._flags = current_flags()
        self._programs: dict[str, Program] = {}
        self._program: Program | None = None
        self._loaded: list[MachineCode] = []

    def close(self, command: dict[str, Any]) -> None:
        """Restore the process to its initial state: no machine code, no tensors, and torch's settings as they were."""
        self._gpu(self._gpu.driver.cuCtxSynchronize())
        self._programs, self._program, self._slots = {}, None, []
        for code in self._loaded:
            code.close()
        self._loaded = []
        set_flags(self._flags)
        gc.collect()  # programs are part of reference cycles, and hold a module's weights
        if self._torch.cuda.memory_reserved() > _KEPT:
            self._torch.cuda.empty_cache()

    def program(self, command: dict[str, Any]) -> None:
        """Load a trace from a file, and its constants from memory that another process shares."""
        with open(command["path"], "rb") as file:
            trace = Trace.from_document(json.load(file))
        found = self._constants(trace, command["handle"])
        self._loaded.append(MachineCode(self._gpu, trace.cubins))
        self._programs[command["name"]] = Program(trace, found, self._torch, self._loaded[-1])

    def _constants(self, trace: Trace, handle: str) -> list[Any]:
        _, size = placed(trace)
        if not size:
            return constants(trace, None, self._torch)
        gpu, driver = self._gpu, self._gpu.driver
        address = gpu.mapped(handle)
        try:
            code, _, length = driver.cuMemGetAddressRange(address)
            if not int(code) and int(length) < size:
                raise TraceError("there is less memory than the constants need")
            found = constants(trace, tensors.gpu_bytes(address, size, self._torch), self._torch)
            gpu(driver.cuCtxSynchronize())
            return found
        finally:
            gpu(driver.cuIpcCloseMemHandle(address))

    def lay_out(self, layout: dict[str, Any]) -> None:
        super().lay_out(layout)
        self._program = self._programs[layout["program"]]

    def _call(self, slot: Any) -> Any:
        assert self._program is not None
        return self._program(slot.views)
