"""The child that runs the reference of a problem from elsewhere. It never runs a candidate; it only sees its
outputs."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from presage.devices.worker import needed, swallowed, tensors
from presage.devices.worker.exactness import are_equal, is_as_exact
from presage.devices.worker.module import as_data, initial_inputs, load_reference, set_seed, to_device
from presage.sandbox import foreign

_SEED_OF_OTHERS = 7_182_818
"""The seed of inputs whose answer is not the answer to any inputs under test."""
_HOARD = 8 << 30
"""The most bytes of GPU memory that are kept from one check to the next, since a candidate may need the memory."""


class ExaminerRunner:
    """Describes a problem's cases, makes inputs, and compares outputs, through memory shared with the parent."""

    def __init__(self, command: dict[str, Any], device: str, memory: Callable[[int, int], Any]) -> None:
        import torch

        self._torch, self._memory = torch, memory
        torch.set_grad_enabled(False)
        conventions: dict[str, Any] = {"KernelBench": KernelBench, "GPU MODE": GpuMode, "one-file": OneFile}
        self._reference = conventions[command["problem"]["convention"]](command["problem"], device, torch)
        self._notes: dict[str, str | None] = {}
        self._thins: set[str] = set()

    def describe(self, command: dict[str, Any]) -> dict[str, Any]:
        """Shapes and types of every case's tensors, and which inputs of the first case are only memory for an
        output."""
        cases = [self._describe(case) for case in command["cases"]]
        return {"cases": cases, "written": self._reference.written(command["cases"][0], command["seed"])}

    def _describe(self, case: dict[str, Any]) -> dict[str, Any]:
        data, outputs = self._reference.example(case)
        template, inputs, names = tensors.split(data, self._torch)
        return {
            "data": template,
            "names": names,
            "inputs": [tensors.describe(tensor) for tensor in inputs],
            "outputs": [tensors.describe(tensor) for tensor in outputs],
            "passed_on": [any(tensors.share_memory(one, other) for one in inputs) for other in outputs],
        }

    def make(self, command: dict[str, Any]) -> None:
        """Make inputs from seeds and copy them to the offsets that the parent gives."""
        for seed, offsets in zip(command["seeds"], command["offsets"], strict=True):
            data = self._reference.make(command["case"], seed)
            template, inputs, _ = tensors.split(data, self._torch)
            if template != command["data"] or [tensors.describe(tensor) for tensor in inputs] != command["inputs"]:
                raise ValueError("its inputs have other shapes, types or numbers in them when the seed is another")
            if command.get("thinned"):
                inputs = self._thinned(inputs, seed, swallowed.style(seed))
            for offset, tensor in zip(offsets, inputs, strict=True):
                memory = tensors.to_bytes(tensor, self._torch)
                self._memory(offset, memory.numel()).copy_(memory)
        self._settle()

    def check(self, command: dict[str, Any]) -> dict[str, Any]:
        """Return why these outputs are wrong for these inputs, or None; a note on a weakness of the comparison, or
        None; and whether inputs of which parts are scaled down help."""
        arrays = [*command["inputs"], *command["outputs"]]
        found = [
            tensors.over(self._memory(offset, tensors.size_of(array, self._torch)), array, self._torch)
            for offset, array in zip(command["offsets"], arrays, strict=True)
        ]
        inputs, outputs = found[: len(command["inputs"])], found[len(command["inputs"]) :]
        data = tensors.join(command["data"], inputs, self._torch)
        case = command["case"]
        key = str(case)
        is_thinned = command.get("thinned") is True
        if key not in self._notes or (not is_thinned and self._reference.is_first_to_differ(case, data)):
            notes = (self._sameness(case, inputs), self._reference.examine(case, data, _SEED_OF_OTHERS))
            self._notes[key] = "; ".join(filter(None, notes)) or None
            others = [partial(self._others, command["data"], inputs, style) for style in swallowed.STYLES]
            if any(self._reference.is_moved(data, make_others) for make_others in others):
                self._thins.add(key)
                self._notes[key] = f"{self._notes[key]}; so inputs of which parts are scaled down are tried, too"
        wrong = self._reference.difference(case, data, outputs, is_thinned)
        if self._torch.cuda.is_available() and self._torch.cuda.memory_reserved() > _HOARD:
            self._torch.cuda.empty_cache()  # the candidate needs it
        return {"wrong": wrong, "note": self._notes[key], "thins": key in self._thins}

    def needed(self, command: dict[str, Any]) -> dict[str, Any]:
        """Return which inputs of a case every kernel has to read as a whole; none if that cannot be found out."""
        found: list[int] = []
        with contextlib.suppress(Exception):  # there is no memory, or the reference is not made for such values
            data = self._reference.make(command["case"], command["seed"])
            template, inputs, _ = tensors.split(data, self._torch)
            own = [tensor.clone() for tensor in inputs]
            given = tensors.join(template, own, self._torch)
            answers = partial(self._reference.answer, given), partial(self._reference.answer_in_double, given)
            found = needed.needed(own, *answers, command["seed"], command["seconds"], self._torch)
        self.let_go(command)
        return {"needed": found}

    def _others(self, template: Any, inputs: Sequence[Any], style: str) -> Any:
        return tensors.join(template, self._thinned(inputs, _SEED_OF_OTHERS, style), self._torch)

    def _thinned(self, inputs: Sequence[Any], seed: int, style: str) -> list[Any]:
        """The inputs with other parts of each scaled down."""
        return [swallowed.thinned(tensor, seed + at, style, self._torch) for at, tensor in enumerate(inputs)]

    def _sameness(self, case: dict[str, Any], inputs: Sequence[Any]) -> str | None:
        """Return in words that the inputs do not depend on the seed, or None."""
        try:
            _, others, _ = tensors.split(self._reference.make(case, _SEED_OF_OTHERS), self._torch)
            pairs = [
                [tensors.to_bytes(x.to(one.device), self._torch) for x in (one, other)]
                for one, other in zip(inputs, others, strict=True)
            ]
        except self._torch.OutOfMemoryError:
            return None
        if not pairs or not all(self._torch.equal(*pair) for pair in pairs):
            return None
        return "the inputs are the same for every seed, so a kernel that keeps its results from call to call looks fast"

    def let_go(self, command: dict[str, Any]) -> None:
        """Empty torch's cache, since others need the memory now."""
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()

    def _settle(self) -> None:
        if self._torch.cuda.is_available():
            self._torch.cuda.synchronize()


class KernelBench:
    """`Model(*get_init_inputs())` is called on `get_inputs()`; outputs are close when torch.allclose says so."""

    _tolerance_is = "KernelBench's own tolerance"

    def __init__(self, problem: dict[str, Any], device: str, torch: Any) -> None:
        self._torch, self._device, self._seed = torch, device, problem["seed"]
        self._tolerances, self._keeps = problem["tolerances"], problem["keeps_tolerance"]
        self._for_gpu = problem["for_gpu"]
        self._module = load_reference(problem)
        self._model: Any = None
        self._writes = False
        """Whether the model writes to its inputs."""
        self._bounds_of: dict[str, dict[int, tuple[float, float]]] = {}
        """For outputs that KernelBench's tolerance would swallow, by case and number, the error that is allowed
        instead: absolute, and as a share of each value."""
        self._bounds: dict[int, tuple[float, float]] = {}
        """Those of the case asked about last."""
        self._flat: dict[str, list[int]] = {}
        """The outputs of each case that have such a bound and whose values were all the same where it was found."""
        self._passable: list[int] = []
        """The outputs of the case examined last that KernelBench's tolerance would swallow."""

    def _build(self, device: str) -> Any:
        init = initial_inputs(self._module, self._seed, device)
        set_seed(self._seed)
        return foreign.construct(self._module.Model, init).to(device)

    def _generate(self, case: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._module.get_inputs())

    def example(self, case: dict[str, Any]) -> tuple[Any, list[Any]]:
        """Example inputs and outputs, of which only shapes and types matter. If torch can derive them with fake
        tensors, nothing is computed."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        try:
            with FakeTensorMode():
                return self._tried(self._build("cpu"), self._generate(case))
        except Exception:
            return self._tried(self._built(), self.make(case, self._seed))

    def _tried(self, model: Any, data: Any) -> tuple[Any, list[Any]]:
        """The data and the model's outputs. Notes if the model writes to its data."""
        before = self._versions(data)
        outputs = _parts(model(*data), self._torch)
        self._writes = self._writes or self._versions(data) != before
        return data, outputs

    def _versions(self, data: Any) -> list[int]:
        """How often each tensor was written to."""
        from torch.utils._pytree import tree_leaves

        leaves = [leaf for leaf in tree_leaves(data) if isinstance(leaf, self._torch.Tensor)]
        return [0 if leaf.is_inference() else leaf._version for leaf in leaves]

    def written(self, case: dict[str, Any], seed: int) -> list[int]:
        return []

    def make(self, case: dict[str, Any], seed: int) -> Any:
        """Make inputs on the device itself if the file's code allows that, which is many times as fast."""
        try:
            with self._torch.device(self._device):
                set_seed(seed)
                made = self._generate(case)
        except Exception:
            set_seed(seed)
            made = self._generate(case)
        return to_device(made, self._device)

    def _built(self) -> Any:
        if self._model is None:
            self._model = self._build(self._device)
        return self._model

    def answer(self, data: Any) -> list[Any]:
        return self._answer_of(self._built(), data)

    def _answer_of(self, model: Any, data: Any) -> list[Any]:
        """The outputs as real numbers. A model that writes to its data gets a copy, as they are used again."""
        given = _copied(data, self._torch) if self._writes else data
        return _real(_parts(model(*given), self._torch), self._torch)

    def examine(self, case: dict[str, Any], data: Any, seed: int) -> str | None:
        """Return in words which outputs KernelBench's tolerance swallows, or None. They are compared relative to their
        scale instead, as strictly as an honest implementation allows."""
        self._bounds = self._bounds_of[str(case)] = {}
        expected = self.answer(data)
        exact = self.answer_in_double(data)
        others = self._answer_to_others(case, seed)
        notes = []
        self._passable = []
        for number, right in enumerate(expected):
            passing = self._passing(number, right, others[number] if others else None)
            if not passing:
                continue
            name = f"output {number}" if len(expected) > 1 else "the output"
            note = (
                f"{self._tolerance_is} of {self._tolerance(right):g} would let {swallowed.words(passing)} pass"
                f" as {name}, whose values are at most {swallowed.largest(right):.2g} and differ by"
                f" {swallowed.spread(right):.2g}"
            )
            if not self._keeps and exact and right.is_floating_point():
                self._passable.append(number)
                allowed = swallowed.bound(right, exact[number], self._tolerance(right))
                for share in (self._tolerance(right), swallowed.ROUNDINGS * self._torch.finfo(right.dtype).eps):
                    self._bounds[number] = allowed, share
                    still = self._passing(number, right, others[number] if others else None)
                    if not still:
                        break
                note += f"; errors above {allowed:.2g} are wrong here"
                if still:
                    note += f", and {swallowed.words(still)} would still pass: rounding errors are as large"
            notes.append(note)
        self._flat[str(case)] = [number for number in self._bounds if swallowed.spread(expected[number]) == 0]
        return "; ".join(notes) or None

    def is_first_to_differ(self, case: dict[str, Any], data: Any) -> bool:
        """Whether the case has to be examined again. An answer that is zero everywhere, as where a small input is
        clamped, tells neither the scale nor the rounding errors of answers that are not."""
        flat = self._flat.get(str(case))
        if not flat:
            return False
        expected = self.answer(data)
        return any(swallowed.spread(expected[number]) > 0 for number in flat)

    def is_moved(self, data: Any, make_others: Callable[[], Any]) -> bool:
        """Whether the answer to other data differs, by more than rounding errors, in an output that the tolerance would
        swallow for the case examined last."""
        if not self._passable:
            return False
        try:
            others = make_others()
            right, moved, exact = self.answer(data), self.answer(others), self.answer_in_double(others)
        except Exception:  # the reference may not be made for such data
            return False
        return bool(exact) and any(
            bool(self._close_enough(number, exact[number], moved[number]).all())
            and not bool(self._close_enough(number, moved[number], right[number]).all())
            for number in self._passable
        )

    def _passing(self, number: int, right: Any, other: Any) -> list[str]:
        found = swallowed.strangers(right, other, self._torch)
        return [name for name, output in found.items() if bool(self._close(number, right, output).all())]

    def _answer_to_others(self, case: dict[str, Any], seed: int) -> list[Any]:
        """The answer to other inputs; empty if there is no memory for it."""
        try:
            return self.answer(self.make(case, seed))
        except self._torch.OutOfMemoryError:
            return []

    def _tolerance(self, right: Any) -> float:
        return float(self._tolerances.get(str(right.dtype).removeprefix("torch."), 0.0))

    def difference(
        self, case: dict[str, Any], data: Any, outputs: Sequence[Any], is_thinned: bool = False
    ) -> str | None:
        """Return why outputs are wrong, or None. Outputs are right if they are close to the reference's answer, or to
        its answer in double precision. They are also right if they are about as far from the latter as the reference
        is, or as the reference would be in TF32 if its settings allow TF32. For thinned inputs, whose answer should
        only be another one, the tolerance is wider."""
        self._bounds = self._bounds_of.get(str(case), {})
        expected, outputs = self.answer(data), _real(outputs, self._torch)
        if is_thinned:
            found = self._compare(expected, outputs, self._close_enough)
            return found if found and self._is_sound(expected, self.answer_in_double(data)) else None
        found = self._compare(expected, outputs)
        if found is None:
            return None
        if self._compare(expected, self.answer(data)):
            raise ValueError("the model answers the same inputs differently each time: there is state or chance in it")
        exact = self.answer_in_double(data)
        if exact and (self._compare(exact, outputs) is None or self._are_as_exact(expected, expected, exact, outputs)):
            return None
        loose = self._answer_in_tf32(data) if exact and self._may_use_tf32(expected) else []
        return None if loose and self._are_as_exact(loose, expected, exact, outputs) else found

    def _is_sound(self, expected: Sequence[Any], exact: Sequence[Any]) -> bool:
        """Whether the answer to thinned inputs is more than rounding errors."""
        return bool(exact) and self._compare(exact, expected, self._close_enough) is None

    def _may_use_tf32(self, expected: Sequence[Any]) -> bool:
        """Whether the answers are in single precision on a GPU, where TF32 may be used instead, or stand for such."""
        return any((right.is_cuda or self._for_gpu) and right.dtype is self._torch.float32 for right in expected)

    def _answer_in_tf32(self, data: Any) -> list[Any]:
        """The exact answer, except for the roundings to TF32 that torch's settings allow."""
        from presage.devices.worker.in_tf32 import InTf32

        with InTf32():
            return self.answer_in_double(data)

    def _are_as_exact(
        self, given: Sequence[Any], expected: Sequence[Any], exact: Sequence[Any], outputs: Sequence[Any]
    ) -> bool:
        """Whether every output is close to the reference's answer, or about as close to the exact one as `given`. An
        output that the tolerance swallows must be close. False if there is no memory for the comparison."""
        try:
            return all(
                bool(self._close(number, right, output).all())
                or (number not in self._bounds and is_as_exact(inexact, true, output))
                for number, (inexact, right, true, output) in enumerate(
                    zip(given, expected, exact, outputs, strict=True)
                )
            )
        except self._torch.OutOfMemoryError:
            return False

    def answer_in_double(self, data: Any) -> list[Any]:
        """The answer in double precision; empty if the model cannot be converted to doubles."""
        try:
            return self._answer_of(self._in_double(), [_wide(value, self._torch) for value in data])
        except Exception:
            return []

    def _in_double(self) -> Any:
        return copy.deepcopy(self._model).double()

    def _compare(self, expected: Sequence[Any], outputs: Sequence[Any], closeness: Any = None) -> str | None:
        for number, (right, output) in enumerate(zip(expected, outputs, strict=True)):
            name = f"output {number}" if len(outputs) > 1 else "output"
            if right.shape != output.shape:
                return f"{name} has shape {list(output.shape)}, not {list(right.shape)}"
            close = (closeness or self._close)(number, right, output)
            if not bool(close.all()):
                bound = None if closeness else self._bounds.get(number)
                why = f" by more than {bound[0]:.2g}, which is relative to the output's scale" if bound else ""
                return _report(name, right, output, close) + why
        return None

    def _close(self, number: int, right: Any, output: Any) -> Any:
        allowed = self._tolerance(output)
        if not allowed:
            return are_equal(right, output)
        wide = output.to(right.dtype)
        close = self._torch.isclose(wide, right, rtol=allowed, atol=allowed, equal_nan=True)
        if number not in self._bounds:
            return close
        absolute, share = self._bounds[number]  # in doubles, since a GPU flushes the smallest floats to zero
        return close & self._torch.isclose(wide.double(), right.double(), rtol=share, atol=absolute, equal_nan=True)

    def _close_enough(self, number: int, right: Any, output: Any) -> Any:
        """Which values are about the same, relative to the output's scale."""
        if not self._tolerance(output):
            return are_equal(right, output)
        share = max(swallowed.THINNED_SHARE, self._tolerance(output))
        absolute = share * swallowed.spread(right)
        return self._torch.isclose(output.double(), right.double(), rtol=share, atol=absolute, equal_nan=True)


class OneFile(KernelBench):
    """`reference(*inputs(**case))`; outputs are compared as KernelBench's are."""

    _tolerance_is = "the tolerance"

    def _build(self, device: str) -> Any:
        return self._module.reference

    def _generate(self, case: dict[str, Any]) -> tuple[Any, ...]:
        return as_data(self._module.inputs(**case))

    def _in_double(self) -> Any:
        return self._model


class GpuMode:
    """`generate_input` makes data, `ref_kernel` answers, and `check_implementation` judges."""

    def is_moved(self, data: Any, make_others: Callable[[], Any]) -> bool:
        return False  # the task judges by itself

    def is_first_to_differ(self, case: dict[str, Any], data: Any) -> bool:
        return False

    def __init__(self, problem: dict[str, Any], device: str, torch: Any) -> None:
        self._torch = torch
        if device == "cpu":  # tasks name the GPU where they make inputs
            importlib.import_module("presage.devices.worker.pretended").place_on_cpu()
        self._module = load_reference(problem)
        self._seeded = "seed" in inspect.signature(self._module.generate_input).parameters
        self._returns: type | None = None

    def make(self, case: dict[str, Any], seed: int) -> Any:
        set_seed(seed)
        return self._module.generate_input(**case, **({"seed": seed} if self._seeded else {}))

    def example(self, case: dict[str, Any]) -> tuple[Any, list[Any]]:
        data = self.make(case, 1)
        answer = self._module.ref_kernel(self._copy(data))
        self._returns = type(answer) if isinstance(answer, tuple | list) else None
        return data, _parts(answer, self._torch)

    def written(self, case: dict[str, Any], seed: int) -> list[int]:
        """The inputs that look like an output and whose values do not matter to the reference."""
        data, outputs = self.example(case)
        template, inputs, _ = tensors.split(data, self._torch)
        looks = [(tensor.shape, tensor.dtype) for tensor in outputs]
        found = []
        for i, tensor in enumerate(inputs):
            if (tensor.shape, tensor.dtype) in looks:
                changed = [x.clone() for x in inputs]
                changed[i] = self._other_values(tensor, seed)
                with contextlib.suppress(Exception):  # a reference that fails on other values needs these
                    if self._judged(tensors.join(template, changed, self._torch), outputs) is None:
                        found.append(i)
        return found

    def answer(self, data: Any) -> list[Any]:
        return _real(_parts(self._module.ref_kernel(self._copy(data)), self._torch), self._torch)

    def answer_in_double(self, data: Any) -> list[Any]:
        return []  # the task has no other reference

    def _other_values(self, tensor: Any, seed: int) -> Any:
        """Other values for a tensor. Floats are drawn anew; integers, which may be indices, are only reordered."""
        if not tensor.is_floating_point():
            return tensor.flatten().flip(0).reshape(tensor.shape)
        set_seed(seed)
        return (4 * self._torch.randn(tensor.shape, device=tensor.device)).to(tensor.dtype)

    def examine(self, case: dict[str, Any], data: Any, seed: int) -> str | None:
        """Return in words whether the task's own check accepts outputs that do not depend on the inputs, or None."""
        try:
            right = _parts(self._module.ref_kernel(self._copy(data)), self._torch)
            others = _parts(self._module.ref_kernel(self.make(case, seed)), self._torch)
        except self._torch.OutOfMemoryError:
            return None
        notes = []
        for number, part in enumerate(right):
            found = swallowed.strangers(part, others[number], self._torch)
            passing = [name for name, output in found.items() if self._passes(data, right, number, output)]
            if passing:
                name = f"output {number}" if len(right) > 1 else "the output"
                notes.append(
                    f"the task's own check lets {swallowed.words(passing)} pass as {name}, whose values are at most"
                    f" {swallowed.largest(part):.2g} and differ by {swallowed.spread(part):.2g}"
                )
        return "; ".join(notes) or None

    def _passes(self, data: Any, right: Sequence[Any], number: int, output: Any) -> bool:
        with contextlib.suppress(Exception):
            outputs = [output if i == number else part.clone() for i, part in enumerate(right)]
            return self._judged(self._copy(data), outputs) is None
        return False

    def difference(
        self, case: dict[str, Any], data: Any, outputs: Sequence[Any], is_thinned: bool = False
    ) -> str | None:
        return self._judged(data, outputs)

    def _judged(self, data: Any, outputs: Sequence[Any]) -> str | None:
        make = getattr(self._returns, "_make", self._returns)  # a named tuple is made in another way
        output = outputs[0] if make is None else make(outputs)
        verdict = self._module.check_implementation(data, output)
        if isinstance(verdict, bool):
            verdict = verdict, ""
        right, reason = verdict if isinstance(verdict, tuple) else (not verdict, verdict)
        return None if right else " ".join(str(reason).split())[:1000] or "check_implementation refuses it"

    def _copy(self, data: Any) -> Any:
        return _copied(data, self._torch)


def _copied(data: Any, torch: Any) -> Any:
    """A copy of the data, since a reference may write to it."""
    template, found, _ = tensors.split(data, torch)
    return tensors.join(template, [tensor.clone() for tensor in found], torch)


def _wide(value: Any, torch: Any) -> Any:
    """A tensor of floats or complex numbers in double precision; another value as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(torch.complex128) if value.is_complex() else value.double() if value.is_floating_point() else value


def _real(parts: Sequence[Any], torch: Any) -> list[Any]:
    """Outputs to compare: of a complex number, the real and the imaginary part."""
    return [torch.view_as_real(part.resolve_conj()) if part.is_complex() else part for part in parts]


_COMPARED = "only tensors can be compared, so let it and its kernels return a tensor, or a tuple or list of tensors"


def _parts(answer: Any, torch: Any) -> list[Any]:
    parts = list(answer) if isinstance(answer, tuple | list) else [answer]
    for part in parts:
        if not isinstance(part, torch.Tensor):
            kind = f"{type(part).__module__}.{type(part).__qualname__}"
            raise TypeError(f"the reference returns a {kind}; {_COMPARED}")
    return [part.detach() for part in parts]


def _report(name: str, right: Any, output: Any, close: Any) -> str:
    wrong = (~close).nonzero()
    at = tuple(int(i) for i in wrong[0])
    amount = f"{len(wrong)} of {output.numel()} elements are wrong"
    return f"{name}{list(at)} is {float(output[at]):.9g}, not {float(right[at]):.9g}; {amount}"
