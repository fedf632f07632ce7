"""What every command prints with --json has the documented shape, and so has what it prints when it fails."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from presage.cli import documents
from presage.cli.main import COMMANDS, main
from presage.corpus.importing import import_tuning

SHAPES: dict[str, Any] = json.loads(documents.SCHEMA.read_text())["$defs"]
TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip
KNOWN = {
    "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items", "properties", "required", "type",
}  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]


def wrong(value: Any, shape: dict[str, Any], at: str = "") -> str:
    """Where a value does not have a shape; empty if it does. Knows the words of JSON Schema that we use."""
    assert set(shape) <= KNOWN, f"{at}: the shape uses a word that this check does not know"
    if "$ref" in shape:
        return wrong(value, SHAPES[shape["$ref"].removeprefix("#/$defs/")], at)
    if "anyOf" in shape:
        found = [wrong(value, each, at) for each in shape["anyOf"]]
        return "" if "" in found else found[0]
    if "const" in shape or "enum" in shape:
        allowed = [shape["const"]] if "const" in shape else shape["enum"]
        return "" if value in allowed else f"{at} is {value!r}, not one of {allowed}"
    kinds = [shape["type"]] if isinstance(shape.get("type"), str) else shape.get("type", list(TYPES))
    if not any(isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds):
        return f"{at} is {value!r}, not of type {kinds}"
    if isinstance(value, list) and "items" in shape:
        return next((said for each in value if (said := wrong(each, shape["items"], f"{at}[]"))), "")
    return wrong_fields(value, shape, at) if isinstance(value, dict) else ""


def wrong_fields(value: dict[str, Any], shape: dict[str, Any], at: str) -> str:
    fields, others = shape.get("properties", {}), shape.get("additionalProperties", True)
    if missing := [name for name in shape.get("required", ()) if name not in value]:
        return f"{at} lacks {missing}"
    for name, part in value.items():
        if name not in fields and others is False:
            return f"{at}.{name} is not documented"
        inner = fields.get(name, others)
        if isinstance(inner, dict) and (said := wrong(part, inner, f"{at}.{name}")):
            return said
    return ""


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """printed(*arguments): the exit status and the document, whose shape has been checked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*arguments: str) -> tuple[int, Any]:
        status = main([*arguments, "--json"])
        said = capsys.readouterr()
        document = json.loads(said.out)
        name = document["schema"]
        assert name in SHAPES, name
        assert wrong(document, SHAPES[name]) == ""
        assert (name == "error/1") == (status == 2)
        if status == 2:
            assert document["error"]["message"] in said.err
        return status, document

    return run


@pytest.fixture
def recording(tmp_path: Path, tuning_cache: dict[str, Any]) -> str:
    (tmp_path / "cache.json").write_text(json.dumps(tuning_cache))
    import_tuning(tmp_path / "cache.json", tmp_path / "gpu.parquet")
    return "gpu.parquet"


def test_the_check_finds_what_is_wrong() -> None:
    shape = SHAPES["report/1"]
    good = {"schema": "report/1", "run": "a", "report": "b"}
    assert wrong(good, shape) == ""
    assert wrong({**good, "run": 3}, shape) == ".run is 3, not of type ['string']"
    assert wrong({**good, "more": 3}, shape) == ".more is not documented"
    assert wrong({"schema": "report/1"}, shape) == " lacks ['run', 'report']"
    assert "not one of" in wrong({**good, "schema": "runs/1"}, shape)


def test_every_command_has_a_shape() -> None:
    named = {name.split("/")[0].split(".")[0] for name in SHAPES if "/" in name} - {"error"}
    assert named == set(COMMANDS) - {"completion", "mcp"}


def test_the_page_of_the_docs_is_written_from_the_shapes() -> None:
    page = ROOT / "docs" / "reference" / "json.md"
    assert page.read_text() == documents.reference(), "run: python -m presage.cli.documents > docs/reference/json.md"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("measure",), "usage"), (("nonsense",), "usage"), (("runs", "--nonsense"), "usage"), (("corpus",), "usage"),
        (("problems", "zzz"), "input"), (("search", "zzz", "--device", "cpu"), "input"),
        (("report", "x" * 300), "file"),
    ],
)  # fmt: skip
def test_an_error_is_a_document_too(printed: Any, arguments: tuple[str, ...], kind: str) -> None:
    status, document = printed(*arguments)
    assert (status, document["error"]["kind"]) == (2, kind)


def test_problems_devices_plugins_and_config(printed: Any, tmp_path: Path, doubling: str) -> None:
    assert len(printed("problems")[1]["problems"]) > 17
    (softmax,) = printed("problems", "softmax")[1]["problems"]
    assert softmax["timed"]["cpu"][0]["dims"] == {"rows": 1024, "cols": 1024}
    (tmp_path / "task.py").write_text(doubling)
    (elsewhere,) = printed("problems", "task.py")[1]["problems"]
    assert [case["case"] for case in elsewhere["timed"]["gpu"]] == ["as written"]
    devices = {device["name"]: device for device in printed("devices")[1]["devices"]}
    assert devices.keys() >= {"cpu", "cuda"}
    assert devices["cpu"]["available"]
    assert devices["cpu"]["facts"]["threads"] >= 1
    assert {"kind": "policy", "name": "topk"}.items() <= next(
        plugin.items() for plugin in printed("plugins", "policies")[1]["plugins"] if plugin["name"] == "topk"
    )
    (tmp_path / "presage.toml").write_text("[search]\nbudget = 3\n")
    assert printed("config")[1]["settings"] == [
        {"command": "search", "option": "budget", "value": 3, "file": "presage.toml"}
    ]


def test_corpus(printed: Any, recording: str) -> None:
    assert printed("corpus", "import", "cache.json", "-o", "again.parquet")[1]["problem"] == "add"
    assert printed("corpus", "ls", recording)[1]["problems"][0]["problem"] == "add"
    kernels = printed("corpus", "ls", recording, "--problem", "add")[1]["kernels"]
    assert kernels[0]["kernel"]["values"] == {"block": 64}
    assert "#define block 64" in printed("corpus", "show", "add", "add@block=64", recording)[1]["source"]
    assert printed("corpus", "check", recording)[1]["problems"] == []
    assert printed("corpus", "fastp", recording)[1]["problems"] == 1
    assert printed("corpus", "export", recording, "--to", "kernel-tuner", "-o", "c.json")[1]["splits"]["kernels"] > 1
    assert printed("corpus", "export", recording, "-o", "out")[1]["splits"]


def test_measurements_have_one_shape_for_one_kernel_and_for_several(printed: Any, recording: str) -> None:
    device = ("--device", f"recorded:{recording}")
    _, one = printed("measure", "add", "add@block=64", *device)
    status, two = printed("measure", "add", "add@block=64", "add@block=96", *device)
    assert status == 0, "a kernel that fails is a result"
    assert set(one) == set(two)
    assert [len(each["measurements"]) for each in (one, two)] == [1, 2]
    assert one["measurements"][0]["kernel"]["values"] == {"block": 64}
    assert two["measurements"][1]["status"] == "runtime_error"
    assert printed("measure", "add", "add@block=64", "add@block=96", *device, "--fail")[0] == 1
    assert printed("measure", "add", "add@block=64", *device, "--fail")[0] == 0


def test_search_runs_and_report(printed: Any, recording: str) -> None:
    _, found = printed("search", "add", "--device", f"recorded:{recording}", "--forecaster", "none", "--run", "here")
    assert found["best"]["kernel"]["name"] == "add@block=64"
    assert found["best"]["kernel"]["values"] == {"block": 64}
    assert found["best"]["speedup"]["value"] == pytest.approx(2, rel=0.1)
    assert printed("runs", os.curdir)[1]["runs"][0]["state"] == "finished"
    assert printed("report", "here")[1]["report"].endswith("report.html")


def test_a_forecast_has_the_edges_of_its_bins(printed: Any) -> None:
    _, document = printed("forecast", "softmax", "block_row.cu", "--forecaster", "uniform", "--target", "recorded:h200")
    (found,) = document["forecasts"]
    bins = found["forecast"]["bins"]
    assert [each["up_to"] for each in bins[:-1]] == [each["above"] for each in bins[1:]]
    assert (bins[0]["above"], bins[-1]["up_to"]) == (None, None)
    assert sum(each["probability"] for each in bins) == pytest.approx(1)
    assert found["kernel"]["values"]["THREADS"] == 256


def test_inspect(printed: Any, tmp_path: Path) -> None:
    status, document = printed("inspect", "softmax", "block_row.cu", "--case", "1")
    if status == 2:
        pytest.skip(document["error"]["message"])
    assert document["launches"][0]["registers"] > 0
    bad = '// presage: entry softmax\nextern "C" __global__ void softmax() { nonsense; }\n'
    (tmp_path / "bad.cu").write_text(bad)
    assert printed("inspect", "softmax", "bad.cu", "--case", "1")[0] == 0
    assert printed("inspect", "softmax", "bad.cu", "--case", "1", "--fail")[0] == 1
