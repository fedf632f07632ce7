"""Compiling for static reports: in confined children, of which none can do harm or spoil another's answer."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from presage import StaticReport
from presage.kernels.kernel import from_source
from presage.static import compiling, cuda_source, reporting
from presage.static.hardware import find
from presage.static.launch_request import Job
from presage.static.trace import TensorSpec

SOURCE = """// presage: entry f
// presage: grid 1
// presage: block 32
%s
extern "C" __global__ void f(float *x) { x[threadIdx.x] = %s; }
"""
MODULE = """
import ctypes, os, socket, subprocess, sys
import torch, triton, triton.language as tl

@triton.jit
def one(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, 1.0, mask=i < n)

def custom_kernel(data):
    (x,) = data
    y = torch.empty_like(x)
    one[(triton.cdiv(x.numel(), 256),)](y, x.numel(), B=256)
    return y

"""

needs_nvrtc = pytest.mark.usefixtures("nvrtc_library")
needs_triton = pytest.mark.usefixtures("has_triton")


def requests(*values: str) -> list[dict[str, Any]]:
    kernels = [from_source(SOURCE % ("", value), ".cu", "f.cu") for value in values]
    return [cuda_source.request(Job(kernel, {}, (), find("h200"))) for kernel in kernels]


def statuses(*values: str) -> list[str]:
    return [answer["status"] for answer in compiling.answers(requests(*values), 60.0)]


def report(source: str, suffix: str) -> StaticReport:
    kernel = from_source(source, suffix, f"mine{suffix}")
    inputs = () if suffix == ".cu" else (TensorSpec((1000,), "float32"),)
    return reporting.reports([Job(kernel, {}, inputs, find("h200"))])[0]


@needs_nvrtc
def test_one_process_answers_one_call_after_another() -> None:
    assert statuses("1.f", "nonsense") == ["ok", "compile_error"]
    zygote = compiling._zygote("cuda")
    assert statuses("2.f") == ["ok"]
    assert compiling._zygote("cuda") is zygote
    assert compiling.answers([], 60.0) == []


@needs_nvrtc
def test_after_a_process_was_killed_there_is_another() -> None:
    assert statuses("1.f") == ["ok"]
    process = compiling._zygote("cuda")._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert statuses("1.f") == ["ok"]


@needs_nvrtc
def test_who_is_late_is_ended_and_the_others_are_answered() -> None:
    bomb = "#define A(x) x + x + x + x\n#define B(x) A(A(A(A(A(A(x))))))\n"
    slow = from_source(SOURCE % (bomb, "B(B(x[0]))"), ".cu", "slow.cu")
    late, fine = compiling.answers([cuda_source.request(Job(slow, {}, (), find("h200"))), *requests("1.f")], 2.0)
    assert late["status"] in ("timeout", "compile_error")
    assert fine["status"] == "ok"


# -- what compilers read ----------------------------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("how", ['#include "{}"', '#include "/proc/self/root{}"', "#include <{}>", '#include "../{}"'])
def test_a_source_includes_no_file_of_ours(how: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("int hush_hush = nonsense;\n")
    found = report(SOURCE % (how.format(secret), "1.f"), ".cu")
    assert found.status == "compile_error"
    assert "hush_hush" not in str(found.error)


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        ("/usr/a.h(42): error: expected an identifier\n  template <typename T>", True),
        ("/usr/a.h(42): error: expected an identifier\n  template <typename TILE>", False),
        ("mine.cu(42): error: expected an identifier\n  template <typename T>", False),
    ],
)
def test_a_tunable_that_headers_use_too_is_named(error: str, is_told: bool) -> None:
    kernel = replace(from_source(SOURCE % ("", "1.f"), ".cu", "mine.cu"), values={"T": 64})
    assert reporting._hint(kernel, error).startswith("the tunable T is a macro") == is_told


@needs_nvrtc
@pytest.mark.parametrize("file", ["/etc/passwd", "/proc/self/environ", "/proc/self/cmdline", os.__file__])
def test_a_source_includes_no_file_of_the_system_s(file: str) -> None:
    found = report(SOURCE % (f'#include "{file}"', "1.f"), ".cu")
    assert found.status == "compile_error"
    assert "cannot open source file" in str(found.error)


@needs_nvrtc
def test_a_source_includes_what_the_toolkit_has() -> None:
    assert (
        report(SOURCE % ("#include <cuda_fp16.h>\n#include <cmath>", "__half2float(__float2half(1.f))"), ".cu").error
        is None
    )
    reduced = "cub::WarpReduce<float>(*(cub::WarpReduce<float>::TempStorage *)nullptr).Sum(1.f)"
    assert report(SOURCE % ("#include <cub/cub.cuh>", reduced), ".cu").error is None


@needs_nvrtc
def test_an_error_names_the_file(tmp_path: Path) -> None:
    assert "mine.cu(5): error" in str(report(SOURCE % ("", "nonsense"), ".cu").error)


# -- what host code does ----------------------------------------------------------------------------------------------


def tried(body: str, tmp_path: Path) -> StaticReport:
    """The report of a module that does this when it is loaded."""
    return report(MODULE + body.replace("PLACE", str(tmp_path)), ".py")


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "open('PLACE/written', 'w').write('x')",
        "os.mkdir('PLACE/made')",
        "os.listdir(os.path.dirname('PLACE'))",
        "open('PLACE/secret').read()",
        "os.stat('PLACE/secret')",
        "os.chmod('PLACE', 0)",
        "os.utime('PLACE/secret', (0, 0))",
        "socket.socket()",
        "subprocess.run(['/bin/sh', '-c', 'true'], check=True)",
        "os.execv('/bin/true', ['true'])",
        "os.setsid()",
        "os.kill(os.getppid(), 9)",
        "open('/proc/%d/cmdline' % os.getppid()).read()",
        "ctypes.CDLL(None).unshare(0x10000000) == 0 or os.kill(1, 0)",
    ],
)
def test_host_code_does_nothing_outside_of_its_folder(body: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush-hush")
    before = sorted(os.listdir(tmp_path)), tmp_path.stat().st_mode, (tmp_path / "secret").stat().st_mtime
    found = tried(body, tmp_path)
    assert found.status in ("runtime_error", "compile_error", "unknown")
    assert any(error in str(found.error) for error in ("OSError", "PermissionError", "FileNotFoundError")), found.error
    assert (sorted(os.listdir(tmp_path)), tmp_path.stat().st_mode, (tmp_path / "secret").stat().st_mtime) == before


@needs_triton
@pytest.mark.slow
def test_host_code_leaves_nothing_running(tmp_path: Path) -> None:
    """Nor does one that tries keep its report, or anyone's, waiting."""
    body = f"""
for _ in range(3):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"left{os.getpid()}")  # its name
        try:
            os.setsid()
        except OSError:
            pass
        import time
        end = time.time() + 3600
        while time.time() < end:
            time.sleep(1)
        os._exit(0)
"""
    assert tried(body, tmp_path).status == "ok"
    until = time.monotonic() + 60
    while (left := _named(f"left{os.getpid()}")) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []


def _named(name: str) -> list[str]:
    """Processes of this name."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            found += [comm.parent.name] if comm.read_text().strip() == name else []
    return found


@needs_triton
@pytest.mark.slow
def test_host_code_reaches_no_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[Any] = []
        threading.Thread(target=lambda: accepted.append(server.accept()), daemon=True).start()
        found = tried(f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)", tmp_path)
        assert found.status == "runtime_error"
        assert not accepted


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        "[1, 2]",
        '{"status": "ok"}',
        '{"status": "ok", "cases": 3}',
        '{"status": "ok", "cubins": ["AAAA"], "launches": [{}]}',
        '{"status": "ok", "cubins": [3], "launches": []}',
        '{"status": "compile_error", "error": "\\x1b]0;gone\\x07"}',
        "nothing",
    ],
)
def test_a_forged_answer_is_an_error_like_any(answer: str, tmp_path: Path) -> None:
    """Host code shares a process with what writes the answer."""
    attempt = f"try: os.write(fd, {answer!r}.encode())\n    except OSError: pass"
    forging = f"for fd in range(3, 64):\n    {attempt}\nos._exit(0)"
    found = tried(forging, tmp_path)
    assert found.status in ("compile_error", "ok")
    assert "\x1b" not in str(found.error)


def test_a_forged_answer_of_many_values_is_not_parsed() -> None:
    forged = bytearray(b'{"status": "ok", "cases": [' + b"{}," * 4_000_000 + b"{}]}")
    tracemalloc.start()
    try:
        assert compiling._read(forged) == {"status": "unknown", "error": "the trace is too long to be read"}
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@needs_triton
@pytest.mark.slow
def test_a_triton_module_that_behaves_has_its_report(tmp_path: Path) -> None:
    found = tried("", tmp_path)
    assert found.error is None
    assert [launch.name for launch in found.launches] == ["one"]
