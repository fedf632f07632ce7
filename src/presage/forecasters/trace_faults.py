"""Faults that a module's trace shows: outputs with wrong shapes or types, outputs that do not depend on the inputs, and
the use of memory that was never written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from presage.static.trace import COPY, FILL, LAUNCHES, Step, TensorSpec, Trace, tensors_in

_EMPTY = re.compile(r"aten::(new_)?empty(_like|_strided|_permuted)?\.")
_BLIND = re.compile(r"aten::(\w+_like|new_\w+|empty\w*|zeros|ones|full|sym_\w+|size|stride)\.")
"""Operators that read a tensor's shape, not its values."""
_OVERWRITES = frozenset(
    ("zero_", "fill_", "copy_", "normal_", "uniform_", "random_", "exponential_", "bernoulli_", "log_normal_",
     "cauchy_", "geometric_", "_foreach_zero_", "_foreach_copy_")
)  # fmt: skip
"""Operators that write their first argument without reading it."""
_PLACES = frozenset(("index_put_", "_index_put_impl_", "index_copy_", "scatter_", "put_"))
"""Operators that write some places of their first argument, and read it only if they are told to add to it. Whether all
places get a value (`inverse[order] = arange(n)`) is not known here."""
_SCALED = frozenset(("addmm", "baddbmm", "addbmm", "addmv", "addr", "_addmm_activation"))
"""Operators that multiply their first argument by `beta`, and do not read it if that is 0."""
_INTO_NAMED = re.compile(r"out|.*_out|out_.*|(dim_)?(values|max|min)|values_stable")
"""Overloads that write their named arguments. torch names some of them after their first result."""


def shapes(trace: Trace, expected: Sequence[tuple[tuple[int, ...], str]]) -> str:
    """How the outputs differ from the expected shapes and types, which are in order; empty if they agree."""
    found = [trace.tensors[number] for number in tensors_in([trace.outputs])]
    if len(found) != len(expected):
        return f"it returns {len(found)} tensors, not {len(expected)}"
    for spec, (shape, dtype) in zip(found, expected, strict=True):
        if spec.shape != shape or spec.dtype != dtype:
            return f"it returns {_written(spec)}, not {dtype}{list(shape)}"
    return ""


def returned(trace: Trace) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and types of the tensors that a reference returns."""
    return [(trace.tensors[number].shape, trace.tensors[number].dtype) for number in tensors_in([trace.outputs])]


def unwritten(trace: Trace) -> str:
    """The first use of memory that was never written; empty if there is none."""
    flow = _Flow(trace)
    wrong = next((wrong for step in trace.steps if (wrong := flow.take(step))), "")
    return wrong or ("it returns memory that nothing has written" if flow.returns_unwritten() else "")


def is_constant(trace: Trace) -> bool:
    """Whether the outputs do not depend on the inputs."""
    flow = _Flow(trace)
    for step in trace.steps:
        flow.take(step)
    return flow.is_constant()


class _Flow:
    """Which memory has been written, and which depends on the inputs. A view shares the memory of its base."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._memory = list(range(len(trace.tensors)))
        self._unwritten: set[int] = set()
        self._depends = set(trace.inputs)
        self._waits = False
        """Whether host code has read values. From then on, everything may depend on the inputs."""

    def take(self, step: Step) -> str:
        reads, makes = [self._memory[each] for each in step.reads], list(step.makes)
        self._waits |= step.kind in ("sync", "copy")
        if step.kind == "view" and reads:
            for made in makes:
                self._memory[made] = reads[0]
            return ""
        if step.kind == "allocation":
            self._unwritten |= {made for made in makes if _EMPTY.match(step.name)}
            return ""
        written, read = (set(reads), set()) if step.kind in LAUNCHES else self._used(step)
        if self._unwritten & read:
            return f"{step.name} reads memory that nothing has written"
        self._unwritten -= written | {self._memory[made] for made in makes}
        if self._depends.intersection(reads):
            self._depends |= written | {self._memory[made] for made in makes}
        return ""

    def _used(self, step: Step) -> tuple[set[int], set[int]]:
        """The memory that an operator writes and reads among its arguments: `add_` does both with its first."""
        operator, _, overload = step.name.removeprefix("aten::").partition(".")
        first, rest = list(tensors_in(step.arguments[:1])), list(tensors_in(step.arguments[1:]))
        named = list(tensors_in(list(step.named.values())))
        written: list[int] = []
        read = first + rest + named
        if step.name in (COPY, FILL):
            into, *read = tensors_in(step.arguments)
            written = [into]
        elif _INTO_NAMED.fullmatch(overload):
            written, read = named, first + rest
        elif operator.endswith("_") and not operator.endswith("__"):
            written = first
        if _overwrites(operator, step):
            others = {*rest, *named}
            read = [each for each in read if each in others]
        if _BLIND.match(step.name):
            read = []
        return {self._memory[each] for each in written}, {self._memory[each] for each in read}

    def returns_unwritten(self) -> bool:
        return bool(self._unwritten.intersection(self._outputs))

    def is_constant(self) -> bool:
        return bool(self._outputs and self._trace.inputs) and not (
            self._waits or self._depends.intersection(self._outputs)
        )

    @property
    def _outputs(self) -> list[int]:
        return [self._memory[each] for each in tensors_in([self._trace.outputs])]


def _overwrites(operator: str, step: Step) -> bool:
    """Whether an operator does not use what its first argument holds."""
    if operator.rstrip("_") in _SCALED:
        return bool(step.named.get("beta", 1) == 0)
    adds = step.arguments[3:4] == (True,) or step.named.get("accumulate") or "reduce" in step.named
    return operator in _OVERWRITES or (operator in _PLACES and not adds)


def _written(spec: TensorSpec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"
