"""A problem that a bare kernel states itself: its header declares arrays and sizes, and its first configuration is the
reference, whose outputs are the right ones.

Nobody knows the answer but that kernel. So a device runs it beside whatever it measures, on the same inputs."""

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
"""By the type of an output: relative to each value and to the root mean square of all."""
_BELOW = "100"
"""Integers of an input lie below this, unless its line says otherwise."""

Answer = Callable[[Case, Sequence[Any]], tuple[Any, ...]]
"""What the reference makes of a case's inputs."""


class KernelProblem(Problem):
    """What the first configuration of a kernel file computes. `answered_by` gives one that can be measured."""

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
        """Without the reference that answers for it, which stays where it is."""
        return {**self.__dict__, "_answer": None}

    def _refuse_unknown(self) -> None:
        """Say what is wrong with shapes and types, rather than when the first array is made."""
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
        """Of the case: what its outputs are of."""
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
        """Its kernels, which is the one file."""
        return (self._family,)

    def reference_kernel(self) -> Kernel:
        return self._family.render()

    def informed(self, reports: Sequence[StaticReport]) -> KernelProblem:
        """This problem with the operations that its reference does, as walking its code counts them."""
        known = copy.copy(self)
        counted = zip(self.timed["gpu"], reports, strict=False)
        known._flops = {case.name: int(roofline.launch_flops(report)) for case, report in counted}
        return known

    def answered_by(self, answer: Answer) -> KernelProblem:
        """This problem where a device runs its reference."""
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
        """A sum that has nearly cancelled out may be off by as much as others are."""
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
        """Which inputs must be read, nobody says: only outputs must be written."""
        return Cost(sum(self.array_bytes(array, case) for array in self.outputs), 0)

    def flops(self, case: Case) -> int:
        return 0

    def textbook_flops(self, case: Case) -> int:
        """The reference's own."""
        return self._flops.get(case.name, 0)

    def draw_case(self, rng: random.Random) -> Case:
        """The sizes are the file's; what nobody has seen before are the values."""
        return rng.choice(self.checks)


def _typical(xp: ModuleType, output: Any) -> Any:
    """The root of the mean square of what is finite."""
    wide = xp.astype(output, xp.float64)
    finite = xp.where(xp.isfinite(wide), wide, 0.0)
    return xp.sqrt(xp.mean(finite * finite))
