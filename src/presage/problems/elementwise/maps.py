"""Maps: operations that compute each element of their outputs from the same element of their inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from presage.problems.base import Array, Case, Operation, Tolerance
from presage.problems.sampler import Sampler

Formula = Callable[..., Any]


class Map(Operation):
    """outputs[i] = f(inputs[i]). The formula is given four times: for the oracle, C and CUDA, Triton, and PyTorch."""

    timed = {
        "cpu": (Case({"n": 262144}), Case({"n": 1000003})),
        "gpu": (Case({"n": 8388608}), Case({"n": 33554432})),
    }
    checks = (
        Case({"n": 1}),
        Case({"n": 3}, values="large"),
        Case({"n": 31}, values="tiny"),
        Case({"n": 1025}, values="normal"),
        Case({"n": 4095}, values="outliers"),
        Case({"n": 30011}, values="normal"),
        Case({"n": 777}, values="zeros"),
    )

    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        c: str | Sequence[str],
        triton: str | Sequence[str],
        eager: str,
        *,
        flops: int,
        inputs: str = "x",
        outputs: str = "y",
        relative: float = 2e-6,
        reason: str = "a few roundings in float32, each of 6e-8, and elementary functions good to some 2e-7",
        scale: Formula | None = None,
        positive: str = "",
    ) -> None:
        super().__init__(name)
        self.summary = summary
        self.inputs = tuple(Array(each, "n") for each in inputs.split())
        self.outputs = tuple(Array(each, "n") for each in outputs.split())
        self._oracle, self._flops, self._scale = oracle, flops, scale
        self._c = [c] if isinstance(c, str) else list(c)
        self._triton = [triton] if isinstance(triton, str) else list(triton)
        self._eager, self._positive = eager, positive.split()
        self._tolerance = Tolerance(relative, reason)

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        drawn = [sampler.values((case.dims["n"],), case.dtype) for _ in self.inputs]
        positive = [array.name in self._positive for array in self.inputs]
        return tuple(sampler.xp.abs(x) + 1e-3 if above else x for x, above in zip(drawn, positive, strict=True))

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        outputs = self._oracle(xp, *inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        if self._scale is None:
            return super().magnitude(xp, case, expected, *inputs)
        scales = self._scale(xp, *inputs)
        return scales if isinstance(scales, tuple) else (scales,)

    def tolerance(self, case: Case) -> Tolerance:
        return self._tolerance

    def flops(self, case: Case) -> int:
        return self._flops * case.dims["n"]

    def draw_case(self, rng: random.Random) -> Case:
        return Case({"n": rng.randint(1, 20000)}, values=rng.choice(("normal", "large", "tiny", "outliers")))

    def given(self, suffix: str) -> Mapping[str, str]:
        ins, outs = [array.name for array in self.inputs], [array.name for array in self.outputs]
        if suffix == ".py":
            return {
                "ins": ", ".join(ins),
                "outs": ", ".join(outs),
                "pointers": ", ".join(f"{name}_ptr" for name in (*ins, *outs)),
                "load": "\n".join(f"{name} = tl.load({name}_ptr + at, mask=inside)" for name in ins),
                "apply": "\n".join(f"{name} = {value}" for name, value in zip(outs, self._triton, strict=True)),
                "store": "\n".join(f"tl.store({name}_ptr + at, {name}, mask=inside)" for name in outs),
                "first": outs[0],
                "empty": "\n".join(f"{name} = torch.empty_like({ins[0]})" for name in outs),
                "eager": self._eager,
            }
        pointers = [f"const float *__restrict__ {name}" for name in ins]
        pointers += [f"float *__restrict__ {name}" for name in outs]
        return {
            "entry": self.name,
            "arguments": f"{', '.join(pointers)}, int n",
            "inputs": str(len(ins)),
            "outputs": str(len(outs)),
            "in_pointers": ", ".join(ins),
            "out_pointers": ", ".join(outs),
            "unpack": "\n".join(f"const float {name} = in[{i}];" for i, name in enumerate(ins)),
            "apply": "\n".join(f"out[{i}] = {value};" for i, value in enumerate(self._c)),
        }


def _sigmoid(xp: ModuleType, x: Any) -> Any:
    return 1.0 / (1.0 + xp.exp(-x))


OPERATIONS = (
    Map(
        "silu",
        "y[i] = x[i] / (1 + exp(-x[i]))",
        lambda xp, x: x * _sigmoid(xp, x),
        "x / (1.0f + expf(-x))",
        "x / (1.0 + tl.exp(-x))",
        "torch.nn.functional.silu(x)",
        flops=4,
    ),
    Map(
        "addcmul",
        "y[i] = a[i] + 0.5 * b[i] * c[i]",
        lambda xp, a, b, c: a + 0.5 * b * c,
        "a + 0.5f * b * c",
        "a + 0.5 * b * c",
        "torch.addcmul(a, b, c, value=0.5)",
        flops=3,
        inputs="a b c",
        scale=lambda xp, a, b, c: xp.abs(a) + xp.abs(0.5 * b * c),
    ),
)
