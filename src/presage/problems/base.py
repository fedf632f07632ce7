"""Problem: one operation with its cases. It makes inputs, knows the right answer, and counts what a case must cost."""

from __future__ import annotations

import math
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from presage.core.shown import Shown
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.sampler import Sampler
from presage.static.report import StaticReport

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "bfloat16": "nv_bfloat16",
    "float8_e4m3fn": "__nv_fp8_e4m3",
    "bool": "bool",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int32": "int32_t",
    "int64": "int64_t",
}
DTYPES = tuple(_C_TYPES)
"""The types that an array may have."""


_NOT_IN_NUMPY = {"bfloat16": "int16"}
STYLE_SLACK = 1024.0
_DRAWS = 64
"""Of so many drawn cases, some have each style that a problem draws."""


def storage(dtype: str) -> np.dtype:
    """The numpy type that an array is kept in: its own, or integers as wide for a type that numpy does not have."""
    return np.dtype("uint8" if dtype.startswith(("float8", "float4")) else _NOT_IN_NUMPY.get(dtype, dtype))


@dataclass(frozen=True)
class Array:
    """An input or output: its shape as expressions over the case's dimensions, its dtype `T` for the case's own."""

    name: str
    shape: str
    dtype: str = "T"
    written: bool = False
    """Of an input: it only offers room for an output, so a kernel may write to it and return it."""


@dataclass(frozen=True)
class Case:
    """One size to run at, and how its inputs look."""

    dims: Mapping[str, int]
    dtype: str = "float32"
    values: str = "uniform"
    slack: float = 1.0
    """How many times the problem's tolerance an output may be off."""

    @property
    def name(self) -> str:
        parts = [f"{name}={size}" for name, size in self.dims.items()]
        if self.dtype != "float32":
            parts.append(self.dtype)
        if self.values != "uniform":
            parts.append(self.values)
        return " ".join(parts) or "as written"


def cases(table: str, dtype: str = "float32") -> tuple[Case, ...]:
    """Cases from a table in one line: the names of the sizes, a colon, and a row of sizes for each case, perhaps with
    the style of its inputs at the end.

    >>> [case.name for case in cases("rows cols: 1 1; 9 1 large")]
    ['rows=1 cols=1', 'rows=9 cols=1 large']
    """
    heading, _, rows = table.partition(":")
    names = heading.split()
    made = []
    for row in rows.split(";"):
        sizes, style = row.split()[: len(names)], " ".join(row.split()[len(names) :])
        made.append(Case(dict(zip(names, map(int, sizes), strict=True)), dtype, style or "uniform"))
    return tuple(made)


@dataclass(frozen=True)
class Cost:
    """The least a case costs any implementation: bytes that must move and operations that must be done."""

    bytes: int
    flops: int


@dataclass(frozen=True)
class Tolerance:
    """|output - expected| <= relative * magnitude + absolute, element by element, and why that much."""

    relative: float
    reason: str
    absolute: float = 1e-30


SPLITS = ("train", "validation", "test_op", "test_family", "test_problem")
"""Parts of a recording: what training sees, and, for tests, operations, whole rooms, or problems from elsewhere that it
does not see."""


class Problem(Shown, ABC):
    """One operation. A subclass fills in the class attributes and the abstract methods.

    Its module may lie in any package. Kernels of its own lie beside the module, in a folder of its name. Kernels in the
    folder `families` there are shared by all problems that are declared in that folder: their text leaves places such
    as `$apply$`, and `given` says what belongs there. A file `NAME.cuh` in either folder is the text for `$NAME$`.
    """

    name: str
    """A class attribute, or the constructor's argument where one class serves several problems."""
    summary: str
    """One sentence: what is computed, with the constants that matter."""
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    parameters: tuple[str, ...] = ()
    """Names in a case's dims that are not visible in the inputs' shapes (a stride, a number of bins)."""
    timed: Mapping[str, tuple[Case, ...]]
    """The cases that are timed, for each kind of device: `cpu`, `gpu`."""
    checks: tuple[Case, ...]
    """Cases that are only checked: odd sizes, sizes of 1, extreme values."""
    split: str = "train"
    """Which part of a recording its kernels belong to, one of `SPLITS`."""
    is_foreign: bool = False
    """Whether it was written for another harness, or is a user's own: its kernels are whole modules."""
    any_order: ClassVar[bool] = False
    """Whether a module's outputs may lie in memory in any order of their dimensions, and not only row by row."""

    notes: Mapping[str, str] = {}
    """What is odd about comparing the outputs of a case, by its name."""

    adds_up: ClassVar[bool] = True
    """Whether an output may be a sum of many terms."""

    elementwise: ClassVar[bool] = False
    """Whether all arrays have one shape, and an element of an output depends only on what lies at its place."""

    def __init__(self, name: str = "") -> None:
        if name:
            self.name = name

    def reference_kernel(self) -> Kernel | None:
        """The kernel whose outputs are the right ones and that speedups are relative to, where a file brings one."""
        return None

    def informed(self, reports: Sequence[StaticReport]) -> Problem:
        """This problem with what static reports of its reference, one for each case timed on a GPU, tell of it."""
        return self

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """The inputs, in the order of `inputs`, with the case's shapes and dtypes; by default floats in its style."""
        return tuple(sampler.values(self.shape(array, case), self.dtype(array, case)) for array in self.inputs)

    @abstractmethod
    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        """The right outputs. Float inputs arrive in double precision; `xp` is an array-API namespace."""

    @abstractmethod
    def tolerance(self, case: Case) -> Tolerance:
        """How far a float output may be from the oracle's; integer outputs must be equal."""

    @abstractmethod
    def flops(self, case: Case) -> int:
        """The operations that any implementation must do."""

    def textbook_flops(self, case: Case) -> int:
        """The operations of the usual algorithm, for the roofline, where a cleverer one needs fewer."""
        return self.flops(case)

    @abstractmethod
    def draw_case(self, rng: random.Random) -> Case:
        """A checking case that nobody has seen: sizes (and perhaps a style) drawn at random."""

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """What the tolerance is relative to, per output; by default the size of the expected value.

        Operations that add up many terms return the root of the sum of their squares instead, since an honest
        rounding error scales with the terms and not with a result that may have cancelled out.
        """
        return tuple(xp.abs(output) for output in expected)

    def bytes(self, case: Case) -> int:
        """Bytes that must move: every input read once and every output written once."""
        return sum(self.array_bytes(array, case) for array in (*self.inputs, *self.outputs))

    def cost(self, case: Case) -> Cost:
        return Cost(self.bytes(case), self.flops(case))

    def given(self, suffix: str) -> Mapping[str, str]:
        """The code that shared families leave to this problem, by name, for kernel files that end in `.c`, `.cu` or
        `.py`."""
        return {}

    @property
    def needs_torch(self) -> bool:
        """Whether an array has a type that numpy lacks, so that inputs and answers exist as tensors only."""
        declared = (array.dtype for array in (*self.inputs, *self.outputs))
        cases = (case.dtype for case in (*self.checks, *(case for timed in self.timed.values() for case in timed)))
        return any(dtype.startswith(("float8", "float4", *_NOT_IN_NUMPY)) for dtype in (*declared, *cases))

    @cached_property
    def styles(self) -> tuple[str, ...]:
        """Every style of input that it is checked on."""
        drawn = (self.draw_case(random.Random(seed)) for seed in range(_DRAWS))
        return tuple(sorted({case.values for case in (*self.checks, *drawn)}))

    def restyled(self, case: Case) -> tuple[Case, ...]:
        """A timed case with inputs of every other style, so that nobody knows timed inputs by their size or values.

        Timed sizes are larger than those of the checks that a tolerance was made for, and where terms are alike, as
        small ones are, so are the rounding errors of their sum: there is slack for that. Where all terms are equal,
        none would be enough for an honest sum of float32."""
        needles = ("needles",) if "outliers" in self.styles and case.dtype == "float32" else ()
        others = [style for style in (*self.styles, *needles) if style not in (case.values, "equal")]
        slack = STYLE_SLACK if self.adds_up else 2.0
        return tuple(replace(case, values=style, slack=slack) for style in others)

    @cached_property
    def folder(self) -> Path:
        """The folder of the module that declares it."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent

    @cached_property
    def room(self) -> str:
        return self.folder.name

    @property
    def kernel_folders(self) -> tuple[Path, ...]:
        """Where its own kernels lie, and the families that it shares with others; the nearest first."""
        return self.folder / self.name, self.folder / "families"

    def shape(self, array: Array, case: Case) -> tuple[int, ...]:
        return tuple(int(expression.evaluate(part, case.dims)) for part in array.shape.split(","))

    def dtype(self, array: Array, case: Case) -> str:
        return case.dtype if array.dtype == "T" else array.dtype

    def precision(self, case: Case) -> str:
        """The type that the usual algorithm multiplies in: half where an input has 16 bits or fewer, or the case's."""
        floats = [kind for array in self.inputs if (kind := self.dtype(array, case)).startswith(("float", "bfloat"))]
        return "float16" if any(storage(kind).itemsize <= 2 for kind in floats) else case.dtype

    def array_bytes(self, array: Array, case: Case) -> int:
        return math.prod(self.shape(array, case)) * storage(self.dtype(array, case)).itemsize

    def arguments(self, case: Case) -> dict[str, Any]:
        """What a worker builds the `data` of a module's call from."""
        return {
            "inputs": [{"dtype": self.dtype(a, case), "shape": self.shape(a, case)} for a in self.inputs],
            "parameters": [case.dims[name] for name in self.parameters],
        }

    @property
    def scalars(self) -> tuple[str, ...]:
        """The integers passed to a bare kernel after its pointers: the case's dimensions, in order."""
        return tuple(next(iter(self.timed.values()))[0].dims)

    def signature(self, entry: str, dtype: str | None = None) -> str:
        """The C prototype a bare kernel implements, for this dtype or for that of the first timed case."""
        dtype = dtype or next(iter(self.timed.values()))[0].dtype
        pointers = [
            f"{const}{_C_TYPES[dtype if array.dtype == 'T' else array.dtype]} *{array.name}"
            for const, arrays in (("const ", self.inputs), ("", self.outputs))
            for array in arrays
        ]
        return f"void {entry}({', '.join([*pointers, *(f'int {name}' for name in self.scalars)])})"
