"""Property tests draw the same examples everywhere and have no deadline: a busy machine must not fail them.

Where tests run side by side, each has one thread: threads of several that wait for each other take many times as long.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # before anything imports numpy
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("presage", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("presage")


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user has in the cache is neither used nor changed. Tests that run side by side share one."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PRESAGE_CACHE_DIR", str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache")
        )
        yield
