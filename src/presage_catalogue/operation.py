"""The `Operation` base class of the problems of all rooms, and the facts that define one operation.

A room is a folder of related operations. Each module of a room defines a subclass, which generates the code for its
kind of operation (`given`), and a table `OPERATIONS` with one row per operation. A row is a call of the subclass: the
name, a sentence that says what is computed, arguments of the subclass, and the facts below.
"""

from __future__ import annotations

import math
import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict, Unpack

from presage.kernels import header
from presage.problems.base import Array, Case, Problem, Tolerance

Formula = Callable[..., Any]
Limit = int | tuple[int, ...]

C_TYPES = {
    "float32": "float",
    "float16": "half",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int32": "int",
    "int64": "long long",
    "bool": "bool",
    "float8_e4m3fn": "__nv_fp8_e4m3",
}


class Facts(TypedDict, total=False):
    """The keyword arguments of a row. A class may set them for all of its rows."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    parameters: tuple[str, ...]
    timed: tuple[Case, ...] | Mapping[str, tuple[Case, ...]]
    """The timed cases, for a GPU only or by kind of device."""
    checks: tuple[Case, ...]
    oracle: Formula
    """Computes the correct output, or outputs, from an array namespace and the inputs."""
    scale: Formula
    """Computes the magnitude that the tolerance is relative to, from the same arguments. By default, the magnitude is
    the size of the correct output."""
    tolerance: Tolerance
    flops: int | Callable[[Mapping[str, int]], int]
    """The operations per element of the first output, or a function of the sizes that returns the total."""
    draw: Sequence[Limit] | Callable[[random.Random], Sequence[int]]
    """The largest value of each size in a drawn case (of a tuple, one is chosen at random), or a function that draws
    the sizes."""
    draw_styles: tuple[str, ...]
    eager: str
    """The PyTorch code that a user would write: an expression, or a function body with a return statement."""


@cache
def _splits() -> dict[str, list[str]]:
    return tomllib.loads(Path(__file__).with_name("splits.toml").read_text())


class Operation(Problem):
    draw_styles: tuple[str, ...] = ("normal", "large", "tiny", "outliers")
    torch_imports: str = ""
    """The lines that the PyTorch code needs besides `import torch`."""
    textbook: int = 1
    """The number of operations of the usual algorithm per operation that is strictly necessary."""
    _oracle: Formula
    _scale: Formula | None = None
    _tolerance: Tolerance
    _flops: int | Callable[[Mapping[str, int]], int] = 0
    _draw: Sequence[Limit] | Callable[[random.Random], Sequence[int]] = ()
    _eager: str = ""

    def __init__(self, name: str = "", summary: str = "", **facts: Unpack[Facts]) -> None:
        super().__init__(name)
        if summary:
            self.summary = summary
        for fact, value in facts.items():
            if fact == "timed":
                self.timed = value if isinstance(value, Mapping) else {"gpu": value}  # type: ignore[dict-item]
            else:
                setattr(self, fact if fact in _PUBLIC else f"_{fact}", value)

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        return several(self._oracle(xp, *self.told(case), *inputs))

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        if self._scale is None:
            return super().magnitude(xp, case, expected, *inputs)
        return several(self._scale(xp, *self.told(case), *inputs))

    def told(self, case: Case) -> tuple[Any, ...]:
        """Return the arguments that `oracle` and `scale` get before the inputs."""
        return ()

    def tolerance(self, case: Case) -> Tolerance:
        return self._tolerance

    def flops(self, case: Case) -> int:
        if isinstance(self._flops, int):
            return self._flops * math.prod(self.shape(self.outputs[0], case))
        return self._flops(case.dims)

    def textbook_flops(self, case: Case) -> int:
        return self.textbook * self.flops(case)

    def draw_case(self, rng: random.Random) -> Case:
        if callable(self._draw):
            sizes = self._draw(rng)
        else:
            sizes = [rng.randint(1, rng.choice(most) if isinstance(most, tuple) else most) for most in self._draw]
        return Case(dict(zip(self.scalars, sizes, strict=True)), self._element_type, rng.choice(self.draw_styles))

    @property
    def _element_type(self) -> str:
        return next(iter(self.timed.values()))[0].dtype

    @property
    def split(self) -> str:  # type: ignore[override]  # it is fixed in one file, and not by each row
        """`test_family` if the whole room is held out from training, else the operation's own split, else `train`."""
        table = _splits()
        if self.room in table["test_family_rooms"]:
            return "test_family"
        return next((split for split in ("validation", "test_op") if self.name in table[split]), "train")

    @property
    def kernel_folders(self) -> tuple[Path, ...]:
        return (*super().kernel_folders, Path(__file__).parent / "families")

    def given(self, suffix: str) -> Mapping[str, str]:
        given = self.code(suffix)
        if suffix != ".py" or not self._eager:
            return given
        eager = self._eager.strip()
        return {
            "torch_imports": self.torch_imports,
            "torch_arguments": ", ".join((*self.ins, *self.parameters)),
            "torch_body": eager if re.search(r"^return ", eager, re.MULTILINE) else f"return {eager}",
            "torch_helpers": "",
            **given,
        }

    def code(self, suffix: str) -> Mapping[str, str]:
        """Return the code for the placeholders of the room's families, except those for PyTorch code."""
        return {}

    # Code fragments that the families of most rooms need.

    @property
    def ins(self) -> list[str]:
        return [array.name for array in self.inputs]

    def c_type(self, array: Array) -> str:
        return C_TYPES[self._element_type if array.dtype == "T" else array.dtype]

    def pointers(self, restrict: str = "__restrict__") -> list[str]:
        """The arrays as parameters of a C function, the inputs first."""
        read = [f"const {self.c_type(array)} *{restrict} {array.name}" for array in self.inputs]
        return read + [f"{self.c_type(array)} *{restrict} {array.name}" for array in self.outputs]

    @property
    def c_sizes(self) -> str:
        return ", ".join(f"int {name}" for name in self.scalars)

    def c_arguments(self, restrict: str = "__restrict__") -> str:
        return ", ".join((*self.pointers(restrict), self.c_sizes))

    @property
    def triton_names(self) -> dict[str, str]:
        """The names of the arrays and sizes of a Triton kernel with one output, and Python code that unpacks them."""
        names = (*self.ins, self.outputs[0].name)
        return {
            "ins": ", ".join(self.ins),
            "arguments": ", ".join((*self.ins, *self.parameters)),
            "pointers": ", ".join(f"{name}_ptr" for name in names),
            "sizes": ", ".join(self.scalars),
            "unpack": self.unpack,
        }

    @property
    def unpack(self) -> str:
        """Python code that assigns the inputs, the parameters and the sizes found in the inputs' shapes."""
        lines = [f"{', '.join((*self.ins, *self.parameters))}, = data"]
        for array in self.inputs:
            sizes = enumerate(part.strip() for part in array.shape.split(","))
            lines += [f"{size} = {array.name}.shape[{i}]" for i, size in sizes if size.isidentifier()]
        return "\n".join(lines)


CUDNN_IN_FLOAT32 = """\
import torch.nn.functional as F

# cuDNN takes TF32 for float32 convolutions unless it is told not to.
torch.backends.cudnn.allow_tf32 = False"""
_PUBLIC = ("inputs", "outputs", "parameters", "checks", "draw_styles")


def several(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def filled(template: str, given: Mapping[str, str]) -> str:
    """Return a template with its placeholders replaced by code, without empty lines."""
    return "\n".join(line for line in header.insert(template, given).split("\n") if line.strip())


def indented(code: str) -> list[str]:
    """Return the lines of a C function's body, indented. Preprocessor lines are not indented."""
    return [line if line.startswith("#") else f"    {line}" for line in code.split("\n")]
