"""`presage forecast` as it is typed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from presage import Interval, Kernel, StaticReport, Status
from presage.cli import main
from presage.devices import recording
from presage.devices import registry as devices
from presage.devices.recording import RecordedCase, Row
from presage.forecasters import from_names
from presage.problems import registry

Forecast = Callable[..., tuple[int, str, str]]
SOFTMAX = registry.get("softmax")


def report(status: str, error: str | None = None) -> StaticReport:
    return StaticReport("h200", "sm_90a", status, "none", error=error)


def row(kernel: Kernel, S: float | None, told: StaticReport) -> Row:
    seed = registry.find_kernel(SOFTMAX, "naive.cu").hash
    return Row(
        problem="softmax",
        room=SOFTMAX.room,
        split="train",
        family=Path(kernel.name).name.split("@")[0],
        language=kernel.language,
        hash=kernel.hash,
        source=kernel.source,
        values=kernel.values,
        status=Status.OK if S else Status.COMPILE_ERROR,
        reason="" if S else "it does not compile",
        cases=tuple(RecordedCase(case.name, 1.0, (1e8 / S,) * 9) for case in SOFTMAX.timed["gpu"]) if S else (),
        anchor=seed,
        speedup=Interval(S, S, S) if S else None,
        reports=(told,) * len(SOFTMAX.timed["gpu"]),
    )


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("made") / "made.parquet"
    family = next(k for k in registry.seed_kernels(SOFTMAX, "cuda") if k.name.endswith("block_row.cu"))
    kernels = [family.render(values) for values in family.configurations()]
    rows = [row(registry.find_kernel(SOFTMAX, "naive.cu"), 1.0, report("ok"))]
    rows += [row(kernel, 2.5 + n / 100, report("ok")) for n, kernel in enumerate(kernels[1:])]
    rows.append(row(kernels[0], None, report("compile_error", "k.cu(3): error: no such thing\nmore")))
    rows += [replace(each, problem="another", reports=()) for each in rows]
    recording.write(path, rows, {"name": "made", "kind": "gpu", "hardware": "h200"})
    return f"recorded:{path}"


@pytest.fixture
def forecast(device: str, capsys: pytest.CaptureFixture[str]) -> Forecast:
    """forecast(*arguments): exit status, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main.main(
            [
                "forecast",
                "softmax",
                *arguments,
                *(() if "--target" in arguments or "--device" in arguments else ("--target", device)),
            ]
        )
        return status, *capsys.readouterr()

    return run


def test_the_distribution_is_drawn_and_a_sentence_says_what_to_do(forecast: Forecast) -> None:
    status, output, _ = forecast("block_row.cu@THREADS=512", "--forecaster", "nearest")
    assert status == 0
    assert "against naive.cu, on recorded:" in output
    assert "faster than the anchor" in output
    assert "2 < S <= 4           100% ####" in output
    assert "Trust: confidence 0." in output


def test_one_that_knows_nothing_says_measure(forecast: Forecast) -> None:
    _, output, _ = forecast("block_row.cu@THREADS=512", "--forecaster", "uniform")
    assert "Measure: confidence 0.50 is not above 0.80." in output


def test_json(forecast: Forecast, device: str) -> None:
    status, output, _ = forecast("block_row.cu@THREADS=512", "--forecaster", "roofline", "--json")
    document = json.loads(output)
    assert status == 0
    assert document["problem"] == "softmax"
    assert document["target"] == device
    assert document["anchor"]["name"].endswith("naive.cu")
    (told,) = document["forecasts"]
    assert "block_row.cu@THREADS=512" in told["kernel"]["name"]
    found = told["forecast"]
    assert found["speedup"]["low"] < found["speedup"]["value"] < found["speedup"]["high"]
    assert sum(each["probability"] for each in found["bins"]) == pytest.approx(1)
    assert told["decision"]["action"] == "measure"
    assert any("the hardware allows at most" in note for note in told["notes"])


def highest(document: dict[str, Any]) -> float:
    (told,) = document["forecasts"]
    return float(told["forecast"]["speedup"]["high"])


def test_another_anchor(forecast: Forecast) -> None:
    slow, fast = (
        json.loads(forecast("block_row.cu@THREADS=512", "--forecaster", "roofline", "--json", "--anchor", anchor)[1])
        for anchor in ("naive.cu", "block_row.cu@THREADS=512")
    )
    ratio = highest(slow) / highest(fast)
    assert ratio > 2, "a quicker anchor leaves less room"


@pytest.mark.parametrize("forecaster", ["uniform", "roofline"])
def test_the_anchor_against_itself_is_even(forecast: Forecast, forecaster: str) -> None:
    kernel = "rows.c@THREADS=2"
    arguments = (kernel, "--anchor", kernel, "--target", "cpu", "--forecaster", forecaster)
    (told,) = json.loads(forecast(*arguments, "--json")[1])["forecasts"]
    assert told["forecast"]["speedup"]["low"] == pytest.approx(1, abs=1e-5)
    assert told["forecast"]["speedup"]["high"] == pytest.approx(1, abs=1e-5)
    assert "it is the anchor" in told["notes"]
    assert "1x (1 to 1, 90 %)" in forecast(*arguments)[1]


def test_a_kernel_that_does_not_compile_is_not_forecast_but_said_to_fail(forecast: Forecast) -> None:
    status, output, _ = forecast("block_row.cu", "--forecaster", "nearest")
    assert status == 0
    assert output.endswith("Will fail: it does not compile: k.cu(3): error: no such thing.\n")
    assert "confidence" not in output
    (told,) = json.loads(forecast("block_row.cu", "--forecaster", "nearest", "--json")[1])["forecasts"]
    assert told["forecast"] is None
    assert told["decision"] == {"action": "broken", "reason": "it does not compile: k.cu(3): error: no such thing"}


def test_a_kernel_that_cannot_work_is_an_exit_status_for_scripts(forecast: Forecast) -> None:
    assert forecast("block_row.cu", "--forecaster", "nearest", "--fail")[0] == 1
    assert forecast("block_row.cu@THREADS=512", "--forecaster", "nearest", "--fail")[0] == 0


def test_a_device_stands_for_its_hardware(forecast: Forecast, device: str) -> None:
    one, other = (
        forecast("block_row.cu@THREADS=512", "--forecaster", "uniform", *how)[1]
        for how in (("--target", device), ("--device", device))
    )
    assert one == other
    if not devices.has_gpu():
        status, _, errors = forecast("block_row.cu", "--device", "cuda", "--forecaster", "uniform")
        assert (status, errors.count("\n")) == (2, 1), "one line says that there is no GPU"


# -- several at once --------------------------------------------------------------------------------------------------

SEVERAL = ("block_row.cu@THREADS=1024", "block_row.cu", "block_row.cu@THREADS=512")


def test_several_kernels_are_ranked_the_broken_ones_last_with_the_reason(forecast: Forecast) -> None:
    status, output, _ = forecast(*SEVERAL, "--forecaster", "nearest")
    assert status == 0
    heading, _, _, first, second, last, *notes = output.splitlines()
    assert heading.startswith("softmax: 3 kernels against naive.cu, on recorded:")
    assert ("THREADS=1024" in first, "THREADS=512" in second) == (True, True), "as recorded"
    assert last.split()[-2:] == ["100%", "broken"]
    assert notes[-1].endswith("will fail: it does not compile: k.cu(3): error: no such thing")


def test_an_error_in_a_header_concerns_one_of_several_kernels_alone(forecast: Forecast, tmp_path: Path) -> None:
    file = tmp_path / "bad.cu"
    file.write_text("// presage: entry f\n// presage: grid n / 256\n")
    status, output, _ = forecast(SEVERAL[0], str(file), SEVERAL[2], "--forecaster", "nearest", "--json")
    first, bad, last = json.loads(output)["forecasts"]
    assert (status, bad["forecast"], bad["decision"]["action"]) == (0, None, "broken")
    assert bad["decision"]["reason"].startswith(f"{file}:2: 'n / 256' uses something that is not allowed")
    assert None not in (first["forecast"], last["forecast"])
    assert forecast(str(file), "--forecaster", "nearest")[0] == 2


def test_json_of_several_kernels_is_in_the_order_asked(forecast: Forecast) -> None:
    document = json.loads(forecast(*SEVERAL, "--forecaster", "nearest", "--json")[1])
    slow, broken, fast = document["forecasts"]
    assert [each["kernel"]["values"]["THREADS"] for each in document["forecasts"]] == [1024, 256, 512]
    assert slow["mean"] == slow["forecast"]["mean_log2"]
    assert fast["p_fail"] == fast["forecast"]["p_fail"]
    levels = list(slow["quantiles"].values())
    assert levels == sorted(levels)
    assert list(slow["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert (broken["mean"], broken["quantiles"], broken["p_fail"]) == (None, None, 1.0)


def test_all_configurations_of_a_file(forecast: Forecast) -> None:
    document = json.loads(forecast("block_row.cu@THREADS=512", "--all", "--forecaster", "uniform", "--json")[1])
    values = [each["kernel"]["values"] for each in document["forecasts"]]
    assert len(values) == 9
    assert {each["THREADS"] for each in values} == {512}


def test_a_note_names_few_kernels_and_counts_the_others(forecast: Forecast) -> None:
    _, output, _ = forecast("block_row.cu", "--all", "--forecaster", "roofline")
    (line,) = (line for line in output.splitlines() if "the hardware allows at most" in line)
    assert re.match(r"block_row[^ ]+, block_row[^ ]+, block_row[^ ]+, and \d+ others: ", line)


def test_a_list_of_kernels_on_stdin(forecast: Forecast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SEVERAL[0]}\n\n  {SEVERAL[2]}\n"))
    document = json.loads(forecast("-", "naive.cu", "--forecaster", "uniform", "--json")[1])
    names = [Path(each["kernel"]["name"]).name.partition(",")[0] for each in document["forecasts"]]
    assert names == [SEVERAL[0], SEVERAL[2], "naive.cu"]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "the list on stdin is empty" in forecast("-")[2]


def test_a_policy_says_which_are_worth_a_gpu(forecast: Forecast) -> None:
    arguments = (*SEVERAL, "--forecaster", "nearest", "--policy", "topk:k=1", "--json")
    told = json.loads(forecast(*arguments)[1])["forecasts"]
    assert [each["decision"]["action"] for each in told] == ["measure", "broken", "trust"]


def test_twenty_candidates_cost_one_start(forecast: Forecast, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(from_names.static, "reports", lambda problem, kernels, *_: asked.append(len(kernels)) or [])
    with pytest.raises(ValueError, match="zip"):  # there are no reports
        forecast("block_row.cu", "--all", "--target", "rtx4090", "--forecaster", "uniform")
    assert asked == [37], "all configurations and the anchor, together"


def test_a_kernel_that_lacks_a_parameter_is_expected_to_fail_with_the_reason(
    forecast: Forecast, tmp_path: Path
) -> None:
    file = tmp_path / "short.c"
    file.write_text("// presage: entry f\nvoid f(const float *x, float *y, int rows) { y[0] = x[0]; }\n")
    _, output, _ = forecast(str(file), "--target", "cpu", "--forecaster", "uniform")
    assert "fails                   95%" in output
    assert "Trust: confidence 0.95 that it fails is above 0.80." in output
    assert "Note: it does not take cols: it is called as void f(const float *x, float *y, int rows, int cols)" in output


def test_without_the_anchor_s_time_it_says_so(forecast: Forecast) -> None:
    status, output, _ = forecast("rows.c", "--target", "cpu", "--forecaster", "roofline")
    assert status == 0
    assert "Measure: there is no forecast" in output
    assert "the anchor's time is not known: there is no recording of this device" in output
    assert "against naive.c" in output


def test_a_missing_file_is_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["forecast", "nosuch.cu"]) == 2
    assert capsys.readouterr().err == "presage: there is no file nosuch.cu\n"


@pytest.mark.parametrize(("kernels", "target"), [(["rows.c"], "cpu"), (["naive.cu"], "h200")])
def test_the_default_target_is_that_of_the_language(
    capsys: pytest.CaptureFixture[str], kernels: list[str], target: str
) -> None:
    assert main.main(["forecast", "softmax", *kernels, "--forecaster", "uniform", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == target


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rows.c", "naive.cu"), "rows.c is a C kernel, which runs on a CPU, but the target h200 is a GPU"),
        (("rows.c", "--target", "h200"), "forecast C kernels in a call of their own, with the target cpu"),
        (("rows.c", "naive.cu", "--target", "cpu"), "naive.cu runs on a GPU, but the target cpu is a CPU"),
    ],
)
def test_kernels_for_another_kind_of_device_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert main.main(["forecast", "softmax", *arguments, "--forecaster", "uniform"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("block_row.cu", "--forecaster", "oracle"), "there is no forecaster 'oracle'"),
        (("nothing.cu", "--forecaster", "uniform"), "there is no kernel file nothing.cu"),
        (("rows.c", "--target", "h2000", "--forecaster", "uniform"), "there is no target 'h2000'; did you mean"),
        (("rows.c", "--target", "cpu", "--forecaster", "prior"), "prior learns from a recording"),
    ],
)
def test_mistakes_are_explained(forecast: Forecast, arguments: tuple[str, ...], said: str) -> None:
    status, output, errors = forecast(*arguments)
    assert (status, output) == (2, "")
    assert said in errors
