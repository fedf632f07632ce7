"""Faults that a trace shows: other shapes, memory that nothing has written, results that depend on no input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from presage.forecasters import trace_faults
from presage.static.trace import COPY, Launch, Parameter, Step, TensorSpec, Trace

X = TensorSpec((4, 8), "float32")
"""Tensor 0 is the input; others are made by steps."""


def t(number: int) -> dict[str, int]:
    return {"tensor": number}


def trace(*steps: Step, output: int, tensors: int = 4) -> Trace:
    return Trace((X,) * tensors, inputs=(0,), constants=(), steps=steps, outputs=t(output))


def operator(name: str, *arguments: Any, makes: int | None = None, **named: Any) -> Step:
    return Step("operator", f"aten::{name}", arguments, named, results=None if makes is None else t(makes))


def empty(number: int) -> Step:
    return Step("allocation", "aten::empty_like.default", (t(0),), results=t(number))


def view(of: int, number: int) -> Step:
    return Step("view", "aten::view.default", (t(of), {"list": [32]}), results=t(number))


def launch(*pointers: int) -> Step:
    parameters = tuple(Parameter(bytes(8), ((0, number, 0),)) for number in pointers)
    return Step("triton", "kernel", launch=Launch(0, (1, 1, 1), (32, 1, 1), 0, parameters))


RELU = operator("relu.default", t(0), makes=1)


@pytest.mark.parametrize(
    "steps",
    [
        [operator("relu.default", t(0), makes=3)],
        [empty(3), launch(0, 3)],
        [empty(1), view(1, 2), launch(0, 2), view(1, 3)],
        [empty(3), operator("copy_.default", t(3), t(0), makes=3)],
        [empty(3), operator("zero_.default", t(3), makes=3), operator("add_.Tensor", t(3), t(0), makes=3)],
        [empty(3), operator("mm.out", t(0), t(0), out=t(3), makes=3)],
        [empty(3), Step("copy", COPY, (128, t(3), 0, t(0), 0))],
        [empty(1), operator("zeros_like.default", t(1), makes=2), operator("add.Tensor", t(0), t(2), makes=3)],
        [RELU, view(1, 3)],
        [empty(1), operator("baddbmm.default", t(1), t(0), t(0), beta=0, alpha=0.5, makes=3)],
        [empty(3), operator("index_put_.default", t(3), {"list": [t(0)]}, t(0), makes=3)],
        [empty(3), operator("scatter_.src", t(3), 1, t(0), t(0), makes=3)],
        [empty(3), empty(2), operator("topk.values", t(0), 2, values=t(3), indices=t(2), makes=3)],
        [empty(3), operator("_foreach_copy_.default", {"list": [t(3)]}, {"list": [t(0)]})],
    ],
    ids=[
        "operator",
        "launch",
        "views",
        "copy",
        "zero, then add",
        "out",
        "bytes",
        "like",
        "view of a result",
        "beta of zero",
        "inverse permutation",
        "scatter",
        "values",
        "list of copies",
    ],
)
def test_what_is_written_before_it_is_used_is_right(steps: list[Step]) -> None:
    found = trace(*steps, output=3)
    assert trace_faults.unwritten(found) == ""
    assert not trace_faults.is_constant(found)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([empty(3)], "returns memory"),
        ([empty(1), RELU, view(1, 2), empty(3)], "returns memory"),
        ([empty(2), operator("add.Tensor", t(0), t(2), makes=3)], "aten::add.Tensor reads memory"),
        ([empty(3), operator("add_.Tensor", t(3), t(0), makes=3)], "aten::add_.Tensor reads memory"),
        ([empty(1), operator("addmm.default", t(1), t(0), t(0), makes=3)], "aten::addmm.default reads memory"),
        (
            [empty(3), operator("index_put_.default", t(3), {"list": [t(0)]}, t(0), True, makes=3)],
            "index_put_.default reads",
        ),
        ([empty(1), operator("topk.values", t(1), 2, values=t(3), makes=3)], "aten::topk.values reads memory"),
        ([empty(1), view(1, 2), operator("sum.default", t(2), makes=3)], "aten::sum.default reads memory"),
    ],
)
def test_memory_that_nothing_has_written_is_seen(steps: list[Step], says: str) -> None:
    assert says in trace_faults.unwritten(trace(*steps, output=3))


def test_a_kernel_that_only_adds_reads_what_it_writes() -> None:
    filled = [empty(3), operator("zero_.default", t(3), makes=3)]
    alone, after = trace(empty(3), launch(0, 3), output=3), trace(*filled, launch(0, 3), output=3)
    assert trace_faults.unwritten(alone, {"kernel"}) == "kernel adds to memory that nothing has written"
    assert trace_faults.unwritten(alone, {"another"}) == trace_faults.unwritten(after, {"kernel"}) == ""


def test_an_output_in_the_memory_of_the_host_is_seen() -> None:
    found = trace(RELU, output=1)
    assert trace_faults.on_host(found) == ""
    moved = replace(found, tensors=(X, replace(X, device="cpu")))
    assert trace_faults.on_host(moved) == "it returns output 0 in the host's memory"


IN_PLACE = operator("relu_.default", t(0), makes=0)


@pytest.mark.parametrize(
    ("steps", "output", "reference", "says"),
    [
        ([RELU], 1, [RELU], ""),
        ([IN_PLACE], 0, [RELU], "it changes its input data[0]"),
        ([view(0, 2), operator("relu_.default", t(2), makes=2)], 2, [RELU], "it changes its input data[0]"),
        ([IN_PLACE], 0, [IN_PLACE], ""),
        ([launch(0)], 0, [RELU], "it returns its input data[0] as output 0"),
        ([view(0, 2)], 2, [RELU], "it returns its input data[0] as output 0"),
        ([launch(0)], 0, [launch(0)], ""),
        ([empty(3), launch(0, 3)], 3, None, ""),
        ([launch(0)], 0, None, "it returns its input data[0] as output 0"),
    ],
)
def test_an_input_that_is_changed_or_returned_is_seen(
    steps: list[Step], output: int, reference: list[Step] | None, says: str
) -> None:
    theirs = None
    if reference is not None:
        theirs = trace(*reference, output=1 if reference == [RELU] else 0)
    assert trace_faults.given_away(trace(*steps, output=output), theirs) == says


def test_a_result_that_depends_on_no_input_is_seen() -> None:
    zeros = operator("zeros.default", {"list": [4, 8]}, makes=1)
    assert trace_faults.is_constant(trace(RELU, operator("zeros.default", {"list": [4, 8]}, makes=3), output=3))
    assert not trace_faults.is_constant(trace(zeros, operator("add.Tensor", t(1), t(0), makes=3), output=3))


def test_what_follows_from_a_value_that_host_code_has_read_may_depend_on_it() -> None:
    zeros = operator("zeros.default", {"list": [4, 8]}, makes=3)
    assert not trace_faults.is_constant(trace(Step("sync", "synchronize"), zeros, output=3))


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ([((4, 8), "float32")], ""),
        ([((8, 4), "float32")], "it returns float32[4, 8], not float32[8, 4]"),
        ([((4, 8), "float16")], "it returns float32[4, 8], not float16[4, 8]"),
        ([], "it returns 1 tensors, not 0"),
    ],
)
def test_other_shapes_than_expected_are_named(expected: list[Any], says: str) -> None:
    assert trace_faults.shapes(trace(RELU, output=1), expected) == says


def two_inputs(*steps: Step, output: int) -> Trace:
    """Inputs 0 and 1, of which the second has 16 rows; tensors 2 and 3 are made."""
    large = TensorSpec((64, 8), "float32")
    return Trace((X, large, X, X), inputs=(0, 1), constants=(), steps=steps, outputs=t(output))


WHOLE = two_inputs(operator("mm.default", t(0), t(1), makes=3), output=3)
"""A reference that reads both inputs."""
PART = Step("view", "aten::select.int", (t(1), 0, 0), results=t(2))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param([operator("relu.default", t(0), makes=3)], "does not depend on its input data[1]", id="unused"),
        pytest.param(
            [PART, operator("mm.default", t(0), t(2), makes=3)],
            "it reads 6.2% of its input data[1], and the reference 100.0%",
            id="a part",
        ),
        pytest.param([PART, empty(3), launch(0, 2, 3)], "", id="a kernel may read beyond"),
        pytest.param([PART, *[operator("mm.default", t(0), t(2), makes=3)] * 4], "", id="perhaps other parts"),
        pytest.param([Step("sync", "aten::item", (t(1),)), operator("relu.default", t(0), makes=3)], "", id="read"),
        pytest.param([operator("mm.default", t(0), t(1), makes=3)], "", id="both"),
    ],
)
def test_inputs_that_are_left_out(steps: list[Step], said: str) -> None:
    found = trace_faults.left_out(two_inputs(*steps, output=3), WHOLE)
    assert said in found if said else not found


def test_what_the_reference_does_not_use_may_be_left_out() -> None:
    module = two_inputs(operator("relu.default", t(0), makes=3), output=3)
    assert not trace_faults.left_out(module, module)
    assert not trace_faults.left_out(WHOLE, module)
