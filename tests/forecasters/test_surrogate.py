"""The surrogate: what a search can rely on when it learns from its own measurements alone."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage import Candidate, Kernel, Measured, PresageError, Recording, StaticReport, Status, Task
from presage.devices.recording import RecordedCase, Row, write
from presage.forecasters.gaussian_process import Surface, bend
from presage.forecasters.surrogate import OPENING, Encoding, SurrogateForecaster, opening
from presage.kernels.header import Header, Launch, Value
from presage.problems import registry
from presage.static import hardware
from presage.static.report import LaunchReport

CASE = "timed"
BLOCKS = tuple(range(32, 1056, 32))
TILES = tuple(range(1, 9))
TIDY = (1, 2, 4, 8)


def kernel(**values: Value) -> Kernel:
    text = "\n".join(f"#define {name} {value}" for name, value in values.items())
    return Kernel(text, "cuda", Header(), "family.cu@" + ",".join(map(str, values.values())), values)


def space() -> list[Kernel]:
    """512 kernels, 1 in 8 of which asks for more than a block can have."""
    return [
        kernel(block_size_x=block, tile_size_x=tile, read_only=flag)
        for block in BLOCKS
        for tile in TILES
        for flag in (0, 1)
    ]


def truth(k: Kernel) -> float | None:
    """log2 S: best at 256 threads and tiles of 4, worse where sizes are odd; None where it fails."""
    block, tile = int(k.values["block_size_x"]), int(k.values["tile_size_x"])
    if block * tile > 4096:
        return None
    odd = math.log2(block // (block & -block))
    return (
        1.0
        - 0.5 * abs(math.log2(block / 256))
        - 0.4 * abs(math.log2(tile / 4))
        - 0.2 * odd
        - 0.3 * int(k.values["read_only"])
    )


def measured(k: Kernel, found: float | None) -> Measured:
    if found is None:
        return Measured(k, status="runtime_error")
    return Measured(k, times_ns={CASE: 1e6 * 2**-found})


def task(neighbours: list[Measured]) -> Task:
    anchor = Measured(kernel(anchor=1), times_ns={CASE: 1e6})
    return Task(registry.get("vector_add"), anchor, hardware.find("h200"), neighbours)


def neighbours(count: int, seed: int = 0, of: Callable[[Kernel], float | None] = truth) -> list[Measured]:
    return [measured(k, of(k)) for k in random.Random(seed).sample(space(), count)]


def test_before_anything_is_measured_it_says_so() -> None:
    (found,) = SurrogateForecaster().forecast(task([]), [Candidate(kernel(block_size_x=32))])
    assert found.forecast is not None
    assert found.forecast.quantile(0.9) - found.forecast.quantile(0.1) > 3
    assert found.notes == ("little was measured yet: a wide forecast",)
    assert SurrogateForecaster().forecast(task([]), []) == []


def test_it_learns_a_space_from_a_tenth_of_it() -> None:
    kernels = space()
    predictions = SurrogateForecaster().forecast(task(neighbours(50)), [Candidate(k) for k in kernels])
    expected = np.array([truth(k) if truth(k) is not None else math.nan for k in kernels])
    forecasts = [p.forecast for p in predictions]
    assert all(forecasts)
    median = np.array([f.quantile(0.5) for f in forecasts if f])
    works = ~np.isnan(expected)
    assert np.corrcoef(median[works], expected[works])[0, 1] > 0.9
    low, high = (np.array([f.quantile(q) for f in forecasts if f]) for q in (0.05, 0.95))
    assert 0.8 < np.mean((low <= expected) & (expected <= high), where=works) <= 1
    p_fail = np.array([f.p_fail for f in forecasts if f])
    assert p_fail[~works].mean() > 4 * p_fail[works].mean()


def test_what_was_measured_is_forecast_as_measured() -> None:
    known = [each for each in neighbours(30) if each.status == "ok"]
    at = task(known)
    for each, found in zip(known, SurrogateForecaster().forecast(at, known), strict=True):
        assert found.forecast is not None
        assert found.forecast.quantile(0.5) == pytest.approx(at.log2_speedup(each), abs=0.15)


def test_a_pool_of_one_kernel_has_nothing_to_tell_apart() -> None:
    known = measured(space()[0], -1.3)
    (found,) = SurrogateForecaster().forecast(task([known] * OPENING), [known])
    assert found.forecast is not None
    assert found.forecast.quantile(0.5) == pytest.approx(-1.3, abs=0.1)


def test_what_compiling_told_helps() -> None:
    """Hand-written kernels without tunables are told apart by their static reports alone."""

    def compiled(registers: int) -> Candidate:
        launch = LaunchReport("f", (1, 1, 1), (256, 1, 1), 1, registers, 0, 0, 0, 1000, 0.5, "", 2, 1.0, 0, {}, {}, {})
        made = Kernel(f"// {registers}", "cuda", Header(), "by_hand.cu")
        made.__dict__["hash"] = str(registers)
        return Candidate(made, [StaticReport("h200", "sm_90", "ok", "nvrtc", (launch,))])

    known = [
        Measured(each.kernel, each.reports, {CASE: 1e4 * registers})
        for registers in range(16, 256, 24)
        for each in [compiled(registers)]
    ]
    few, many = SurrogateForecaster().forecast(task(known), [compiled(20), compiled(230)])
    assert few.forecast
    assert many.forecast
    assert few.forecast.quantile(0.1) > many.forecast.quantile(0.9)


def test_the_same_question_has_the_same_answer() -> None:
    known, asked = neighbours(20), [Candidate(k) for k in space()[::7]]
    forecaster = SurrogateForecaster()
    first = forecaster.forecast(task(known), asked)
    assert forecaster.forecast(task(known), asked) == first
    assert SurrogateForecaster().forecast(task(known), asked) == first


def test_it_fits_again_only_when_something_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from presage.forecasters import gaussian_process

    fits = []
    fit = gaussian_process._Prior.fit
    monkeypatch.setattr(gaussian_process._Prior, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    forecaster, known = SurrogateForecaster(), neighbours(15)
    for count, asked in ((14, space()[:40]), (14, space()[40:90]), (15, space()[:40])):
        forecaster.forecast(task(known[:count]), [Candidate(k) for k in asked])
    assert len(fits) == 2


def test_names_of_tunables_that_no_other_kernel_has_do_no_harm() -> None:
    known = [*neighbours(12), measured(kernel(STAGES=3, mode="fast"), -1.0)]
    asked = [Candidate(kernel(STAGES=4, mode="slow")), Candidate(Kernel("int f();", "c", Header(), "by_hand.c"))]
    for found in SurrogateForecaster().forecast(task(known), asked):
        assert found.forecast is not None
        assert all(map(math.isfinite, found.forecast.knots))


@given(
    st.lists(st.one_of(st.none(), st.floats(-20, 20, allow_nan=False)), min_size=1, max_size=12),
    st.integers(0, 3),
)
@settings(max_examples=25, deadline=None)
def test_any_measurements_give_a_forecast(outcomes: list[float | None], seed: int) -> None:
    """All failed, all equal, octaves apart: a forecast is a distribution, and p_fail a probability."""
    kernels = random.Random(seed).sample(space(), len(outcomes) + 5)
    known = [measured(k, outcome) for k, outcome in zip(kernels, outcomes, strict=False)]
    for found in SurrogateForecaster().forecast(task(known), [Candidate(k) for k in kernels]):
        assert found.forecast is not None
        assert 0 < found.forecast.p_fail < 1


def test_only_failures_raise_the_chance_of_failing() -> None:
    asked = [Candidate(k) for k in space()[::50]]
    failed, worked = (
        SurrogateForecaster().forecast(task(neighbours(OPENING, of=of)), asked)
        for of in (lambda k: None, lambda k: 0.0)
    )
    for bad, good in zip(failed, worked, strict=True):
        assert bad.forecast
        assert good.forecast
        assert bad.forecast.p_fail > 0.8 > 0.2 > good.forecast.p_fail


def recorded(folder: Path, name: str, of: Callable[[Kernel], float | None]) -> Recording:
    """The space as another device took it."""
    rows = [
        Row(
            "vector_add", "", "", k.family, "cuda", k.hash, k.source, k.values,
            Status.RUNTIME_ERROR if found is None else Status.OK,
            cases=() if found is None else (RecordedCase(CASE, 1.0, (3e5 * 2**-found,) * 3),),
        )
        for k in space() for found in [of(k)]
    ]  # fmt: skip
    return write(folder / f"{name}.parquet", rows, {"name": name})


def test_other_devices_are_where_it_starts_from(tmp_path: Path) -> None:
    """All of a like device and the opening here: the order is theirs. A contrary one does not mislead for long."""
    kernels = [k for k in space() if truth(k) is not None]
    forecaster = SurrogateForecaster([recorded(tmp_path, "like", truth)])
    few = [measured(k, truth(k)) for k in kernels[:: len(kernels) // OPENING][:OPENING]]
    found = forecaster.forecast(task(few), [Candidate(k) for k in kernels])
    median = [p.forecast.quantile(0.5) for p in found if p.forecast]
    best = max(range(len(kernels)), key=lambda i: truth(kernels[i]) or -9)
    assert int(np.argmax(median)) == best
    contrary = recorded(tmp_path, "contrary", lambda k: -(truth(k) or 0))
    known = [each for each in neighbours(40) if each.status == "ok"]
    found = SurrogateForecaster([contrary]).forecast(task(known), [Candidate(k) for k in kernels])
    median = [p.forecast.quantile(0.5) for p in found if p.forecast]
    assert np.corrcoef(median, [truth(k) or 0 for k in kernels])[0, 1] > 0.9


def test_what_to_try_first_is_hoped_for_most(tmp_path: Path) -> None:
    """A search knows the opening by its forecasts: tidy kernels, and, where there are recordings, their fastest."""
    kernels = space()
    asked = [Candidate(k) for k in kernels]
    best = max(range(len(kernels)), key=lambda i: truth(kernels[i]) or -9)
    for forecaster in (SurrogateForecaster(), SurrogateForecaster([recorded(tmp_path, "like", truth)])):
        found = [p.forecast.expected_improvement(0.0) for p in forecaster.forecast(task([]), asked) if p.forecast]
        first = [kernels[i] for i, hope in enumerate(found) if hope == max(found)]
        assert len(first) == OPENING
        tidy = [k for k in first if k.values["block_size_x"] in (64, 128, 256, 512) and k.values["tile_size_x"] in TIDY]
        assert len(tidy) >= OPENING / 2
    assert kernels[best] in first


def test_a_recording_without_the_problem_is_refused(tmp_path: Path) -> None:
    other = write(tmp_path / "other.parquet", [], {"name": "other"})
    with pytest.raises(PresageError, match=r"other.parquet has nothing of vector_add"):
        SurrogateForecaster([other]).forecast(task([]), [Candidate(kernel(block_size_x=32))])


def search(seed: int, budget: int) -> list[float]:
    """The product's own parts in the simplest loop; the speedups in the order of measuring."""
    kernels = space()
    pool = [Candidate(k) for k in kernels]
    surface, order = Surface(Encoding.of(pool).points(pool)), opening(kernels, OPENING, random.Random(seed))
    found = [truth(k) for k in kernels]
    times = [math.inf if each is None else -each for each in found]
    for index in order:
        surface.tell(index, times[index])
    while len(order) < budget:
        gain = surface.beliefs().expected_improvement()
        gain[order] = -1
        order.append(int(np.argmax(gain)))
        surface.tell(order[-1], times[order[-1]])
    return [-times[index] for index in order]


def test_a_search_finds_the_best_of_512_within_30() -> None:
    best = max(truth(k) or -9 for k in space())
    assert sum(max(search(seed, 30)) >= best - 0.05 for seed in range(5)) >= 4
    assert search(1, 20) == search(1, 20)


def test_the_surface_and_the_forecaster_agree() -> None:
    """Told one by one or all at once, with lengths fitted to the same values, the process is the same."""
    kernels = space()[::5]
    pool = [Candidate(k) for k in kernels]
    points = Encoding.of(pool).points(pool)
    whole, rows = Surface(points), Surface(points)
    for index in range(12):
        whole.tell(index, float(index % 5))
        rows.tell(index, float(index % 5))
        last = rows.beliefs()
    again = Surface(points, lengths=rows.lengths, fitted=rows.fitted)
    for index in range(12):
        again.tell(index, float(index % 5))
    np.testing.assert_allclose(again.beliefs().mean, last.mean, atol=1e-6)
    np.testing.assert_allclose(again.beliefs().deviation, last.deviation, atol=1e-6)


def test_a_pool_that_grows_is_the_pool_that_was_whole() -> None:
    pool = [Candidate(k) for k in space()]
    points = Encoding.of(pool).points(pool)
    whole, grown = Surface(points), Surface(points[:200])
    for index in range(30):
        for surface in (whole, grown):
            surface.tell(index, math.inf if index % 7 == 0 else float(index % 5))
        if index == 28:
            grown.beliefs()
    whole.beliefs()
    grown.widen(points[200:])
    one, other = whole.beliefs(), grown.beliefs()
    np.testing.assert_allclose(one.p_fail, other.p_fail, atol=1e-6)
    assert one.mean.shape == other.mean.shape


def test_favourites_are_those_with_the_largest_expected_improvement() -> None:
    forecaster, pool = SurrogateForecaster(), [Candidate(k) for k in space()]
    at = task(neighbours(40))
    best = max(value for each in at.neighbours if (value := at.log2_speedup(each)) is not None)
    chosen = forecaster.favourites(at, {each.kernel.hash: each for each in pool}, 5)
    said = zip(pool, forecaster.forecast(at, pool), strict=True)
    gains = {c.kernel.hash: p.forecast.expected_improvement(best) for c, p in said if p.forecast}
    assert len(chosen) == 5
    assert min(gains[hash] for hash in chosen) >= np.quantile(list(gains.values()), 0.95)


def test_one_that_goes_on_elsewhere_says_the_same() -> None:
    """Fitted step by step, in one process or in two: what `memory` gave is all that the second needs."""
    pool, known = {k.hash: Candidate(k) for k in space()}, neighbours(30)
    whole, kept = SurrogateForecaster(), []
    for count in range(31):
        whole.favourites(task(known[:count]), pool, 3)
        kept.append(whole.memory())
    again = SurrogateForecaster()
    for memory in kept[:21]:
        if memory is not None:
            again.remember(json.loads(json.dumps(memory)))
    measured_then = {each.kernel.hash for each in known[:20]}
    rest = {hash: each for hash, each in pool.items() if hash not in measured_then}
    for count in range(20, 31):
        again.favourites(task(list(reversed(known[:count]))), rest, 3)
    at = task(known)
    one, other = (forecaster.forecast(at, list(rest.values())) for forecaster in (whole, again))
    for a, b in zip(one, other, strict=True):
        assert a.forecast is not None
        assert b.forecast is not None
        assert a.forecast.knots == pytest.approx(b.forecast.knots, abs=1e-6)


def test_expected_improvement_is_the_closed_form() -> None:
    surface = Surface(np.linspace(-2, 2, 9)[:, None])
    for index, value in ((0, 3.0), (4, 1.0), (8, 2.0)):
        surface.tell(index, value)
    beliefs = surface.beliefs()
    draws = beliefs.mean + beliefs.deviation * np.random.default_rng(0).standard_normal((200_000, 9))
    expected = (1 - beliefs.p_fail) * np.maximum(beliefs.best - draws, 0).mean(axis=0)
    np.testing.assert_allclose(beliefs.expected_improvement(), expected, atol=0.01)


def test_the_bent_scale_bends_back() -> None:
    bent = bend(np.array([3.0, 3.1, 4.0, 9.0]), 3.0)
    assert bent[0] == 0
    assert bent[1] == pytest.approx(0.1, abs=0.02)
    assert bent[2] < bent[3] < 2
    surface = Surface(np.array([[-1.0], [0.0], [1.0]]))
    for index, value in enumerate((3.0, 4.0, 9.0)):
        surface.tell(index, value)
    quantiles = surface.beliefs().quantiles([0.1, 0.5, 0.9])
    assert np.all(np.diff(quantiles, axis=1) > 0)
    assert quantiles[:, 1] == pytest.approx([3.0, 4.0, 9.0], abs=0.6)


def test_the_opening_starts_with_what_experience_suggests() -> None:
    kernels = space()
    chosen = opening(kernels, 60, random.Random(0))
    assert len(set(chosen)) == 60
    tidy = 4 * 4 * 2
    for index in chosen[:tidy]:
        assert kernels[index].values["block_size_x"] in (64, 128, 256, 512)
        assert kernels[index].values["tile_size_x"] in TIDY
    assert all(64 <= int(kernels[index].values["block_size_x"]) <= 512 for index in chosen)
    assert chosen == opening(kernels, 60, random.Random(0)) != opening(kernels, 60, random.Random(1))
    assert sorted(opening(kernels[:3], 9, random.Random(0))) == [0, 1, 2]
    launched = Header(launches=(Launch("f", block=("32 * WARPS",)),))
    some = [Kernel(f"{w}", "cuda", launched, "f.cu", {"WARPS": w}) for w in (1, 2, 4, 32)]
    assert set(opening(some, 2, random.Random(0))) == {1, 2}


def test_with_other_devices_every_other_of_the_opening_is_their_best() -> None:
    elsewhere = np.full((512, 2), 9.0)
    elsewhere[[100, 101], 0], elsewhere[102, 0] = (1.0, 2.0), math.nan
    elsewhere[[200, 201], 1], elsewhere[202, 1] = (1.0, 2.0), math.inf
    chosen = opening(space(), 8, random.Random(0), elsewhere)
    assert chosen[0::2] == [100, 200, 101, 201]
    assert chosen[1::2] == opening(space(), 4, random.Random(0))
