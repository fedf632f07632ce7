"""Scores of critics: what is perfect, what says nothing, and the figures between."""

from __future__ import annotations

import numpy as np
import pytest

from presage_gui.evaluation.scores import alarms, calibration_error, caught, error_rate, precision, table, threshold_at

GOOD = np.array([True] * 40 + [False] * 60)
PERFECT = np.where(GOOD, 0.99, 0.01)
TASKS = [f"t{i % 5}" for i in range(100)]


def test_a_perfect_critic() -> None:
    figures = table(PERFECT, GOOD, TASKS)
    assert figures["auroc"].value == 1
    assert figures["recall_at_5"].value == 1
    assert figures["error_of_surest_80"].value == 0
    assert figures["ece"].value == pytest.approx(0.01)


def test_one_that_always_passes_catches_nothing() -> None:
    always = np.ones(100)
    assert caught(always, GOOD, 0.5) == 0
    assert alarms(always, GOOD, 0.5) == 0
    assert error_rate(always, GOOD) == pytest.approx(0.5)
    assert calibration_error(always, GOOD) == pytest.approx(0.5)


def test_figures_do_not_depend_on_how_many_bad_steps_there_are() -> None:
    rng = np.random.default_rng(0)
    said = np.where(GOOD, rng.beta(4, 2, 100), rng.beta(2, 4, 100))
    twice = np.concatenate([said, said[~GOOD]])
    labels = np.concatenate([GOOD, GOOD[~GOOD]])
    for figure in (error_rate, calibration_error):
        assert figure(said, GOOD) == pytest.approx(figure(twice, labels))
    assert precision(said, GOOD, 0.5) == pytest.approx(precision(twice, labels, 0.5))


def test_at_most_a_twentieth_of_good_steps_is_below_the_threshold() -> None:
    rng = np.random.default_rng(1)
    said = rng.random(100)
    assert alarms(said, GOOD, threshold_at(said, GOOD)) <= 0.05
