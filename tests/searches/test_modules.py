"""A search for modules of a problem that a file states: they are traced, forecast, and measured where promising."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from presage import Device, Effort, Kernel, Measurement, Parent, Problem, Proposal, Proposer, Status, search
from presage.devices.base import CaseTiming, Progress
from presage.kernels.kernel import from_source
from presage.problems import static
from presage.static import hardware
from presage.static.hardware import Hardware
from presage.store.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("torch", "triton"))),
        reason="needs torch and triton, which trace modules",
    ),
]
FILE = (
    "import torch\n\n\ndef reference(x):\n    return x * 2 + 1\n\n\ndef inputs():\n    return torch.randn(4096, 4096)\n"
)


class PretendedGpu(Device):
    """Has the hardware of an H200, and says that everything takes as long."""

    kind, languages, name = "gpu", ("torch", "triton"), "pretended"

    @property
    def hardware(self) -> Hardware:
        return hardware.find("h200")

    def describe(self) -> dict[str, Any]:
        return {}

    @contextmanager
    def posed(self, problem: Problem, seconds: float) -> Iterator[Problem]:
        reference = problem.reference_kernel()
        assert reference is not None
        (reports,) = static.reports(problem, [reference], problem.timed["gpu"], self.hardware)
        yield problem.informed(reports)

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        cases = tuple(CaseTiming(case.name, (1e5,) * 8, tuple(range(8)), 1.0, 1) for case in problem.timed["gpu"])
        return [Measurement(problem.name, kernel, self.name, Status.OK, cases=cases) for kernel in kernels]


class Modules(Proposer):
    """A module of one step, of ten, and one that cannot work."""

    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        bodies = {"one": "torch.add(x, x)", "ten": f"x{' + x' * 10}", "broken": "x.nothing()"}
        texts = {
            k: f"import torch\n\n\ndef custom_kernel(data):\n    (x,) = data\n    return {v}\n"
            for k, v in bodies.items()
        }
        made = [from_source(text, ".py", f"{name}.py") for name, text in texts.items()]
        return [Proposal(kernel) for kernel in made if kernel.hash not in known]


def test_modules_are_forecast_and_the_promising_ones_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    run = search(
        tmp_path / "mine.py", device=PretendedGpu(), proposer=Modules, policy="topk:k=1", budget=2, run=tmp_path / "run"
    )
    assert run.configuration["forecaster"] == "learned"
    with Store(tmp_path / "run", writes=False) as store:
        names = {event.payload["name"] for event in store.events("measured")}
        told = next(iter(store.events("forecast"))).payload
    assert names == {"mine.py", "one.py"}
    assert len(told["forecasts"]) == 2
    (why,) = told["broken"].values()
    assert "nothing" in why
