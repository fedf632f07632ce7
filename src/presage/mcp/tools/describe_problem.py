"""describe_problem: return the signature, cases, tolerance and kernels of a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.cli import documents
from presage.mcp.tool import PROBLEM, Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    return await session.work("describe_problem", session.request(asked), tell)


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    import presage
    from presage.cli import problems
    from presage.mcp.desk import desk
    from presage.problems.external import ExternalProblem

    with desk(request) as given:
        problem = presage.load_problem(given.problem)
        if isinstance(problem, ExternalProblem):
            return documents.whole("problems", {"problems": [problems.external_detail(problem, "cpu")]})
        return documents.whole("problems", {"problems": [problems.detail(problem)]})


TOOL = Tool(
    name="describe_problem",
    title="Describe a problem",
    description="What a kernel for this problem must look like: its signature, inputs, outputs, the sizes it is checked"
    " and timed on, the tolerance, the bytes and operations it cannot avoid, and the kernels that are there already.",
    takes={"problem": PROBLEM},
    needs=("problem",),
    gives=document("problems"),
    call=call,
)
