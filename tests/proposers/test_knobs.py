"""The `knobs` proposer: neighbours in the tunables, jumps, and crossings between families."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from still_device import StillDevice, parent_of

from presage import Ground, Kernel, Measured, PresageError, Proposal
from presage.kernels.kernel import from_source
from presage.problems import registry as problems
from presage.proposers import knobs, registry

MakeGround = Callable[..., Ground]


def family_of(problem: str, file: str) -> Kernel:
    return next(k for k in problems.seed_kernels(problems.get(problem)) if Path(k.name).name == file)


def file_of(proposal: Proposal) -> str:
    return Path(proposal.kernel.name.split("@")[0]).name


def test_kernels_are_rendered_distinct_unseen_and_in_the_device_s_languages(make_ground: MakeGround) -> None:
    ground = make_ground("gelu", StillDevice("gpu", ("cuda", "triton", "torch")))
    proposer = registry.get("knobs", ground)
    parent = parent_of(family_of("gelu", "forms.cu").render())
    known = {parent.measured.kernel.hash}
    for seed in range(3):
        proposals = proposer.propose(parent, [], 12, known, random.Random(seed))
        hashes = {proposal.kernel.hash for proposal in proposals}
        assert len(hashes) == len(proposals) == 12
        assert not hashes & known
        assert all(not p.kernel.is_family and p.kernel.language in ("cuda", "triton") and p.why for p in proposals)
        known |= hashes


def test_most_differ_from_the_parent_in_one_or_two_tunables_by_a_step_or_two(make_ground: MakeGround) -> None:
    family = family_of("softmax", "rows_triton.py")
    parent = parent_of(family.render({"ROWS": 2, "WARPS": 8, "LONG": 4096}))
    proposer = registry.get("knobs", make_ground("softmax", StillDevice("gpu", ("cuda", "triton"))))
    proposals = proposer.propose(parent, [], 8, {parent.measured.kernel.hash}, random.Random(0))
    own = [proposal for proposal in proposals if file_of(proposal) == "rows_triton.py"]
    assert len(own) >= len(proposals) // 2
    for proposal in own:
        changed = {n for n, v in parent.measured.kernel.values.items() if proposal.kernel.values[n] != v}
        assert 1 <= len(changed) <= 2
        assert all(name in proposal.why for name in changed)


def test_crossing_takes_the_shared_tunables_along(make_ground: MakeGround) -> None:
    """Both of the sum's Triton families have WARPS; what one found there is kept in the other."""
    device = StillDevice("gpu", ("triton",))
    ground = make_ground("sum", device)
    families = {Path(k.name).name: k for k in problems.seed_kernels(ground.problem, "triton") if k.is_family}
    assert len(families) > 1
    (first, one), (_, other) = list(families.items())[:2]
    shared = one.header.tunables.keys() & other.header.tunables.keys()
    assert shared
    parent = parent_of(one.render())
    proposals = registry.get("knobs", ground).propose(parent, [], 40, set(), random.Random(0))
    crossed = [p for p in proposals if file_of(p) != first and p.why.startswith("crossed")]
    assert crossed
    for proposal in crossed:
        tunables = families[file_of(proposal)].header.tunables
        for name in shared & tunables.keys():
            value = parent.measured.kernel.values[name]
            assert value not in tunables[name] or proposal.kernel.values[name] == value
            assert value not in tunables[name] or f"{name}={value}" in proposal.why


def test_everything_is_found_in_the_end_and_then_nothing(make_ground: MakeGround) -> None:
    ground = make_ground("softmax")
    proposer, known, rng = registry.get("knobs", ground), set(), random.Random(0)
    families = [k for k in problems.seed_kernels(ground.problem, "c") if k.is_family]
    everything = {family.render(values).hash for family in families for values in family.configurations()}
    parent = parent_of(families[0].render())
    while proposals := proposer.propose(parent, [], 16, known, rng):
        known |= {proposal.kernel.hash for proposal in proposals}
    assert known == everything


def test_a_parent_of_no_family_is_crossed_from(make_ground: MakeGround) -> None:
    stranger = from_source("// presage: entry f\nvoid f(void) {}", ".c", "mine.c")
    ground = make_ground("softmax")
    for kernel in (stranger, ground.anchor.kernel):
        proposals = registry.get("knobs", ground).propose(parent_of(kernel), [], 3, set(), random.Random(1))
        assert len(proposals) == 3


def test_proposals_are_repeatable(make_ground: MakeGround) -> None:
    ground = make_ground("softmax")
    parent = parent_of(family_of("softmax", "rows.c").render())
    one, other = (registry.get("knobs", ground) for _ in range(2))
    one.propose(parent, [], 4, set(), random.Random(8))
    assert one.propose(parent, [], 4, set(), random.Random(2)) == other.propose(parent, [], 4, set(), random.Random(2))


@pytest.mark.parametrize(
    ("choices", "value", "reached"),
    [
        ((1, 2, 4, 8), 2, {1, 4, 8}),
        ((4, 1, 2), 1, {2, 4}),
        (("a", "b"), "b", {"a"}),
        ((256, 64, 1024), 256, {64, 1024}),
    ],
)
def test_a_step_goes_along_values_in_order(choices: tuple, value: object, reached: set) -> None:
    rng = random.Random(0)
    assert {knobs._step(choices, value, rng) for _ in range(100)} == reached


def test_a_problem_without_families_is_told_what_to_use(pool_ground: Ground) -> None:
    problem = problems.get("softmax")
    with pytest.raises(PresageError, match="softmax has no family with tunables that still can run"):
        registry.get("knobs", Ground(problem, StillDevice(languages=("numpy",)), Measured(pool_ground.anchor.kernel)))
