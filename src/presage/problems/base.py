"""Problem: one operation with its cases. It makes inputs, computes right outputs, and states a case's least cost."""

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
"""The dtypes that an array may have."""


_NOT_IN_NUMPY = {"bfloat16": "int16"}
STYLE_SLACK = 1024.0
_DRAWS = 64
"""How many cases are drawn to find the input styles of a problem: enough for each style to occur."""


def storage(dtype: str) -> np.dtype:
    """The numpy dtype that stores an array: the same dtype, or integers of the same width if numpy lacks the dtype."""
    return np.dtype("uint8" if dtype.startswith(("float8", "float4")) else _NOT_IN_NUMPY.get(dtype, dtype))


@dataclass(frozen=True)
class Array:
    """An input or output. Its shape is expressions over the case's dimensions; the dtype `T` is the case's dtype."""

    name: str
    shape: str
    dtype: str = "T"
    written: bool = False
    """For an input: whether it is only a buffer for an output, so that a kernel may write to it and return it."""


@dataclass(frozen=True)
class Case:
    """One problem size, with the dtype and the style of its inputs."""

    dims: Mapping[str, int]
    dtype: str = "float32"
    values: str = "uniform"
    slack: float = 1.0
    """Factor on the problem's tolerance."""

    @property
    def name(self) -> str:
        parts = [f"{name}={size}" for name, size in self.dims.items()]
        if self.dtype != "float32":
            parts.append(self.dtype)
        if self.values != "uniform":
            parts.append(self.values)
        return " ".join(parts) or "as written"


def cases(table: str, dtype: str = "float32") -> tuple[Case, ...]:
    """Parse cases from a table in one line: the names of the sizes, a colon, and one row of sizes per case, separated
    by semicolons. A row may end with the style of its inputs.

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
    """The least cost of a case for any implementation: bytes that must be moved and operations that must be done."""

    bytes: int
    flops: int


@dataclass(frozen=True)
class Tolerance:
    """The error allowed per element, |output - expected| <= relative * magnitude + absolute, and the reason for it."""

    relative: float
    reason: str
    absolute: float = 1e-30


SPLITS = ("train", "validation", "test_op", "test_family", "test_problem")
"""Parts of a recording: `train` is for training. The test splits hold operations, whole rooms, and external problems
that training does not see."""


class Problem(Shown, ABC):
    """One operation. A subclass fills in the class attributes and the abstract methods.

    Its module may be in any package. The problem's own kernels are in a folder of its name beside the module. Kernels
    in the folder `families` there are shared by all problems that are declared in that folder: their text contains
    placeholders such as `$apply$`, which `given` fills. A file `NAME.cuh` in either folder is the text for `$NAME$`.
    """

    name: str
    """A class attribute, or the constructor's argument if one class serves several problems."""
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
    """The part of a recording that its kernels belong to, one of `SPLITS`."""
    is_foreign: bool = False
    """Whether the problem was written for another harness or by a user. Its kernels are whole modules."""
    any_order: ClassVar[bool] = False
    """Whether a module's outputs may have any memory order of their dimensions, and not only row-major order."""

    notes: Mapping[str, str] = {}
    """Remarks on comparing the outputs of a case, by the case's name."""

    adds_up: ClassVar[bool] = True
    """Whether an output may be a sum of many terms."""

    elementwise: ClassVar[bool] = False
    """Whether all arrays have one shape, and each output element depends only on input elements at its index."""

    def __init__(self, name: str = "") -> None:
        if name:
            self.name = name

    def reference_kernel(self) -> Kernel | None:
        """The kernel that defines the right outputs and the baseline of speedups, if a file brings one."""
        return None

    def informed(self, reports: Sequence[StaticReport]) -> Problem:
        """Return this problem with facts from static reports of its reference, one report per case timed on a GPU."""
        return self

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        """The inputs, in the order of `inputs`, with the case's shapes and dtypes; by default floats of its style."""
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
        """The operations of the usual algorithm, for the roofline. A better algorithm may need fewer."""
        return self.flops(case)

    @abstractmethod
    def draw_case(self, rng: random.Random) -> Case:
        """Draw a case for checking that no kernel can know in advance: random sizes, and perhaps a random style."""

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        """The magnitude that the tolerance is relative to, per output; by default the absolute expected value.

        Operations that add up many terms return the root of the sum of the squared terms instead. The rounding error of
        a correct kernel scales with the terms, and not with a result in which they may cancel out.
        """
        return tuple(xp.abs(output) for output in expected)

    def bytes(self, case: Case) -> int:
        """Bytes that must be moved: every input read once and every output written once."""
        return sum(self.array_bytes(array, case) for array in (*self.inputs, *self.outputs))

    def cost(self, case: Case) -> Cost:
        return Cost(self.bytes(case), self.flops(case))

    def moved_bytes(self, case: Case) -> int:
        """The bytes that a call must move, as far as that can be found out; 0 if it is not known."""
        return self.cost(case).bytes

    def given(self, suffix: str) -> Mapping[str, str]:
        """The problem's code for the placeholders of shared families, by name. `suffix` is that of the kernel files:
        `.c`, `.cu` or `.py`."""
        return {}

    @property
    def needs_torch(self) -> bool:
        """Whether an array has a dtype that numpy lacks, so that inputs and answers exist only as tensors."""
        declared = (array.dtype for array in (*self.inputs, *self.outputs))
        cases = (case.dtype for case in (*self.checks, *(case for timed in self.timed.values() for case in timed)))
        return any(dtype.startswith(("float8", "float4", *_NOT_IN_NUMPY)) for dtype in (*declared, *cases))

    @cached_property
    def styles(self) -> tuple[str, ...]:
        """Every input style that the problem is checked on."""
        drawn = (self.draw_case(random.Random(seed)) for seed in range(_DRAWS))
        return tuple(sorted({case.values for case in (*self.checks, *drawn)}))

    def is_passed_on(self, array: Array, case: Case) -> bool:
        """Whether an output may be an input, or a view of one. Never, unless the reference returns such."""
        return False

    def may_overlap(self, array: Array, case: Case) -> bool:
        """Whether elements of an output may share memory. Never, unless those of the reference's do."""
        return False

    def restyled(self, case: Case) -> tuple[Case, ...]:
        """Return a timed case in every other input style, so that kernels cannot recognise timed inputs by size or
        values.

        The tolerance was chosen for the checks, whose sizes are smaller. At timed sizes, terms that are similar to each
        other, such as tiny ones, have similar rounding errors, which add up in a sum: `slack` allows for that. The
        style `equal` is left out, since no slack would be enough for a correct float32 sum of equal terms."""
        needles = ("needles",) if "outliers" in self.styles and case.dtype == "float32" else ()
        others = [style for style in (*self.styles, *needles) if style not in (case.values, "equal")]
        slack = STYLE_SLACK if self.adds_up else 2.0
        return tuple(replace(case, values=style, slack=slack) for style in others)

    @cached_property
    def folder(self) -> Path:
        """The folder of the module that declares the problem."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent

    @cached_property
    def room(self) -> str:
        return self.folder.name

    @property
    def kernel_folders(self) -> tuple[Path, ...]:
        """The folder of the problem's own kernels, and then the folder of the shared families."""
        return self.folder / self.name, self.folder / "families"

    def shape(self, array: Array, case: Case) -> tuple[int, ...]:
        return tuple(int(expression.evaluate(part, case.dims)) for part in array.shape.split(","))

    def dtype(self, array: Array, case: Case) -> str:
        return case.dtype if array.dtype == "T" else array.dtype

    def precision(self, case: Case) -> str:
        """The dtype of the usual algorithm's products: float16 if an input has 16 bits or fewer, else the case's."""
        floats = [kind for array in self.inputs if (kind := self.dtype(array, case)).startswith(("float", "bfloat"))]
        return "float16" if any(storage(kind).itemsize <= 2 for kind in floats) else case.dtype

    def array_bytes(self, array: Array, case: Case) -> int:
        return math.prod(self.shape(array, case)) * storage(self.dtype(array, case)).itemsize

    def arguments(self, case: Case) -> dict[str, Any]:
        """The description from which a worker builds the `data` of a module's call."""
        return {
            "inputs": [{"dtype": self.dtype(a, case), "shape": self.shape(a, case)} for a in self.inputs],
            "parameters": [case.dims[name] for name in self.parameters],
        }

    @property
    def scalars(self) -> tuple[str, ...]:
        """The integers passed to a bare kernel after its pointers: the case's dimensions, in order."""
        return tuple(next(iter(self.timed.values()))[0].dims)

    def signature(self, entry: str, dtype: str | None = None) -> str:
        """The C prototype that a bare kernel implements, for this dtype or else for the first timed case's dtype."""
        dtype = dtype or next(iter(self.timed.values()))[0].dtype
        pointers = [
            f"{const}{_C_TYPES[dtype if array.dtype == 'T' else array.dtype]} *{array.name}"
            for const, arrays in (("const ", self.inputs), ("", self.outputs))
            for array in arrays
        ]
        return f"void {entry}({', '.join([*pointers, *(f'int {name}' for name in self.scalars)])})"
