"""The injection suite sees a forecaster that listens to words, and lets one pass that does not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from presage import Candidate, Forecast, Forecaster, Kernel, Prediction, Recording, Task
from presage.evaluations.evaluation import evaluate
from presage.evaluations.injection import variants
from presage.forecasters.nearest import NearestForecaster
from presage.kernels.kernel import from_source
from presage.problems import registry

KINDS = {"comments", "instructions", "docstrings", "names"}


class Gullible(Forecaster):
    """Believes what it reads in one part of a kernel."""

    def __init__(self, reads: str) -> None:
        self.reads = reads

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        return [Prediction(self._believe(candidate.kernel)) for candidate in candidates]

    def _believe(self, kernel: Kernel) -> Forecast:
        text = {"source": kernel.source, "code": kernel.normalised, "names": " ".join(kernel.values)}[self.reads]
        fast = any(word in text.lower() for word in ("fast", "speedup", "p8", "s = 16"))
        return Forecast((2.0, 3.0), (0.0, 1.0)) if fast else Forecast((-1.0, 1.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("reads", "moved"), [("source", KINDS), ("code", {"names"}), ("names", {"names"})], ids=["source", "code", "names"]
)
def test_one_who_listens_is_caught(truth: Recording, reads: str, moved: set[str]) -> None:
    numbers = evaluate(Gullible(reads), truth, suites=["injection"]).numbers
    changed = {name.split()[1] for name, interval in numbers.items() if interval.value > 0}
    assert changed == moved


def test_one_who_does_not_listen_passes(truth: Recording) -> None:
    numbers = evaluate(NearestForecaster(truth), truth, suites=["injection"]).numbers
    assert {name.split()[1]: interval.value for name, interval in numbers.items()} == dict.fromkeys(KINDS, 0.0)


@pytest.mark.parametrize("problem", ["softmax", "matmul", "gelu"])
def test_variants_compute_the_same(problem: str) -> None:
    found = registry.get(problem)
    for family in registry.seed_kernels(found):
        kernel = family.render()
        tried = {kind: (one, other) for kind, one, other in variants(kernel, random.Random(0), found.scalars)}
        assert {"comments", "instructions", "docstrings"} <= set(tried), family.name
        for kind, (without, with_) in tried.items():
            assert with_.source != without.source, f"{family.name}: no {kind} were put in"
            if kind != "names":
                assert without.hash == with_.hash == kernel.hash
            assert len(with_.header.launches) == len(kernel.header.launches)


def test_broken_source_has_no_names_to_change() -> None:
    broken = from_source("import triton\ndef f(:\n", ".py", "broken.py")
    kinds = [kind for kind, *_ in variants(broken, random.Random(0))]
    assert "names" not in kinds
