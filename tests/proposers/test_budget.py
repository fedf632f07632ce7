"""A whole search with a language model on a small budget: it never spends more, says why it ends, survives a kill."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fake_endpoint as fake
import pytest
from still_device import StillDevice

from presage import Effort, Forecaster, Ground, Kernel, Measurement, PresageError, Problem, Status
from presage.devices.base import CaseTiming, Progress
from presage.forecasters.llm import LlmForecaster
from presage.policies import registry as policies
from presage.problems import registry as problems
from presage.proposers.llm import LlmProposer
from presage.searches import measuring
from presage.searches import registry as strategies
from presage.searches.budget import Budget
from presage.searches.loop import Search
from presage.searches.session import Parts
from presage.store.store import Store

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="needs the llm extra")

SOURCE = """// presage: entry softmax
void softmax(const float *x, float *y, int rows, int cols) { int step = %d; }
"""


class QuickDevice(StillDevice):
    """Times whatever it is given."""

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        samples = tuple(1e6 + i for i in range(8))
        cases = tuple(CaseTiming(case.name, samples, tuple(range(8)), 1.0, 1) for case in problem.timed["cpu"])
        return [Measurement(problem.name, kernel, self.name, Status.OK, cases=cases) for kernel in kernels]


class Ledger:
    """An endpoint whose models use up all that they may, a token for each byte; what it reports is another matter."""

    def __init__(self, reports: bool = True, breaks: int = 0) -> None:
        self._reports, self._numbers, self._breaks = reports, itertools.count(1), breaks
        self.tokens = 0

    def __call__(self, handler: Any, asked: dict[str, Any]) -> None:
        count = asked.get("n", 1)
        prompt = len(json.dumps(asked["messages"], ensure_ascii=False).encode()) + 50
        self.tokens += count * (prompt + asked["max_tokens"])
        numbers = [next(self._numbers) for _ in range(count)]
        if self._breaks and numbers[0] % self._breaks == 0:
            fake.fails(500)(handler, asked)
            return
        if "p_fail" in asked["messages"][0]["content"] + asked["messages"][1]["content"]:
            texts = [fake.forecast_text() for _ in numbers]
        else:
            texts = [f"```c\n{SOURCE % number}```" for number in numbers]
        body = json.loads(fake.completion(*texts, usage=self._reports))
        if self._reports:
            body["usage"] = {"prompt_tokens": count * prompt, "completion_tokens": count * asked["max_tokens"]}
        fake.send(handler, 200, json.dumps(body))


@pytest.fixture
def searching(make_client: Callable[..., Any], tmp_path: Path) -> Callable[..., Search]:
    def searching(budget: Budget, forecaster: Forecaster | None = None, **client: Any) -> Search:
        problem, device = problems.get("softmax"), QuickDevice()
        anchor = Kernel(SOURCE % 0, "c", problems.find_kernel(problem, "naive.c").header, "mine.c")

        def proposer(ground: Ground) -> LlmProposer:
            return LlmProposer(ground, make_client(cache=None, patience=5.0, **client))

        chosen = strategies.get("puct"), policies.get("always"), forecaster
        parts = Parts(problem, device, anchor, proposer, *chosen)
        return Search(Store(tmp_path / "run"), parts, budget, batch=4)

    return searching


@pytest.mark.parametrize("reports", [True, False], ids=["reports", "reports nothing"])
@pytest.mark.parametrize("breaks", [0, 3], ids=["works", "breaks now and then"])
@pytest.mark.parametrize("tokens", [12_000, 60_000])
def test_a_search_stays_within_its_tokens(
    endpoint: Any, searching: Any, reports: bool, breaks: int, tokens: int
) -> None:
    endpoint.otherwise = ledger = Ledger(reports, breaks)
    search = searching(Budget(64, tokens=tokens), max_tokens=2_000)
    search.run()
    assert 0 < ledger.tokens <= search.state.spent.tokens <= tokens
    assert search.state.finished
    why = search.state.finished["why"]
    assert "tokens are left, and another question may take" in why or why == f"the budget of {tokens} tokens is spent"


def test_a_budget_that_covers_no_question_is_refused(endpoint: Any, searching: Any) -> None:
    search = searching(Budget(64, tokens=2_000), max_tokens=2_000)
    with pytest.raises(PresageError, match="does not cover one question: 2,000 tokens are left"):
        search.run()
    assert endpoint.requests == []


def test_forecasts_and_proposals_share_a_budget(endpoint: Any, searching: Any, make_client: Any) -> None:
    endpoint.otherwise = ledger = Ledger(reports=False)
    forecaster = LlmForecaster(make_client(cache=None, max_tokens=500))
    search = searching(Budget(64, tokens=80_000), forecaster, max_tokens=2_000)
    search.run()
    assert 0 < ledger.tokens <= search.state.spent.tokens <= 80_000
    assert search.state.counts["forecasts"] > 0
    asked = [json.dumps(each["messages"]) for each in endpoint.requests]
    assert len(set(asked)) > len(asked) / 2, "nobody is asked again and again about the same candidates"


def test_what_a_killed_process_had_asked_for_counts(
    endpoint: Any, searching: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.otherwise = ledger = Ledger()
    first = searching(Budget(64, tokens=60_000), max_tokens=2_000)
    measuring.measure_anchor(first.session)
    append = Store.append

    def killed(store: Store, kind: str, *arguments: Any, **more: Any) -> Any:
        if kind == "proposed":
            raise KeyboardInterrupt
        return append(store, kind, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            first.run()
    first.session.store.close()
    before = ledger.tokens
    assert before > 0
    second = searching(Budget(64, tokens=60_000), max_tokens=2_000)
    assert second.state.spent.tokens >= before
    second.run()
    assert ledger.tokens <= second.state.spent.tokens <= 60_000
