"""Play many episodes: python benchmarks/gui_loop.py FILE [--seeds 10] [--split test] [--setups none:0.3,pixels:0.3,...]

Each finished episode is appended to FILE as one line; the same command resumes where it stopped. A setup is
CRITIC:ERRORS, with /r0, /r1 for fewer revisions, /nofix without fixes, /bare without stated intents, /t0.3 for a
threshold. Seeds are the outer loop, so that the first results cover all tasks. The summary is printed at the end;
--summary only prints it. To share the work, start two commands with --part 0/2 and --part 1/2 and different files.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.scoring import bootstrap
from presage_gui.agents.scripted import Scripted
from presage_gui.critics.pixels import Pixels
from presage_gui.data.splits import tasks
from presage_gui.deciding import Gate, Threshold
from presage_gui.environments.miniwob import MiniWob
from presage_gui.evaluation.live import FIRST_SEED, play, players

SETUPS = "none:0.3,pixels:0.3,none:0,pixels:0,ideal:0.3,random:0.3,unchanged:0.3"


@dataclass(frozen=True)
class Setup:
    name: str
    critic: str
    errors: float
    revisions: int = 2
    fixes: bool = True
    bare: bool = False
    threshold: float | None = None

    @classmethod
    def parse(cls, name: str) -> Setup:
        head, *options = name.split("/")
        critic, _, errors = head.partition(":")
        revisions = next((int(each[1:]) for each in options if each[0] == "r"), 2)
        threshold = next((float(each[1:]) for each in options if each[0] == "t"), None)
        return cls(name, critic, float(errors), revisions, "nofix" not in options, "bare" in options, threshold)

    def gate(self, usual: Gate) -> Gate:
        return Threshold(self.threshold, self.threshold) if self.threshold is not None else usual


def rows(file: Path) -> Iterator[dict[str, Any]]:
    if file.is_file():
        for line in file.read_text().splitlines():
            yield json.loads(line)


def known(split: str) -> list[str]:
    """Return the tasks of a split that have an oracle."""
    with MiniWob("click-test") as environment:
        found = []
        for task in tasks(split):  # type: ignore[arg-type]
            environment.switch(task)
            environment.reset(FIRST_SEED)
            oracle = environment.guide()
            oracle.ready()
            if oracle.known:
                found.append(task)
    return found


def run(file: Path, split: str, only: list[str], seeds: int, setups: list[Setup], part: tuple[int, int]) -> None:
    names = only or known(split)
    done = {(each["setup"], each["task"], each["seed"]) for each in rows(file)}
    mine, of = part
    with MiniWob(names[0]) as environment, file.open("a") as out:
        everyone = players(environment, {"pixels": Pixels(online=False)}, Threshold(strict=0.5))
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            for task in names[mine::of]:
                environment.switch(task)
                for setup in setups:
                    if (setup.name, task, seed) in done:
                        continue
                    critic, gate = everyone[setup.critic]
                    agent = Scripted(environment, setup.errors, setup.bare)
                    row: dict[str, Any] = {"setup": setup.name, "task": task, "seed": seed}
                    with tempfile.TemporaryDirectory() as folder:
                        played = play(
                            environment, agent, critic, setup.gate(gate), seed, Path(folder) / "episode",
                            setup.revisions, setup.fixes,
                        )  # fmt: skip
                    out.write(json.dumps(row | vars(played)) + "\n")
                    out.flush()


def summary(files: list[Path]) -> dict[str, Any]:
    """Return each setup's success, and its gain over `none` at the same error rate, over the episodes both have."""
    kept = {(each["setup"], each["task"], each["seed"]): each for file in files for each in rows(file)}
    found: dict[str, Any] = {}
    for name in dict.fromkeys(key[0] for key in kept):
        base = f"none:{name.split('/')[0].partition(':')[2]}"
        both = [key for key in kept if key[0] == name and (base, *key[1:]) in kept]
        if not both:
            continue
        won = np.array([float(kept[key]["success"]) for key in both])
        without = np.array([float(kept[base, *key[1:]]["success"]) for key in both])
        gain = bootstrap(lambda at, g=won - without: float(g[at].mean()), [key[1] for key in both])  # type: ignore[misc]
        found[name] = {
            "episodes": len(both),
            "tasks": len({key[1] for key in both}),
            "success": round(float(won.mean()), 4),
            "none": round(float(without.mean()), 4),
            "gain": [round(float(each), 4) for each in gain],
            "steps": round(float(np.mean([kept[key]["steps"] for key in both])), 2),
            "cpu_seconds": round(float(np.mean([kept[key]["seconds"] for key in both])), 3),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="+", help="several with --summary")
    parser.add_argument("--split", default="test")
    parser.add_argument("--tasks", default="", help="these only, with commas")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--setups", default=SETUPS)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if not given.summary:
        mine, _, of = given.part.partition("/")
        only = [each for each in given.tasks.split(",") if each]
        setups = [Setup.parse(each) for each in given.setups.split(",")]
        run(given.file[0], given.split, only, given.seeds, setups, (int(mine), int(of)))
    for name, figures in summary(given.file).items():
        print(name, json.dumps(figures))


if __name__ == "__main__":
    main()
