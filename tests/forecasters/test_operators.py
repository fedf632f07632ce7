"""What operators and modules cost: the model that is installed, and sums whose answers can be worked out by hand."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from presage import PresageError, StaticReport
from presage.devices import operator_recording
from presage.devices.operator_recording import TimedCall
from presage.forecasters import module_time as mt
from presage.forecasters import operator_training
from presage.forecasters.launch_times import MARKS, NO_CORRECTION, Correction, launch_times
from presage.forecasters.learned import Model, installed
from presage.forecasters.module_time import StepTime, combined, module_time
from presage.forecasters.operator_model import OperatorModel
from presage.static import hardware, operator_features, roofline
from presage.static.report import LaunchReport
from presage.static.trace import GRAPHED, Launch, Step, TensorSpec, Trace

H200 = hardware.find("h200")


@pytest.fixture(scope="module")
def model() -> OperatorModel:
    return OperatorModel.load()


@pytest.fixture(scope="module")
def recorded() -> list[TimedCall]:
    """What was measured on an H200."""
    return operator_recording.read(operator_recording.find("h200"))


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> list[TimedCall]:
    """The beginning of that."""
    part = tmp_path_factory.mktemp("recording") / "part.parquet"
    parquet.write_table(operator_recording.table(operator_recording.find("h200")).slice(0, 1500), part)
    return operator_recording.read(part)


def call(name: str, shapes: list[tuple[int, ...]], out: tuple[int, ...], *more: Any, dtype: str = "float32") -> Trace:
    tensors = [TensorSpec(shape, dtype) for shape in (*shapes, out)]
    moved = sum(tensor.bytes for tensor in tensors)
    arguments = (*({"tensor": at} for at in range(len(shapes))), *more)
    step = Step("operator", name, arguments, {}, {"tensor": len(shapes)}, bytes=moved, flops=math.prod(out))
    return Trace(tuple(tensors), tuple(range(len(shapes))), (), (step,), {"tensor": len(shapes)})


def product(m: int, n: int, k: int, precision: str = "fp32") -> Trace:
    one = call("aten::mm.default", [(m, k), (k, n)], (m, n))
    return replace(one, steps=(replace(one.steps[0], flops=2.0 * m * n * k, precision=precision),))


def convolution(images: int, channels: int, made: int, size: int) -> Trace:
    more = (None, {"list": [1, 1]}, {"list": [1, 1]}, {"list": [1, 1]}, False, {"list": [0, 0]}, 1)
    shapes = [(images, channels, size, size), (made, channels, 3, 3)]
    return call("aten::convolution.default", shapes, (images, made, size, size), *more)


def chain(length: int, size: int) -> Trace:
    """So many times relu, each of the result of the one before."""
    tensors = tuple(TensorSpec((size,), "float32") for _ in range(length + 1))
    steps = tuple(
        Step("operator", "aten::relu.default", ({"tensor": at},), {}, {"tensor": at + 1}, bytes=8 * size, flops=size)
        for at in range(length)
    )
    return Trace(tensors, (0,), (), steps, {"tensor": length})


def recurrent(shape: tuple[int, ...], is_batch_first: bool = False, *images: int) -> Trace:
    """An LSTM of two layers. images: the images in each time step, of packed sequences."""
    shapes = [shape, *[(1024, 64), (1024, 256), (1024,)] * 2, (2, 10, 256)]
    tensors = tuple(TensorSpec(each, "float32") for each in (*shapes, (*shape[:-1], 256)))
    weights = {"list": [{"tensor": at} for at in range(1, 7)]}
    state, packed = {"tensor": 7}, {"list": list(images)}
    more = (3, None, state, state, 2, 256, 0, 2, is_batch_first, 0.0, False, False, packed, None)
    step = Step("operator", "aten::_cudnn_rnn.default", ({"tensor": 0}, weights, *more), results={"tensor": 8})
    return Trace(tensors, tuple(range(8)), (), (step,), None)


def test_a_recurrent_layer_has_its_time_steps_and_images_in_any_order() -> None:
    calls = [recurrent((512, 10, 64)), recurrent((10, 512, 64), True), recurrent((5120, 64), False, *[10] * 512)]
    for row, least in (operator_features.features(each, H200) for each in calls):
        assert (row["sequence"], row["images"], row["serial"]) == (9, math.log2(10), 10)
        assert row["flops"] == pytest.approx(math.log2(2 * 5120 * 2 * 1024 * (64 + 256)))
        assert least >= 1e9 * operator_features._TIME_STEP_S * 512 * 2


def test_a_product_has_the_sizes_of_its_factors() -> None:
    row, least = operator_features.features(product(1024, 2048, 512), H200)
    assert (row["m"], row["n"], row["k"], row["batch"]) == (10, 11, 9, 0)
    assert row["flops"] == pytest.approx(math.log2(2 * 1024 * 2048 * 512))
    assert least >= operator_features.LAUNCH_NS + 1e9 * 2 * 1024 * 2048 * 512 / H200.peak_flops["fp32"]


def test_a_convolution_is_the_product_that_it_is() -> None:
    row, _ = operator_features.features(convolution(4, 64, 128, 32), H200)
    assert (row["m"], row["n"]) == (math.log2(4 * 32 * 32), 7)
    assert row["k"] == pytest.approx(math.log2(64 * 9))


def least_ns(each: TimedCall) -> float:
    return next(iter(roofline.step_ns(each.call, each.hardware).values()))


@pytest.mark.sweep
def test_no_recorded_call_is_faster_than_its_roofline(recorded: list[TimedCall]) -> None:
    assert [each.call.steps[0].name for each in recorded if each.cold_ns < least_ns(each)] == []


def test_features_count_what_the_roofline_counts(timed: list[TimedCall]) -> None:
    for each in timed:
        _, least = operator_features.features(each.call, each.hardware)
        assert least >= operator_features.LAUNCH_NS + 0.999 * least_ns(each)


@pytest.mark.parametrize(
    "sweep",
    [
        [product(size, size, size) for size in (128, 512, 2048, 8192)],
        [product(size, size, size, "tf32") for size in (128, 512, 2048, 8192)],
        [convolution(images, 64, 64, 56) for images in (1, 8, 64, 512)],
        [call("aten::relu.default", [(size,)], (size,)) for size in (1 << 10, 1 << 20, 1 << 24, 1 << 28)],
        [call("aten::_softmax.default", [(rows, 1024)], (rows, 1024), -1, False) for rows in (16, 4096, 1 << 18)],
    ],
)
def test_more_of_the_same_takes_longer(model: OperatorModel, sweep: list[Trace]) -> None:
    costs = model.costs(sweep, H200)
    assert [cost.cold for cost in costs] == sorted(cost.cold for cost in costs)
    assert all(cost.warm <= cost.cold for cost in costs)
    assert not any(cost.doubt for cost in costs)


def test_an_operator_that_was_never_measured_is_named_and_wide(model: OperatorModel) -> None:
    known, unknown = model.costs(
        [call(f"aten::{name}.default", [(1 << 20,)], (1 << 20,)) for name in ("relu", "digamma")], H200
    )
    assert "digamma" in unknown.doubt
    assert unknown.deviation > 4 * known.deviation
    assert unknown.deviation > 0.5


def test_sizes_far_from_all_that_were_measured_are_named_and_wide(model: OperatorModel) -> None:
    near, far = model.costs([call("aten::relu.default", [(size,)], (size,)) for size in (1 << 24, 1 << 36)], H200)
    assert not near.doubt
    assert "relu" in far.doubt
    assert far.deviation > 3 * near.deviation


def test_slower_memory_makes_moving_slower(model: OperatorModel) -> None:
    move = [call("aten::relu.default", [(1 << 26,)], (1 << 26,))]
    slow = hardware.find("l4")
    (here,), (there,) = model.costs(move, H200), model.costs(move, slow)
    assert there.cold - here.cold == pytest.approx(math.log2(4800 / 300), abs=0.5)


def test_a_call_that_was_learned_from_takes_what_was_measured_and_only_on_that_gpu(
    model: OperatorModel, timed: list[TimedCall]
) -> None:
    seen = next(each for each in timed if each.split == "train")
    held = next(each for each in timed if each.split == "test_problem")
    here, unseen = model.costs([seen.call, held.call], H200)
    assert here.cold == pytest.approx(math.log2(seen.cold_ns), abs=1e-3)
    assert here.deviation < 0.1
    assert unseen.cold != pytest.approx(math.log2(held.cold_ns), abs=1e-3)
    (there,) = model.costs([seen.call], hardware.find("h100"))
    assert there.deviation > here.deviation


CORRELATED: Any = SimpleNamespace(shared=0.25, alike=0.5)


def step(number: int, ns: float, deviation: float, operator: str, same: str = "") -> StepTime:
    return StepTime(number, operator, math.log2(ns), deviation, 0.0, "", same or str(number), operator)


def test_a_module_of_one_step_is_as_sure_as_the_step() -> None:
    time = combined([step(0, 1e9, 0.5, "mm")], CORRELATED)
    assert time.log2_ns == pytest.approx(math.log2(1e9), abs=1e-4)
    assert time.deviation == pytest.approx(0.5, abs=1e-4)
    assert time.shares == {"mm": 1.0}


def test_the_sum_of_steps_that_are_known_exactly_is_known_exactly() -> None:
    time = combined([step(0, 1e6, 0.0, "mm"), step(1, 3e6, 0.0, "add")], CORRELATED, waited_ns=5e5)
    assert time.ns == pytest.approx(4.5e6 + mt._EVENT_NS)
    assert time.deviation == 0


def test_errors_add_up_by_how_they_hang_together() -> None:
    """With small deviations, a sum of equal parts has the variance of a mean of correlated numbers."""
    small = 0.01
    repeated = combined([step(at, 1e9, small, "mm", "same") for at in range(4)], CORRELATED)
    alike = combined([step(at, 1e9, small, "mm") for at in range(4)], CORRELATED)
    different = combined([step(at, 1e9, small, f"op{at}") for at in range(4)], CORRELATED)
    assert repeated.deviation == pytest.approx(small, rel=1e-3)
    assert alike.deviation == pytest.approx(small * math.sqrt((1 + 3 * 0.5) / 4), rel=1e-3)
    assert different.deviation == pytest.approx(small * math.sqrt((1 + 3 * 0.25) / 4), rel=1e-3)


def test_the_step_that_dominates_the_uncertainty_comes_first() -> None:
    time = combined([step(0, 1e6, 0.05, "mm"), step(1, 1e6, 1.0, "sort")], CORRELATED)
    assert next(iter(time.shares)) == "sort"
    assert "sort" in time.note()


def test_a_chain_takes_as_long_as_its_steps(model: OperatorModel) -> None:
    one, ten = (module_time(chain(length, 1 << 26), H200, model) for length in (1, 10))
    assert ten.ns == pytest.approx(10 * one.ns, rel=0.05)
    assert ten.gap_ns == 0
    assert ten.deviation == pytest.approx(one.deviation, rel=0.05)  # the same call is off by the same each time


def test_what_was_just_written_is_read_from_the_cache(model: OperatorModel) -> None:
    first, second = module_time(chain(2, 1 << 21), H200, model).steps
    assert second.ns < first.ns


def test_short_steps_wait_for_a_host_that_is_not_ahead(model: OperatorModel) -> None:
    trace = chain(20, 1024)
    held, free = (module_time(trace, H200, model, lead_ns=lead) for lead in (mt.LEAD_NS, 0.0))
    assert held.gap_ns == 0
    assert free.ns > 2 * held.ns
    host = sum(each.host_ns for each in free.steps)
    assert free.ns == pytest.approx(host, rel=0.2)


def test_a_graph_keeps_the_gpu_from_waiting_for_the_host(model: OperatorModel) -> None:
    recurrent = step(0, 40e6, 0.1, "_cudnn_rnn")
    assert mt._in_graph(recurrent).ns == pytest.approx(10e6)
    assert mt._in_graph(recurrent).deviation > 0.1
    for other in (step(0, 40e6, 0.1, "mm"), step(0, 1e5, 0.1, "_cudnn_rnn")):
        assert mt._in_graph(other) == other
    trace = chain(3, 1 << 20)
    assert module_time(replace(trace, notes=(GRAPHED,)), H200, model) == module_time(trace, H200, model)


def test_a_kernel_of_which_nothing_is_known_is_named(model: OperatorModel) -> None:
    trace = chain(1, 1 << 24)
    launch = Step("cuda", "my_kernel", launch=Launch(0, (1, 1, 1), (128, 1, 1), 0, ()), bytes=1 << 28)
    trace = replace(trace, steps=(*trace.steps, launch))
    time = module_time(trace, H200, model)
    assert any("my_kernel" in doubt for doubt in time.doubts)
    assert next(iter(time.shares)) == "my_kernel"
    told = module_time(trace, H200, model, launches={1: (17.0, 0.1)})
    assert not told.doubts
    assert told.deviation < time.deviation


def test_what_the_host_computes_is_slow_and_in_doubt(model: OperatorModel) -> None:
    on_gpu = chain(2, 1 << 24)
    on_host = replace(on_gpu, tensors=tuple(replace(tensor, device="cpu") for tensor in on_gpu.tensors))
    fast, slow = (module_time(trace, H200, model) for trace in (on_gpu, on_host))
    assert slow.ns > 5 * fast.ns
    assert slow.deviation > 1
    assert "the host computes" in slow.note()
    assert "the host" not in module_time(replace(on_host, steps=()), H200, model).note()


def test_a_kernel_is_priced_by_what_the_compiler_says_of_it() -> None:
    """Of two kernels that move the same bytes, the one whose warps do more is slower. An unknown one is left out."""
    few = {"instructions": 100.0, "lanes": 3200.0, "global_load": 4.0, "load_sectors": 16.0, "store_sectors": 16.0}
    one = LaunchReport(
        "f", (1 << 14, 1, 1), (256, 1, 1), 1, 32, 0, 0, 0, 1024, 1.0, "warps", 8, 15.5, 1,
        {"integer": 40}, {"integer": 8}, {}, few,
    )  # fmt: skip
    much = replace(one, name="g", executed={**few, "instructions": 100_000.0, "lanes": 3_200_000.0, "fp32": 90_000.0})
    steps = tuple(
        Step("cuda", name, launch=Launch(0, one.grid, one.block, 0, ()), bytes=1 << 27, flops=2.0**25) for name in "fgh"
    )
    report = StaticReport("h200", "sm_90a", "ok", "a compiler", (one, much), trace=Trace((), (), (), steps, None))
    found = launch_times(report, H200, Model.load(installed(), "compiled"))
    assert set(found) == {0, 1}
    assert found[1].log2_ns > found[0].log2_ns + 1
    assert found[0].log2_ns > math.log2(1e9 * (1 << 27) / 4.8e12) - 1
    assert all(0 < time.deviation < 3 for time in found.values())
    assert found[0].by(NO_CORRECTION) == (found[0].log2_ns, found[0].deviation)
    thinner = Correction(0.25, dict.fromkeys(MARKS, 0.0) | {"thin": -2.0})
    assert found[0].by(thinner)[0] == pytest.approx(found[0].log2_ns + 0.25)  # it is not thin
    assert replace(found[0], marks=found[0].marks | {"thin": 0.5}).by(thinner)[0] == found[0].log2_ns - 0.75
    assert found[0].by(replace(thinner, bias=9.0))[0] == found[0].log2_ns + 1.5
    early = replace(one, executed={**few, "skippable": 90.0})
    skipped = launch_times(replace(report, launches=(early, much)), H200, Model.load(installed(), "compiled"))
    assert skipped[0].log2_ns < found[0].log2_ns - 0.5, "values in memory may make it shorter"
    assert skipped[0].deviation > found[0].deviation
    assert skipped[1] == found[1]


def test_training_twice_gives_the_same_files(timed: list[TimedCall], tmp_path: Path) -> None:
    for name in ("one", "two"):
        operator_training.train(timed, tmp_path / name, lambda _: None, trees=5)
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert OperatorModel.load(tmp_path / "one").costs([product(64, 64, 64)], H200)


def test_nothing_of_the_test_split_is_learned_from(timed: list[TimedCall], tmp_path: Path) -> None:
    without = [each for each in timed if each.split != "test_problem"]
    assert len(without) < len(timed)
    for name, some in (("all", timed), ("without", without)):
        operator_training.train(some, tmp_path / name, lambda _: None, trees=3)
    assert (tmp_path / "all/operators.json").read_text() == (tmp_path / "without/operators.json").read_text()


def test_a_model_that_was_cut_short_is_not_used(timed: list[TimedCall], tmp_path: Path) -> None:
    operator_training.train(timed[:300], tmp_path, lambda _: None, trees=3)
    file = tmp_path / "other_time.txt"
    file.write_text(file.read_text()[:-100])
    with pytest.raises(PresageError, match="cannot be read"):
        OperatorModel.load(tmp_path)
    file.unlink()
    with pytest.raises(PresageError, match="presage train operators"):
        OperatorModel.load(tmp_path)


def test_another_parquet_file_is_no_recording_of_operators() -> None:
    from presage.devices import recorded

    with pytest.raises(PresageError, match="no recording of operators"):
        operator_recording.read(recorded.find("cpu").path)
    with pytest.raises(PresageError, match="there is no recording of operators"):
        operator_recording.read(Path("missing.parquet"))
