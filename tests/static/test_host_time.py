"""Host code that never ends does not hold up a trace, and a slow compiler is not taken for it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from presage import PresageError, StaticReport
from presage.kernels.kernel import from_source
from presage.static import hardware, reporting
from presage.static.launch_request import Job
from presage.static.trace import TensorSpec

pytest.importorskip("torch")

from presage.static.tracing.host_time import HostCodeTimeoutError, awaited, limited

X = ((64, 128), "float32")
BUSY = "import time\nend = time.process_time() + 0.8\nwhile time.process_time() < end: pass\n"


def test_host_code_is_stopped_and_a_compiler_is_not() -> None:
    with pytest.raises(HostCodeTimeoutError, match=r"after 0\.3 s of processor time"), limited(0.3):
        exec(compile(BUSY, "kernel.py", "exec"))
    with limited(0.3):
        exec(compile(BUSY, "/site-packages/triton/compiler/compiler.py", "exec"))


def test_host_code_that_sleeps_is_stopped() -> None:
    sleep = "import time\ntime.sleep(0.8)\n"
    with pytest.raises(HostCodeTimeoutError, match=r"after 0\.3 s; PRESAGE"), awaited(0.3):
        exec(compile(sleep, "kernel.py", "exec"))
    with awaited(0.3):
        exec(compile(sleep, "/site-packages/triton/compiler/compiler.py", "exec"))


def test_what_sleeps_in_one_case_is_not_tried_in_the_others(has_triton: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRESAGE_TRACE_SECONDS", "0.7")
    gpu = hardware.find("sm_90")
    once = (  # torch stays from one case to the next, and a kernel's own module does not
        "import time\nimport torch\n"
        "def custom_kernel(data):\n    assert not hasattr(torch, 'tried')\n    torch.tried = True\n"
    )

    def reports(text: str) -> list[StaticReport]:
        kernel = from_source(text, ".py", "kernel.py").render()
        return reporting.reports([Job(kernel, {}, (TensorSpec((size,), "float32"),), gpu) for size in (64, 65, 66)])

    assert any("assert not hasattr" in (report.error or "") for report in reports(f"{once}    return data[0] + 1\n"))
    found = reports(f"{once}    time.sleep(100)\n")
    assert [report.status for report in found] == ["timeout"] * 3
    assert all("was still running after 2.1 s" in report.error for report in found)


def test_what_never_ends_is_said_to_be_still_running(
    has_triton: None, inspect_sources: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRESAGE_TRACE_SECONDS", "1")
    loop = "    while True:\n        pass\n"
    endless = f"import torch\ndef custom_kernel(data):\n{loop}"
    texts = [
        endless,
        f"import torch\nif True:\n{loop}",
        "import torch\ndef custom_kernel(data):\n    return data[0] + 1\n",
    ]
    call, load, right = inspect_sources(texts, ".py", X)
    for report in (call, load):
        assert report.status == "timeout"
        # On a busy machine, three seconds of waiting may be over first.
        assert re.match(
            r"the host code was still running after (1 s of processor time|3 s); PRESAGE_TRACE", report.error
        )
    assert "while True" in call.error
    assert right.status == "ok"


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_the_limit_is_a_positive_number(
    has_triton: None, inspect_sources: Any, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PRESAGE_TRACE_SECONDS", text)
    with pytest.raises(PresageError, match="not a positive number of seconds"):
        inspect_sources([f"import torch\nname = '{text}'\n"], ".py", X)
