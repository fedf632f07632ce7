"""An output is held to no more digits than the reference has, and to no fewer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices.worker.exactness import is_as_exact  # noqa: E402

COUNT = 20_000
GENERATOR = torch.Generator().manual_seed(1)


def noise(size: float = 1e-4) -> Any:
    return size * torch.randn(COUNT, generator=GENERATOR, dtype=torch.float64)


EXACT = torch.randn(COUNT, generator=GENERATOR, dtype=torch.float64)
WIDE = EXACT * torch.logspace(-6, 3, COUNT, dtype=torch.float64)
"""Values from millionths to thousands, which are off by as much of themselves."""
ANSWERS: dict[str, tuple[Any, Any, Callable[[Any], Any], bool]] = {
    "as far off elsewhere": (EXACT, EXACT + noise(), lambda x: x + noise(), True),
    "exact": (EXACT, EXACT + noise(), lambda x: x, True),
    "eight times as far": (EXACT, EXACT + noise(), lambda x: x + noise(8e-4), False),
    "all off by twice what the worst is": (EXACT, EXACT + noise(), lambda x: x + 8e-4, False),
    "one far off": (EXACT, EXACT + noise(), lambda x: x + 0.01 * (torch.arange(COUNT) == 7), False),
    "no number": (EXACT, EXACT + noise(), lambda x: torch.where(torch.arange(COUNT) == 7, torch.nan, x), False),
    "zeros": (EXACT, EXACT + noise(), torch.zeros_like, False),
    "a reference that tells nothing": (EXACT, EXACT + noise(0.1), lambda x: x + noise(0.1), False),
    "wide": (WIDE, WIDE * (1 + noise()), lambda x: x * (1 + noise()), True),
    "wide, and nothing where it is small": (
        WIDE,
        WIDE * (1 + noise()),
        lambda x: torch.where(x.abs() < 0.01, 0, x),
        False,
    ),
    "another shape": (EXACT, EXACT + noise(), lambda x: x[:5], False),
}


@pytest.mark.parametrize(("exact", "right", "made", "passes"), ANSWERS.values(), ids=ANSWERS)
def test_as_exact(exact: Any, right: Any, made: Callable[[Any], Any], passes: bool) -> None:
    assert is_as_exact(right.float(), exact, made(exact).float()) is passes


@pytest.mark.parametrize("is_triangle", [False, True])
def test_a_sum_one_after_the_other_is_as_exact_as_a_library_s(is_triangle: bool) -> None:
    left, right = (torch.randn(64, 4096, generator=GENERATOR) for _ in range(2))
    exact = left.double() @ right.double().T
    in_parts = torch.stack([a @ b.T for a, b in zip(left.split(1024, 1), right.split(1024, 1), strict=True)]).sum(0)
    one_by_one = torch.zeros(64, 64)
    for place in range(4096):
        one_by_one += left[:, place, None] * right[None, :, place]
    shape = torch.triu if is_triangle else torch.clone
    assert is_as_exact(shape(in_parts), shape(exact), shape(one_by_one))
    assert not is_as_exact(shape(in_parts), shape(exact), shape(left.half().float() @ right.half().float().T))


def test_few_values_and_whole_numbers() -> None:
    assert is_as_exact(EXACT[:3].float() + 1e-4, EXACT[:3], EXACT[:3].float() - 1e-4)
    assert not is_as_exact(torch.ones(3, dtype=torch.int64), torch.ones(3), torch.ones(3, dtype=torch.int64))
    assert not is_as_exact(torch.zeros(0), torch.zeros(0), torch.zeros(0))
