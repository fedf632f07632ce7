"""`presage inspect`, as a user calls it."""

import json

import pytest

from presage.cli import main
from presage.kernels import toolkit


@pytest.fixture
def inspect(monkeypatch, capsys):
    """inspect(*arguments): exit status, standard output, standard error."""
    monkeypatch.setitem(main.COMMANDS, "inspect", "what compiling tells")

    def run(*arguments):
        status = main.main(["inspect", *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def _compiler():
    try:
        toolkit.nvrtc(), toolkit.includes(), toolkit.program("nvdisasm")
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("_compiler")
def test_table(inspect):
    status, output, _ = inspect("softmax", "block_row.cu@THREADS=512", "--target", "h200")
    assert status == 0
    assert "NVIDIA H200" in output
    assert "16384  512" in output
    assert "rows=1024 cols=32768" in output
    assert "global load 128" in output


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_json(inspect, target):
    status, output, _ = inspect("softmax", "block_row.cu", "--target", target, "--case", "2", "--json")
    document = json.loads(output)
    assert (status, document["status"], document["error"]) == (0, "ok", None)
    (launch,) = document["launches"]
    assert launch["case"] == "rows=1024 cols=32768"
    assert launch["grid"] == [1024, 1, 1]
    assert launch["block"] == [256, 1, 1]
    wanted = {"name", "registers", "spill_bytes", "stack_bytes", "shared_bytes", "occupancy", "instructions"}
    assert wanted <= set(launch)
    assert launch["shared_bytes"] == 256


@pytest.mark.usefixtures("_compiler")
def test_a_kernel_that_does_not_compile_is_a_result(inspect, tmp_path):
    file = tmp_path / "bad.cu"
    file.write_text('// presage: entry softmax\nextern "C" __global__ void softmax() { nonsense; }\n')
    status, output, _ = inspect("softmax", str(file), "--json")
    document = json.loads(output)
    assert (status, document["status"], document["launches"]) == (0, "compile_error", [])
    assert 'identifier "nonsense" is undefined' in document["error"]
    status, output, _ = inspect("softmax", str(file))
    assert status == 0
    assert "compile_error" in output
    assert "nonsense" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("softmax", "block_row.cu", "--target", "h2000"), "did you mean h200"),
        (("softmax", "block_row.cu", "--case", "9"), "softmax has no case 9; it has 1: rows=16384 cols=1024"),
        (("softmax", "naive.c"), "is a c kernel"),
        (("softmax", "missing.cu"), "no kernel file"),
    ],
)
def test_mistakes_of_the_caller(inspect, arguments, message):
    status, output, errors = inspect(*arguments)
    assert (status, output) == (2, "")
    assert message in errors


def test_missing_compiler_names_the_command_that_installs_it(inspect, monkeypatch):
    monkeypatch.setattr(toolkit, "_roots", lambda: iter(()))
    monkeypatch.setenv("PATH", "")
    status, _, errors = inspect("softmax", "block_row.cu")
    assert status == 2
    assert "pip install 'presage[cuda]'" in errors
