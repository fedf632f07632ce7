"""Recorder: records what a call does, as a Trace, while the call runs.

It sees every torch operator through torch's own dispatch mode. Launches are reported to it by `triton_launches` and
`cuda_launches`. It works on tensors with values and on tensors that have only shapes.
"""

from __future__ import annotations

import contextlib
import gc
import math
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from torch.utils.weak import WeakIdKeyDictionary

from presage.static import inline_cuda, operations
from presage.static.operator_calls import IN_PLACE_VIEWS
from presage.static.trace import (
    GRAPHED,
    ITEM_SIZES,
    KEPT,
    NO_TENSOR,
    PRECISIONS,
    Launch,
    Parameter,
    Step,
    TensorSpec,
    Trace,
    tensors_in,
)
from presage.static.tracing import arguments, without_values
from presage.static.tracing.arguments import UnwritableError

_ALLOCATIONS = ("empty", "new_empty", "resize_", "set_")
_VIEWS = ("detach", "alias", "lift_fresh", "_unsafe_view", "_reshape_alias", *IN_PLACE_VIEWS)
_OVERWRITES = ("copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_")
"""Operators that do not read what they overwrite."""
_READ_IN_PART = ("embedding", "index_select", "gather", "index")
"""Operators that read as many bytes of their first tensor as they return, and their indices."""
_TELLS_VALUES = ("equal", "allclose", "is_nonzero")
"""Operators that tell the host something that depends on tensors' values. Others tell of shapes and types."""
_READS_INPUTS = "its host code reads a value that depends on the inputs"
_MOST_SHARED = 1 << 30
"""Most bytes of a storage that constants may share. In a larger storage each constant is kept separately."""


@dataclass
class Capture:
    """The steps that were recorded while a CUDA graph was captured. They happen whenever the graph is replayed."""

    steps: list[Step] = field(default_factory=list)
    kept: list[torch.Tensor] = field(default_factory=list)
    lacks: str | None = None


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Records calls. It must be active before a module is loaded, so that it knows the module's tensors. Steps are kept
    between `begin` and `end`. Steps inside `pausing`, and those that a CUDA graph captures, are not part of a call."""

    def __init__(self, has_gpu: bool) -> None:
        super().__init__()
        self.has_gpu = has_gpu
        self.codes: list[bytes] = []
        self.notes: dict[str, None] = {}
        self.is_memory: Callable[[int], bool] = lambda address: False
        """Whether a number is an address in the GPU's memory; always False where that cannot be determined."""
        self._specs: list[TensorSpec] = []
        self._numbers = WeakIdKeyDictionary()
        self._places: dict[int, tuple[int, weakref.ref[torch.Tensor]]] = {}
        """For each storage, by its first address: its size in bytes, and a tensor in it."""
        self._steps: list[Step] | None = None
        self._captures: list[Capture] = []
        self._wholes: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        """By the first address of a storage that several tensors share, and a dtype: a tensor over all of it."""
        self._paused = self._calls = 0
        self._earlier: set[int] = set()
        """Tensors that earlier calls made of their inputs' values."""
        self._noted: dict[str, None] = {}
        self._reset()

    def _reset(self) -> None:
        self._alive: list[torch.Tensor] = []
        """Tensors that are kept alive while a call is recorded, so that no address is used twice."""
        self._inputs: list[int] = []
        self._there: set[int] = set()
        self._tainted: set[int] = set()
        """Tensors that depend on the inputs' values."""
        self._constants: dict[int, torch.Tensor | None] = {}
        self._before: set[int] = set()
        """The first addresses of storages that existed before the call."""
        self._searched = False
        self._lacks: str | None = None

    # -- a call -------------------------------------------------------------------------------------------------------

    def begin(self, tensors: Sequence[torch.Tensor]) -> None:
        """Start recording a call on these tensors."""
        self._reset()
        if self._calls == 0:
            self._noted = dict(self.notes)  # the notes from loading the module
        self.notes.clear()
        self.notes.update(self._noted)
        self._calls += 1
        self._steps = []
        self._before = {begin for begin, (_, tensor) in self._places.items() if tensor() is not None}
        self._inputs = [self.number(tensor) for tensor in tensors]
        self._there.update(self._inputs)
        self._tainted.update(self._inputs)

    def end(self, result: Any) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """Stop recording the call that has returned this result. Return its trace, as a document with machine code, and
        the contents of its constants before the call, each as the bytes from its first to its last element. Without a
        GPU there are no contents."""
        outputs = self._written(result)
        steps, self._steps = self._steps or [], None
        taken = (number for step in steps for number in (*step.reads, *step.makes))
        used = dict.fromkeys([*self._inputs, *taken, *tensors_in([outputs])])
        order = {number: at for at, number in enumerate(used)}
        constants = [number for number in self._constants if number in order]
        if self._earlier.intersection(constants) and not self._tainted.intersection(tensors_in([outputs])):
            self.notes[KEPT] = None
        self._earlier |= self._tainted.difference(self._inputs, constants)
        codes = sorted({step.launch.cubin for step in steps if step.launch})
        trace = Trace(
            tensors=tuple(self._specs[number] for number in order),
            inputs=tuple(order[number] for number in self._inputs),
            constants=tuple(order[number] for number in constants),
            steps=tuple(_renumbered(step, order, codes) for step in steps),
            outputs=_renumber(outputs, order),
            cubins=tuple(self.codes[code] for code in codes),
            notes=tuple(self.notes),
            lacks=self._lacks,
        )
        values = [value for number in constants if (value := self._constants[number]) is not None]
        self._reset()
        return trace.to_document(with_code=True), values

    def stop(self) -> None:
        """Stop recording a call that has failed."""
        self._steps = None
        self._reset()

    def _written(self, result: Any) -> Any:
        known = len(self._specs)
        try:
            written = arguments.encode(result, self._read)
        except UnwritableError as error:
            self.lack(f"{NO_TENSOR}: {error}")
            return None
        if self.has_gpu and any(number >= known for number in tensors_in([written])):
            self.lack(
                "it returns a tensor that no recorded step has made; kernels that TorchScript fuses are not recorded"
            )
        return written

    def lack(self, reason: str) -> None:
        """Note the first reason why the call cannot be replayed from its trace."""
        if self._paused:
            return
        if self._captures:
            self._captures[-1].lacks = self._captures[-1].lacks or reason
        elif self._steps is not None:
            self._lacks = self._lacks or reason

    @contextlib.contextmanager
    def pausing(self) -> Iterator[None]:
        """In this context nothing is recorded, for example while a configuration is tried out."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    @property
    def is_listening(self) -> bool:
        return not self._paused and (self._steps is not None or bool(self._captures))

    def _add(self, step: Step) -> None:
        if self._paused:
            return
        if self._captures:
            self._captures[-1].steps.append(step)
        elif self._steps is not None:
            self._steps.append(step)
            self._there.update(step.makes)
            if self._tainted.intersection(step.reads):
                self._tainted.update(step.reads if step.launch else step.makes)

    # -- graphs -------------------------------------------------------------------------------------------------------

    def begin_capture(self) -> None:
        self._captures.append(Capture())

    def end_capture(self) -> Capture:
        return self._captures.pop()

    def replay(self, capture: Capture) -> None:
        """Add the steps of a CUDA graph that is about to run to the call."""
        if self._steps is None or self._paused or self._captures:
            return
        self.notes[GRAPHED] = None
        if capture.lacks:
            self.lack(capture.lacks)
        tensors = {self._numbers[tensor]: tensor for tensor in capture.kept}
        for step in capture.steps:
            for number in step.reads:
                self._need(number, tensors[number])
            self._add(step)
        self._alive += capture.kept

    # -- tensors ------------------------------------------------------------------------------------------------------

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor. A new tensor gets the next number."""
        known: int | None = self._numbers.get(tensor)
        spec = spec_of(tensor)
        if known is None:
            known = len(self._specs)
            self._numbers[tensor] = known
            self._specs.append(spec)
        elif self._specs[known] != spec:  # resized, or given another storage
            self._specs[known] = spec
        self._places[_begin(tensor)] = tensor.untyped_storage().nbytes(), weakref.ref(tensor)
        self._keep(tensor)
        return known

    def _keep(self, tensor: torch.Tensor) -> None:
        if self._captures:
            self._captures[-1].kept.append(tensor)
        elif self._steps is not None:
            self._alive.append(tensor)

    def _read(self, tensor: torch.Tensor) -> int:
        """The number of a tensor that a step takes. It becomes a constant if no step has made it."""
        number = self.number(tensor)
        if not self._captures:
            self._need(number, tensor)
        return number

    def _need(self, number: int, tensor: torch.Tensor) -> None:
        """Make a tensor a constant if no step of the call has made it, since it then existed before the call."""
        if self._steps is None or self._paused or number in self._there:
            return
        self._there.add(number)
        if self._is_part(tensor):
            whole = self._whole(tensor)
            self._need(self.number(whole), whole)
            self._add(self._part(tensor, number))
            return
        with self.pausing():  # copying its content is not part of the call
            self._constants[number] = content_of(tensor) if self.has_gpu else None

    def _is_part(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is only a part of its storage, which may hold other constants, too."""
        size = tensor.untyped_storage().nbytes() if self.has_gpu else 0
        return span_of(tensor) * tensor.element_size() < size <= _MOST_SHARED and not size % tensor.element_size()

    def _part(self, tensor: torch.Tensor, number: int) -> Step:
        """The step that makes a tensor as a view of its whole storage."""
        lies = ({"list": [*tensor.shape]}, {"list": [*tensor.stride()]}, tensor.storage_offset())
        whole = self.number(self._whole(tensor))
        return Step("view", "aten::as_strided.default", ({"tensor": whole}, *lies), {}, {"tensor": number})

    def _whole(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        key = storage.data_ptr(), tensor.dtype
        if key not in self._wholes:
            with self.pausing():
                whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                self._wholes[key] = whole.set_(storage, 0, (storage.nbytes() // tensor.element_size(),), (1,))
        return self._wholes[key]

    def at(self, address: int) -> tuple[int, int] | None:
        """The number of a tensor whose storage contains this address, and the byte offset from the tensor's first
        element; None if there is no such tensor."""
        found = self._tensor_at(address)
        if found is None and self.is_memory(address):
            self._search()
            found = self._tensor_at(address)
            if found is None:
                self.lack("it gives a kernel memory that belongs to no tensor")
        return None if found is None else (self._read(found), address - found.data_ptr())

    def _tensor_at(self, address: int) -> torch.Tensor | None:
        for begin, (size, reference) in self._places.items():
            if begin <= address < begin + max(1, size):
                tensor = reference()
                if tensor is not None and _begin(tensor) == begin:  # it may have another storage by now
                    return tensor
        return None

    def _search(self) -> None:
        """Register every tensor in the process. A module's weights get new storages when it is moved to the GPU, and
        host code may take their addresses without calling any operator."""
        if self._searched:
            return
        self._searched = True
        for each in gc.get_objects():
            if issubclass(type(each), torch.Tensor):  # isinstance could run code of other objects
                self._meet(each)

    # -- steps --------------------------------------------------------------------------------------------------------

    def sync(self, name: str) -> None:
        self._add(Step("sync", name))

    def operator(self, kind: str, name: str, values: Sequence[Any], named: dict[str, Any], results: Any) -> None:
        """Add a step that torch's dispatcher has not seen."""
        taken = tuple(arguments.encode(value, self._read) for value in values)
        options = {key: arguments.encode(value, self._read) for key, value in named.items()}
        made = arguments.encode(results, self.number)
        tensors = {*tensors_in([*taken, *options.values(), made])} if kind == "operator" else ()
        size = sum(self._specs[number].bytes for number in tensors)
        flops = float(max((math.prod(self._specs[number].shape) for number in tensors), default=0))
        self._add(Step(kind, name, taken, options, made, bytes=size, flops=flops))

    def memory(self, name: str, written: Sequence[Any], size: int) -> None:
        """Add a copy or a fill that moves `size` bytes. `written` holds its encoded arguments."""
        self._add(Step("operator", name, tuple(written), bytes=size))

    def launch(self, kind: str, name: str, launch: Launch, code: bytes, others: Sequence[torch.Tensor] = ()) -> None:
        """Add a launch. `others` are tensors that it is given and that are not among its parameters."""
        if code not in self.codes:
            self.codes.append(code)
        touched = {number for parameter in launch.parameters for _, number, _ in parameter.pointers}
        touched.update(map(self._read, others))
        size = sum(self._specs[number].bytes for number in touched)
        self._add(Step(kind, name, launch=replace(launch, cubin=self.codes.index(code)), bytes=size))

    def pointer(self, tensor: torch.Tensor) -> Parameter:
        return Parameter(bytes(8), ((0, self._read(tensor), 0),))

    def parameter(self, content: bytes) -> Parameter:
        """Make a launch's parameter from its bytes, and find the addresses in them."""
        pointers = []
        for at in range(0, len(content) - 7, 8):
            (address,) = struct.unpack_from("<Q", content, at)
            if address >= _LEAST_ADDRESS and (place := self.at(address)):
                pointers.append((at, *place))
        return Parameter(content, tuple(pointers))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.has_gpu:
            known = without_values.known(func, args, kwargs)
            if known is not NotImplemented:
                return known
            args, kwargs = without_values.forget((args, kwargs))
            if _is_of_an_extension(func):
                return self._run_own(func, args, kwargs)
        if self.is_listening:
            return self._recorded(func, args, kwargs)
        result = self._value_of(*args) if func is _ITEM else func(*args, **kwargs)
        self._meet(args, kwargs, result)
        return result

    def _recorded(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator and record it."""
        with self:  # a composite operator is recorded as the operators that it calls
            if func is not torch.ops.prim.device.default and not self._has_kernel(func, args):
                result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        name = func._schema.name
        if not name.startswith(("aten::", "prim::")):
            self.lack(f"it calls {name}, which is none of torch's own operators")
        if func.overloadpacket is torch.ops.aten.set_:
            return self._given_memory(func(*args, **kwargs))
        try:
            taken = tuple(arguments.encode(value, self._read) for value in args)
            named = {key: arguments.encode(value, self._read) for key, value in kwargs.items()}
        except UnwritableError as error:
            self.lack(f"{name} takes {error}")
            return func(*args, **kwargs)
        if func is _ITEM:
            self.sync("item")
            return self._value_of(*args)
        result = func(*args, **kwargs)
        if name.startswith("prim::"):
            return result
        if type(result) in (bool, int, float):
            self._told(name.removeprefix("aten::"), args)
            return result
        try:
            self._add(step_of(func, args, kwargs, result, taken, named, arguments.encode(result, self.number)))
        except UnwritableError as error:
            self.lack(f"{name} returns {error}")
        return result

    def _told(self, name: str, args: Any) -> None:
        """Record that the host was told something of tensors. If these are values, it waits for them."""
        if name not in _TELLS_VALUES:
            return
        self.sync(name)
        if any(
            isinstance(leaf, torch.Tensor) and self._numbers.get(leaf) in self._tainted for leaf in tree_leaves(args)
        ):
            self.lack(_READS_INPUTS)

    def _run_own(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run the function that an extension has registered as an operator (`TORCH_LIBRARY`). What it does is recorded,
        as it is of functions that Python calls directly."""
        inline_cuda.place_tensors((args, kwargs))
        with self:
            return func.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA), *args, **kwargs)

    def _has_kernel(self, func: Any, args: Any) -> bool:
        """Whether torch has a kernel on this device for an operator that it could also decompose into others."""
        if not self.has_gpu:
            return False
        on_gpu = any(isinstance(leaf, torch.Tensor) and leaf.is_cuda for leaf in tree_leaves(args))
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CUDA" if on_gpu else "CPU"))

    def _given_memory(self, tensor: torch.Tensor) -> torch.Tensor:
        """Record that `set_` has made a tensor a view of another tensor's storage."""
        if not self.has_gpu or (not self._captures and self._is_new(tensor)):
            self.lack("it gives a tensor memory that was not there before the call")
            return tensor
        number, whole = self.number(tensor), self._whole(tensor)
        if not self._captures:
            self._need(self.number(whole), whole)
        self._add(self._part(tensor, number))
        return tensor

    def _is_new(self, tensor: torch.Tensor) -> bool:
        """Whether the storage that a tensor was given belongs to a tensor that the call has made."""
        others = [each for each in self._alive if each is not tensor and _begin(each) == _begin(tensor)]
        made = any(self._numbers[each] in self._there and self._numbers[each] not in self._constants for each in others)
        return made and _begin(tensor) not in self._before

    def _value_of(self, tensor: torch.Tensor) -> Any:
        """The number in a tensor that host code reads. If it does not depend on inputs, it is the same in each call.
        Without a GPU, 1.0 stands for the value of a weight. An integer is not guessed, since it may decide sizes."""
        if self._numbers.get(tensor) in self._tainted:
            self.lack(_READS_INPUTS)
        elif not self.has_gpu and getattr(tensor, "constant", None) is None and tensor.dtype.is_floating_point:
            self.notes["its host code reads a weight's value; here it is taken as 1.0"] = None
            return 1.0
        return _ITEM(tensor)

    def _meet(self, *values: Any) -> None:
        """Register tensors by their storage. Used outside of calls."""
        for leaf in tree_leaves(values):
            if isinstance(leaf, torch.Tensor):
                with contextlib.suppress(UnwritableError, RuntimeError):  # a tensor without a storage
                    self.number(leaf)


_TORCH_S = ("aten::", "prim::", "prims::", "profiler::", "inductor::", "quantized::", "_c10d_functional::")
_LEAST_ADDRESS = 1 << 20
_ITEM = torch.ops.aten._local_scalar_dense.default


def _is_of_an_extension(func: Any) -> bool:
    """Whether an operator is none of torch's own, and has a function for the GPU."""
    is_own = not func._schema.name.startswith(_TORCH_S) and inline_cuda.has_runtime()
    return is_own and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CUDA")


def warm_up() -> None:
    """Trigger torch's slow imports: at the first operator under a dispatch mode it imports its compiler, for
    seconds."""
    with Recorder(has_gpu=True):
        torch.zeros(1).add(1)


def _begin(tensor: torch.Tensor) -> int:
    """The first address of a tensor's storage."""
    return int(tensor.data_ptr() - tensor.storage_offset() * tensor.element_size())


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or dtype not in ITEM_SIZES:
        raise UnwritableError(f"a tensor of {tensor.layout} and {tensor.dtype}")
    device = "cpu" if tensor.device.type == "cpu" else "cuda"
    return TensorSpec(tuple(map(int, tensor.shape)), dtype, tuple(map(int, tensor.stride())), device)


def content_of(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the bytes from a tensor's first element to its last."""
    flat = tensor.detach().as_strided((span_of(tensor),), (1,), tensor.storage_offset())
    return flat.view(torch.uint8).clone()


def span_of(tensor: torch.Tensor) -> int:
    """The number of elements in memory from a tensor's first element to its last."""
    steps = ((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return 1 + sum(steps) if tensor.numel() else 0


def allows_tf32(backend: Any) -> bool:
    """Whether products (of `torch.backends.cuda.matmul`) or convolutions (of `torch.backends.cudnn`) may use TF32. Once
    a module has used the newer name of the setting, torch may refuse to tell it by the older one."""
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:
        return bool(getattr(backend, "conv", backend).fp32_precision == "tf32")


def current_flags() -> dict[str, bool]:
    """The settings of torch that decide, beside its arguments, how an operator computes."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return {
        "matmul_tf32": allows_tf32(matmul),
        "cudnn_tf32": allows_tf32(cudnn),
        "cudnn_benchmark": bool(cudnn.benchmark),
        "cudnn_deterministic": bool(cudnn.deterministic),
        "fp16_reduction": bool(matmul.allow_fp16_reduced_precision_reduction),
        "bf16_reduction": bool(matmul.allow_bf16_reduced_precision_reduction),
    }


def set_flags(flags: dict[str, bool]) -> None:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    matmul.allow_tf32, cudnn.allow_tf32 = flags["matmul_tf32"], flags["cudnn_tf32"]
    cudnn.benchmark, cudnn.deterministic = flags["cudnn_benchmark"], flags["cudnn_deterministic"]
    matmul.allow_fp16_reduced_precision_reduction = flags["fp16_reduction"]
    matmul.allow_bf16_reduced_precision_reduction = flags["bf16_reduction"]


def step_of(func: Any, args: Any, kwargs: Any, result: Any, taken: Any, named: Any, results: Any) -> Step:
    """The step of an operator call. `taken`, `named` and `results` are its arguments and results in encoded form.
    Raises UnwritableError."""
    name = func._schema.name
    if not name.startswith("aten::"):
        raise UnwritableError("what is no business of torch's own operators")
    kind = kind_of(func, args, result)
    flags = current_flags() if _depends_on_flags(func) else {}
    size, flops, precision = cost(func, args, kwargs, result, kind, flags)
    overload = func._schema.overload_name or "default"
    return Step(kind, f"{name}.{overload}", taken, named, results, flags, None, size, flops, precision)


def _depends_on_flags(func: Any) -> bool:
    """Whether a step keeps torch's settings: if it multiplies. A recurrent layer keeps them where they are not the
    usual ones, since measured calls of it have none."""
    if func.overloadpacket is torch.ops.aten._cudnn_rnn:
        return not allows_tf32(torch.backends.cudnn)
    return func.overloadpacket in flop_registry or operations.may_use_tf32(func._schema.name.removeprefix("aten::"))


def kind_of(func: Any, args: Any, result: Any) -> str:
    name = func._schema.name.removeprefix("aten::")
    if func.is_view or name in _VIEWS:
        return "view"
    if name.startswith(_ALLOCATIONS):
        return "allocation"
    if name in ("_to_copy", "copy_"):
        devices = {leaf.device.type for leaf in tree_leaves((args, result)) if isinstance(leaf, torch.Tensor)}
        return "copy" if len(devices) > 1 else "operator"
    return "operator"


def cost(func: Any, args: Any, kwargs: Any, result: Any, kind: str, flags: dict[str, bool]) -> tuple[int, float, str]:
    """Return the bytes that an operator moves, its number of operations, and their precision."""
    if kind in ("view", "allocation", "sync"):
        return 0, 0.0, "fp32"
    name = func._schema.name.removeprefix("aten::")
    made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    taken = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if name in _OVERWRITES or "out" in kwargs:
        taken = [tensor for tensor in taken if not any(tensor is other for other in made)]
    if name in _READ_IN_PART:
        taken = [*taken[1:], *made]
    size = sum(spec_of(tensor).bytes for tensor in (*taken, *made))
    precision = PRECISIONS.get(str(made[0].dtype).removeprefix("torch."), "fp32") if made else "fp32"
    if taken and str(taken[0].dtype).startswith("torch.float8"):
        precision = "fp8"
    if func.overloadpacket in flop_registry:
        with contextlib.suppress(Exception):  # torch's formula may not fit these arguments
            flops = float(flop_registry[func.overloadpacket](*args, **kwargs, out_val=result))
            allowed = flags["cudnn_tf32"] if "conv" in name else flags["matmul_tf32"]
            return size, flops, "tf32" if precision == "fp32" and allowed else precision
    return size, float(sum(tensor.numel() for tensor in made) if kind == "operator" else 0), "fp32"


def _renumbered(step: Step, order: dict[int, int], codes: list[int]) -> Step:
    if step.launch is None:
        return replace(
            step,
            arguments=tuple(_renumber(value, order) for value in step.arguments),
            named={name: _renumber(value, order) for name, value in step.named.items()},
            results=_renumber(step.results, order),
        )
    parameters = tuple(
        replace(parameter, pointers=tuple((at, order[number], offset) for at, number, offset in parameter.pointers))
        for parameter in step.launch.parameters
    )
    return replace(step, launch=replace(step.launch, cubin=codes.index(step.launch.cubin), parameters=parameters))


def _renumber(value: Any, order: dict[int, int]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return {"tensor": order[value["tensor"]]}
    return {"list": [_renumber(each, order) for each in value["list"]]} if "list" in value else value
