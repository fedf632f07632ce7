"""What the tests of language models share: an endpoint on this machine, and a client that waits for nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai", reason="needs the llm extra")
sys.path.insert(0, str(Path(__file__).parent))

from fake_endpoint import Endpoint

from presage.llm.client import Client
from presage.llm.settings import Settings

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PRESAGE_LLM_BASE_URL", "PRESAGE_LLM_MODEL", "PRESAGE_LLM_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PRESAGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


class Time:
    """A clock that only sleeping moves; it keeps how long it was asked to sleep."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def make_client(endpoint: Endpoint, time: Time, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def make(**changes: Any) -> Client:
        given = {"model": "small", "api_key": KEY, "cache": tmp_path / "answers", "timeout": 5.0, "concurrency": 2}
        made.append(Client(Settings(base_url=endpoint.base_url, **(given | changes)), time.sleep, time.clock))
        return made[-1]

    yield make
    for client in made:
        client.close()
