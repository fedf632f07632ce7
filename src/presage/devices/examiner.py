"""ChildExaminer: the parent's handle on the child that runs the code of a problem from elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from presage.core.errors import UNREADABLE, PresageError
from presage.core.text import one_line
from presage.devices.child import Child, VerdictError
from presage.devices.status import Status
from presage.problems.base import Case
from presage.problems.external import THINNED, ExternalProblem, Layout
from presage.static.trace import ITEM_SIZES, TensorSpec

TOGETHER, TOGETHER_BYTES = 64, 64 << 20
"""The inputs of up to TOGETHER calls are made at a time, as long as they and their outputs take at most
TOGETHER_BYTES."""
NEEDED_SECONDS = 5.0
"""The most seconds for finding out which inputs have to be read."""


class ProblemError(PresageError):
    """The own code of a problem from elsewhere failed. `problem` is its name, and `status` says how, if that is
    known."""

    def __init__(self, problem: str, reason: str, status: Status | None = None) -> None:
        super().__init__(reason)
        self.problem, self.status = problem, status


class CheckingError(VerdictError):
    """No memory was left to check a kernel's results. The device must find out whose fault that is."""

    def __init__(self) -> None:
        super().__init__(Status.DEVICE_FAULT, "out of memory beside this kernel, so its results cannot be checked")


class ChildExaminer:
    """Sends requests to the child. An error there is the problem's fault and not a kernel's, so it ends the
    measurement.

    Tensors go through the child's arena. Each request may take `seconds`.
    """

    def __init__(self, problem: ExternalProblem, child: Child, seconds: float) -> None:
        self._problem, self._child, self._seconds = problem, child, seconds
        problem.seed = secrets.randbelow(2**31)
        try:
            settings = problem.worker_settings(child.scratch)
        except OSError as error:
            raise PresageError(f"cannot write to {child.scratch}: {error.strerror}") from error
        try:
            child.wait_ready()
        except VerdictError as fault:
            raise PresageError(f"a worker for the problem's reference cannot be had: {fault.reason}") from fault
        self._ask("load", kind="examiner", problem=settings)

    def describe(self) -> ExternalProblem:
        """Return the problem with the shapes and types of its tensors, so that it can be measured."""
        cases = self._problem.cases
        seed = secrets.randbelow(2**31)
        answer = self._ask("describe", cases=[dict(case.dims) for case in cases], seed=seed)
        with self._reading():
            layouts = {case.name: _layout(found) for case, found in zip(cases, answer["cases"], strict=True)}
            written = [_whole(number) for number in answer["written"]]
        self._problem = self._problem.described(layouts, written, self)
        return self._problem

    def share(self, arena: Any) -> None:
        """Pass tensors through this arena, if the child has none of its own."""
        if arena is not None:
            self._child.arena = arena
            self._ask("open arena", handle=arena.handle)

    def let_go(self) -> None:
        """Have the child empty its memory cache, since others may need the memory meanwhile."""
        self._ask("let go")

    def make(self, case: Case, seeds: Sequence[int]) -> list[tuple[Any, ...]]:
        """Make the inputs for these seeds, as many per request as there is room for, since a request takes longer than
        making small inputs."""
        arena, found = self._child.arena, []
        arena.lay_out(self._problem, case, 1, outputs=True)
        room = max(1, min(TOGETHER, TOGETHER_BYTES // arena.slots[0][-1].end))
        for begin in range(0, len(seeds), room):
            some = list(seeds[begin : begin + room])
            arena.lay_out(self._problem, case, len(some), outputs=True)
            details = self._tensors(case, outputs=False) | {"thinned": case.values == THINNED}
            self._ask("make", case=dict(case.dims), seeds=some, **details)
            found += [arena.inputs(slot) for slot in range(len(some))]
        return found

    def difference(self, case: Case, inputs: Sequence[Any], outputs: Sequence[Any]) -> str | None:
        arena = self._child.arena
        arena.lay_out(self._problem, case, 1, outputs=True)
        arena.write_inputs(0, (*inputs, *outputs))
        arena.settle()
        details = self._tensors(case, outputs=True)
        details |= {"offsets": details["offsets"][0], "thinned": case.values == THINNED}
        answer = self._ask("check", case=dict(case.dims), **details)
        name = replace(case, values="uniform").name
        if answer.get("thins"):
            self._problem.thinned.add(name)
        with self._reading():
            if note := answer.get("note"):
                self._problem.notes[name] = str(note)[:_MOST_SAID]
            wrong = answer["wrong"]
            return None if wrong is None else str(wrong)[:_MOST_SAID]

    def needed(self, case: Case) -> list[int]:
        """The numbers of the inputs that every kernel has to read as a whole, as far as that is found out in time."""
        seconds = min(NEEDED_SECONDS, self._seconds / 4)
        answer = self._ask("needed", case=dict(case.dims), seed=secrets.randbelow(2**31), seconds=seconds)
        with self._reading():
            return [_whole(number) for number in answer["needed"]]

    def _tensors(self, case: Case, outputs: bool) -> dict[str, Any]:
        """The description of a case's tensors for the child, and their offsets in the arena."""
        layout, problem = self._problem.layout(case), self._problem
        count = None if outputs else len(layout.inputs)
        found = {
            "data": layout.data,
            "inputs": [tensor.layout for tensor in layout.inputs],
            "offsets": [[place.offset for place in slot[:count]] for slot in self._child.arena.slots],
        }
        if outputs:  # the parent writes them in row-major order
            found["outputs"] = [
                {"dtype": problem.dtype(array, case), "shape": problem.shape(array, case)} for array in problem.outputs
            ]
        return found

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise ProblemError for an answer of the wrong form, which the problem's own code can write."""
        try:
            yield
        except UNREADABLE as error:
            path = self._problem.path
            raise ProblemError(self._problem.name, f"{path}: its process gave no answer that can be read") from error

    def _ask(self, do: str, **details: Any) -> dict[str, Any]:
        self._child.give(self._seconds)
        try:
            return self._child.command(do, **details)
        except VerdictError as fault:
            if do in _BESIDE_A_KERNEL and "out of memory" in fault.reason:
                raise CheckingError from fault
            reason = f"{self._problem.path}: its reference failed: {fault.reason}"
            raise ProblemError(self._problem.name, reason, fault.status) from fault


_BESIDE_A_KERNEL = ("make", "check")
"""The requests that are sent while a kernel may have taken all the memory."""


_MOST_SAID = 4000
"""The most characters of a reason or a note."""


def _layout(found: dict[str, Any]) -> Layout:
    inputs = tuple(_tensor(tensor) for tensor in found["inputs"])
    names = tuple(one_line(str(name), 200) for name, _ in zip(found["names"], inputs, strict=True))
    return Layout(
        inputs,
        tuple(_tensor(tensor) for tensor in found["outputs"]),
        names,
        found["data"],
        tuple(each is True for each in found["passed_on"]),
    )


def _tensor(found: dict[str, Any]) -> TensorSpec:
    shape, stride = (tuple(_whole(size) for size in found[name]) for name in ("shape", "stride"))
    if found["dtype"] not in ITEM_SIZES or len(shape) != len(stride):
        raise ValueError("a tensor of a kind that is not known")
    return TensorSpec(shape, found["dtype"], stride)


def _whole(size: Any) -> int:
    if type(size) is not int or size < 0:
        raise ValueError(f"a size of {str(size)[:40]}")
    return size
