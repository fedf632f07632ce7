"""forecast: forecast the speedups of many candidates without measuring them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.cli import documents
from presage.core.errors import PresageError
from presage.mcp.tool import KERNEL, KERNELS, PROBLEM, TARGET, Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session

POLICY = {
    "type": "string",
    "pattern": r"^[a-z_]+(:[a-z_]+=[0-9.]+(,[a-z_]+=[0-9.]+)*)?$",
    "description": "What decides which are worth a measurement; topk:k=3 names three. Default: confident.",
}
FORECASTER = {
    "type": "string",
    "pattern": r"^[a-z_]+$",
    "description": "Default: learned. Others: nearest, forest, roofline, prior, uniform.",
}


def refuse_models(name: str | None) -> None:
    """Raise PresageError for a forecaster that asks a language model: the user would pay for its requests."""
    if name in ("llm", "blend"):
        raise PresageError(f"the forecaster {name} asks a language model, which is not done for agents; leave it out")


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    refuse_models(asked.get("forecaster"))
    return await session.work("forecast", session.request(asked), tell)


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    from presage.cli import forecast
    from presage.forecasters.from_names import ask
    from presage.mcp.desk import desk

    with desk(request) as given:
        forecaster = request.get("forecaster", "learned")
        say(f"compiling {len(given.kernels)} candidates", 0.1)
        wrong = given.unreadable()
        asked = ask(
            given.problem,
            [each for each in given.kernels if each not in wrong],
            given.anchor,
            request.get("target"),
            rehearse=request.get("rehearse", False),
        )
        say("forecasting", 0.8)
        predictions = asked.forecast(forecaster)
        kernels = [candidate.kernel for candidate in asked.candidates]
        told = forecast.decided(kernels, predictions, request.get("policy", "confident"))
        found = forecast.document(asked, forecaster, told)
        working = iter(found["forecasts"])
        found["forecasts"] = [_broken(each, wrong[each]) if each in wrong else next(working) for each in given.kernels]
        return documents.whole("forecast", found)


def _broken(spec: str, why: str) -> dict[str, Any]:
    """Return the entry for a source that cannot be loaded as a kernel."""
    name = spec.partition("@")[0]
    language = {".c": "c", ".cu": "cuda"}.get(name[name.rfind(".") :], "torch")
    return {
        "kernel": {"name": spec, "hash": "", "language": language, "values": {}},
        "mean": None,
        "quantiles": None,
        "p_fail": 1.0,
        "forecast": None,
        "decision": {"action": "broken", "reason": why},
        "notes": [],
    }


TOOL = Tool(
    name="forecast",
    title="Forecast speedups",
    description="Forecast the speedup of up to 64 candidate kernels over the anchor, without running any: a"
    " distribution for each, the chance that it fails, and whether it is worth a measurement. Costs no budget and takes"
    " seconds; hand over all candidates in one call. A candidate that does not compile says why.",
    takes={
        "problem": PROBLEM,
        "kernels": {**KERNELS, "description": "The candidates."},
        "target": {**TARGET, "description": f"{TARGET['description'][:-1]}, or cpu for C kernels."},
        "anchor": {**KERNEL, "description": "What speedups are relative to. Default: the problem's seed kernel."},
        "forecaster": FORECASTER,
        "policy": POLICY,
        "rehearse": {
            "type": "boolean",
            "description": "Run each candidate on the CPU first, on small inputs, in the sandbox: a note says which"
            " compute something else than they should. A second or two for each. Default: false.",
        },
    },
    needs=("problem", "kernels"),
    gives=document("forecast"),
    call=call,
)
