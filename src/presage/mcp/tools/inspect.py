"""inspect: compile or trace a kernel without a GPU, and return the static report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.cli import documents
from presage.mcp.tool import KERNEL, PROBLEM, TARGET, Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    asked["kernels"] = [asked.pop("kernel")]
    return await session.work("inspect", session.request(asked), tell)


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    import presage
    from presage.cli import inspect
    from presage.mcp.desk import desk
    from presage.problems import static

    with desk(request) as given:
        problem = presage.load_problem(given.problem)
        kernel = presage.load_kernel(problem, given.kernels[0])
        target, cases = inspect.target_of(request.get("target", "h200")), problem.timed["gpu"]
        (reports,) = static.reports(problem, [kernel], cases, target)
        found = inspect.document(problem, kernel, target, cases, reports)
        if not request.get("steps"):
            found["trace"] = None
            found["cases"] = [each | {"trace": None} for each in found["cases"]]
        return documents.whole("inspect", found)


TOOL = Tool(
    name="inspect",
    title="Inspect a kernel",
    description="Compile one CUDA or Triton kernel, or trace a module, without a GPU: registers, spills, shared memory,"
    " occupancy, instructions, bytes moved, bank conflicts, for each timed case. A compile error comes with the"
    " compiler's message. Costs no budget.",
    takes={
        "problem": PROBLEM,
        "kernel": KERNEL,
        "target": TARGET,
        "steps": {"type": "boolean", "description": "Also list each step of a module, which can be long."},
    },
    needs=("problem", "kernel"),
    gives=document("inspect"),
    call=call,
)
