"""Sampler: values that depend on the seed alone, and look as their style says."""

from __future__ import annotations

import numpy as np
import pytest

from presage.problems.sampler import STYLES, Sampler

SHAPE = (200, 300)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_a_seed_gives_the_same_finite_values_every_time(style: str, dtype: str) -> None:
    a, b = Sampler(5, style), Sampler(5, style)
    first, second = a.values(SHAPE, dtype), a.values(SHAPE, dtype)
    assert (first.shape, first.dtype) == (SHAPE, np.dtype(dtype))
    assert np.array_equal(first, b.values(SHAPE, dtype))
    assert np.array_equal(second, b.values(SHAPE, dtype))
    if dtype != "float16" or style != "outliers":
        assert np.isfinite(first).all()


@pytest.mark.parametrize("style", sorted(set(STYLES) - {"zeros"}))
def test_another_seed_gives_other_values(style: str) -> None:
    assert not np.array_equal(Sampler(1, style).values(SHAPE), Sampler(2, style).values(SHAPE))


@pytest.mark.parametrize(
    ("style", "spread"), [("uniform", 1.0), ("normal", 1.0), ("large", 1e3), ("tiny", 1e-4), ("zeros", 0.0)]
)
def test_a_style_has_its_spread(style: str, spread: float) -> None:
    values = Sampler(3, style).values(SHAPE)
    assert values.std() == pytest.approx(spread, rel=0.02)
    assert abs(values.mean()) <= 0.02 * spread


def test_equal_values_are_equal_and_outliers_are_few() -> None:
    assert np.unique(Sampler(3, "equal").values(SHAPE)).size == 1
    outliers = np.abs(Sampler(3, "outliers").values(SHAPE)) > 10
    assert 0.005 < outliers.mean() < 0.02


@pytest.mark.parametrize("style", ["uniform", "equal"])
def test_integers_stay_in_their_range(style: str) -> None:
    values = Sampler(3, style).integers((10_000,), -2, 3)
    assert values.dtype == np.int32
    assert set(np.unique(values)) <= {-2, -1, 0, 1, 2}
    assert np.unique(values).size == (1 if style == "equal" else 5)


def test_a_call_can_ask_for_another_style() -> None:
    assert Sampler(3, "zeros").values((100,), style="normal").std() > 0.5


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown style 'odd'; styles are uniform, normal"):
        Sampler(1, "odd")
