"""Assembly: make the parts of a search from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from presage.core.errors import PresageError
from presage.devices import registry as devices
from presage.devices.base import Device
from presage.devices.emulation.rehearser import Rehearser
from presage.forecasters import registry as forecasters
from presage.forecasters.base import Forecaster
from presage.kernels.kernel import Kernel
from presage.plugins.group import PROPOSERS
from presage.policies import registry as policies
from presage.problems import registry as problems
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.problems.kernel_file import KernelProblem
from presage.proposers import registry as proposers
from presage.searches import acquisition as acquisitions
from presage.searches import registry as strategies
from presage.searches.configuration import NO_FORECASTER, Configuration
from presage.searches.objects import fresh
from presage.searches.session import Parts

_DESCRIBING = 60.0
"""The time limit for a problem's own code to describe its tensors, in seconds."""


def assemble(configuration: Configuration, objects: Mapping[str, Any], stack: ExitStack, is_new: bool) -> Parts:
    """Return the parts of a search. Parts that the configuration names are made here and closed with the stack. Parts
    given in `objects` are left for the caller to close.

    Raises PresageError for a part that cannot be made, and, for a new run, for a budget of tokens or dollars when no
    part asks a language model."""
    name = str(configuration.proposer)
    proposer = objects.get("proposer") or PROPOSERS.load(name.partition(":")[0])
    in_dollars = configuration.dollars is not None
    if hasattr(proposer, "check"):
        proposer.check(in_dollars)
    device = objects["device"] if "device" in objects else devices.get(str(configuration.device))
    if "device" not in objects:
        stack.callback(device.close)
    problem = objects["problem"] if "problem" in objects else device.problem(configuration.problem)
    families = _families(configuration, device, problem)
    forecaster = _forecaster(configuration, objects, stack)
    if forecaster and in_dollars:
        forecaster.check_priced()
    asks = getattr(proposer, "is_paid", True) or (forecaster is not None and forecaster.is_paid)
    if is_new and not asks and (in_dollars or configuration.tokens is not None):
        raise PresageError(
            f"tokens and dollars are what language models cost, and neither the proposer {name} nor the forecaster"
            f" {configuration.forecaster} asks one; leave out --tokens and --dollars"
        )
    anchor = _anchor(device, problem, objects.get("anchor") or configuration.anchor)
    return Parts(
        _informed(device, problem),
        device,
        anchor,
        proposer if "proposer" in objects else lambda ground: proposers.get(name, replace(ground, families=families)),
        fresh(objects["strategy"]) if "strategy" in objects else strategies.get(configuration.strategy),
        fresh(objects["policy"]) if "policy" in objects else policies.get(str(configuration.policy)),
        forecaster,
        fresh(objects["acquisition"]) if "acquisition" in objects else acquisitions.get(str(configuration.acquisition)),
        _rehearser(device, stack) if configuration.rehearse else None,
        configuration.seconds,
    )


def _rehearser(device: Device, stack: ExitStack) -> Rehearser:
    if device.kind != "gpu":
        raise PresageError("--rehearse runs kernels for a GPU on the CPU first; on a CPU they are measured at once")
    rehearser = Rehearser()
    stack.callback(rehearser.close)
    return rehearser


def _families(configuration: Configuration, device: Device, problem: Problem) -> tuple[Kernel, ...] | None:
    """The families to search if the user named kernels: those kernels and, unless `only` is set, the problem's own
    families. None for the problem's own families alone."""
    if not configuration.kernels and not isinstance(problem, KernelProblem):
        return None
    wanted = [problems.find_family(problem, path) for path in configuration.kernels or ()]
    for kernel in wanted:
        if kernel.language not in device.languages:
            runs = ", ".join(device.languages)
            raise PresageError(f"{kernel.name} is {kernel.language}; the {device.name} device runs {runs}")
    own = [] if configuration.only or isinstance(problem, ExternalProblem) else problems.seed_kernels(problem)
    beside = [kernel for kernel in own if kernel.is_family and kernel.language in device.languages]
    return tuple({kernel.name: kernel for kernel in (*wanted, *beside)}.values())


def _informed(device: Device, problem: Problem) -> Problem:
    """Add to a problem from a file what forecasters and proposers need: the shapes of its tensors, which its own code
    tells, or the number of operations of its reference, which compiling the reference tells."""
    if isinstance(problem, ExternalProblem):
        with device.posed(problem, _DESCRIBING) as described:
            return described
    reference = problem.reference_kernel()
    (reports,) = device.reports(problem, [reference]) if reference else ((),)
    return problem.informed(reports) if reports else problem


def _forecaster(configuration: Configuration, objects: Mapping[str, Any], stack: ExitStack) -> Forecaster | None:
    if "forecaster" in objects:
        given: Forecaster = objects["forecaster"]
        return given
    if configuration.forecaster == NO_FORECASTER:
        return None
    forecaster = forecasters.get(str(configuration.forecaster))
    stack.callback(forecaster.close)
    return forecaster


def _anchor(device: Device, problem: Problem, given: Kernel | str | None) -> Kernel:
    if isinstance(given, Kernel):
        anchor: Kernel | None = problem.candidate(given) if isinstance(problem, ExternalProblem) else given
    else:
        anchor = device.kernel(problem, given) if given else device.anchor(problem)
    if anchor is None:
        raise PresageError(f"{problem.name} has no anchor on {device.name}; name a kernel with --anchor")
    return anchor.render()
