"""The command line as it is typed: exit status, what goes to stdout and what to stderr."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import presage as package
from presage import __version__

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(str(package.__file__)).parents[1])}
SLOW_SUM = """
// presage: problem relu
// presage: entry relu
void relu(const float *x, float *y, int n) {
    for (int r = 0; r < 200; r++) {
        for (int i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
        __asm__ volatile("" ::: "memory");
    }
}
"""
DOUBLE = "def forward(self, x):\n        return x + x\n"
QUICK = ("--precision", "0.9", "--seconds", "20", "--timeout", "120")
"""As few rounds as there can be, however busy the machine is."""


def started(*words: str) -> subprocess.CompletedProcess[str]:
    """Python with these words, in a process of its own."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300, env=ENVIRONMENT)


# -- asking for help --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ()])
def test_help_lists_every_command(arguments: tuple[str, ...], ran: Any) -> None:
    text = ran(*arguments)
    assert text.startswith("usage: presage")
    assert all(command in text for command in ("measure", "problems", "devices"))


@pytest.mark.parametrize("command", ["measure", "problems", "devices"])
def test_every_command_explains_itself(command: str, ran: Any) -> None:
    text = ran(command, "--help")
    assert text.startswith(f"usage: presage {command}")
    assert "--json" in text


def test_the_version(ran: Any) -> None:
    first, second, *others = ran("--version").splitlines()
    assert first == f"presage {__version__}"
    assert second.startswith("python 3.")
    assert any(line.startswith("numpy 2.") for line in others)
    assert any(line.startswith("catalogue 15 rooms of problems; recordings: cpu, h200") for line in others)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    done = started("-X", "importtime", "-m", "presage", *arguments)
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "argparse" in loaded
    assert not loaded & {"numpy", "torch", "triton", "cuda", "matplotlib", "sqlite3", "asyncio"}


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "bad.c").write_text("// presage: entry f\n// presage: tune A\nvoid f(void) {}\n")
    (tmp_path / "bare.c").write_text("void f(void) {}\n")
    (tmp_path / "k.triton.py").write_text("import triton\n")
    (tmp_path / "other.c").write_text("// presage: problem gelu\n// presage: entry f\n")
    (tmp_path / "noise.c").write_bytes(b"\x80\x81")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("nonsense", "invalid choice: 'nonsense'"),
        ("--nonsense", "unrecognized arguments: --nonsense"),
        ("measure", "the following arguments are required: KERNEL"),
        ("measure softmax", "presage: a problem and a kernel are needed; write 'presage measure PROBLEM KERNEL"),
        ("measure nowhere.py naive.c", "presage: there is no problem 'nowhere.py'; there is no such file or folder"),
        ("measure --problem k.triton.py naive.c", "k.triton.py is no KernelBench problem: it defines no Model"),
        ("measure . naive.c", "presage: . is no GPU MODE task: there is no task.yml in it"),
        ("measure sofmax naive.c", "presage: there is no problem 'sofmax'; did you mean softmax"),
        ("measure zzz naive.c", "presage: there is no problem 'zzz'; 'presage problems' lists them."),
        ("measure softmax nowhere.c", "presage: there is no kernel file nowhere.c"),
        ("measure softmax naive.c@A=1", "has no tunables, so nothing can be set in it"),
        ("measure softmax rows.c@EXP=7", "EXP cannot be 7; it can be: 0, 1"),
        ("measure softmax bad.c", "presage: bad.c:2: tunable 'A' has no values; write '// presage: tune BLOCK"),
        ("measure softmax bare.c", "presage: bare.c:1: the header declares no entry; add a line like"),
        ("measure softmax other.c", "presage: other.c says it solves 'gelu', not 'softmax'"),
        ("measure softmax noise.c", "presage: noise.c is not UTF-8 text (byte 0); save it as UTF-8"),
        ("measure softmax k.triton.py --device cpu", "presage: k.triton.py is triton; the cpu device runs c, numpy"),
        ("measure softmax naive.cu --device h200", "write --device recorded:h200 to look up recorded measurements, or"),
        ("measure softmax naive.cu --device rtx4090", "'rtx4090'; it is hardware, not a device: use --target rtx4090"),
        ("search softmax --device h200", "or use --target h200 with forecast and inspect; there are: "),
        ("measure softmax naive.c --device abacus", "presage: there is no device 'abacus'; there are: "),
        ("measure softmax naive.c --anchor nowhere.c", "presage: there is no kernel file nowhere.c"),
        ("measure softmax naive.c --cc nosuchcc", "no C compiler: nosuchcc is not installed. Install one, for example"),
        ("measure softmax naive.c --seconds 0", "argument --seconds: '0' is not a positive number"),
        ("measure softmax naive.c --seconds -1", "argument --seconds: '-1' is not a positive number"),
        ("measure softmax naive.c --precision nan", "argument --precision: 'nan' is not a positive number"),
        ("measure softmax naive.c --timeout soon", "argument --timeout: 'soon' is not a positive number"),
        ("measure softmax naive.c --timeout inf", "argument --timeout: 'inf' is not a positive number"),
        ("problems zzz", "presage: there is no problem 'zzz'"),
        ("problems softmax gelu", "presage: write 'presage problems', 'presage problems NAME'"),
    ],
)
def test_a_mistake_exits_with_2_and_says_how_to_mend_it(
    files: Path, arguments: str, complaint: str, presage: Any
) -> None:
    done = presage(*arguments.split(), cwd=files)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_the_program_ends_with_that_status() -> None:
    done = started("-m", "presage", "problems", "zzz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("presage: there is no problem 'zzz'")


# -- looking around ---------------------------------------------------------------------------------------------------


def test_problems_lists_the_catalogue(ran: Any) -> None:
    lines = ran("problems").splitlines()
    listed = [problem["name"] for problem in json.loads(ran("problems", "--json"))["problems"]]
    assert len(lines) == 1 + len(listed) >= 17
    assert {"softmax", "matmul"} <= set(listed)


def test_a_problem_shows_its_signature_cases_and_kernels(ran: Any) -> None:
    text = ran("problems", "softmax")
    assert "void softmax(const float *x, float *y, int rows, int cols)" in text
    assert "configurations of THREADS, EXP" in text
    (document,) = json.loads(ran("problems", "softmax", "--json"))["problems"]
    assert document["name"] == "softmax"
    assert document["timed"]["cpu"][0]["dims"] == {"rows": 1024, "cols": 1024}
    assert document["kernels"][0]["name"].endswith("naive.c")
    assert all(case["bytes"] > 0 and case["tolerance"]["reason"] for case in document["checks"])


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m presage problems softmax --json | head -c 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


def test_devices_says_what_can_be_had(ran: Any) -> None:
    assert "sandbox" in ran("devices")


# -- measuring --------------------------------------------------------------------------------------------------------


def check_measurement(document: dict[str, Any]) -> None:
    """What every measurement's JSON has, whether or not the kernel is ok."""
    assert (document["status"] == "ok") == (document["reason"] == "") == bool(document["cases"])
    for case in document["cases"]:
        assert {"case", "median_ns", "ci_low_ns", "ci_high_ns", "samples"} <= set(case)
        assert 0 < case["ci_low_ns"] <= case["median_ns"] <= case["ci_high_ns"]
        assert case["samples"] >= 8
    if document["status"] == "ok":
        assert document["speedup"]["low"] <= document["speedup"]["value"] <= document["speedup"]["high"]


def test_one_kernel_is_one_json_document(presage: Any) -> None:
    done = presage("measure", "relu", "threads.c@THREADS=1", "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (found,) = document["measurements"]
    check_measurement(found)
    assert (document["problem"], document["device"], found["status"]) == ("relu", "cpu", "ok")
    assert found["kernel"]["language"] == "c"
    assert found["kernel"]["values"]["THREADS"] == 1
    assert [case["case"] for case in found["cases"]] == ["n=131072", "n=500003"]
    assert document["anchor"]["kernel"]["name"].endswith("naive.c")
    assert done.stderr.startswith("measuring on cpu; --device chooses another\n")
    assert "timing n=131072" in done.stderr


@pytest.mark.alone
def test_two_kernels_are_compared(tmp_path: Path, ran: Any) -> None:
    (tmp_path / "slow.c").write_text(SLOW_SUM)
    (tmp_path / "broken.c").write_text("// presage: entry relu\nvoid relu(void) { oops }\n")
    specs = ("naive.c", str(tmp_path / "slow.c"), str(tmp_path / "broken.c"))
    document = json.loads(ran("measure", "relu", *specs, "--anchor", "none", "--json", *QUICK))
    naive, slow, broken = document["measurements"]
    assert [m["status"] for m in (naive, slow, broken)] == ["ok", "ok", "compile_error"]
    assert "broken.c:2" in broken["reason"] or "kernel.c:2" in broken["reason"]
    assert (naive["speedup"], document["anchor"]) == (None, None)
    ratio, nothing = document["ratios"]
    assert ratio["to"].endswith("naive.c")
    assert ratio["of"].endswith("slow.c")
    assert ratio["speedup"]["value"] < 0.7
    assert nothing["speedup"] is None


def test_people_get_a_table_and_a_sentence(tmp_path: Path, ran: Any) -> None:
    (tmp_path / "wrong.py").write_text("def custom_kernel(data):\n    return data[0] * 2\n")
    text = ran("measure", "relu", "naive.c", str(tmp_path / "wrong.py"), *QUICK)
    header, anchor, *_ = text.splitlines()
    assert header.split() == ["file", "status", "case", "median", "95", "%", "roofline"]
    assert anchor.split()[:4] == ["anchor", "naive.c", "ok", "n=131072"]
    assert "naive.c is " in text
    assert "the anchor's speed" in text
    assert "wrong.py: case n=" in text
    assert "wrong_result" in text


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_a_problem_from_elsewhere(tmp_path: Path, presage: Any, doubling: str) -> None:
    (tmp_path / "1_Doubling.py").write_text(doubling)
    (tmp_path / "new.py").write_text(doubling.split("def ")[0].replace("Model(", "ModelNew(") + DOUBLE)
    done = presage("measure", "new.py", "--problem", "1_Doubling.py", "--json", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (found,) = document["measurements"]
    check_measurement(found)
    assert (document["problem"], found["status"]) == ("1_Doubling", "ok"), found["reason"]
    assert document["anchor"]["kernel"]["name"] == "1_Doubling.py"
    text = presage("problems", "1_Doubling.py", cwd=tmp_path).stdout
    assert "1_Doubling (KernelBench): Doubles." in text
    assert "data[0] float32[1000] -> output float32[1000]; 0.008 MB at least" in text
