"""The arena of a GPU, on tensors in the host's memory: what a call did to memory that was not its output is seen."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from presage import Case, Problem
from presage.problems import registry

torch = pytest.importorskip("torch")

from presage.devices.arena import guard_noise  # noqa: E402
from presage.devices.gpu_arena import GpuArena  # noqa: E402

CASE = Case({"n": 1003})
INPUTS = (torch.arange(1003, dtype=torch.float32), torch.ones(1003))


@pytest.fixture
def addition() -> Problem:
    return registry.get("vector_add")


@pytest.fixture
def arena(addition: Problem) -> GpuArena:
    arena = object.__new__(GpuArena)
    arena.size = 1 << 20
    arena._shared = arena._bytes = torch.zeros(arena.size, dtype=torch.uint8)
    arena._noise = torch.frombuffer(bytearray(guard_noise()), dtype=torch.uint8)
    arena.lay_out(addition, CASE, calls=2)
    for slot in range(2):
        arena.write_inputs(slot, INPUTS)
        arena.poison(slot)
    return arena


def test_an_honest_call_is_seen_as_one(arena: GpuArena, addition: Problem) -> None:
    for slot in range(2):
        x, y = arena.inputs(slot)
        arena.outputs(slot)[0].copy_(x + y)
        assert arena.tampering(addition, slot, INPUTS) is None


def test_a_changed_input_is_seen(arena: GpuArena, addition: Problem) -> None:
    arena._bytes[arena.slots[1][0].offset + 7] ^= 1
    assert arena.tampering(addition, 0, INPUTS) is None
    assert arena.tampering(addition, 1, INPUTS) == "changed its input x"


@pytest.mark.parametrize("distance", [0, 8, 252])
def test_what_lies_behind_an_input_cannot_be_copied_behind_an_output(
    arena: GpuArena, addition: Problem, distance: int
) -> None:
    x, _, z = arena.slots[0]
    begin, other = x.guards[1] + distance, z.guards[1] + distance
    arena._bytes[other : other + 4] = arena._bytes[begin : begin + 4].clone()
    assert arena.tampering(addition, 0, INPUTS) == "wrote outside z"


def test_a_child_sees_the_inputs_when_they_are_shown_and_its_outputs_are_taken_when_they_are_asked_for(
    arena: GpuArena, addition: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GpuArena, "evict", lambda self: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    shared = arena._shared
    shared.zero_()
    arena.lay_out(addition, CASE, calls=3)
    monkeypatch.setattr(torch, "empty", lambda size, **_: torch.zeros(size, dtype=torch.uint8))  # on no GPU
    arena.hide()
    for slot in range(3):
        arena.write_inputs(slot, INPUTS)
        arena.poison(slot)
    x, y, z = ([slot[i] for slot in arena.slots] for i in range(3))
    assert not any(shared[place.offset : place.offset + place.bytes].any() for place in (*x, *y))
    before = shared[z[0].offset : z[0].end].clone()
    launched, copy = list[int](), torch.bitwise_or
    monkeypatch.setattr(
        torch, "bitwise_or", lambda x, *rest, **named: launched.append(x.numel()) or copy(x, *rest, **named)
    )
    arena.show()
    assert len(launched) == 1, "a kernel that waits for the first inputs would have time until the last are there"
    seen = [shared[place.offset : place.offset + place.bytes].view(torch.float32) for place in (*x, *y)]
    assert all(torch.equal(each, INPUTS[i // 3]) for i, each in enumerate(seen))
    assert torch.equal(shared[z[0].offset : z[0].end], before), "outputs are the child's"
    for place in z:
        shared[place.offset : place.offset + place.bytes].view(torch.float32).copy_(INPUTS[0] + INPUTS[1])
    order = list[str]()
    monkeypatch.setattr(torch, "bitwise_or", lambda x, *rest, **named: order.append("copy") or copy(x, *rest, **named))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: order.append("all"))
    event = SimpleNamespace(record=lambda: order.append("end"), synchronize=lambda: order.append("there"))
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    take = arena.taker([1], [2])
    assert order == []
    assert 0 < take() <= time.perf_counter_ns()
    assert order == ["copy", "end", "copy", "there", "all"], "nothing is between the first ones and the others"
    assert all(torch.equal(arena.outputs(slot)[0], INPUTS[0] + INPUTS[1]) for slot in (1, 2))
    assert not torch.equal(arena.outputs(0)[0], INPUTS[0] + INPUTS[1]), "it was not asked for"
    assert arena.tampering(addition, 1, INPUTS) is None
