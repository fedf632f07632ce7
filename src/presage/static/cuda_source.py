"""Static reports of `.cu` files: NVRTC compiles the source to a cubin, and the header declares the launches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from presage.kernels import expression
from presage.kernels.header import Launch
from presage.static import nvrtc, toolkit
from presage.static.launch_request import Job
from presage.static.report import Launched

_SPILLS = re.compile(
    r"Function properties for (\S+)\n[^\n]*?(\d+) bytes spill stores, (\d+) bytes spill loads", re.MULTILINE
)


class LaunchError(Exception):
    """The header's launch cannot be evaluated for this case."""

    def __init__(self, message: str, status: str = "runtime_error") -> None:
        super().__init__(message)
        self.status = status


def request(job: Job) -> dict[str, Any]:
    """The request to the child that compiles the source."""
    return {
        "compiler": "cuda",
        "source": job.kernel.source,
        "arch": job.target.compile_arch,
        "library": str(toolkit.nvrtc()),
        "includes": [str(folder) for folder in toolkit.includes()],
        "cases": _walks(job),
    }


def _walks(job: Job) -> list[dict[str, Any]]:
    """The launches to walk; none if one of them cannot be evaluated, an error that `launches` reports later."""
    try:
        return [_walk(job, launch) for launch in job.kernel.header.launches]
    except LaunchError:
        return []


def _walk(job: Job, launch: Launch) -> dict[str, Any]:
    sizes = {what: list(_sizes(job, launch, what)) for what in ("grid", "block")}
    return {"name": launch.entry, "integers": list(job.dims.values()), **sizes}


def answered(job: Job, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of an answer that is about this job: all of it, since the code is the same for all sizes."""
    return answer


def launches(job: Job, answer: Mapping[str, Any]) -> Iterator[Launched]:
    """Yield every launch of the header, at the case's size. Raises LaunchError."""
    spills = {name: int(stores) + int(loads) for name, stores, loads in _SPILLS.findall(answer["log"])}
    walks = {json.dumps(asked): walked for asked, walked in answer["walks"]}
    for launch in job.kernel.header.launches:
        yield Launched(
            name=launch.entry,
            grid=_sizes(job, launch, "grid"),
            block=_sizes(job, launch, "block"),
            dynamic_shared=_number(job, launch, launch.shared),
            cubin=answer["cubins"][0],
            spill_bytes=spills.get(launch.entry),
            executed=walks.get(json.dumps(_walk(job, launch))),
        )


@cache
def compiler() -> str:
    return f"NVRTC {nvrtc.version(str(toolkit.nvrtc()))}"


def _sizes(job: Job, launch: Launch, what: str) -> tuple[int, int, int]:
    sizes = [_number(job, launch, text) for text in getattr(launch, what)]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _number(job: Job, launch: Launch, text: str) -> int:
    try:
        return int(expression.evaluate(text, {**job.dims, **job.kernel.values}))
    except (expression.ExpressionError, ValueError, TypeError) as error:
        raise LaunchError(f"cannot launch {launch.entry}: {error}") from error
