"""The sandbox, from inside: what a process can still do after it has entered."""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from presage.sandbox import memory, processes, scratch, syscalls
from presage.sandbox.processes import Finished
from presage.sandbox.rules import Rules, environment, loader_paths, program_paths, system_paths

SOURCE = str(Path(__file__).parents[2] / "src")

INSIDE = """
import ctypes, fcntl, json, mmap, os, resource, shutil, socket, sys, threading, time
sys.path.insert(0, sys.argv[1])
from presage.sandbox import confinement
from presage.sandbox.rules import Rules, system_paths
scratch, secret, parent = sys.argv[2], sys.argv[3], os.getppid()
rules = Rules(scratch, system_paths(), 4 << 30, 1 << 20)
held = confinement.separate(rules)
held |= confinement.confine(rules, False, False, None)
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 0, "aarch64": 1}[os.uname().machine]
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
def call(*numbers_and_arguments):
    numbers, *arguments = numbers_and_arguments
    ctypes.set_errno(0)
    result = libc.syscall(numbers[number], *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
system = os.__file__
attempt("fork", os.fork)
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
attempt("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("clone as vfork of a thread", lambda: call((56, 220), 0x00010000 | 0x00004000 | 0x900, 0, 0, 0, 0))
attempt("socket", lambda: socket.socket().close())
attempt("unix socket", lambda: socket.socket(socket.AF_UNIX).close())
attempt("signal parent", lambda: os.kill(parent, 0))
attempt("signal init", lambda: os.kill(1, 0))
attempt("session", os.setsid)
attempt("seccomp", lambda: call((317, 277), 1, 0, None))
attempt("seccomp by prctl", lambda: call((157, 167), 22, 2, None, 0, 0))
attempt("inotify", lambda: call((294, 26), 0))
attempt("lease", lambda: fcntl.fcntl(os.open(system, os.O_RDONLY), 1024, 1))
attempt("directory notification", lambda: fcntl.fcntl(os.open("/usr", os.O_RDONLY), 1026, 0x80000004))
attempt("own SIGIO", lambda: fcntl.fcntl(0, 8, parent))
attempt("io_uring", lambda: call((425, 425), 8, None))
attempt("unknown system call", lambda: call((1000, 1000)))
attempt("write scratch", lambda: write(scratch + "/a"))
attempt("read scratch", lambda: open(scratch + "/a").read())
attempt("copy in scratch", lambda: shutil.copyfile(scratch + "/a", scratch + "/b") and None)
attempt("write elsewhere", lambda: write(secret + ".new"))
attempt("overwrite", lambda: write(secret))
attempt("read elsewhere", lambda: open(secret).read())
attempt("list elsewhere", lambda: os.listdir(os.path.dirname(secret)))
attempt("delete elsewhere", lambda: os.unlink(secret))
attempt("look elsewhere", lambda: os.stat(secret).st_size)
attempt("mode elsewhere", lambda: os.chmod(secret, 0))
attempt("mode of a folder elsewhere", lambda: os.chmod(os.path.dirname(secret), 0))
attempt("time elsewhere", lambda: os.utime(secret, (0, 0)))
attempt("owner elsewhere", lambda: os.chown(secret, os.getuid(), os.getgid()))
attempt("attributes elsewhere", lambda: os.setxattr(secret, "user.x", b"x"))
attempt("mode of what can be read", lambda: os.chmod(system, 0o644))
attempt("time of what can be read", lambda: os.utime(system))
attempt("mode of its program", lambda: os.chmod("/proc/self/exe", 0o755))
attempt("mode of its program, opened", lambda: os.fchmod(os.open("/proc/self/exe", os.O_RDONLY), 0o755))
attempt("time of its program", lambda: os.utime("/proc/self/exe"))
attempt("shared memory", lambda: mmap.mmap(-1, 8 << 30) and None)
attempt("read passwords", lambda: open("/etc/passwd").read())
attempt("read parent's environment", lambda: len(open(f"/proc/{parent}/environ", "rb").read()))
attempt("read parent's command", lambda: len(open(f"/proc/{parent}/cmdline", "rb").read()))
attempt("read parent's memory", lambda: open(f"/proc/{parent}/mem", "rb").close())
attempt("list processes", lambda: os.listdir("/proc"))
attempt("raise a limit", lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 50, 1 << 50)))
attempt("read system", lambda: len(os.listdir("/usr")) > 0)
attempt("read itself", lambda: "VmRSS" in open("/proc/self/status").read())
attempt("thread", thread)
attempt("memory", lambda: len(bytearray(8 << 30)))
print(json.dumps({"held": held, "seen": seen}), flush=True)
"""


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("sandbox")
    own, secret = folder / "scratch", folder / "home" / "secret"
    own.mkdir()
    secret.parent.mkdir()
    secret.write_text("key")
    before = secret.stat(), secret.parent.stat()
    arguments = [sys.executable, "-I", "-c", INSIDE, SOURCE, str(own), str(secret)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert secret.read_text() == "key"
    after = secret.stat(), secret.parent.stat()
    assert [(s.st_mode, s.st_mtime) for s in before] == [(s.st_mode, s.st_mtime) for s in after]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def needs(inside: dict[str, Any], layer: str) -> None:
    if not inside["held"][layer]:
        pytest.skip(f"this system has no {layer}")


def test_every_layer_is_reported(inside: dict[str, Any]) -> None:
    assert set(inside["held"]) | {"memory"} == {"limits", "memory", "namespaces", "mounts", "landlock", "seccomp"}
    assert inside["held"]["limits"]


@pytest.mark.parametrize(
    "action",
    [
        *("fork", "exec", "spawn", "clone as vfork of a thread", "socket", "unix socket", "signal parent"),
        *("signal init", "session", "seccomp", "seccomp by prctl", "inotify", "lease", "directory notification"),
        *("own SIGIO", "io_uring", "shared memory"),
    ],
)
def test_a_system_call_that_no_kernel_needs_is_refused(inside: dict[str, Any], action: str) -> None:
    needs(inside, "seccomp")
    assert inside["seen"][action] == "Operation not permitted"


def test_a_system_call_that_is_in_no_table_is_refused(inside: dict[str, Any]) -> None:
    needs(inside, "seccomp")
    assert inside["seen"]["unknown system call"] == "Function not implemented"


HIDDEN = [
    *("write elsewhere", "overwrite", "read elsewhere", "list elsewhere", "delete elsewhere", "look elsewhere"),
    "read passwords",
]


@pytest.mark.parametrize("action", HIDDEN)
def test_what_the_rules_do_not_name_is_not_there(inside: dict[str, Any], action: str) -> None:
    needs(inside, "mounts")
    assert inside["seen"][action] in ("No such file or directory", "Read-only file system")


@pytest.mark.parametrize(
    "action",
    [
        *("owner elsewhere", "attributes elsewhere", "mode elsewhere", "mode of a folder elsewhere", "time elsewhere"),
        *("mode of what can be read", "time of what can be read", "mode of its program", "time of its program"),
        "mode of its program, opened",
    ],
)
def test_modes_times_owners_and_attributes_cannot_be_changed(inside: dict[str, Any], action: str) -> None:
    """Its own program lies where it was before it entered the sandbox, and is reached through /proc."""
    needs(inside, "seccomp")
    assert inside["seen"][action] == "Operation not permitted"


@pytest.mark.parametrize(
    "action",
    ["read parent's environment", "read parent's command", "read parent's memory", "list processes"],
)
def test_other_processes_are_out_of_sight(inside: dict[str, Any], action: str) -> None:
    needs(inside, "landlock")
    assert inside["seen"][action] == "Permission denied"


@pytest.mark.parametrize(
    ("action", "result"),
    [
        ("thread", 499500),
        ("write scratch", "done"),
        ("read scratch", "x"),
        ("copy in scratch", "done"),
        ("read system", True),
        ("read itself", True),
    ],
)
def test_what_kernels_need_still_works(inside: dict[str, Any], action: str, result: object) -> None:
    assert inside["seen"][action] == result


def test_memory_has_a_limit_that_cannot_be_raised(inside: dict[str, Any]) -> None:
    assert inside["seen"]["memory"] == "MemoryError"
    assert inside["seen"]["raise a limit"] == "ValueError"


def test_the_environment_holds_nothing_of_the_caller_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    given = environment(str(tmp_path), threads=2)
    assert "secret" not in str(given)
    assert given["HOME"] == given["TMPDIR"] == str(tmp_path)
    assert given["OMP_NUM_THREADS"] == "2"


# -- programs ---------------------------------------------------------------------------------------------------------


def run(script: str, tmp_path: Path, **rules: Any) -> Finished:
    own = tmp_path / "scratch"
    own.mkdir(exist_ok=True)
    readable = rules.pop("readable", program_paths())
    return processes.run(["/bin/sh", "-c", script], Rules(str(own), readable, 4 << 30, may_spawn=True, **rules), 60.0)


def test_a_compiler_may_start_programs_but_reads_no_home(inside: dict[str, Any], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    done = run(f"(echo started) && cat {secret}; echo x > {tmp_path}/new; echo x > new", tmp_path)
    assert "started" in done.output
    assert (tmp_path / "scratch" / "new").exists()
    if inside["held"]["landlock"]:
        assert "key" not in done.output
        assert not (tmp_path / "new").exists()


def test_a_program_changes_modes_of_its_own_files_alone(inside: dict[str, Any], tmp_path: Path) -> None:
    """As linkers do."""
    needs(inside, "mounts")
    done = run("touch a && chmod 700 a && echo changed; chmod 755 /usr/bin /proc/self/exe ..", tmp_path)
    assert "changed" in done.output
    assert done.output.count("Read-only file system") == 3


def test_a_program_that_the_rules_do_not_name_does_not_start(inside: dict[str, Any], tmp_path: Path) -> None:
    needs(inside, "landlock")
    shell = os.path.realpath("/bin/sh")
    done = run("echo started; /bin/ls /usr", tmp_path, programs=(shell, *loader_paths()))
    assert "started" in done.output
    assert "ermission denied" in done.output
    assert "share" not in done.output


def test_how_a_program_ends_is_told(tmp_path: Path) -> None:
    assert run("exit 3", tmp_path).status == 3
    assert run("kill -SEGV $$", tmp_path).status == -11
    with pytest.raises(TimeoutError, match="still running"):
        processes.run(["/bin/sleep", "60"], Rules(str(tmp_path), program_paths(), 1 << 30, may_spawn=True), seconds=0.2)


def test_a_program_that_is_not_there_is_an_error_in_words(tmp_path: Path) -> None:
    done = processes.run(["/no/such"], Rules(str(tmp_path), program_paths(), 1 << 30, may_spawn=True), 60.0)
    assert done.status == 127
    assert "cannot start /no/such: No such file or directory" in done.output


def test_nothing_that_a_program_starts_outlives_it(tmp_path: Path) -> None:
    mark = f"3600.{os.getpid()}"
    run(f"(setsid sleep {mark} &) ; (nohup sleep {mark} > /dev/null &) ; sleep {mark} & exit 0", tmp_path)
    until = time.monotonic() + 60
    while (alive := _running(mark)) and time.monotonic() < until:
        time.sleep(0.05)  # what was killed may take a moment to end
    assert alive == []


def _running(mark: str) -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


GROUPS = """
import json, os, sys
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "import os; print(os.getpgrp())"], {}, setpgroup=0)
print(json.dumps([os.waitpid(pid, 0)[1], os.getpgrp()]), flush=True)
"""


def test_what_a_builder_starts_stays_in_the_group_that_is_ended_as_one(inside: dict[str, Any], tmp_path: Path) -> None:
    """Ninja asks for a group of its own for each job, and gives up where that is refused."""
    needs(inside, "seccomp")
    rules = Rules(str(tmp_path), system_paths(), 4 << 30, may_spawn=True)
    done = processes.run([sys.executable, "-c", GROUPS], rules, 60.0)
    groups, (status, ours) = done.output.split("\n", 1)[0], json.loads(done.output.split("\n", 1)[1])
    assert (status, int(groups)) == (0, ours)


@pytest.mark.slow
def test_shared_memory_counts_where_there_are_control_groups(tmp_path: Path) -> None:
    made = memory.group(1 << 28)
    if made is None:
        pytest.skip("this system lets us make no control group")
    memory.release(made)
    code = "import mmap; m = mmap.mmap(-1, 1 << 30); [m.write(bytes(1 << 20)) for _ in range(1024)]; print('all')"
    rules = Rules(str(tmp_path), system_paths(), 1 << 28, may_spawn=True, reserves=True)
    done = processes.run([sys.executable, "-c", code], rules, 60.0)
    assert "all" not in done.output
    assert done.status != 0


# -- the tables -------------------------------------------------------------------------------------------------------


def test_no_call_is_in_two_tables() -> None:
    tables = (syscalls.ALLOWED, syscalls.ATTRIBUTES, syscalls.SPAWNING, syscalls.DEADLY, syscalls.DECLINED)
    names = [name for table in (*tables, syscalls.XATTRS) for name in table]
    assert len(names) == len(set(names))
    for column in (0, 1):
        numbers = [n[column] for table in (*tables, syscalls.XATTRS) for n in table.values() if n[column] is not None]
        assert len(numbers) == len(set(numbers))


def test_a_call_s_number_is_the_system_s_own() -> None:
    """Wherever the system's headers are installed."""
    header = Path("/usr/include/asm-generic/unistd.h")
    if platform.machine() != "aarch64" or not header.exists():
        header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the system's headers are not installed")
    column = syscalls.ARCHITECTURES[platform.machine()][1]
    words = [line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR_")]
    known = {each[1].removeprefix("__NR_"): int(each[2]) for each in words if len(each) > 2 and each[2].isdigit()}
    ours = {**syscalls.ALLOWED, **syscalls.SPAWNING, **syscalls.DEADLY, **syscalls.DECLINED, **syscalls.ATTRIBUTES}
    same = {name: numbers[column] for name, numbers in ours.items() if name in known}
    assert len(same) > 200
    assert same == {name: known[name] for name in same}


@pytest.mark.parametrize("machine", syscalls.ARCHITECTURES)
def test_a_filter_ends_with_a_refusal_and_fits(machine: str) -> None:
    code = syscalls.filter_code(machine, False, False, True, False, True)
    assert len(code) // 8 < 4096
    assert int.from_bytes(code[-4:], sys.byteorder) == 0x00050000 | errno.ENOSYS


# -- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_is_removed_whatever_was_done_to_it() -> None:
    folder = scratch.make()
    here = os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(3000):  # far longer than a path may be
            os.mkdir("d" * 10)
            os.chdir("d" * 10)
    finally:
        os.chdir(here)
    Path(folder, "locked", "inside").mkdir(parents=True)
    Path(folder, "link").symlink_to("/")
    Path(folder, "locked").chmod(0)
    scratch.remove(folder)
    assert not os.path.lexists(folder)
    scratch.remove(folder)
