"""Trace: what one call of a module does, step by step, as a program without branches.

A step is a torch operator, a launch of a kernel with its machine code, or a wait for the GPU. Steps refer to tensors by
number. Inputs and constants (weights, buffers: tensors that existed before the call) are given. Every other tensor is
made by a step. So a process that has the inputs and the constants can replay the program, with its own memory.

A trace is written by a process that runs foreign code. `Trace.from_document` trusts nothing in it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

KINDS = ("operator", "triton", "cuda", "copy", "sync", "view", "allocation")
"""`copy` moves data between the memories of host and GPU. A `view` and an `allocation` do no work on the GPU."""
LAUNCHES = ("triton", "cuda")
COPY, FILL = "presage::copy", "presage::fill"
"""Names of steps that are not torch operators. COPY takes a number of bytes, tensor and byte offset of the destination,
and tensor and byte offset of the source; FILL takes a number of bytes, the byte, tensor and byte offset."""
FREE = ("sync", "view", "allocation")
COMPILED = "torch compiles its functions; the steps are what they do before that"
SCRIPTED = "torch.jit scripts its functions; the steps are what they do before that"
GRAPHED = "a CUDA graph has its steps, or some of them: those do not wait for the host"
KEPT = "it uses what an earlier call computed from its inputs"
"""Notes that a trace may carry."""
NO_TENSOR = "it returns what is no tensor"
"""How the reason begins why a call that returns something else cannot be replayed. No such call is right."""
ITEM_SIZES = {
    **dict.fromkeys(("bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
PRECISIONS = {"float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "float32": "fp32"}
"""The precision in which an operator computes with tensors of a dtype."""
_VERSION = 1
_MOST_STEPS, _MOST_TENSORS, _MOST_CUBINS, _DEPTH = 200_000, 400_000, 1_000, 8
_LARGEST_SIZE = 1 << 48
_WORDS = {
    "dtype": frozenset(ITEM_SIZES),
    "device": frozenset(("cuda", "cpu")),
    "layout": frozenset(("strided",)),
    "memory_format": frozenset(("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")),
}
_OPERATOR = re.compile(r"aten::[A-Za-z_][A-Za-z0-9_]{0,100}\.[A-Za-z][A-Za-z0-9_]{0,100}", re.ASCII)
_REFUSED = re.compile(
    r"aten::(from_file|record_stream|_?pin_memory|set_data|_backward|requires_grad_|_print|_assert\w*|item|"
    r"_local_scalar_dense|set_|resize_|_resize_output_|_cuda\w*|__(?!(i?[lr]shift|i?and|i?or|i?xor)__)\w*)\."
)
"""Operators that a trace must not contain, since they do more than compute with tensors."""
_MOST_CODE = 64 << 20
_TUNED = re.compile(r"autotuned: (\w+) takes configuration (\d{1,6}) of (\d{1,6}): (.*)")
FLAGS = ("matmul_tf32", "cudnn_tf32", "cudnn_benchmark", "cudnn_deterministic", "fp16_reduction", "bf16_reduction")
"""torch settings that decide which kernel an operator uses."""


@dataclass(frozen=True)
class Tuned:
    """A kernel that an autotuner chooses a configuration for, and the one that was traced."""

    name: str
    number: int
    """From 0."""
    count: int
    configuration: str

    def note(self) -> str:
        """The note in a trace, which `of_notes` reads.

        >>> Tuned("add", 1, 4, "B: 64").note()
        'autotuned: add takes configuration 2 of 4: B: 64'
        """
        return f"autotuned: {self.name} takes configuration {self.number + 1} of {self.count}: {self.configuration}"

    @classmethod
    def of_notes(cls, notes: Sequence[str]) -> list[Tuned]:
        found = filter(None, map(_TUNED.fullmatch, notes))
        return [cls(each[1], int(each[2]) - 1, int(each[3]), each[4]) for each in found]


class TraceError(ValueError):
    """The document is no valid trace."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor's properties, without its values."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] = ()
    """In elements; empty for a row-major tensor."""
    device: str = "cuda"

    @property
    def layout(self) -> dict[str, Any]:
        """The tensor's layout in memory, without its device."""
        return {"shape": self.shape, "dtype": self.dtype, "stride": self.stride}

    @property
    def overlaps(self) -> bool:
        """Whether elements share memory."""
        return bool(self.stride) and overlaps(self.shape, self.stride)

    @property
    def bytes(self) -> int:
        """The bytes of its distinct elements: a row that is repeated (with stride 0) counts once."""
        distinct = [size for size, step in zip(self.shape, self.stride or self.shape, strict=True) if step or not size]
        return math.prod(distinct) * ITEM_SIZES[self.dtype]


def overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements share memory.

    >>> overlaps((2, 3), (3, 1)), overlaps((2, 3), (8, 2)), overlaps((2, 3), (0, 1)), overlaps((2, 3), (1, 1))
    (False, False, True, True)
    """
    reach = 0
    for distance, size in sorted((d, s) for d, s in zip(stride, shape, strict=True) if s > 1):
        if distance <= reach:
            return 0 not in shape
        reach += distance * (size - 1)
    return False


@dataclass(frozen=True)
class Parameter:
    """One parameter of a launch: its bytes, and the addresses in them. Each address is the position of its first byte,
    the number of its tensor, and the byte offset from that tensor's first element."""

    content: bytes
    pointers: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched."""

    cubin: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    """Bytes of dynamic shared memory."""
    parameters: tuple[Parameter, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False
    overlapping: bool = False
    """Whether the kernel may start before the previous launch has ended."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """For Triton: warps, stages, constants."""


@dataclass(frozen=True)
class Step:
    """One step of a call."""

    kind: str
    name: str
    """The name of an operator with its overload (`aten::mm.default`), or of a kernel's entry."""
    arguments: tuple[Any, ...] = ()
    """As JSON: plain values as they are, others as {"tensor": 3}, {"list": [...]}, {"dtype": "float16"}."""
    named: Mapping[str, Any] = field(default_factory=dict)
    results: Any = None
    """The tensors that the step makes or returns, in the notation of `arguments`."""
    flags: Mapping[str, bool] = field(default_factory=dict)
    launch: Launch | None = None
    bytes: int = 0
    """Bytes that the step reads and writes, each tensor counted once."""
    flops: float = 0.0
    precision: str = "fp32"
    """The GPU's peak that its operations are compared with: fp32, tf32, fp16, bf16, fp8, int8 or fp64. A launch without
    products of tensor cores has fp32."""

    @property
    def base_name(self) -> str:
        """An operator's name without its overload: `add_` of `aten::add_.Tensor`."""
        return self.name.removeprefix("aten::").partition(".")[0]

    @property
    def reads(self) -> Iterator[int]:
        """The numbers of the tensors that the step takes."""
        yield from tensors_in([*self.arguments, *self.named.values()])
        for parameter in self.launch.parameters if self.launch else ():
            yield from (tensor for _, tensor, _ in parameter.pointers)

    @property
    def makes(self) -> Iterator[int]:
        yield from tensors_in([self.results])


@dataclass(frozen=True)
class Trace:
    """What one call of a module does."""

    tensors: tuple[TensorSpec, ...]
    inputs: tuple[int, ...]
    """The numbers of the input tensors, in the order of the call's data."""
    constants: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: Any
    """What the call returns, in the notation of `Step.arguments`."""
    cubins: tuple[bytes, ...] = ()
    """Machine code that launches refer to; empty in a trace that was stored without it."""
    cubin_hashes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks for the reader: what was guessed, and what is missing."""
    lacks: str | None = None
    """Why the program cannot be replayed; None if it can."""

    @cached_property
    def hash(self) -> str:
        """Hash of the program: its constants, inputs and code, and what it does with them."""
        document = self.to_document()
        about = {name: document[name] for name in ("tensors", "inputs", "constants", "steps", "outputs", "hashes")}
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    @cached_property
    def uses(self) -> Counter[int]:
        """How often each tensor is used: by steps, each of which counts once, and by the outputs."""
        read = Counter(number for step in self.steps for number in {*step.reads})
        return read + Counter({*tensors_in([self.outputs])})

    def is_on_host(self, step: Step) -> bool:
        """Whether a step is an operator on tensors in the host's memory alone, which the host computes."""
        numbers = {*step.reads, *step.makes} if step.kind == "operator" else ()
        return bool(numbers) and all(self.tensors[number].device == "cpu" for number in numbers)

    def own_share(self, roofline_ns: Mapping[int, float]) -> float | None:
        """The share of the module's own kernels in the roofline time of all steps; None if no step takes time."""
        own = sum(ns for number, ns in roofline_ns.items() if self.steps[number].kind in LAUNCHES)
        every = sum(roofline_ns.values())
        return own / every if every else None

    def to_document(self, with_code: bool = False) -> dict[str, Any]:
        """The trace as JSON. It includes machine code only if `with_code` is true."""
        return {
            "version": _VERSION,
            "tensors": [
                {"dtype": x.dtype, "shape": list(x.shape), "stride": list(x.stride), "device": x.device}
                for x in self.tensors
            ],
            "inputs": list(self.inputs),
            "constants": list(self.constants),
            "steps": [_step_document(step) for step in self.steps],
            "outputs": self.outputs,
            "hashes": list(self.cubin_hashes),
            "notes": list(self.notes),
            "lacks": self.lacks,
            **({"cubins": [base64.b64encode(code).decode() for code in self.cubins]} if with_code else {}),
        }

    @classmethod
    def from_document(cls, document: Any) -> Trace:
        """Read a document that foreign code may have written. Raises TraceError."""
        try:
            return _Reader(document).trace()
        except TraceError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise TraceError(f"not a trace: {type(error).__name__}: {str(error)[:200]}") from error


def _step_document(step: Step) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": step.kind, "name": step.name}
    if step.launch is None:
        document |= {"arguments": list(step.arguments), "named": dict(step.named), "results": step.results}
    else:
        launch = step.launch
        document |= {
            "cubin": launch.cubin,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "shared": launch.shared,
            "cluster": list(launch.cluster),
            "cooperative": launch.cooperative,
            "overlapping": launch.overlapping,
            "options": dict(launch.options),
            "parameters": [
                {"hex": parameter.content.hex(), "pointers": [list(pointer) for pointer in parameter.pointers]}
                for parameter in launch.parameters
            ],
        }
    return document | {
        "flags": dict(step.flags),
        "bytes": step.bytes,
        "flops": step.flops,
        "precision": step.precision,
    }


def tensors_in(values: Sequence[Any]) -> Iterator[int]:
    """The numbers of the tensors in values that are in the notation of `Step.arguments`."""
    for value in values:
        if isinstance(value, dict):
            if "tensor" in value:
                yield value["tensor"]
            elif "list" in value:
                yield from tensors_in(value["list"])


def _whole(value: Any, least: int = 0, most: int = _LARGEST_SIZE) -> int:
    if type(value) is not int or not least <= value <= most:
        raise TraceError(f"not a number from {least} to {most}: {str(value)[:40]}")
    return value


def _text(value: Any, most: int = 1000) -> str:
    if type(value) is not str or not value.isprintable() or len(value) > most:
        raise TraceError("not a printable text of a reasonable length")
    return value


def _list(value: Any, most: int = _MOST_TENSORS) -> list[Any]:
    if type(value) is not list or len(value) > most:
        raise TraceError(f"not a list of at most {most}")
    return value


def _shallow(values: Any, depth: int = _DEPTH) -> Any:
    """Values of JSON that do not lie deep within each other: writing them again would fail."""
    if not depth:
        raise TraceError("options that lie too deep within each other")
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, dict | list):
            _shallow(value, depth - 1)
    return values


def _is_operator(name: Any) -> bool:
    known = type(name) is str and _OPERATOR.fullmatch(name) is not None and not _REFUSED.match(name)
    return known or name in (COPY, FILL)


def _three(value: Any, most: int) -> tuple[int, int, int]:
    x, y, z = (_whole(size, 1, most) for size in value)
    return x, y, z


class _Reader:
    """Reads a document part by part, checks it, and makes a trace of it."""

    def __init__(self, document: Any) -> None:
        if type(document) is not dict or type(document.get("version")) is not int or document["version"] != _VERSION:
            raise TraceError(f"not a trace of version {_VERSION}")
        self._document = document
        self._made: set[int] = set()
        """The tensors that exist before the step that is being read."""
        self._count = 0

    def trace(self) -> Trace:
        document = self._document
        tensors = tuple(self._tensor(each) for each in self._some("tensors", _MOST_TENSORS))
        self._count = len(tensors)
        inputs, constants = (tuple(map(self._number, self._some(name))) for name in ("inputs", "constants"))
        if len({*inputs, *constants}) != len(inputs) + len(constants):
            raise TraceError("a tensor is an input or a constant twice")
        self._made = {*inputs, *constants}
        cubins, hashes = self._cubins()
        self._codes = len(hashes)
        steps = tuple(self._step(step) for step in self._some("steps", _MOST_STEPS))
        return Trace(
            tensors,
            inputs,
            constants,
            steps,
            self._value(document["outputs"]),
            cubins,
            hashes,
            tuple(_text(note) for note in self._some("notes", 100)),
            None if document.get("lacks") is None else _text(document["lacks"]),
        )

    def _some(self, name: str, most: int = _MOST_TENSORS) -> list[Any]:
        return _list(self._document.get(name, []), most)

    def _tensor(self, document: Any) -> TensorSpec:
        shape = tuple(_whole(size) for size in document["shape"])
        stride = tuple(_whole(size) for size in document["stride"])
        if document["dtype"] not in ITEM_SIZES or document["device"] not in ("cuda", "cpu") or len(shape) > 64:
            raise TraceError("a tensor of a kind that is not known")
        if stride and len(stride) != len(shape):
            raise TraceError("a tensor's strides do not fit its shape")
        _whole(math.prod(shape))
        return TensorSpec(shape, document["dtype"], stride, document["device"])

    def _number(self, value: Any) -> int:
        return _whole(value, 0, self._count - 1)

    def _cubins(self) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
        try:
            cubins = tuple(base64.b64decode(code, validate=True) for code in self._some("cubins", _MOST_CUBINS))
        except binascii.Error as error:
            raise TraceError("its machine code cannot be read") from error
        if not all(code.startswith(b"\x7fELF") for code in cubins) or sum(map(len, cubins)) > _MOST_CODE:
            raise TraceError("its machine code is none, or more than any module has")
        if cubins:
            return cubins, tuple(hashlib.sha256(code).hexdigest() for code in cubins)
        return (), tuple(_text(name, 64) for name in self._some("hashes", _MOST_CUBINS))

    def _step(self, document: Any) -> Step:
        kind = document["kind"]
        if kind not in KINDS:
            raise TraceError("a step of a kind that is not known")
        flops = document.get("flops", 0)
        if type(flops) not in (int, float) or not 0 <= flops < 1e30:
            raise TraceError("a step's flops are no number")
        launch = self._launch(document) if kind in LAUNCHES else None
        if not document["name"] or (kind not in (*LAUNCHES, "sync") and not _is_operator(document["name"])):
            raise TraceError("an operator that is not known")
        step = Step(
            kind,
            _text(document["name"], 4000),
            tuple(self._value(value) for value in _list(document.get("arguments", []), 1000)),
            {_text(name): self._value(value) for name, value in document.get("named", {}).items()},
            self._result(document.get("results"), _DEPTH),
            {name: value is True for name, value in document.get("flags", {}).items() if name in FLAGS},
            launch,
            _whole(document.get("bytes", 0), 0, 1 << 60),
            float(flops),
            _text(document.get("precision", "fp32"), 10),
        )
        self._made.update(step.makes)
        return step

    def _launch(self, document: Any) -> Launch:
        return Launch(
            _whole(document["cubin"], 0, self._codes - 1),
            _three(document["grid"], _LARGEST_SIZE),
            _three(document["block"], _LARGEST_SIZE),
            _whole(document["shared"], 0, 1 << 20),
            tuple(self._parameter(each) for each in _list(document["parameters"], 1000)),
            _three(document.get("cluster", (1, 1, 1)), 16),
            document.get("cooperative") is True,
            document.get("overlapping") is True,
            _shallow(dict(document.get("options", {}))),
        )

    def _parameter(self, document: Any) -> Parameter:
        content = bytes.fromhex(document["hex"])
        if not 1 <= len(content) <= 4096:
            raise TraceError("a parameter of no size, or of more than 4096 bytes")
        pointers = []
        for at, tensor, offset in _list(document.get("pointers", []), 512):
            _whole(at, 0, len(content) - 8)
            spec_number = self._there(tensor)
            pointers.append((at, spec_number, _whole(offset, -_LARGEST_SIZE)))
        return Parameter(content, tuple(pointers))

    def _there(self, number: Any) -> int:
        """Check the number of a tensor that must exist already: it is given, or an earlier step has made it."""
        if self._number(number) not in self._made:
            raise TraceError(f"tensor {number} is used before it is made")
        return int(number)

    def _value(self, value: Any, depth: int = _DEPTH) -> Any:
        """Check a value that a step takes."""
        return self._checked(value, depth, self._there)

    def _result(self, value: Any, depth: int) -> Any:
        return self._checked(value, depth, self._number)

    def _checked(self, value: Any, depth: int, number: Any) -> Any:
        if value is None or type(value) in (bool, float):
            return value
        if type(value) is int:
            return _whole(value, -(1 << 63), (1 << 64) - 1)
        if type(value) is str:
            return _text(value, 200)
        if type(value) is not dict or len(value) != 1 or not depth:
            raise TraceError("a value that cannot be read")
        ((tag, content),) = value.items()
        if tag == "tensor":
            return {tag: number(content)}
        if tag == "list":
            return {tag: [self._checked(each, depth - 1, number) for each in _list(content)]}
        if tag == "complex":
            real, imaginary = content
            return {tag: [float(real), float(imaginary)]}
        if content not in _WORDS.get(tag, ()):
            raise TraceError("a value of a kind that is not known")
        return {tag: content}
