"""Which answers of a GPU worker are refused, and who is to blame when memory runs out; no GPU is needed."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from presage import Case, Effort, Status
from presage.devices.child import VerdictError, Window
from presage.devices.gpu_memory import CrowdedError
from presage.devices.gpu_trial import GpuTrial
from presage.devices.module_trial import ModuleTrial
from presage.kernels.kernel import from_source
from presage.problems import registry

CALLS = 8
ADDITION = registry.get("vector_add")
CASE = Case({"n": 1000})
EAGER = from_source("import torch\ndef custom_kernel(data):\n    return data[0] + data[1]\n", ".py", "k.py")
BARE = registry.find_kernel(ADDITION, "naive.cu").render()
ANSWER = {"samples_ns": [1e5] * CALLS, "tails_ns": [5e3] * CALLS, "queued_ns": [1e4] * CALLS}
"""An honest answer: eight calls of 100 us."""
RIGHT = {
    "type": "torch.Tensor",
    "dtype": "float32",
    "shape": [1000],
    "contiguous": True,
    "on_gpu": True,
    "is_input": False,
    "stride": [1],
}


DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]


class Nothing:
    """Inputs of a call that takes none."""

    def __getitem__(self, slot: int) -> tuple[()]:
        return ()

    def reserve(self, slots: int) -> None:
        return


@pytest.mark.parametrize(
    ("outputs", "timed", "status"),
    [
        pytest.param([[RIGHT]], True, Status.OK, id="as it should be"),
        pytest.param([[RIGHT, RIGHT]], True, Status.WRONG_RESULT, id="too many"),
        pytest.param([[]], True, Status.WRONG_RESULT, id="too few"),
        pytest.param([[{"type": "candidate.Lazy"}]], True, Status.WRONG_RESULT, id="a class of its own"),
        pytest.param([[RIGHT | {"dtype": "float16"}]], True, Status.WRONG_RESULT, id="another dtype"),
        pytest.param([[RIGHT | {"shape": [2**62, 2**62]}]], True, Status.WRONG_RESULT, id="another shape"),
        pytest.param([[RIGHT | {"contiguous": False}]], True, Status.WRONG_RESULT, id="a view with gaps"),
        pytest.param([[RIGHT | {"contiguous": 1e400}]], True, Status.WRONG_RESULT, id="not even a truth"),
        pytest.param([[RIGHT | {"on_gpu": False}]], True, Status.WRONG_RESULT, id="in the host's memory"),
        pytest.param([[RIGHT | {"is_input": True}]], True, Status.CHEATING, id="its input"),
        pytest.param([[RIGHT | {"is_input": True}]], False, Status.OK, id="its input, where the result decides"),
        pytest.param(
            [[{k: v for k, v in RIGHT.items() if k != "is_input"}]], True, Status.CHEATING, id="no word of it"
        ),
        pytest.param([[RIGHT | {"dtype": DEEP}]], True, Status.CHEATING, id="a dtype that cannot be written"),
        pytest.param([[5]], True, Status.CHEATING, id="a number"),
        pytest.param([["torch.Tensor"]], True, Status.CHEATING, id="a text"),
        pytest.param([None], True, Status.CHEATING, id="nothing"),
        pytest.param([], True, Status.CHEATING, id="no calls"),
        pytest.param({"0": [RIGHT]}, True, Status.CHEATING, id="not a list"),
        pytest.param(None, True, Status.CHEATING, id="no outputs"),
    ],
)
def test_what_was_returned_must_be_described(outputs: Any, timed: bool, status: Status) -> None:
    trial = ModuleTrial(ADDITION, EAGER, Effort())
    answer = {} if outputs is None else {"outputs": outputs}
    trial.attempt(trial._refuse_returned, CASE, 0, Window(0, 0, 0, 1, answer), timed)
    assert (trial.verdict.status if trial.verdict else Status.OK) == status


def test_a_stride_must_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON has infinite ones, too. What the parent cannot read ends the trial, and not the measurement of all."""
    trial = ModuleTrial(ADDITION, EAGER, Effort())
    monkeypatch.setattr(type(ADDITION), "any_order", True)
    answer = {"outputs": [[RIGHT | {"stride": [math.inf]}]]}
    trial.attempt(trial._refuse_returned, CASE, 0, Window(0, 0, 0, 1, answer), True)
    assert trial.verdict is not None
    assert trial.verdict.status is Status.CHEATING


def test_strides_of_nothing_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(ADDITION), "any_order", True)
    trial, part = ModuleTrial(ADDITION, EAGER, Effort()), RIGHT | {"stride": [1 << 70, 1 << 70]}
    assert trial._order(ADDITION.outputs[0], (0, 5), part) == ()


class FakeChild:
    """A worker that gives one answer."""

    scratch = "/tmp/none"

    def __init__(self, answer: dict[str, Any]) -> None:
        self.arena = SimpleNamespace(slots=[[]] * CALLS, settle=lambda: None)
        self._answer = answer

    def window(self, calls: int, **details: Any) -> Window:
        return Window(0, 0, 0, calls, self._answer)

    def output(self) -> str:
        return ""

    def kill(self) -> None:
        return


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param({"samples_ns": None}, id="no times"),
        pytest.param({"samples_ns": [1000.0] * (CALLS - 1)}, id="one call left out"),
        pytest.param({"samples_ns": [1000.0] * (CALLS - 1) + [-1.0]}, id="less than nothing"),
        pytest.param({"samples_ns": [float("nan")] * CALLS}, id="not a number"),
        pytest.param({"samples_ns": [float("inf")] * CALLS}, id="for ever"),
        pytest.param({"samples_ns": [True] * CALLS}, id="truths"),
        pytest.param({"samples_ns": ["1"] * CALLS}, id="texts"),
        pytest.param({"samples_ns": {"0": 1.0}}, id="not a list"),
        pytest.param({"tails_ns": []}, id="no tails"),
        pytest.param({"tails_ns": [[]] * CALLS}, id="tails that are lists"),
        pytest.param({"queued_ns": None}, id="not queued"),
        pytest.param({"queued_ns": [float("nan")] * CALLS}, id="queued for no time"),
    ],
)
def test_a_forged_answer_is_refused(forged: dict[str, Any]) -> None:
    trial = GpuTrial(ADDITION, BARE, Effort())
    trial.child = FakeChild(ANSWER | forged)  # type: ignore[assignment]
    with pytest.raises(VerdictError, match="forged") as verdict:
        trial._window(CALLS)
    assert verdict.value.status is Status.CHEATING


GIB = 1 << 30


class Hoarding(FakeChild):
    """A worker that holds so much of the GPU's memory until it is killed."""

    def __init__(self, held: int, free: int) -> None:
        super().__init__(ANSWER)
        self.held, self.free = held, free
        self.arena.write_inputs = self.no_room

    def no_room(self, slot: int, values: Any) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    def kill(self) -> None:
        self.free, self.held = self.free + self.held, 0

    def memory(self) -> tuple[int, int]:
        return self.free, 80 * GIB


def short_of_memory(held_gib: int, room_gib: int) -> ModuleTrial:
    trial = ModuleTrial(ADDITION, EAGER, Effort())
    child = trial.child = Hoarding(held_gib * GIB, (room_gib - held_gib) * GIB)  # type: ignore[assignment]
    trial.memory, trial.room = child.memory, room_gib * GIB  # type: ignore[union-attr]
    return trial


@pytest.mark.parametrize(
    ("held_gib", "room_gib", "complaint", "status"),
    [
        pytest.param(1, 70, "CUDA out of memory. Tried to allocate 1024.00 GiB", Status.RUNTIME_ERROR, id="a terabyte"),
        pytest.param(60, 70, "CUDA out of memory. Tried to allocate 20.00 GiB", Status.RUNTIME_ERROR, id="its doing"),
        pytest.param(1, 5, "CUDA out of memory. Tried to allocate 8.00 GiB", Status.DEVICE_FAULT, id="others have it"),
        pytest.param(1, 5, "CUDA out of memory. Tried to allocate 60.00 GiB", Status.RUNTIME_ERROR, id="far too much"),
        pytest.param(1, 5, "CUDA_ERROR_OUT_OF_MEMORY", Status.DEVICE_FAULT, id="as the driver says it"),
        pytest.param(1, 70, "CUDA_ERROR_OUT_OF_MEMORY", Status.RUNTIME_ERROR, id="with nearly all of the GPU"),
    ],
)
def test_who_is_to_blame_when_a_kernel_runs_out_of_memory(
    held_gib: int, room_gib: int, complaint: str, status: Status
) -> None:
    trial = short_of_memory(held_gib, room_gib)
    trial.end(VerdictError(Status.RUNTIME_ERROR, complaint))
    assert trial.verdict is not None
    assert trial.verdict.status is status
    assert f"it held {held_gib}.0 GiB, and {room_gib}.0 GiB of the GPU's 80.0 GiB were free" in trial.verdict.reason
    assert isinstance(trial.verdict, CrowdedError) == (status is Status.DEVICE_FAULT), "which is tried again"


@pytest.mark.parametrize(
    ("held_gib", "room_gib", "status"),
    [
        pytest.param(69, 70, Status.RUNTIME_ERROR, id="it took all there was"),
        pytest.param(45, 50, Status.RUNTIME_ERROR, id="it took nearly all there was"),
        pytest.param(4, 5, Status.DEVICE_FAULT, id="others left it little"),
        pytest.param(1, 5, Status.DEVICE_FAULT, id="others have it"),
        pytest.param(1, 70, Status.DEVICE_FAULT, id="checking needs more than there is"),
    ],
)
def test_who_is_to_blame_when_a_kernel_cannot_be_checked(held_gib: int, room_gib: int, status: Status) -> None:
    trial = short_of_memory(held_gib, room_gib)
    trial.attempt(trial.run, CASE, Nothing(), 1, True)
    assert trial.verdict is not None
    assert trial.verdict.status is status
    assert "cannot be checked" in trial.verdict.reason


def test_that_a_worker_cannot_start_is_no_kernels_fault() -> None:
    trial = short_of_memory(0, 1)
    trial.end(VerdictError(Status.DEVICE_FAULT, "a worker process did not start: out of memory"))
    assert isinstance(trial.verdict, CrowdedError)


def test_what_is_not_about_memory_is_not_caught() -> None:
    trial = short_of_memory(1, 5)
    trial.child.no_room = trial.child.arena.write_inputs = None  # type: ignore[union-attr]
    with pytest.raises(TypeError):
        trial.attempt(trial.run, CASE, Nothing(), 1, True)
