"""Evaluators for evolutionary searches: forecast first, measure by policy, and what other projects read."""

from __future__ import annotations

import importlib.util
import json
import runpy
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from presage import Forecast, Interval, Measurement, Prediction, Status, api
from presage.cli import main
from presage.neighbours import evaluators
from presage.neighbours.evaluators import Evaluator

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
ADD = """\
// presage: problem vector_add
// presage: entry add
// EVOLVE-BLOCK-START
#define STEP 4096
// EVOLVE-BLOCK-END
void add(const float *x, const float *y, float *z, int n) {
    for (int first = 0; first < STEP; first++)
        for (int i = first; i < n; i += STEP) z[i] = x[i] + y[i];
}
"""
SURE_OF_LITTLE = Forecast.from_quantiles([0.05, 0.5, 0.95], [-2.1, -2.0, -1.9])
UNSURE = Forecast.from_quantiles([0.05, 0.5, 0.95], [-3.0, 0.0, 3.0])


class Known:
    """Forecasts and measurements that are known beforehand, by a word in the source; counts what was measured."""

    def __init__(self, forecasts: dict[str, Forecast], speedups: dict[str, float]) -> None:
        self.forecasts, self.speedups = forecasts, speedups
        self.measured: list[str] = []

    def forecast(self, problem: str, path: str, **_: Any) -> Prediction:
        return Prediction(next(found for word, found in self.forecasts.items() if word in Path(path).read_text()))

    def measure(self, problem: str, path: str, **_: Any) -> Measurement:
        word = next(word for word in self.speedups if word in Path(path).read_text())
        self.measured.append(word)
        kernel = api.load_kernel(problem, path)
        value = self.speedups[word]
        if not value:
            return Measurement(problem, kernel, "cpu", Status.WRONG_RESULT, "z is wrong")
        from presage.devices.base import CaseTiming

        timing = CaseTiming("n=1", (1.0,) * 8, tuple(range(8)), 1.0, 1)
        return Measurement(problem, kernel, "cpu", Status.OK, cases=(timing,), speedup=Interval(value, value, value))


@pytest.fixture
def program(tmp_path: Path) -> Any:
    def write(step: int) -> Path:
        path = tmp_path / f"p{step}.txt"  # searches call their files what they like
        path.write_text(ADD.replace("4096", str(step)))
        return path

    return write


def test_what_is_not_measured_never_scores_above_what_was(
    tmp_path: Path, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimist = Forecast.from_quantiles([0.05, 0.5, 0.95], [2.9, 3.0, 3.1])
    known = Known(
        {"STEP 1\n": UNSURE, "STEP 2\n": optimist, "STEP 3\n": SURE_OF_LITTLE, "STEP 5\n": UNSURE},
        {"STEP 1\n": 1.5, "STEP 2\n": 1.25, "STEP 3\n": 1.0, "STEP 5\n": 0.0},
    )
    monkeypatch.setattr(evaluators.api, "forecast", known.forecast)
    monkeypatch.setattr(evaluators.api, "measure", known.measure)
    evaluator = Evaluator("vector_add", suffix=".c", device="cpu", journal=tmp_path / "j.jsonl")

    assert evaluator.evaluate(program(3)).metrics["measured"] == 1.0  # the first, whatever is thought of it
    assert evaluator.evaluate(program(1)).metrics["combined_score"] == 1.5
    trusted = evaluator.evaluate(program(2))
    assert trusted.metrics["measured"] == 0.0
    assert trusted.metrics["combined_score"] == 1.5
    wrong = evaluator.evaluate(program(5))
    assert (wrong.metrics["combined_score"], wrong.is_right) == (0.0, False)
    assert "z is wrong" in wrong.reason

    again = Evaluator("vector_add", suffix=".c", device="cpu", journal=tmp_path / "j.jsonl")  # another process
    assert again.forecast(program(1)).metrics["combined_score"] == 1.5
    assert again.evaluate(program(5)).metrics["combined_score"] == 0.0
    assert known.measured == ["STEP 3\n", "STEP 1\n", "STEP 5\n"]
    with (tmp_path / "j.jsonl").open("a") as journal:
        journal.write('{"kernel": "cut sho')
    assert again.forecast(program(1)).metrics["combined_score"] == 1.5


def test_a_program_that_is_no_kernel_scores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.c"
    path.write_text("int main;")
    score = Evaluator("vector_add", suffix=".c", device="cpu", journal=tmp_path / "j").evaluate(path)
    assert score.metrics["combined_score"] == 0
    assert "declares no entry" in score.reason


def test_a_file_is_written_for_each_project_and_never_over_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for project in evaluators.PROJECTS:
        asked = ["problems", "evaluator", "vector_add", "--for", project, "-o", str(tmp_path / f"{project}.py")]
        assert main.main(["--no-config", *asked, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["suffix"] == ".c"
        compile((tmp_path / f"{project}.py").read_text(), project, "exec")
        assert main.main(["--no-config", *asked]) == 2
        assert "name another file" in capsys.readouterr().err
    assert main.main(["--no-config", "problems", "evaluator"]) == 2


def test_shinka_reads_what_its_evaluator_writes(tmp_path: Path, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known({"STEP": UNSURE}, {"STEP 1\n": 1.5, "STEP 2\n": 0.0})
    monkeypatch.setattr(evaluators.api, "forecast", known.forecast)
    monkeypatch.setattr(evaluators.api, "measure", known.measure)
    evaluator = tmp_path / "evaluate.py"
    evaluator.write_text(evaluators.text("shinka", "vector_add", ".c", "cpu", "learned", "always"))
    evaluate = runpy.run_path(str(evaluator))["main"]

    def written(step: int) -> tuple[dict[str, Any], dict[str, Any]]:
        evaluate(str(program(step)), str(tmp_path / f"results{step}"))
        files = (tmp_path / f"results{step}" / f"{name}.json" for name in ("metrics", "correct"))
        metrics, correct = (json.loads(file.read_text()) for file in files)
        return metrics, correct

    metrics, correct = written(1)
    assert metrics["combined_score"] == 1.5
    assert metrics["public"]["measured"] == 1.0
    assert correct == {"correct": True, "error": None}
    metrics, correct = written(2)
    assert metrics["combined_score"] == 0.0
    assert (correct["correct"], "z is wrong" in correct["error"]) == (False, True)


@pytest.fixture
def model() -> Iterator[str]:
    """A language model that halves the stride of the program that it is shown, over real HTTP."""

    class Answers(BaseHTTPRequestHandler):
        steps = iter((64, 1, 1, 1, 1))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            program = ADD.replace("4096", str(next(self.steps, 1)))
            text = (
                f"<NAME>\nstep\n</NAME>\n<DESCRIPTION>\nshorter\n</DESCRIPTION>\n<CODE>\n```cpp\n{program}```\n</CODE>"
            )
            message = {"role": "assistant", "content": text}
            body = json.dumps(
                {
                    "id": "1", "object": "chat.completion", "created": 1, "model": "fake",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
            ).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


EVOLVE = """\
import asyncio, sys
from openevolve import OpenEvolve
from openevolve.config import Config, LLMModelConfig

if __name__ == "__main__":
    config = Config(max_iterations=2, diff_based_evolution=False, language="cpp", file_suffix=".c")
    config.llm.models = config.llm.evaluator_models = [
        LLMModelConfig(name="fake", api_base=sys.argv[1], api_key="none", timeout=60, retries=0, retry_delay=0)
    ]
    config.llm.api_base = sys.argv[1]
    config.evaluator.cascade_evaluation, config.evaluator.cascade_thresholds = True, [0.01]
    config.evaluator.parallel_evaluations, config.evaluator.timeout = 1, 300
    config.database.num_islands, config.database.population_size = 1, 10
    best = asyncio.run(OpenEvolve("initial.c", "evaluator.py", config=config, output_dir="out").run(iterations=2))
    print("BEST", best.metrics["combined_score"], "STEP 4096" in best.code)
"""


@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("openevolve") is None, reason="needs openevolve")
def test_openevolve_optimises_a_problem_of_the_catalogue(tmp_path: Path, model: str) -> None:
    (tmp_path / "initial.c").write_text(ADD)
    (tmp_path / "evaluator.py").write_text(
        evaluators.text("openevolve", "vector_add", ".c", "cpu", "learned", "always")
    )
    (tmp_path / "evolve.py").write_text(EVOLVE)
    done = subprocess.run(
        [sys.executable, "evolve.py", model], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    score, is_initial = done.stdout.split("BEST", 1)[1].split()[:2]
    journal = [json.loads(line) for line in (tmp_path / "evaluator.jsonl").read_text().splitlines()]
    assert float(score) == max(each["metrics"]["combined_score"] for each in journal)
    assert is_initial == "False"


SHINKA = """\
import sys
from pathlib import Path
from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

if __name__ == "__main__":
    config = EvolutionConfig(
        num_generations=3, language="cpp", llm_models=[f"local/fake@{sys.argv[1]}"], llm_dynamic_selection=None,
        patch_types=["full"], patch_type_probs=[1.0], embedding_model=None, meta_rec_interval=None,
        init_program_path="initial.cpp", results_dir="out", max_novelty_attempts=1,
    )
    jobs = LocalJobConfig(eval_program_path="evaluate.py", time="00:05:00")
    database = DatabaseConfig(db_path="programs.sqlite", num_islands=1)
    ShinkaEvolveRunner(
        evo_config=config, job_config=jobs, db_config=database, max_evaluation_jobs=1, max_proposal_jobs=1,
    ).run()
"""


@needs_compiler
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("shinka") is None, reason="needs shinka-evolve")
def test_shinka_optimises_a_problem_of_the_catalogue(tmp_path: Path, model: str) -> None:
    (tmp_path / "initial.cpp").write_text(ADD)
    (tmp_path / "evaluate.py").write_text(evaluators.text("shinka", "vector_add", ".c", "cpu", "learned", "always"))
    (tmp_path / "evolve.py").write_text(SHINKA)
    done = subprocess.run(
        [sys.executable, "evolve.py", model], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = tmp_path.rglob("*.sqlite")
    with sqlite3.connect(found) as database:
        programs = database.execute(
            "select combined_score, correct, code from programs order by combined_score"
        ).fetchall()
    assert len(programs) >= 3
    assert all(correct for _, correct, _ in programs)
    journal = [json.loads(line) for line in (tmp_path / "evaluate.jsonl").read_text().splitlines()]
    assert programs[-1][0] == max(each["metrics"]["combined_score"] for each in journal)
    assert "STEP 4096" not in programs[-1][2]
