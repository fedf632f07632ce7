"""What shows itself in a notebook: with its answer first, and nothing in it that its makers wrote can act."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import presage
from presage import Forecast, Interval, Kernel, Measurement, Prediction, StaticReport, Status
from presage.devices.base import CaseTiming
from presage.kernels import header as headers

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"


def kernel(text: str = "void f(void) { }") -> Kernel:
    source = f"// presage: entry f\n// {text}\nvoid f(void) {{ }}\n"
    return Kernel(source, "c", headers.parse(source, "f.c"), f"f {HOSTILE}.c")


def measurement(status: Status = Status.OK) -> Measurement:
    if status is not Status.OK:
        return Measurement(f"p {HOSTILE}", kernel(), "cpu", status, HOSTILE, output=HOSTILE)
    case = CaseTiming(f"n=1 {HOSTILE}", (1e6, 1.1e6, 0.9e6) * 4, tuple(range(12)), 1e5, 1)
    return Measurement("p", kernel(), "cpu", status, cases=(case,), speedup=Interval(2.0, 1.9, 2.1))


FORECAST = Forecast.from_quantiles([0.05, 0.5, 0.95], [-1.0, 1.0, 2.0], p_fail=0.1)


def shown(thing: Any) -> str:
    """Its HTML, which is well formed and has nothing that acts."""
    text: str = thing._repr_html_()
    tree = ElementTree.fromstring(f"<div>{text}</div>")
    names = {element.tag for element in tree.iter()}
    assert not names & {"script", "img", "iframe", "a", "form", "object"}
    assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on")]
    return " ".join(piece.strip() for piece in tree.itertext() if piece.strip())


def test_a_forecast() -> None:
    said = shown(FORECAST)
    assert "2x (90 %: 0.5 to 4)" in said
    assert "fails with 10%" in said
    assert "<svg" in FORECAST._repr_html_()


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (Prediction(FORECAST, (HOSTILE,)), ["2x", HOSTILE]),
        (Prediction(None, (), HOSTILE), ["It cannot work", HOSTILE]),
        (Prediction(None), ["There is no forecast"]),
        (measurement(), ["2x (1.9 to 2.1) the anchor's speed", "1 ms", HOSTILE]),
        (replace(measurement(), believed="worker", not_replayed=HOSTILE), ["not replayed", HOSTILE]),
        (measurement(Status.COMPILE_ERROR), ["compile_error", HOSTILE]),
        (kernel(HOSTILE), [HOSTILE]),
        (
            StaticReport("h200", "sm_90a", "compile_error", HOSTILE, error=HOSTILE, notes=(HOSTILE,)),
            [HOSTILE, "sm_90a"],
        ),
    ],
)
def test_each_says_what_it_is(thing: Any, words: list[str]) -> None:
    said = shown(thing)
    assert [word for word in words if word not in said] == []


def test_a_few_samples_have_no_interval() -> None:
    few = replace(measurement(Status.OK).cases[0], samples_ns=(1e6, 2e6), rounds=(0, 1))
    shown = replace(measurement(Status.OK), cases=(few,))._repr_html_()
    assert "<td>1.5 ms</td>" in shown
    assert "inf" not in shown


def test_a_static_report_lists_its_launches(static_report: StaticReport) -> None:
    assert "32" in shown(static_report)
    assert "50% (registers)" in shown(static_report)


def test_a_problem_and_a_run(tmp_path: Path) -> None:
    assert "inputs" in shown(presage.load_problem("softmax"))
    run = presage.search("softmax", device="recorded:cpu", budget=4, run=tmp_path / "run")
    said = shown(run)
    assert "the anchor's speed" in said
    assert "best so far" in said


def test_a_run_that_was_stopped_shows_what_it_has(tmp_path: Path) -> None:
    def stop(event: Any, state: Any) -> None:
        if state.spent.measurements == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        presage.search("softmax", device="recorded:cpu", budget=8, run=tmp_path / "run", watch=stop)
    assert "stopped; the same call goes on" in shown(presage.Run(tmp_path / "run"))
