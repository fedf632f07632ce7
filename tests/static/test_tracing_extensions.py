"""What extensions do beside launches is traced: copies, graphs, variables of the device, and equal launches once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_values_that_an_extension_copies_to_the_host_are_not_made_up(has_triton: None) -> None:
    from presage.static.inline_cuda import NotSupportedError
    from presage.static.tracing.cuda_launches import CudaLaunches
    from presage.static.tracing.recorder import Recorder

    with pytest.raises(NotSupportedError, match="copies values from the GPU to the host"):
        CudaLaunches(Recorder(has_gpu=False)).copy("device_to_host", 1, 1 << 40, 16)


class OnGpu:
    """In the place of what launches kernels on a GPU."""

    def __call__(self, *_: Any) -> None: ...
    def write(self, *_: Any) -> None: ...


def _recorded(do: Callable[[Any, Any], object]) -> dict[str, Any]:
    import torch

    from presage.static.tracing.cuda_launches import CudaLaunches
    from presage.static.tracing.recorder import Recorder

    recorder = Recorder(has_gpu=False)
    launches = CudaLaunches(recorder, OnGpu())
    launches.copy("device_to_host", 1, 1 << 40, 16)  # before the call: it is no part of it
    x = torch.zeros(8)
    recorder.begin([x])
    do(launches, x)
    document: dict[str, Any] = recorder.end(x)[0]
    return document


@pytest.mark.parametrize(
    ("do", "lacks", "steps"),
    [
        (lambda cuda, x: cuda.copy("device_to_host", 8, x.data_ptr(), 4), "copies values from the GPU to the host", []),
        (lambda cuda, x: cuda.copy("default", 8, x.data_ptr(), 4), "memory that belongs to no tensor", []),
        (lambda cuda, x: cuda.copy("host_to_device", x.data_ptr(), 8, 4), "memory that belongs to no tensor", []),
        (lambda cuda, x: cuda.other("cudaGraphLaunch"), "calls cudaGraphLaunch, which is not recorded", []),
        (lambda cuda, x: cuda.copy("host_to_host", 8, 16, 4), None, []),
        (lambda cuda, x: cuda.copy("default", x.data_ptr() + 16, x.data_ptr(), 16), None, ["presage::copy"]),
        (lambda cuda, x: cuda.fill(x.data_ptr() + 4, 0, 8), None, ["presage::fill"]),
        (lambda cuda, x: cuda.sync("cudaDeviceSynchronize"), None, ["cudaDeviceSynchronize"]),
    ],
)
def test_what_host_code_copies_on_a_gpu_is_recorded_or_said_to_lack(
    has_triton: None, do: Any, lacks: str | None, steps: list[str]
) -> None:
    document = _recorded(do)
    assert (lacks in document["lacks"]) if lacks else document["lacks"] is None
    assert [step["name"] for step in document["steps"]] == steps


def test_what_a_captured_graph_lacks_a_call_that_replays_it_lacks(has_triton: None) -> None:
    import torch

    from presage.static.tracing.recorder import Recorder

    recorder, x = Recorder(has_gpu=False), torch.zeros(8)
    recorder.begin_capture()
    recorder.lack("it copies what it should not")
    captured = recorder.end_capture()
    found = []
    for does in (lambda: None, lambda: recorder.replay(captured)):
        recorder.begin([x])
        does()
        found.append(recorder.end(x)[0]["lacks"])
    assert found == [None, "it copies what it should not"]


def test_a_module_that_writes_to_variables_of_the_device_is_forecast_and_not_replayed(has_triton: None) -> None:
    import torch

    from presage.static import inline_cuda
    from presage.static.tracing.cuda_launches import CudaLaunches
    from presage.static.tracing.recorder import Recorder

    def traced(run: OnGpu | None) -> tuple[Any, Any]:
        recorder, unit = Recorder(has_gpu=False), inline_cuda.Unit("", "k.cu", "sm_90a")
        launches, code = CudaLaunches(recorder, run), inline_cuda.DeviceCode(b"code", "", "", "sm_90a")
        launches.to_variable(unit, "taps", 0, 1, 8, 0)
        unit.codes.append(code)
        recorder.begin([])
        launches.launch(code, "f", inline_cuda.Configuration((1, 1, 1), (32, 1, 1)), [])
        document, _ = recorder.end(torch.zeros(1))
        return document["lacks"], document["notes"]

    why = "its host code writes to taps, a variable of the device"
    assert traced(None) == (None, [why])
    assert traced(OnGpu()) == (why, [])


def test_equal_launches_are_walked_once(has_triton: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from presage.static.tracing import run

    def launch(grid: int, *parameters: tuple[str, list[list[int]]]) -> dict[str, Any]:
        given = [{"hex": content, "pointers": pointers} for content, pointers in parameters]
        about = {"name": "k", "cubin": 0, "grid": [grid, 1, 1], "block": [32, 1, 1], "cluster": [1, 1, 1]}
        return {"kind": "cuda", "parameters": given, **about}

    one, other = ("00" * 8, [[0, 1, 0]]), ("11" * 8, [[0, 2, 0]])
    steps = [launch(1, one), launch(1, other), launch(2, one), {"kind": "sync"}, launch(1, ("11" * 8, []))]
    monkeypatch.setattr(run, "_walked", lambda document, step, texts: {"of": steps.index(step)})
    assert [found and found["of"] for found in run._executed({"steps": steps}, {})] == [0, 0, 2, 3, 4]
