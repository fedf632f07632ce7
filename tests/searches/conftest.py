"""A recorded space with known times, and small stand-ins for the parts of a search."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Sequence
from pathlib import Path

import pytest

from presage import (
    Acquisition,
    Candidate,
    Forecast,
    Forecaster,
    Ground,
    Kernel,
    Parent,
    Policy,
    Prediction,
    Proposal,
    Proposer,
    Recording,
    Status,
    Task,
)
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import RecordedCase, Row
from presage.kernels import header as headers
from presage.llm.cost import Cost
from presage.policies.registry import get as get_policy
from presage.searches import registry as strategies
from presage.searches.acquisition import ExpectedImprovement
from presage.searches.session import Parts

FAMILY = """\
// presage: problem toy
// presage: entry f
// presage: tune A = 1, 2, 4, 8, 16, 32
// presage: tune B = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
void f(void) { }
"""


def truth(values: dict[str, int]) -> float | None:
    """The anchor, A=1 and B=0, has 0; the best, A=8 and B=7, has 2; A=32 with an odd B fails."""
    a, b = math.log2(values["A"]), values["B"]
    if a == 5 and b % 2:
        return None
    peak = -0.3 * abs(a - 3) - 0.15 * abs(b - 7)
    return 2 + peak * 2 / 1.95


def make_rows() -> list[Row]:
    family = Kernel(FAMILY, "c", headers.parse(FAMILY, "toy.c"), "toy.c")
    anchor = family.render({"A": 1, "B": 0}).hash
    rng = random.Random(0)
    rows = []
    for values in family.configurations():
        kernel, value = family.render(values), truth(values)  # type: ignore[arg-type]
        samples = [] if value is None else [1e6 / 2**value * math.exp(rng.gauss(0, 0.005)) for _ in range(9)]
        rows.append(
            Row(
                problem="toy",
                room="tests",
                split="",
                family="toy.c",
                language="c",
                hash=kernel.hash,
                source=kernel.source,
                values=values,
                status=Status.WRONG_RESULT if value is None else Status.OK,
                reason="y[0] is 1, not 2" if value is None else "",
                cases=(RecordedCase("n=1", 10.0, tuple(samples)),) if samples else (),
                anchor=anchor,
            )
        )
    return rows


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("recording") / "toy.parquet"
    return recording.write(path, make_rows(), {"name": "toy", "kind": "cpu", "between_runs": [-0.01, 0.0, 0.01]})


class Draws(Proposer):
    """Any kernel of the recording that is not known yet, and now and then one that is."""

    is_list = True

    def __init__(self, ground: Ground, cost: Cost = Cost()) -> None:  # noqa: B008
        super().__init__(ground)
        assert isinstance(ground.device, RecordedDevice)
        self._pool = ground.device.pool(ground.problem.name)
        self._cost = cost

    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        fresh = [kernel for kernel in self._pool if kernel.hash not in known]
        chosen = rng.sample(fresh, min(count, len(fresh)))
        return [Proposal(kernel, "drawn") for kernel in [*chosen, parent.measured.kernel]]

    def spent(self) -> Cost:
        return self._cost


class Knowing(Forecaster):
    """Forecasts what is true, a little off, and the more widely the less sure."""

    def __init__(self, width: float = 0.2, cost: Cost = Cost()) -> None:  # noqa: B008
        self._width, self._cost = width, cost
        self.asked: list[str] = []

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        self.asked += [candidate.kernel.hash for candidate in candidates]
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Prediction:
        value = truth(candidate.kernel.values)  # type: ignore[arg-type]
        error = random.Random(candidate.kernel.hash).gauss(0, self._width)
        middle = (value or 0.0) + error
        ends = [middle - self._width, middle + self._width]
        return Prediction(Forecast.from_quantiles([0.16, 0.84], ends, p_fail=0.9 if value is None else 0.05))

    def spent(self) -> Cost:
        return self._cost


@pytest.fixture(scope="session")
def device(toy: Recording) -> RecordedDevice:
    """A device that has read its recording, which takes longer than a search on it."""
    device = RecordedDevice(toy)
    device.pool("toy")
    return device


@pytest.fixture
def make_parts(device: RecordedDevice) -> Callable[..., Parts]:
    """The parts of a search on the recording; what a test is about it names itself."""
    read = device

    def make(
        forecaster: Forecaster | None = None,
        policy: str | Policy = "always",
        strategy: str = "puct",
        proposer: Callable[[Ground], Proposer] = Draws,
        device: RecordedDevice | None = None,
        acquisition: Acquisition | None = None,
    ) -> Parts:
        if device is None:
            device = RecordedDevice(read.recording)
            device._rows = read._rows
        problem = device.problem("toy")
        anchor = device.anchor(problem)
        assert anchor is not None
        chosen = get_policy(policy) if isinstance(policy, str) else policy
        scored = acquisition or ExpectedImprovement()
        return Parts(problem, device, anchor, proposer, strategies.get(strategy), chosen, forecaster, scored)

    return make


@pytest.fixture
def draws() -> type[Draws]:
    return Draws


@pytest.fixture
def knowing() -> type[Knowing]:
    return Knowing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"
