"""A problem from elsewhere at smaller sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import load_problem
from presage.problems.external import ExternalProblem
from presage.problems.smaller import halved, narrow, smaller

KERNELBENCH = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x

ä = batch_size = 128  # größer
height, width = 224, 225
scale, name = 0.5, "x"

def get_inputs():
    size = 64
    return [torch.rand(batch_size, height, width, size)]

def get_init_inputs():
    return []
"""
ONE_FILE = """
def reference(x):
    return x

def inputs(rows, columns, scale):
    return x

cases = [{"rows": 4096, "columns": 48, "scale": 0.5}]
"""


def read(path: Path, text: str) -> list[ExternalProblem]:
    path.write_text(text)
    problem = load_problem(path)
    assert isinstance(problem, ExternalProblem)
    return list(smaller(problem))


def test_numbers_at_the_top_of_a_file_are_halved(tmp_path: Path) -> None:
    sizes = read(tmp_path / "mine.py", KERNELBENCH)
    texts = [each.files["reference.py"] for each in sizes]
    assert texts[-1] == KERNELBENCH
    assert texts[0] == KERNELBENCH.replace("= 128", "= 8").replace("224, 225", "7, 15")
    assert KERNELBENCH.replace("224, 225", "112, 113") in texts
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        KERNELBENCH.replace("ä = batch_size = 128  # größer\nheight, width = 224, 225\n", "")
        .replace("batch_size, height, width, size", "128, 224, 3, dtype=torch.float16")
        .replace("return []", "return [224, 8]")
        .replace("size = 64\n", ""),
        'def reference(x):\n    return x\n\ndef inputs():\n    """ä 512"""\n    return rand(128, 224), 0.5\n',
        "def reference(x):\n    return x[:512]\n\nN, M = 128, 224\ndef inputs():\n    return rand(N, M, 1024)\n",
    ],
    ids=["KernelBench", "one file", "one file, at its top"],
)
def test_numbers_where_inputs_are_made_are_halved_if_none_are_elsewhere(tmp_path: Path, text: str) -> None:
    sizes = read(tmp_path / "mine.py", text)
    assert sizes[0].files["reference.py"] == text.replace("128", "8").replace("224", "7")
    assert sizes[-1].files["reference.py"] == text
    problem = load_problem(tmp_path / "mine.py")
    assert isinstance(problem, ExternalProblem)
    assert next(narrow(problem)).files["reference.py"] == text.replace("128", "16")


def test_cases_of_one_file_are_halved(tmp_path: Path) -> None:
    cases = [dict(each.checks[0].dims) for each in read(tmp_path / "mine.py", ONE_FILE)]
    assert cases[0] == {"rows": 8, "columns": 6, "scale": 0.5}
    assert {"rows": 64, "columns": 48, "scale": 0.5} in cases, "the largest shrink first"
    assert cases[-1] == {"rows": 4096, "columns": 48, "scale": 0.5}
    assert [case["rows"] for case in cases] == sorted(case["rows"] for case in cases)


def test_all_cases_shrink_and_one_number_may_stay(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    several = '{"rows": 333, "columns": 5120, "scale": 0.5}]'
    sizes = read(path, ONE_FILE.replace("0.5}]", "0.5}, " + several))
    assert [case.dims["columns"] for case in sizes[3].checks] == [48, 40]
    problem = load_problem(path)
    assert isinstance(problem, ExternalProblem)
    dims = [[(case.dims["rows"], case.dims["columns"]) for case in each.checks] for each in narrow(problem)]
    assert dims == [[(16, 48), (11, 5120)], [(4096, 12), (333, 10)]]
    path.write_text(KERNELBENCH)
    problem = load_problem(path)
    assert isinstance(problem, ExternalProblem)
    assert [each.files["reference.py"] for each in narrow(problem)] == [
        KERNELBENCH.replace("= 128", f"= {size}").replace("224, 225", f"{height}, {width}")
        for size, height, width in ((16, 14, 225), (16, 224, 15), (128, 14, 15))
    ]


@given(st.integers(0, 1 << 20), st.integers(1, 4096))
def test_halving_keeps_what_divides(value: int, cap: int) -> None:
    found = halved(value, cap)
    if found % 2 == 0:
        assert found == value or (value % found == 0 and 2 * found > cap)
    assert found <= cap or (found % 2 and found <= 16)


@given(st.integers(0, 1 << 19), st.integers(1, 4096))
def test_what_is_odd_stays_odd_and_as_much_smaller(half: int, cap: int) -> None:
    found = halved(2 * half + 1, cap)
    assert found % 2
    assert (half == 0) or found > 1


@pytest.mark.parametrize("value", [True, 0.5, "128", None, [128]])
def test_what_is_no_whole_number_stays(value: object) -> None:
    assert halved(value, 8) == value
