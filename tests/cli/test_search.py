"""`presage search` and `presage runs` as they are typed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import presage as package
from presage.cli import search
from presage.cli.main import main
from presage.corpus.importing import import_tuning
from presage.searches.configuration import Configuration
from presage.searches.state import State
from presage.store.store import Event, Store

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(str(package.__file__)).parents[1])}
CACHE = {
    "device_name": "A GPU",
    "kernel_name": "add",
    "problem_size": 64,
    "tune_params_keys": ["block", "unroll"],
    "tune_params": {"block": [32, 64, 128, 256], "unroll": [1, 2, 3, 4, 5, 6, 7, 8]},
    "cache": {
        f"{block},{unroll}": {"block": block, "unroll": unroll, "time": time, "times": [time] * 8}
        for block in (32, 64, 128, 256)
        for unroll in range(1, 9)
        for time in [1.0 + abs(block - 128) / 64 + abs(unroll - 6) / 4]
    },
}
DEVICE = ("--device", "recorded:gpu.parquet")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    (folder / "cache.json").write_text(json.dumps(CACHE))
    import_tuning(folder / "cache.json", folder / "gpu.parquet")
    return folder


@pytest.fixture(scope="module")
def called(here: Path, presage: Any) -> Any:
    """called(*arguments): what comes of a command in that folder."""
    return lambda *arguments: presage(*arguments, cwd=here)


@pytest.fixture(scope="module")
def searched(called: Any) -> subprocess.CompletedProcess[str]:
    return called("search", "add", *DEVICE, "--forecaster", "uniform", "--budget", "24", "--json")


def test_a_search_ends_with_one_document_and_tells_its_way_on_stderr(
    searched: subprocess.CompletedProcess[str], here: Path
) -> None:
    assert searched.returncode == 0, searched.stderr
    document = json.loads(searched.stdout)
    assert list(document) == [
        "schema", "run", "stopped", "problem", "device", "forecaster", "policy", "strategy", "measurements", "why",
        "forecasts", "decisions", "broken", "missed", "early_stop", "optimum", "best", "notes", "spent", "report",
    ]  # fmt: skip
    assert document["measurements"] == 24
    assert (
        document["best"]["speedup"]["low"]
        <= document["best"]["speedup"]["value"]
        <= document["best"]["speedup"]["high"]
    )
    assert (here / document["best"]["path"]).exists()
    assert (here / document["report"]).exists()
    lines = searched.stderr.splitlines()
    assert lines[0] == "measuring the anchor on recorded:gpu.parquet"
    assert lines[1].startswith("measurement 1: 1x; best 1x; add@block=32")
    assert any(line.startswith("step 1: ") for line in lines)
    assert any(", forecast " in line for line in lines)


def test_the_same_command_prints_the_result_of_a_finished_run(
    searched: subprocess.CompletedProcess[str], here: Path, called: Any
) -> None:
    again = called("search", "add", *DEVICE, "--forecaster", "uniform", "--budget", "24")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("this run was finished before")
    document = json.loads(searched.stdout)
    assert f" the anchor's speed, found at measurement {document['best']['found_at']} of 24\n" in again.stdout
    assert "missed     nothing: nothing was left unmeasured on a forecast's word\n" in again.stdout
    assert "24; the budget of 24 measurements is spent" in again.stdout
    assert again.stderr == ""


def test_a_recorded_space_tells_how_near_the_optimum_is(
    searched: subprocess.CompletedProcess[str], here: Path, called: Any
) -> None:
    document = json.loads(searched.stdout)
    optimum = document["optimum"]
    assert 1 <= optimum["rank"] <= optimum["of"]
    assert (optimum["behind"] == 0) == (optimum["rank"] == 1)
    assert optimum["random"]["behind"] >= 0
    again = called("search", "add", *DEVICE, "--forecaster", "uniform", "--budget", "24")
    (line,) = [line for line in again.stdout.splitlines() if line.startswith("optimum")]
    assert f"the fastest of the {optimum['of']} recorded kernels; random choice is " in line
    text = (here / document["best"]["path"]).read_text()
    assert text.startswith("// The best values of the tunables of add on recorded:gpu.parquet. The recording has no")
    assert "#define block" in text


def test_without_forecasts_nothing_is_trusted(here: Path, called: Any) -> None:
    """Also where something cannot be launched: that is said apart."""
    done = called("search", "topk_rows", "--forecaster", "none", "--device", "recorded:h200", "--run", "elsewhere")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("decisions")]
    assert re.fullmatch(
        r"decisions  0 trust, \d+ measure, 0 audit; \d broken: did not compile, or could not launch", line
    )


def test_another_configuration_is_refused_with_the_difference(
    searched: subprocess.CompletedProcess[str], here: Path, called: Any
) -> None:
    done = called("search", "add", *DEVICE, "--forecaster", "uniform", "--budget", "25", "--alpha", "0.1")
    assert done.returncode == 2
    assert "another configuration: policy was risk, is risk:alpha=0.1. Ask as before" in done.stderr
    assert done.stdout == ""


def test_a_larger_budget_goes_on_with_a_finished_run(here: Path, called: Any) -> None:
    asked = ("search", "add", *DEVICE, "--forecaster", "uniform", "--run", "more")
    assert called(*asked, "--budget", "8").returncode == 0
    done = called(*asked, "--budget", "12")
    assert done.returncode == 0, done.stderr
    assert "continues after" in done.stderr.splitlines()[0]
    assert "12; the budget of 12 measurements is spent" in done.stdout
    less = called(*asked, "--budget", "6")
    assert less.returncode == 2
    assert "budget was 12, is 6. A run can be given a larger budget, not a smaller one." in less.stderr


@pytest.mark.parametrize(
    "settings",
    [
        ("--policy", "topk:k=4"), ("--strategy", "puct:c=1.2,window=8"), ("--policy", "risk:alpha=0.1,delta=0.02"),
        ("--acquisition", "upper_bound:beta=2"), ("--alpha", "0.1", "--delta", "0.02"),
    ],
)  # fmt: skip
def test_settings_of_parts_are_typed_with_their_names(
    here: Path, settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    asked = ("search", "add", *DEVICE, "--forecaster", "surrogate", "--budget", "8", "--json")
    assert typed(*asked, "--run", "-".join(settings).replace("-", "").replace(":", ""), *settings) == 0
    kept = json.loads(capsys.readouterr().out)
    if "--alpha" in settings:
        assert kept["policy"] == "risk:alpha=0.1,delta=0.02", "which are short for the policy's own"
    elif settings[0] != "--acquisition":
        assert kept[settings[0].removeprefix("--")] == settings[1]


def test_a_second_process_is_refused(here: Path, called: Any) -> None:
    with Store(here / "busy"):
        done = called("search", "add", *DEVICE, "--run", "busy")
    assert done.returncode == 2
    assert f"presage: process {os.getpid()} is working on busy" in done.stderr


def typed(*arguments: str) -> int:
    """The exit status of a command in this process, which is quicker."""
    try:
        return main(arguments)
    except SystemExit as exit:
        return int(exit.code or 0)


def test_runs_are_listed(
    searched: subprocess.CompletedProcess[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(here)
    (here / "presage-runs" / "broken").mkdir()
    (here / "presage-runs" / "broken" / "run.db").write_text("no database at all, but some text" * 40)
    assert typed("runs") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "problem", "device", "strategy", "measured", "broken", "best", "state"]
    assert lines[1].split()[1:6] == ["add", "recorded:gpu.parquet", "puct", "24", "0"]
    assert lines[1].endswith("finished")
    assert "is not a run of presage, or is damaged" in lines[2]
    assert typed("runs", "--json") == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    assert [each["state"] == "finished" for each in found] == [True, False]
    assert typed("runs", "nowhere") == 0
    assert "there is no run in nowhere" in capsys.readouterr().out


SLOWLY = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever runs the tests may ignore
from presage.cli import search
from presage.cli.main import main
from presage.devices.recorded import RecordedDevice
measure = RecordedDevice.measure
def slowly(*asked):
    time.sleep(0.05)
    return measure(*asked)
RecordedDevice.measure = slowly
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_search_that_is_stopped_tells_what_it_has_and_goes_on(
    here: Path, number: int, status: int, form: tuple[str, ...], called: Any
) -> None:
    name = f"stopped-{status}{'-json' * len(form)}"
    asked = ("search", "add", *DEVICE, "--forecaster", "none", "--budget", "28", "--run", name, *form)
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *asked],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here, env=ENVIRONMENT,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("measurement 4"):
                break
        child.send_signal(number)
        out, errors = child.communicate(timeout=60)
    assert child.returncode == status
    assert errors.endswith("presage: stopped\n")
    assert "Traceback" not in errors
    if form:
        document = json.loads(out)
        assert (document["stopped"], document["run"]) == (True, name)
        assert document["best"]["speedup"]["value"] >= 1
    else:
        assert "the anchor's speed, so far" in out
        assert "it was stopped; the same command continues it" in out
    assert (here / name / "report.html").exists()
    assert list((here / name).glob("best.*"))
    done = called(*asked)
    assert done.returncode == 0
    assert "continues after" in done.stderr.splitlines()[0]


def test_a_measurement_that_is_stopped_leaves_no_scratch_folder(tmp_path: Path) -> None:
    environment = ENVIRONMENT | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "presage", "search", "vector_add", "--device", "cpu", "--budget", "40"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as child:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("presage-*/*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        child.terminate()
        _, errors = child.communicate(timeout=60)
    assert child.returncode in (143, 2), errors  # 2: where nothing can be measured
    assert [file.name for file in tmp_path.iterdir() if file.name != "presage-runs"] == []


def test_the_panel_stays_and_tells_the_time(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert typed("search", "add", *DEVICE, "--forecaster", "none", "--budget", "10", "--run", "panel") == 0
    err = capsys.readouterr().err
    last = err.rpartition("\x1b[J")[2]
    assert last.startswith("add on recorded:gpu.parquet: puct, always, none\n  best      ")
    assert re.search(r"^  time      \d+ s so far, about 0 s left$", last, re.MULTILINE)
    assert (
        typed("search", "add", *DEVICE, "--forecaster", "none", "--wall", "50", "--budget", "4", "--run", "wall") == 0
    )
    assert re.search(r"s so far, \d+ s left at most", capsys.readouterr().err)


def test_the_time_in_the_panel_goes_on_while_nothing_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(search, "_TICK_SECONDS", 0.01)
    view, state, shown = search.View(), State(), ""
    configuration = asdict(Configuration("add", device="recorded:gpu.parquet", forecaster="none", policy="always"))
    older = {"early_stop": False}  # a setting of an older version
    event = Event(1, time.time() - 100, "begun", {"configuration": configuration | older})
    state.apply(event)
    state.session_start = time.time() - 100
    view(event, state)
    while shown.count("so far") < 3:  # it is drawn once for the event
        time.sleep(0.01)
        shown += capsys.readouterr().err
    view.leave()
    assert re.search(r"time      \d+ min \d+ s so far", shown)


def test_what_a_terminal_cannot_show_costs_no_result(here: Path) -> None:
    command = [sys.executable, "-m", "presage", "search", "add", *DEVICE, "--budget", "4", "--run", "ünï-実"]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=here, env=environment)
    assert done.returncode == 0, done.stderr
    assert "\\xfcn\\xef-\\u5b9f/best" in done.stdout
    assert (here / "ünï-実" / "report.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "{}"), ("search", "{}.py", "--device", "cpu"), ("search", "add", *DEVICE, "--run", "{}"),
        ("search", "add", "--device", "recorded:{}"), ("search", "vector_add", "--device", "cpu", "--anchor", "{}"),
        ("report", "{}"), ("runs", "{}"), ("measure", "softmax", "{}"), ("problems", "{}"), ("search", ""),
    ],
)  # fmt: skip
def test_a_name_of_any_length_is_answered_in_a_line(
    here: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    assert typed(*(argument.format("x" * 300) for argument in arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("presage: ")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("search", "name a problem, or a kernel file to tune"),
        ("search add --device recorded:gpu.parquet --budget 0", "'0' is not a whole number, 1 or more"),
        ("search add --device recorded:gpu.parquet --wall x", "'x' is not a positive number"),
        ("search add --device recorded:nosuch", "there is no recording 'nosuch'"),
        ("search nosuch --device recorded:gpu.parquet", "has no recorded kernel of 'nosuch'"),
        ("search add --device recorded:gpu.parquet --proposer llm", "can measure only what was recorded"),
        ("search add --device recorded:gpu.parquet --budgt 3", "[--budget N]"),
        ("search vector_add --device cpu --proposer llm", "no base URL is set"),
        ("search add --device recorded:gpu.parquet --policy topk --alpha 0.1", "topk has no setting 'alpha'"),
        ("search add --device recorded:gpu.parquet --policy risk:alpha=0.1 --alpha 0.2", "risk is given twice"),
        ("search add --device recorded:gpu.parquet --policy topk:k=4,k=5", "k of the policy topk is given twice"),
        ("search add --device recorded:gpu.parquet --forecaster none --alpha 0.1", "always has no setting 'alpha'"),
        (
            "search add --device recorded:gpu.parquet --forecaster none --policy risk --run idle",
            "nothing to decide on; leave out",
        ),
        (
            "search add --device recorded:gpu.parquet --forecaster none --acquisition mean --run idle",
            "leave out --acquisition",
        ),
        (
            "search add --device recorded:gpu.parquet --tokens 500 --run idle",
            "pool nor the forecaster surrogate asks one",
        ),
        ("search vector_add --device cpu --dollars 1", "leave out --tokens and --dollars"),
        ("search add --device recorded:gpu.parquet --policy topk:n=4", "topk has no setting 'n'; it has: k"),
        ("search add --device recorded:gpu.parquet --strategy puct:c=x", "c of the strategy puct must be a number"),
    ],
)
def test_a_mistake_is_explained(
    here: Path,
    arguments: str,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(here)
    for name in ("PRESAGE_LLM_BASE_URL", "PRESAGE_LLM_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    assert typed(*arguments.split()) == 2
    said = capsys.readouterr()
    assert complaint in said.err
    assert "measuring" not in said.err
    assert said.out == ""
