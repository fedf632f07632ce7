"""A package of somebody else's adds one part of each kind, and each is used by its name."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from presage import Interval, Status
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.normalise import digest

Presage = Callable[..., str]
KINDS = ("problem", "device", "forecaster", "policy", "proposer", "strategy", "acquisition", "recording")


def recorded_rows(operation: str) -> list[Row]:
    rows: list[Row] = []
    for step in (1, 2, 4, 8):
        source = f"#define STEP {step}\nvoid {operation}(float *x) {{ x[0] = STEP; }}\n"
        rows.append(
            Row(
                problem=operation, room="tiny", split="test_op", family="steps.c", language="c",
                hash=digest(source, "c"), source=source, values={"STEP": step}, status=Status.OK,
                cases=(RecordedCase("n=1", 1.0, (1e6 / step,) * 9),),
                anchor=rows[0].hash if rows else digest(source, "c"), speedup=Interval(step, step, step),
            )
        )  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, install: Callable[..., None]) -> Path:
    """The folder that the package is installed into, with its recording."""
    folder = tmp_path_factory.mktemp("tiny")
    package = shutil.copytree(Path(__file__).with_name("tiny_package"), folder / "package")
    rows = [row for operation in "abcdef" for row in recorded_rows(f"operation_{operation}")]
    facts = {"name": "tiny", "kind": "cpu", "hardware": "none"}
    recording.write(package / "presage_tiny" / "tiny.parquet", rows, facts)
    install(folder / "site", package)
    return folder / "site"


def test_plugins_are_listed_with_their_package(presage: Presage) -> None:
    document = json.loads(presage("plugins", "--json"))
    ours = {each["kind"]: each for each in document["plugins"] if each["package"] == "presage-tiny"}
    assert {*ours} >= {*KINDS}
    assert {(each["name"], each["version"], each["error"]) for each in ours.values()} == {("tiny", "1.2.3", None)}
    assert ours["forecaster"]["settings"] == {"width": 0.5}
    assert ours["policy"]["summary"] == "Measures what is expected to be faster than the best"
    assert document["errors"] == []
    assert "presage-tiny 1.2.3" in presage("plugins", "strategies")


def test_the_problem(presage: Presage) -> None:
    assert "tiny_scale" in presage("problems")
    shown = presage("problems", "tiny_scale")
    assert all(f"tiny_scale/{file} " in shown for file in ("naive.c", "naive.cu", "steps.c"))


def test_the_device(presage: Presage) -> None:
    assert "tiny" in presage("devices")
    text = presage("measure", "tiny_scale", "steps.c@STEP=4", "--device", "tiny")
    assert "steps.c@STEP=4 is 4" in text
    assert "naive.c" in text


def test_the_forecaster(presage: Presage) -> None:
    assert "by tiny" in presage("forecast", "tiny_scale", "naive.cu", "--forecaster", "tiny:width=0.25")


def test_the_policy_the_proposer_and_the_strategy_search_on_the_device(presage: Presage, here: Path) -> None:
    kinds = ("device", "forecaster", "policy", "proposer", "strategy", "acquisition")
    names = (word for kind in kinds for word in (f"--{kind}", "tiny"))
    presage("search", "tiny_scale", *names, "--budget", "8", "--run", "found")
    assert "#define STEP 32" in (here / "found" / "best.c").read_text()


def test_the_recording_and_the_judgement_of_the_forecaster(presage: Presage) -> None:
    assert "operation_f" in presage("corpus", "ls", "tiny")
    asked = ("evaluate", "tiny", "uniform", "--recording", "tiny", "--suite", "accuracy,ranking", "--json")
    document = json.loads(presage(*asked))
    assert [each["forecaster"] for each in document["evaluations"]] == ["tiny", "uniform"]
    verdicts = {each["score"]: each["verdict"] for each in document["comparisons"]}
    assert verdicts["rps"] == "worse"


@pytest.mark.parametrize(("kind", "name"), [("forecasters", "tiny"), ("policies", "tiny")])
def test_they_pass_the_checks(presage: Presage, kind: str, name: str) -> None:
    assert "nothing failed" in presage(kind, "check", name)


PROGRAM = """
import presage, presage_tiny.parts as parts
measured = presage.measure("tiny_scale", "steps.c@STEP=8", device="tiny")
print(round(measured.speedup.value))
print(presage.forecast("tiny_scale", "steps.c@STEP=4", target="cpu", forecaster="tiny").forecast.mean())
run = presage.search(
    "tiny_scale", device="tiny", forecaster="tiny", policy="tiny", proposer="tiny", strategy="tiny",
    acquisition="tiny", budget=8,
)
print(round(run.best.speedup.value))
print(presage.evaluate(parts.TinyForecaster(), recording="tiny", suites=("accuracy",)).numbers["exact"].value)
print(len(presage.load_recording("tiny").counts))
print(round(presage.measure(parts.TinyScale(), "naive.c", device=parts.TinyDevice()).cases[0].median.value, -3))
"""


def test_from_python(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = python("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    measured, mean, best, exact, operations, time = map(float, done.stdout.split())
    assert (measured, mean, best, operations, time) == (8, pytest.approx(2, abs=0.01), 32, 6, 1e6)
    assert 0 <= exact <= 1
