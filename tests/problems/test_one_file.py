"""Problems of one's own in one file: a Python function with its inputs, or a bare kernel that declares its arrays."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from presage import PresageError
from presage.problems import registry
from presage.problems.compare import difference, solve
from presage.problems.external import ONE_FILE, ExternalProblem
from presage.problems.kernel_file import KernelProblem
from presage.problems.sampler import Sampler

FUNCTION = '''
"""A file."""
import torch

def reference(x, y):
    """Adds
    two tensors."""
    return x + y

def inputs(n=16):
    return torch.randn(n), torch.randn(n)
'''
KERNEL = """\
// presage: entry scale
// presage: tune STEP = 1, 2
// presage: input x = float32[n, 2 * m]
// presage: input at = int32[n] below n
// presage: output y = float16[n]
// presage: output count = int64[1]
// presage: case n = 4, m = 3
// presage: case n = 8, m = 1
void scale(const float *x, const int *at, void *y, long *count, int n, int m) { }
"""


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


# -- a function -------------------------------------------------------------------------------------------------------


def test_a_function_with_inputs_is_a_problem(tmp_path: Path) -> None:
    problem = registry.get(written(tmp_path, FUNCTION))
    assert isinstance(problem, ExternalProblem)
    assert (problem.name, problem.convention, problem.summary) == ("mine", ONE_FILE, "Adds two tensors.")
    assert [case.name for case in problem.checks] == [case.name for case in problem.timed["gpu"]] == ["as written"]
    assert "def custom_kernel(data):\n    return reference(*data)" in problem.reference_kernel().source


@pytest.mark.parametrize(
    ("taken", "cases", "said"),
    [
        ("n", "", 'inputs needs n; write cases = [{"n": 1024}]'),
        ("n, *, kind, width=4", "cases = [{'n': 4, 'width': 1}]", "inputs needs kind"),
        ("n, *, kind", "cases = [{'n': 4, 'kind': 1}]", ""),
        ("n, **more", "cases = [{'n': 4, 'm': 4}]", ""),
    ],
)
def test_cases_have_the_arguments_of_inputs(tmp_path: Path, taken: str, cases: str, said: str) -> None:
    path = written(tmp_path, FUNCTION.replace("inputs(n=16)", f"inputs({taken})") + f"\n{cases}\n")
    if not said:
        assert registry.get(path).checks
        return
    with pytest.raises(PresageError, match=re.escape(said)):
        registry.get(path)


def test_it_may_say_at_which_sizes_and_how_exactly(tmp_path: Path) -> None:
    text = f'{FUNCTION}\ncases = [{{"n": 4}}, {{"n": 64}}, {{"n": 4}}]\ntolerance = 0.02\n'
    problem = registry.get(written(tmp_path, text))
    assert [case.name for case in problem.timed["cpu"]] == ["n=4", "n=64"]
    tolerance = problem.tolerance(problem.checks[0])
    assert (tolerance.relative, tolerance.reason) == (0.02, "the file's own: 0.02 absolute and relative")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("cases = [1, 2]", "'cases' is no list of arguments for inputs"),
        ("cases = [{1: 2}]", "'cases' is no list of arguments for inputs"),
        ("cases = [{'n': b'x'}]", "'cases' is no list of arguments for inputs"),
        pytest.param(f"z = {'-' * 5000}1", "is no Python", id="deep"),
        ("cases = []", "'cases' is no list of arguments for inputs"),
        ("cases = make()", "mine.py:12: 'cases' must be written out"),
        ("tolerance = 3", "'tolerance' is no number between 0 and 1"),
        ("cases = [{'n': 4}, {'m': 4}]", "a case has 'm', which inputs(n) does not take"),
    ],
)
def test_what_it_says_is_read_and_not_run(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(PresageError, match=re.escape(said)):
        registry.get(written(tmp_path, f"{FUNCTION}{more}\n"))


def test_a_file_that_is_no_problem_is_told_what_one_defines(tmp_path: Path) -> None:
    with pytest.raises(PresageError, match=r"a problem of your own defines reference\(…\) and inputs\(\)"):
        registry.get(written(tmp_path, FUNCTION.replace("def inputs", "def example")))


# -- a kernel ---------------------------------------------------------------------------------------------------------


def test_a_kernel_that_declares_its_arrays_is_a_problem(tmp_path: Path) -> None:
    problem = registry.get(path := written(tmp_path, KERNEL, "mine.c"))
    assert isinstance(problem, KernelProblem)
    assert problem.signature("f") == (
        "void f(const float *x, const int32_t *at, half *y, int64_t *count, int n, int m)"
    )
    small, large = problem.timed["cpu"]
    assert [problem.shape(array, large) for array in problem.inputs] == [(8, 2), (8,)]
    assert problem.cost(small).bytes == 2 * 4 + 8, "only outputs must be written"
    x, at = problem.make_inputs(small, Sampler(1))
    assert (x.dtype, x.shape, at.dtype) == (np.float32, (4, 6), np.int32)
    assert 0 <= at.min() <= at.max() < 4
    assert problem.reference_kernel().values == {"STEP": 1}
    assert registry.anchor(problem, "cpu").hash == problem.reference_kernel().hash  # type: ignore[union-attr]
    assert [kernel.name for kernel in registry.seed_kernels(problem)] == [path]
    assert problem.draw_case(random.Random(0)) in problem.checks


def test_its_first_configuration_has_the_right_answer(tmp_path: Path) -> None:
    problem = registry.get(written(tmp_path, KERNEL, "mine.c"))
    assert isinstance(problem, KernelProblem)
    case = problem.checks[0]
    right = np.array([1.0, -2.0, 0.0, 4.0], np.float16), np.array([7])
    asked = problem.answered_by(lambda case, inputs: right)
    answer = solve(asked, case, problem.make_inputs(case, Sampler(1)))
    assert difference(asked, case, answer, right) is None
    assert difference(asked, case, answer, (right[0] + np.float16(0.01), right[1])) is None, "half precision"
    assert difference(asked, case, answer, (right[0] + np.float16(0.2), right[1])) is not None
    assert difference(asked, case, answer, (right[0], right[1] + 1)) is not None, "integers are equal"
    (note,) = problem.notes.values()
    assert note == (
        "right is what agrees with the first configuration, mine.c@STEP=1, within 0.01 of each value and of the"
        " typical one"
    )


def test_a_kernel_that_names_a_problem_stands_for_that(tmp_path: Path) -> None:
    text = "// presage: problem softmax\n// presage: entry f\nvoid f(void) { }\n"
    assert registry.get(written(tmp_path, text, "mine.c")) is registry.get("softmax")


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        ("output y = float16[n]", "", "names no problem and declares no output"),
        ("float32[n, 2 * m]", "float32", "'input x' has no type and shape; write '// presage: input x = float32"),
        ("float32[n, 2 * m]", "quad[n]", "x is quad; types are float32"),
        ("float32[n, 2 * m]", "float32[k]", "the shape of x cannot be worked out"),
        ("float32[n, 2 * m]", "float32[n - 4]", r"x has the shape \[0\]; sizes are 1 or more"),
        ("output y", "output x", "array 'x' is declared twice"),
        ("n = 8, m = 1", "n = 8", "names other sizes than the first; name n, m, in this order"),
        ("n = 8, m = 1", "n = 8, m = some", "'m = some' is no size; write '// presage: case rows = 4096"),
    ],
)
def test_a_header_that_states_no_problem_is_explained(tmp_path: Path, line: str, instead: str, said: str) -> None:
    text = KERNEL.replace(line, instead)
    text = "\n".join(each for each in text.split("\n") if not each.endswith("presage: ") and "count =" not in each)
    with pytest.raises(PresageError, match=said):
        registry.get(written(tmp_path, text, "mine.c"))


def test_answers_are_compared_on_a_gpu_s_tensors_alike(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from presage.problems.on_torch import TorchSampler, namespace

    problem = registry.get(written(tmp_path, KERNEL, "mine.c"))
    assert isinstance(problem, KernelProblem)
    case = problem.checks[0]
    right = torch.tensor([1.0, -2.0, 0.0, 4.0], dtype=torch.float16), torch.tensor([7])
    seen = []
    asked = problem.answered_by(lambda case, inputs: seen.append([x.dtype for x in inputs]) or right)
    inputs = problem.make_inputs(case, TorchSampler(1, device="cpu"))
    answer = solve(asked, case, inputs, namespace)
    assert seen == [[torch.float32, torch.int32]]
    assert difference(asked, case, answer, right, namespace) is None
    assert difference(asked, case, answer, (right[0] + 0.2, right[1]), namespace) is not None
    assert difference(asked, case, answer, (right[0], right[1] + 1), namespace) is not None
