"""What is read of a run's store is what happened in the run."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from presage import PresageError, Status, search
from presage.cli import main
from presage.devices import recording
from presage.devices.recording import RecordedCase, Row
from presage.kernels.normalise import digest
from presage.report import run_page, run_view
from presage.searches.state import State
from presage.store.store import Event


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
    summary = run.summary()
    anchor, *candidates = view.kernels
    assert (anchor.parent, anchor.action, anchor.measured, anchor.value) == (None, "", 1, 0.0)
    assert all(seen.parent in view.by_hash and seen.action for seen in candidates)
    for action, count in summary["decisions"].items():
        assert sum(seen.action == action for seen in candidates) == count
    assert sum(seen.forecast is not None for seen in candidates) == summary["forecasts"] > 0
    assert view.best == summary["best"]["kernel"]
    assert view.speedup is not None
    assert view.speedup.value == summary["best"]["speedup"]
    values = ",".join(f"{name}={value}" for name, value in run.best.kernel.values.items())
    assert view.by_hash[view.best].name == f"toy.c@{values}"
    assert (view.best_source, view.ended) == (run.best.kernel.source, run.result and run.result["why"])
    numbers = [seen.measured for seen in view.kernels if seen.measured is not None]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    path = run_page.write(tmp_path)
    assert path == tmp_path / "report.html"
    assert "y[0] is &lt;b&gt;1&lt;/b&gt;" in path.read_text()
    assert path.read_text() == run_page.write(tmp_path).read_text()


@pytest.mark.parametrize("events", [3, 4, 5, 6, 7, 9, 14])
def test_a_run_that_was_stopped(device: str, tmp_path: Path, events: int) -> None:
    def stop(event: Event, state: State) -> None:
        if event.seq == events:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search("toy", device=device, run=tmp_path, watch=stop, **SETTINGS)
    view = run_view.read(tmp_path)
    assert view.ended == ""
    assert view.by_hash[view.best].value == max(seen.value for seen in view.kernels if seen.value is not None)
    assert "It has not ended." in run_page.render(view)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match="holds no run"):
        run_page.write(tmp_path)
    (tmp_path / "run.db").write_text("something else")
    with pytest.raises(PresageError, match="not a run of presage, or is damaged"):
        run_page.write(tmp_path)


def test_the_command_writes_the_page_again(device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search("toy", device=device, run=tmp_path, **SETTINGS)
    (tmp_path / "report.html").unlink(missing_ok=True)
    assert main.main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/report.html\n"
    assert (tmp_path / "report.html").exists()
    assert main.main(["report", str(tmp_path / "nowhere")]) == 2
    assert "holds no run" in capsys.readouterr().err
