"""A problem that a bare kernel's file states itself: its header declares arrays and sizes, and its first configuration
is the reference, whose outputs are the right ones.

Only that kernel can compute the right outputs. So a device runs it beside each kernel that it measures, on the same
inputs."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from presage.core.errors import PresageError
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import DTYPES, Array, Case, Cost, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage.static import roofline
from presage.static.report import StaticReport

SUFFIXES = (".c", ".cu")
TOLERANCES = {"float64": 1e-8, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
"""By the output's dtype: relative to the absolute value plus the root mean square of all values."""
_BELOW = "100"
"""Integers of an input are below this expression, unless the input's header line sets another limit."""

Answer = Callable[[Case, Sequence[Any]], tuple[Any, ...]]
"""Runs the reference on a case's inputs and returns its outputs."""


class KernelProblem(Problem):
    """The problem of computing what a kernel file's first configuration computes. To measure it, use `answered_by`."""

    def __init__(self, family: Kernel) -> None:
        super().__init__(Path(family.name).name)
        self._family, header = family, family.header
        self.summary = f"what {self.reference_kernel().family} computes in its first configuration"
        self.inputs = tuple(Array(name, each.shape, each.dtype) for name, each in header.inputs.items())
        self.outputs = tuple(Array(name, each.shape, each.dtype) for name, each in header.outputs.items())
        cases = tuple(Case(case, dtype=self._dtype) for case in header.cases or ({},))
        self.checks, self.timed = cases, {"cpu": cases, "gpu": cases}
        self.notes = {"": self.tolerance(cases[0]).reason}
        self._flops: dict[str, int] = {}
        self._answer: Answer | None = None
        self._refuse_unknown()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out `_answer`: it refers to a device of this process."""
        return {**self.__dict__, "_answer": None}

    def _refuse_unknown(self) -> None:
        """Raise PresageError for invalid shapes and dtypes now, and not when the first array is made."""
        for array in (*self.inputs, *self.outputs):
            if array.dtype not in DTYPES:
                raise PresageError(f"{self._family.name}: {array.name} is {array.dtype}; types are {', '.join(DTYPES)}")
            for case in self.checks:
                self._refuse_shape(array, case)

    def _refuse_shape(self, array: Array, case: Case) -> None:
        try:
            shape = self.shape(array, case)
        except expression.ExpressionError as error:
            raise PresageError(
                f"{self._family.name}: the shape of {array.name} cannot be worked out: {error}"
            ) from error
        if min(shape) < 1:
            raise PresageError(f"{self._family.name}: {array.name} has the shape {list(shape)}; sizes are 1 or more")

    @property
    def _dtype(self) -> str:
        """The dtype of the cases, which is that of the first output."""
        return next(iter(self._family.header.outputs.values())).dtype

    @cached_property
    def folder(self) -> Path:
        return Path(self._family.name).absolute().parent

    @property
    def room(self) -> str:
        return "one-file"

    @property
    def path(self) -> str:
        return self._family.name

    @property
    def families(self) -> tuple[Kernel, ...]:
        """The problem's kernels: only the one in the file."""
        return (self._family,)

    def reference_kernel(self) -> Kernel:
        return self._family.render()

    def informed(self, reports: Sequence[StaticReport]) -> KernelProblem:
        """Return this problem with the number of operations of its reference, counted by walking its code."""
        known = copy.copy(self)
        counted = zip(self.timed["gpu"], reports, strict=False)
        known._flops = {case.name: int(roofline.launch_flops(report)) for case, report in counted}
        return known

    def answered_by(self, answer: Answer) -> KernelProblem:
        """Return this problem with a function that lets a device run its reference."""
        known = copy.copy(self)
        known._answer = answer
        return known

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return tuple(self._made(array, case, sampler) for array in self.inputs)

    def _made(self, array: Array, case: Case, sampler: Sampler) -> Any:
        shape, dtype = self.shape(array, case), self.dtype(array, case)
        if dtype.startswith(("float", "bfloat")):
            return sampler.values(shape, dtype)
        below = self._family.header.inputs[array.name].below or ("2" if dtype == "bool" else _BELOW)
        return sampler.integers(shape, 0, max(1, int(expression.evaluate(below, case.dims))), dtype)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        assert self._answer is not None, "only a device can run the reference"
        narrow = [
            xp.astype(values, getattr(xp, self.dtype(array, case)))
            for array, values in zip(self.inputs, inputs, strict=True)
        ]
        outputs = self._answer(case, narrow)
        return tuple(xp.astype(x, xp.float64) if xp.isdtype(x.dtype, "real floating") else x for x in outputs)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The absolute value plus the output's root mean square, so that a sum that has nearly cancelled out gets as
        much tolerance as other values."""
        kinds = [array.dtype in TOLERANCES for array in self.outputs]
        return tuple(
            xp.abs(output) + _typical(xp, output) if is_float else 0 * xp.abs(output)
            for output, is_float in zip(expected, kinds, strict=True)
        )

    def tolerance(self, case: Case) -> Tolerance:
        allowed = max((TOLERANCES.get(array.dtype, 0.0) for array in self.outputs), default=0.0)
        name = Path(self.reference_kernel().name).name
        much = f"within {allowed:g} of each value and of the typical one" if allowed else "exactly"
        return Tolerance(allowed, f"right is what agrees with the first configuration, {name}, {much}")

    def cost(self, case: Case) -> Cost:
        """Only the outputs' bytes, since the file does not say which inputs must be read."""
        return Cost(sum(self.array_bytes(array, case) for array in self.outputs), 0)

    def flops(self, case: Case) -> int:
        return 0

    def textbook_flops(self, case: Case) -> int:
        """The operations of the reference; 0 if they are not known."""
        return self._flops.get(case.name, 0)

    def draw_case(self, rng: random.Random) -> Case:
        """Choose one of the file's cases. Only its input values are new."""
        return rng.choice(self.checks)


def _typical(xp: ModuleType, output: Any) -> Any:
    """The root mean square of a tensor, with 0 for values that are not finite."""
    wide = xp.astype(output, xp.float64)
    finite = xp.where(xp.isfinite(wide), wide, 0.0)
    return xp.sqrt(xp.mean(finite * finite))
