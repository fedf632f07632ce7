"""What an answer may be off by is found from answers that tell it, and for each case by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices.worker import examiner, tensors  # noqa: E402
from presage.devices.worker.examiner import ExaminerRunner  # noqa: E402

SETTINGS = {
    "convention": "one-file",
    "seed": 1,
    "tolerances": {"float32": 1e-4},
    "keeps_tolerance": False,
    "for_gpu": False,
}


class Asked:
    """An examiner in this process, for a function of one tensor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reference: Any, inputs: Any) -> None:
        module = SimpleNamespace(reference=reference, inputs=inputs)
        monkeypatch.setattr(examiner, "load_reference", lambda problem: module)
        self._memory = torch.empty(1 << 16, dtype=torch.uint8)
        before = torch.is_grad_enabled()
        self._runner = ExaminerRunner({"problem": SETTINGS}, "cpu", self._at)
        torch.set_grad_enabled(before)

    def _at(self, offset: int, size: int) -> Any:
        return self._memory[offset : offset + size]

    def check(self, data: Any, output: Any, **case: int) -> dict[str, Any]:
        template, inputs, _ = tensors.split((data,), torch)
        arrays, offset, offsets = [*inputs, output], 0, []
        for array in arrays:
            memory = tensors.to_bytes(array, torch)
            self._at(offset, memory.numel()).copy_(memory)
            offsets.append(offset)
            offset += memory.numel()
        described = [tensors.describe(array) for array in arrays]
        command = {"case": case, "data": template, "inputs": described[:-1], "outputs": described[-1:]}
        return self._runner.check(command | {"offsets": offsets})


def test_zeros_of_one_draw_do_not_hold_others_to_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, lambda x: torch.relu(x) / 3, lambda: torch.randn(64))
    negative, values = -torch.ones(64), torch.linspace(-1, 1, 64)
    right = torch.relu(values) / 3
    assert asked.check(negative, torch.zeros(64))["wrong"] is None
    assert asked.check(values, right * (1 + 1e-6))["wrong"] is None
    assert asked.check(values, right * 1.01)["wrong"]
    assert asked.check(values, torch.zeros(64))["wrong"]


def test_zeros_of_all_draws_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, lambda x: x - x, lambda: torch.randn(64))
    for _ in range(2):
        told = asked.check(torch.randn(64), torch.zeros(64))
        assert told["wrong"] is None
        assert "would let zeros" in told["note"]
        assert asked.check(torch.randn(64), torch.full((64,), 1e-5))["wrong"]


def test_each_case_has_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of one are so small that the tolerance would swallow them, and those of the other are not."""
    asked = Asked(monkeypatch, lambda x: x * 2, lambda scale: torch.randn(64) * scale)
    small, large = torch.linspace(-1, 1, 64) * 1e-6, torch.linspace(-1, 1, 64)
    assert asked.check(small, small * 2, scale=0)["wrong"] is None
    assert asked.check(large, large * 2 + 1e-5, scale=1)["wrong"] is None
    assert asked.check(small, small * 2 + 1e-8, scale=0)["wrong"]
