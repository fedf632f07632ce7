"""Property tests draw the same examples everywhere and have no deadline: a busy machine must not fail them.

Where tests run side by side, each has one thread: threads of several that wait for each other take many times as long.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # before anything imports numpy
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from programs import warmed

from presage import StaticReport
from presage.devices import exclusive
from presage.sandbox import processes
from presage.static.report import LaunchReport

settings.register_profile("presage", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("presage")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m alone` imports only the files that can have such tests, since importing all takes longer than many tests."""
    is_asked_for = config.option.markexpr == "alone" and collection_path.suffix == ".py"
    return True if is_asked_for and "mark.alone" not in collection_path.read_text() else None


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user has in the cache is neither used nor changed. Tests that run side by side share one."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PRESAGE_CACHE_DIR", str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache")
        )
        yield


@pytest.fixture(autouse=True, scope="session")
def own_lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests that run side by side do not wait for each other's measurements: their times are not looked at."""
    with pytest.MonkeyPatch.context() as patch:
        if "PYTEST_XDIST_WORKER" in os.environ:
            patch.setattr(exclusive, "PLACES", (str(tmp_path_factory.getbasetemp()),))
        yield


@pytest.fixture(autouse=True, scope="session")
def kept_zygotes() -> Iterator[None]:
    """What one test's device has started workers from, which has torch loaded, is there for the next one's."""
    end = processes.rest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "rest", lambda *names: None if names and names[0].startswith("torch/") else end(*names))
        yield


@pytest.fixture(scope="session")
def programs() -> Iterator[list[str]]:
    """The beginning of a command that runs `presage` or `presage-gui` without importing everything each time."""
    with warmed() as command:
        yield command


@pytest.fixture(scope="session")
def static_report() -> StaticReport:
    """What compiling a small kernel tells."""
    launch = LaunchReport(
        name="f", grid=(4, 1, 1), block=(256, 1, 1), count=1, registers=32, spill_bytes=0, stack_bytes=0,
        shared_bytes=128, code_bytes=640, occupancy=0.5, occupancy_limiter="registers", blocks_per_sm=4, waves=0.25,
        loops=1, instructions={"fp32": 7, "other": 1}, instructions_in_loops={"fp32": 4}, options={"warps": 4},
    )  # fmt: skip
    return StaticReport(
        target="h200", arch="sm_90a", status="ok", compiler="none", launches=(launch,), operators={"aten::add": 2},
        notes=("a note",),
    )  # fmt: skip
