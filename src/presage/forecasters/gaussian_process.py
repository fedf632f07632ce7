"""A surface over a pool of kernels: a Gaussian process that is told measurements one at a time and says, of every
kernel of the pool, how long it may take and whether it may fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SOFT = 0.45
"""In octaves: times this much above the best and more count logarithmically, since only the fast end matters."""
_FLAT = 0.03
"""Times that differ by less, in octaves, are not stretched to look different."""
_STEADY = 20
_SHARE = 0.05
"""Beyond so many measurements, lengths are fitted anew only when so many more of them have come."""
_LEAST, _MOST = -3.0, 4.6
_QUIET, _LOUD = math.log(0.005), math.log(0.7)
_USUAL_NOISE = math.log(0.05)
_USUAL_TRUST = math.log(0.5)
_FEWEST = 5
"""With fewer that worked, nothing can be said of how well the process knows itself."""
_ROOT5 = math.sqrt(5)
_TINY = 1e-8


@dataclass(frozen=True)
class Beliefs:
    """What is expected of every kernel of the pool, on a bent scale of log2 time that `quantiles` bends back."""

    mean: Floats
    deviation: Floats
    p_fail: Floats
    best: float
    """The best measured, on the same scale; infinite while nothing has worked."""
    floor: float
    """log2 time of the best measured."""
    centre: float
    scale: float
    """The bent scale is standardised: octaves = centre + scale * value."""
    surprise: float
    """How much wider than its own deviations the quantiles are, since the process knows one smoothness, and kernels
    have cliffs."""

    def expected_improvement(self) -> Floats:
        """By how much each can be expected to beat the best, shape (pool,); where nothing has worked yet, by how
        much it may be better than the mean."""
        from scipy.special import ndtr

        best = self.best if math.isfinite(self.best) else 0.0
        u = (best - self.mean) / self.deviation
        gain = self.deviation * (u * ndtr(u) + np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))
        return np.asarray((1 - self.p_fail) * gain)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Of log2 time, given that the kernel works; shape (pool, levels)."""
        from scipy.special import ndtri

        z = self.mean[:, None] + self.surprise * self.deviation[:, None] * ndtri(np.asarray(levels))
        bent = z * self.scale + self.centre
        above = _SOFT * np.expm1(np.minimum(np.maximum(bent, 0) / _SOFT, 40.0))
        return np.asarray(self.floor + np.where(bent > 0, above, bent))


def bend(log2_time: Floats, floor: float) -> Floats:
    """Octaves above the floor, the far ones drawn together."""
    return np.asarray(_SOFT * np.log1p((log2_time - floor) / _SOFT))


class Surface:
    """A Matérn-5/2 process with a length per feature, a noise, and a trust per device of `elsewhere`."""

    def __init__(self, points: Floats, elsewhere: Floats | None = None, lengths: Floats | None = None) -> None:
        """points: shape (pool, features), standardised. elsewhere: log2 times of the same kernels on other devices,
        shape (pool, devices), infinite where they failed and NaN where they are unknown. lengths: those of another
        surface with the same features, to be used as they are."""
        self.points = points
        self._others = _elsewhere(elsewhere) if elsewhere is not None else np.zeros((len(points), 0))
        self._prior = _Prior(points.shape[1], self._others.shape[1])
        self._fixed = lengths is not None
        self.lengths = self._prior.centre.copy() if lengths is None else lengths
        self._worked: list[int] = []
        self._log2_times: list[float] = []
        self._told: list[int] = []
        self._fitted = 0
        self._surprise = 1.0
        self._solved: _Solved | None = None
        self._failing: _Solved | None = None

    def tell(self, index: int, log2_time: float) -> None:
        """A kernel of the pool was measured; infinite where it failed."""
        self._told.append(index)
        if math.isfinite(log2_time):
            self._worked.append(index)
            self._log2_times.append(log2_time)

    def beliefs(self) -> Beliefs:
        """What is expected now, after everything that was told. Failed kernels tell nothing of times."""
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
        return Beliefs(mean, deviation, self._p_fail(), best, floor, centre, scale, self._surprise)

    def _solve(self, z: Floats) -> _Solved:
        count = len(self._worked)
        due = count - self._fitted >= max(1, _SHARE * count if count > _STEADY else 1)
        if due and not self._fixed:
            inside = self.points[self._worked], self._others[self._worked]
            self.lengths = self._prior.fit(self.lengths, *inside, z, patience=12 if self._fitted else 40)
            self._fitted = count
        if self._solved is None or (due and not self._fixed):
            self._solved = _Solved(self.points, self._others, self.lengths)
            self._solved.extend(self._worked)
            self._surprise = self._solved.surprise(z)
        self._solved.extend(self._worked)
        return self._solved

    def _p_fail(self) -> Floats:
        """The share that failed, moved by how the neighbourhood did. Lengths stay the prior's: what makes kernels fail
        is not what makes them slow, and failures are few."""
        failed = np.isin(self._told, self._worked, invert=True).astype(np.float64)
        rate = (failed.sum() + 0.5) / (failed.size + 1)
        if not failed.any():
            return np.full(len(self.points), rate)
        if self._failing is None:
            self._failing = _Solved(self.points, self._others[:, :0], self._prior.centre)
        self._failing.extend(self._told)
        return np.asarray(np.clip(rate + self._failing.at(failed - rate)[0], min(rate, 0.02), 0.98))


def _elsewhere(log2_times: Floats) -> Floats:
    """Bent octaves above each device's best, shape (pool, devices): failed ones as the slowest, unknown ones as the
    mean."""
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
    """Which lengths are believed before anything is measured. They are logarithms, in one vector: a length per feature,
    the amplitude, the noise, and, with other devices, how freely their weights may differ from an equal share."""

    features: int
    devices: int

    @property
    def centre(self) -> Floats:
        # Distances grow with the root of the number of features, and lengths with them.
        usual = 0.5 * math.log(max(self.features, 1)) + 0.5
        return np.array([usual] * self.features + [0.0, _USUAL_NOISE] + [_USUAL_TRUST] * bool(self.devices))

    @property
    def _bounds(self) -> list[tuple[float, float]]:
        return [(_LEAST, _MOST)] * self.features + [(-3.0, 2.0), (_QUIET, _LOUD)] + [(-4.0, 1.0)] * bool(self.devices)

    def fit(self, start: Floats, points: Floats, others: Floats, z: Floats, patience: int) -> Floats:
        """The most probable lengths after these values."""
        from scipy.optimize import minimize

        squares = (points[:, None, :] - points[None, :, :]) ** 2
        linear = others @ others.T
        found = minimize(
            self._cost,
            start,
            (squares, linear, z),
            "L-BFGS-B",
            True,
            bounds=self._bounds,
            options={"maxiter": patience},
        )
        return np.asarray(found.x)

    def _cost(self, lengths: Floats, squares: Floats, linear: Floats, z: Floats) -> tuple[float, Floats]:
        """The negative log posterior and its gradient."""
        from scipy.linalg import cholesky, solve_triangular

        d, n = self.features, len(z)
        inverse, amplitude, noise = np.exp(-2 * lengths[:d]), math.exp(2 * lengths[d]), math.exp(2 * lengths[d + 1])
        r = np.sqrt(np.maximum(squares @ inverse, 1e-20))
        decay = amplitude * np.exp(-_ROOT5 * r)
        near = decay * (1 + _ROOT5 * r + 5 / 3 * r * r)
        trusted = math.exp(2 * lengths[d + 2]) * linear if self.devices else np.zeros_like(near)
        lower = cholesky(near + trusted + (noise + _TINY) * np.eye(n), lower=True, check_finite=False)
        inverted = solve_triangular(lower, np.eye(n), lower=True, check_finite=False)
        precision = inverted.T @ inverted
        weights = precision @ z
        slope = precision - np.outer(weights, weights)
        gradient = np.empty_like(lengths)
        gradient[:d] = 0.5 * np.tensordot(slope * (5 / 3 * decay * (1 + _ROOT5 * r)), squares, 2) * inverse
        gradient[d] = np.sum(slope * near)
        gradient[d + 1] = np.trace(slope) * noise
        if self.devices:
            gradient[d + 2] = np.sum(slope * trusted)
        off = lengths - self.centre
        cost = 0.5 * z @ weights + np.log(np.diag(lower)).sum() + 0.5 * off @ off
        return float(cost), gradient + off


class _Solved:
    """The process with given lengths: the triangular factor over what was told, and its solution for the whole pool. A
    new measurement adds a row to both, which costs the pool times the measurements and not their square."""

    def __init__(self, points: Floats, others: Floats, lengths: Floats) -> None:
        d = points.shape[1]
        self._points, self._others = points / np.exp(lengths[:d]), others
        self._amplitude, self._noise = math.exp(2 * lengths[d]), math.exp(2 * lengths[d + 1]) + _TINY
        self._trust = math.exp(2 * lengths[d + 2]) if others.shape[1] else 0.0
        self._own = self._amplitude + self._trust * np.sum(others**2, axis=1)
        self._norms = np.sum(self._points**2, axis=1)
        self._lower = np.zeros((0, 0))
        self._across = np.zeros((0, len(points)))
        self._explained = np.zeros(len(points))

    def extend(self, told: Sequence[int]) -> None:
        from scipy.linalg import cholesky, solve_triangular

        new = list(told[len(self._lower) :])
        if not new:
            return
        old, before = list(told[: len(self._lower)]), self._across
        crossing = self._covariance(new)
        left = before[:, new].T
        rest = crossing - left @ before
        corner = cholesky(rest[:, new] + self._noise * np.eye(len(new)), lower=True, check_finite=False)
        rows = solve_triangular(corner, rest, lower=True, check_finite=False)
        lower = np.zeros((len(told), len(told)))
        lower[: len(old), : len(old)] = self._lower
        lower[len(old) :, : len(old)] = left
        lower[len(old) :, len(old) :] = corner
        self._lower, self._across = lower, np.vstack([before, rows])
        self._explained += np.einsum("ij,ij->j", rows, rows)

    def at(self, z: Floats) -> tuple[Floats, Floats]:
        """The mean and the standard deviation at every point of the pool."""
        from scipy.linalg import solve_triangular

        if not len(z):
            return np.zeros(len(self._points)), np.sqrt(self._own)
        mean = solve_triangular(self._lower, z, lower=True, check_finite=False) @ self._across
        return np.asarray(mean), np.sqrt(np.maximum(self._own - self._explained, 1e-9))

    def surprise(self, z: Floats) -> float:
        """How many times farther than it thinks a value lies from what the others let expect: 1 to 3."""
        from scipy.linalg import solve_triangular

        if len(z) < _FEWEST:
            return 1.0
        inverted = solve_triangular(self._lower, np.eye(len(z)), lower=True, check_finite=False)
        off = (inverted.T @ (inverted @ z)) / np.linalg.norm(inverted, axis=0)
        return float(np.clip(np.sqrt(np.mean(off**2)), 1.0, 3.0))

    def _covariance(self, rows: list[int]) -> Any:
        these = self._points[rows]
        squares = self._norms[rows, None] + self._norms[None, :] - 2 * these @ self._points.T
        r = np.sqrt(np.maximum(squares, 1e-20))
        near = self._amplitude * (1 + _ROOT5 * r + 5 / 3 * r * r) * np.exp(-_ROOT5 * r)
        return near + self._trust * (self._others[rows] @ self._others.T) if self._trust else near
