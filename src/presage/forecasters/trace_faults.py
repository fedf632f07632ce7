"""Faults that a module's trace shows: outputs with wrong shapes or types, or in the host's memory; outputs that do not
depend on the inputs; inputs that are left out, changed or returned; and the use of memory that was never written."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from math import prod

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
_FLOATS = ("float64", "float32", "float16", "bfloat16")
_LITTLE = 0.25
"""A module that reads less than this share of what the reference reads of an input is reported."""


def shapes(trace: Trace, expected: Sequence[tuple[tuple[int, ...], str]]) -> str:
    """How the outputs differ from the expected shapes and types, which are in order; empty if they agree."""
    found = [trace.tensors[number] for number in tensors_in([trace.outputs])]
    if len(found) != len(expected):
        return f"it returns {len(found)} tensors, not {len(expected)}"
    for spec, (shape, dtype) in zip(found, expected, strict=True):
        if spec.shape != shape or spec.dtype != dtype:
            return f"it returns {_written(spec)}, not {dtype}{list(shape)}"
    return ""


def on_host(trace: Trace) -> str:
    """The first output that is in the host's memory; empty if there is none."""
    devices = [trace.tensors[number].device for number in tensors_in([trace.outputs])]
    return f"it returns output {devices.index('cpu')} in the host's memory" if "cpu" in devices else ""


def returned(trace: Trace) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and types of the tensors that a reference returns."""
    return [(trace.tensors[number].shape, trace.tensors[number].dtype) for number in tensors_in([trace.outputs])]


def unwritten(trace: Trace, adding: Collection[str] = ()) -> str:
    """The first use of memory that was never written; empty if there is none. adding: the names of kernels that write
    by atomic operations alone, which read what they change."""
    flow = _Flow(trace, adding)
    wrong = next((wrong for step in trace.steps if (wrong := flow.take(step))), "")
    return wrong or ("it returns memory that nothing has written" if flow.returns_unwritten() else "")


def is_constant(trace: Trace) -> bool:
    """Whether the outputs do not depend on the inputs."""
    flow = _Flow.of(trace)
    return bool(flow.outputs and trace.inputs) and not flow.waits and not flow.used()


def left_out(trace: Trace, reference: Trace) -> str:
    """The first input of floating-point numbers of which the module's outputs depend on far less than the reference's;
    empty if there is none."""
    ours, theirs = _Flow.of(trace), _Flow.of(reference)
    if ours.waits or len(trace.inputs) != len(reference.inputs):
        return ""
    for at, (number, other) in enumerate(zip(trace.inputs, reference.inputs, strict=True)):
        if other not in theirs.used() or reference.tensors[other].dtype not in _FLOATS:
            continue
        which = f"its input data[{at}]"
        if number not in ours.used():
            return f"what it returns does not depend on {which}, and what the reference returns does"
        if ours.share(number) < _LITTLE * theirs.share(other):
            ours_is, theirs_is = (f"{share:.1%}" for share in (ours.share(number), theirs.share(other)))
            return f"it reads {ours_is} of {which}, and the reference {theirs_is}"
    return ""


def given_away(trace: Trace, reference: Trace | None) -> str:
    """The first input that the outputs share memory with, or that an operator writes to, unless those of the reference
    do, too; empty if there is none. What kernels write to is not known."""
    ours, theirs = _Flow.of(trace), _Flow.of(reference) if reference else None
    changed = ours.changed() - (theirs.changed(by_kernels=True) if theirs else set())
    if changed:
        return f"it changes its input data[{min(changed)}]"
    allowed = theirs.passed_on() if theirs else {}
    passed_on = ((output, number) for output, number in ours.passed_on().items() if output not in allowed)
    return next((f"it returns its input data[{number}] as output {output}" for output, number in passed_on), "")


class _Flow:
    """Which memory has been written, and which inputs it depends on. A view shares the memory of its base."""

    @classmethod
    def of(cls, trace: Trace) -> _Flow:
        """All of the trace's steps."""
        flow = cls(trace)
        for step in trace.steps:
            flow.take(step)
        return flow

    def __init__(self, trace: Trace, adding: Collection[str] = ()) -> None:
        self._trace, self._adding = trace, adding
        self._memory = list(range(len(trace.tensors)))
        self._unwritten: set[int] = set()
        self._depends = {number: frozenset([number]) for number in trace.inputs}
        """The inputs that the values of memory depend on."""
        self._read = dict.fromkeys(trace.inputs, 0.0)
        """How many times its size was read of an input."""
        self._changed: set[int] = set()
        self._may_be_changed: set[int] = set()
        """Memory that operators write to, and that of kernels' arguments."""
        self.waits = False
        """Whether host code has read values. From then on, everything may depend on the inputs."""

    def take(self, step: Step) -> str:
        reads, makes = [self._memory[each] for each in step.reads], list(step.makes)
        self.waits |= step.kind in ("sync", "copy")
        if step.kind == "view" and reads:
            for made in makes:
                self._memory[made] = reads[0]
            return ""
        if step.kind == "allocation":
            self._unwritten |= {made for made in makes if _EMPTY.match(step.name)}
            return ""
        written, read = (set(reads), set()) if step.kind in LAUNCHES else self._used(step)
        if step.kind in LAUNCHES:
            self._may_be_changed |= written
        else:
            self._changed |= written
        if step.kind in LAUNCHES and step.name in self._adding and self._unwritten & written:
            return f"{step.name} adds to memory that nothing has written"
        if self._unwritten & read:
            return f"{step.name} reads memory that nothing has written"
        written |= {self._memory[made] for made in makes}
        self._unwritten -= written
        given = frozenset[int]().union(*(self._depends.get(each, frozenset()) for each in reads))
        for each in written if given else ():
            self._depends[each] = self._depends.get(each, frozenset()) | given
        if not _BLIND.match(step.name):
            self._count(step)
        return ""

    def _count(self, step: Step) -> None:
        """Count what a step reads of the inputs. A kernel may read all memory that it gets a pointer into."""
        for number in step.reads:
            memory = self._memory[number]
            if memory in self._read:
                part, whole = (prod(self._trace.tensors[each].shape) for each in (number, memory))
                self._read[memory] += 1.0 if step.kind in LAUNCHES else part / max(1, whole)

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

    def passed_on(self) -> dict[int, int]:
        """The inputs that outputs share memory with, by the number of the output."""
        places = {number: at for at, number in enumerate(self._trace.inputs)}
        return {at: places[memory] for at, memory in enumerate(self.outputs) if memory in places}

    def changed(self, by_kernels: bool = False) -> set[int]:
        """The inputs that operators write to, with by_kernels also those that kernels may write to."""
        memory = self._changed | (self._may_be_changed if by_kernels else set())
        return {at for at, number in enumerate(self._trace.inputs) if number in memory}

    def returns_unwritten(self) -> bool:
        return bool(self._unwritten.intersection(self.outputs))

    def used(self) -> frozenset[int]:
        """The inputs that the outputs depend on, as far as the host has read no values."""
        return frozenset[int]().union(*(self._depends.get(each, frozenset()) for each in self.outputs))

    def share(self, number: int) -> float:
        """The share of an input that was read, at most. Steps may have read the same part."""
        return min(1.0, self._read[number])

    @property
    def outputs(self) -> list[int]:
        return [self._memory[each] for each in tensors_in([self._trace.outputs])]


def _overwrites(operator: str, step: Step) -> bool:
    """Whether an operator does not use what its first argument holds."""
    if operator.rstrip("_") in _SCALED:
        return bool(step.named.get("beta", 1) == 0)
    adds = step.arguments[3:4] == (True,) or step.named.get("accumulate") or "reduce" in step.named
    return operator in _OVERWRITES or (operator in _PLACES and not adds)


def _written(spec: TensorSpec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"
