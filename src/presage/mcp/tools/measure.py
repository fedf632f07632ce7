"""measure: check and time kernels on a device."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio

from presage.cli import documents
from presage.core.errors import PresageError
from presage.mcp.allowance import Amounts
from presage.mcp.tool import DEVICE, KERNEL, KERNELS, PROBLEM, Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session

_MOST_SECONDS, _START_SECONDS = 240.0, 60.0
"""The timeout of a call: 240 s for each kernel, plus 60 s for the start."""


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    request = session.request({**asked, "device": session.check_device(asked.get("device"))})
    count = len(asked["kernels"]) + (asked.get("anchor") != "none")
    has_begun = False

    async def heard(share: float, total: float | None, doing: str) -> None:
        nonlocal has_begun
        has_begun = has_begun or share > 0
        await tell(share, total, doing)

    async with session.measuring:
        left = session.allowance.left("device_seconds")
        seconds = min(max(left, count), _MOST_SECONDS * count + _START_SECONDS)
        session.allowance.take(Amounts(count, seconds))
        start = time.monotonic()
        try:
            with anyio.fail_after(seconds):
                return await session.work("measure", {**request, "seconds": seconds / count}, heard)
        except TimeoutError as error:
            raise PresageError(
                f"the {seconds:.0f} s of the device that were left to this server were spent before the measurement was"
                " done; measure fewer kernels, or have it started with a larger --max-device-seconds"
            ) from error
        except PresageError:
            if not has_begun:
                session.allowance.give_back(Amounts(count))
            raise
        finally:
            used = min(seconds, time.monotonic() - start)
            session.allowance.give_back(Amounts(device_seconds=seconds - used))


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    from presage import api
    from presage.cli import measure
    from presage.devices.base import Effort
    from presage.mcp.desk import desk

    with desk(request) as given:
        device = api.load_device(request["device"] or measure.default_device(given.problem, given.kernels))
        try:
            effort = Effort(precision=request.get("precision", Effort.precision)).within(request["seconds"])
            anchor, found = api.measure_beside_anchor(
                given.problem, given.kernels, device, given.anchor, effort, lambda doing, share: say(doing, share)
            )
        finally:
            device.close()
    ratios = [measure.ratio(found[0], other) for other in found[1:]]
    told = measure.document(found, anchor, ratios)
    for each in (told["anchor"], *told["measurements"]):
        for case in each["cases"] if each else ():
            case["samples_ns"] = []
    return documents.whole("measure", told)


TOOL = Tool(
    name="measure",
    title="Measure kernels",
    description="Check kernels against the right answer and time them, side by side with the anchor, each confined."
    " Returns a status (ok, compile_error, wrong_result, runtime_error, timeout, cheating, device_fault), medians and"
    " the speedup with a 95 % interval. Each kernel and the anchor cost one measurement of the budget: forecast first,"
    " and measure the best few. A failing kernel is a result, with a reason. samples_ns is left empty.",
    takes={
        "problem": PROBLEM,
        "kernels": {**KERNELS, "description": "What to measure, together."},
        "device": {**DEVICE, "description": f"{DEVICE['description']} Default: what fits the kernels' language."},
        "anchor": {
            **KERNEL,
            "description": "What speedups are relative to; 'none' saves its measurement. Default: naive.c on a CPU,"
            " eager.py on a GPU.",
        },
        "precision": {
            "type": "number",
            "minimum": 0.001,
            "maximum": 0.5,
            "description": "Stop when the 95 % interval of a median is within this share of it. Default: 0.01.",
        },
    },
    needs=("problem", "kernels"),
    gives=document("measure"),
    call=call,
    read_only=False,
)
