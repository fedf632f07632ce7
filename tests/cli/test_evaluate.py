"""`presage evaluate` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from presage import Interval, PresageError, Status
from presage.cli import main
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.normalise import digest
from presage.report import page

Evaluate = Callable[..., tuple[int, str, str]]
METRICS = (
    "exact", "within_one", "ece", "rps", "half_brier", "nll", "spearman", "aurc", "failure_auroc", "coverage_90",
)  # fmt: skip


def made_up(problem: str, split: str) -> list[Row]:
    rows, seed = [], ""
    for block in range(1, 25):
        source = f"#define BLOCK {block}\nvoid f(float *x) {{ x[BLOCK] = {len(problem)}; }}\n"
        seed = seed or digest(source, "cuda")
        failed, S = block % 8 == 7, float(block) ** 0.5
        rows.append(
            Row(
                problem=problem,
                room="made_up",
                split=split,
                family="f.cu",
                language="cuda",
                hash=digest(source, "cuda"),
                source=source,
                values={"BLOCK": block},
                status=Status.TIMEOUT if failed else Status.OK,
                reason="too slow" if failed else "",
                cases=() if failed else (RecordedCase("n=1", 1.0, (1e6 / S,) * 9),),
                anchor=seed,
                speedup=None if failed else Interval(S, S, S),
            )
        )
    return rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "made.parquet"
    rows = [row for name, split in (("a", "train"), ("b", "test_op"), ("c", "test_op")) for row in made_up(name, split)]
    recording.write(path, rows, {"name": "made", "kind": "gpu", "hardware": "h200"})
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def evaluate(made: Path, capsys: pytest.CaptureFixture[str]) -> Evaluate:
    """evaluate(*arguments): exit status, standard output, standard error."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        status = main.main(["evaluate", "--recording", str(made), *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


def test_json_has_the_promised_names(evaluate: Evaluate) -> None:
    status, output, _ = evaluate("--forecaster", "prior", "--forecaster", "nearest", "--json")
    whole = json.loads(output)
    first, second = whole["evaluations"]
    assert status == 0
    assert (whole["recording"], whole["split"]) == ("made", "test_op")
    assert [first["forecaster"], second["forecaster"]] == ["prior", "nearest"]
    for document in (first, second):
        assert set(document) == {"forecaster", "split", "n", "metrics", "curves"}
        assert (document["split"], document["n"]) == ("test_op", 2 * 3 * 23)
        metrics = document["metrics"]
        for found in (*(metrics[name] for name in METRICS), *metrics["recovery"].values()):
            assert set(found) == {"value", "low", "high"}
            assert found["low"] <= found["value"] <= found["high"]
        assert list(metrics["recovery"]) == list(metrics["recovery_vs_random"]) == ["0.02", "0.05", "0.10", "0.20"]


def test_one_problem_alone_whatever_its_split(evaluate: Evaluate) -> None:
    status, output, _ = evaluate("uniform", "--problem", "a", "--suite", "accuracy", "--json")
    whole = json.loads(output)
    assert (status, whole["operations"], whole["evaluations"][0]["n"]) == (0, 1, 3 * 23)
    assert evaluate("uniform", "--problem", "a", "--suite", "accuracy")[1].startswith("a of made\n")
    assert "made has no recorded kernel of 'nosuch'" in evaluate("uniform", "--problem", "nosuch")[2]


def test_a_recorded_device_is_its_recording(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("evaluate", "uniform", "--suite", "accuracy", "--json")
    assert main.main([*arguments, "--device", f"recorded:{made}"]) == 0
    assert json.loads(capsys.readouterr().out)["recording"] == "made"
    assert main.main([*arguments, "--device", "cpu"]) == 2
    assert "write --device recorded:NAME" in capsys.readouterr().err


def test_the_table_and_the_page_say_the_same(evaluate: Evaluate, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    status, output, errors = evaluate("--forecaster", "nearest", "--forecaster", "uniform", "--html", page)
    assert status == 0
    assert "2 operations of made, split test_op" in output
    assert "uniform: calibration" in errors
    text = page.read_text()
    assert text.count("<svg") == 3
    exact = next(line for line in output.splitlines() if line.startswith("exact"))
    assert exact.split("  ")[-2].strip() in text


def test_the_page_is_written_where_one_works_unless_a_place_is_named(evaluate: Evaluate, here: Path) -> None:
    _, output, errors = evaluate("--forecaster", "uniform", "--json")
    assert json.loads(output)
    assert "figures are in presage-evaluation.html" in errors
    assert (here / "presage-evaluation.html").read_text().count("<svg") == 3


def test_where_the_page_cannot_be_written_any_more_the_numbers_are_not_lost(
    evaluate: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, document: str) -> Path:
        raise PresageError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr(page, "write", full)
    status, output, errors = evaluate("--forecaster", "uniform", "--suite", "failures")
    assert status == 2
    assert "failure_auroc" in output
    assert "cannot write presage-evaluation.html: No space left on device" in errors


@pytest.mark.parametrize(
    ("html", "why"),
    [
        ("/nowhere/at/all.html", "No such file or directory"),
        ("a_file/page.html", "Not a directory"),
        (".", "Is a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_page_that_cannot_be_written_is_noticed_first(evaluate: Evaluate, here: Path, html: str, why: str) -> None:
    (here / "a_file").touch()
    status, output, errors = evaluate("--forecaster", "uniform", "--html", html)
    assert (status, output) == (2, "")
    assert errors == f"presage: cannot write {html}: {why}; name another file with --html\n"
    assert [file.name for file in here.iterdir()] == ["a_file"]


@pytest.mark.parametrize("count", ["-3", "1.5", "²", "many"])
def test_neighbours_are_counted(evaluate: Evaluate, count: str) -> None:
    status, _, errors = evaluate("--neighbours", count)
    assert status == 2
    assert "is not a whole number, 0 or more" in errors


def test_suites_can_be_chosen(evaluate: Evaluate) -> None:
    _, output, _ = evaluate("--forecaster", "uniform", "--suite", "failures,calibration", "--split", "all", "--json")
    (document,) = json.loads(output)["evaluations"]
    assert set(document["metrics"]) == {"failure_auroc", "ece", "coverage_90", "width_90"}
    assert document["n"] == 3 * 3 * 23


def _metrics(output: str) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads(output)["evaluations"][0]["metrics"]
    return metrics


def test_forecasters_are_compared_with_the_first_or_a_baseline(evaluate: Evaluate, here: Path) -> None:
    status, output, _ = evaluate("nearest", "uniform", "--suite", "accuracy", "--split", "all")
    assert status == 0
    assert "less nearest" in output
    lines = [line.split() for line in output.splitlines() if "uniform" in line and line.startswith("rps")]
    assert lines
    assert " ".join(lines[0][-3:]) == "no difference shown"  # three operations are too few to show anything
    assert "Compared with nearest" in (here / "presage-evaluation.html").read_text()
    _, output, _ = evaluate("nearest", "uniform", "--suite", "accuracy", "--baseline", "uniform", "--json")
    found = json.loads(output)["comparisons"]
    assert [(each["forecaster"], each["baseline"]) for each in found] == [("nearest", "uniform")] * 3
    assert {each["score"] for each in found} == {"exact", "rps", "nll"}
    for each in found:
        assert each["difference"]["low"] <= each["difference"]["value"] <= each["difference"]["high"]
        assert 0 < each["p"] <= 1


def test_one_forecaster_is_compared_with_none(evaluate: Evaluate) -> None:
    _, output, _ = evaluate("uniform", "uniform", "--suite", "accuracy", "--json")
    assert json.loads(output)["comparisons"] == []


def test_a_forest_learns_from_the_neighbours_it_is_shown(evaluate: Evaluate) -> None:
    chosen = ("--forecaster", "forest", "--suite", "accuracy,ranking", "--json")
    without, with_ = (_metrics(evaluate(*chosen, "--neighbours", n)[1]) for n in ("0", "12"))
    assert without["missing"]["value"] == 1
    assert with_["missing"]["value"] == 0
    assert with_["spearman"]["value"] > 0.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--forecaster", "oracle"), "there is no forecaster 'oracle'"),
        (("uniform", "--baseline", "prior"), "--baseline prior is not evaluated; name it among the forecasters"),
        (("--forecaster", "uniform", "--suite", "vibes"), "there is no suite 'vibes'"),
        (("--forecaster", "uniform", "--split", "test"), "made has no split 'test'; it has: all, test_op, train"),
        (("--forecaster", "uniform", "--recording", "none.parquet"), "there is no recording none.parquet"),
    ],
)
def test_mistakes_are_explained(evaluate: Evaluate, arguments: tuple[str, ...], said: str) -> None:
    status, output, errors = evaluate(*arguments)
    assert (status, output) == (2, "")
    assert said in errors
