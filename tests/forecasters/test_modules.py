"""What `learned` says of modules for problems from elsewhere: what the steps of their traces take, and how unsure that
is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from presage import Candidate, Measured, PresageError, StaticReport, Task
from presage.devices.rehearsal import Rehearsal
from presage.forecasters import faults, modules
from presage.forecasters.learned import LearnedForecaster
from presage.forecasters.module_time import ModuleTime, module_time
from presage.forecasters.operator_model import OperatorModel
from presage.kernels.kernel import from_source
from presage.problems import registry, static
from presage.static import hardware
from presage.static.trace import COMPILED, KEPT, NO_TENSOR, Step, TensorSpec, Trace

FILE = "def reference(x):\n    return x\n\n\ndef inputs():\n    return x\n"
MB = 1 << 20


def traced(steps: int) -> tuple[StaticReport, ...]:
    """A module that reads and writes a large tensor so many times."""
    made = tuple(
        Step(
            "operator",
            "aten::relu.default",
            arguments=({"tensor": at},),
            results={"tensor": at + 1},
            bytes=2 * 256 * MB,
            flops=64 * MB,
        )
        for at in range(steps)
    )
    tensors = (TensorSpec((64 * MB,), "float32"),) * (steps + 1)
    trace = Trace(tensors, (0,), (), made, {"tensor": steps})
    return (StaticReport("h200", "sm_90a", "ok", "none", trace=trace),)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "mine.py").write_text(FILE)
    problem = registry.get(str(tmp_path / "mine.py"))
    anchor = problem.reference_kernel()
    assert anchor is not None
    return Task(problem.informed(traced(2)), Measured(anchor, traced(2), {}, "unknown"), hardware.find("h200"))


def module(number: int, steps: int) -> Candidate:
    return Candidate(from_source(f"import torch\nx = {number}\n", ".py", f"{number}.py"), traced(steps))


def test_a_problem_that_cannot_be_judged_is_refused(task: Task) -> None:
    (report,) = traced(1)
    assert report.trace is not None
    lacking = replace(report.trace, lacks=f"{NO_TENSOR}: a builtins.dict")
    with pytest.raises(PresageError, match=r"reference returns a builtins\.dict; only tensors .*return a tensor"):
        task.problem.informed((replace(report, trace=lacking),))


def test_fewer_bytes_are_faster_and_few_are_far_off(task: Task) -> None:
    one, same = LearnedForecaster().forecast(task, [module(1, 1), module(2, 2)])
    assert one.forecast is not None
    assert same.forecast is not None
    assert (one.forecast.mean(), same.forecast.mean()) == (pytest.approx(1, abs=0.05), pytest.approx(0))
    middle, whole = (one.forecast.quantile(1 - p) - one.forecast.quantile(p) for p in (0.25, 0.025))
    assert whole > 10 * middle
    assert "the sum of its steps" in one.notes[0]
    assert not LearnedForecaster().is_sure(task)


def test_models_are_read_once(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many questions a forecaster is asked."""
    reads, load = [], OperatorModel.load
    monkeypatch.setattr(OperatorModel, "load", lambda: reads.append(1) or load())
    forecaster = LearnedForecaster()
    first, second = (forecaster.forecast(task, [module(1, 1)])[0].forecast for _ in range(2))
    assert first == second
    assert len(reads) == 1


@pytest.mark.parametrize(("notes", "p_fail"), [((), 0.5), ((KEPT,), 0.95)])
def test_a_result_that_depends_on_no_input_is_seldom_right(task: Task, notes: tuple[str, ...], p_fail: float) -> None:
    (report,) = traced(2)
    assert report.trace is not None
    kept = replace(report.trace, steps=(), inputs=(0,), constants=(2,), notes=notes)
    fault = faults.find(task, Candidate(module(1, 1).kernel, (replace(report, trace=kept),)))
    assert fault is not None
    assert fault.p_fail == p_fail


def test_a_step_that_nobody_knows_makes_it_unsure_and_is_named(task: Task) -> None:
    (report,) = traced(2)
    assert report.trace is not None
    known, last = report.trace.steps
    strange = replace(
        report, trace=replace(report.trace, steps=(known, replace(last, name="aten::never_seen.default")))
    )
    usual, odd = LearnedForecaster().forecast(task, [module(1, 2), Candidate(module(2, 2).kernel, (strange,))])
    assert usual.forecast is not None
    assert odd.forecast is not None
    assert odd.forecast.confidence("width") < usual.forecast.confidence("width")
    assert any("never_seen" in note for note in odd.notes)


def test_notes_name_the_cases_where_they_differ(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"{FILE}\ncases = [{{'n': 1}}, {{'n': 2}}]\n".replace("inputs()", "inputs(n)"))
    problem = registry.get(str(tmp_path / "mine.py"))
    anchor = problem.reference_kernel()
    assert anchor is not None

    def noted(*names: str) -> tuple[str, ...]:
        reports = []
        for (report,), name in zip((traced(2), traced(2)), names, strict=True):
            assert report.trace is not None
            steps = tuple(replace(step, name=name) for step in report.trace.steps)
            reports.append(replace(report, trace=replace(report.trace, steps=steps)))
        task = Task(problem.informed(reports), Measured(anchor, reports, {}, "unknown"), hardware.find("h200"))
        (found,) = LearnedForecaster().forecast(task, [Candidate(module(1, 1).kernel, reports)])
        return found.notes[1:]

    assert noted("aten::relu.default", "aten::relu.default") == ("uncertain mostly by relu (100%)",)
    one, other = noted("aten::relu.default", "aten::tanh.default")
    assert one.startswith("n=1: uncertain mostly by relu")
    assert other.startswith("n=2: uncertain mostly by tanh")


def test_a_note_names_no_step_that_hardly_matters() -> None:
    time = ModuleTime(10.0, 0.1, 0.0, (), {"_Z2gnPf": 0.8, "aten::_to_copy.default": 0.196, "mm": 0.004})
    assert time.note() == "uncertain mostly by gn (80%), _to_copy (20%)"


def test_what_torch_compiles_is_one_kernel_and_less_sure(task: Task) -> None:
    reports = [replace(each, trace=replace(each.trace, notes=(COMPILED,))) for each in traced(8) if each.trace]
    compiled = Candidate(module(2, 1).kernel, tuple(reports))
    one, other = LearnedForecaster().forecast(task, [module(1, 1), compiled])
    assert one.forecast is not None
    assert other.forecast is not None
    assert other.forecast.mean() == pytest.approx(one.forecast.mean(), abs=0.1)
    assert other.forecast.confidence("width") < one.forecast.confidence("width")
    assert any("torch compiles" in note for note in other.notes)


def test_a_compiled_function_has_to_be_called() -> None:
    """That takes the host longer than a small operator takes the GPU."""
    (report,) = traced(1)
    assert report.trace is not None
    step = replace(report.trace.steps[0], bytes=8192, flops=1024)
    small = Trace((TensorSpec((1024,), "float32"),) * 2, (0,), (), (step,), {"tensor": 1})
    model, gpu = OperatorModel.load(), hardware.find("h200")
    eager, compiled = (module_time(replace(small, notes=notes), gpu, model) for notes in ((), (COMPILED,)))
    assert compiled.ns > 4 * eager.ns
    assert "takes the host about 96 us, which counts" in compiled.note()
    product = replace(step, name="aten::mv.default")
    several = replace(small, steps=(product,) * 8, notes=(COMPILED,))
    assert module_time(several, gpu, model).ns > 2 * compiled.ns, "each kernel is called"


def test_a_fused_kernel_is_near_its_roofline_whatever_eager_takes() -> None:
    image = TensorSpec((1024, MB), "float32")
    model, gpu, least = OperatorModel.load(), hardware.find("h200"), 2 * image.bytes / 4_800
    for name, is_near in (("never_seen", True), ("cumsum", False)):
        step = Step(
            "operator",
            f"aten::{name}.default",
            arguments=({"tensor": 0}, 1),
            results={"tensor": 1},
            bytes=2 * image.bytes,
            flops=1024 * MB,
        )
        trace = Trace((image, image), (0,), (), (step,), {"tensor": 1}, notes=(COMPILED,))
        assert (module_time(trace, gpu, model).ns < 1.4 * least) is is_near


def test_a_module_that_does_nothing_takes_what_an_empty_measurement_does() -> None:
    nothing = module_time(Trace((), (), (), (), None), hardware.find("h200"), OperatorModel.load())
    assert 1_000 < nothing.ns < 2_000


def test_what_both_modules_do_cancels(task: Task) -> None:
    """They are off by the same where they do the same, so the same module is forecast more surely than another."""
    same, longer = LearnedForecaster().forecast(task, [module(1, 2), module(2, 40)])
    assert same.forecast is not None
    assert longer.forecast is not None
    assert same.forecast.confidence("width") >= longer.forecast.confidence("width")


def test_what_a_search_measures_moves_and_narrows_it(task: Task) -> None:
    times = {"as written": 1e6}
    slow = [Measured(module(n, 1).kernel, traced(1), {"as written": 4e6}) for n in range(8)]
    failed = [Measured(module(n, 1).kernel, traced(1), {}, "wrong_result") for n in range(9, 17)]
    anchored = replace(task, anchor=replace(task.anchor, times_ns=times, status="ok"))
    (before,) = LearnedForecaster().forecast(anchored, [module(99, 1)])
    (after,) = LearnedForecaster().forecast(replace(anchored, neighbours=[*slow, *failed]), [module(99, 1)])
    assert before.forecast is not None
    assert after.forecast is not None
    assert after.forecast.mean() < -1 < before.forecast.mean(), "they are four times as slow as the reference"
    assert after.forecast.p_fail > before.forecast.p_fail
    assert after.forecast.confidence("width") > before.forecast.confidence("width")


def test_a_rehearsal_counts_and_says_less_of_modules_than_of_kernels(task: Task) -> None:
    said = LearnedForecaster().forecast(task, [one := module(1, 1)])[0]
    assert said.forecast is not None
    chances = {}
    for status in ("right", "untried", "wrong"):
        warned = faults.warned(task, replace(one, rehearsal=Rehearsal(status, cases=1)), said)
        assert warned.forecast is not None
        chances[status] = warned.forecast.p_fail
    assert 0.02 < chances["right"] < chances["untried"] < 0.5 < chances["wrong"]


def test_a_module_for_the_catalogue_is_forecast_by_its_trace_where_the_anchor_was_measured() -> None:
    problem = registry.get("vector_add")
    naive, candidate = registry.find_kernel(problem, "naive.cu"), module(1, 1)
    assert static.is_reported(problem, candidate.kernel)
    times = {case.name: 1e6 for case in problem.timed["gpu"]}
    several = replace(candidate, reports=candidate.reports * len(times))
    (measured,), (unknown,) = (
        LearnedForecaster().forecast(Task(problem, Measured(naive, (), known, "ok"), hardware.find("h200")), [several])
        for known in (times, {})
    )
    assert modules.SUM in measured.notes
    assert measured.forecast is not None
    assert 2 ** measured.forecast.quantile(0.5) == pytest.approx(1e6 / (512 * MB / 4.8e12 * 1e9), rel=0.3)
    assert unknown.forecast is not None
    assert "made without a compiler's report: from source and launch alone" in unknown.notes


def test_without_a_trace_there_is_no_forecast_but_the_reason(task: Task) -> None:
    told = StaticReport("h200", "sm_90a", "unknown", "none", error="it asks for a value\nmore\n  at line 3: x.item()")
    kernel = module(1, 1).kernel
    (prediction,) = LearnedForecaster().forecast(task, [Candidate(kernel, (told,))])
    assert prediction.forecast is None
    assert prediction.notes == ("it was not traced: it asks for a value, at line 3: x.item()",)
    on_cpu = replace(task, hardware=None, kind="cpu")
    (prediction,) = LearnedForecaster().forecast(on_cpu, [Candidate(kernel)])
    assert "there is no GPU to trace it for" in prediction.notes[0]


def test_the_reference_s_trace_tells_the_shapes(task: Task) -> None:
    (case,) = task.problem.timed["gpu"]
    shapes = [(task.problem.shape(a, case), task.problem.dtype(a, case)) for a in task.problem.inputs]
    assert shapes == [((64 * MB,), "float32")]
    assert [task.problem.dtype(array, case) for array in task.problem.outputs] == ["float32"]
