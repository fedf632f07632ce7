"""Tasks in GPU MODE's form, measured."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from elsewhere import REFERENCE, measure, needs_torch
from sweeps import others_in_sweeps

from presage import Device, Status
from presage.problems import registry

pytestmark = pytest.mark.slow
SUBMISSIONS = {
    "into the room offered": (
        """
        from task import input_t, output_t

        def custom_kernel(data: input_t) -> output_t:
            a, more, output = data
            assert more["shape"] == tuple(a.shape)
            output.copy_(more["other"]).mul_(more["scale"]).add_(a)
            return output
        """,
        Status.OK,
        "",
    ),
    "into its own": (
        "def custom_kernel(data):\n    return data[0] + data[1]['scale'] * data[1]['other']",
        Status.OK,
        "",
    ),
    "wrong": ("def custom_kernel(data):\n    return data[0]\n", Status.WRONG_RESULT, "mismatch found: ERROR at"),
    "in place": (
        "def custom_kernel(data):\n    return data[0].add_(data[1]['other'], alpha=data[1]['scale']).clone()",
        Status.WRONG_RESULT,
        r"changed its input data\[0\]",
    ),
    "returns nothing": ("def custom_kernel(data):\n    ...\n", Status.WRONG_RESULT, "NoneType for output"),
}


@needs_torch
def test_gpu_mode_submissions(device: Device, task: Path) -> None:
    measured = measure(device, task, {name: textwrap.dedent(source) for name, (source, _, _) in SUBMISSIONS.items()})
    assert (measured["reference"].status, measured["reference"].reason) == (Status.OK, "")
    for name, (_, status, reason) in SUBMISSIONS.items():
        assert measured[name].status is status, (name, measured[name])
        assert re.search(reason, measured[name].reason), (name, measured[name].reason)
    assert [case.case for case in measured["into its own"].cases] == ["size=128 scale=3"]


@needs_torch
def test_what_only_offers_room_is_found_and_not_counted(device: Device, task: Path) -> None:
    with device.posed(registry.get(str(task)), 60.0) as problem:
        assert [(array.name, array.written) for array in problem.inputs] == [
            ("data[0]", False),
            ("data[1]['other']", False),
            ("data[2]", True),
        ]
        (case,) = problem.timed[device.kind]
        assert problem.bytes(case) == 3 * 128 * 128 * 4


CHECKS = {
    "a text": ("'' if output.equal(ref_kernel(data)) else 'no'", ": no"),
    "a truth value": ("bool(output.equal(ref_kernel(data)))", "check_implementation refuses it"),
}


@needs_torch
@pytest.mark.parametrize(("verdict", "said"), others_in_sweeps(CHECKS, "a text"))
def test_a_check_that_says_only_one_thing(device: Device, task: Path, verdict: str, said: str) -> None:
    """What is wrong, if anything, as in an older form; or whether it is right."""
    check = f"def check_implementation(data, output):\n    return {verdict}\n"
    (task / "reference.py").write_text(REFERENCE.replace("check_implementation = ", "_ = ") + check)
    measured = measure(device, task, {"wrong": SUBMISSIONS["wrong"][0]})
    assert [m.status for m in measured.values()] == [Status.OK, Status.WRONG_RESULT]
    assert measured["wrong"].reason.endswith(said)


@needs_torch
def test_a_task_that_names_the_gpu_is_examined_on_a_cpu(cpu: Device, task: Path) -> None:
    named = REFERENCE.replace("Generator()", "Generator(device='cuda')").replace("size, g", "size, device='cuda', g")
    (task / "reference.py").write_text(named.replace("empty(size, size)", "empty(size, size, device='cuda')"))
    measured = measure(cpu, task, {"wrong": SUBMISSIONS["wrong"][0]})
    assert [m.status for m in measured.values()] == [Status.OK, Status.WRONG_RESULT]
