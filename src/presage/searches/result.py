"""The result of a run: the best kernel and its speedup, the decisions, and what trusting forecasts has cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from presage.core.statistics import Interval, speedup_interval
from presage.devices.status import Status
from presage.policies.base import Action, Policy
from presage.searches.state import State
from presage.store.store import Store

_ANCHOR = Interval(1.0, 1.0, 1.0)


def ended(state: State, store: Store, policy: Policy) -> dict[str, Any]:
    """The part of the `finished` event that follows from the state, the store and the policy."""
    hash, interval = _best(state, store)
    id = state.hashes.index(hash)
    return {
        "best": {
            "kernel": hash,
            **{"speedup": interval.value, "low": interval.low, "high": interval.high},
            "found_at": state.numbers[id],
            "alone": 2 ** state.values[id],
            **_believed(store, hash),
        },
        "favourite": _favourite(state, store),
        "forecasts": state.counts["forecasts"],
        **totals(state, policy),
        "delta": policy.delta,
    }


def _believed(store: Store, hash: str) -> dict[str, Any]:
    """Whose times were believed in the last valid measurement, and why the kernel was not replayed, if so."""
    last = [each for each in store.measurements(hash) if each.status is Status.OK][-1:]
    return {"believed": last[0].believed, "not_replayed": last[0].not_replayed} if last else {}


def totals(state: State, policy: Policy) -> dict[str, Any]:
    """Return the counts of decisions and of broken candidates, and what trust has cost. `missed` holds the winners that
    were trusted and never measured: their share of all winners with its 95 % interval, and their likely and greatest
    number. These are None if the policy does not track them."""
    trusted, promoted = state.decisions[Action.TRUST], state.counts["promoted"]
    unmeasured = trusted - promoted
    known = dict.fromkeys(("rate", "low", "high", "likely", "most"), None if unmeasured else 0)
    missed = (policy.missed(unmeasured) if unmeasured else None) or known
    return {
        "decisions": {str(action): state.decisions[action] for action in Action},
        "broken": state.counts["broken"],
        "missed": {**missed, "trusted": trusted, "promoted": promoted},
    }


def _best(state: State, store: Store) -> tuple[str, Interval]:
    """Return the hash of the fastest measured kernel, and its speedup: from the finals if there were any. A kernel that
    failed in the finals is not the result. If the anchor failed there, too, the finals are ignored, because the kernels
    are not to blame."""
    anchor = (state.hashes[0], _ANCHOR)
    finals = state.finals or ()
    if any(result["kernel"] == anchor[0] and result["status"] != Status.OK for result in finals):
        finals = ()
    finals = [result for result in finals if result["kernel"] != anchor[0]]
    timed = [result for result in finals if result["value"] is not None]
    failed = {result["kernel"] for result in finals if result["status"] not in (Status.OK, Status.DEVICE_FAULT)}
    if timed:
        best = max(timed, key=lambda result: result["value"])
        return (best["kernel"], Interval(best["value"], best["low"], best["high"])) if best["value"] > 1 else anchor
    for value, id in reversed(state.best):
        if value <= 0 or id == 0:
            return anchor
        if (hash := state.hashes[id]) not in failed:
            return hash, _apart(store, state.hashes[0], hash)
    return anchor


def _apart(store: Store, anchor: str, hash: str) -> Interval:
    """The speedup of a kernel that was not measured side by side with the anchor."""
    one, other = (store.measurements(each)[0].cases for each in (anchor, hash))
    return speedup_interval([c.parts for c in one], [c.parts for c in other], paired=False)


def _favourite(state: State, store: Store) -> dict[str, Any] | None:
    """The kernel that was the fastest when measured alone, with its result in the finals; None without finals."""
    value, id = state.best[-1]
    hash = state.hashes[id]
    for result in state.finals or ():
        if result["kernel"] == hash:
            name = Path(store.kernel(hash).name).name
            return {"kernel": hash, "name": name, "alone": 2**value, "again": result["value"]}
    return None
