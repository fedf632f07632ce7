"""A problem of one's own, and kernels of one's own, as commands take them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))

import fake_endpoint as fake

from presage import Ground, Run
from presage.devices import registry as devices
from presage.searches import assembly, measuring

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("gcc", "clang", "cc"))), reason="there is no C compiler")

OWN = """\
// presage: entry scale
// presage: tune STEP = 1, 2
// presage: tune TWICE = 0, 1
// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 4000
void scale(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];
}
"""
RELU = """\
// presage: problem relu
// presage: entry relu
// presage: tune ORDER = 0, 1
void relu(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}
"""
FUNCTION = """\
import torch

def reference(x):
    return torch.relu(2 * x)

def inputs():
    return torch.randn(64, 32)
"""
MODULE = "import torch\n\ndef custom_kernel(data):\n    return torch.relu(data[0] + data[0])\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("own.c", OWN), ("mine.c", RELU), ("mine.py", FUNCTION), ("module.py", MODULE)):
        (tmp_path / name).write_text(text)
    return tmp_path


@needs_compiler
def test_search_tunes_the_kernel_that_states_its_problem(here: Path, presage: Any) -> None:
    done = presage("search", "own.c", "--budget", "5", "--forecaster", "none", "--seconds", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["problem"], told["device"], told["measurements"]) == ("own.c", "cpu", 4)
    assert done.stderr.count("right is what agrees with the first configuration, own.c@STEP=1,TWICE=0") == 1
    run = Run(here / "presage-runs" / "own-cpu-0")
    assert (run.configuration["kernels"], run.configuration["seconds"]) == (["own.c"], 0.1)
    assert presage("search", "own.c", "--budget", "5", "--forecaster", "none", "--seconds", "0.1").stdout.startswith(
        "this run was finished before"
    )


@needs_compiler
@pytest.mark.slow
def test_search_tunes_a_kernel_for_a_problem_of_the_catalogue(here: Path, presage: Any) -> None:
    done = presage("search", "mine.c", "--budget", "4", "--forecaster", "none", "--seconds", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["problem"], told["device"]) == ("relu", "cpu")
    assert told["measurements"] == 3, "the anchor and both configurations"
    beside = presage("search", "relu", "mine.c", "--budget", "4", "--forecaster", "none", "--seconds", "0.1")
    assert "only was True, is False" in beside.stderr


@pytest.mark.parametrize(
    ("words", "families"),
    [
        (("relu", "mine.c"), {"mine.c", "threads.c"}),
        (("relu", "mine.c", "--only"), {"mine.c"}),
        (("--problem", "relu", "mine.c", "--only"), {"mine.c"}),
        (("mine.c",), {"mine.c"}),
        (("own.c",), {"own.c"}),
        (("--problem", "mine.py", "module.py"), {"module.py"}),
    ],
)
def test_what_is_searched(
    here: Path, presage: Any, words: tuple[str, ...], families: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Ground] = []

    def stop(session: Any) -> None:
        parts = session.parts
        found.append(parts.proposer(Ground(parts.problem, parts.device, None)).ground)
        raise ZeroDivisionError

    monkeypatch.setattr(measuring, "measure_anchor", stop)
    monkeypatch.setattr(assembly, "_informed", lambda device, problem: problem)
    with pytest.raises(ZeroDivisionError):
        presage("search", *words, "--device", "cpu", "--forecaster", "none")
    assert {kernel.family for kernel in found[0].families or ()} == families


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("search relu mine.c --device recorded:h200", "not kernels of your own; name a device that can run it"),
        ("search mine.py --device recorded:h200", "can measure only what was recorded, and not mine.py"),
        (
            "search relu mine.c --proposer llm",
            "kernels that are named are searched by knobs; leave out --proposer",
        ),
        ("search softmax --only", "--only searches kernels that are named"),
        ("search softmax mine.c", "mine.c says it solves 'relu', not 'softmax'"),
        ("search mine.py mine.c", "kernels for a one-file problem are Python modules"),
        ("search mine.py --device cpu", "no base URL is set"),
        ("search softmax block_row.cu --device cpu", "block_row.cu is cuda; the cpu device runs c"),
        ("forecast mine.py", "a problem and a kernel are needed"),
        ("problems check own.c", "own.c is a one-file problem; 'presage measure own.c KERNEL' checks kernels of it"),
        ("inspect --problem own.c own.c", "own.c@STEP=1,TWICE=0 is a c kernel; static reports are made of"),
        ("inspect own.c", "own.c@STEP=1,TWICE=0 is a c kernel; static reports are made of"),
        ("inspect mine.py", "a problem and a kernel are needed"),
    ],
)
def test_a_mistake_is_explained(
    here: Path, presage: Any, arguments: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PRESAGE_LLM_BASE_URL", "PRESAGE_LLM_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    done = presage(*arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (here / "presage-runs").exists()


def test_a_cuda_kernel_without_a_gpu_is_not_looked_up_in_a_recording(here: Path, presage: Any) -> None:
    if devices.has_gpu():
        pytest.skip("there is a GPU")
    done = presage("search", "softmax", "block_row.cu")
    assert done.returncode == 2
    assert "recorded" not in done.stderr


def test_all_configurations_of_a_kernel_are_forecast_against_its_first(here: Path, presage: Any) -> None:
    done = presage("forecast", "own.c", "--all", "--target", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["anchor"]["values"] == {"STEP": 1, "TWICE": 0}
    assert len(told["forecasts"]) == 4
    assert told["forecasts"][0]["mean"] is not None
    assert any("relative to own.c@STEP=1,TWICE=0" in note for note in told["forecasts"][0]["notes"])


@needs_compiler
def test_configurations_of_a_kernel_that_states_its_problem_need_no_problem(here: Path, presage: Any) -> None:
    told = presage("measure", "own.c@STEP=2", "own.c@TWICE=1", "--device", "cpu", "--seconds", "0.02", "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)["measurements"]
    assert [each["kernel"]["values"] for each in found] == [{"STEP": 2, "TWICE": 0}, {"STEP": 1, "TWICE": 1}]


def has_triton() -> bool:
    return all(importlib.util.find_spec(name) for name in ("torch", "triton"))


@pytest.mark.slow
@pytest.mark.skipif(not has_triton(), reason="needs the cuda extra")
def test_a_module_is_forecast_beside_the_reference_and_is_not_sure(here: Path, presage: Any) -> None:
    (here / "worse.py").write_text(MODULE.replace("data[0] + data[0]", "(data[0] + data[0]) * 1"))
    done = presage("forecast", "--problem", "mine.py", "module.py", "worse.py", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    module, worse = told["forecasts"]
    assert told["anchor"]["name"] == "mine.py"
    assert module["mean"] == pytest.approx(0, abs=0.02), "the same steps as the reference"
    assert worse["mean"] < 0
    assert module["quantiles"]["0.95"] - module["quantiles"]["0.05"] > 0.1, "octaves"
    assert module["decision"]["action"] == "measure"
    assert any("relative to mine.py, whose time is not known" in note for note in module["notes"])
    assert any("the sum of its steps" in note for note in module["notes"])


@pytest.mark.slow
@pytest.mark.skipif(not has_triton(), reason="needs the cuda extra")
def test_a_reference_that_fails_is_told(here: Path, presage: Any) -> None:
    model = "import torch\nclass NAME(torch.nn.Linear):\n"
    model += "    def __init__(self, size):\n        super().__init__(size, size)\n"
    made = "def get_inputs():\n    return [torch.rand(8, 8)]\ndef get_init_inputs():\n    return [[], {'sizes': 8}]\n"
    (here / "problem.py").write_text(model.replace("NAME", "Model") + made)
    (here / "new.py").write_text(model.replace("NAME", "ModelNew"))
    done = presage("forecast", "--problem", "problem.py", "new.py")
    assert done.returncode == 0, done.stderr
    assert "the problem's reference fails, too" in done.stdout
    (here / "problem.py").write_text(model.replace("NAME", "Model") + made.replace("sizes", "size"))
    done = presage("forecast", "--problem", "problem.py", "new.py")
    assert "ill fail" not in done.stdout, "KernelBook's form of arguments"


TASK = {
    "task.yml": """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
tests:
  - {"size": 3, "seed": 1}
benchmarks:
  - {"size": 64, "seed": 1}
  - {"size": 128, "seed": 1}
""",
    "reference.py": """
import torch
def generate_input(size, seed):
    return torch.rand(size, size)
def ref_kernel(data):
    return 2 * data + 1
def check_implementation(data, output):
    return (True, "") if torch.equal(output, ref_kernel(data)) else (False, "wrong")
""",
}


@pytest.mark.slow
@pytest.mark.skipif(not has_triton(), reason="needs the cuda extra")
def test_a_gpu_mode_task_is_forecast_too(here: Path, presage: Any) -> None:
    (here / "task").mkdir()
    for name, text in TASK.items():
        (here / "task" / name).write_text(text)
    (here / "one.py").write_text("import torch\n\ndef custom_kernel(data):\n    return torch.add(data, data)\n")
    done = presage("forecast", "task", "one.py", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["problem"], told["anchor"]["name"]) == ("task", "task/reference.py")
    assert told["forecasts"][0]["mean"] > 0, "one step in place of two"


@pytest.mark.slow
@needs_torch
@pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="needs the llm extra")
def test_a_model_that_writes_modules_is_told_the_shapes(
    here: Path, presage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = fake.Endpoint()
    endpoint.otherwise = fake.says(f"Add.\n```python\n{MODULE}```")
    monkeypatch.setenv("PRESAGE_LLM_BASE_URL", endpoint.base_url)
    monkeypatch.setenv("PRESAGE_LLM_MODEL", "small")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        done = presage(
            "search",
            "--problem",
            "mine.py",
            "--device",
            "cpu",
            "--budget",
            "2",
            "--batch",
            "1",
            "--seconds",
            "0.1",
            "--json",
        )
    finally:
        endpoint.close()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measurements"] == 2
    question = endpoint.requests[0]["messages"][1]["content"]
    assert "data[0] float32[64, 32] -> output float32[64, 32]" in question
    assert "custom_kernel(data), where data is the tuple of the reference's arguments" in question
