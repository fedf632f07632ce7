"""The CPU device as its caller meets it: whole measurements, honest and broken, on a small problem."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from presage import Case, Effort, Kernel, Measurement, PresageError, Problem, Status
from presage.devices import exclusive
from presage.devices.base import speedup
from presage.devices.child import Child
from presage.devices.cpu import CpuDevice
from presage.devices.trial import Trial
from presage.kernels.kernel import from_source

alone = pytest.mark.alone

Measure = Callable[..., list[Measurement]]

HONEST = (
    "void vector_add(const float *x, const float *y, float *z, int n)"
    " { for (int i = 0; i < n; i++) z[i] = x[i] + y[i]; }"
)
SLOW = """
void vector_add(const float *x, const float *y, float *z, int n) {
    for (int r = 0; r < 30; r++) {
        for (int i = 0; i < n; i++) z[i] = x[i] + y[i];
        __asm__ volatile("" ::: "memory");
    }
}
"""
MODULE = "import numpy as np\ndef custom_kernel(data):\n    x, y = data\n    return np.add(x, y)\n"


def quiet(doing: str, share: float) -> None:
    return


# -- honest kernels ---------------------------------------------------------------------------------------------------


def test_a_right_kernel_is_ok_with_all_its_numbers(measure: Measure) -> None:
    (measured,) = measure(HONEST)
    document = json.loads(json.dumps(measured.to_json()))
    assert (document["status"], document["reason"], document["problem"]) == ("ok", "", "vector_add")
    assert document["device"] == "cpu"
    assert document["kernel"] == {"hash": measured.kernel.hash, "language": "c", "name": "k.c"}
    (case,) = document["cases"]
    assert case["case"] == "n=200000"
    assert case["samples"] == len(case["samples_ns"]) >= 8
    assert 0 < case["ci_low_ns"] <= case["median_ns"] <= case["ci_high_ns"]
    assert case["calls"] >= 1
    assert case["roofline"] == pytest.approx(case["floor_ns"] / case["median_ns"])


def test_a_python_module_is_measured_on_numpy(measure: Measure) -> None:
    (measured,) = measure(MODULE)
    assert (measured.status, measured.reason, measured.kernel.language) == (Status.OK, "", "numpy")


@alone
@pytest.mark.usefixtures("on_an_idle_machine")
def test_the_same_kernel_twice_is_about_as_fast_and_a_slow_one_is_slower(measure: Measure) -> None:
    first, slow, second = measure(HONEST, SLOW, HONEST, effort=Effort(precision=0.1, case_seconds=5, timeout=120))
    same, slower = speedup(first, second), speedup(first, slow)
    assert same is not None
    assert same.low <= same.value <= same.high
    assert 0.5 < same.value < 2.0
    assert slower is not None
    assert slower.value < 0.5
    # Measured in the same rounds, so that what the machine did to one it did to the other.
    assert len(set(first.cases[0].rounds) & set(second.cases[0].rounds)) > 0


def test_progress_is_told(addition: Problem, naive: Kernel) -> None:
    told: list[tuple[str, float]] = []
    with contextlib.closing(CpuDevice()) as device:
        device.measure(addition, [naive], Effort(1.0, 20.0), lambda doing, share: told.append((doing, share)))
    assert told[0] == ("compiling", 0.0)
    assert told[-1] in [("done", 1.0), ("done, second try", 1.0)]
    assert "timing n=200000" in [doing for doing, _ in told]
    # A machine that disturbed the first try has a second, which begins at nought and says so.
    for second in (False, True):
        shares = [share for doing, share in told if doing.endswith("second try") is second]
        assert shares == sorted(shares)


@alone
def test_two_measurements_take_turns(addition: Problem, naive: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled and loaded beside a measurement, and neither checked nor timed."""
    there, leave, said = threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        with exclusive.only("cpu"):
            there.set()
            leave.wait(60)

    def tell(doing: str, share: float) -> None:
        said.append(doing)
        if doing.startswith("waiting"):
            leave.set()

    with contextlib.closing(CpuDevice()) as device:
        assert device.peaks.flops > 0
        loaded: list[str] = []
        load = Trial.load
        monkeypatch.setattr(Trial, "load", lambda trial, command: (loaded.append(said[-1]), load(trial, command))[1])
        holder = threading.Thread(target=hold)
        holder.start()
        assert there.wait(30)
        (measured,) = device.measure(addition, [naive], Effort(1.0, 20.0), tell)
        holder.join()
    assert (measured.status, measured.reason) == (Status.OK, "")
    assert set(loaded) == {"compiling"}  # twice where the machine disturbed the first try
    assert said[:3] == ["compiling", "waiting for another measurement on this machine", "checking"]


def test_it_describes_itself() -> None:
    with contextlib.closing(CpuDevice()) as device:
        facts = device.describe()
    assert facts["threads"] >= 1
    assert facts["peak_flops"] > 0
    assert facts["peak_bandwidth"] > 0
    assert set(facts["sandbox"]) == {"limits", "memory", "namespaces", "mounts", "landlock", "seccomp"}
    json.dumps(facts)


# -- broken kernels ---------------------------------------------------------------------------------------------------

BROKEN = {
    "compile": ("void vector_add(void) { return 1 + ; }", Status.COMPILE_ERROR, "k.c:2:.*error: expected"),
    "entry": ("void other(void) {}", Status.RUNTIME_ERROR, "undefined symbol: vector_add"),
    "wrong": (HONEST.replace("+ y", "- y"), Status.WRONG_RESULT, r"case n=\S+.*: z\[\d+\] is .*, not .* are wrong"),
    "lazy": (HONEST.replace("i < n", "i < n - 1"), Status.WRONG_RESULT, "1 of 1 elements|1 of .* elements are wrong"),
    "overrun": (HONEST.replace("i < n", "i <= n"), Status.WRONG_RESULT, "wrote outside z"),
    "vandal": (HONEST.replace("{ for", "{ ((float *)x)[0] = 7; for"), Status.WRONG_RESULT, "changed its input x"),
    "crash": (HONEST.replace("{ for", "{ *(int *)0 = 1; for"), Status.RUNTIME_ERROR, "was killed by SIGSEGV"),
    "exit": (
        "#include <unistd.h>\n" + HONEST.replace("{ for", "{ _exit(3); for"),
        Status.RUNTIME_ERROR,
        "ended the process with exit status 3",
    ),
    "raise": ("def custom_kernel(data):\n    raise KeyError('oh')\n", Status.RUNTIME_ERROR, "KeyError: 'oh'"),
    "syntax": ("def custom_kernel(data:\n", Status.COMPILE_ERROR, "SyntaxError"),
    "import": ("import nosuch\ndef custom_kernel(d): ...\n", Status.RUNTIME_ERROR, "No module named 'nosuch'"),
    "none": ("def custom_kernel(data):\n    pass\n", Status.WRONG_RESULT, "returned a builtins.NoneType for z"),
    "double": ("def custom_kernel(data):\n    return (data[0] + data[1]).astype('f8')\n", Status.WRONG_RESULT, "f.*8"),
    "environment": (
        "import os\ndef custom_kernel(data):\n    raise ValueError(sorted(os.environ))\n",
        Status.RUNTIME_ERROR,
        r"ValueError: \[(?!.*PYTEST)(?!.*USER).*'HOME'.*\]",
    ),
}


def test_every_broken_kernel_gets_its_status_and_a_reason(measure: Measure) -> None:
    """All at once, beside an honest one that must not suffer from their company."""
    honest, *broken = measure(HONEST, *(source for source, _, _ in BROKEN.values()))
    assert (honest.status, honest.reason) == (Status.OK, "")
    for (name, (_, status, reason)), measured in zip(BROKEN.items(), broken, strict=True):
        assert measured.status == status, f"{name}: {measured.status}: {measured.reason}"
        assert re.search(reason, measured.reason), f"{name}: {measured.reason}"
        assert measured.cases == ()
        assert json.loads(json.dumps(measured.to_json()))["speedup"] is None


@alone
def test_an_endless_kernel_is_stopped_in_time(measure: Measure) -> None:
    endless = HONEST.replace("{ for", "{ volatile int go = 1; while (go); for")
    (measured,) = measure(endless, effort=Effort(timeout=0.5))
    assert measured.status == Status.TIMEOUT
    assert "0.5 s" in measured.reason


def test_what_a_kernel_prints_is_kept(measure: Measure) -> None:
    (measured,) = measure("def custom_kernel(data):\n    print('hello', flush=True)\n    raise ValueError\n")
    assert "hello" in measured.output


# -- a broken machine -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["named", "$CC", "nothing installed"])
def test_a_missing_compiler_is_explained(
    addition: Problem, naive: Kernel, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    if how == "$CC":
        monkeypatch.setenv("CC", "nosuchcc")
    if how == "nothing installed":
        monkeypatch.setenv("PATH", str(tmp_path))
    device = CpuDevice("nosuchcc" if how == "named" else None)
    wanted = "gcc or clang or cc" if how == "nothing installed" else "nosuchcc"
    with pytest.raises(PresageError, match=f"no C compiler: {wanted} is not installed.*apt-get install gcc.*--cc PATH"):
        device.measure(addition, [naive], Effort(), quiet)


def test_a_language_it_does_not_speak_is_refused(addition: Problem) -> None:
    kernel = from_source("import triton\n", ".py", "k.py")
    with pytest.raises(PresageError, match=r"k\.py is triton; the cpu device runs c, numpy"):
        CpuDevice().measure(addition, [kernel], Effort(), quiet)


@pytest.mark.parametrize("source", [HONEST, MODULE], ids=["c", "module"])
def test_a_full_disk_is_the_device_s_fault(measure: Measure, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    device = CpuDevice()
    assert device.compiler.openmp in (True, False)  # asked once, while there is still room
    assert device.peaks.flops > 0
    monkeypatch.setattr(Path, "write_text", full)
    (measured,) = measure(source, device=device)
    assert measured.status == Status.DEVICE_FAULT
    assert "No space left on device" in measured.reason


def test_a_place_that_cannot_be_written_is_named(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice()
    assert device.peaks.flops > 0
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/tmp")
    with pytest.raises(PresageError, match="cannot write to /dev/null/tmp"):
        measure(HONEST, device=device)


@pytest.mark.parametrize("when", ["running", "stopped"])
def test_a_worker_killed_from_outside_is_tried_again(
    measure: Measure, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    killed: list[Child] = []
    window, resume = Child.window, Child.resume

    def kill(child: Child) -> None:
        killed.append(child)
        os.kill(child._process.pid, signal.SIGKILL)

    def fateful_window(self: Child, calls: int) -> object:
        if when == "stopped" and not killed:
            kill(self)
            select.select([self._answers], [], [], 60)  # until it is dead
        self._in_window = True
        return window(self, calls)

    def fateful_resume(self: Child) -> None:
        resume(self)
        if when == "running" and not killed and hasattr(self, "_in_window"):
            kill(self)

    monkeypatch.setattr(Child, "window", fateful_window)
    monkeypatch.setattr(Child, "resume", fateful_resume)
    (measured,) = measure(HONEST)
    assert len(killed) == 1
    assert (measured.status, measured.reason) == (Status.OK, "")


class AbsurdRoof:
    """A device that claims it could do anything in no less than a day."""

    def __init__(self) -> None:
        self.refreshed = 0

    def floor_ns(self, problem: Problem, case: Case) -> float:
        return 1e15

    impossible_ns = single_ns = floor_ns

    def refresh(self) -> None:
        self.refreshed += 1

    witness_ns = floor_ns


@alone
def test_a_time_under_the_floor_is_not_believed(measure: Measure) -> None:
    device = CpuDevice()
    roof = device.__dict__["peaks"] = AbsurdRoof()
    (measured,) = measure(HONEST, device=device)
    assert roof.refreshed == 2, "the peak gets a second look, and the kernel a second try, before anyone is accused"
    assert measured.status == Status.CHEATING
    assert "at this device's measured peak" in measured.reason


@alone
def test_peaks_of_a_busy_machine_accuse_nobody(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy kernel in the same rounds shows what the machine can do, whatever was measured before."""
    device = CpuDevice()
    rates = {size: rate / 50 for size, rate in device.peaks._values["bandwidth"].items()}
    monkeypatch.setattr(device.peaks, "_values", {**device.peaks._values, "bandwidth": rates})
    monkeypatch.setattr(device.peaks, "refresh", lambda: None)  # it was busy then, too
    monkeypatch.setattr(device.peaks, "_save", lambda: None)
    (measured,) = measure(HONEST, device=device)
    assert (measured.status, measured.reason) == (Status.OK, "")
    assert measured.cases[0].floor_ns < 1.5 * measured.cases[0].median.value


def test_nothing_is_left_behind(measure: Measure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = CpuDevice()
    assert device.peaks.flops > 0
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    measure(HONEST, BROKEN["crash"][0], BROKEN["compile"][0], device=device)
    assert list(tmp_path.iterdir()) == []
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1
