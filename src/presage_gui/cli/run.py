"""`presage-gui run`: run one or more episodes."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

from presage_gui.cli.parts import add_critic, critic_of, gate_of
from presage_gui.critic import Verdict
from presage_gui.episode import Episode
from presage_gui.loop import Limits, Loop, Result
from presage_gui.page import write_page
from presage_gui.registry import AGENTS, ENVIRONMENTS, make
from presage_gui.step import Step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--env", required=True, metavar="NAME:TASK", help="such as miniwob:click-test")
    parser.add_argument(
        "--agent", default="scripted", metavar="NAME", help="such as scripted:errors=0.3 (default: scripted)"
    )
    add_critic(parser)
    parser.add_argument("--seed", type=int, default=0, help="which variant of the task (default: 0)")
    parser.add_argument("--episodes", type=int, default=1, help="how many, with seeds one after the other (default: 1)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("episodes"),
        metavar="FOLDER",
        help="where episodes are kept; the same command there goes on",
    )
    limits = Limits()
    parser.add_argument(
        "--steps", type=int, default=limits.steps, help=f"most steps of an episode (default: {limits.steps})"
    )
    parser.add_argument(
        "--revisions",
        type=int,
        default=limits.revisions,
        help=f"how often a step may be sent back (default: {limits.revisions})",
    )
    parser.add_argument(
        "--checks", type=int, default=limits.checks, help=f"most checks of an episode (default: {limits.checks})"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=limits.seconds,
        help=f"most seconds of an episode (default: {limits.seconds:g})",
    )
    parser.add_argument(
        "--ask",
        choices=("refuse", "allow", "person", "insist"),
        default="refuse",
        help="who decides on steps that a person has to decide on (default: refuse: the episode ends; "
        "insist: the agent, by proposing it again)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document a line, for each episode")


def run(arguments: argparse.Namespace) -> int:
    limits = Limits(arguments.steps, arguments.revisions, arguments.checks, arguments.seconds)
    critic, gate = critic_of(arguments), gate_of(arguments)
    people = {"refuse": None, "allow": lambda step, verdict: True, "person": _ask, "insist": None}
    person, insist = people[arguments.ask], arguments.ask == "insist"
    results = []
    with (
        closing(critic),
        make(ENVIRONMENTS, arguments.env) as environment,
        closing(make(AGENTS, arguments.agent, environment)) as agent,
    ):
        for seed in range(arguments.seed, arguments.seed + arguments.episodes):
            folder = arguments.out / f"{arguments.env.replace(':', '-').replace('/', '-')}-{seed}"
            with Episode(folder, _configuration(arguments, seed)) as episode:
                loop = Loop(
                    environment, agent, critic, gate, episode, limits, person, not arguments.no_fixes, insist=insist
                )
                result = loop.run(seed)
                goal = episode.state.goal
            write_page(folder)
            results.append(result)
            _print(result, goal, seed, folder, arguments.json)
    if arguments.episodes > 1 and not arguments.json:
        print(f"{sum(each.success for each in results)} of {len(results)} episodes succeeded")
    return 0 if all(each.success for each in results) else 1


def _configuration(arguments: argparse.Namespace, seed: int) -> dict[str, object]:
    """Return the settings that must not change when an episode is continued. Other budgets may grow."""
    names = ("env", "agent", "critic", "threshold", "strict", "risk", "revisions", "no_fixes")
    return {name: getattr(arguments, name) for name in names} | {"seed": seed}


def _print(result: Result, goal: str, seed: int, folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"goal": goal, "seed": seed, "folder": str(folder), **vars(result)}), flush=True)
        return
    print(f"{goal}\n  {'success' if result.success else 'no success'}: {result.reason}")
    print(
        f"  {result.steps} steps, {result.proposals} proposals, {result.revised} sent back, {result.asked} for a person"
    )
    print(f"  {folder / 'episode.html'}", flush=True)


def _ask(step: Step, verdict: Verdict) -> bool | None:
    if not sys.stdin.isatty():
        return None
    print(f"{step.words}\n  {verdict.explanation or 'it cannot be undone'}; probability {verdict.probability:.2f}")
    return input("Carry it out? [y/N] ").strip().lower() in ("y", "yes")
