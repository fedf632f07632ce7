"""What is read of a run's store is what happened in the run."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import PresageError, Status, search
from presage.cli import main
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.normalise import digest
from presage.report import frozen, run_view
from presage.report.runs_page import summary
from presage.report.web.following import Followed
from presage.searches.state import State
from presage.store.store import Event, Store

Writer = Any
"""Of conftest.py."""


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows, seed = [], ""
    for block, unroll in itertools.product((32, 64, 128, 256, 512), (1, 2, 4, 8, 16)):
        source = f"#define BLOCK {block}\n#define UNROLL {unroll}\nvoid f(float *x) {{ x[BLOCK] = UNROLL; }}\n"
        seed = seed or digest(source, "c")
        failed, S = unroll == 16, 2 ** (-abs(math.log2(block / 128)) - abs(math.log2(unroll / 4)))
        rows.append(
            Row(
                problem="toy",
                room="made_up",
                split="",
                family="toy.c",
                language="c",
                hash=digest(source, "c"),
                source=source,
                values={"BLOCK": block, "UNROLL": unroll},
                status=Status.WRONG_RESULT if failed else Status.OK,
                reason="y[0] is <b>1</b>" if failed else "",
                cases=() if failed else (RecordedCase("n=1", 1.0, (1e6 / S,) * 9),),
                anchor=seed,
            )
        )
    path = tmp_path_factory.mktemp("toy") / "toy.parquet"
    recording.write(path, rows, {"name": "toy", "kind": "cpu", "hardware": "none"})
    return f"recorded:{path}"


SETTINGS = {"forecaster": "forest", "policy": "confident", "proposer": "pool", "budget": 18, "batch": 4}


def test_a_finished_run(device: str, tmp_path: Path) -> None:
    run = search("toy", device=device, run=tmp_path, watch=lambda event, state: None, **SETTINGS)
    view = run_view.read(tmp_path)
    told = run.summary()
    anchor, *candidates = view.kernels.values()
    assert (anchor.parent, anchor.action, anchor.measured, anchor.value) == (None, "", 1, 0.0)
    assert all(seen.parent in view.kernels and seen.action for seen in candidates)
    for action, count in told["decisions"].items():
        assert sum(seen.action == action for seen in candidates) == count
    assert sum(seen.forecast is not None for seen in candidates) == told["forecasts"] > 0
    assert view.best is not None
    assert view.best.hash == told["best"]["kernel"]
    values = ",".join(f"{name}={value}" for name, value in run.best.kernel.values.items())
    assert view.best.name == f"toy.c@{values}"
    assert [seen.measured for seen in view.measured] == list(range(1, len(view.measured) + 1))
    path = frozen.write(tmp_path)
    assert path == tmp_path / "report.html"
    text = path.read_text()
    assert "y[0] is &lt;b&gt;1&lt;/b&gt;" in text
    assert f"{told['best']['speedup']:.3g}× the anchor" in text
    assert text == frozen.write(tmp_path).read_text()


def test_a_list_of_runs_counts_what_models_have_cost_so_far(writer: Writer, tmp_path: Path) -> None:
    run = writer(tmp_path)
    asking = {"tokens": 500, "dollars": 0.4}
    try:
        run.step()  # an answer of the proposer, and one of the forecaster
        assert summary(tmp_path, True).dollars == pytest.approx(0.02)
        run.store.append("asking", asking)
        run.store.append("proposed", {"parent": 0, "candidates": [], "duplicates": 0, "tokens": 0, "dollars": 0.0})
        run.store.append("asking", asking)
        run.store.append("session", {"pid": 1, "lived": 1.0, "notes": []})  # the process before it was killed
        run.store.append("forecast", {"forecasts": {}, "hopes": {}, "broken": {}, "tokens": 0, "dollars": 0.0})
    finally:
        run.close()
    assert summary(tmp_path, True).dollars == pytest.approx(0.42)
    assert run_view.read(tmp_path).spent.dollars == pytest.approx(0.42)


def test_a_view_counts_what_the_state_of_the_search_counts(device: str, tmp_path: Path) -> None:
    """The two are folds over the same events, apart from each other."""
    counted = []

    def compare(event: Event, state: State) -> None:
        view.apply(Event(*json.loads(json.dumps(event))))
        spent = state.spent
        assert (view.spent.measurements, view.spent.device_seconds) == (spent.measurements, spent.device_seconds)
        assert (view.spent.tokens, view.spent.dollars) == (spent.tokens, spent.dollars)
        assert {action: view.counts[action] for action in state.decisions} == dict(state.decisions)
        assert all(view.counts[name] == state.counts[name] for name in ("duplicates", "failed", "broken", "forecasts"))
        if state.best and not state.finished:
            assert view.best is not None
            assert view.best.value == state.best_value
        counted.append(event.kind)

    view = run_view.RunView(tmp_path)
    search("toy", device=device, run=tmp_path, watch=compare, **SETTINGS)
    assert {"proposed", "forecast", "decided", "measured", "finals", "finished"} <= set(counted)
    again = run_view.read(tmp_path)
    for seen in again.kernels.values():
        assert seen.forecast == view.kernels[seen.hash].forecast
        assert (seen.action, seen.value, seen.why) == tuple(
            getattr(view.kernels[seen.hash], name) for name in ("action", "value", "why")
        )


@pytest.mark.parametrize("events", [3, 4, 5, 6, 7, 9, 14])
def test_a_run_that_was_stopped(device: str, tmp_path: Path, events: int) -> None:
    def stop(event: Event, state: State) -> None:
        if event.seq == events:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search("toy", device=device, run=tmp_path, watch=stop, **SETTINGS)
    view = run_view.read(tmp_path)
    assert view.finished is None
    assert view.best is not None
    assert view.best.value == max(seen.value for seen in view.kernels.values() if seen.value is not None)
    assert "was stopped; the command that began it continues it" in frozen.render(tmp_path)


def test_new_events_are_taken_in_where_the_view_was(writer: type[Writer], tmp_path: Path) -> None:
    run = writer(tmp_path)
    view = run_view.RunView(tmp_path)
    for _ in range(3):
        run.step()
        with Store(tmp_path, writes=False) as store:
            assert view.refresh(store)
            assert not view.refresh(store)
        assert list(view.kernels) == run.hashes
        assert all(seen.name for seen in view.kernels.values())
    run.close()
    assert vars(view)["spent"] == run_view.read(tmp_path).spent


@pytest.mark.parametrize("kind", ["forecast", "proposed", "decided", "measured", "finals", "finished"])
@given(
    st.text(min_size=1, max_size=20),
    st.sampled_from(["forecasts", "candidates", "decisions", "kernel", "value", "seconds"]),
)
def test_events_that_make_no_sense_are_an_error_that_says_so(kind: str, text: str, field: str) -> None:
    view = run_view.RunView(Path("somewhere"))
    with pytest.raises(PresageError, match="is damaged"), run_view.readable(Path("somewhere")):
        view.apply(Event(2, 0.0, kind, {field: text}))


def test_a_longer_run_in_place_of_another_is_read_from_its_beginning(writer: type[Writer], tmp_path: Path) -> None:
    folder, followed = tmp_path / "run", Followed(tmp_path / "run")
    for words, steps in (("first", 1), ("second", 2)):
        written = writer(folder, words)
        for _ in range(steps):
            written.step()
        written.close()
        with followed.reading() as (view, standing, _):
            assert (view.problem, view.spent.measurements) == (words, 1 + 2 * steps)
            assert standing.speedup is not None
        shutil.rmtree(folder)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="holds no run"):
        frozen.write(tmp_path)
    (tmp_path / "run.db").write_text("something else")
    with pytest.raises(PresageError, match="not a run of presage, or is damaged"):
        frozen.write(tmp_path)


def test_the_command_writes_the_page_again(device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search("toy", device=device, run=tmp_path, **SETTINGS)
    (tmp_path / "report.html").unlink(missing_ok=True)
    assert main.main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/report.html\n"
    assert (tmp_path / "report.html").exists()
    assert main.main(["report", str(tmp_path / "nowhere")]) == 2
    assert "holds no run" in capsys.readouterr().err
