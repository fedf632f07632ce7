"""The Ray cluster: connects to it, lists its slots, and starts workers on it. Only this file imports ray."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from presage.core.errors import PresageError
from presage.devices.ray_worker import Make, Worker

INSTALL = "pip install 'presage-kernels[ray]', or in a checkout run PRESAGE_EXTRAS=ray ./presage"
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # do not report anything to anyone
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_REACH_SECONDS = 5.0
_CLOSE_SECONDS = 5.0


class Slot(NamedTuple):
    """A place for a worker: a GPU of a host, or a host."""

    node: str
    number: int
    of: int
    """The number of slots on the host."""
    cpus: float

    @property
    def place(self) -> str:
        return f"{self.node[:8]}/{self.number}"


class LostError(Exception):
    """A worker was lost."""


class Cluster:
    """A connection to a Ray cluster, or to one that is started on this machine for as long as this lives."""

    def __init__(self, address: str) -> None:
        """address: HOST:PORT of the head; empty for $RAY_ADDRESS, a cluster that runs on this machine, or a new one. A
        process that is connected to a cluster already keeps that connection."""
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError as error:
            raise PresageError(f"the ray device needs {error.name}; {INSTALL}") from error
        self._ray = ray
        self._is_own = not ray.is_initialized()
        address = address or os.environ.get("RAY_ADDRESS", "")
        _refuse_unreachable(address)
        if not self._is_own:
            return
        try:
            with _own_signals():
                ray.init(address=address or None, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        except Exception as error:  # ray raises no more specific exception
            where = f"the Ray cluster at {address}" if address else "a Ray cluster"
            raise PresageError(f"{where} cannot be used from here: {_first_line(error)}") from error

    def slots(self, per_gpu: bool) -> list[Slot]:
        """Every GPU of the hosts that are alive, or every host."""
        found = []
        for node in self._ray.nodes():
            has = node["Resources"] if node["Alive"] else {}
            cpus = float(has.get("CPU", 0.0))
            count = int(has.get("GPU", 0)) if per_gpu else int(cpus >= 1)
            found += [Slot(node["NodeID"], index, count, cpus) for index in range(count)]
        return sorted(found)

    def start(self, slot: Slot, device: str | Make, per_gpu: bool) -> Any:
        """Start a worker that has the GPU, or all that Ray may use of the host, to itself. Does not wait for the
        worker."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        needs = {"num_gpus": 1, "num_cpus": 0} if per_gpu else {"num_cpus": slot.cpus}
        where = NodeAffinitySchedulingStrategy(slot.node, soft=False)
        worker = self._ray.remote(Worker).options(**needs, scheduling_strategy=where, max_restarts=0)
        return worker.remote(device, slot.place, (slot.number, slot.of))

    def wait(self, awaited: Sequence[Any], seconds: float) -> list[Any]:
        """The references that have an answer, after waiting this many seconds at most."""
        if not awaited:
            return []
        ready, _ = self._ray.wait(list(awaited), num_returns=1, timeout=seconds, fetch_local=False)
        return list(ready)

    def get(self, reference: Any, seconds: float | None = None) -> Any:
        """Return a worker's answer.

        Raises LostError if the worker is gone, or does not answer within this many seconds.
        """
        try:
            return self._ray.get(reference, timeout=seconds)
        except self._ray.exceptions.RayTaskError:
            raise  # a bug of ours, or of a device's author
        except self._ray.exceptions.RayError as error:
            raise LostError(_first_line(error)) from error

    def kill(self, actor: Any) -> None:
        self._ray.kill(actor, no_restart=True)

    def close(self, actors: Sequence[Any]) -> None:
        """End these workers, and the connection if this process opened it."""
        if not self._ray.is_initialized():
            return
        closing = [actor.close.remote() for actor in actors]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS, fetch_local=False)
        for actor in actors:
            self.kill(actor)
        if self._is_own:
            self._ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handler of SIGTERM. Ray's handler would end the process without any cleanup."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)


def outline() -> dict[str, str]:
    """Facts that are known without starting or joining a cluster."""
    try:
        installed = version("ray")
    except PackageNotFoundError as error:
        raise PresageError(f"the ray device needs ray; {INSTALL}") from error
    address = os.environ.get("RAY_ADDRESS", "")
    return {"toolchain": f"ray {installed}", "cluster": address or "the one on this computer, or ray:cuda@HOST:PORT"}


def _refuse_unreachable(address: str) -> None:
    """Raise PresageError at once if nothing answers at the address. Ray itself would try for minutes."""
    if not address or address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if "//" in address or not host or not port.isdigit():
        raise PresageError(
            f"'{address}' is no address of a Ray cluster; write HOST:PORT, as 'ray start --head' prints it, and run"
            " presage on a host of the cluster"
        )
    try:
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise PresageError(f"nothing answers at {address}: {error}; is the Ray cluster running?") from error


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
