"""Signs of failure: differences between a module's trace and the reference's. Most modules that fail give wrong
results, and most of those compute in lower precision, or compute something else than the reference."""

from __future__ import annotations

from collections.abc import Sequence

from presage.static.report import StaticReport
from presage.static.roofline import uses_tensor_cores
from presage.static.trace import LAUNCHES, Step, Trace

SIGNS = (
    "lacks",
    "not traced",
    "its own kernels",
    "tensor cores in its kernels",
    "half precision",
    "products in TF32",
    "no batch norms",
    "no convolutions",
    "no products",
    "changes its inputs",
)
"""The signs that a model of modules has a weight for."""
HALF = ("float16", "bfloat16")
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "linear", "dot", "_addmm_activation")


def signs(reports: Sequence[StaticReport], reference: Sequence[StaticReport]) -> set[str]:
    """The signs that a module has in at least one case. reference: the reports of the reference, or none."""
    theirs: Sequence[StaticReport | None] = reference or [None] * len(reports)
    pairs = zip(reports, theirs, strict=False)
    return {sign for ours, other in pairs for sign in _signs(ours.trace, other.trace if other else None)}


def _signs(trace: Trace | None, reference: Trace | None) -> set[str]:
    if trace is None:
        return {"not traced"}
    ours, theirs = _about(trace), _about(reference) if reference else set()
    if "half precision" in theirs:  # tensor cores lose no precision then
        ours.discard("tensor cores in its kernels")
    found = {f"its own {sign}" for sign in ours & {"kernels"}}
    found |= {sign for sign in ours - theirs if sign in SIGNS}
    found |= {f"no {sign}" for sign in theirs - ours if f"no {sign}" in SIGNS}
    return found | ({"lacks"} if trace.lacks else set())


def _about(trace: Trace) -> set[str]:
    found = {sign for step in trace.steps for sign in _of_step(step, trace)}
    return found | ({"changes its inputs"} if _changes_inputs(trace) else set())


def _changes_inputs(trace: Trace) -> bool:
    """Whether an operator writes to an input, or to a view of an input. The writes of kernels are not known."""
    given = set(trace.inputs)
    for step in trace.steps:
        if step.kind == "view" and given.intersection(step.reads):
            given.update(step.makes)
        elif step.kind == "operator" and given.intersection(step.makes):
            return True
    return False


def _of_step(step: Step, trace: Trace) -> set[str]:
    if step.kind in LAUNCHES:
        return {"kernels", *(["tensor cores in its kernels"] if uses_tensor_cores(step) else [])}
    name, found = step.base_name, set()
    if step.precision in ("fp16", "bf16") or any(trace.tensors[number].dtype in HALF for number in step.makes):
        found.add("half precision")
    if "conv" in name:
        found.add("convolutions")
    elif step.precision == "tf32":
        found.add("products in TF32")
    if name in PRODUCTS or "attention" in name:
        found.add("products")
    if "batch_norm" in name:
        found.add("batch norms")
    return found
