"""An output is held to no more digits than the reference has, and to no fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices.worker import exactness  # noqa: E402
from presage.devices.worker.exactness import are_equal, is_as_exact  # noqa: E402
from presage.devices.worker.in_tf32 import InTf32  # noqa: E402

COUNT = 20_000
GENERATOR = torch.Generator().manual_seed(1)


def noise(size: float = 1e-4) -> Any:
    return size * torch.randn(COUNT, generator=GENERATOR, dtype=torch.float64)


EXACT = torch.randn(COUNT, generator=GENERATOR, dtype=torch.float64)
WIDE = EXACT * torch.logspace(-6, 3, COUNT, dtype=torch.float64)
"""Values from millionths to thousands, which are off by as much of themselves."""
ANSWERS: dict[str, tuple[Any, Any, Callable[[Any], Any], bool]] = {
    "as far off elsewhere": (EXACT, EXACT + noise(), lambda x: x + noise(), True),
    "as a deep network in TF32": (EXACT, EXACT + noise(0.007), lambda x: x + noise(0.007), True),
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
def test_as_exact(
    exact: Any, right: Any, made: Callable[[Any], Any], passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exactness, "_AT_ONCE", COUNT // 3)
    assert is_as_exact(right.float(), exact, made(exact).float()) is passes


def added_up(left: Any, right: Any) -> Any:
    """left @ right.T, one product after the other; in which order a library adds depends on the CPU."""
    found = torch.zeros(len(left), len(right))
    for one, other in zip(left.T, right.T, strict=True):
        found += one[:, None] * other
    return found


@pytest.mark.parametrize("is_triangle", [False, True])
def test_a_sum_one_after_the_other_is_as_exact_as_a_library_s(is_triangle: bool) -> None:
    left, right = (torch.randn(64, 4096, generator=GENERATOR) for _ in range(2))
    exact, one_by_one = left.double() @ right.double().T, added_up(left, right)
    parts = zip(left.split(1024, 1), right.split(1024, 1), strict=True)
    in_parts = torch.stack([added_up(*part) for part in parts]).sum(0)
    shape = torch.triu if is_triangle else torch.clone
    assert is_as_exact(shape(in_parts), shape(exact), shape(one_by_one))
    assert not is_as_exact(shape(in_parts), shape(exact), shape(left.half().float() @ right.half().float().T))


def test_few_values_and_whole_numbers() -> None:
    assert is_as_exact(EXACT[:3].float() + 1e-4, EXACT[:3], EXACT[:3].float() - 1e-4)
    assert not is_as_exact(torch.ones(3, dtype=torch.int64), torch.ones(3), torch.ones(3, dtype=torch.int64))
    assert not is_as_exact(torch.zeros(0), torch.zeros(0), torch.zeros(0))


@pytest.fixture
def settings() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def cut(tensor: Any, bits: int) -> Any:
    """Single precision with so many bits of the fraction."""
    lost = 23 - bits
    return ((tensor.float().view(torch.int32) + (1 << lost - 1)) & -(1 << lost)).view(torch.float32)


@pytest.mark.parametrize(("bits", "allowed", "passes"), [(10, True, True), (7, True, False), (10, False, False)])
def test_what_the_settings_let_torch_round_is_right(settings: None, bits: int, allowed: bool, passes: bool) -> None:
    """Convolutions in TF32, which is the default, whether the reference's own algorithm computes so or not; but not in
    bfloat16, and not where the reference asks for all digits."""
    torch.backends.cudnn.allow_tf32 = allowed
    generator = torch.Generator().manual_seed(5)
    image, weight = torch.randn(2, 64, 24, 24, generator=generator), torch.randn(32, 64, 3, 3, generator=generator) / 24
    convolve = torch.nn.functional.conv2d
    right, exact = convolve(image, weight), convolve(image.double(), weight.double())
    with InTf32():
        loose = convolve(image.double(), weight.double())
    output = convolve(cut(image, bits), cut(weight, bits))
    assert not is_as_exact(right, exact, output)
    assert is_as_exact(loose, exact, output) is passes


def test_products_are_rounded_only_where_the_reference_allows_it(settings: None) -> None:
    left, right = torch.full((1, 2), 1 + 2**-12, dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64)
    for allowed, found in ((False, 2 + 2**-11), (True, 2.0)):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        with InTf32():
            assert (left @ right).item() == torch.addmm(torch.zeros(1, 1).double(), left, right).item() == found


QUANTISED = {
    "int8": lambda x: (40 * x).round().clamp(-127, 127).to(torch.int8),
    "uint8": lambda x: (40 * x + 128).round().clamp(0, 255).to(torch.uint8),
    "float8_e4m3fn": lambda x: (4 * x).to(torch.float8_e4m3fn),
    "float8_e5m2": lambda x: (4 * x).to(torch.float8_e5m2),
}


@pytest.mark.parametrize("quantise", QUANTISED.values(), ids=QUANTISED)
def test_a_few_quantised_values_may_be_the_next_ones(quantise: Callable[[Any], Any]) -> None:
    right, is_first = quantise(EXACT), torch.arange(COUNT) == 7
    assert are_equal(right, right.clone()).all()
    assert are_equal(right, quantise(EXACT * (1 + noise(1e-7)))).all()
    few, far = (quantise(torch.where(is_first, EXACT * (1 + share), EXACT)) for share in (0.02, 1.5))
    assert are_equal(right, few).all()
    assert are_equal(right, far).sum() == COUNT - 1
    for wrong in (quantise(1.01 * EXACT), torch.zeros_like(right)):
        off = wrong.float() != right.float()
        assert torch.equal(are_equal(right, wrong), ~off)


def test_what_is_rare_is_not_taken_for_rounding() -> None:
    """Were it, a mask of which nearly all is zero need not be computed."""
    right = torch.zeros(COUNT, dtype=torch.uint8)
    right[7] = 1
    assert are_equal(right, torch.zeros_like(right)).sum() == COUNT - 1
    assert are_equal(right.bool(), torch.zeros_like(right).bool()).sum() == COUNT - 1
    assert are_equal(right.int(), right.int() + (right == 0)).sum() == 1


def test_quantised_values_that_are_no_numbers_are_equal_only_to_such() -> None:
    values = torch.tensor([448.0, torch.nan, 0.0, -0.0] * 1000)
    right = values.to(torch.float8_e4m3fn)
    other = values.roll(1).to(torch.float8_e4m3fn)
    assert are_equal(right, right.clone()).all()
    assert are_equal(right, other).tolist()[4:8] == [False, False, False, True]
    assert are_equal(right, torch.where(values == 0, -values, values).to(torch.float8_e4m3fn)).all()
