"""Traces that no parser may accept, made from one that is valid; each breaks one rule and says which.

A trace comes from a process that foreign code runs in. Whoever reads it must refuse what is malformed with one clear
line, in little time and memory, and run no operator that does more than compute on tensors.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from every import of_every

from presage.static import trace as traces
from presage.static.trace import TraceError

Trace = dict[str, Any]
Change = Callable[[Trace], object]

HUGE, LARGEST = 1 << 80, (1 << 63) - 1
NOT_NUMBERS = (float("nan"), float("inf"), -float("inf"))
OTHER_TYPES: tuple[Any, ...] = (None, True, -1, 0.5, "1", [], {}, [[]], {"tensor": 0})

VALID: Trace = {
    "version": 1,
    "tensors": [{"dtype": "float32", "shape": [4, 8], "stride": [8, 1], "device": "cuda"} for _ in range(5)],
    "inputs": [0, 1],
    "constants": [2],
    "steps": [
        {
            "kind": "operator",
            "name": "aten::add.Tensor",
            "arguments": [{"tensor": 0}, {"tensor": 1}],
            "named": {"alpha": 1},
            "results": {"tensor": 3},
        },
        {"kind": "sync", "name": "aten::item"},
        {
            "kind": "operator",
            "name": "aten::empty_like.default",
            "arguments": [{"tensor": 3}],
            "named": {"dtype": {"dtype": "float32"}},
            "results": {"tensor": 4},
        },
        {
            "kind": "triton",
            "name": "add",
            "cubin": 0,
            "grid": [4, 1, 1],
            "block": [128, 1, 1],
            "shared": 0,
            "parameters": [
                {"hex": "00" * 8, "pointers": [[0, 3, 0]]},
                {"hex": "00" * 8, "pointers": [[0, 4, 0]]},
                {"hex": "20000000", "pointers": []},
            ],
        },
    ],
    "outputs": {"tensor": 4},
    "cubins": [base64.b64encode(b"\x7fELF\x02\x01\x01" + bytes(57)).decode()],
}
"""The least that has every kind of part. A parser that looks into cubins needs one of its own in `cubins`."""

FORBIDDEN_OPERATORS = (
    "",
    "add",
    "aten::",
    "::add",
    "aten::add",
    "aten::add.no_such_overload",
    "aten::no_such_operator.default",
    "aten::__class__.default",
    "aten::add.__globals__",
    "aten::../add.default",
    "aten::from_file.default",
    "aten::from_file.out",
    "aten::set_.source_Storage",
    "aten::set_.source_Storage_storage_offset",
    "aten::set_.source_Tensor_storage_offset",
    "aten::set_data.default",
    "aten::resize_.default",
    "aten::_resize_output_.default",
    "aten::record_stream.default",
    "aten::pin_memory.default",
    "aten::_pin_memory.default",
    "aten::_print.default",
    "aten::_assert_async.msg",
    "aten::item.default",
    "aten::_local_scalar_dense.default",
    "aten::_backward.default",
    "aten::requires_grad_.default",
    "aten::_cuda_getCurrentRawStream.default",
    "c10d::allreduce_.default",
    "_c10d_functional::all_reduce.default",
    "inductor::_alloc_from_pool.default",
    "profiler::_record_function_enter_new.default",
    "prim::device.default",
    "quantized::linear.default",
    "mine::add.default",
    "os::system.default",
    "builtins::eval.default",
    "torch.ops.aten.add.Tensor",
    "aten::add.Tensor\0",
    "aten::add.Tensor\n",
    "aten::" + "a" * 100_000,
)
BAD_ARGUMENTS: tuple[Any, ...] = (
    {},
    {"tensor": None},
    {"tensor": True},
    {"tensor": 0.0},
    {"tensor": "0"},
    {"tensor": -1},
    {"tensor": 99},
    {"tensor": HUGE},
    {"tensor": [0]},
    {"tensor": 0, "list": []},
    {"tensor": 0, "offset": 8},
    {"list": None},
    {"list": {}},
    {"list": "abc"},
    {"list": [{"tensor": 99}]},
    {"dtype": "float31"},
    {"dtype": "__class__"},
    {"dtype": "load"},
    {"dtype": 5},
    {"dtype": ["float32"]},
    {"device": "cuda:1"},
    {"device": "meta"},
    {"device": "cuda:-1"},
    {"device": "/dev/nvidia0"},
    {"device": 0},
    {"layout": "sparse_coo"},
    {"layout": "jagged"},
    {"layout": "_mkldnn"},
    {"layout": 1},
    {"memory_format": "no_such_format"},
    {"memory_format": "__doc__"},
    {"memory_format": 0},
    {"generator": 0},
    {"stream": 0},
    {"storage": 0},
    {"pickle": "gASVAAAA"},
    {"__class__": "torch.Tensor"},
    {"py/object": "os.system"},
    [],
    [1, 2],
    [{"tensor": 0}],
    HUGE,
    -HUGE,
    *NOT_NUMBERS,
    "\ud800",
    "x" * 10_000_000,
)
BAD_SHAPES: tuple[tuple[Any, Any], ...] = (
    (None, [8, 1]),
    ([4, 8], None),
    (4, 1),
    ("48", "81"),
    ({"0": 4}, [1]),
    ([4, 8], [8]),
    ([4], [8, 1]),
    ([-4, 8], [8, 1]),
    ([4, -8], [8, 1]),
    ([4, 8], [-8, 1]),
    ([4.0, 8], [8, 1]),
    ([True, 8], [8, 1]),
    (["4", 8], [8, 1]),
    ([[4], 8], [8, 1]),
    ([None, 8], [8, 1]),
    ([float("nan"), 8], [8, 1]),
    ([1 << 31, 1 << 31], [1 << 31, 1]),
    ([LARGEST, LARGEST], [LARGEST, 1]),
    ([HUGE, 8], [8, 1]),
    ([4, 8], [HUGE, 1]),
    ([4, 8], [LARGEST, LARGEST]),
    ([2, 2], [1 << 62, 1 << 62]),
    ([1 << 40], [1]),
    ([1] * 10_000, [1] * 10_000),
)
BAD_THREES: tuple[Any, ...] = (
    None,
    4,
    "411",
    {"x": 4},
    [],
    [4],
    [4, 1],
    [4, 1, 1, 1],
    [0, 1, 1],
    [-1, 1, 1],
    [4, 0, 1],
    [4.0, 1, 1],
    [True, 1, 1],
    ["4", 1, 1],
    [None, 1, 1],
    [[4], 1, 1],
    [float("nan"), 1, 1],
    [1 << 31, 1, 1],
    [1, 1 << 16, 1],
    [1, 1, 1 << 16],
    [HUGE, 1, 1],
)
BAD_BLOCKS: tuple[Any, ...] = ([1025, 1, 1], [32, 64, 1], [1, 1, 65], [1 << 20, 1, 1])
BAD_PARAMETERS: tuple[Any, ...] = (
    None,
    "00",
    {},
    [None],
    ["00000000"],
    [{}],
    [{"hex": "00"}],
    [{"pointers": []}],
    [{"hex": None, "pointers": []}],
    [{"hex": 0, "pointers": []}],
    [{"hex": "0", "pointers": []}],
    [{"hex": "zz", "pointers": []}],
    [{"hex": "0x00", "pointers": []}],
    [{"hex": "00 " * 8, "pointers": []}],
    [{"hex": "", "pointers": [[0, 0, 0]]}],
    [{"hex": "00" * 65_536, "pointers": []}],
    [{"hex": "00" * 8, "pointers": []}] * 100_000,
    [{"hex": "00" * 8, "pointers": None}],
    [{"hex": "00" * 8, "pointers": {}}],
    [{"hex": "00" * 8, "pointers": [0, 0, 0]}],
    [{"hex": "00" * 8, "pointers": [[0, 0]]}],
    [{"hex": "00" * 8, "pointers": [[0, 0, 0, 0]]}],
    [{"hex": "00" * 8, "pointers": [[1, 0, 0]]}],  # ends behind its bytes
    [{"hex": "00" * 8, "pointers": [[8, 0, 0]]}],
    [{"hex": "00" * 4, "pointers": [[0, 0, 0]]}],
    [{"hex": "00" * 8, "pointers": [[-8, 0, 0]]}],
    [{"hex": "00" * 16, "pointers": [[0, 0, 0], [4, 1, 0]]}],  # two that overlap
    [{"hex": "00" * 8, "pointers": [[0, 0, 0], [0, 1, 0]]}],
    [{"hex": "00" * 8, "pointers": [[0, 99, 0]]}],
    [{"hex": "00" * 8, "pointers": [[0, -1, 0]]}],
    [{"hex": "00" * 8, "pointers": [[0, None, 0]]}],
    [{"hex": "00" * 8, "pointers": [[0, True, 0]]}],
    [{"hex": "00" * 8, "pointers": [[0, 0, -4]]}],  # in front of its tensor
    [{"hex": "00" * 8, "pointers": [[0, 0, 4 * 8 * 4 + 1]]}],  # behind it
    [{"hex": "00" * 8, "pointers": [[0, 0, 1 << 44]]}],
    [{"hex": "00" * 8, "pointers": [[0, 0, HUGE]]}],
    [{"hex": "00" * 8, "pointers": [[0, 0, 0.5]]}],
    [{"hex": "00" * 8, "pointers": [[0.0, 0, 0]]}],
    [{"hex": "00" * 8, "pointers": [["0", 0, 0]]}],
)
BAD_CUBINS: tuple[Any, ...] = (
    None,
    {},
    "f0VMRg==",
    [None],
    [5],
    [[]],
    ["*** no base64 ***"],
    ["f0VMR"],
    [""],
    [base64.b64encode(b"no cubin").decode()],
    [base64.b64encode(b"\x7fELF" + bytes(range(256)) * 64).decode()],
    [base64.b64encode(b"//\n.version 8.0\n.target sm_90\n").decode()],  # PTX, which a driver would compile
    ["f0VMRg=="] * 100_000,
)
BAD_IDS: tuple[Any, ...] = (None, 5, "01", {}, [None], [True], ["0"], [0.0], [-1], [99], [HUGE], [[0]], [{"tensor": 0}])
BAD_OUTPUTS: tuple[Any, ...] = (
    {},
    {"tensor": 99},
    {"tensor": -1},
    {"tensor": "4"},
    {"tensor": True},
    {"list": [{"tensor": 99}]},
    {"list": 5},
    {"no_such": []},
    {"tensor": 4, "list": []},
)


def setting(path: str, value: Any) -> Change:
    """Put a value where a path such as `steps.0.name` leads."""
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))

    def change(trace: Trace) -> None:
        place: Any = trace
        for part in way:
            place = place[part]
        place[last] = value

    return change


def without(path: str) -> Change:
    """Leave out what a path leads to."""
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))

    def change(trace: Trace) -> None:
        place: Any = trace
        for part in way:
            place = place[part]
        del place[last]

    return change


def named(prefix: str, path: str, values: Any) -> Iterator[tuple[str, Change]]:
    for at, value in enumerate(values):
        yield f"{prefix} {at}: {repr(value)[:60]}", setting(path, value)


def nested(depth: int) -> Any:
    value: Any = {"tensor": 0}
    for _ in range(depth):
        value = {"list": [value]}
    return value


def whole() -> Iterator[tuple[str, Change]]:
    """What is wrong with the document as a whole."""
    for key in ("version", "tensors", "inputs", "constants", "steps", "outputs", "cubins"):
        yield f"no {key}", without(key)
        yield f"{key} is null", setting(key, None)
        yield f"{key} is a text", setting(key, "text")
    for value in (0, 2, -1, 1.5, True, "1", HUGE, None):
        yield f"version {value!r}", setting("version", value)
    yield "an unknown key", setting("extra", 1)
    yield "more steps than any call has", lambda trace: trace.update(steps=trace["steps"] * 500_000)
    yield "more tensors than any call has", lambda trace: trace.update(tensors=trace["tensors"] * 500_000)


def tensors() -> Iterator[tuple[str, Change]]:
    """What is wrong with the tensors, and with which of them are inputs, constants and outputs."""
    for at, (shape, stride) in enumerate(BAD_SHAPES):
        broken = {"dtype": "float32", "shape": shape, "stride": stride, "device": "cuda"}
        yield f"shape {at}: {repr(broken)[:60]}", setting("tensors.3", broken)
    for value in (None, 5, "float31", "__class__", ["float32"], "torch.float32", "object", "x" * 1_000_000):
        yield f"dtype {str(value)[:30]!r}", setting("tensors.3.dtype", value)
    for value in (None, 0, "", "cuda:7", "meta", "xla", "mkldnn", ["cuda"], "x" * 1_000_000):
        yield f"device {str(value)[:30]!r}", setting("tensors.3.device", value)
    for key in ("dtype", "shape", "stride", "device"):
        yield f"a tensor without {key}", without(f"tensors.3.{key}")
    for value in (None, 5, "tensor", []):
        yield f"a tensor that is {value!r}", setting("tensors.3", value)
    yield from named("inputs", "inputs", BAD_IDS)
    yield from named("constants", "constants", BAD_IDS)
    yield "the same input twice", setting("inputs", [0, 0])
    yield "the same constant twice", setting("constants", [2, 2])
    yield "an input that is a constant", setting("constants", [0])
    yield from named("outputs", "outputs", BAD_OUTPUTS)
    yield "outputs nested too deeply", setting("outputs", nested(500))
    yield "an output that no step makes", without("steps.2")


def operators() -> Iterator[tuple[str, Change]]:
    """What is wrong with steps, and with those that are operators."""
    for value in (None, 5, "step", [], {}, {"kind": "operator"}, {"kind": "sync"}):
        yield f"a step that is {value!r}", setting("steps.0", value)
    for value in (None, 0, "", "python", "Operator", "copy_file", ["operator"], {}):
        yield f"kind {value!r}", setting("steps.0.kind", value)
    for key in ("kind", "name", "arguments", "named", "results"):
        yield f"an operator without {key}", without(f"steps.0.{key}")
    yield from named("operator", "steps.0.name", FORBIDDEN_OPERATORS)
    yield from named("name", "steps.0.name", (None, 5, [], {"name": "aten::add.Tensor"}))
    yield from named("argument", "steps.0.arguments.1", BAD_ARGUMENTS)
    yield from named("arguments", "steps.0.arguments", (None, {}, 5, "ab", [{"tensor": 0}] * 100_000))
    yield from named("named argument", "steps.0.named", (None, [], 5, {"": 1}, {"no_such": 1}, {"self": {"tensor": 0}}))
    yield from named("named value", "steps.0.named.alpha", [bad for bad in BAD_ARGUMENTS if not isinstance(bad, str)])
    yield from named("results", "steps.0.results", (None, {}, 5, [None], [{"tensor": 99}], [{"tensor": -1}], [3.0]))
    yield "an argument that nests too deeply", setting("steps.0.arguments.1", nested(500))
    yield "an argument that no step has made yet", setting("steps.0.arguments.1", {"tensor": 4})
    yield "more results than the operator has", setting("steps.0.results", [{"tensor": 3}, {"tensor": 3}])
    yield from named("sync", "steps.1.name", (None, 5, [], {}, "x" * 1_000_000))


def rebound() -> Iterator[tuple[str, Change]]:
    """Results that are something else already, of an operator that makes a new tensor."""
    yield "a result that is an input", setting("steps.0.results", [{"tensor": 0}])
    yield "a result that is a constant", setting("steps.0.results", [{"tensor": 2}])
    yield "a result of another step's", lambda trace: trace["steps"].insert(1, copy.deepcopy(trace["steps"][0]))


def launches() -> Iterator[tuple[str, Change]]:
    """What is wrong with launches, and with their code."""
    for key in ("name", "cubin", "grid", "block", "shared", "parameters"):
        yield f"a launch without {key}", without(f"steps.3.{key}")
    yield from named("entry", "steps.3.name", (None, 5, "", [], "a\0b", "x" * 1_000_000))
    yield from named("cubin", "steps.3.cubin", (None, True, 0.0, "0", -1, 1, HUGE, [0]))
    yield from named("grid", "steps.3.grid", BAD_THREES)
    yield from named("block", "steps.3.block", (*BAD_THREES, *BAD_BLOCKS))
    yield from named("shared", "steps.3.shared", (None, True, 0.5, "0", -1, 1 << 20, HUGE, [0], *NOT_NUMBERS))
    yield from named("parameters", "steps.3.parameters", BAD_PARAMETERS)
    yield "options that nest too deeply", setting("steps.3.options", {"constants": nested(500)})
    yield "a pointer to what no step has made", setting("steps.0.results", [])
    yield from named("cubins", "cubins", BAD_CUBINS)
    yield "more code than any kernel has", lambda trace: trace.update(cubins=["A" * 200_000_000])


def flaws() -> Iterator[tuple[str, Change]]:
    """Every way in which a trace can be broken, and what it is called."""
    for rule in (whole, tensors, operators, rebound, launches):
        yield from rule()


def hostile(trace: Trace) -> Iterator[Trace]:
    """Broken variants of a valid trace with steps as `VALID` has: an operator, a sync, an allocation, a launch."""
    for _, change in flaws():
        broken = copy.deepcopy(trace)
        change(broken)
        yield broken


TEXTS = (
    "",
    "null",
    "[]",
    "5",
    "{",
    '{"version": 1, "steps": [',
    '{"version": 1, "version": 1}',
    '{"steps": ' + "[" * 200_000,
    '{"steps": ' + '{"list": [' * 50_000,
    '{"version": ' + "9" * 5_000 + "}",
    '{"version": 1e999}',
    '{"version": NaN}',
    '{"\\ud800": 1}',
    "\ufeff{}",
    "\0",
)
"""Texts that are no trace at all, for whoever reads one from text."""

LEFT_TO_THE_RUN = (
    *("no constants", "outputs is", "an unknown key", "shape 22", "an operator without"),
    *("operator 5:", "operator 6:", "argument 43", "argument 44", "argument 45", "named argument", "named value 4"),
    *("a result of another", "grid 17", "grid 18", "grid 19", "block", "shared 5", "parameters", "cubins 10"),
)
"""What is no trace's form to say: sizes that a GPU refuses, overloads that torch does not have, infinite numbers."""

BROKEN = [(name, change) for name, change in flaws() if not name.startswith(LEFT_TO_THE_RUN)]


@of_every(BROKEN, lambda broken: broken[0])
def test_a_broken_trace_is_refused(broken: tuple[str, Change]) -> None:
    document = copy.deepcopy(VALID)
    broken[1](document)
    with pytest.raises(TraceError):
        traces.Trace.from_document(document)


def test_many_flaws_are_tried() -> None:
    assert len(BROKEN) > 300
