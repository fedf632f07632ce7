"""`import presage`: what it offers by name, what each verb takes and gives back, and how quick it is."""

from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import presage

ROUGH = presage.Effort(precision=math.inf, case_seconds=1.0, rounds=2)
VERBS = [name for name in presage.__all__ if name.islower()]


def test_every_name_is_there_and_says_what_it_is() -> None:
    assert presage.__all__ == sorted(presage.__all__)
    for name in presage.__all__:
        thing = getattr(presage, name)
        assert inspect.getdoc(thing), f"{name} has no docstring"
        assert name in dir(presage)
    with pytest.raises(AttributeError, match="has no attribute 'measures'"):
        _ = presage.measures


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_typed_and_says_what_is_raised(verb: str) -> None:
    function = getattr(presage, verb)
    signature = inspect.signature(function)
    assert signature.return_annotation is not signature.empty
    assert all(each.annotation is not each.empty for each in signature.parameters.values())
    assert "Raises PresageError" in inspect.getdoc(function)


@pytest.mark.parametrize("name", ["", "x" * 300, "x" * 300 + ".c", "a\0b"])
def test_a_name_that_can_be_none_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(presage.PresageError, match="problem"):
        presage.load_problem(name)
    with pytest.raises(presage.PresageError, match=r"problem|no file|no recorded kernel"):
        presage.forecast(name, "naive.cu")
    with pytest.raises(presage.PresageError, match="kernel"):
        presage.forecast("softmax", name)


def test_the_import_loads_nothing_heavy() -> None:
    code = "import sys, presage; print(sorted({'numpy', 'torch', 'lightgbm', 'pyarrow'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "[]\n"


def test_type_checkers_see_the_same_names() -> None:
    """What __getattr__ finds is also imported for type checkers."""
    source = Path(str(presage.__file__)).read_text()
    typed = source[source.index("if TYPE_CHECKING") : source.index("__version__")]
    for name in presage.__all__:
        assert name in typed.replace(",", " ").replace("(", " ").split(), name
    assert Path(str(presage.__file__)).with_name("py.typed").exists()


def test_a_family_gives_each_of_its_configurations(tmp_path: Path) -> None:
    file = tmp_path / "twice.c"
    file.write_text(
        "// presage: entry vector_add\n// presage: tune A = 1, 2, 3\n// presage: tune B = 1, 2\n"
        "// presage: where A + B < 5\nvoid vector_add(void) {}\n"
    )
    kernels = presage.load_family("vector_add", file)
    assert [tuple(kernel.values.values()) for kernel in kernels] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    assert kernels[0] == presage.load_kernel("vector_add", file)
    assert [kernel.values for kernel in presage.load_family("vector_add", f"{file}@A=3")] == [{"A": 3, "B": 1}]
    assert presage.load_family("softmax", "naive.cu") == [presage.load_kernel("softmax", "naive.cu")]
    with pytest.raises(presage.PresageError, match="has no tunable 'C'"):
        presage.load_family("vector_add", f"{file}@C=1")
    with pytest.raises(presage.PresageError, match="A cannot be 9"):
        presage.load_family("vector_add", f"{file}@A=9")


def test_names_paths_and_objects_are_the_same(tmp_path: Path) -> None:
    problem = presage.load_problem("softmax")
    by_name = presage.load_kernel("softmax", "naive.cu")
    assert presage.load_kernel(problem, by_name) is by_name
    file = tmp_path / "mine.cu"
    file.write_text(by_name.source)
    assert presage.load_kernel(problem, file).hash == by_name.hash
    several = presage.forecast(problem, [by_name, "naive.cu", file])
    means = [each.forecast.mean() for each in several if each.forecast]
    assert means == [means[0]] * 3
    alone = presage.forecast("softmax", "naive.cu")
    assert isinstance(alone, presage.Prediction)
    assert alone.forecast
    assert alone.forecast.mean() == means[0]


def test_a_forecaster_and_an_anchor_can_be_objects() -> None:
    class Sure(presage.Forecaster):
        def forecast(self, task: presage.Task, candidates: Sequence[presage.Candidate]) -> list[presage.Prediction]:
            assert task.anchor.kernel.hash == presage.load_kernel("softmax", "block_row.cu").hash
            doubled = presage.Forecast.from_quantiles([0.1, 0.5, 0.9], [0.9, 1.0, 1.1])
            return [presage.Prediction(doubled) for _ in candidates]

    anchor = presage.load_kernel("softmax", "block_row.cu")
    [said] = presage.forecast("softmax", ["naive.cu"], forecaster=Sure(), anchor=anchor)
    assert said.forecast
    assert said.forecast.mean() == pytest.approx(1.0, abs=0.05)


def test_a_recording_is_loaded_and_a_forecaster_judged_on_it() -> None:
    recording = presage.load_recording("cpu")
    found = presage.evaluate("uniform", recording=recording, suites=["ranking"])
    assert isinstance(found, presage.Evaluation)
    assert found.recording == recording.name
    assert found.numbers


def test_measuring_gives_one_or_several(tmp_path: Path) -> None:
    file = tmp_path / "scale.c"
    file.write_text(
        "// presage: entry scale\n// presage: input x = float32[n]\n// presage: output y = float32[n]\n"
        "// presage: case n = 4096\n// presage: tune STEP = 2, 3\n"
        "void scale(const float *x, float *y, int n) {\n    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i];\n}\n"
    )
    one = presage.measure(file, f"{file}@STEP=3", effort=ROUGH)
    assert isinstance(one, presage.Measurement)
    assert one.speedup
    problem = presage.load_problem(file)
    device = presage.load_device("cpu")
    try:
        several = presage.measure(
            problem, [presage.load_kernel(problem, file), f"{file}@STEP=3"], device=device, anchor="none", effort=ROUGH
        )
    finally:
        device.close()
    assert [each.status for each in several] == [presage.Status.OK] * 2
    assert [each.speedup for each in several] == [None, None]


def mistakes() -> dict[str, object]:
    return {
        "there is no problem 'sofmax'; did you mean softmax": lambda: presage.inspect("sofmax", "naive.cu"),
        "there is no kernel file missing.cu": lambda: presage.forecast("softmax", "missing.cu"),
        "there is no forecaster 'lerned'": lambda: presage.forecast("softmax", "naive.cu", forecaster="lerned"),
        "name one kernel or more": lambda: presage.forecast("softmax", []),
        "there is no device 'gpu'": lambda: presage.measure("softmax", "naive.c", device="gpu"),
        "there is no recording 'nothing'": lambda: presage.load_recording("nothing"),
        "there is no suite 'speed'": lambda: presage.evaluate("uniform", suites=["speed"]),
    }


@pytest.mark.parametrize("message", mistakes())
def test_a_mistake_is_said_in_words(message: str) -> None:
    with pytest.raises(presage.PresageError, match=message):
        mistakes()[message]()  # type: ignore[operator]
