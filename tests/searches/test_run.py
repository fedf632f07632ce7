"""`presage.search` in Python: defaults, going on, refusing, and the examples of the documentation."""

from __future__ import annotations

import inspect
import json
import os
import re
import sqlite3
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import presage
from presage import PresageError, Recording, Run, search
from presage.devices import recorded, recording
from presage.devices import registry as devices
from presage.kernels import kernel as kernels
from presage.report import frozen
from presage.searches.configuration import Configuration
from presage.searches.run import Settings, folders
from presage.searches.state import State
from presage.store.store import FILE, Event, Store


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def device(toy: Recording) -> str:
    return f"recorded:{toy.path}"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"budget": 2.5}, "budget must be a whole number, not 2.5"),
        ({"budget": "3"}, "budget must be a whole number, not '3'"),
        ({"seed": None}, "seed must be a whole number, not None"),
        ({"batch": True}, "batch must be a whole number, not True"),
        ({"until": "soon"}, "until must be a number, not 'soon'"),
        ({"until": 5}, "is 0 or more and less than 1 (0.05 is 5 %), not 5"),
        ({"budgett": 3}, "a search has no setting 'budgett'; did you mean budget?"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(setting: dict[str, Any], complaint: str, device: str, here: Path) -> None:
    with pytest.raises(PresageError, match=re.escape(complaint)):
        presage.search("toy", device=device, **setting)
    assert not list(here.glob("presage-runs/*"))


def test_every_setting_of_a_run_is_an_argument_of_search() -> None:
    arguments = {*inspect.signature(presage.search).parameters} | Settings.__annotations__.keys()
    assert {field.name for field in fields(Configuration)} <= arguments


def test_a_run_has_its_best_kernel_as_a_file_and_a_summary(device: str, here: Path) -> None:
    run = presage.search("toy", device=device, forecaster="none", budget=30)
    assert run.folder == Path("presage-runs/toy-recorded-toy-0")
    assert run.best.path == run.folder / "best.c"
    assert run.best.path.read_text() == run.best.kernel.source
    summary = run.summary()
    assert list(summary) == [
        "run", "problem", "device", "forecaster", "policy", "strategy", "measurements", "why", "forecasts", "decisions",
        "broken", "missed", "early_stop", "optimum", "best", "notes", "spent", "report",
    ]  # fmt: skip
    assert set(summary["decisions"]) == {"trust", "measure", "audit"}
    assert set(summary["missed"]) == {"rate", "low", "high", "likely", "most", "trusted", "promoted"}
    assert set(summary["best"]) == {"kernel", "path", "speedup", "low", "high", "found_at"}
    assert summary["measurements"] == summary["spent"]["measurements"] == 30
    assert (summary["policy"], summary["report"]) == ("always", None)
    assert folders() == [run.folder]


def test_a_search_can_start_from_what_another_device_took(device: str, toy: Recording) -> None:
    """Here the other device is the same: its fastest are among the first that are tried."""
    run = search("toy", device=device, forecaster=f"surrogate:{toy.path}", budget=9)
    fastest = min((row for row in toy.rows("toy") if row.cases), key=lambda row: row.total_ns)
    with Store(run.folder, writes=False) as store:
        assert fastest.hash in [event.payload["kernel"] for event in store.events("measured")]


def test_a_finished_run_is_handed_back_and_another_configuration_refused(device: str) -> None:
    first = presage.search("toy", device=device, forecaster="none", budget=8)
    again = presage.search("toy", device=device, forecaster="none", budget=8)
    assert again.summary() == first.summary()
    with pytest.raises(PresageError, match="another configuration: strategy was puct, is greedy"):
        presage.search("toy", device=device, forecaster="none", budget=9, strategy="greedy")


@pytest.mark.parametrize("same", ["risk", "risk:alpha=0.05", "risk:near=3,delta=0.05"])
def test_the_same_settings_may_be_written_otherwise(device: str, same: str) -> None:
    run = presage.search("toy", device=device, forecaster="surrogate", policy="risk", budget=8)
    assert run.configuration["policy"] == "risk"
    presage.search("toy", device=device, forecaster="surrogate", policy=same, strategy="puct:c=1", budget=8)
    with pytest.raises(PresageError, match=r"policy was risk, is risk:alpha=0\.1,audit=0\.2"):
        presage.search("toy", device=device, forecaster="surrogate", policy="risk:audit=0.2", alpha=0.1, budget=8)


def test_a_run_that_was_stopped_goes_on_and_can_be_read_meanwhile(device: str) -> None:
    class StopError(Exception):
        pass

    def stop(event: object, state: object) -> None:
        if getattr(event, "kind", "") == "decided":
            raise StopError

    with pytest.raises(StopError):
        search("toy", device=device, forecaster="none", budget=12, watch=stop)
    (folder,) = folders()
    half = Run(folder)
    assert half.result is None
    assert half.measurements == 1
    assert half.best.speedup.value == 1.0
    assert half.owner is None
    with pytest.raises(PresageError, match="is not finished; the command that began it goes on with it"):
        half.summary()
    assert search("toy", device=device, forecaster="none", budget=12).measurements == 12


NAMES = [
    "a?b",
    "50%25",
    "a#b",
    "with space",
    "ünïcode-実行",
    "new\nline",
    "a;b&c",
    "quote'\"s",
    "?",
    "%",
    "file:x",
    "-",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_may_be_called_anything(device: str, here: Path, name: str) -> None:
    for _ in range(2):  # and it is found again
        run = search("toy", device=device, forecaster="none", budget=4, run=name)
        assert run.measurements == 4
        assert run.folder == Path(name)
        assert run.best.path.exists()
    assert {file.name for file in (here / name).iterdir()} >= {"best.c", "run.db", "run.lock"}
    assert [file.name for file in here.iterdir()] == [name]
    assert Run(Path(name)).summary()["measurements"] == 4


@pytest.mark.parametrize("name", ["x" * 300, "ok/" + "y" * 300, "zero\0byte"])
def test_a_folder_that_cannot_be_is_refused_before_anything_is_spent(device: str, here: Path, name: str) -> None:
    with pytest.raises(PresageError, match="no run can be kept in"):
        search("toy", device=device, forecaster="none", budget=4, run=name)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_a_search_needs_a_problem(device: str, here: Path, name: str) -> None:
    with pytest.raises(PresageError, match="name a problem"):
        search(name, device=device)


@pytest.mark.parametrize("forecaster", ["learned", "blend:learned,roofline", "roofline", "surrogate"])
def test_a_gpu_that_nobody_knows_can_be_searched(here: Path, forecaster: str) -> None:
    known = recorded.find("h200")
    path = here / "odd.parquet"
    recording.write(path, list(known.rows("softmax"))[:80], {**known.facts, "name": "odd", "hardware": "An RTX 9999"})
    said: list[str] = []

    def watch(event: Event, state: object) -> None:
        said.extend(event.payload.get("notes", ()) if event.kind == "session" else ())

    for _ in range(2):
        run = search("softmax", device=f"recorded:{path}", forecaster=forecaster, budget=8, run="odd", watch=watch)
    assert run.best.speedup.value > 1
    assert said == ["nothing is known of the GPU of recorded:odd: forecasts do without its peaks and its limits"], (
        "once, and before anything else"
    )


@pytest.mark.parametrize(
    ("files", "there"),
    [
        (["nvidia0"], True),
        (["nvidia3"], True),
        (["nvidia12", "nvidiactl"], True),
        (["nvidiactl", "nvidia-uvm", "nvidia-modeset"], False),
        (["nvidia0-caps", "nvidia-0"], False),
        ([], False),
    ],
)
def test_a_container_may_hold_any_of_a_machine_s_gpus(tmp_path: Path, files: list[str], there: bool) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert devices.has_gpu(tmp_path) == there


def test_what_a_full_disk_has_kept_stays(device: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Store.append

    def full(store: Store, kind: str, *arguments: object, **more: object) -> object:
        if kind == "asked":
            with store._explained():
                raise sqlite3.OperationalError("database or disk is full")
        return append(store, kind, *arguments, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", full)
        with pytest.raises(PresageError, match="what was written before is safe"):
            search("toy", device=device, forecaster="none", budget=8, run="mine")
    assert _events(Path("mine")) == ["begun", "session", "measured"]
    assert search("toy", device=device, forecaster="none", budget=8, run="mine").measurements == 8


def test_what_cannot_be_searched_leaves_nothing_behind(device: str, here: Path) -> None:
    before = set(here.rglob("*"))
    with pytest.raises(PresageError, match="no recorded kernel of 'toi'"):
        search("toi", device=device, forecaster="none")
    assert set(here.rglob("*")) == before
    with pytest.raises(PresageError, match="has nothing of toy, so that surrogate cannot start from it"):
        search("toy", device=device, forecaster="surrogate:h200", run=here / "mine")  # found out after the anchor
    assert set(here.rglob("*")) == before
    (here / "mine").mkdir()
    (here / "mine" / "notes.txt").write_text("of the user")
    with pytest.raises(PresageError, match="has nothing of toy"):
        search("toy", device=device, forecaster="surrogate:h200", run=here / "mine")
    assert [file.name for file in (here / "mine").iterdir()] == ["notes.txt"]


def test_every_default_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "packaged", lambda: ["h200"])
    filled = Configuration("nosuch", device="recorded:h200").complete()
    assert (filled.device, filled.proposer, filled.forecaster, filled.policy, filled.batch) == (
        "recorded:h200", "pool", "surrogate", "risk", 256,
    )  # fmt: skip
    filled = Configuration("nosuch.py", device="cuda").complete()
    assert (filled.proposer, filled.forecaster, filled.policy, filled.batch) == ("knobs", "none", "always", 4)
    assert Configuration("softmax", device="recorded:h200").complete().forecaster == "learned"
    filled = Configuration("softmax", device="cpu", forecaster="uniform", proposer="llm").complete()
    assert (filled.proposer, filled.policy, filled.batch) == ("llm", "risk", 8)
    assert Configuration("a/b.py", device="cpu", seed=3).folder == Path("presage-runs/b-cpu-3")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"strategy": "best"}, "there is no strategy 'best'; there are: .*greedy, .*islands, .*puct, .*random"),
        ({"policy": "hope"}, "there is no policy 'hope'; there are: .*always,"),
        ({"forecaster": "crystal"}, "there is no forecaster 'crystal'"),
        ({"proposer": "knobs"}, "can measure only what was recorded"),
        ({"budget": 1}, "2 measurements or more"),
        ({"batch": 0}, "1 candidate or more"),
        ({"anchor": "nosuch"}, "has no kernel 'nosuch' of toy"),
    ],
)
def test_a_mistake_is_explained_and_leaves_no_run_behind(
    device: str, settings: dict[str, object], complaint: str, here: Path
) -> None:
    with pytest.raises(PresageError, match=complaint):
        search("toy", **{"device": device, "forecaster": "none", **settings})
    assert not [folder for folder in folders() if len(_events(folder))]


def _events(folder: Path) -> list[str]:
    with Store(folder) as store:
        return [event.kind for event in store.events()]


def test_a_foreign_database_in_the_folder_is_explained(device: str, here: Path) -> None:
    (here / "mine").mkdir()
    with sqlite3.connect(here / "mine" / FILE) as other:
        other.execute("CREATE TABLE friends (name)")
    other.close()
    with pytest.raises(PresageError, match="is a database of another program"):
        search("toy", device=device, run=here / "mine")


def test_the_result_is_a_kernel_file_that_stands_by_itself(device: str, here: Path) -> None:
    run = search("toy", device=device, forecaster="none", budget=10)
    read = kernels.read(run.best.path)
    assert read.hash == run.best.kernel.hash
    assert read.header.problem == "toy"
    assert not read.is_family


def test_importing_presage_loads_nothing_of_the_search() -> None:
    program = "import sys, presage; print(sorted(m for m in sys.modules if m.startswith(('presage.', 'numpy'))))"
    environment = os.environ | {"PYTHONPATH": str(Path(str(presage.__file__)).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        presage.nosuch  # noqa: B018


# -- runs of older versions -------------------------------------------------------------------------------------------


def as_older_versions_wrote_it(folder: Path) -> None:
    """Broken kernels counted as trusted, nothing of promotions, of the best one's number or of stopping early."""
    with sqlite3.connect(folder / FILE) as database:
        told = database.execute("SELECT seq, kind, payload FROM events").fetchall()
    broken: dict[str, str] = {}
    changed = []
    for seq, kind, payload in told:
        content = json.loads(payload)
        if kind == "begun":
            for name in ("until", "acquisition"):
                del content["configuration"][name]
            content["configuration"] |= {"alpha": 0.05, "delta": 0.05}
        elif kind == "measured":
            del content["surprise"]
        elif kind == "forecast":
            broken = content["broken"]
        elif kind == "decided":
            content["decisions"] = [[hash, "trust", why] for hash, why in broken.items()] + content["decisions"]
        elif kind == "finished":
            content["decisions"]["trust"] += content["broken"]
            content["missed"] = {"rate": 0.0, "low": 0.0, "high": 0.897}
            for name in ("broken", "early_stop", "favourite", "delta"):
                del content[name]
            for name in ("found_at", "alone"):
                del content["best"][name]
        changed.append((json.dumps(content), seq))
    with sqlite3.connect(folder / FILE) as database:
        database.executemany("UPDATE events SET payload = ? WHERE seq = ?", changed)


OLDER = {"device": "recorded:h200", "budget": 30}


def test_a_run_of_an_older_version_is_read_with_what_is_known_of_it_now() -> None:
    new = search("topk_rows", run="run", **OLDER)
    summary, page = new.summary(), frozen.render(new.folder)
    assert summary["broken"] == 3
    as_older_versions_wrote_it(new.folder)
    old = Run(new.folder).summary()
    for name in ("decisions", "broken", "missed", "best", "forecasts", "measurements", "why"):
        assert old[name] == summary[name]
    assert old["early_stop"] is None
    again = frozen.render(new.folder)
    for told in ("Missed: ", "3 did not compile or could not launch", "Found at measurement"):
        (row,) = re.findall(f"<p>{told}.*?</p>", again)
        assert row in page


def test_a_run_of_an_older_version_goes_on(here: Path) -> None:
    def stop(event: Event, state: State) -> None:
        if event.kind == "measured" and state.spent.measurements == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search("topk_rows", run="run", watch=stop, **OLDER)
    as_older_versions_wrote_it(Path("run"))
    with pytest.raises(PresageError, match="acquisition was expected_improvement, is mean"):
        search("topk_rows", run="run", acquisition="mean", **OLDER)
    went_on = search("topk_rows", run="run", **OLDER).summary()
    whole = search("topk_rows", run="whole", **OLDER).summary()
    for name in ("decisions", "broken", "missed", "best", "forecasts", "measurements", "why"):
        if name == "best":
            assert went_on[name]["kernel"] == whole[name]["kernel"]
        else:
            assert went_on[name] == whole[name]
