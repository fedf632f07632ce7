"""A surface over a pool of kernels: a Gaussian process that is told measurements one at a time, and predicts the time
and the failure probability of every kernel of the pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SOFT = 0.45
"""Octaves above the best at which times begin to be compressed logarithmically, because only the fast end matters."""
_FLAT = 0.03
"""The least scale for standardising times, in octaves, so that smaller differences are not magnified."""
_STEADY = 20
_SHARE = 0.05
"""After `_STEADY` measurements, lengths are fitted again only when their number has grown by this share."""
_LEAST, _MOST = -3.0, 4.6
_QUIET, _LOUD = math.log(0.005), math.log(0.7)
_USUAL_NOISE = math.log(0.05)
_USUAL_TRUST = math.log(0.5)
_FEWEST = 5
"""The least number of working measurements for judging the process's own uncertainty."""
_ROOT5 = math.sqrt(5)
_TINY = 1e-8
_ROOM = 64
"""The initial capacity of the solution, in measurements."""


@dataclass(frozen=True)
class Beliefs:
    """Predictions for every kernel of the pool, on a bent (compressed) scale of log2 time. `quantiles` inverts it."""

    mean: Floats
    deviation: Floats
    p_fail: Floats
    best: float
    """The best measurement on the same scale; infinite while nothing has worked."""
    floor: float
    """log2 time of the best measurement."""
    centre: float
    scale: float
    """The bent scale is standardised: octaves = centre + scale * value."""
    surprise: float
    """The factor by which quantiles are wider than the deviations, because the process assumes one smoothness, but
    kernels have cliffs."""

    def of(self, places: Sequence[int]) -> Beliefs:
        """The beliefs about some kernels of the pool."""
        return replace(self, mean=self.mean[places], deviation=self.deviation[places], p_fail=self.p_fail[places])

    def expected_improvement(self) -> Floats:
        """The expected improvement of each kernel over the best, shape (pool,); over the mean while nothing has
        worked."""
        from scipy.special import ndtr

        best = self.best if math.isfinite(self.best) else 0.0
        u = (best - self.mean) / self.deviation
        gain = self.deviation * (u * ndtr(u) + np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))
        return np.asarray((1 - self.p_fail) * gain)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Quantiles of log2 time, given that the kernel works; shape (pool, levels)."""
        from scipy.special import ndtri

        z = self.mean[:, None] + self.surprise * self.deviation[:, None] * ndtri(np.asarray(levels))
        bent = z * self.scale + self.centre
        above = _SOFT * np.expm1(np.minimum(np.maximum(bent, 0) / _SOFT, 40.0))
        return np.asarray(self.floor + np.where(bent > 0, above, bent))


def bend(log2_time: Floats, floor: float) -> Floats:
    """Octaves above the floor, with large values compressed."""
    return np.asarray(_SOFT * np.log1p((log2_time - floor) / _SOFT))


class Surface:
    """A Matérn-5/2 process with a length per feature, a noise, and a trust in the devices of `elsewhere`."""

    def __init__(
        self, points: Floats, elsewhere: Floats | None = None, lengths: Floats | None = None, fitted: int = 0
    ) -> None:
        """points: shape (pool, features), standardised. elsewhere: log2 times of the same kernels on other devices,
        shape (pool, devices), infinite where they failed and NaN where they are unknown. lengths, fitted: the lengths
        of another surface over the same features, and the number of measurements that they were fitted to."""
        self.points = points
        self._others = _elsewhere(elsewhere) if elsewhere is not None else np.zeros((len(points), 0))
        self._prior = _Prior(points.shape[1], self._others.shape[1])
        self.lengths = self._prior.centre.copy() if lengths is None else lengths
        self.fitted = fitted
        self._worked: list[int] = []
        self._log2_times: list[float] = []
        self._told: list[int] = []
        self._solved: _Solved | None = None
        self._failing: _Solved | None = None

    def tell(self, index: int, log2_time: float) -> None:
        """Record a measurement of a kernel of the pool. log2_time: infinite if it failed."""
        self._told.append(index)
        if math.isfinite(log2_time):
            self._worked.append(index)
            self._log2_times.append(log2_time)

    def widen(self, points: Floats) -> None:
        """Append kernels to the pool. Not supported with `elsewhere`."""
        self.points = np.vstack([self.points, points])
        self._others = np.zeros((len(self.points), 0))
        for solved in (self._solved, self._failing):
            if solved is not None:
                solved.widen(points)

    def beliefs(self) -> Beliefs:
        """Predictions after all measurements so far. Failed kernels do not affect the predicted times."""
        expected = self._others.mean(axis=1) if self._others.size else np.zeros(len(self.points))
        floor = min(self._log2_times, default=0.0)
        target = bend(np.array(self._log2_times), floor) - expected[self._worked]
        centre = float(target.mean()) if target.size else 0.0
        scale = max(float(target.std()), _FLAT) if target.size > 1 else 1.0
        z = (target - centre) / scale
        solved = self._solve(z)
        mean, deviation = solved.at(z)
        best = -centre / scale if target.size else math.inf
        mean += expected / scale
        return Beliefs(mean, deviation, self._p_fail(), best, floor, centre, scale, solved.surprise(z))

    def narrowed(self, beliefs: Beliefs, pending: Sequence[int]) -> Beliefs:
        """The beliefs as if these kernels of the pool turned out as expected: the means stay, and the deviations near
        them shrink. Call `beliefs` first, which solves for the measurements."""
        if self._solved is None:
            return beliefs
        return replace(beliefs, deviation=self._solved.deviation(pending))

    def _solve(self, z: Floats) -> _Solved:
        count = len(self._worked)
        due = count - self.fitted >= max(1, _SHARE * count if count > _STEADY else 1)
        if due:
            inside = self.points[self._worked], self._others[self._worked]
            self.lengths = self._prior.fit(self.lengths, *inside, z, patience=12 if self.fitted else 40)
            self.fitted = count
        if self._solved is None or due:
            self._solved = _Solved(self.points, self._others, self.lengths)
        self._solved.extend(self._worked)
        return self._solved

    def _p_fail(self) -> Floats:
        """The share of failures, corrected by the failures nearby. The lengths are those of the prior: kernels do not
        fail for the same reasons as they are slow, and failures are too few for a fit."""
        failed = np.isin(self._told, self._worked, invert=True).astype(np.float64)
        rate = (failed.sum() + 0.5) / (failed.size + 1)
        if not failed.any():
            return np.full(len(self.points), rate)
        if self._failing is None:
            self._failing = _Solved(self.points, self._others[:, :0], self._prior.centre)
        self._failing.extend(self._told)
        return np.asarray(np.clip(rate + self._failing.at(failed - rate)[0], min(rate, 0.02), 0.98))


def _elsewhere(log2_times: Floats) -> Floats:
    """Bent octaves above each device's best, shape (pool, devices). Failed kernels count as the slowest, unknown ones
    as the mean."""
    columns = []
    for column in log2_times.T:
        worked = np.isfinite(column)
        bent = np.zeros(len(column))
        if worked.any():
            bent[worked] = bend(column[worked], float(column[worked].min()))
            bent[np.isinf(column)] = bent.max()
            bent[np.isnan(column)] = bent[~np.isnan(column)].mean()
        columns.append(bent)
    return np.stack(columns, axis=1)


# -- the process -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Prior:
    """The prior of the hyperparameters. They are logarithms in one vector, called lengths: a length per feature, the
    amplitude, the noise and, with other devices, how far their weights may differ from an equal share."""

    features: int
    devices: int

    @property
    def centre(self) -> Floats:
        # Distances grow with the root of the number of features, so usual lengths do, too.
        usual = 0.5 * math.log(max(self.features, 1)) + 0.5
        return np.array([usual] * self.features + [0.0, _USUAL_NOISE] + [_USUAL_TRUST] * bool(self.devices))

    @property
    def _bounds(self) -> list[tuple[float, float]]:
        return [(_LEAST, _MOST)] * self.features + [(-3.0, 2.0), (_QUIET, _LOUD)] + [(-4.0, 1.0)] * bool(self.devices)

    def fit(self, start: Floats, points: Floats, others: Floats, z: Floats, patience: int) -> Floats:
        """The lengths with the highest posterior probability. z: the standardised values at these points; patience: the
        most iterations."""
        from scipy.optimize import minimize

        above = np.triu_indices(len(points), 1)  # distances are symmetric: each pair once
        squares = (points[above[0]] - points[above[1]]) ** 2
        linear = others @ others.T
        found = minimize(
            self._cost,
            start,
            (above, squares, linear, z),
            "L-BFGS-B",
            True,
            bounds=self._bounds,
            options={"maxiter": patience},
        )
        return np.asarray(found.x)

    def _cost(self, lengths: Floats, pairs: Any, squares: Floats, linear: Floats, z: Floats) -> tuple[float, Floats]:
        """The negative log posterior and its gradient. pairs: indices of each pair of measurements; squares: squared
        differences of each pair, shape (pairs, features)."""
        from scipy.linalg.lapack import dpotrf, dpotri

        d, n = self.features, len(z)
        inverse, amplitude, noise = np.exp(-2 * lengths[:d]), math.exp(2 * lengths[d]), math.exp(2 * lengths[d + 1])
        r = np.sqrt(np.maximum(squares @ inverse, 1e-20))
        decay = amplitude * np.exp(-_ROOT5 * r)
        near = decay * (1 + _ROOT5 * r + 5 / 3 * r * r)
        trust = math.exp(2 * lengths[d + 2]) if self.devices else 0.0
        covariance = trust * linear if self.devices else np.zeros((n, n))
        covariance[pairs] += near
        covariance[np.diag_indices(n)] += amplitude + noise + _TINY
        upper, wrong = dpotrf(covariance, lower=0, clean=1)
        if wrong:
            return math.inf, np.zeros_like(lengths)
        precision = dpotri(upper, lower=0)[0]
        precision = np.triu(precision) + np.triu(precision, 1).T
        weights = precision @ z
        slope = precision - np.outer(weights, weights)
        steep = slope[pairs]
        gradient = np.empty_like(lengths)
        gradient[:d] = ((steep * (5 / 3 * decay * (1 + _ROOT5 * r))) @ squares) * inverse
        gradient[d] = 2 * steep @ near + amplitude * np.trace(slope)
        gradient[d + 1] = np.trace(slope) * noise
        if self.devices:
            gradient[d + 2] = trust * np.sum(slope * linear)
        off = lengths - self.centre
        cost = 0.5 * z @ weights + np.log(np.diag(upper)).sum() + 0.5 * off @ off
        return float(cost), gradient + off


class _Solved:
    """The process with given lengths: the inverse of the Cholesky factor over the measurements, and its solution for
    the whole pool. A new measurement adds a row to both. That costs pool size times measurements, not pool size times
    their square."""

    def __init__(self, points: Floats, others: Floats, lengths: Floats) -> None:
        self._lengths = np.exp(lengths[: points.shape[1]])
        self._points, self._others = points / self._lengths, others
        amplitude, noise, *trust = np.exp(2 * lengths[points.shape[1] :]).tolist()
        self._amplitude, self._noise, self._trust = amplitude, noise + _TINY, trust[0] if others.shape[1] else 0.0
        self._own = self._amplitude + self._trust * np.sum(others**2, axis=1)
        self._norms = np.sum(self._points**2, axis=1)
        self._told: list[int] = []
        self._inverse = np.zeros((0, 0))
        self._room = np.empty((_ROOM, len(points)))
        self._explained = np.zeros(len(points))

    @property
    def _across(self) -> Floats:
        """The solution for the whole pool: a row for each measurement."""
        return self._room[: len(self._told)]

    def extend(self, told: Sequence[int]) -> None:
        from scipy.linalg import solve_triangular

        old, new = len(self._told), list(told[len(self._told) :])
        if not new:
            return
        left = self._across[:, new].T
        corner, rows = self._beyond(new)
        inverse = np.zeros((len(told), len(told)))
        inverse[:old, :old] = self._inverse
        inverse[old:, old:] = solve_triangular(corner, np.eye(len(new)), lower=True, check_finite=False)
        inverse[old:, :old] = -inverse[old:, old:] @ left @ self._inverse
        if len(told) > len(self._room):
            self._room = np.concatenate([self._room, np.empty((len(told), len(self._points)))])
        self._room[old : len(told)] = rows
        self._inverse = inverse
        self._explained += np.einsum("ij,ij->j", rows, rows)
        self._told += new

    def widen(self, points: Floats) -> None:
        """Append points to the pool."""
        old = len(self._points)
        self._points = np.vstack([self._points, points / self._lengths])
        self._others = np.zeros((len(self._points), 0))
        self._norms = np.sum(self._points**2, axis=1)
        self._own = np.full(len(self._points), self._amplitude)
        rows = self._inverse @ self._covariance(self._told, slice(old, None))
        self._room = np.hstack([self._across, rows])
        self._explained = np.concatenate([self._explained, np.einsum("ij,ij->j", rows, rows)])

    def at(self, z: Floats) -> tuple[Floats, Floats]:
        """The mean and the standard deviation at every point of the pool."""
        if not len(z):
            return np.zeros(len(self._points)), np.sqrt(self._own)
        mean = (self._inverse @ z) @ self._across
        return np.asarray(mean), np.sqrt(np.maximum(self._own - self._explained, 1e-9))

    def deviation(self, pending: Sequence[int]) -> Floats:
        """The standard deviation at every point as if the pending points had been measured, too."""
        _, rows = self._beyond(list(pending))
        explained = self._explained + np.einsum("ij,ij->j", rows, rows)
        return np.asarray(np.sqrt(np.maximum(self._own - explained, 1e-9)))

    def _beyond(self, new: list[int]) -> tuple[Floats, Floats]:
        """The rows that new points add to the Cholesky factor, and to the solution for the whole pool."""
        from scipy.linalg import cholesky, solve_triangular

        rest = self._covariance(new)
        rest -= self._across[:, new].T @ self._across
        corner = cholesky(rest[:, new] + self._noise * np.eye(len(new)), lower=True, check_finite=False)
        return corner, np.asarray(solve_triangular(corner, rest, lower=True, check_finite=False))

    def surprise(self, z: Floats) -> float:
        """The RMS of the leave-one-out errors in units of their predicted deviations, clamped to 1 to 3."""
        if len(z) < _FEWEST:
            return 1.0
        off = (self._inverse.T @ (self._inverse @ z)) / np.linalg.norm(self._inverse, axis=0)
        return float(np.clip(np.sqrt(np.mean(off**2)), 1.0, 3.0))

    def _covariance(self, rows: Sequence[int], block: slice = slice(None)) -> Floats:
        """The covariance between these points and those of the pool, or of a block of the pool."""
        r = self._points[rows] @ self._points[block].T
        r *= -2
        r += self._norms[rows, None]
        r += self._norms[block]
        np.sqrt(np.maximum(r, 1e-20, out=r), out=r)
        r *= _ROOT5
        near = np.exp(-r)
        near *= self._amplitude * (1 + r * (1 + r / 3))
        return near + self._trust * (self._others[rows] @ self._others[block].T) if self._trust else near
