"""The ray device on a cluster of several hosts, all of them on this machine: workers are real, and so are losses."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from presage import (
    Device,
    Effort,
    Kernel,
    Measurement,
    PresageError,
    Problem,
    Status,
    load_family,
    load_problem,
    search,
)
from presage.corpus.collect import collect
from presage.devices import registry
from presage.devices.base import CaseTiming, Progress
from presage.devices.pool import LOSSES
from presage.devices.ray import RayDevice
from presage.searches.state import State
from presage.store.store import Event, Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed"),
]
alone = pytest.mark.alone
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("gcc", "clang", "cc"))), reason="there is no C compiler")
KERNEL = """\
// presage: entry scale
// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 4096
// presage: tune A = 1, 2, 4, 8
// presage: tune B = 0, 1, 2, 3
void scale(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];
}
"""


class Pretending(Device):
    """Says of a kernel that it takes as long as its tunable A says, and ends with its process where B is 3. On each GPU
    of the cluster it has another name."""

    kind, languages, name = "cpu", ("c",), "pretending"

    def __init__(self, *models: str) -> None:
        self._models = models or ("Pretender 1",)

    @property
    def model(self) -> str:
        return self._models[int(os.environ["CUDA_VISIBLE_DEVICES"]) % len(self._models)]

    def describe(self) -> dict[str, Any]:
        return {"hardware": self.model}

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        return [self._measured(problem, kernel) for kernel in kernels]

    def _measured(self, problem: Problem, kernel: Kernel) -> Measurement:
        if kernel.values.get("B") == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        took = (1e6 / float(kernel.values.get("A", 1)),) * 8
        cases = tuple(CaseTiming(case.name, took, tuple(range(8)), 1.0, 1) for case in problem.timed["cpu"])
        return Measurement(problem.name, kernel, self.name, Status.OK, cases=cases)


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Ray can wait for ever for a process of its own that has ended."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"nothing has happened for {seconds} s")

    was = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, was)


@pytest.fixture(autouse=True)
def _patient() -> Iterator[None]:
    with patience(300):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head with two GPUs, as far as Ray knows, and a host without, which ends in the last test. This process is
    connected to it throughout, since each connection has workers of its own."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    quick = {"health_check_period_ms": 200, "health_check_failure_threshold": 10, "health_check_initial_delay_ms": 0}
    few = {"include_log_monitor": False, "no_monitor": True}
    head = {"num_cpus": 1, "num_gpus": 2, "include_dashboard": False, "_system_config": quick, **few}
    cluster = Cluster()
    try:
        with patience(200):
            cluster.add_node(**head)
            cluster.add_node(num_cpus=1, **few)
            ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # it gives a host half a minute, which is too little on a very busy machine
        cluster.shutdown()
        pytest.skip(f"Ray does not start: {error}")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def pretending(cluster: Any) -> Iterator[RayDevice]:
    device = RayDevice(Pretending)
    yield device
    device.close()


@pytest.fixture
def kernel_file(tmp_path: Path) -> Path:
    path = tmp_path / "scale.c"
    path.write_text(KERNEL)
    return path


@alone
def test_the_corpus_is_collected_on_all_of_them(pretending: RayDevice, tmp_path: Path) -> None:
    problems = [load_problem("softmax")]
    assert collect(pretending, tmp_path, problems, Effort(), per_problem=6, say=lambda line: None) == 6


@alone
def test_a_kernel_that_ends_its_workers_is_given_up_and_others_are_measured(
    pretending: RayDevice, kernel_file: Path
) -> None:
    problem, family = load_problem(kernel_file), load_family(kernel_file, kernel_file)
    assert (pretending.lanes, pretending.model, pretending.languages) == (4, "Pretender 1", ("c",))
    work = [(problem, kernel) for kernel in family if kernel.values["B"] != 3 or kernel.values["A"] == 8]
    found = list(pretending.measure_each(work, Effort()))
    pretending.close()
    assert Counter(each.kernel.hash for each in found) == Counter(kernel.hash for _, kernel in work)
    (fault,) = [each for each in found if each.status is not Status.OK]
    assert (fault.status, fault.kernel.values) == (Status.DEVICE_FAULT, {"A": 8, "B": 3})
    assert f"was lost {LOSSES} times" in fault.reason
    assert len({each.facts["worker"] for each in found if each.cases}) == 2


@alone
def test_hardware_of_different_kinds_is_never_mixed(cluster: Any, kernel_file: Path) -> None:
    make = partial(Pretending, "Pretender 1", "Pretender 2")
    with pytest.raises(PresageError, match="cannot be compared: Pretender 1, Pretender 2; name one"):
        RayDevice(make)
    device = RayDevice(make, only="pretender 2")
    try:
        assert (device.model, device.lanes) == ("Pretender 2", 2)
        assert device.notes == ["1 GPU of the cluster is left out: Pretender 1, not Pretender 2"]
        assert device.describe() == {"hardware": "Pretender 2", "workers": 1}
    finally:
        device.close()


@alone
@needs_compiler
def test_a_host_that_ends_while_a_search_runs_costs_only_what_was_under_way(
    cluster: Any, kernel_file: Path, tmp_path: Path
) -> None:
    doomed = cluster.list_all_nodes()[-1]

    def watch(event: Event, state: State) -> None:
        if event.kind == "measured" and state.spent.measurements == 2:
            cluster.remove_node(doomed, allow_graceful=False)

    run = search(kernel_file, device=f"ray:cpu@{cluster.address}", budget=4, run=tmp_path / "run", watch=watch)
    with Store(run.folder, writes=False) as store:
        measured = [event.payload for event in store.events("measured")]
        lost = {event.payload["kernel"] for event in store.events("lost")}
    assert run.result
    assert Counter(each["status"] for each in measured) == {"ok": 4}
    assert len({each["kernel"] for each in measured}) == 4
    assert lost <= {each["kernel"] for each in measured}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("ray:cpu@nowhere", "'nowhere' is no address of a Ray cluster; write HOST:PORT"),
        ("ray:cpu@ray://head:10001", "is no address of a Ray cluster"),
        ("ray:cpu@127.0.0.1:1", "nothing answers at 127.0.0.1:1"),
        ("ray:cpu,workers=-1", "workers, the most that measure, is 1 or more"),
        ("ray:cpu,speed=9", "the device ray has no setting 'speed'; it has: only, workers, address"),
        ("ray:cpu,fast", "'fast' is not a setting of the device ray; write SETTING=VALUE"),
    ],
)
def test_what_is_wrong_with_a_name(spec: str, why: str) -> None:
    with pytest.raises(PresageError) as caught:
        registry.get(spec)
    assert why in str(caught.value)
