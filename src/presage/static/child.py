"""The sandboxed child that compiles one kernel for a static report. It writes one JSON document and exits."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from presage.sandbox.launch import Gate

_SMALL = (
    'extern "C" __global__ void small(float *x, int n) { for (int i = threadIdx.x; i < n; i += 32) x[i] = x[i + n]; }'
)


def warm_up_cuda() -> None:
    """Load the compiler, which is slow, and all Python modules that walking needs. The sandbox of a CUDA child has no
    access to Python's files."""
    import numpy.ma  # noqa: F401  NumPy imports it late

    from presage.core.errors import PresageError
    from presage.static import nvrtc, toolkit

    with contextlib.suppress(nvrtc.CompileError, OSError, PresageError):  # each request reports the error itself
        includes = [str(folder) for folder in toolkit.includes()]
        done = nvrtc.compile(_SMALL, "sm_80", str(toolkit.nvrtc()), includes)
        _walk(done.ptx, {"name": "small", "integers": [1000], "grid": [1, 1, 1], "block": [32, 1, 1]})


def warm_up_triton() -> None:
    from presage.static import inline_cuda
    from presage.static.tracing import run

    run.warm_up()
    inline_cuda.warm_up()


def answer(settings: dict[str, Any], gate: Gate) -> None:
    """Answer the request in the current folder, and exit."""
    (writer,) = settings["descriptors"]
    gate.close()
    itself = os.getpid()
    try:
        request = json.loads(Path("request.json").read_text())
        answered = _COMPILERS[request["compiler"]](request)
    except BaseException:
        answered = {"status": "unknown", "error": traceback.format_exc(limit=-3)}
    if os.getpid() != itself:  # a process that the module has forked
        os._exit(0)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(json.dumps(answered).encode())
    os._exit(0)


def _cuda(request: Mapping[str, Any]) -> dict[str, Any]:
    from presage.static import nvrtc

    try:
        done = nvrtc.compile(request["source"], request["arch"], request["library"], request["includes"])
    except nvrtc.CompileError as error:
        return {"status": "compile_error", "error": str(error)}
    walks = [[each, _walk(done.ptx, each)] for each in request["cases"]]
    return {"status": "ok", "cubins": [base64.b64encode(done.cubin).decode()], "log": done.log, "walks": walks}


def _walk(text: str, launch: Mapping[str, Any]) -> Any:
    from presage.static import walk

    return walk.of_launch(text, launch["name"], launch["integers"], launch["grid"], launch["block"])


def _triton(request: Mapping[str, Any]) -> dict[str, Any]:
    from presage.static.tracing import run

    return run.run(request)


_COMPILERS = {"cuda": _cuda, "triton": _triton}
