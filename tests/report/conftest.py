"""Runs to show: written with the store's own writer, so that they can hold what no search would."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from presage import Forecast, Kernel, Measurement, Status
from presage.devices.base import CaseTiming
from presage.kernels import header as headers
from presage.store.store import Store

CONFIGURATION = {
    "problem": "softmax", "kernels": None, "only": False, "device": "recorded:h200", "forecaster": "learned",
    "policy": "risk:alpha=0.05,delta=0.05", "strategy": "puct", "acquisition": "expected_improvement",
    "proposer": "llm", "anchor": None, "budget": 60, "device_seconds": None, "wall": 900.0, "tokens": 10_000,
    "dollars": 1.0, "alpha": None, "delta": None, "until": None, "batch": 4, "seed": 0,
}  # fmt: skip


def around(value: float) -> Forecast:
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    return Forecast.from_quantiles(levels, [value + level - 0.5 for level in levels], p_fail=0.1)


class Writer:
    """Writes the events of a run, one step after the other. `words` is put wherever a run holds words of others."""

    def __init__(self, folder: Path, words: str = "", **asked: Any) -> None:
        self.store, self.words = Store(folder), words
        self.hashes: list[str] = []
        told = CONFIGURATION | ({"problem": words, "device": words} if words else {}) | asked
        self.store.append("begun", {"configuration": told})
        self.store.append("session", {"pid": os.getpid(), "lived": 0.0, "notes": [words] if words else []})
        self._measure(self._kernel(), 0.0, keep=True)

    def step(self) -> None:
        """Four kernels: one measured, one audited that fails, one trusted, one broken."""
        number, parent = len(self.hashes), self.hashes[0]
        fresh = [self._kernel() for _ in range(4)]
        values = [0.1 * (number + at) for at in range(4)]
        words = self.words or "unroll the inner loop"
        self.store.append("asked", {"step": number, "parents": [0], "wanted": 1, "consider": 4})
        told = {"parent": 0, "parent_kernel": parent, "candidates": [[each.hash, words] for each in fresh]}
        cost = {"tokens": 100, "dollars": 0.01, "short": ""}
        notes = {"duplicates": 1, "notes": [self.words] if self.words else []}
        self.store.append("proposed", told | notes | cost, kernels=fresh)
        good = dict(zip([each.hash for each in fresh], map(around, values), strict=True))
        broken = good.popitem()[0]
        forecasts = {
            "forecasts": {hash: each.to_json() for hash, each in good.items()},
            "hopes": {hash: [0.1, each.mean()] for hash, each in good.items()},
            "notes": {hash: [words] for hash in good},
            "broken": {broken: words},
        }
        self.store.append("forecast", forecasts | cost)
        decisions = [[hash, action, words] for hash, action in zip(good, ("measure", "audit", "trust"), strict=True)]
        standing = {"best": 0.0, "measured": 1, "left": None}
        self.store.append("decided", {"decisions": decisions, "chances": {}, "standing": standing})
        self._measure(fresh[0], values[0])
        self._measure(fresh[1], None)

    def close(self) -> None:
        self.store.close()

    def _kernel(self) -> Kernel:
        number = len(self.hashes)
        source = f"// presage: entry f\n/* {self.words} */\nvoid f(float *x) {{ x[{number}] = {number}.0f; }}\n"
        name = f"{self.words.replace('/', '|')[:300]}rows.c@N={number}"
        kernel = Kernel(
            source, "c", headers.parse(source, "rows.c"), name, {"N": number, self.words or "M": self.words}
        )
        self.hashes.append(kernel.hash)
        return kernel

    def _measure(self, kernel: Kernel, value: float | None, keep: bool = False) -> None:
        words = self.words or "y[0] is 1, not 2"
        told = {"kernel": kernel.hash, "name": kernel.name, "value": value, "expected": None, "surprise": None}
        if value is None:
            said, found = {"status": "wrong_result", "reason": words}, Status.WRONG_RESULT
            measured = Measurement("softmax", kernel, "h200", found, words, output=words)
        else:
            said = {"status": "ok", "reason": ""}
            samples = tuple(1e6 / 2**value * (1 + 0.002 * (at % 3)) for at in range(8))
            case = CaseTiming(words, samples, tuple(range(8)), 1e5, 1)
            measured = Measurement("softmax", kernel, "h200", Status.OK, cases=(case,), output=self.words)
        kernels = {"kernels": [kernel]} if keep else {}
        self.store.append("measured", told | said | {"seconds": 0.5}, measurements=[measured], **kernels)


@pytest.fixture
def writer() -> type[Writer]:
    return Writer


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The web view of a folder over real HTTP, in a thread of this process: its address without a slash at the end."""
    import uvicorn

    from presage.report.web.app import app
    from presage.report.web.guard import own_names

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app(folder, own_names("127.0.0.1"), lambda: server.should_exit), log_level="error", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


@pytest.fixture(scope="module")
def served_empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder without runs, which stays empty, and the address of its web view. Beside it lies a run, `secret`."""
    pytest.importorskip("starlette", reason="the extra [ui] is not installed")
    pytest.importorskip("uvicorn", reason="the extra [ui] is not installed")
    folder = tmp_path_factory.mktemp("beside") / "runs"
    folder.mkdir()
    Writer(folder.parent / "secret").close()
    with serving(folder) as address:
        yield folder, address


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder for runs, and the address of its web view."""
    pytest.importorskip("starlette", reason="the extra [ui] is not installed")
    pytest.importorskip("uvicorn", reason="the extra [ui] is not installed")
    folder = tmp_path / "runs"
    folder.mkdir()
    with serving(folder) as address:
        yield folder, address
