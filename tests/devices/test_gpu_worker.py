"""What a GPU worker copies and says of a kernel's outputs; no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    made._outputs, made._overlapping, made._described = [expected], [], []
    return made, copied


HERE = {"type": "torch.Tensor", "dtype": "float32", "shape": [4, 3], "contiguous": True, "on_gpu": False}


def collected(
    result: Any, inputs: Sequence[range] = (), any_order: bool = False
) -> tuple[list[Any], list[tuple[int, int, int]]]:
    made, copied = runner(HERE)
    made._any_order = any_order
    made._collect(result, Slot((), [], [256], list(inputs)))
    return made._described, copied


def test_what_is_returned_is_copied_and_described() -> None:
    x = torch.rand(4, 3)
    described, copied = collected(x)
    assert described == [[HERE | {"is_input": False, "stride": [3, 1]}]]
    assert copied == [((1 << 20) + 256, x.data_ptr(), 48)]


def test_a_view_of_an_input_is_told_wherever_it_begins() -> None:
    x = torch.rand(6, 3)
    addresses = range(x.data_ptr(), x.data_ptr() + x.nbytes)
    for view in (x[:4], x[2:]):
        assert collected((view,), [addresses])[0][0][0]["is_input"] is True
    assert collected((torch.rand(4, 3),), [addresses])[0][0][0]["is_input"] is False


def test_an_output_with_gaps_is_copied_without_them_where_that_is_allowed() -> None:
    gaps = torch.rand(4, 6)[:, ::2]
    assert collected(gaps)[1] == []
    described, ((_, source, size),) = collected(gaps, any_order=True)
    assert described == [[HERE | {"is_input": False, "stride": [3, 1]}]]
    assert source != gaps.data_ptr()
    assert size == 48


def test_rows_that_share_memory_are_copied_only_where_the_reference_has_such() -> None:
    """To write them out is the kernel's work."""
    repeated = torch.rand(3).expand(4, 3)
    for may, copies in ((False, 0), (True, 1)):
        made, copied = runner(HERE)
        made._any_order, made._overlapping = True, [may]
        made._collect(repeated, Slot((), [], [256], []))
        assert len(copied) == copies
        ((described,),) = made._described
        assert described["contiguous"] is may


@pytest.mark.parametrize(
    "result", [torch.zeros(4, 4), torch.zeros(4, 3).half(), torch.nn.Parameter(torch.zeros(4, 3)), None, 5, ()]
)
def test_what_is_not_as_expected_is_not_copied(result: Any) -> None:
    assert collected(result)[1] == []


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
        made._collect(x, Slot((), [], [256], []))
    assert asked == []
    assert len(copied) == 1
