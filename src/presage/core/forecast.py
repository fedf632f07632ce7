"""Forecast: a distribution over log2 S, given that the kernel works, and the probability that the kernel fails."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from presage.core.scale import BINS, LOG2_EDGES, LOG2_KNOTS
from presage.core.shown import Shown

Floats = npt.NDArray[np.float64]
Confidence = Literal["max_probability", "entropy", "width"]

# The least distance between two quantiles, in octaves. A piecewise-linear CDF cannot represent the step that equal
# quantiles would make.
_GAP = 1e-6
_OCTAVES = 64.0
_LEAST_MASS = 1e-3
"""A bin with less mass than this does not show how the mass is spread within the bin."""


@dataclass(frozen=True)
class Forecast(Shown):
    """A forecast of the speedup S of a kernel: a piecewise-linear CDF over log2 S, given that the kernel works, and the
    probability p_fail that the kernel fails. Build one with `from_bins` or `from_quantiles`.

    >>> forecast = Forecast.from_bins([0, 0, 0, 0.25, 0.5, 0.25, 0, 0], p_fail=0.2)
    >>> forecast.quantile(0.5), forecast.mean(), forecast.exceeds(1.0)
    (0.25, 0.25, 0.6000000000000001)
    """

    knots: tuple[float, ...]
    """Values of log2 S, strictly increasing."""
    cdf: tuple[float, ...]
    """P(log2 S <= knot | the kernel works) at each knot, rising from 0 to 1."""
    p_fail: float = 0.0
    """The probability that the kernel does not compile, does not run, or gives a wrong result."""
    raw_sum: float = 1.0
    """The sum of the bin probabilities before normalisation. A value far from 1 shows a careless forecaster."""

    def __post_init__(self) -> None:
        knots, cdf = np.asarray(self.knots, dtype=np.float64), np.asarray(self.cdf, dtype=np.float64)
        if knots.ndim != 1 or knots.shape != cdf.shape or knots.size < 2:
            raise ValueError(f"a CDF needs two or more knots and a value for each, not {knots.shape} and {cdf.shape}")
        if not (np.all(np.isfinite(knots)) and np.all(np.diff(knots) > 0)):
            raise ValueError(f"knots must be finite and strictly increasing, not {self.knots}")
        if not (cdf[0] == 0 and cdf[-1] == 1 and np.all(np.diff(cdf) >= 0)):
            raise ValueError(f"a CDF must rise from 0 to 1, not {self.cdf}")
        if not 0 <= self.p_fail <= 1:
            raise ValueError(f"p_fail must lie in [0, 1], not {self.p_fail}")

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as plain values for JSON."""
        return {"knots": list(self.knots), "cdf": list(self.cdf), "p_fail": self.p_fail, "raw_sum": self.raw_sum}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Forecast:
        """Build a forecast from the result of `to_json`, without checking it. The forecast was checked when it was
        made, and checking again would take most of the time of replaying a long run's events."""
        forecast = object.__new__(cls)
        fields = {"knots": tuple(kept["knots"]), "cdf": tuple(kept["cdf"])}
        forecast.__dict__.update(fields, p_fail=kept["p_fail"], raw_sum=kept["raw_sum"])
        return forecast

    @classmethod
    def from_bins(cls, probabilities: npt.ArrayLike, p_fail: float = 0.0) -> Forecast:
        """Build a forecast from one weight per bin of the scale, shape (BINS,). The weights are normalised, and the
        mass of a bin is spread evenly over the bin in log2 S. Raises ValueError for weights that are no distribution.

        >>> Forecast.from_bins([1, 1, 1, 1, 1, 1, 1, 1]).raw_sum
        8.0
        """
        p = np.asarray(probabilities, dtype=np.float64)
        if p.shape != (BINS,):
            raise ValueError(f"a forecast has {BINS} bin probabilities, not an array of shape {p.shape}")
        if not (np.all(np.isfinite(p)) and np.all(p >= 0)):
            raise ValueError(f"bin probabilities must be finite and not negative: {p.tolist()}")
        with np.errstate(over="ignore"):
            cumulative = np.cumsum(p)
        total = float(cumulative[-1])
        if not 0 < total < math.inf:
            raise ValueError(f"bin probabilities must have a positive, finite sum, not {total}")
        return cls(LOG2_KNOTS, (0.0, *(cumulative / total).tolist()), float(p_fail), total)

    @classmethod
    def from_quantiles(cls, levels: npt.ArrayLike, values: npt.ArrayLike, p_fail: float = 0.0) -> Forecast:
        """Build a forecast from quantiles of log2 S.

        levels, values: shape (n,), n >= 2. Levels must increase strictly inside (0, 1). Values that cross are sorted.
        Each tail continues with the density of the segment beside it until its mass is used up. Raises ValueError for
        invalid levels or values.

        >>> Forecast.from_quantiles([0.25, 0.75], [-1.0, 1.0]).knots
        (-2.0, -1.0, 1.0, 2.0)
        """
        q, v = np.asarray(levels, dtype=np.float64), np.asarray(values, dtype=np.float64)
        if q.ndim != 1 or q.size < 2 or q.shape != v.shape:
            raise ValueError(f"quantiles need two or more levels and a value for each, not {q.shape} and {v.shape}")
        if not (np.all(q > 0) and np.all(q < 1) and np.all(np.diff(q) > 0)):
            raise ValueError(f"quantile levels must increase strictly inside (0, 1): {q.tolist()}")
        if not np.all(np.abs(v) <= _OCTAVES):
            raise ValueError(f"quantiles of log2 S must be numbers within ±{_OCTAVES:g} octaves: {v.tolist()}")
        v = _spread(np.sort(v))
        slopes = np.diff(v) / np.diff(q)
        low = v[0] - max(q[0] * slopes[0], _GAP)
        high = v[-1] + max((1 - q[-1]) * slopes[-1], _GAP)
        return cls((float(low), *v.tolist(), float(high)), (0.0, *q.tolist(), 1.0), float(p_fail))

    def cdf_at(self, log2_S: float) -> float:
        """P(log2 S <= the argument | the kernel works)."""
        above = bisect.bisect_right(self.knots, log2_S)
        if above == 0 or above == len(self.knots):
            return 0.0 if above == 0 else 1.0
        low, high = self.knots[above - 1], self.knots[above]
        share = (log2_S - low) / (high - low)
        return self.cdf[above - 1] + share * (self.cdf[above] - self.cdf[above - 1])

    def quantile(self, q: float) -> float:
        """The smallest log2 S whose CDF reaches q, 0 <= q <= 1. For q = 0, the lower end of the support. Raises
        ValueError if q lies outside [0, 1]."""
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile's level must lie in [0, 1], not {q}")
        if q == 0:
            return self.knots[int(np.searchsorted(self.cdf, 0.0, side="right")) - 1]
        i = int(np.searchsorted(self.cdf, q, side="left"))
        share = (q - self.cdf[i - 1]) / (self.cdf[i] - self.cdf[i - 1])
        return (1 - share) * self.knots[i - 1] + share * self.knots[i]

    def bin_probabilities(self) -> Floats:
        """The mass in each bin of the scale, given that the kernel works; shape (BINS,), sums to 1."""
        inner = np.interp(LOG2_EDGES, self.knots, self.cdf)
        return np.diff(np.concatenate(([0.0], inner, [1.0])))

    def mean(self) -> float:
        """The expected log2 S, given that the kernel works."""
        knots = np.asarray(self.knots)
        return float(np.diff(self.cdf) @ (knots[:-1] + knots[1:]) / 2)

    def exceeds(self, S: float) -> float:
        """P(the kernel works and its speedup is above S). Raises ValueError if S is negative."""
        if not S >= 0:
            raise ValueError(f"a speedup is not negative: {S}")
        above = 1.0 if S == 0 else 1 - self.cdf_at(math.log2(S))
        return (1 - self.p_fail) * above

    def expected_improvement(self, log2_S: float) -> float:
        """E[max(0, log2 S - the argument)], in octaves. A kernel that fails improves nothing.

        >>> Forecast.from_quantiles([0.25, 0.75], [-1.0, 1.0], p_fail=0.5).expected_improvement(0.0)
        0.25
        """
        knots = np.asarray(self.knots)
        above = np.maximum(knots, log2_S)
        share = np.diff(self.cdf) * np.diff(above) / np.diff(knots)
        return (1 - self.p_fail) * float(share @ ((above[:-1] + above[1:]) / 2 - log2_S))

    def stretched(self, factor: float) -> Forecast:
        """Return this forecast with every knot moved to `factor` times its distance from the median. Raises ValueError
        if the factor is below 1.

        >>> Forecast.from_quantiles([0.25, 0.75], [-1.0, 1.0]).stretched(3.0).knots
        (-6.0, -3.0, 3.0, 6.0)
        """
        if not factor >= 1:
            raise ValueError(f"a forecast is stretched by 1 or more, not {factor}")
        if factor == 1:
            return self
        middle = self.quantile(0.5)
        knots = tuple(middle + factor * (knot - middle) for knot in self.knots)
        return Forecast(knots, self.cdf, self.p_fail, self.raw_sum)

    def with_bins(self, probabilities: npt.ArrayLike, p_fail: float) -> Forecast:
        """Return a forecast with these weights per bin, as for `from_bins`, but with the mass spread over each bin as
        in this forecast. In a bin where this forecast has hardly any mass, the mass is spread evenly.

        >>> narrow = Forecast.from_quantiles([0.25, 0.75], [0.2, 0.3])
        >>> moved = narrow.with_bins([0, 0, 0, 0.5, 0.5, 0, 0, 0], 0.0)
        >>> moved.quantile(0.25), round(moved.quantile(0.75), 9)
        (-0.25, 0.25)
        """
        even = Forecast.from_bins(probabilities, p_fail)
        knots = np.union1d(self.knots, LOG2_KNOTS)
        own, flat = (np.diff(np.interp(knots, each.knots, each.cdf)) for each in (self, even))
        which = np.searchsorted(LOG2_EDGES, (knots[:-1] + knots[1:]) / 2)
        mass = np.bincount(which, own, BINS)
        share = even.bin_probabilities() / np.maximum(mass, _LEAST_MASS)
        pieces = np.where(mass[which] >= _LEAST_MASS, own * share[which], flat)
        cdf = np.minimum(np.cumsum(pieces), 1.0)
        return Forecast(tuple(knots.tolist()), (0.0, *cdf[:-1].tolist(), 1.0), float(p_fail), even.raw_sum)

    def confidence(self, kind: Confidence = "max_probability") -> float:
        """How certain the forecast is of log2 S, given that the kernel works. In [0, 1]; larger is more certain.

        max_probability: the mass of the likeliest bin. entropy: 1 - H / log BINS, where H is the entropy over the bins.
        width: 1 / (1 + w), where w is the distance in octaves between the 10 % and the 90 % quantile. Raises ValueError
        for any other kind.

        >>> round(Forecast.from_bins([1] * 8).confidence("max_probability"), 9)
        0.125
        """
        if kind == "width":
            return 1 / (1 + self.quantile(0.9) - self.quantile(0.1))
        p = self.bin_probabilities()
        if kind == "max_probability":
            return float(p.max())
        if kind == "entropy":
            p = p[p > 0]
            return min(1.0, max(0.0, 1 + float(p @ np.log(p)) / math.log(BINS)))
        raise ValueError(f"unknown kind of confidence {kind!r}: max_probability, entropy or width")


def _spread(ordered: Floats) -> Floats:
    """Move values up by the least amount that makes neighbours at least _GAP apart."""
    ramp = _GAP * np.arange(ordered.size)
    return np.asarray(np.maximum.accumulate(ordered - ramp) + ramp)
