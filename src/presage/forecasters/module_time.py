"""A module's time on a GPU from its trace: the sum of the times of its steps, its uncertainty, and the reasons for it.

The GPU runs steps one after the other, as the host queues them. It waits where the host cannot keep up. A step finds
tensors in the cache that the steps shortly before it have touched. Errors of steps are not independent: the same call
has the same error each time, and the errors of calls of one operator are correlated.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from presage.core.text import plain_name
from presage.forecasters.launch_times import UNKNOWN_DEVIATION
from presage.forecasters.operator_model import Floats, OperatorCost, OperatorModel
from presage.static import operator_calls, operator_features, roofline
from presage.static.hardware import Hardware
from presage.static.trace import COMPILED, FREE, GRAPHED, LAUNCHES, SCRIPTED, Step, Trace

LEAD_NS = 50e6
"""Nanoseconds that the host may be ahead when the GPU begins, where the GPU is held until everything is queued."""
_EVENT_NS = 1_300.0
"""Nanoseconds that an empty measurement takes. They are part of a call's cold time, and once of a module's time."""
_CACHED = 0.6
"""The share of the L2 cache that is assumed to hold the bytes that were touched last."""
_CACHE = 40 << 20
_VIEW_NS, _LAUNCH_HOST_NS = 3_000.0, 10_000.0
"""Host time of a view or an allocation, and of a launch of one of the module's own kernels."""
_LAUNCH_ABOVE = 1.0
"""Octaves above its roofline that a kernel without a forecast is assumed to take, and the standard deviation."""
_COPY_DEVIATION = 0.5
_HOST_BANDWIDTH, _HOST_DEVIATION, _HOST_BYTES = 1e10, 1.5, 1 << 16
"""Bytes per second of an operator that the host computes, the standard deviation in octaves, and the number of bytes
from which on its time is in doubt."""
_FUSED = "what torch.compile makes of its operators"
_NOT_FUSED = ("mm", "mv", "conv", "attention", "rnn", "sort", "topk", "cum")
"""Parts of the names of operators for which torch.compile calls a library, or which it does not fuse."""
_FUSED_ABOVE = 1.25
"""The most that a kernel of torch.compile takes beside its launch, as a multiple of its roofline."""
_COMPILED_HOST_NS, _COMPILED_STEP_NS, _COMPILED_DEVIATION = 60_000.0, 36_000.0, 0.45
"""Host time of a call of a compiled function, and of each kernel in it, fitted to 83 cases of the train split; and the
standard deviation, in octaves, that is added to that of a compiled module's time."""
_SCRIPTED_DEVIATION = 0.3
"""The added standard deviation for a module with functions that torch.jit scripts: it fuses few operators."""
_IN_GRAPH = {"_cudnn_rnn": (-2.0, 0.5)}
"""Operators of thousands of kernels, for which the GPU waits for the host: the change of the time in a CUDA graph, and
its standard deviation, in octaves. In a graph, three modules of the train split took 4.5, 4.4 and 3.4 times less."""
_IN_GRAPH_NS = 4e6
"""The least time of such an operator for which the host falls behind. Shorter ones are not corrected."""
_MOST_SHOWN, _LEAST_SHOWN = 3, 0.005
_ROOT = 0.5 * math.log(2)

Priced = Mapping[int, tuple[float, float]]
"""Times of launches by step number: the mean and the standard deviation of log2 nanoseconds."""


@dataclass(frozen=True)
class StepTime:
    """The time of one step of a module."""

    number: int
    name: str
    log2_ns: float
    deviation: float
    """The standard deviation of log2_ns."""
    host_ns: float
    doubt: str = ""
    """Why the time is uncertain; empty where enough is known."""
    same: str = ""
    """Identifies the call. Steps with the same value have the same error."""
    operator: str = ""
    """The operator's name. Errors of steps with the same value are correlated."""

    @property
    def ns(self) -> float:
        return math.exp2(self.log2_ns)


@dataclass(frozen=True)
class ModuleTime:
    """A module's time."""

    log2_ns: float
    """The median."""
    deviation: float
    """The standard deviation of log2_ns."""
    gap_ns: float
    """The time that the GPU waits for the host."""
    steps: tuple[StepTime, ...]
    shares: Mapping[str, float]
    """The share of the variance by operator or kernel; the largest first."""
    beside: float = 0.0
    """The part of the deviation that does not come from the steps, in octaves."""
    host_ns: float = 0.0
    """The host time of a call, if it determines the module's time; else 0."""

    @property
    def ns(self) -> float:
        return math.exp2(self.log2_ns)

    @property
    def doubts(self) -> tuple[str, ...]:
        """The distinct doubts of its steps."""
        return tuple(dict.fromkeys(step.doubt for step in self.steps if step.doubt))

    def quantile(self, level: float) -> float:
        """The quantile of log2 nanoseconds at a level from 0 to 1."""
        return self.log2_ns + self.deviation * NormalDist().inv_cdf(level)

    def note(self) -> str:
        """A sentence on the main sources of uncertainty, and on what is unknown."""
        shown = [each for each in self.shares.items() if each[1] >= _LEAST_SHOWN][:_MOST_SHOWN]
        most = ", ".join(f"{_shown(name)} ({share:.0%})" for name, share in shown)
        why = [f"uncertain mostly by {most}"] if most else []
        if self.host_ns:
            why = [f"calling it takes the host about {self.host_ns / 1e3:.0f} us, which counts: it cannot be replayed"]
        return "; ".join([*why, *self.doubts[:_MOST_SHOWN]])


def _shown(name: str) -> str:
    """
    >>> _shown("aten::_to_copy.default"), _shown("_Z2gnPf")
    ('_to_copy', 'gn')
    """
    return name[6:].partition(".")[0] if name.startswith("aten::") else plain_name(name)


def module_time(
    trace: Trace, hardware: Hardware, model: OperatorModel, *, lead_ns: float = LEAD_NS, launches: Priced | None = None
) -> ModuleTime:
    """The time of one call of a module.

    lead_ns: how far the host is ahead when the GPU begins; 0 if the GPU is not held.
    launches: the times of the module's own kernels; a kernel that is not listed counts as unknown."""
    steps = step_times(trace, hardware, model, launches or {})
    if GRAPHED in trace.notes:
        steps = tuple(map(_in_graph, steps))
    if COMPILED in trace.notes:
        return _as_compiled(combined(_fused(steps, roofline.trained_step_ns(trace, hardware)), model))
    time = combined(steps, model, gap_ns(trace, {step.number: step for step in steps}, lead_ns))
    return _unsure(time, _SCRIPTED_DEVIATION) if SCRIPTED in trace.notes else time


def _in_graph(step: StepTime) -> StepTime:
    octaves, deviation = _IN_GRAPH.get(step.operator, (0.0, 0.0))
    if not octaves or step.ns < _IN_GRAPH_NS:
        return step
    wide, same = math.hypot(step.deviation, deviation), f"{step.same} in a graph"
    return replace(step, log2_ns=step.log2_ns + octaves, deviation=wide, same=same, host_ns=0.0)


def _fused(steps: Sequence[StepTime], least_ns: Mapping[int, float]) -> list[StepTime]:
    """Merge consecutive operators that torch.compile fuses into one kernel. The fused kernel takes as long as the
    longest of them, because they mostly read and write the same tensors; its time is limited by `_FUSED_ABOVE`."""
    found: list[StepTime] = []
    for step in steps:
        if not step.operator or any(word in step.operator for word in _NOT_FUSED):
            found.append(step)
            continue
        most = math.log2(_FUSED_ABOVE * least_ns.get(step.number, math.inf) + operator_features.LAUNCH_NS)
        step = replace(step, name=_FUSED, operator=_FUSED, doubt="", log2_ns=min(step.log2_ns, most))
        if found and found[-1].name == _FUSED:
            step = max(found.pop(), step, key=lambda each: each.log2_ns)
        found.append(step)
    return found


def _as_compiled(time: ModuleTime) -> ModuleTime:
    """The time of a compiled module: at least the host time of a call, because a compiled module is not replayed."""
    host_ns = _COMPILED_HOST_NS + _COMPILED_STEP_NS * len(time.steps)
    if host_ns > time.ns:
        time = replace(time, log2_ns=math.log2(host_ns), host_ns=host_ns)
    return _unsure(time, _COMPILED_DEVIATION)


def _unsure(time: ModuleTime, beside: float) -> ModuleTime:
    return replace(time, deviation=math.hypot(time.deviation, beside), beside=beside)


def step_times(trace: Trace, hardware: Hardware, model: OperatorModel, launches: Priced) -> tuple[StepTime, ...]:
    """The time of every step that does work, in order."""
    calls = ((at, operator_calls.of_step(step, trace)) for at, step in enumerate(trace.steps))
    alone = {at: call for at, call in calls if call is not None}
    costs = dict(zip(alone, model.costs(list(alone.values()), hardware), strict=True))
    least = roofline.trained_step_ns(trace, hardware)
    cache = _Cache(_CACHED * (hardware.l2_bytes or _CACHE))
    found = []
    for at, step in enumerate(trace.steps):
        held = cache.share(step, trace)
        if at in costs:
            found.append(_of_operator(at, alone[at], costs[at], held))
        elif step.kind in LAUNCHES:
            found.append(_of_launch(at, step, least.get(at, 0.0), launches.get(at)))
        elif trace.is_on_host(step):
            found.append(_of_host(at, step))
        elif step.kind not in FREE and step.bytes and least.get(at):
            ns = least[at] + operator_features.LAUNCH_NS
            found.append(StepTime(at, step.name, math.log2(ns), _COPY_DEVIATION, _LAUNCH_HOST_NS, operator=step.name))
    return tuple(found)


def _of_operator(at: int, call: Trace, cost: OperatorCost, held: float) -> StepTime:
    """The time of an operator between its warm and its cold time. held: the share of its reads in the cache."""
    name = operator_features.family(call)
    warm, cold = 2.0**cost.warm, 2.0**cost.cold
    ns = warm + (1 - held) * max(0.0, cold - _EVENT_NS - warm)
    return StepTime(at, name, math.log2(ns), cost.deviation, cost.host_ns, cost.doubt, call.hash, name)


def _of_launch(at: int, step: Step, least_ns: float, priced: tuple[float, float] | None) -> StepTime:
    name, key = plain_name(step.name), f"{step.name} {step.launch.grid if step.launch else ''}"
    if priced is not None:
        return StepTime(at, name, *priced, _LAUNCH_HOST_NS, "", key, step.name)
    guess = math.log2(operator_features.LAUNCH_NS + least_ns) + _LAUNCH_ABOVE
    doubt = f"of the kernel {name} only its roofline is known"
    return StepTime(at, name, guess, UNKNOWN_DEVIATION, _LAUNCH_HOST_NS, doubt, key, step.name)


def _of_host(at: int, step: Step) -> StepTime:
    name = step.base_name
    log2_ns = math.log2(operator_features.LAUNCH_NS + 1e9 * step.bytes / _HOST_BANDWIDTH)
    if step.bytes < _HOST_BYTES:
        return StepTime(at, step.name, log2_ns, _COPY_DEVIATION, _LAUNCH_HOST_NS, operator=step.name)
    doubt = f"the host computes {name}, and its speed is not known"
    return StepTime(at, f"{name} on the host", log2_ns, _HOST_DEVIATION, _LAUNCH_HOST_NS, doubt)


class _Cache:
    """An LRU model of the L2 cache: it holds the bytes of the tensors that steps touched last."""

    def __init__(self, size: float) -> None:
        self._size = size
        self._touched: OrderedDict[int, int] = OrderedDict()
        self._roots: dict[int, int] = {}

    def share(self, step: Step, trace: Trace) -> float:
        """The share of the bytes read by a step that are in the cache. All its tensors are in the cache afterwards."""
        reads, makes = list(dict.fromkeys(step.reads)), list(step.makes)
        if step.kind == "view" and reads:
            self._roots |= {made: self._root(reads[0]) for made in makes}
        if step.kind in FREE:
            return 0.0
        there, behind = set(), 0.0
        for number, size in reversed(self._touched.items()):
            behind += size
            if behind > self._size:
                break
            there.add(number)
        sizes = {number: trace.tensors[number].bytes for number in (*reads, *makes)}
        every = sum(sizes[number] for number in reads)
        held = sum(sizes[number] for number in reads if self._root(number) in there)
        for number in (*reads, *makes):
            self._touched[self._root(number)] = sizes[number]
            self._touched.move_to_end(self._root(number))
        return held / every if every else 1.0

    def _root(self, number: int) -> int:
        return self._roots.get(number, number)


def gap_ns(trace: Trace, steps: Mapping[int, StepTime], lead_ns: float) -> float:
    """The total time that the GPU waits for the host. A synchronisation costs the host its lead."""
    host, busy_until, waited = -lead_ns, 0.0, 0.0
    for at, step in enumerate(trace.steps):
        if step.kind == "sync":
            host = max(host, busy_until)
        if at not in steps:
            host += _VIEW_NS
            continue
        host += steps[at].host_ns
        waited += max(0.0, host - busy_until)
        busy_until = max(busy_until, host) + steps[at].ns
    return waited


def combined(steps: Sequence[StepTime], model: OperatorModel, waited_ns: float = 0.0) -> ModuleTime:
    """The sum of correlated log-normal step times, as the log-normal distribution with the same mean and variance."""
    kinds: dict[str, list[StepTime]] = {}
    for step in steps:
        kinds.setdefault(step.same or f"#{step.number}", []).append(step)
    groups = list(kinds.values())
    spread = 2 * _ROOT * np.array([group[0].deviation for group in groups])
    median = np.array([sum(step.ns for step in group) for group in groups])
    mean = median * np.exp(spread**2 / 2)
    operators = [group[0].operator or group[0].name for group in groups]
    alike = np.array([[one == other for other in operators] for one in operators]).reshape(len(groups), len(groups))
    correlation = np.where(alike, model.alike, model.shared)
    np.fill_diagonal(correlation, 1.0)
    covariance = np.outer(mean, mean) * np.expm1(correlation * np.outer(spread, spread))
    total, variance = float(mean.sum()), float(covariance.sum())
    fixed = waited_ns + _EVENT_NS
    relative = math.log1p(variance / (total + fixed) ** 2)
    log2_ns = math.log2(total + fixed) - relative / (2 * math.log(2))
    deviation = math.sqrt(relative) / math.log(2)
    return ModuleTime(log2_ns, deviation, waited_ns, tuple(steps), _shares(operators, covariance))


def _shares(operators: Sequence[str], covariance: Floats) -> dict[str, float]:
    """Each operator's share of the variance; the largest first."""
    found: dict[str, float] = {}
    for operator, own in zip(operators, covariance.sum(axis=1), strict=True):
        found[operator] = found.get(operator, 0.0) + float(own)
    whole = max(1e-30, sum(found.values()))
    return {name: each / whole for name, each in sorted(found.items(), key=lambda item: -item[1])}
