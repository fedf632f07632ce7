"""What is wrong with one installed package is said by name, and breaks nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Presage = Callable[..., str]
PARTS = """
import presage
from presage import Array, Case

NUMBER = 7

class NotAPolicy:
    pass

class Raises(presage.Policy):
    def __init__(self, level: int = 1):
        raise ZeroDivisionError("nobody checked")
    def decide(self, forecasts, standing, rng):
        return []

class Needs(presage.Policy):
    def __init__(self, k: int):
        self.k = k
    def decide(self, forecasts, standing, rng):
        return []

class Twin(Needs):
    pass

class Bare(presage.Problem):
    name = "bare"
    summary = "y = x"
    inputs, outputs = (Array("x", "n"),), (Array("y", "n"),)
    timed = {"cpu": (Case({"n": 1024}),)}
    checks = (Case({"n": 3}), Case({"n": 50}, values="normal"))
    def make_inputs(self, case, sampler): return (sampler.values((case.dims["n"],)),)
    def oracle(self, xp, case, x): return (x,)
    def tolerance(self, case): return presage.Tolerance(0.0, "a copy is exact")
    def flops(self, case): return 0
    def draw_case(self, rng): return Case({"n": rng.randint(1, 99)})

class Copy(Bare):
    name = "gelu"

class Unfinished(presage.Problem):
    name = "unfinished"

def fails():
    yield Bare()
    raise RuntimeError("half way through")

def gives_numbers():
    return [1, 2]

def device():
    raise OSError("it is unplugged")

def a_policy():
    return 3
"""
POINTS = """
[presage.policies]
unimportable = presage_broken.nowhere:Policy
not_a_policy = presage_broken:NotAPolicy
a_number = presage_broken:NUMBER
gives_a_number = presage_broken:a_policy
raises = presage_broken:Raises
needs = presage_broken:Needs
same = presage_broken:Twin

[presage.problems]
bare = presage_broken:Bare
a_copy = presage_broken:Copy
unfinished = presage_broken:Unfinished
fails = presage_broken:fails
gives_numbers = presage_broken:gives_numbers

[presage.devices]
unplugged = presage_broken:device

[presage.forecasters]
wrong_kind = presage_broken:NotAPolicy

[presage.recordings]
lost = presage_broken:__file__
number = presage_broken:NUMBER
"""


def add_package(target: Path, name: str, points: str, source: str) -> None:
    """What installing a package leaves behind."""
    (target / f"{name}.py").write_text(source)
    folder = target / f"{name}-0.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 0.5\n")
    (folder / "entry_points.txt").write_text(points)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    add_package(folder, "presage_broken", POINTS, PARTS)
    add_package(folder, "presage_twin", "[presage.policies]\nsame = presage_broken:Twin\n", "")
    return folder


SEARCH = ("search", "softmax", "--device", "recorded:cpu", "--forecaster", "uniform", "--budget", "2")


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            "unimportable",
            "the policy 'unimportable' of presage-broken 0.5 cannot be loaded: ModuleNotFoundError: No module named",
        ),
        ("not_a_policy", "the policy 'not_a_policy' of presage-broken 0.5 does not derive from presage.Policy; see"),
        ("a_number", "'a_number' of presage-broken 0.5 is not a class that derives from presage.Policy"),
        ("gives_a_number", "of presage-broken 0.5 gave a int, which does not derive from presage.Policy"),
        (
            "raises",
            "'raises' of presage-broken 0.5 cannot be made: ZeroDivisionError: nobody checked; see presage_broken",
        ),
        ("needs", "the policy needs needs the setting 'k'; write"),
        ("same", "presage-broken 0.5 and presage-twin 0.5 both declare the policy 'same'; uninstall one of them"),
    ],
)
def test_a_broken_policy_is_explained_in_a_line(presage: Presage, here: Path, policy: str, said: str) -> None:
    errors = presage("policies", "check", policy, status=2)
    assert said in errors
    assert len(errors.splitlines()) == 1
    assert said in presage(*SEARCH, "--policy", policy, status=2)
    assert list(here.iterdir()) == []


def test_the_others_are_there(presage: Presage) -> None:
    assert "measures" in presage("policies").lower()
    assert "nothing failed" in presage("policies", "check", "topk")
    devices = presage("devices")
    assert "cpu" in devices
    assert "unplugged: not available: the device 'unplugged' of presage-broken 0.5 cannot be made" in devices
    assert "does not derive from presage.Forecaster" in presage("forecasters")


def test_broken_problems_are_left_out_and_named(python: Callable[..., object], presage: Presage) -> None:
    done = python("-m", "presage", "problems", "--json")
    names = {each["name"] for each in json.loads(done.stdout)["problems"]}  # type: ignore[attr-defined]
    assert {"softmax", "silu", "bare"} <= names
    assert not names & {"gelu", "unfinished", "fails"}
    errors = [line for line in done.stderr.splitlines() if "presage-broken" in line]  # type: ignore[attr-defined]
    assert len(errors) == 4
    for said in (
        "the problem 'fails' of presage-broken 0.5 cannot be made: RuntimeError: half way through",
        "the problem 'gives_numbers' of presage-broken 0.5 gave a int, which does not derive from presage.Problem",
        "the problem 'unfinished' of presage-broken 0.5 cannot be made: TypeError: Can't instantiate abstract class",
        "presage-broken 0.5 and presage-kernels",
    ):
        assert any(said in error for error in errors), said
    assert "both declare the problem 'gelu'; uninstall one of them" in presage("problems", "gelu", status=2)


def test_a_problem_without_kernels_can_be_shown_and_checked(presage: Presage, here: Path) -> None:
    assert "y = x" in presage("problems", "bare")
    checked = presage("problems", "check", "bare")
    assert "warning      kernels: there is no naive.c" in checked
    assert "bare has no anchor on cpu; name a kernel with --anchor" in presage(
        "search", "bare", "--device", "cpu", "--forecaster", "none", status=2
    )
    assert list(here.iterdir()) == []


def test_plugins_says_what_is_broken_and_why(presage: Presage) -> None:
    document = json.loads(presage("plugins", "--json"))
    wrong = {(each["kind"], each["name"]) for each in document["plugins"] if each["error"]}
    policies = ("unimportable", "not_a_policy", "a_number", "same")
    assert {name for kind, name in wrong if kind == "policy"} == {*policies}
    assert {name for kind, name in wrong if kind == "problem"} == {"fails", "gives_numbers", "unfinished"}
    assert {("forecaster", "wrong_kind"), ("recording", "number")} <= wrong
    assert any("both declare the problem 'gelu'" in error for error in document["errors"])
    assert not [each for each in document["plugins"] if each["error"] and each["package"] == "presage-kernels"]
    text = presage("plugins", "policies")
    assert text.count("\nbroken: ") == len(policies)
