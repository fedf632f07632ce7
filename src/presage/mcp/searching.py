"""The arguments with which a worker calls `presage.search`, for a new or a stored run, and its progress messages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from presage.cli import search as command
from presage.core.errors import PresageError
from presage.mcp.desk import Desk
from presage.mcp.tool import Say
from presage.problems import registry as problems
from presage.problems.external import ExternalProblem
from presage.searches.budget import Amounts
from presage.searches.configuration import LIMITS, NO_FORECASTER, UNTIL, Configuration, limits_of, modern
from presage.searches.run import Run
from presage.searches.state import State
from presage.store.store import Event, Store

_NAMES = {"budget": "budget", "device_seconds": "device_seconds", "wall_seconds": "wall"}


class Watch:
    """Reports each event of a search to the server, with what the search has spent since this process began."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._before: tuple[int, float] | None = None

    @property
    def has_begun(self) -> bool:
        return self._before is not None

    def __call__(self, event: Event, state: State) -> None:
        spent = state.spent
        if self._before is None:
            self._before = spent.measurements, spent.device_seconds
        limit = limits_of(state.configuration or {}).measurements
        self._say(
            command.line_of(event, state),
            0.0,
            measured=spent.measurements,
            limit=limit,
            best=2**state.best_value if spent.measurements else None,
            measurements=spent.measurements - self._before[0],
            device_seconds=spent.device_seconds - self._before[1],
        )


def new(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the arguments of a new search. The sources that the agent sent are written to this folder."""
    given = Desk(folder, request)

    def place(spec: str) -> str:
        return str(folder / spec) if given.has(spec) else spec

    problem = str(folder / given.problem) if "files" in request["problem"] else given.problem
    found: dict[str, Any] = {
        "problem": problem,
        "kernels": [place(spec) for spec in given.kernels],
        "only": request.get("only", False),
        "device": request["device"],
        "forecaster": request.get("forecaster"),
        "policy": request.get("policy"),
        "anchor": given.anchor and place(given.anchor),
        "seed": request.get("seed", 0),
        **_limits(request),
    }
    if isinstance(problems.get(problem), ExternalProblem) and not found["kernels"]:
        raise PresageError(
            "a search of this problem would ask a language model for kernels, which is not done for agents; hand over"
            " kernels with tunables, or forecast and measure candidates of your own"
        )
    known: dict[str, Any] = {
        name: found[name] or None for name in ("problem", "kernels", "device", "forecaster", "policy")
    }
    if request.get("is_open") and Configuration(**known).complete({}).forecaster != NO_FORECASTER:
        found["until"] = UNTIL
    return found


def stored(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the arguments to continue a stored run, with the limits of the request in place of the run's own."""
    was = modern(Run(folder).configuration)
    for part in ("proposer", "forecaster"):
        if "llm" in str(was[part]):
            raise PresageError(f"the run {folder.name} asks a language model, which is not done for agents")
    kernels = list(was.pop("kernels") or ())
    if was["problem"] in kernels:
        kernels.remove(was["problem"])
    return {**was, "kernels": kernels, **_limits(request)}


def needs(run: Run, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the device of this run, and the most that continuing it can cost."""
    limits = {**run.configuration, **_limits(request)}
    if limits["device_seconds"] is None or limits["budget"] is None:
        missing = "device_seconds" if limits["device_seconds"] is None else "budget"
        raise PresageError(f"the run {run.folder.name} has no limit of {missing}; begin another")
    spent = _spent(run)
    return {
        "device": run.configuration["device"],
        "measurements": max(0, limits["budget"] - spent.measurements),
        "device_seconds": max(0.0, limits["device_seconds"] - spent.device_seconds),
    }


def _spent(run: Run) -> Amounts:
    state = State()
    with Store(run.folder, writes=False) as store:
        for event in store.events():
            state.apply(event)
    return state.spent


def _limits(request: Mapping[str, Any]) -> dict[str, Any]:
    found = {ours: request[name] for name, ours in _NAMES.items() if name in request}
    assert found.keys() <= set(LIMITS)
    return found
