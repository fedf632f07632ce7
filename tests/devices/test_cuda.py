"""In how many processes the cuda device times a kernel, with trials that are made up: no GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from presage import Case, Effort, Kernel, Measurement, Problem, Status
from presage.devices import cuda, exclusive, gpu_arenas
from presage.devices.base import CaseTiming, speedup
from presage.devices.child import VerdictError
from presage.devices.conduct import clock, conduct, examine
from presage.devices.cuda import CudaDevice
from presage.devices.gpu_arenas import Arenas
from presage.devices.gpu_memory import CrowdedError, NoRoomError
from presage.devices.plan import Plan
from presage.problems import registry

ADDITION = registry.get("vector_add")
FAST, SLOW = (registry.find_kernel(ADDITION, name).render() for name in ("naive.cu", "eager.py"))
SHORT, LONG = Case({"n": 1000}), Case({"n": 1_000_000})
PLAN = Plan((Case({"n": 1}), Case({"n": 17})), (SHORT, LONG))
ROUNDS = 8
OK = (Status.OK, "")


class FakeTrial:
    """A kernel in one process, which shifts its times by so much from the one before."""

    is_own = may_part = has_parted = False

    def __init__(self, task: Any, process: int, shift: float, fate: tuple[Status, str]) -> None:
        self.problem, self.kernel, self.process = task.problem, task.kernel, process
        self.shift, self.fate = shift, fate
        self.observations: dict[str, CaseTiming] = {}
        self.checks: Sequence[Case] = ()
        self.verdict: VerdictError | None = None

    @property
    def live(self) -> bool:
        return self.verdict is None

    def go(self, plan: Plan, first: int) -> None:
        self.checks = plan.checks
        if self.fate != OK:
            self.verdict = VerdictError(*self.fate)
            return
        for case in plan.timed:
            ns = self.shift**self.process * (5e3 if case is SHORT else 5e4) * (2 if self.kernel is SLOW else 1)
            rounds = tuple(range(first, first + ROUNDS))
            self.observations[case.name] = CaseTiming(case.name, (ns,) * ROUNDS, rounds, 1.0, 1)

    def differs_by_process(self, case: Case) -> bool:
        return case is SHORT

    def timing(self, case: Case, floor_ns: float) -> CaseTiming:
        return replace(self.observations[case.name], floor_ns=floor_ns)

    def measurement(self, device: str, cases: Sequence[Case], floors: Sequence[float]) -> Measurement:
        if self.verdict:
            return Measurement("vector_add", self.kernel, device, self.verdict.status, self.verdict.reason)
        timings = tuple(self.timing(case, floor) for case, floor in zip(cases, floors, strict=True))
        return Measurement("vector_add", self.kernel, device, Status.OK, cases=timings)

    def attempt(self, action: Any) -> None:
        action()

    def part(self) -> None:
        self.may_part, self.has_parted = False, True

    def release(self) -> list[Any]:
        return []

    def end(self, verdict: VerdictError) -> None:
        self.verdict = verdict


class FakeDevice(CudaDevice):
    """Everything but the GPU."""

    def __init__(self, fates: Sequence[tuple[Status, str]] = (), shift: float = 1.001) -> None:
        self.cores, self._fates, self._shift, self._preparing = 2, fates, shift, set()
        self.properties = SimpleNamespace(total_memory=8 << 30)
        self.peaks = SimpleNamespace(floor_ns=lambda problem, case: 3.0)
        self.trials: list[FakeTrial] = []
        self.said: list[str] = []
        self._undertaker = ThreadPoolExecutor(1)

    def _get_ready(self, kernels: Sequence[Kernel]) -> None:
        return

    @contextmanager
    def posed(self, problem: Problem, seconds: float) -> Iterator[Problem]:
        yield problem

    def _prepared(self, task: Any, plan: Plan) -> Any:
        process = sum(trial.kernel is task.kernel for trial in self.trials)
        fate = self._fates[process] if process < len(self._fates) and task.kernel is FAST else OK
        trial = FakeTrial(task, process, self._shift, fate)
        self.trials.append(trial)
        return trial

    def _conduct(self, trials: Any, plan: Plan, effort: Effort, progress: Any, *more: Any, **other: Any) -> None:
        progress("timing", 0.5)
        for trial in trials:
            trial.go(plan, first=ROUNDS * trial.process)

    def _settled(self, trial: Any, task: Any, plan: Plan, spare: Any = cuda._nothing) -> Any:
        return trial


@pytest.fixture(autouse=True)
def a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "draw", lambda problem, kind: PLAN)


def measure_each(device: CudaDevice, effort: Effort) -> Measurement:
    (result,) = device.measure_each([(ADDITION, FAST)], effort)
    return result


def measure(device: CudaDevice, effort: Effort) -> Measurement:
    return device.measure(ADDITION, [FAST, SLOW], effort, lambda doing, share: None)[0]


def test_others_have_the_lane_while_a_module_parts_with_its_process() -> None:
    class Parting(FakeDevice):
        stages: list[tuple[Any, Any]] = []

        def _prepared(self, task: Any, plan: Plan) -> Any:
            trial = super()._prepared(task, plan)
            trial.may_part = task.kernel is FAST
            return trial

        def _conduct(self, trials: Any, plan: Plan, effort: Effort, progress: Any, *stage: Any, **spare: Any) -> None:
            self.stages.append((trials[0].kernel, stage[0]))
            if stage[0] is not examine:
                super()._conduct(trials, plan, effort, progress)

    device = Parting()
    found = [*device.measure_each([(ADDITION, FAST), (ADDITION, SLOW)], Effort(processes=1))]
    assert {result.kernel.name for result in found} == {FAST.name, SLOW.name}
    assert [stage for kernel, stage in device.stages if kernel is FAST] == [examine, clock]
    assert [stage for kernel, stage in device.stages if kernel is SLOW] == [conduct]


@pytest.mark.parametrize("how", [measure, measure_each])
def test_short_cases_are_timed_in_several_processes(how: Any) -> None:
    result = how(FakeDevice(), Effort())
    short, long = result.cases
    assert short.processes == (ROUNDS,) * 4
    assert len(short.samples_ns) == len(set(short.rounds)) == 4 * ROUNDS
    assert short.median.value == pytest.approx(5e3 * 1.001**1.5)
    assert short.median.low < 5e3 * 1.001
    assert short.median.high > 5e3 * 1.001**2
    assert short.floor_ns == 3.0
    assert short.to_json()["processes"] == 4
    assert long.processes == ()
    assert long.median == (5e4, 5e4, 5e4)


@pytest.mark.parametrize("how", [measure, measure_each])
@pytest.mark.parametrize(
    ("shift", "effort", "processes"),
    [
        (1.001, Effort(), 4),
        (1.005, Effort(), 5),
        (1.1, Effort(), 8),
        (1.1, Effort(precision=0.5), 4),
        (1.1, Effort(further_processes=0), 4),
        (1.1, Effort(processes=1), 1),
    ],
)
def test_more_processes_where_so_many_do_not_tell_enough(
    how: Any, shift: float, effort: Effort, processes: int
) -> None:
    device = FakeDevice(shift=shift)
    short, long = how(device, effort).cases
    assert max(1, len(short.processes)) == sum(trial.kernel is FAST for trial in device.trials) == processes
    assert long.processes == ()
    if 1 < processes < effort.most_processes:
        assert short.median.relative_half_width <= effort.precision


@pytest.mark.parametrize("how", [measure, measure_each])
def test_what_was_checked_once_is_not_checked_again(how: Any) -> None:
    device = FakeDevice()
    how(device, Effort())
    mine = [trial for trial in device.trials if trial.kernel is FAST]
    assert [trial.checks for trial in mine] == [PLAN.checks, (), (), ()]
    assert [list(trial.observations) for trial in mine[1:]] == [[SHORT.name]] * 3


@pytest.mark.parametrize("how", [measure, measure_each])
def test_one_process_where_that_is_asked_for(how: Any) -> None:
    device = FakeDevice()
    result = how(device, Effort(processes=1))
    assert [case.processes for case in result.cases] == [(), ()]
    assert sum(trial.kernel is FAST for trial in device.trials) == 1


def test_workers_find_the_gpu_that_was_chosen_and_nothing_else_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("presage.devices.cuda.Zygote", lambda imports, environment: environment)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    given: Any = FakeDevice().zygote
    assert given["CUDA_VISIBLE_DEVICES"] == "1"
    assert "CUDA_DEVICE_ORDER" not in given
    assert "secret" not in str(given)


@pytest.mark.parametrize(("gib", "room"), [(80, 16), (24, 12), (8, 4), (1, 1)])
def test_a_small_gpu_has_fewer_workers_at_a_time(gib: int, room: int) -> None:
    device = FakeDevice()
    device.cores, device.properties = 16, SimpleNamespace(total_memory=gib << 30)
    assert device._room(1) == room


def test_an_extension_is_built_once() -> None:
    builder = Kernel("from torch.utils.cpp_extension import load_inline", "torch", SLOW.header, "builder.py")
    device = FakeDevice()
    results = device.measure(ADDITION, [FAST, builder], Effort(), lambda doing, share: None)
    results += device.measure_each([(ADDITION, builder)], Effort())
    assert [case.processes for result in results for case in result.cases] == [()] * 6
    assert len(device.trials) == 3


@pytest.mark.parametrize("how", [measure, measure_each])
@pytest.mark.parametrize(
    ("fates", "status", "processes"),
    [
        ([(Status.COMPILE_ERROR, "no")], Status.COMPILE_ERROR, 1),
        ([OK, (Status.CHEATING, "at last")], Status.CHEATING, 2),
        ([OK, OK, (Status.WRONG_RESULT, "once")], Status.WRONG_RESULT, 3),
        ([OK, OK, (Status.DEVICE_FAULT, "busy")], Status.OK, 3),
        ([(Status.DEVICE_FAULT, "busy")], Status.DEVICE_FAULT, 1),
    ],
)
def test_a_kernel_must_hold_in_every_process(how: Any, fates: Any, status: Status, processes: int) -> None:
    device = FakeDevice(fates)
    result = how(device, Effort())
    assert result.status is status
    assert sum(trial.kernel is FAST for trial in device.trials) == processes
    if status is Status.OK:
        assert result.cases[0].processes == (ROUNDS, ROUNDS)


def test_kernels_side_by_side_are_compared_process_by_process() -> None:
    """What a process does to both is not held against either."""
    fast, slow = FakeDevice().measure(ADDITION, [FAST, SLOW], Effort(), lambda doing, share: None)
    ratio = speedup(slow, fast)
    assert ratio == pytest.approx((2.0, 2.0, 2.0))


def test_which_process_it_is_is_said() -> None:
    said = []
    FakeDevice().measure(ADDITION, [FAST], Effort(processes=2), lambda doing, share: said.append(doing))
    assert said == ["compiling", "timing", "timing, process 2 of at most 6"]


def test_a_module_whose_replay_failed_is_tried_again_in_its_worker() -> None:
    """And in every process after that."""
    pytest.importorskip("torch")
    from presage.devices.module_trial import ReplayError

    class Replaying(FakeDevice):
        _settled = CudaDevice._settled
        _idle = SimpleNamespace(is_gone=False)

        def _prepared(self, task: Any, plan: Plan) -> Any:
            trial = super()._prepared(task, plan)
            trial.not_replayed = task.not_replayed
            return trial

        def _conduct(self, trials: Any, plan: Plan, effort: Effort, progress: Any, *more: Any, **other: Any) -> None:
            super()._conduct(trials, plan, effort, progress)
            for trial in trials:
                if not trial.not_replayed:
                    trial.verdict = ReplayError(Status.WRONG_RESULT, "its replay failed: z is wrong")

    device = Replaying()
    assert measure_each(device, Effort()).status is Status.OK
    reasons = [trial.not_replayed for trial in device.trials]
    assert reasons[0] == ""
    assert set(reasons[1:]) == {"its replay failed: z is wrong"}
    assert len(reasons) == 1 + Effort().processes


# -- processes that modules have in turn ------------------------------------------------------------------------------


class FakeProcess:
    served = 0
    is_dead = False

    def __init__(self, trusted: bool) -> None:
        self.trusted = trusted

    def kill(self) -> None:
        self.is_dead = True


def let_go(child: FakeProcess, verdict: VerdictError | None = None) -> list[Any]:
    """What the next module can have after this one."""
    device, kept = object.__new__(CudaDevice), list[Any]()
    device._workers, device._undertaker = [], ThreadPoolExecutor(1)
    device._replayers = SimpleNamespace(give_back=kept.append)  # type: ignore[assignment]
    device._let_go(child, SimpleNamespace(verdict=verdict, is_own=False))
    device._undertaker.shutdown()
    assert device._workers == []
    assert child.is_dead == (not kept)
    return kept


def test_a_replayer_is_the_next_module_s_if_nothing_went_wrong() -> None:
    child = FakeProcess(trusted=True)
    assert let_go(child) == [child]
    wrong = VerdictError(Status.WRONG_RESULT, "z is wrong")
    assert let_go(FakeProcess(trusted=True), wrong) == []
    assert let_go(FakeProcess(trusted=False)) == [], "foreign host code has run in it"


# -- memory that others have ------------------------------------------------------------------------------------------

GIB = 1 << 30


class CrowdedDevice(FakeDevice):
    """A GPU of 80 GiB, of which others let go of a little whenever it is looked at."""

    _conduct = CudaDevice._conduct  # type: ignore[assignment]

    def __init__(self, free_gib: float, more_gib: float = 0.0) -> None:
        super().__init__()
        self.properties = SimpleNamespace(total_memory=80 * GIB, uuid="test")
        self._free, self._more = free_gib * GIB, more_gib * GIB
        nothing = {name: lambda: 0 for name in ("memory_reserved", "memory_allocated")}
        torch = SimpleNamespace(cuda=SimpleNamespace(mem_get_info=self._look, empty_cache=lambda: None, **nothing))
        self._arenas = Arenas(torch, 80 * GIB)
        self.made: list[int] = []

    def _look(self) -> tuple[int, int]:
        self._free += self._more
        return int(self._free), 80 * GIB

    def _conduct_alone(
        self, trials: Sequence[Any], plan: Plan, effort: Effort, progress: Any, stage: Any = conduct
    ) -> None:
        self.made.append(int(self._free))
        super()._conduct(trials, plan, effort, progress)  # type: ignore[safe-super]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_arenas, "LOOK_AGAIN", 0.001)
    monkeypatch.setattr(exclusive, "PLACES", (str(tmp_path),))


@pytest.mark.usefixtures("impatient")
def test_memory_that_others_have_is_waited_for_outside_of_the_lane() -> None:
    device, said = CrowdedDevice(free_gib=0.25, more_gib=0.5), list[str]()

    def tell(doing: str, share: float) -> None:
        said.append(doing)
        if doing.startswith("waiting"):
            with exclusive.only("test", pytest.fail):  # others can have it meanwhile
                pass

    task = SimpleNamespace(problem=ADDITION, kernel=FAST)
    device._conduct([FakeTrial(task, 0, 1.0, OK)], PLAN, Effort(), tell)
    waiting = [text for text in said if text.startswith("waiting for")]
    assert len(waiting) > 2
    assert "GiB of the GPU's memory, which other processes have" in waiting[0]
    assert said[-1] == "timing"
    assert device.made[0] > 2 * GIB


@pytest.mark.usefixtures("impatient")
def test_memory_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_arenas, "MEMORY_SECONDS", 0.05)
    device = CrowdedDevice(free_gib=0.25)
    task = SimpleNamespace(problem=ADDITION, kernel=FAST)
    device._conduct([FakeTrial(task, 0, 1.0, OK)], PLAN, Effort(), lambda doing, share: None)
    assert device.made == [GIB // 4]


@pytest.mark.usefixtures("impatient")
def test_what_waits_for_the_lane_gives_up_the_memory_that_the_lane_lacks() -> None:
    class Holding(CrowdedDevice):
        """Every trial takes a third of what one needs, until it is released or done."""

        each = CrowdedDevice(free_gib=0.0)._arenas.missing(ADDITION, 1) // 3

        def _prepared(self, task: Any, plan: Plan) -> Any:
            trial = super()._prepared(task, plan)
            self._free -= self.each
            trial.release = partial(self._released, [SimpleNamespace(kill=lambda: None)])
            return trial

        def _released(self, held: list[Any]) -> list[Any]:
            self._free += self.each * len(held)
            children, held[:] = list(held), []
            return children

        def _conduct_alone(self, trials: Sequence[Any], *rest: Any) -> None:
            super()._conduct_alone(trials, *rest)
            trials[0].release()

    device = Holding(free_gib=(room := 5 * Holding.each) / GIB)
    device.cores = 4
    several = [(ADDITION, kernel) for kernel in (FAST, SLOW) * 3]
    found = [*device.measure_each(several, Effort(processes=1))]
    assert [result.status for result in found] == [Status.OK] * 6
    assert len(device.trials) > 6, "some were made ready twice"
    assert device._free == room


@pytest.mark.usefixtures("impatient")
def test_a_module_that_has_failed_waits_for_no_memory() -> None:
    device = CrowdedDevice(free_gib=0.25)
    device.nvml = SimpleNamespace(read=dict)  # type: ignore[assignment]
    trial = FakeTrial(SimpleNamespace(problem=ADDITION, kernel=FAST), 0, 1.0, OK)
    trial.end(VerdictError(Status.RUNTIME_ERROR, "there is no ModelNew"))
    device._conduct([trial], PLAN, Effort(), lambda doing, share: pytest.fail(doing))
    assert device.made == []


class FakeArena:
    def __init__(self, size: int) -> None:
        self.size, self.is_freed = size, False

    def free(self) -> None:
        self.is_freed = True


@pytest.fixture
def arenas(monkeypatch: pytest.MonkeyPatch) -> Arenas:
    monkeypatch.setitem(sys.modules, "presage.devices.gpu_arena", SimpleNamespace(GpuArena=FakeArena))
    return CrowdedDevice(free_gib=0.25)._arenas


def test_an_arena_for_a_window_is_not_spent_on_calls(arenas: Arenas) -> None:
    large = FakeArena(14 * GIB)
    arenas.give_back(large)
    few = arenas.take_for_calls(ADDITION, lambda doing, share: None)
    assert few.size < GIB
    assert arenas.take(ADDITION) is large


def test_arenas_that_are_too_small_are_no_reason_to_wait(arenas: Arenas) -> None:
    small = FakeArena(1 << 20)
    arenas.give_back(small)
    assert arenas.missing(ADDITION, 1)
    assert small.is_freed


@pytest.mark.parametrize("room", ["peaks", "arena"])
def test_where_there_is_no_room_at_last_that_is_the_devices_fault(room: str) -> None:
    device = CrowdedDevice(free_gib=0.25)

    def no_room(*arguments: Any) -> Any:
        raise NoRoomError("the GPU has no 512 MiB left for inputs and outputs")

    measured = SimpleNamespace(measure=no_room if room == "peaks" else lambda problem: None, bandwidth=1.0)
    device.peaks, device._arenas.take = measured, no_room  # type: ignore[method-assign]
    device.nvml = SimpleNamespace(read=dict)  # type: ignore[assignment]
    trial = FakeTrial(SimpleNamespace(problem=ADDITION, kernel=FAST), 0, 1.0, OK)
    CudaDevice._conduct_alone(device, [trial], PLAN, Effort(), lambda doing, share: None, conduct)
    assert isinstance(trial.verdict, CrowdedError)
    assert trial.verdict.status is Status.DEVICE_FAULT
