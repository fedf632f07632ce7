"""Property tests draw the same examples everywhere and have no deadline: a busy machine must not fail them.

Where tests run side by side, each has one thread: threads of several that wait for each other take many times as long.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # before anything imports numpy
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import contextlib
import gc
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from programs import warmed

from presage import StaticReport
from presage.devices import cpu, exclusive
from presage.sandbox import processes
from presage.static.inline_cuda import toolchain
from presage.static.report import LaunchReport

settings.register_profile("presage", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("presage")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m alone` imports only the files that can have such tests, since importing all takes longer than many tests."""
    is_asked_for = config.option.markexpr.partition(" ")[0] == "alone" and collection_path.suffix == ".py"
    return True if is_asked_for and "mark.alone" not in collection_path.read_text() else None


gc.disable()  # until all tests are collected


def pytest_collection_finish() -> None:
    """What was collected stays to the end, and is not looked through again and again."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # some modules complain of objects that are still there when Python ends


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[None]:
    """What the user has in the cache is neither used nor changed. Tests that run side by side share one."""
    folder = tmp_path_factory.getbasetemp()
    cache = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"
    cache.mkdir(exist_ok=True)
    if pytestconfig.pluginmanager.has_plugin("cacheprovider"):
        with contextlib.suppress(FileExistsError):
            (cache / "inline_cuda").symlink_to(_headers(pytestconfig))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRESAGE_CACHE_DIR", str(cache))
        yield


def _headers(config: pytest.Config) -> Path:
    """Torch's headers, which take a minute to precompile, are kept from run to run until what makes them changes."""
    assert config.cache
    kept = config.cache.mkdir("inline_cuda")
    now = kept / hashlib.sha256(Path(toolchain.__file__).read_bytes()).hexdigest()[:12]
    for before in set(kept.iterdir()) - {now}:
        shutil.rmtree(before, ignore_errors=True)
    now.mkdir(exist_ok=True)
    return now


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
        patch.setattr(cpu, "_WITH_TORCH", (*cpu._WITH_TORCH, *cpu.FOR_EXAMINERS))
        patch.setattr(processes, "rest", lambda name="plain": None if name.startswith("torch/") else end(name))
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
