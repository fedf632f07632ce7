"""What a GPU worker copies and says of a kernel's outputs; no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices.worker.gpu import Slot, TorchRunner  # noqa: E402


def runner(expected: dict[str, Any]) -> tuple[TorchRunner, list[tuple[int, int, int]]]:
    """A runner without a GPU, and what it has copied: to where, from where, how much."""
    copied: list[tuple[int, int, int]] = []
    made = TorchRunner.__new__(TorchRunner)
    made._torch, made._tensor, made._any_order = torch, torch.Tensor, False
    made._base, made._plainly = torch._C.TensorBase, torch._C.DisableTorchFunction
    made._gpu = type("Gpu", (), {"arena": 1 << 20, "__call__": lambda self, result: None})()  # type: ignore[assignment]
    made._copy = lambda to, source, size, stream: copied.append((to, source, size))
    made._outputs, made._described = [expected], []
    return made, copied


HERE = {"type": "torch.Tensor", "dtype": "float32", "shape": [4, 3], "contiguous": True, "on_gpu": False}


def collected(result: Any, inputs: set[int]) -> tuple[list[Any], list[tuple[int, int, int]]]:
    made, copied = runner(HERE)
    made._collect(result, Slot((), [], [256], inputs))
    return made._described, copied


def test_what_is_returned_is_copied_and_described() -> None:
    x = torch.rand(4, 3)
    described, copied = collected(x, set())
    assert described == [[HERE | {"is_input": False, "stride": [3, 1]}]]
    assert copied == [((1 << 20) + 256, x.data_ptr(), 48)]
    assert collected((x,), {x.data_ptr()})[0][0][0]["is_input"] is True


@pytest.mark.parametrize(
    "result", [torch.zeros(4, 4), torch.zeros(4, 3).half(), torch.nn.Parameter(torch.zeros(4, 3)), None, 5, ()]
)
def test_what_is_not_as_expected_is_not_copied(result: Any) -> None:
    assert collected(result, set())[1] == []


@contextmanager
def patched_tensor(late: Callable[[], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("data_ptr", "numel", "nbytes", "shape", "dtype", "is_cuda", "is_contiguous", "stride"):
            patch.setattr(torch.Tensor, name, property(lambda self: late()), raising=False)
        yield


@contextmanager
def function_mode(late: Callable[[], None]) -> Iterator[None]:
    class Late(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
            late()
            return function(*arguments, **(options or {}))

    with Late():
        yield


@pytest.mark.parametrize("attack", [patched_tensor, function_mode])
def test_nothing_foreign_runs_while_outputs_are_collected(attack: Any) -> None:
    asked: list[int] = []
    made, copied = runner(HERE)
    x = torch.rand(4, 3)
    with attack(lambda: asked.append(1)):
        made._collect(x, Slot((), [], [256], set()))
    assert asked == []
    assert len(copied) == 1
