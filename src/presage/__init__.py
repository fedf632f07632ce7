"""Presage forecasts the speedup of GPU kernels, measures them, and searches for faster ones.

This module exports the classes and functions of the public API. Names that are not in `__all__` may change without
notice. Each name is imported on first use, so `import presage` is quick.

    import presage

    for prediction in presage.forecast("softmax", ["naive.cu", "mine.cu"], target="h200"):
        print(prediction.forecast.exceeds(1.0))
    run = presage.search("softmax", budget=32)
    print(run.best.speedup)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presage.api import (
        evaluate,
        forecast,
        inspect,
        list_runs,
        load_device,
        load_family,
        load_kernel,
        load_problem,
        load_recording,
        measure,
        write_report,
    )
    from presage.core.errors import PresageError
    from presage.core.forecast import Forecast
    from presage.core.statistics import Interval
    from presage.devices.base import Device, Effort, Measurement
    from presage.devices.recording import Recording
    from presage.devices.status import Status
    from presage.evaluations.evaluation import Evaluation
    from presage.forecasters.base import Candidate, Forecaster, Measured, Prediction, Task
    from presage.kernels.kernel import Kernel
    from presage.policies.base import Action, Decision, Policy, Standing
    from presage.problems.base import Array, Case, Problem, Tolerance
    from presage.proposers.base import Ground, Parent, Proposal, Proposer
    from presage.searches.base import Acquisition, Node, Strategy
    from presage.searches.run import Run, search
    from presage.static.report import StaticReport

__version__ = "0.1.0"
__all__ = [
    "Acquisition",
    "Action",
    "Array",
    "Candidate",
    "Case",
    "Decision",
    "Device",
    "Effort",
    "Evaluation",
    "Forecast",
    "Forecaster",
    "Ground",
    "Interval",
    "Kernel",
    "Measured",
    "Measurement",
    "Node",
    "Parent",
    "Policy",
    "Prediction",
    "PresageError",
    "Problem",
    "Proposal",
    "Proposer",
    "Recording",
    "Run",
    "Standing",
    "StaticReport",
    "Status",
    "Strategy",
    "Task",
    "Tolerance",
    "evaluate",
    "forecast",
    "inspect",
    "list_runs",
    "load_device",
    "load_family",
    "load_kernel",
    "load_problem",
    "load_recording",
    "measure",
    "search",
    "write_report",
]

_HOMES = {
    "presage.api": (
        "evaluate",
        "forecast",
        "inspect",
        "list_runs",
        "load_device",
        "load_family",
        "load_kernel",
        "load_problem",
        "load_recording",
        "measure",
        "write_report",
    ),
    "presage.core.errors": ("PresageError",),
    "presage.core.forecast": ("Forecast",),
    "presage.core.statistics": ("Interval",),
    "presage.devices.base": ("Device", "Effort", "Measurement"),
    "presage.devices.recording": ("Recording",),
    "presage.devices.status": ("Status",),
    "presage.evaluations.evaluation": ("Evaluation",),
    "presage.forecasters.base": ("Candidate", "Forecaster", "Measured", "Prediction", "Task"),
    "presage.kernels.kernel": ("Kernel",),
    "presage.policies.base": ("Action", "Decision", "Policy", "Standing"),
    "presage.problems.base": ("Array", "Case", "Problem", "Tolerance"),
    "presage.proposers.base": ("Ground", "Parent", "Proposal", "Proposer"),
    "presage.searches.base": ("Acquisition", "Node", "Strategy"),
    "presage.searches.run": ("Run", "search"),
    "presage.static.report": ("StaticReport",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'presage' has no attribute '{name}'")
    thing = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
