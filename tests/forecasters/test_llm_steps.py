"""What questions say about the steps of a module."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Candidate, Kernel, Task, load_recording
from presage.evaluations import outcomes
from presage.forecasters import llm_prompt, llm_question, llm_steps
from presage.llm.anonymise import Unreadable
from presage.static import hardware
from presage.static.trace import COMPILED, GRAPHED, Launch, Step, TensorSpec, Trace

GPU = hardware.find("h200")
BIG, COLUMN = TensorSpec((4096, 4096), "float16"), TensorSpec((64,), "float32")
LAUNCH = Launch(0, (16, 64, 1), (128, 1, 1), 0, ())


def numbered(*numbers: int) -> tuple[dict[str, int], ...]:
    return tuple({"tensor": number} for number in numbers)


def product(**changes) -> Step:
    flops, size = 2.0 * 4096**3, 3 * BIG.bytes
    step = Step("operator", "aten::mm.default", numbered(0, 1), {}, {"tensor": 2}, bytes=size, flops=flops)
    return replace(step, **{"precision": "fp16", **changes})


def relu(number: int = 3) -> Step:
    return Step("operator", "aten::relu_.default", numbered(number), {}, {"tensor": number}, bytes=512)


def traced(*steps: Step, **changes) -> Trace:
    trace = Trace((BIG, BIG, BIG, COLUMN), (0, 1), (3,), steps, {"tensor": 2}, cubin_hashes=("0",))
    return replace(trace, **changes)


@pytest.fixture(scope="module")
def modules() -> tuple[Task, Candidate, Candidate]:
    """A question about a module, one about a module whose source is not recorded, and their task."""
    for pool in outcomes.pools(load_recording("h200_modules"), "validation"):
        question = next(iter(outcomes.questions(pool, 0)))
        shown = [each for each in question.candidates if each.kernel.source and each.reports[0].trace]
        hidden = [each for each in question.candidates if not each.kernel.source and each.reports[0].trace]
        if shown and hidden and question.task.anchor.reports[0].trace:
            return question.task, shown[0], hidden[0]
    raise AssertionError("there is none")


def test_every_step_has_a_line_with_its_least_time() -> None:
    trace = traced(product(), relu(), relu(), Step("view", "aten::t.default", numbered(0)), Step("sync", "item"))
    least = max(3 * BIG.bytes / GPU.bandwidth, 2 * 4096**3 / GPU.peak_flops["fp16"]) * 1e9
    share = (least + 2_000) / (least + 2 * 1e9 * 512 / GPU.bandwidth + 6_000)
    assert llm_steps.describe(trace, GPU, 10) == [
        f"3 steps: 101 MB, least {least / 1e3:.0f} us",
        f"mm fp16 [4096x4096] [4096x4096]: 101 MB, 137 Gflop fp16, least {least / 1e3:.0f} us, {share:.0%}",
        "2x relu_ fp32 [64]: 512 B, 3%",
        "waits for the GPU",
    ]


def test_only_the_costliest_are_kept_in_their_order() -> None:
    cheap = [relu(), Step("operator", "aten::exp.default", numbered(3), bytes=512)]
    _, *lines = llm_steps.describe(traced(*cheap, product()), GPU, 1)
    assert [line.split()[0] for line in lines] == ["mm", "…"]
    assert lines[-1].startswith("… 2 more, ")


def test_launches_and_modes_are_told() -> None:
    trace = traced(
        Step("triton", "as_fast_as_light", launch=LAUNCH, bytes=3_100_000), notes=(GRAPHED, COMPILED, "x is fast")
    )
    assert llm_steps.describe(trace, GPU, 10) == [
        "1 step, compiled, graph: 3.1 MB, least 0.65 us",
        "triton grid 16x64x1 block 128x1x1: 3.1 MB, least 0.65 us, 100%",
    ]
    assert llm_steps.describe(trace, None, 10)[1] == "triton grid 16x64x1 block 128x1x1: 3.1 MB"


def test_inputs_and_outputs_come_from_the_trace() -> None:
    assert llm_steps.arrays(traced()) == "fp16 [4096x4096] [4096x4096] -> fp16 [4096x4096]; weights 256 B"


def test_rules_are_ratios_of_sums() -> None:
    one, two = traced(product()), traced(product(), product())
    found = llm_steps.rules([two], [one], [1e9], GPU)
    whole = llm_steps.total(one, GPU)
    assert found == pytest.approx(
        {"roofline": 1.0, "measured": found["measured"], "launches": 1.0, "bytes": 1.0}, abs=1e-9
    )
    assert 2 ** found["measured"] == pytest.approx(1e9 / (whole.least_ns + 2_000))
    assert llm_steps.rules([two], [one], [None], None) == {"launches": 1.0, "bytes": 1.0}
    assert llm_steps.rules([one], [traced()], [1e9], GPU) == {}


@given(st.text(min_size=1, max_size=20), st.sampled_from(("triton", "cuda", "operator", "copy", "sync")))
def test_no_word_of_an_author_is_shown(word: str, kind: str) -> None:
    def told(name: str) -> list[str]:
        launch = LAUNCH if kind in ("triton", "cuda") else None
        if launch is not None:
            launch = replace(launch, options={"num_warps": name})
        named = {name: {"tensor": 0}}
        step = Step(kind, name, (name, {"tensor": 0}), named, flops=1e12, bytes=8, precision=name, launch=launch)
        return llm_steps.describe(traced(step, notes=(name,), lacks=name), GPU, 10)

    assert told(f"aten::z9{word}.default") == told(f"presage::{word}!") == told("choose_5")


def test_a_module_is_asked_about_with_its_steps(modules: tuple[Task, Candidate, Candidate]) -> None:
    task, shown, _ = modules
    text = llm_question.text(task, shown)
    assert "shapes not known" not in text
    assert len(re.findall(r"^\d+ steps?\b.*: \S+ \w*B", text, re.MULTILINE)) == 2, "the anchor's and the candidate's"
    assert re.search(r"# log2 S and its bin by: roofline [+-]\d+\.\d \d, measured ", text.splitlines()[-1])
    assert "one call does, in order: " in llm_prompt.messages(task, shown)[1]["content"]


def test_a_module_beside_itself_is_as_fast(modules: tuple[Task, Candidate, Candidate]) -> None:
    task, *_ = modules
    last = llm_question.text(task, replace_source(task.anchor, "x = 1\n")).splitlines()[-1]
    assert "roofline +0.0 4" in last
    assert "launches +0.0 4, bytes +0.0 4" in last


def replace_source(candidate: Candidate, source: str) -> Candidate:
    kernel = candidate.kernel
    return Candidate(Kernel(source, kernel.language, kernel.header, kernel.name), candidate.reports)


def test_a_module_without_source_is_asked_about_by_its_reports(modules: tuple[Task, Candidate, Candidate]) -> None:
    task, shown, hidden = modules
    text = llm_question.text(task, hidden)
    assert "): source not shown\n" in text
    assert "<source" not in text
    assert "(its source is not shown)\n" in llm_prompt.messages(task, hidden)[1]["content"]
    with pytest.raises(Unreadable):
        llm_question.text(task, replace_source(shown, "def f(:\n"))
    with pytest.raises(Unreadable):
        llm_question.text(task, Candidate(hidden.kernel))


def test_steps_are_told_of_no_kernel_of_the_catalogue() -> None:
    (pool,) = outcomes.pools(load_recording("h200"), "validation", "gelu")
    question = next(iter(outcomes.questions(pool, 0)))
    candidate = next(each for each in question.candidates if each.reports)
    with_trace = [replace(report, trace=traced(product())) for report in candidate.reports]
    assert llm_question.text(question.task, Candidate(candidate.kernel, with_trace)) == llm_question.text(
        question.task, candidate
    )
