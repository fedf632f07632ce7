"""Modules that Triton's autotuner tunes are forecast by their fastest configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from presage import Candidate, Forecast, Forecaster, Measured, Prediction, Task, load_kernel, load_problem
from presage.forecasters import tuned
from presage.problems import static
from presage.static import hardware
from presage.static.trace import Tuned

pytest.importorskip("torch")
pytest.importorskip("triton")

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(8192, 4096)]

def get_init_inputs():
    return []
"""
TUNED = """
import torch, triton
import triton.language as tl

BLOCKS = (16, 1024, 64, 128)

@triton.autotune([triton.Config({"B": block}, num_warps=4) for block in BLOCKS], key=["n"])
@triton.jit
def relu(x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, y, x.numel())
        return y
"""


class ByGrid(Forecaster):
    """Forecasts that fewer blocks are faster."""

    def forecast(self, task: Task, candidates: list[Candidate]) -> list[Prediction]:
        blocks = [each.reports[0].launches[0].grid[0] for each in candidates]
        values = [-(count.bit_length() - 20) / 2 for count in blocks]
        return [Prediction(Forecast.from_quantiles([0.1, 0.9], [v - 0.2, v + 0.2]), ("by its grid",)) for v in values]


class Paid(ByGrid):
    is_paid = True


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Candidate]:
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "problem.py").write_text(PROBLEM)
    (folder / "mine.py").write_text(TUNED)
    problem, h200 = load_problem(folder / "problem.py"), hardware.find("h200")
    kernel = load_kernel(problem, folder / "mine.py")
    (reports,) = static.reports(problem, [kernel], problem.timed["gpu"], h200)
    return Task(problem, Measured(kernel, tuple(reports), {}, "unknown"), h200), Candidate(kernel, tuple(reports))


def test_the_first_configuration_is_traced_and_said_to_be(asked: tuple[Task, Candidate]) -> None:
    (found,) = Tuned.of_notes(asked[1].reports[0].notes)
    assert found == Tuned("relu", 0, 4, "B: 16, num_warps: 4, num_stages: 3")


def test_the_forecast_is_that_of_the_fastest_configuration(
    asked: tuple[Task, Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned, "_SECONDS", 300.0)
    task, candidate = asked
    first = ByGrid().forecast(task, [candidate])
    (best,) = tuned.fastest(task, [candidate], first, ByGrid())
    assert best.forecast is not None
    assert first[0].forecast is not None
    assert best.forecast.mean() - first[0].forecast.mean() == pytest.approx(3.0, abs=0.3)
    assert best.notes == (
        "by its grid",
        "relu is tuned when it runs: the forecast is for configuration 2 of 4 (B: 1024, num_warps: 4, num_stages: 3),"
        " the fastest of the 4 that were forecast",
    )


def test_what_costs_is_not_asked_again(asked: tuple[Task, Candidate]) -> None:
    said = Paid().forecast(asked[0], [asked[1]])
    assert tuned.fastest(asked[0], [asked[1]], said, Paid()) == said


def test_a_module_that_is_not_tuned_is_left_alone(asked: tuple[Task, Candidate]) -> None:
    plain = replace(asked[1], reports=tuple(replace(each, notes=()) for each in asked[1].reports))
    said = ByGrid().forecast(asked[0], [plain])
    assert tuned.fastest(asked[0], [plain], said, ByGrid()) == said
