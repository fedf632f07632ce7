"""The result of a run in words for the user. `ended` is the payload of the `finished` event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from presage.core.statistics import Interval

_NOISY = 0.10
"""If an interval reaches farther than this share from its value, the machine was too noisy for the number."""


def decisions(ended: Mapping[str, Any]) -> str:
    """The counts of decisions, and of broken candidates."""
    counts = ", ".join(f"{count} {action}" for action, count in ended["decisions"].items())
    broken = ended["broken"]
    return f"{counts}; {broken} broken: did not compile, or could not launch" if broken else counts


def missed(ended: Mapping[str, Any], delta: float) -> str:
    """The kernels that were trusted and not measured, and how many winners may be among them."""
    told, stop = ended["missed"], ended["early_stop"]
    trusted, left, most = told["trusted"], told["trusted"] - told["promoted"], told["most"]
    won = f"would have beaten the best of that time by more than {percent(delta)} (95 %)"
    if stop and stop["stopped"]:
        return f"probably nothing: {outlook(stop['left'], stop['chance'], stop.get('until', delta))}"
    if not trusted:
        return "nothing: nothing was left unmeasured on a forecast's word"
    if not left:
        return f"nothing: all {trusted} kernels whose forecasts were trusted were measured later"
    unchecked = f"{left} forecast{' was' if left == 1 else 's were'} trusted and not checked"
    if most is None:
        return f"not known: {unchecked}, and this policy does not watch what that costs"
    if not most:
        return f"nothing: {unchecked}; by what was measured, none of these kernels {won}"
    likely = round(told["likely"])
    return (
        f"{f'perhaps {likely}' if likely else 'probably nothing'}: {unchecked}; at most {most} of these kernels {won}"
    )


def outlook(left: int, chance: float, delta: float) -> str:
    """The probability that any of the remaining kernels is faster than the best by more than `delta`."""
    which = "the one kernel" if left == 1 else f"any of the {left} kernels"
    small = percent(chance, 1) if chance >= 0.001 else f"below {percent(0.001, 1)}"
    return f"the chance that {which} not measured is more than {percent(delta)} faster than the best is {small}"


def percent(share: float, digits: int = 0) -> str:
    """
    >>> percent(0.05), percent(0.0123, 1)
    ('5 %', '1.2 %')
    """
    return f"{100 * share:.{digits}f} %"


def early_stop(told: Mapping[str, Any] | None) -> str:
    """What stopping early saved, or why a search that was asked to did not stop early; empty for any other search."""
    if not told:
        return ""
    if told["stopped"]:
        return f"it stopped early: {saved(told)}" if saved(told) else ""
    return "" if told.get("until") is None else f"it did not stop early: {told['why_not']}"


def saved(stop: Mapping[str, Any]) -> str:
    """The measurements that stopping early saved; empty if there are none, or if the number is not known."""
    count, limit = stop.get("saved"), stop.get("limit")
    return f"{count} of {limit} measurements were not needed" if count else ""


def optimum(told: Mapping[str, Any]) -> str:
    """How near the result is to the fastest recorded kernel, compared with random choice."""
    place, of, random = told["rank"], told["of"], told["random"]
    where = "it is" if place == 1 else f"{percent(told['behind'], 1)} slower than"
    return (
        f"{where} the fastest of the {of} recorded kernels; random choice is {percent(random['behind'], 1)} behind"
        f" after as many measurements, and needs {random['measurements']:.0f} for one as good, on average"
    )


def speedup(S: Interval) -> str:
    """A speedup with its interval, if the interval is known."""
    known = math.isfinite(S.low) and math.isfinite(S.high) and S.low < S.high
    return f"{S.value:.3g}x" + (f" ({S.low:.3g} to {S.high:.3g})" if known else "")


def notes(ended: Mapping[str, Any]) -> list[str]:
    """Notes on the result: whether the finals changed it, whether it is noisy, and whether it was not replayed."""
    best, favourite = ended["best"], ended.get("favourite")
    is_recorded = ended.get("optimum") is not None  # live devices do not know it
    return [each for each in (_finals(best, favourite), _noise(best, is_recorded), _not_replayed(best)) if each]


def in_short(believed: str | None) -> str:
    """What stands after a speedup in a list: whether it is of a time of the kernel's own process.

    >>> in_short("worker"), in_short("replay"), in_short(None)
    (', not replayed', '', '')
    """
    return ", not replayed" if believed == "worker" else ""


def _not_replayed(best: Mapping[str, Any]) -> str:
    if best.get("believed") != "worker":
        return ""
    return f"it was timed in its own process and not replayed, so its time is less certain: {best['not_replayed']}"


def _finals(best: Mapping[str, Any], favourite: Mapping[str, Any] | None) -> str:
    if favourite is None:
        return ""
    alone = f"{favourite['alone']:.3g}x"
    if favourite["kernel"] != best["kernel"]:
        again = "it failed" if favourite["again"] is None else f"it was {favourite['again']:.3g}x and this one faster"
        return f"measured alone, {favourite['name']} was the fastest, {alone}; again, beside the anchor, {again}"
    if abs(math.log(favourite["alone"] / best["speedup"])) > _NOISY:
        return f"measured alone it was {alone}; this number is from the last measurement, beside the anchor"
    return ""


def _noise(best: Mapping[str, Any], is_recorded: bool) -> str:
    S, low, high = best["speedup"], best["low"], best["high"]
    reach = max(high / S - 1, 1 - low / S)
    if reach <= _NOISY:
        return ""
    wide = f"is ±{percent(reach)} wide" if math.isfinite(reach) else "has no end"
    if is_recorded:
        return (
            f"the interval {wide}: the recorded samples are too few or too noisy for a sharp number; only a live device"
            " can give a sharper one"
        )
    return (
        f"the interval {wide}: the machine was too busy or too noisy for a sharp number; stop other work and measure"
        " the file again with 'presage measure', or search again with another --run"
    )
