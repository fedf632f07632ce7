"""What an agent does with the server, from end to end, through real pipes and real HTTP."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

H200 = "recorded:h200"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
]


def test_an_agent_forecasts_twenty_measures_three_and_follows_a_search(
    by_pipes: Callable[..., Any], agent: Any, scale: str
) -> None:
    problem = {"name": "scale.c", "source": scale}
    values = [{"STEP": step, "BACK": back} for step in (1, 2, 4, 8, 16, 32, 64) for back in (0, 1, 2)][:19]
    candidates: list[Any] = [problem | {"values": each} for each in values]
    candidates.append({"name": "broken.c", "source": "int nothing;"})

    async def work(ask: Any) -> None:
        (told,) = (await ask("describe_problem", problem=problem))["problems"]
        assert "scale(const float *x, float *y, int n)" in told["signature"]

        told = await ask("forecast", problem=problem, kernels=candidates, target="cpu", policy="topk:k=3")
        forecasts = told["forecasts"]
        assert [each["kernel"]["values"] for each in forecasts[:19]] == values
        assert forecasts[19]["decision"]["action"] == "broken"
        assert "declares no entry" in forecasts[19]["decision"]["reason"]
        assert [progress for progress, _, _ in ask.progress] == sorted({p for p, _, _ in ask.progress})
        worth = [n for n, each in enumerate(forecasts) if each["decision"]["action"] == "measure"]
        assert len(worth) == 3

        told = await ask("measure", problem=problem, kernels=[candidates[n] for n in worth], precision=0.5)
        assert [each["status"] for each in told["measurements"]] == ["ok"] * 3
        assert all(each["speedup"]["value"] > 0 for each in told["measurements"])
        assert ask.progress[-1][0] >= 1

        run = (await ask("start_search", problem="topk_rows", device=H200, budget=8, run="mine"))["run"]
        told = await ask("follow_search", run=run, wait_seconds=0)
        while told["state"] == "running":
            told = await ask("follow_search", run=run, after=told["next"], wait_seconds=60)
        assert (told["state"], told["measured"], told["error"]) == ("finished", 8, "")
        assert told["left"]["measurements"] == 200 - 4 - 8

        found = await ask("read_run", run=run)
        assert found["best"]["speedup"]["value"] > 1
        assert Path(found["best"]["path"]).read_text() == found["source"]

    async def leave(ask: Any) -> int:
        """A server that ends stops its searches."""
        tunable = "// presage: tune BACK = 0, 1, 2\n"
        many = scale.replace(tunable, f"{tunable}// presage: tune MORE = {', '.join(map(str, range(9)))}\n")
        long = {"name": "scale.c", "source": many}  # compiled and run 150 times: it cannot be finished when we leave
        await ask("start_search", problem=long, device="cpu", budget=150, run="long", forecaster="uniform")
        told = await ask("follow_search", run="long", wait_seconds=0)
        while told["measured"] < 2:
            told = await ask("follow_search", run="long", wait_seconds=0.2)
        assert "goes on already" in await ask.refused("start_search", run="long")
        return int(told["measured"])

    async def come_back(ask: Any, measured: int) -> None:
        """Another goes on with them by name, within its own budget."""
        states = {each["run"]: each["state"] for each in (await ask("list_runs"))["runs"]}
        assert states == {"mine": "finished", "long": "can be continued"}
        assert "leave out device" in await ask.refused("start_search", run="long", device=H200)
        assert "of 149 are left" in await ask.refused("start_search", run="long", budget=500)
        told = await ask("start_search", run="long")
        assert told["measured"] >= measured
        assert told["left"]["measurements"] >= measured - 1
        assert (await ask("stop_search", run="long"))["state"] in ("stopped", "finished")
        assert (await ask("read_run", run="long"))["measurements"] >= measured

    async def both() -> None:
        async with by_pipes("--device", "cpu", "--device", H200) as client:
            await work(agent(client))
            measured = await leave(agent(client))
        async with by_pipes("--max-measurements", "149", mode="legacy") as client:  # the protocol before 2026
            await come_back(agent(client), measured)

    anyio.run(both)


def test_a_cancelled_call_ends_its_work(by_web: Callable[..., Any], agent: Any, scale: str, never: str) -> None:
    """Also budgets, which hold whoever connects, since the server is there anyhow."""
    problem = {"name": "scale.c", "source": scale}
    endless = {"name": "never.c", "source": never, "values": {"STEP": 2}}
    server = by_web("--max-measurements", "3", "--max-searches", "0", "--device", "cpu")

    async def cancel() -> None:
        async with server.client() as client:
            ask = agent(client)
            assert "a larger --max-searches" in await ask.refused("start_search", problem=problem, budget=2)
            bad = {"name": "bad.c", "source": "int nothing;"}
            assert "declares no entry" in await ask.refused("measure", problem=problem, kernels=[bad, problem])
            with anyio.CancelScope() as scope:

                async def hear(progress: float, total: float | None, message: str | None) -> None:
                    if message == "checking":
                        scope.cancel()

                arguments = {"problem": problem, "kernels": [endless], "anchor": "none"}
                await client.call_tool("measure", arguments, progress_callback=hear)
            assert scope.cancelled_caught
            until = time.monotonic() + 60
            while server.descendants():
                assert time.monotonic() < until, "what was cancelled goes on"
                await anyio.sleep(0.05)

    async def spend() -> None:
        async with server.client(mode="legacy") as client:  # has sessions; another one has no other budget
            ask = agent(client)
            why = await ask.refused("measure", problem=problem, kernels=[problem, problem], device="cpu")
            assert "3 measurements are wanted, and 2 of 3 are left" in why
            assert "may not be used" in await ask.refused("measure", problem=problem, kernels=[problem], device="cuda")
            await ask("measure", problem=problem, kernels=[problem], precision=0.5)
            assert "0 of 3 are left" in await ask.refused("measure", problem=problem, kernels=[problem], anchor="none")

    anyio.run(cancel)
    anyio.run(spend)
