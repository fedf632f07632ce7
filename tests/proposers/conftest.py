"""What the tests of proposers share: grounds for them, and what tests/llm and tests/corpus have."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
sys.path.insert(0, str(Path(__file__).parent))

from still_device import StillDevice

from presage import Device, Ground, Measured
from presage.devices.recorded import RecordedDevice
from presage.problems import registry


def _conftest(folder: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"shared_{folder}_fixtures", Path(__file__).parents[1] / folder / "conftest.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_corpus = _conftest("corpus")
rows, small = _corpus.rows, _corpus.small
if importlib.util.find_spec("openai"):
    _llm = _conftest("llm")
    endpoint, make_client, time = _llm.endpoint, _llm.make_client, _llm.time
    _no_settings_of_this_machine = _llm._no_settings_of_this_machine


@pytest.fixture
def make_ground() -> Callable[..., Ground]:
    """make_ground(problem, device): a search whose anchor is the first seed kernel that the device can run."""

    def make(name: str = "softmax", device: Device | None = None) -> Ground:
        device = device or StillDevice()
        problem = registry.get(name)
        seeds = [kernel for kernel in registry.seed_kernels(problem) if kernel.language in device.languages]
        return Ground(problem, device, Measured(seeds[0].render(), times_ns={problem.timed["cpu"][0].name: 2000.0}))

    return make


@pytest.fixture
def pool_ground(small: Any) -> Ground:
    device = RecordedDevice(small)
    problem = device.problem("softmax")
    return Ground(problem, device, Measured(device.pool("softmax")[0]))
