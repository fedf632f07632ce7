"""Rewards: what an honest answer earns on average nobody beats, and what cannot be read earns nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Forecast, PresageError
from presage.core import scale
from presage.train import rewards
from presage.train.questions import spoken_answer

weights = st.lists(st.integers(0, 20), min_size=9, max_size=9).filter(lambda found: sum(found[1:]) > 0)


def forecast(nine: list[int]) -> Forecast:
    return Forecast.from_bins(nine[1:], nine[0] / sum(nine))


def text_of(said: Forecast) -> str:
    bins = dict(zip(scale.KEYS, said.bin_probabilities().tolist(), strict=True))
    return json.dumps({"reason": "", **bins, "p_fail": said.p_fail})


@given(weights, weights, st.sampled_from(rewards.REWARDS), st.sampled_from([0.25, 1.0, 4.0]))
def test_on_average_nobody_earns_more_than_by_what_they_believe(belief, other, kind: str, weight: float) -> None:
    p = rewards.outcomes(forecast(belief))

    def earned(said: Forecast) -> float:
        each = [rewards.reward(kind, text_of(said), truth, weight=weight) for truth in range(9)]
        return float(p @ each)

    assert earned(forecast(belief)) >= earned(forecast(other)) - 1e-6


@given(weights, st.integers(0, 8), st.sampled_from(rewards.REWARDS), st.floats(0, 3))
def test_rewards_have_bounds_and_weights_count(nine, truth: int, kind: str, weight: float) -> None:
    said = text_of(forecast(nine))
    earned = rewards.reward(kind, said, truth, weight=weight)
    assert 0 <= earned <= 1 + weight + 1e-9
    if "+" in kind:
        alone = rewards.reward("correctness", said, truth)
        full = rewards.reward(kind, said, truth, weight=1.0) - alone
        assert earned - alone == pytest.approx(weight * full, abs=1e-9)


@pytest.mark.parametrize("kind", rewards.REWARDS)
@pytest.mark.parametrize(
    "text",
    ["", "faster", "{}", '{"p1": 1}', spoken_answer(3)[:40], spoken_answer(3).replace('"p1":', '"p1":"much","q":')],
)
def test_what_cannot_be_read_earns_nothing(kind: str, text: str) -> None:
    assert rewards.reward(kind, text, 3) == 0


def test_a_neighbouring_bin_is_forgiven_by_rps_alone() -> None:
    near, far = (forecast([0, *np.eye(8, dtype=int)[bin].tolist()]) for bin in (3, 7))
    assert rewards.rps(near, 3) > rewards.rps(far, 3)
    assert rewards.brier(near, 3) == rewards.brier(far, 3)


def test_length_is_kept_in_bounds() -> None:
    good = spoken_answer(4)
    assert rewards.reward("correctness", good, 4, used=0.5) == 1
    assert rewards.reward("correctness", good, 4, used=0.9) == pytest.approx(0.4)
    assert rewards.reward("correctness", good, 4, used=1.0) == 0


def test_words_around_an_answer_are_no_matter() -> None:
    assert rewards.reward("correctness", f"It is bound by memory.\n{spoken_answer(4)}", 4) == 1


def test_an_unknown_reward_is_refused() -> None:
    with pytest.raises(PresageError, match="did you mean correctness"):
        rewards.reward("corectness", "", 1)
