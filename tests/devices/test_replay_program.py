"""Traces are run again as programs, here on tensors of the CPU. Nothing that a trace says is believed."""

from __future__ import annotations

import base64
import ctypes
import gc
import json
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from presage.devices import recorded_call  # noqa: E402
from presage.devices.worker.replay import MachineCode, Program, constants, placed, span  # noqa: E402
from presage.static.trace import TensorSpec, Trace, TraceError  # noqa: E402
from presage.static.tracing.recorder import current_flags, set_flags  # noqa: E402


def tensor(*shape: int, dtype: str = "float32", stride: Sequence[int] = (), device: str = "cpu") -> dict[str, Any]:
    return {"shape": list(shape), "dtype": dtype, "stride": list(stride), "device": device}


def at(*numbers: int) -> Any:
    """How steps name tensors."""
    return {"tensor": numbers[0]} if len(numbers) == 1 else {"list": [{"tensor": number} for number in numbers]}


def step(name: str, *arguments: Any, results: Any = None, kind: str = "operator", **named: Any) -> dict[str, Any]:
    """A step that says it does more work than it does."""
    said = {"bytes": 1 << 20, "flops": 1e9}
    return {"kind": kind, "name": name, "arguments": list(arguments), "named": named, "results": results, **said}


def document(
    tensors: int, inputs: list[int], steps: list[dict[str, Any]], outputs: Any, given: Sequence[int] = (), **more: Any
) -> dict[str, Any]:
    return {
        "version": 1,
        "tensors": [tensor(4) for _ in range(tensors)],
        "inputs": inputs,
        "constants": list(given),
        "steps": steps,
        "outputs": outputs,
        **more,
    }


def program(written: dict[str, Any], *values: Any) -> Program:
    return Program(Trace.from_document(written), values, torch, device="cpu")


CODE = base64.b64encode(b"\x7fELF").decode()
X, Y = torch.arange(4.0), torch.tensor([2.0, -1.0, 0.5, 3.0])


def test_a_sum_of_products() -> None:
    steps = [step("aten::mul.Tensor", at(0), at(1), results=at(2)), step("aten::sum.default", at(2), results=at(3))]
    run = program(document(4, [0, 1], steps, at(3)))
    assert float(run([X, Y])) == float((X * Y).sum())
    assert float(run([Y, Y])) == float((Y * Y).sum())


def test_arguments_of_every_kind() -> None:
    steps = [
        step(
            "aten::empty.memory_format", {"list": [2, 4]}, results=at(1), kind="allocation",
            dtype={"dtype": "float64"}, device={"device": "cuda"}, layout={"layout": "strided"}, pin_memory=False,
            memory_format={"memory_format": "contiguous_format"},
        ),
        step("aten::fill_.Scalar", at(1), 2.5, results=at(1)),
        step("aten::cat.default", at(0, 0), 0, results=at(2)),
        step("aten::add.Tensor", at(2), {"complex": [1.0, 2.0]}, results=at(3)),
    ]  # fmt: skip
    made, joined, shifted = program(document(4, [0], steps, at(1, 2, 3)))([X])
    assert torch.equal(made, torch.full((2, 4), 2.5, dtype=torch.float64))
    assert torch.equal(joined, torch.cat([X, X]))
    assert torch.equal(shifted, torch.cat([X, X]) + (1 + 2j))


def test_a_view_shares_its_memory() -> None:
    steps = [
        step("aten::clone.default", at(0), results=at(1)),
        step("aten::slice.Tensor", at(1), 0, 1, 3, results=at(2), kind="view"),
        step("aten::mul_.Tensor", at(2), 10.0, results=at(2)),
    ]
    assert program(document(3, [0], steps, at(1)))([X]).tolist() == [0.0, 10.0, 20.0, 3.0]
    assert X.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_several_outputs_of_one_step() -> None:
    steps = [step("aten::max.dim", at(0), 0, results=at(1, 2))]
    largest, where = program(document(3, [0], steps, at(1, 2)))([Y])
    assert (float(largest), int(where)) == (3.0, 3)


def test_an_input_that_is_written_to() -> None:
    steps = [step("aten::copy_.default", at(1), at(0), results=at(1))]
    room = torch.zeros(4)
    assert program(document(2, [0, 1], steps, at(1)))([X, room]) is room
    assert torch.equal(room, X)


def test_constants_go_on_from_call_to_call() -> None:
    steps = [
        step("aten::add_.Tensor", at(1), 1.0, results=at(1)),
        step("aten::mul.Tensor", at(0), at(1), results=at(2)),
    ]
    counter = torch.zeros(4)
    run = program(document(3, [0], steps, at(2), given=[1]), counter)
    assert [float(run([X])[3]) for _ in range(3)] == [3.0, 6.0, 9.0]


def test_a_value_is_let_go_of_after_its_last_use() -> None:
    """So that its memory can be had again, as in the module."""
    steps = [
        step("aten::add.Tensor", at(0), 1.0, results=at(1)),
        step("aten::add.Tensor", at(1), 1.0, results=at(2)),
        step("aten::add.Tensor", at(2), 1.0, results=at(3)),
    ]
    run = program(document(4, [0], steps, at(3)))
    alive: list[list[bool]] = []
    seen: dict[int, weakref.ref[Any]] = {}

    def look(values: list[Any]) -> None:
        gc.collect()
        seen.update({n: weakref.ref(x) for n, x in enumerate(values) if x is not None and n not in seen})
        alive.append([seen[n]() is not None if n in seen else False for n in (1, 2, 3)])

    run._actions = [action for each in run._actions for action in (each, look)]
    assert float(run([X])[0]) == 3.0
    assert alive[-1] == [False, False, True]


def test_what_the_host_waited_for_is_not_waited_for_again() -> None:
    steps = [
        step("aten::_local_scalar_dense.default", at(0), kind="sync"),
        step("aten::mul.Tensor", at(0), 7.0, results=at(1)),
    ]
    assert torch.equal(program(document(2, [0], steps, at(1)))([X]), 7 * X)


def test_flags_are_set_before_the_steps_that_have_them() -> None:
    before = current_flags()
    steps = [step("aten::neg.default", at(0), results=at(1)) | {"flags": before | {"cudnn_benchmark": True}}]
    try:
        program(document(2, [0], steps, at(1)))([X])
        assert torch.backends.cudnn.benchmark is True
    finally:
        set_flags(before)


def test_some_flags_without_the_others_are_refused() -> None:
    steps = [step("aten::neg.default", at(0), results=at(1)) | {"flags": {"cudnn_benchmark": True}}]
    with pytest.raises(TraceError, match="and not others"):
        program(document(2, [0], steps, at(1)))


def test_bytes_are_copied_and_filled() -> None:
    steps = [
        step("aten::zeros_like.default", at(0), results=at(1)),
        step("presage::copy", 8, at(1), 4, at(0), 8),
        step("presage::fill", 4, 0, at(1), 8),
    ]
    assert program(document(2, [0], steps, at(1)))([X]).tolist() == [0.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize(("size", "to"), [(100, 0), (4, 16), (4, -4)])
def test_bytes_outside_of_a_tensor_are_not_touched(size: int, to: int) -> None:
    run = program(document(1, [0], [step("presage::fill", size, 0, at(0), to)], at(0)))
    with pytest.raises(TraceError, match="outside"):
        run([X.clone()])


@pytest.mark.parametrize(
    "arguments", [(), (4,), (4, at(0)), (4, 1, 0), ("4", at(0), 0, at(0), 0), (4, at(0), 0, at(0), 0, at(0), 0)]
)
def test_bytes_that_are_not_told_are_refused(arguments: Any) -> None:
    with pytest.raises(TraceError):
        program(document(1, [0], [step("presage::copy", *arguments)], at(0)))


@pytest.mark.parametrize(
    "name",
    [
        "aten::no_such_operator.default", "aten::mul.NoSuchOverload", "mylib::mul.default", "prim::device.default",
        "aten::mul", "os.system", "aten::mul.Tensor.x", "aten::__init__.default", "",
    ],
)  # fmt: skip
def test_only_torchs_own_operators_are_called(name: str) -> None:
    with pytest.raises(TraceError):
        program(document(2, [0], [step(name, at(0), at(0), results=at(1))], at(1)))


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([step("aten::neg.default", at(7), results=at(1))], id="a tensor that there is not"),
        pytest.param([step("aten::neg.default", at(1), results=at(1))], id="before it is made"),
        pytest.param([step("aten::neg.default", {"dtype": "os"}, results=at(1))], id="no dtype"),
        pytest.param([step("aten::neg.default", {"device": "meta:7:9"}, results=at(1))], id="no device"),
        pytest.param([step("aten::neg.default", {"object": "x"}, results=at(1))], id="an unknown tag"),
        pytest.param([{"kind": "triton", "name": "k", "cubin": 0}], id="a launch without code"),
        pytest.param([{"kind": "anything", "name": "k"}], id="an unknown kind"),
    ],
)
def test_a_trace_that_makes_no_sense_is_refused(steps: list[Any]) -> None:
    with pytest.raises(TraceError):
        program(document(2, [0], steps, at(1) if len(steps[0]) > 3 else at(0)))


def test_a_trace_that_lacks_something_is_refused() -> None:
    with pytest.raises(TraceError, match="a library of its own"):
        program(document(1, [0], [], at(0), lacks="it calls a library of its own"))


def test_a_launch_needs_a_gpu() -> None:
    launch = {"kind": "cuda", "name": "k", "cubin": 0, "grid": [1, 1, 1], "block": [1, 1, 1], "shared": 0}
    with pytest.raises(TraceError, match="cannot be launched"):
        program(document(1, [0], [launch | {"parameters": []}], at(0), cubins=[CODE]))


# -- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(12.0).reshape(3, 4),
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(24.0).reshape(4, 6)[:, ::2],
        torch.arange(3.0).expand(5, 3),
        torch.tensor(2.5),
        torch.tensor([True, False]),
        torch.empty(0, 3),
        torch.tensor([1 + 2j, 3j]),
        torch.arange(6, dtype=torch.bfloat16),
    ],
)
def test_constants_are_what_they_were_and_lie_as_they_did(value: Any) -> None:
    specs = [
        {"shape": [*x.shape], "stride": [*x.stride()], "dtype": str(x.dtype)[6:], "device": "cpu"} for x in (X, value)
    ]
    written = document(2, [], [], at(0, 1), given=[0, 1]) | {"tensors": specs}
    trace = Trace.from_document(written)
    offsets, size = placed(trace)
    block = torch.zeros(size, dtype=torch.uint8)
    for offset, x in zip(offsets, (X, value), strict=True):
        if count := span(TensorSpec(tuple(x.shape), str(x.dtype)[6:], tuple(x.stride()))):
            held = x.as_strided((count // x.element_size(),), (1,), x.storage_offset()).view(torch.uint8)
            block[offset : offset + count] = held
    first, second = constants(trace, block, torch, "cpu")
    assert torch.equal(first, X)
    assert torch.equal(second, value)
    assert second.stride() == value.stride()
    assert second.dtype == value.dtype


# -- launches ---------------------------------------------------------------------------------------------------------


class FakeDriver:
    """The driver's functions, which write down what they are asked for."""

    def __init__(self, sizes: Sequence[int]) -> None:
        bindings = pytest.importorskip("cuda.bindings.driver")
        for name in ("CUlaunchConfig", "CUlaunchAttribute", "CUlaunchAttributeID", "CUfunction_attribute", "CUstream"):
            setattr(self, name, getattr(bindings, name))
        self.sizes, self.loaded, self.settings, self.launched = sizes, [], [], []  # type: ignore[var-annotated]

    def cuModuleLoadData(self, code: bytes) -> Any:  # noqa: N802
        self.loaded.append(code)
        return 0, f"module {len(self.loaded)}"

    def cuModuleGetFunction(self, module: str, name: bytes) -> Any:  # noqa: N802
        return 0, f"{module} {name.decode()}"

    def cuFuncSetAttribute(self, function: str, attribute: Any, value: int) -> Any:  # noqa: N802
        self.settings.append((function, value))
        return (0,)

    def cuFuncGetParamInfo(self, function: str, index: int) -> Any:  # noqa: N802
        return (0, 0, self.sizes[index]) if index < len(self.sizes) else (1, 0, 0)

    def _parameters(self, address: int) -> list[bytes]:
        places = (ctypes.c_void_p * len(self.sizes)).from_address(address)
        return [ctypes.string_at(place, size) for place, size in zip(places, self.sizes, strict=True) if place]

    def cuLaunchKernel(self, function: str, *rest: Any) -> Any:  # noqa: N802
        *sizes, address, _ = rest
        self.launched.append((function, tuple(sizes), self._parameters(address)))
        return (0,)

    def cuLaunchKernelEx(self, config: Any, function: str, address: int, extra: int) -> Any:  # noqa: N802
        self.launched.append((function, config, self._parameters(address)))
        return (0,)


class FakeGpu:
    dynamic_shared = "shared"

    def __init__(self, sizes: Sequence[int]) -> None:
        self.driver = FakeDriver(sizes)

    def __call__(self, result: Any) -> Any:
        assert not int(result[0])
        return result[1] if len(result) > 1 else None


def launched(sizes: Sequence[int], parameters: list[dict[str, Any]], **more: Any) -> tuple[Any, Any, Any]:
    launch = {
        "kind": "cuda", "name": "add", "cubin": 0, "grid": [3, 2, 1], "block": [64, 1, 1], "shared": 1024,
        "parameters": parameters, **more,
    }  # fmt: skip
    steps = [step("aten::empty_like.default", at(0), results=at(1), kind="allocation"), launch]
    trace = Trace.from_document(document(2, [0], steps, at(1), cubins=[CODE]))
    gpu: Any = FakeGpu(sizes)
    run = Program(trace, [], torch, MachineCode(gpu, trace.cubins), "cpu")
    return run, gpu.driver, trace


def test_a_launch_gets_the_addresses_of_its_own_tensors() -> None:
    pointers = [{"hex": "00" * 8, "pointers": [[0, 0, 8]]}, {"hex": "ff" * 16, "pointers": [[8, 1, 0]]}]
    run, driver, trace = launched([8, 16, 4], [*pointers, {"hex": "07000000"}])
    made = run([X])
    ((function, sizes, parameters),) = driver.launched
    assert (function, sizes) == ("module 1 add", (3, 2, 1, 64, 1, 1, 1024, 0))
    assert int.from_bytes(parameters[0], "little") == X.data_ptr() + 8
    assert parameters[1][:8] == b"\xff" * 8
    assert int.from_bytes(parameters[1][8:], "little") == made.data_ptr()
    assert parameters[2] == b"\x07\x00\x00\x00"
    assert driver.loaded == [trace.cubins[0]]
    assert driver.settings == [("module 1 add", 1024)]
    run([Y])
    assert int.from_bytes(driver.launched[1][2][0], "little") == Y.data_ptr() + 8


def test_a_kernel_gets_no_memory_of_the_host() -> None:
    """It could leave something there for the next call, which the host would work on while the GPU is held."""
    run, driver, _ = launched([8, 8, 8], [{"hex": "00" * 8, "pointers": [[0, 0, 0]]}])
    with pytest.raises(TraceError, match="memory of the host"):
        run([torch.empty(4, device="meta")])  # on a machine without a GPU, whatever is not the device's
    assert driver.launched == []


def test_on_the_host_a_replay_runs_only_operators_that_stay_inside_their_tensors() -> None:
    """Some of torch's own write wherever an index says, here into the process that times the replay."""
    pool = step(
        "aten::max_pool2d_with_indices_backward.default", at(1), at(2), {"list": [2, 2]}, {"list": [2, 2]},
        {"list": [0, 0]}, {"list": [1, 1]}, False, at(3), results=at(4),
    )  # fmt: skip
    trace = Trace.from_document(document(5, [0], [pool], at(0), given=[1, 2, 3]))
    host = (torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2), torch.full((1, 1, 1, 1), 10**9))
    gpu = torch.empty(4, device="meta")  # stands for one
    with pytest.raises(TraceError, match="max_pool2d_with_indices_backward on tensors of the host"):
        Program(trace, host, torch, device="meta")([gpu])
    steps = [
        step("aten::arange.default", 4, results=at(1)),
        step("aten::mul.Tensor", at(1), 0.5, results=at(2)),
        step("aten::_to_copy.default", at(2), results=at(3), device={"device": "cuda"}, kind="copy"),
    ]
    trace = Trace.from_document(document(4, [0], steps, at(3)))
    assert Program(trace, [], torch, device="meta")([gpu]).device.type == "meta"


def test_nothing_is_copied_to_the_host_while_the_host_goes_on() -> None:
    steps = [
        step("aten::empty.memory_format", {"list": [4]}, results=at(1), kind="allocation", pin_memory=True),
        step("aten::copy_.default", at(1), at(0), True, results=at(1)),
    ]
    with pytest.raises(TraceError, match="memory of the host"):
        program(document(2, [0], steps, at(1)))


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("_to_copy.default", [], {"device": {"device": "cpu"}, "non_blocking": True}),
        ("to.device", [{"device": "cpu"}, {"dtype": "float32"}, True], {}),
        ("to.other", [at(0), True], {}),
    ],
)
def test_no_copy_goes_to_memory_that_torch_pins(name: str, arguments: Any, named: Any) -> None:
    """Which it does by itself where the host need not wait: there lies what an earlier call has left."""
    copied = step(f"aten::{name}", at(0), *arguments, results=at(1), kind="copy", **named)
    with pytest.raises(TraceError, match="memory of the host"):
        program(document(2, [0], [copied], at(1)))


def test_a_copy_to_the_gpu_need_not_be_waited_for() -> None:
    copied = step("aten::_to_copy.default", at(0), results=at(1), device={"device": "cuda"}, non_blocking=True)
    assert torch.equal(program(document(2, [0], [copied], at(1)))([X]), X)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("set_grad_enabled", [True]), ("manual_seed", [1]), ("_cufft_set_plan_cache_max_size", [0, 0])],
)
def test_what_changes_torch_s_state_is_not_run(name: str, arguments: Any) -> None:
    """The next module's replay would run in that state."""
    enabled, seed = torch.is_grad_enabled(), torch.initial_seed()
    with torch.no_grad():
        steps = [step(f"aten::{name}.default", *arguments), step("aten::neg.default", at(0), results=at(1))]
        assert torch.equal(program(document(2, [0], steps, at(1)))([X]), -X)
        assert not torch.is_grad_enabled()
    assert (torch.is_grad_enabled(), torch.initial_seed()) == (enabled, seed)


def test_nothing_is_saved(tmp_path: Path) -> None:
    steps = [step("aten::save.default", at(0), str(tmp_path / "saved"))]
    program(document(1, [0], steps, at(0)))([X])
    assert not [*tmp_path.iterdir()]


def test_values_of_the_host_are_no_tensors() -> None:
    steps = [
        step("aten::Int.Tensor", at(0), results=at(1)),
        step("aten::full_like.default", at(0), at(1), results=at(2)),
    ]
    with pytest.raises((TraceError, TypeError, RuntimeError)):
        program(document(3, [0], steps, at(2)))([X[:1]])
    chosen = step("aten::_batch_norm_impl_index.default", at(0), None, None, at(1), at(1), True, 0.1, 1e-5, False)
    chosen["results"] = at(2, 3, 4, 5, 6)
    with pytest.raises(TraceError, match="no tensor"):
        program(document(7, [0, 1], [chosen], at(2)))([torch.rand(2, 4), torch.ones(4)])


@pytest.mark.parametrize("kind", ["view", "allocation", "sync"])
def test_work_is_not_passed_off_as_none(kind: str) -> None:
    """It would not count as torch's in the share of the module's own kernels."""
    steps = [step("aten::neg.default", at(0), results=at(1)), step("presage::copy", 4, at(1), 0, at(0), 0, kind=kind)]
    with pytest.raises(TraceError, match="more than the step says"):
        program(document(2, [0], steps, at(1)))
    if kind != "sync":  # which is not run
        with pytest.raises(TraceError, match="said to be no work"):
            program(document(2, [0], [step("aten::neg.default", at(0), results=at(1), kind=kind)], at(1)))


@pytest.mark.parametrize("said", [{"bytes": 0}, {"flops": 0}])
def test_a_step_does_not_say_less_than_it_does(said: Any) -> None:
    product = step("aten::mm.default", at(0), at(0), results=at(1)) | said
    run = program(document(2, [0], [product], at(1)))
    with pytest.raises(TraceError, match="more work than its step says"):
        run([torch.rand(8, 8)])


def test_parameters_that_triton_adds_are_nothing() -> None:
    run, driver, _ = launched([8, 8, 8], [{"hex": "00" * 8, "pointers": [[0, 0, 0]]}])
    run([X])
    assert driver.launched[0][2][1:] == [bytes(8), bytes(8)]


@pytest.mark.parametrize("sizes", [[8], [8, 8, 8, 8, 8], [8, 16], [8, 8, 16]], ids=str)
def test_a_launch_that_does_not_fit_its_kernel_is_refused(sizes: list[int]) -> None:
    wanted = [{"hex": "00" * 8}] * 2 if sizes != [8, 8, 8, 8, 8] else [{"hex": "00" * 8}]
    with pytest.raises(TraceError, match="is launched with"):
        launched(sizes, wanted)


def test_clusters_and_overlap_are_asked_for() -> None:
    """The first launch of a call overlaps with nothing: before it lies what holds the GPU until the time begins."""
    launch = {
        "kind": "cuda", "name": "add", "cubin": 0, "grid": [3, 2, 1], "block": [64, 1, 1], "shared": 1024,
        "parameters": [{"hex": "00" * 8, "pointers": [[0, 0, 0]]}],
        "cluster": [2, 1, 1], "cooperative": True, "overlapping": True,
    }  # fmt: skip
    trace = Trace.from_document(document(1, [0], [launch, launch], at(0), cubins=[CODE]))
    gpu: Any = FakeGpu([8])
    run = Program(trace, [], torch, MachineCode(gpu, trace.cubins), "cpu")
    run([X])
    first, second = (launched[1] for launched in gpu.driver.launched)
    assert (second.gridDimX, second.gridDimY, second.blockDimX, second.sharedMemBytes) == (3, 2, 64, 1024)
    cluster, cooperative, overlapping = second.attrs
    assert (cluster.value.clusterDim.x, cluster.value.clusterDim.y) == (2, 1)
    assert cooperative.value.cooperative == 1
    assert overlapping.value.programmaticStreamSerializationAllowed == 1
    assert [first.numAttrs, second.numAttrs] == [2, 3]
    run([X])
    assert gpu.driver.launched[2][1].numAttrs == 2


# -- what a worker has written ----------------------------------------------------------------------------------------


def test_a_trace_is_read_from_a_workers_folder_and_handed_on(tmp_path: Any) -> None:
    written = document(2, [0], [step("aten::neg.default", at(0), results=at(1))], at(1))
    (tmp_path / recorded_call.FILE).write_text(json.dumps(written | {"anything": "else"}))
    trace = recorded_call.read(str(tmp_path))
    again = json.loads(Path(recorded_call.write(trace, str(tmp_path), "1.json")).read_text())
    assert "anything" not in again
    assert Trace.from_document(again) == trace


@pytest.mark.parametrize("how", ["nothing", "link", "pipe", "folder", "text", "deep", "large"])
def test_whatever_else_lies_there_is_no_trace(tmp_path: Any, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, secret = tmp_path / recorded_call.FILE, tmp_path / "secret"
    secret.write_text("{}")
    monkeypatch.setattr(recorded_call, "MOST_BYTES", 300_000)
    match how:
        case "link":
            place.symlink_to(secret)
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case "text":
            place.write_text("not JSON")
        case "deep":
            place.write_text("[" * 100_000)
        case "large":
            place.write_text(" " * 300_001)
    with pytest.raises(TraceError):
        recorded_call.read(str(tmp_path))
