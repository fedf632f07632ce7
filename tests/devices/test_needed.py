"""What every kernel has to read is found out by asking the reference."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elsewhere import WIDE

from presage import Problem
from presage.devices.cpu import CpuDevice
from presage.problems import registry

torch = pytest.importorskip("torch")

from presage.devices.worker.needed import needed  # noqa: E402

DRAWS = torch.Generator().manual_seed(1)
SQUARE = torch.rand(64, 64, generator=DRAWS)
LONG = torch.rand(1 << 20, generator=DRAWS)
INDEX = torch.arange(0, 64, 4)

ANSWERS = {
    "all of both": (lambda x, y: [x + y], (SQUARE, SQUARE + 1), [0, 1]),
    "a product": (lambda x, y: [x @ y], (SQUARE, SQUARE), [0, 1]),
    "an average": (lambda x: [x.mean()], (LONG,), [0]),
    "an average in half precision": (lambda x: [x.mean()], (LONG.half(),), [0]),
    "the largest of each row": (lambda x: [x.amax(1)], (SQUARE,), [0]),
    "signs": (lambda x: [x > 0.5], (SQUARE,), [0]),
    "some rows of a table": (lambda x, i: [x[i]], (SQUARE, INDEX), []),
    "a half": (lambda x: [x.tril()], (SQUARE,), []),
    "rounding errors": (lambda x: [(x - x.mean(1, keepdim=True)).mean(1)], (SQUARE,), []),
    "nothing": (lambda x, y: [x * 0 + y], (SQUARE, SQUARE), [1]),
    "the same everywhere": (lambda x: [x.exp()], (torch.ones(64, 64),), []),
    "much beside little": (lambda x, y: [x + y], (LONG, torch.ones(1)), [0]),
    "what is no number": (lambda x: [x + 1], (torch.full((64,), torch.nan),), []),
    "no values": (lambda x: [x + 1], (torch.ones(0),), []),
}


def found(answer: Callable[..., list[Any]], inputs: tuple[Any, ...], seconds: float = 60.0) -> list[int]:
    def wide() -> list[Any]:
        return answer(*(x.double() if x.is_floating_point() else x for x in inputs))

    return needed(inputs, lambda: answer(*inputs), wide, 1, seconds, torch)


@pytest.mark.parametrize(("answer", "inputs", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_only_what_matters_has_to_be_read(
    answer: Callable[..., list[Any]], inputs: tuple[Any, ...], expected: list[int]
) -> None:
    own = tuple(tensor.clone() for tensor in inputs)
    assert found(answer, own) == expected
    assert all(torch.equal(*pair) for pair in zip(own, inputs, strict=True) if not inputs[0].isnan().any())


def test_of_chance_and_in_no_time_nothing_is_found_out() -> None:
    count = itertools.count()
    assert found(lambda x: [x + next(count)], (SQUARE.clone(),)) == []
    assert found(lambda x: [x + 1], (SQUARE.clone(),), seconds=0.0) == []


def test_a_problem_s_inputs_count_if_they_have_to_be_read(cpu: CpuDevice, tmp_path: Path, task: Path) -> None:
    def moved(problem: Problem) -> int:
        with cpu.posed(problem, 60.0) as posed:
            (case,) = posed.timed["cpu"]
            return posed.moved_bytes(case)

    (tmp_path / "part.py").write_text(WIDE.replace("{result}", "x[:, ::2] + 1").replace("{columns}", "256"))
    (tmp_path / "all.py").write_text(WIDE.replace("{result}", "x[:, ::2] + x[:, 1::2]").replace("{columns}", "256"))
    assert moved(registry.get(str(tmp_path / "part.py"))) == 0
    assert moved(registry.get(str(tmp_path / "all.py"))) == 4 * 4 * (256 + 128)
    assert moved(registry.get(str(task))) == 3 * 128 * 128 * 4
