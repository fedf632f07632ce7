"""The sandbox, from inside: what a process can still do after it has entered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from presage.devices.child import environment
from presage.devices.worker import sandbox

INSIDE = """
import ctypes, json, os, socket, sys, threading
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import sandbox
scratch, secret, parent = sys.argv[2], sys.argv[3], os.getppid()
held = sandbox.enter(scratch, 4 << 30, 1 << 20, sandbox.system_paths(), may_spawn=False)
seen = {}
def attempt(name, action):
    try:
        result = action()
        seen[name] = "done" if result is None else result
    except OSError as error:
        seen[name] = error.strerror
    except BaseException as error:
        seen[name] = type(error).__name__
def write(path, data="x"):
    with open(path, "w") as file:
        file.write(data)
def thread():
    box = []
    worker = threading.Thread(target=lambda: box.append(sum(range(1000))))
    worker.start(); worker.join()
    return box[0]
attempt("fork", os.fork)
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
attempt("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("socket", lambda: socket.socket().close())
attempt("unix socket", lambda: socket.socket(socket.AF_UNIX).close())
attempt("signal parent", lambda: os.kill(parent, 0))
attempt("signal init", lambda: os.kill(1, 0))
attempt("session", os.setsid)
attempt("write scratch", lambda: write(scratch + "/a"))
attempt("read scratch", lambda: open(scratch + "/a").read())
attempt("write elsewhere", lambda: write(secret + ".new"))
attempt("overwrite", lambda: write(secret))
attempt("read elsewhere", lambda: open(secret).read())
attempt("list elsewhere", lambda: os.listdir(os.path.dirname(secret)))
attempt("delete elsewhere", lambda: os.unlink(secret))
attempt("read parent's environment", lambda: len(open(f"/proc/{parent}/environ", "rb").read()))
attempt("read parent's memory", lambda: open(f"/proc/{parent}/mem", "rb").close())
attempt("read system", lambda: len(os.listdir("/usr")) > 0)
attempt("thread", thread)
attempt("memory", lambda: len(bytearray(8 << 30)))
print(json.dumps({"held": held, "seen": seen}), flush=True)
"""


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sandbox")
    scratch, secret = folder / "scratch", folder / "home" / "secret"
    scratch.mkdir()
    secret.parent.mkdir()
    secret.write_text("key")
    arguments = [sys.executable, "-I", "-c", INSIDE, sandbox.__file__, str(scratch), str(secret)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert secret.read_text() == "key"
    return json.loads(done.stdout)


def test_every_layer_is_reported(inside: dict[str, Any]) -> None:
    assert set(inside["held"]) == set(sandbox.LAYERS)
    assert inside["held"]["limits"]


@pytest.mark.parametrize(
    "action", ["fork", "exec", "spawn", "socket", "unix socket", "signal parent", "signal init", "session"]
)
def test_a_system_call_that_no_kernel_needs_is_refused(inside: dict[str, Any], action: str) -> None:
    if not inside["held"]["seccomp"]:
        pytest.skip("this system has no seccomp")
    assert inside["seen"][action] == "Operation not permitted"


@pytest.mark.parametrize(
    "action",
    [
        "write elsewhere",
        "overwrite",
        "read elsewhere",
        "list elsewhere",
        "delete elsewhere",
        "read parent's environment",
        "read parent's memory",
    ],
)
def test_files_outside_scratch_are_out_of_reach(inside: dict[str, Any], action: str) -> None:
    if not inside["held"]["landlock"]:
        pytest.skip("this system has no Landlock")
    assert inside["seen"][action] == "Permission denied"


@pytest.mark.parametrize(
    ("action", "result"),
    [("thread", 499500), ("write scratch", "done"), ("read scratch", "x"), ("read system", True)],
)
def test_what_kernels_need_still_works(inside: dict[str, Any], action: str, result: object) -> None:
    assert inside["seen"][action] == result


def test_memory_has_a_limit(inside: dict[str, Any]) -> None:
    assert inside["seen"]["memory"] == "MemoryError"


def test_the_environment_holds_nothing_of_the_caller_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    given = environment(str(tmp_path), threads=2)
    assert "secret" not in str(given)
    assert set(given) <= {"PATH", "HOME", "TMPDIR", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOMP_SPINCOUNT"}
    assert given["HOME"] == given["TMPDIR"] == str(tmp_path)


def test_a_compiler_may_start_programs_but_reads_no_home(inside: dict[str, Any], tmp_path: Path) -> None:
    scratch, secret = tmp_path / "scratch", tmp_path / "secret"
    scratch.mkdir()
    secret.write_text("key")
    script = f"(echo started) && cat {secret}; echo x > {tmp_path}/new; echo x > {scratch}/new"
    confine = [sys.executable, "-I", sandbox.__file__, str(scratch), str(4 << 30), str(1 << 20)]
    done = subprocess.run([*confine, "/bin/sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert "started" in done.stdout
    assert (scratch / "new").exists()
    if inside["held"]["landlock"]:
        assert "key" not in done.stdout
        assert not (tmp_path / "new").exists()


GROUPS = """
import json, os, sys
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "import os; print(os.getpgrp())"], {}, setpgroup=0)
print(json.dumps([os.waitpid(pid, 0)[1], os.getpgrp()]), flush=True)
"""


def test_what_a_builder_starts_stays_in_the_group_that_is_ended_as_one(inside: dict[str, Any], tmp_path: Path) -> None:
    """Ninja asks for a group of its own for each job, and gives up where that is refused."""
    if not inside["held"]["seccomp"]:
        pytest.skip("this system has no seccomp")
    confine = [sys.executable, "-I", sandbox.__file__, str(tmp_path), str(4 << 30), str(1 << 20)]
    done = subprocess.run([*confine, sys.executable, "-c", GROUPS], capture_output=True, text=True, timeout=60)
    groups, (status, ours) = done.stdout.split("\n", 1)[0], json.loads(done.stdout.split("\n", 1)[1])
    assert (status, int(groups)) == (0, ours)
