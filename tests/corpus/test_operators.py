"""Calls of torch's operators are listed from traces, measured on the CPU, and packed. Runs go on where others ended."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import pyarrow.parquet as pq  # noqa: E402

from presage import PresageError, StaticReport  # noqa: E402
from presage.cli.main import main  # noqa: E402
from presage.corpus import operator_list, operators  # noqa: E402
from presage.corpus.operator_list import Listed  # noqa: E402
from presage.devices import operator_inputs  # noqa: E402
from presage.devices.gpu_observation import Hold  # noqa: E402
from presage.devices.operator_timing import (  # noqa: E402
    LEAST_SAMPLES,
    SAMPLES,
    CpuTimer,
    DeviceLostError,
    GpuTimer,
    OperatorTiming,
)
from presage.problems import splits  # noqa: E402
from presage.static import hardware, operator_calls  # noqa: E402
from presage.static.trace import Step, TensorSpec, Trace  # noqa: E402


def at(number: int) -> dict[str, int]:
    return {"tensor": number}


def call(name: str, inputs: Sequence[TensorSpec], *arguments: Any, out: TensorSpec | None = None) -> Trace:
    """One operator on these tensors, with one result."""
    result = at(len(inputs)) if out else at(0)
    step = Step("operator", f"aten::{name}", arguments, {}, result, bytes=8)
    return next(
        operator_calls.of_trace(
            Trace((*inputs, *([out] if out else [])), tuple(range(len(inputs))), (), (step,), result)
        )
    )


MATRIX = TensorSpec((4, 3), "float32", (3, 1))
INDEX = TensorSpec((50,), "int64", (1,))
CALLS = [
    call(
        "mm.default", [MATRIX, TensorSpec((3, 4), "float32", (1, 3))], at(0), at(1), out=TensorSpec((4, 4), "float32")
    ),
    call("index_select.default", [MATRIX, INDEX], at(0), 1, at(1), out=TensorSpec((4, 50), "float32")),
    call("relu_.default", [MATRIX], at(0)),
    call("no_such_operator.default", [MATRIX], at(0)),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    operator_list.write(tmp_path / "calls.parquet", [Listed(each, {"by hand": None}) for each in CALLS])
    return tmp_path


def rows(folder: Path) -> list[dict[str, Any]]:
    return operator_list.read(folder / "calls.parquet")


def test_the_command_measures_goes_on_and_writes_a_recording(folder: Path, presage_main: Any) -> None:
    done = (
        "corpus",
        "operators",
        "--into",
        str(folder),
        "--device",
        "cpu",
        "-o",
        str(folder / "out.parquet"),
        "--json",
    )
    first, second = presage_main(*done), presage_main(*done)
    assert (first["listed"], first["measured"], second["measured"]) == (4, 4, 0)
    assert second["recording"]["statuses"] == {"ok": 3, "error": 1}
    found = {row["operator"]: row for row in pq.read_table(folder / "out.parquet").to_pylist()}
    product = found["aten::mm.default"]
    assert LEAST_SAMPLES <= len(product["samples_ns"]) <= SAMPLES
    assert product["low_ns"] <= product["median_ns"] <= product["high_ns"]
    assert json.loads(product["tensors"])[1]["stride"] == [1, 3]
    assert json.loads(product["versions"])["torch"] == str(torch.__version__)
    assert "no operator" in found["aten::no_such_operator.default"]["reason"]
    assert operator_list.call_of(product).hash == CALLS[0].hash


@pytest.fixture
def presage_main(capsys: pytest.CaptureFixture[str]) -> Any:

    def run(*arguments: str) -> Any:
        assert main([*arguments]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_indices_lie_in_what_they_point_into() -> None:
    assert operator_inputs.limits(CALLS[1]) == {1: 3}
    _, index = operator_inputs.make(CALLS[1], torch, "cpu", torch.Generator().manual_seed(0))
    assert sorted(set(index.tolist())) == [0, 1, 2]
    several = call("index.Tensor", [MATRIX, INDEX], at(0), {"list": [None, at(1)]}, out=INDEX)
    assert operator_inputs.limits(several) == {1: 3}


def named(trace: Trace, **more: Any) -> Trace:
    return replace(trace, steps=(replace(trace.steps[0], named=more),))


def test_what_divides_a_tensor_divides_it_evenly() -> None:
    def made(trace: Trace) -> Any:
        return operator_inputs.make(trace, torch, "cpu", torch.Generator())[-1].tolist()

    three = TensorSpec((3,), "int64", (1,))
    repeated = call("repeat_interleave.Tensor", [three], at(0), out=TensorSpec((7,), "int64"))
    assert made(named(repeated, output_size=7)) == [2, 2, 3]
    reduced = call("segment_reduce.default", [MATRIX, three], at(0), "sum", at(1), out=TensorSpec((3, 3), "float32"))
    reduced = replace(reduced, steps=(replace(reduced.steps[0], arguments=(at(0), "sum")),))
    assert made(named(reduced, offsets=at(1))) == [0, 2, 4]
    assert sum(made(named(reduced, lengths=at(1)))) == 4


def test_inputs_lie_in_memory_as_the_trace_says() -> None:
    repeated = TensorSpec((4, 3), "float16", (0, 2))
    (made,) = operator_inputs.make(call("relu.default", [repeated], at(0)), torch, "cpu", torch.Generator())
    assert (made.shape, made.stride(), made.dtype) == ((4, 3), (0, 2), torch.float16)


def test_a_recording_is_continued_from_another_list(folder: Path, tmp_path_factory: Any, presage_main: Any) -> None:
    measure = ("corpus", "operators", "--device", "cpu", "--json", "--into")
    first = folder / "first.parquet"
    presage_main(*measure, str(folder), "-o", str(first))
    other = tmp_path_factory.mktemp("other")
    more = call("neg.default", [MATRIX], at(0), out=MATRIX)
    operator_list.write(other / "calls.parquet", [Listed(each, {"by hand": None}) for each in (more, CALLS[0])])
    both = presage_main(*measure, str(other), "-o", str(other / "both.parquet"), "--with", str(first))
    assert both["recording"]["statuses"] == {"ok": 4, "error": 1}
    samples = [
        {row["hash"]: row["samples_ns"] for row in pq.read_table(file).to_pylist()}[CALLS[0].hash]
        for file in (first, other / "both.parquet")
    ]
    assert samples[0] != samples[1]  # what was measured last holds
    assert main([*measure, str(other), "--with", str(first)]) == 2
    assert main([*measure, str(other), "-o", "x.parquet", "--with", str(other / "calls.parquet")]) == 2


def test_what_ended_a_run_twice_is_not_tried_again(folder: Path) -> None:
    class Killed(BaseException):
        pass

    class Killing(CpuTimer):
        def time(self, call: Trace) -> OperatorTiming:
            raise Killed

    for _ in range(operators.MOST_FAULTS):
        with pytest.raises(Killed):
            operators.measure(rows(folder), Killing(), folder, say=str)
    with next(folder.glob("*.jsonl")).open("a") as file:
        file.write('{"kind": "call", "ha')
    assert operators.measure(rows(folder), CpuTimer(), folder, say=str) == 3
    packed = operators.pack(rows(folder), folder, folder / "out.parquet")
    assert packed["statuses"]["device_fault"] == 1
    assert packed["unreadable_lines"] == 1


def test_after_a_fault_of_the_device_the_command_ends_and_the_next_goes_on_behind_it(folder: Path) -> None:
    class Faulty(CpuTimer):
        def time(self, call: Trace) -> OperatorTiming:
            raise DeviceLostError("an illegal address")

    with pytest.raises(PresageError, match="broke the device: an illegal address"):
        operators.measure(rows(folder), Faulty(), folder, say=str)
    assert operators.measure(rows(folder), CpuTimer(), folder, say=str) == 3


def test_a_sample_that_was_queued_too_late_does_not_count() -> None:
    """Where the GPU has to wait for the host, the host's time would be part of the sample."""

    class Gpu:
        def timed(self, run: Any, slot: Any, collect: Any, hold_ns: int) -> tuple[float, int, int]:
            return (9e9 if hold_ns < 60_000 else 5e3), 50_000, 0

    timer = object.__new__(GpuTimer)
    timer._gpu = Gpu()
    assert timer._cold(lambda _: None, Hold()) == [5e3] * SAMPLES


PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x).view(-1).sum()
def get_inputs():
    return [torch.rand(8, 16)]
def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_problems_are_listed_as_written_and_varied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_list, "_of_packages", lambda target: [])
    (tmp_path / "small.py").write_text(PROBLEM)
    found = operator_list.listed([tmp_path], hardware.find("h200"), str)
    maps = [each.call.tensors[0] for each in found if each.call.steps[0].name == "aten::relu.default"]
    assert {(x.shape[0], x.dtype) for x in maps} == {
        (8, "float32"), (4, "float32"), (16, "float32"), (8, "float16"), (8, "bfloat16")
    }  # fmt: skip
    assert {each.call.steps[0].name for each in found} == {"aten::relu.default", "aten::sum.default"}
    (tmp_path / "other.py").write_text("Model = 3")
    with pytest.raises(PresageError, match="does not define get_inputs"):
        operator_list.listed([tmp_path], hardware.find("h200"), str)


MODULE_PROBLEM = """
import torch

def reference(x):
    return torch.relu(x)

def inputs(n):
    return torch.rand(n)

cases = [{"n": 64}]
"""


def test_calls_of_modules_are_listed_without_those_that_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_list, "_of_packages", lambda target: [])
    (tmp_path / "problems" / "mine").mkdir(parents=True)
    (tmp_path / "problems" / "mine.py").write_text(MODULE_PROBLEM)
    body = "import torch\ndef custom_kernel(data):\n    return torch.clamp(data[0], min=0).tanh_()\n"
    (tmp_path / "problems" / "mine" / "one.py").write_text(body)
    command = ["corpus", "operators", "--modules", str(tmp_path / "problems"), "--list", "--into"]
    assert main([*command, str(tmp_path / "first")]) == 0
    rows = operator_list.read(tmp_path / "first" / operator_list.FILE)
    assert {row["operator"] for row in rows} == {f"aten::{name}.default" for name in ("relu", "clamp", "tanh_")}
    assert {splits.of_origins(row["origins"]) for row in rows} == {splits.of_problem("mine")}
    known = tmp_path / "first" / operator_list.FILE
    assert main([*command, str(tmp_path / "second"), "--without", str(known)]) == 0
    assert operator_list.read(tmp_path / "second" / operator_list.FILE) == []
    assert main([*command, str(tmp_path / "third"), "--without", "nowhere.parquet"]) == 2
    assert "nowhere.parquet" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "first")]) == 2
    assert "is a list already" in capsys.readouterr().err
    assert main(["corpus", "operators", "--modules", str(tmp_path / "no"), "--list", "--into", str(tmp_path / "x")]) == 2
    assert "is no folder" in capsys.readouterr().err


def test_without_torch_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    assert main(["corpus", "operators", "--list", "--into", str(tmp_path)]) == 2
    assert "needs torch" in capsys.readouterr().err


def test_a_list_may_run_for_longer_than_a_module_and_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lists:
        names = staticmethod(lambda: ["mine"])
        load = staticmethod(lambda _: str(tmp_path))

    (tmp_path / "long.py").write_text("def ModelNew():\n    pass\n")
    asked: list[dict[str, float]] = []

    def reports(jobs: Sequence[Any], timeout: float, **limits: float) -> list[StaticReport]:
        asked.append(limits)
        return [StaticReport("h200", "sm_90", "timeout", "none", (), "it took too long") for _ in jobs]

    monkeypatch.setattr(operator_list, "OPERATORS", Lists)
    monkeypatch.setattr(operator_list.reporting, "reports", reports)
    said: list[str] = []
    assert operator_list.listed([], hardware.find("h200"), said.append) == []
    assert said == [
        "mine/long cannot be traced: it took too long",
        "1 of 1 modules, 1 cannot be traced: 0 calls",
    ]
    assert asked[0]["host_seconds"] > 60
