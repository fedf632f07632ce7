"""`presage measure` on a GPU that is made up: what is said of how a time came about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from presage import Effort, Kernel, Measurement, Problem, Status
from presage.cli import main, measure
from presage.devices.base import CaseTiming
from presage.problems import registry

BEHIND = "CUDA events around each call, queued behind a kernel that holds the GPU for 30 us"


class MadeUp:
    """Measures kernels by name."""

    def __init__(self, processes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        self._processes = processes
        self.problem, self.kernel = registry.get, registry.find_kernel
        self.anchor = lambda problem: None

    def measure(self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Any) -> list[Measurement]:
        return [self._measured(problem, kernel) for kernel in kernels]

    def _measured(self, problem: Problem, kernel: Kernel) -> Measurement:
        cases = tuple(
            CaseTiming(f"n={number}", (5e3,) * 32, tuple(range(32)), 1e3, 8, processes)
            for number, processes in enumerate(self._processes[kernel.name.rpartition("/")[2]])
        )
        return Measurement(problem.name, kernel, "cuda", Status.OK, cases=cases, facts={"timing": BEHIND})

    def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("processes", "said"),
    [
        ({"eager.py": ((), ()), "naive.cu": ((), ())}, [f"eager.py, naive.cu: {BEHIND}"]),
        (
            {"eager.py": ((), (8,) * 4), "naive.cu": ((4,) * 8, (8,) * 4)},
            [f"eager.py: {BEHIND}; in 1 to 4 processes", f"naive.cu: {BEHIND}; in 4 to 8 processes"],
        ),
        (
            {"eager.py": ((8,) * 4,) * 2, "naive.cu": ((), ())},
            [f"eager.py: {BEHIND}; in 4 processes", f"naive.cu: {BEHIND}"],
        ),
    ],
)
def test_how_short_kernels_were_timed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], processes: Any, said: list[str]
) -> None:
    monkeypatch.setattr(measure, "devices", SimpleNamespace(get=lambda name, compiler: MadeUp(processes)))
    assert main.main(["measure", "vector_add", "eager.py", "naive.cu", "--device", "cuda"]) == 0
    output, _ = capsys.readouterr()
    assert [line for line in output.splitlines() if BEHIND in line] == said


SAID = "KernelBench's own tolerance of 0.0001 would let zeros pass as the output"


class External(MadeUp):
    """Of which one problem is KernelBench's."""

    def __init__(self, path: str) -> None:
        self.problem, self.kernel = lambda name: registry.get(path), lambda problem, spec: problem.reference_kernel()
        self.anchor = lambda problem: None

    def _measured(self, problem: Any, kernel: Kernel) -> Measurement:
        case = CaseTiming("as written", (5e3,) * 32, tuple(range(32)), 1e3, 8)
        facts = {"tolerance": SAID, "keeps": problem.keeps_tolerance}
        return Measurement(problem.name, kernel, "cpu", Status.OK, cases=(case,), facts=facts)


@pytest.mark.parametrize(("options", "keeps"), [([], False), (["--tolerance", "kernelbench"], True)])
def test_a_tolerance_that_swallows_the_output_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], keeps: bool
) -> None:
    path = tmp_path / "wide.py"
    path.write_text("class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n")
    monkeypatch.setattr(measure, "devices", SimpleNamespace(get=lambda name, compiler: External(str(path))))
    assert main.main(["measure", str(path), "k.py", "k.py", "--device", "cpu", *options]) == 0
    assert capsys.readouterr().out.count(f"Tolerance: {SAID}.") == 1
    assert main.main(["measure", str(path), "k.py", "--device", "cpu", "--json", *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)["measurements"]
    assert found["facts"] == {"tolerance": SAID, "keeps": keeps}


def test_a_tolerance_is_chosen_only_where_there_is_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["measure", "softmax", "naive.c", "--tolerance", "kernelbench"]) == 2
    assert "is for KernelBench problems; softmax is not one" in capsys.readouterr().err


def test_whose_times_are_believed_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And where a caller waits for longer than the GPU works."""

    class Believing(MadeUp):
        def _measured(self, problem: Problem, kernel: Kernel) -> Measurement:
            made = super()._measured(problem, kernel)
            replayed = kernel.name.endswith("eager.py")
            waits = (5.5e3, 15e3) if replayed else (50e3, 50e3)
            cases = tuple(replace(case, wait_ns=wait) for case, wait in zip(made.cases, waits, strict=True))
            reason = "" if replayed else "its host code reads a value"
            return replace(made, cases=cases, believed="replay" if replayed else "worker", not_replayed=reason)

    device = Believing({"eager.py": ((), ()), "naive.cu": ((), ())})
    monkeypatch.setattr(measure.devices, "get", lambda name, compiler=None: device)
    command = ["measure", "vector_add", "eager.py", "naive.cu", "--device", "cuda", "--anchor", "none"]
    assert main.main(command) == 0
    said = capsys.readouterr().out
    assert "believed" in said.splitlines()[0]
    assert "naive.cu was timed in its own process, not replayed: its host code reads a value" in said
    waiting = [line for line in said.splitlines() if "the host cannot keep up" in line]
    assert waiting == ["eager.py, n=1: the GPU needs 5 us; a caller waits 15 us, because the host cannot keep up"]
    assert main.main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [m["believed"] for m in document["measurements"]] == ["replay", "worker"]
    assert document["measurements"][0]["cases"][1]["wait_ns"] == 15e3
