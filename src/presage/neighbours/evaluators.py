"""Evaluator: scores programs for an evolutionary search, such as OpenEvolve's or ShinkaEvolve's.

It forecasts a program first, and measures it only if the policy does not trust the forecast. A program that was not
measured never scores above the best measured one, so the best program of a search was always measured.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage import api
from presage.core.errors import PresageError
from presage.devices.base import Effort
from presage.devices.status import Status
from presage.policies import registry as policies
from presage.policies.base import Action, Standing
from presage.sandbox import scratch

EFFORT = Effort(precision=0.02, case_seconds=1.0, processes=1)
PROJECTS = ("openevolve", "shinka")


@dataclass(frozen=True)
class Score:
    """The score of one program."""

    metrics: dict[str, float]
    """`combined_score`: the speedup over the anchor, which a search maximises; 0 for a program that fails. `measured`:
    1 or 0. `forecast`: the expected speedup. `p_fail`: the probability of failure."""
    reason: str
    """Why the program was or was not measured, or why it fails."""

    @property
    def is_right(self) -> bool:
        return self.metrics["combined_score"] > 0


class Evaluator:
    """Scores programs for one problem on one device. Processes with the same journal share their measurements."""

    def __init__(
        self,
        problem: str,
        *,
        suffix: str,
        device: str,
        forecaster: str = "learned",
        policy: str = "confident",
        journal: str | Path = "presage-evaluator.jsonl",
    ) -> None:
        """suffix: the suffix of program files: .c, .cu or .py. journal: the file that stores measurements."""
        self.problem, self.suffix, self.device = problem, suffix, device
        self.forecaster, self.policy = forecaster, policies.get(policy)
        self._journal = Path(journal)

    def forecast(self, program: str | Path) -> Score:
        """The score of a program without running it: its earlier measurement, or else its forecast."""
        return self._forecast(program)[0]

    def evaluate(self, program: str | Path) -> Score:
        """The score of a program: its forecast if the policy trusts it, else its measurement."""
        score, known = self._forecast(program)
        if known or score.metrics["measured"] or not score.is_right:
            return score
        return self._measure(program, score)

    def _forecast(self, program: str | Path) -> tuple[Score, bool]:
        """The score, and whether it is final, so that no measurement is needed."""
        with self._kernel(program) as path:
            try:
                hash = api.load_kernel(self.problem, path).hash
                past = self._measured()
                if hash in past:
                    return Score(past[hash]["metrics"], past[hash]["reason"]), True
                prediction = api.forecast(self.problem, path, target=self.device, forecaster=self.forecaster)
            except PresageError as error:
                return _failed(str(error)), True
        if prediction.why_broken:
            return _failed(prediction.why_broken), True
        found = prediction.forecast
        best = max((each["metrics"]["combined_score"] for each in past.values()), default=0.0)
        standing = Standing(math.log2(best) if best > 0 else 0.0, len(past), None)
        (decision,) = self.policy.decide([found], standing, random.Random(len(past)))
        expected = 1.0 if found is None else (1 - found.p_fail) * float(2 ** found.mean())
        is_trusted = decision.action is Action.TRUST and best > 0
        metrics = {
            "combined_score": min(expected, best) if is_trusted else expected,
            "measured": 0.0,
            "forecast": expected,
            "p_fail": 0.0 if found is None else found.p_fail,
        }
        return Score(metrics, f"{decision.action}: {decision.reason}"), is_trusted

    def _measure(self, program: str | Path, forecast: Score) -> Score:
        with self._kernel(program) as path:
            try:
                found = api.measure(self.problem, path, device=self.device, effort=EFFORT)
            except PresageError as error:
                return _failed(str(error))
        value = found.speedup.value if found.status is Status.OK and found.speedup else 0.0
        score = Score(
            {**forecast.metrics, "combined_score": value, "measured": 1.0},
            f"measured: {value:.3g} times the anchor's speed" if value else f"{found.status}: {found.reason}",
        )
        line = json.dumps({"kernel": found.kernel.hash, "metrics": score.metrics, "reason": score.reason})
        with self._journal.open("a", encoding="utf-8") as stream:  # one write, so that lines do not interleave
            stream.write(f"{line}\n")
        return score

    def _measured(self) -> dict[str, dict[str, Any]]:
        """The measurements so far, by the hash of the kernel. Truncated lines are skipped."""
        found = {}
        if self._journal.exists():
            for line in self._journal.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    found[str(entry["kernel"])] = entry
                except (ValueError, LookupError, TypeError):
                    continue
        return found

    @contextmanager
    def _kernel(self, program: str | Path) -> Iterator[str]:
        """The path of a copy of the program with the right suffix, because searches use any file name."""
        folder = scratch.make()
        try:
            path = os.path.join(folder, f"program{self.suffix}")
            Path(path).write_bytes(Path(program).read_bytes())
            yield path
        finally:
            scratch.remove(folder)


def _failed(why: str) -> Score:
    return Score({"combined_score": 0.0, "measured": 0.0, "forecast": 0.0, "p_fail": 1.0}, f"fails: {why}")


# -- files for other projects -----------------------------------------------------------------------------------------

_EVALUATOR = '''\
"""Scores kernels for {problem} on {device} for {project}. Written by presage; change it as you like.

A program is forecast first, and measured where the policy does not trust the forecast. combined_score is the speedup
over the anchor, 0 for a program that fails.
"""

from pathlib import Path

from presage.neighbours.evaluators import Evaluator

EVALUATOR = Evaluator(
    {problem!r},
    suffix={suffix!r},
    device={device!r},
    forecaster={forecaster!r},
    policy={policy!r},
    journal=Path(__file__).with_suffix(".jsonl"),
)
'''
_OPENEVOLVE = '''

def evaluate_stage1(program_path):
    """The forecast. A program whose score is below the first of cascade_thresholds goes no further."""
    return _result(EVALUATOR.forecast(program_path))


def evaluate_stage2(program_path):
    """The measurement, where the forecast is not trusted."""
    return _result(EVALUATOR.evaluate(program_path))


def evaluate(program_path):
    """For a configuration without cascade_evaluation."""
    return evaluate_stage2(program_path)


def _result(score):
    from openevolve.evaluation_result import EvaluationResult

    return EvaluationResult(metrics=score.metrics, artifacts={"presage": score.reason})
'''
_SHINKA = '''

def main(program_path, results_dir):
    """Writes what ShinkaEvolve reads: metrics.json and correct.json."""
    score = EVALUATOR.evaluate(program_path)
    metrics = {
        "combined_score": score.metrics["combined_score"],
        "public": score.metrics,
        "private": {},
        "text_feedback": score.reason,
    }
    error = None if score.is_right else score.reason
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "correct.json").write_text(json.dumps({"correct": score.is_right, "error": error}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    arguments = parser.parse_args()
    main(arguments.program_path, arguments.results_dir)
'''


def text(project: str, problem: str, suffix: str, device: str, forecaster: str, policy: str) -> str:
    """The text of an evaluator's file for a project. Raises PresageError for an unknown project."""
    if project not in PROJECTS:
        raise PresageError(f"evaluators are written for {' and '.join(PROJECTS)}, not for '{project}'")
    head = _EVALUATOR.format(
        problem=problem, project=project, suffix=suffix, device=device, forecaster=forecaster, policy=policy
    )
    if project == "shinka":
        head = head.replace("from pathlib import Path", "import argparse\nimport json\nfrom pathlib import Path", 1)
    return head + (_SHINKA if project == "shinka" else _OPENEVOLVE)
