"""The ray device: measures on every GPU, or every host, of a Ray cluster, each with a lane of its own.

A worker is an actor that owns one device. A lost worker is replaced while its host lives, and hosts that join get
workers. Hardware of different kinds is never mixed: one kind measures, and the others are left out.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import presage
from presage.core.errors import PresageError
from presage.devices.base import COMPILING, Effort, Measurement, Progress
from presage.devices.examiner import ProblemError
from presage.devices.pool import LOSSES, Outcome, Pool, given_up
from presage.devices.ray_cluster import Cluster, LostError, Slot
from presage.devices.ray_worker import About, Make, Refusal
from presage.kernels.kernel import Kernel
from presage.plugins.group import parse_settings
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.static.hardware import Hardware

_GATHER_SECONDS = 60.0
"""Seconds to wait at first for workers to answer. Workers that answer later join then."""
_PATIENCE = 120.0
"""Seconds to wait for another worker when all are lost."""
_LOOK_SECONDS = 5.0
"""Seconds between checks for hosts that have joined."""
_SILENCE = 900.0
"""A worker counts as lost after this many seconds without an answer, beyond the time that a measurement may take."""
_RESTARTS = 3
"""A slot is given up if this many workers in a row were lost there before they measured anything."""


@dataclass
class _Job:
    """The work of one worker: kernels that it measures one by one."""

    work: list[tuple[Problem, Kernel]]
    effort: Effort
    foreign: bool
    losses: int = 0

    def take(self, measurement: Measurement) -> tuple[Problem, Kernel]:
        """Remove and return the pair that this measurement is the answer to."""
        key = measurement.problem, measurement.kernel.hash
        place = next(i for i, (problem, kernel) in enumerate(self.work) if (problem.name, kernel.hash) == key)
        return self.work.pop(place)


@dataclass
class _Hand:
    """A worker as seen from this process."""

    slot: Slot
    actor: Any
    asked: Any
    """The pending answer that tells which device the worker has; None once it has come."""
    about: About | None = None
    job: _Job | None = None
    answers: Any = None
    since: float = field(default_factory=time.monotonic)
    """When the worker last answered, as a time.monotonic() instant."""


class RayDevice(Pool):
    """Every GPU of a Ray cluster, or every host, as one device. `ray:cuda@HOST:PORT,only=H200` names the device that
    runs on each, the cluster's head, and the kind of hardware if there are several."""

    ahead = 8

    def __init__(self, device: str | Make = "cuda", address: str = "", only: str = "", workers: int = 0) -> None:
        """device: the device that measures, by name, or a function that makes it; `cuda` and functions get a GPU each,
        others a host. address: the cluster's head; empty for $RAY_ADDRESS, or the cluster that runs on this machine, or
        a new one. only: the hardware to use, by its name or a part of it. workers: the most workers, or 0 for no
        limit."""
        if workers < 0:
            raise PresageError(f"workers, the most that measure, is 1 or more, or 0 for all, not {workers}")
        self.device, self.only, self.workers = device, only, workers
        self._per_gpu = device == "cuda" or not isinstance(device, str)
        self._hands: list[_Hand] = []
        self._losses: Counter[Slot] = Counter()
        self._queue: deque[_Job] = deque()
        """Jobs of one kernel each; a worker gets several of them."""
        self._done: deque[Outcome] = deque()
        self._looked = 0.0
        self._manned = math.inf
        """When there last was a worker, as a time.monotonic() instant."""
        self._model = ""
        self._left_out: Counter[str] = Counter()
        self._cluster = Cluster(address)
        try:
            self._about = self._gather()
            self._manned = time.monotonic()
        except BaseException:
            self.close()
            raise
        self.kind, self.languages = self._about.kind, self._about.languages
        self.bulk_effort, self.own_effort = self._about.bulk_effort, self._about.own_effort

    @classmethod
    def from_text(cls, text: str) -> RayDevice:
        """The device of `ray:DEVICE@HOST:PORT,SETTING=VALUE`. Each part is optional."""
        first, *others = text.split(",") if not re.match(r"\w+=", text) else ["", text]
        device, _, address = first.partition("@")
        settings = parse_settings(cls, ",".join(others), "the device ray") if others else {}
        if unknown := settings.keys() - {"only", "workers", "address"}:
            raise PresageError(f"the device ray has no setting '{min(unknown)}'; it has: only, workers, address")
        return cls(device or "cuda", **{"address": address, **settings})

    @property
    def name(self) -> str:
        return f"ray:{self.device if isinstance(self.device, str) else getattr(self.device, '__name__', 'device')}"

    @property
    def model(self) -> str:
        return self._model

    @property
    def hardware(self) -> Hardware | None:
        return self._about.hardware

    @property
    def lanes(self) -> int:
        """For each worker one kernel more than its batch, so that it need not wait until the next kernel is chosen."""
        return max(1, sum(hand.about.batch + 1 for hand in self._hands if hand.about))

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        what = "GPU" if self._per_gpu else "host"
        return [
            f"{count} {what}{'s' if count > 1 else ''} of the cluster {'are' if count > 1 else 'is'} left out: {why}"
            for why, count in self._left_out.items()
        ]

    def describe(self) -> dict[str, Any]:
        try:
            told: dict[str, Any] = self._ask("describe")
        except LostError as error:
            raise PresageError(f"the Ray cluster lost each worker that was asked about its device: {error}") from error
        return told | {"workers": len([hand for hand in self._hands if hand.about])}

    def close(self) -> None:
        self._cluster.close([hand.actor for hand in self._hands])
        self._hands.clear()

    # -- workers ------------------------------------------------------------------------------------------------------

    def _gather(self) -> About:
        """Gather the workers that answer in time, all of one kind of hardware. Returns what they say of their device.
        Raises PresageError if there are none."""
        self._recruit()
        if not self._hands:
            raise PresageError(f"the Ray cluster has no {'GPU' if self._per_gpu else 'host with a CPU'} to measure on")
        end, told = time.monotonic() + _GATHER_SECONDS, dict[int, About]()
        while (asked := [hand for hand in self._hands if hand.asked]) and (left := end - time.monotonic()) > 0:
            self._hear(asked, left)
        told = {id(hand): hand.about for hand in self._hands if hand.about}
        if not told:
            reasons = "; ".join(self._left_out) or f"none of {len(self._hands)} was free in {_GATHER_SECONDS:.0f} s"
            raise PresageError(f"no worker of the Ray cluster can measure: {reasons}")
        self._model = self._chosen({about.model for about in told.values()})
        for hand in list(self._hands):
            if hand.about:
                self._admit(hand)
        return next(hand.about for hand in self._hands if hand.about)

    def _chosen(self, models: set[str]) -> str:
        """The kind of hardware that was asked for, or the only one. Raises PresageError if there is no such hardware or
        a choice."""
        fits = {model for model in models if self.only.lower() in model.lower()}
        exact = {model for model in fits if model.lower() == self.only.lower()}
        listed = ", ".join(sorted(models))
        if not fits:
            raise PresageError(f"the Ray cluster has no '{self.only}'; it has: {listed}")
        if len(exact or fits) > 1:
            raise PresageError(
                f"the Ray cluster has hardware of different kinds, whose times cannot be compared: {listed}; name one,"
                f" as in --device '{self.name},only={min(fits)}'"
            )
        return min(exact or fits)

    def _recruit(self) -> None:
        """Start a worker in every free slot."""
        self._looked = time.monotonic()
        taken = {hand.slot for hand in self._hands}
        free = [slot for slot in self._cluster.slots(self._per_gpu) if slot not in taken]
        free = [slot for slot in free if self._losses[slot] < _RESTARTS]
        for slot in free[: self.workers - len(taken)] if self.workers else free:
            actor = self._cluster.start(slot, self.device, self._per_gpu)
            self._hands.append(_Hand(slot, actor, actor.about.remote()))

    def _admit(self, hand: _Hand) -> None:
        """Accept a worker, unless it has other hardware or another version of presage."""
        assert hand.about is not None
        if hand.about.version != presage.__version__:
            self._leave_out(hand, f"they have presage {hand.about.version}, not {presage.__version__}")
        elif self._model and hand.about.model != self._model:
            self._leave_out(hand, f"{hand.about.model}, not {self._model}")

    def _leave_out(self, hand: _Hand, why: str) -> None:
        self._left_out[why] += 1
        self._losses[hand.slot] = _RESTARTS
        self._hands.remove(hand)
        self._cluster.kill(hand.actor)

    def _hear(self, hands: Sequence[_Hand], seconds: float) -> None:
        """Process the answers of these workers, waiting this many seconds at most."""
        speaking = {id(hand.asked or hand.answers): hand for hand in hands}
        for ready in self._cluster.wait([hand.asked or hand.answers for hand in hands], seconds):
            hand = speaking[id(ready)]
            try:
                if hand.asked:
                    self._introduce(hand)
                else:
                    self._answer(hand)
            except LostError as error:
                self._lose(hand, str(error))

    def _introduce(self, hand: _Hand) -> None:
        told, hand.asked = self._cluster.get(hand.asked), None
        if isinstance(told, Refusal):
            self._leave_out(hand, told.why)
            return
        hand.about, hand.since = told, time.monotonic()
        self._admit(hand)

    def _answer(self, hand: _Hand) -> None:
        """Process one result of a worker."""
        job = hand.job
        assert job is not None
        try:
            told = self._cluster.get(next(hand.answers))
        except StopIteration:
            raise LostError("it said nothing of some kernels") from None
        if isinstance(told, Refusal):
            hand.job = hand.answers = None
            raise told.error()
        measurement, seconds = told
        problem, kernel = job.take(measurement)
        if not job.work:
            hand.job = hand.answers = None
        hand.since = time.monotonic()
        self._losses[hand.slot] = 0
        self._done.append(Outcome(problem, kernel, measurement, seconds))

    def _lose(self, hand: _Hand, why: str) -> None:
        """Remove a lost worker. Its kernels become outcomes without a measurement, so that they can be submitted
        again."""
        self._losses[hand.slot] += 1
        self._hands.remove(hand)
        with suppress(Exception):  # it may be gone already
            self._cluster.kill(hand.actor)
        self._looked = 0.0
        seconds = time.monotonic() - hand.since
        for problem, kernel in hand.job.work if hand.job else ():
            self._done.append(Outcome(problem, kernel, None, seconds, why))
            seconds = 0.0

    # -- measuring ----------------------------------------------------------------------------------------------------

    def submit(self, problem: Problem, kernel: Kernel, effort: Effort, foreign: bool = True, losses: int = 0) -> None:
        self._queue.append(_Job([(problem, kernel)], effort, foreign, losses))
        if len(self._queue) >= self._about.batch:
            self._give()

    def collect(self, seconds: float = math.inf) -> Outcome | None:
        end = time.monotonic() + seconds
        while not self._done:
            left = end - time.monotonic()
            self._tend(max(0.0, min(left, _LOOK_SECONDS)))
            if left <= 0:
                break
        return self._done.popleft() if self._done else None

    def _tend(self, seconds: float) -> None:
        """Give work to the workers and process their answers, waiting this many seconds at most."""
        self._give()
        self._look_after()
        speaking = [hand for hand in self._hands if hand.asked or hand.answers]
        if speaking:
            self._hear(speaking, seconds)
            self._give()
        else:
            time.sleep(min(seconds, 1.0))

    def cancel(self) -> list[Outcome]:
        now = time.monotonic()
        given_up = [Outcome(each.problem, each.kernel, None, each.seconds, "it was given up") for each in self._done]
        given_up += [Outcome(*job.work[0], None, 0.0, "it was given up") for job in self._queue]
        self._queue.clear()
        for hand in [hand for hand in self._hands if hand.job]:
            seconds, work = now - hand.since, hand.job.work if hand.job else []
            given_up += [
                Outcome(*pair, None, 0.0 if place else seconds, "it was given up") for place, pair in enumerate(work)
            ]
            self._hands.remove(hand)
            self._cluster.kill(hand.actor)  # a new worker takes its place
        self._done.clear()
        self._looked = 0.0
        return given_up

    def _give(self) -> None:
        """Distribute the queued jobs among idle workers, an equal share to each."""
        idle = [hand for hand in self._hands if hand.about and not hand.job]
        ahead = self.ahead if len(self._queue) > self.lanes else 1
        for place, hand in enumerate(idle):
            if not self._queue:
                return
            assert hand.about is not None
            share = min(math.ceil(len(self._queue) / (len(idle) - place)), ahead * hand.about.batch)
            job = self._queue.popleft()
            while self._queue and len(job.work) < share and _go_together(job, self._queue[0]):
                job.work += self._queue.popleft().work
            answers = hand.actor.measure_each.options(num_returns="streaming")
            hand.answers = answers.remote(list(job.work), job.effort, job.foreign)
            hand.job, hand.since = job, time.monotonic()

    def _look_after(self) -> None:
        """Start workers on hosts that have joined, give up silent workers, and raise PresageError if no worker has been
        left for too long."""
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS:
            self._recruit()
        for hand in [hand for hand in self._hands if hand.job]:
            effort = hand.job.effort if hand.job else Effort()
            if now - hand.since > _SILENCE + (effort.timeout + COMPILING) * effort.most_processes:
                self._lose(hand, "it said nothing for too long")
        if any(hand.about for hand in self._hands):
            self._manned = now
        elif now - self._manned > _PATIENCE:
            raise PresageError(
                "no worker of the Ray cluster is left; what was measured is kept, and the same command goes on when"
                " there are some"
            )

    def measure(
        self, problem: Problem, kernels: Sequence[Kernel], effort: Effort, progress: Progress
    ) -> list[Measurement]:
        progress("measuring on a worker of the Ray cluster", 0.0)
        try:
            found: list[Measurement] = self._ask("measure", problem, list(kernels), effort)
        except LostError as error:
            return [given_up(self, problem, kernel, str(error)) for kernel in kernels]
        return found

    @contextmanager
    def posed(self, problem: Problem, seconds: float) -> Iterator[Problem]:
        """The problem in a form that can be measured. A problem from elsewhere is described by its own code, on a
        worker, and can be measured only there."""
        if not isinstance(problem, ExternalProblem):
            yield problem
            return
        try:
            described: Problem = self._ask("posed", problem, seconds)
        except LostError as error:
            raise ProblemError(problem.name, f"each worker that was asked about {problem.name} was lost") from error
        yield described

    def _ask(self, what: str, *arguments: Any) -> Any:
        """Call a method of an idle worker, and of another one if that is lost.

        Raises LostError if the others are lost, too.
        """
        lost = LostError()
        for _ in range(LOSSES):
            while not (idle := [hand for hand in self._hands if hand.about and not hand.job]):
                self._tend(_LOOK_SECONDS)
            try:
                told = self._cluster.get(getattr(idle[0].actor, what).remote(*arguments))
            except LostError as error:
                self._lose(idle[0], str(error))
                lost = error
                continue
            if isinstance(told, Refusal):
                raise told.error()
            return told
        raise lost


def _go_together(job: _Job, other: _Job) -> bool:
    """Whether one worker can get both jobs at once. A kernel with which a worker was lost goes alone, which shows whose
    fault that was."""
    return not job.losses and not other.losses and (job.effort, job.foreign) == (other.effort, other.foreign)
