"""Windows whose calls wait for a signal, in real processes: when inputs are given and outputs are taken, and what
becomes of those who do not wait, or never answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from presage import Status
from presage.devices.child import Child, Handover, VerdictError
from presage.sandbox import processes

Begin = Callable[..., Child]

LOOKS = """
import os

def custom_kernel(data):
    seen = os.path.exists("inputs")
    open("outputs", "w").close()
    return (1,) if seen else "too early"
"""

WAITING = """
import os, sys, time
from presage.devices.worker import wire

watch, send = wire.watch, wire.send_token

def waiting(fd):
    frame = sys._getframe(1)
    meanwhile(fd, frame.f_locals["answers"], frame.f_locals["command"]["token"])
    watch(fd)

wire.watch = waiting

def custom_kernel(data):
    return 1
"""
"""A module that replaces how its worker waits."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[object]:
    yield processes.zygote("handover", ("numpy", "presage.devices.worker.main"))
    processes.rest("handover")


@pytest.fixture
def begin(zygote: processes.Zygote, tmp_path: Path) -> Iterator[Begin]:
    """Starts a worker that has loaded a source, or that calls nothing."""
    started = []

    def start(source: str = "", seconds: float = 60.0) -> Child:
        child = Child(zygote=zygote)
        started.append(child)
        child.wait_ready()
        child.give(60.0)
        path = Path(child.scratch, "k.py")
        path.write_text(source)
        child.command("load", kind="module" if source else "null", path=str(path))
        child.command("lay out", slots=[[]], inputs=[], parameters=[])
        child.give(seconds)
        return child

    yield start
    for child in started:
        child.kill()


def nothing() -> None:
    return


NOTHING = Handover(nothing, nothing)


def test_inputs_come_before_the_calls_and_outputs_are_taken_before_it_is_stopped(begin: Begin) -> None:
    child = begin(LOOKS)
    folder, events = Path(child.scratch), list[str]()

    def give() -> None:
        events.append("given")
        assert not child._frozen, "it would have to be resumed"
        time.sleep(0.2)
        assert not (folder / "outputs").exists(), "it waits"
        (folder / "inputs").touch()

    def take() -> None:
        events.append("taken")
        assert not child._frozen, "stopping would leave it time"
        assert (folder / "outputs").exists(), "its calls are done"

    window = child.window(1, Handover(give, take))
    assert events == ["given", "taken"]
    assert child._frozen
    assert window.answer["kinds"] == [{"type": "builtins.int"}]


@pytest.mark.parametrize("source", ["", LOOKS], ids=["nothing", "a module"])
def test_one_window_after_another_with_a_handover_or_without(begin: Begin, source: str) -> None:
    child = begin(source)
    for handover in (None, NOTHING, NOTHING, None):
        assert child.window(1, handover).calls == 1
    child.trusted = True
    child.window(1, NOTHING)
    assert not child._frozen


def test_a_child_is_given_the_time_for_which_it_waits(begin: Begin) -> None:
    child = begin(seconds=2.0)
    window = child.window(1, Handover(lambda: time.sleep(2.2), nothing))
    assert child.spent < 1.5
    assert window.parent_ns < 1.5e9


MEANWHILE = {
    "answers early": "def meanwhile(fd, answers, token):\n    wire.send(answers, {'token': token, 'ns': 0})",
    "says twice that it waits": "def meanwhile(fd, answers, token):\n    send(answers, token)",
    "writes garbage": "def meanwhile(fd, answers, token):\n    os.write(answers, b'\\xff' * 16)",
    "keeps its signal": "def meanwhile(fd, answers, token):\n    while True:\n        os.read(fd, 1 << 16)",
    "loses a byte": "def meanwhile(fd, answers, token):\n    os.read(fd, 1)",
    "ends": "def meanwhile(fd, answers, token):\n    os._exit(3)",
    "never waits": """
def meanwhile(fd, answers, token):
    pass

def counted(*arguments):
    sent.append(1)
    if len(sent) > 2:  # a window has two
        time.sleep(1000)
    send(*arguments)

sent, wire.send_token = [], counted
""",
}


@pytest.mark.parametrize(
    ("what", "status", "reason"),
    [
        ("answers early", Status.CHEATING, "forged"),
        ("says twice that it waits", Status.CHEATING, "forged"),
        ("writes garbage", Status.CHEATING, "forged"),
        ("keeps its signal", Status.TIMEOUT, "was still running"),
        ("loses a byte", Status.TIMEOUT, "was still running"),
        ("ends", Status.RUNTIME_ERROR, "exit status 3"),
    ],
)
def test_what_does_not_wait_for_its_signal_is_ended(begin: Begin, what: str, status: Status, reason: str) -> None:
    child = begin(WAITING + MEANWHILE[what], seconds=1.0 if status is Status.TIMEOUT else 30.0)
    taken = []
    with pytest.raises(VerdictError, match=reason) as verdict:
        child.window(1, Handover(nothing, lambda: taken.append(1)))
    assert verdict.value.status is status
    assert taken == []
    _refuse_to_go_on(child)


def test_what_never_says_that_it_waits_gets_no_inputs(begin: Begin) -> None:
    """It replaces how messages are sent when its first window is done."""
    child = begin(WAITING + MEANWHILE["never waits"])
    child.window(1, NOTHING)
    child.give(1.0)
    given = []
    with pytest.raises(VerdictError, match="was still running after 1 s") as verdict:
        child.window(1, Handover(lambda: given.append(1), nothing))
    assert verdict.value.status is Status.TIMEOUT
    assert given == []


def test_a_call_that_fails_is_reported_and_the_child_goes_on(begin: Begin) -> None:
    child = begin("def custom_kernel(data):\n    raise ValueError('not like this')\n")
    for _ in range(2):
        with pytest.raises(VerdictError, match="not like this") as verdict:
            child.window(1, NOTHING)
        assert verdict.value.status is Status.RUNTIME_ERROR
        child.command("forget")


def test_a_child_that_dies_in_a_call(begin: Begin) -> None:
    child = begin("import os\ndef custom_kernel(data):\n    os._exit(3)\n")
    with pytest.raises(VerdictError, match="exit status 3"):
        child.window(1, NOTHING)


@pytest.mark.parametrize("failing", ["give", "take"])
def test_when_the_parent_fails_no_child_is_left_that_waits(begin: Begin, failing: str) -> None:
    child = begin()

    def fail() -> None:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        child.window(1, Handover(fail, nothing) if failing == "give" else Handover(nothing, fail))
    _refuse_to_go_on(child)


def _refuse_to_go_on(child: Child) -> None:
    child.give(0.5)
    with pytest.raises(VerdictError):
        child.command("forget")
