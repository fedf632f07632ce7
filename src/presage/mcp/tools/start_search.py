"""start_search: begin a search for a faster kernel, or continue one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.core.errors import PresageError
from presage.mcp.allowance import Amounts
from presage.mcp.progress import PROGRESS, progress
from presage.mcp.tool import DEVICE, KERNEL, KERNELS, PROBLEM, RUN, Say, Tell, Tool
from presage.mcp.tools.forecast import FORECASTER, POLICY, refuse_models

if TYPE_CHECKING:
    from presage.mcp.session import Session

_MEASUREMENTS = 64
_LIMITS = {"budget", "device_seconds", "wall_seconds"}
GIVEN = "given"
"""The subfolder of a run's folder that holds the sources that the agent sent."""


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    refuse_models(asked.get("forecaster"))
    run = asked.get("run")
    if run:
        _refuse_going_on(session, run)
    if run and session.folder(run).exists():
        return await _continue(session, run, asked, tell)
    if "problem" not in asked:
        raise PresageError(f"there is no run '{run}' to go on with; list_runs lists them. A new one needs a problem")
    request = session.request({**asked, "device": session.check_device(asked.get("device"))})
    problem = request["problem"]
    run = run or session.new_run(problem.get("name") or problem["main"])
    left = session.allowance.left
    reserved = Amounts(
        asked.get("budget") or max(2, min(_MEASUREMENTS, int(left("measurements")))),
        asked.get("device_seconds") or max(1.0, left("device_seconds") / 2),
        1,
    )
    session.allowance.take(reserved)
    limits = {"budget": reserved.measurements, "device_seconds": reserved.device_seconds}
    told = {**request, **limits, "folder": str(session.folder(run)), "is_open": "budget" not in asked}
    return progress(session, await session.begin(run, told, reserved), 0)


async def _continue(session: Session, run: str, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    if other := asked.keys() - _LIMITS - {"run"}:
        raise PresageError(
            f"the run {run} exists, and goes on as it was begun; leave out {', '.join(sorted(other))}, or name another"
        )
    request = {"folder": str(session.folder(run)), **asked}
    needs = await session.work("read_run", {**request, "needs": True}, tell)
    session.check_device(needs["device"])
    _refuse_going_on(session, run)  # another call may have begun to go on with it meanwhile
    reserved = Amounts(needs["measurements"], needs["device_seconds"], 1)
    session.allowance.take(reserved)
    return progress(session, await session.begin(run, request, reserved), 0)


def _refuse_going_on(session: Session, run: str) -> None:
    if session.is_going_on(run):
        raise PresageError(f"the run {run} goes on already; follow_search follows it")


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    import presage
    from presage.mcp.searching import Watch, new, stored
    from presage.report import frozen
    from presage.searches.run import Run, write_best
    from presage.store.store import FILE

    folder = Path(request["folder"])
    watch = Watch(say)
    try:
        settings = new(request, folder / GIVEN) if "problem" in request else stored(request, folder)
        presage.search(run=folder, watch=watch, **settings)
    except KeyboardInterrupt:
        if watch.has_begun and Run(folder).measurements:
            write_best(Run(folder))
            frozen.write(folder)
        raise
    finally:
        if not (folder / FILE).exists():  # the search could not begin: remove the folder to free the run's name
            shutil.rmtree(folder, ignore_errors=True)
    frozen.write(folder)
    return {}


TOOL = Tool(
    name="start_search",
    title="Start a search",
    description="Begin a search for a faster kernel within a budget; it forecasts every candidate and measures few."
    " Returns at once with the name of the run: follow_search follows it, read_run reads the best kernel. It searches"
    " the tunables of the problem's kernels, and of yours if you name some. With the name of a stopped or finished run"
    " it goes on with that, also with a larger budget.",
    takes={
        "problem": PROBLEM,
        "kernels": {**KERNELS, "description": "Kernels with tunables to search, too."},
        "only": {"type": "boolean", "description": "Search only the named kernels."},
        "device": {**DEVICE, "description": f"{DEVICE['description']} Default: cuda where there is one."},
        "anchor": {**KERNEL, "description": "What speedups are relative to. Default: the device's own."},
        "forecaster": {**FORECASTER, "description": f"{FORECASTER['description']} none measures everything."},
        "policy": {**POLICY, "description": "What decides which candidates are measured. Default: risk."},
        "budget": {
            "type": "integer",
            "minimum": 2,
            "description": "Measurements. Default: 64, or what is left, ending early when little more is to be had.",
        },
        "device_seconds": {"type": "number", "exclusiveMinimum": 0, "description": "Default: half of what is left."},
        "wall_seconds": {"type": "number", "exclusiveMinimum": 0, "description": "Default: no limit."},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        "run": {**RUN, "description": "A name for the run, or of the run to go on with."},
    },
    gives=PROGRESS,
    call=call,
    read_only=False,
)
