"""Kernel files as a person names them: paths, settings of tunables, and what is said when they cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from presage import PresageError
from presage.kernels.kernel import from_source, read, split_spec

FAMILY = """\
// presage: problem softmax
// presage: entry f
// presage: tune THREADS = 1, 2, 4
// presage: tune KIND = fast, exact
// presage: where not (THREADS == 1 and KIND == 'fast')
void f(void) {}
"""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    file = tmp_path / "rows.c"
    file.write_text(FAMILY)
    return file


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ("", {"THREADS": 1, "KIND": "exact"}),
        ("@THREADS=4", {"THREADS": 4, "KIND": "fast"}),
        ("@KIND=fast", {"THREADS": 2, "KIND": "fast"}),
        ("@THREADS=2,KIND=exact", {"THREADS": 2, "KIND": "exact"}),
    ],
)
def test_settings_choose_a_configuration(family: Path, settings: str, values: dict[str, object]) -> None:
    kernel = read(f"{family}{settings}")
    assert kernel.values == values
    assert kernel.name == f"{family}@THREADS={values['THREADS']},KIND={values['KIND']}"
    assert f"#define THREADS {values['THREADS']}\n#define KIND {values['KIND']}\n" in kernel.source
    assert not kernel.is_family
    assert (kernel.language, kernel.is_bare, kernel.header.problem) == ("c", True, "softmax")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("@BLOCK=4", "has no tunable 'BLOCK'; it has: THREADS, KIND"),
        ("@THREADS=3", "THREADS cannot be 3; it can be: 1, 2, 4"),
        ("@THREADS=", "'THREADS=' in '.*' is no setting; write PATH@NAME=VALUE,NAME=VALUE"),
        ("@THREADS=1,KIND", "'KIND' in '.*' is no setting; write PATH@NAME=VALUE"),
        ("@THREADS=1,KIND=fast", "no configuration has THREADS=1, KIND=fast and satisfies its constraints: not"),
    ],
)
def test_bad_settings_are_explained(family: Path, settings: str, complaint: str) -> None:
    with pytest.raises(PresageError, match=complaint):
        read(f"{family}{settings}")


def test_a_concrete_kernel_has_nothing_to_set(tmp_path: Path) -> None:
    file = tmp_path / "naive.c"
    file.write_text("// presage: entry f\nvoid f(void) {}\n")
    assert read(file).values == {}
    with pytest.raises(PresageError, match="has no tunables, so nothing can be set in it"):
        read(f"{file}@THREADS=1")


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("k.c", b"// presage: entry f\n\xff\xfe\x00", r"k\.c is not UTF-8 text \(byte 20\); save it as UTF-8"),
        ("k.so", b"\x7fELF", "'.so' is no kernel file; kernels end in .c, .cu, .py"),
        ("k", b"text", "'' is no kernel file"),
        ("k.c", b"x" * (1 << 20) + b"y", "has more than 1048576 bytes"),
        ("k.c", b"", r"k\.c:1: the header declares no entry"),
        ("k.c", b"// presage: entry f\n// presage: tune A = 0\n// presage: where 1 % A == 0\n", "'1 % A == 0' divides"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(tmp_path: Path, name: str, data: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(PresageError, match=complaint):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("nowhere/k.c", "there is no kernel file nowhere/k.c"),
        ("nowhere/k.c@A=1", "there is no kernel file nowhere/k.c"),
        ("/", "cannot read /: Is a directory"),
        ("/dev/zero", "/dev/zero has more than 1048576 bytes"),
        ("/dev/null/k.c", "cannot read /dev/null/k.c: Not a directory"),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(path: str, complaint: str) -> None:
    with pytest.raises(PresageError, match=re.escape(complaint)):
        read(path)


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("a.c", ("a.c", {})),
        ("a.c@A=1,B=0.5,C=half", ("a.c", {"A": 1, "B": 0.5, "C": "half"})),
        ("user@host/a.c", ("user@host/a.c", {})),
        ("user@host/a.c@A=1", ("user@host/a.c", {"A": 1})),
        ("dir@x=1/a.c", ("dir@x=1/a.c", {})),
    ],
)
def test_split_spec(spec: str, parts: tuple[str, dict[str, object]]) -> None:
    assert split_spec(spec) == parts


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("import numpy as np\n", "numpy"),
        ("x = 1\n", "numpy"),
        ("import torch\n", "torch"),
        ("import torch\nimport triton\nimport triton.language as tl\n", "triton"),
        ("def f():\n    from torch import nn\n", "torch"),
        ("s = 'import torch'\n", "numpy"),
        ("import torch, triton, triton.language as tl\n", "triton"),
        ("import os, torch.nn as nn\n", "torch"),
    ],
)
def test_a_module_s_language_is_what_it_imports(source: str, language: str) -> None:
    kernel = from_source(source, ".py", "k.py")
    assert (kernel.language, kernel.is_bare) == (language, False)


def test_configurations_differ_in_identity_and_comments_do_not() -> None:
    family = from_source(FAMILY, ".c", "k.c")
    kernels = [family.render(values) for values in family.configurations()]
    assert len({kernel.hash for kernel in kernels}) == len(kernels) == 5
    remarked = from_source(FAMILY + "// twice as fast\n", ".c", "elsewhere.c")
    assert remarked.render().hash == family.render().hash


def test_the_normalised_source_has_no_comments() -> None:
    assert from_source(FAMILY, ".c", "k.c").render({"THREADS": 2}).normalised == (
        "// presage: entry f\n#define THREADS 2\n#define KIND fast\nvoid f(void){}"
    )


def test_a_mark_of_the_byte_order_is_not_part_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "k.c"
    path.write_bytes(b"\xef\xbb\xbf" + FAMILY.encode())
    assert read(str(path)).values == {"THREADS": 1, "KIND": "exact"}


def test_a_zero_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.c"
    path.write_bytes(FAMILY.encode() + b"\0")
    with pytest.raises(PresageError, match="has a zero byte in it"):
        read(str(path))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("x = '\ud800'", r"k\.py holds half of a surrogate pair \(character 6\), which no file can"),
        ("x" * (2 << 20), "has more than 1048576 bytes"),
    ],
)
def test_text_that_can_be_no_file_is_refused_at_once(source: str, complaint: str) -> None:
    with pytest.raises(PresageError, match=complaint):
        from_source(source, ".py", "k.py")


ADDS = "import torch\ndef custom_kernel(data):\n    return torch.add(*data)\n"
HIDDEN = "# +AAo-def custom_kernel(data): return torch.mul(*data)\n"


@pytest.mark.parametrize(
    "first",
    [
        "# coding: utf-7\n",
        "# -*- coding: UTF_7 -*-\n",
        "\n \t#!vim:set fileencoding=utf-7 :\n",
        "#\r#coding=utf-7\r",
        "# coding: utf-16\n",
        "# coding: latin-1\n# \xe9\n",
    ],
)
def test_comments_of_a_module_hold_no_code(first: str) -> None:
    """Python reads a file in the encoding that a comment declares, in which another comment can be code. Whoever reads
    it as UTF-8 sees another kernel, with the same hash."""
    with pytest.raises(PresageError, match=r"k\.py declares the encoding .*; save it as UTF-8"):
        from_source(first + ADDS + HIDDEN, ".py", "k.py")


@pytest.mark.parametrize(
    "first", ["# coding: utf-8\n# \xe9\n", "# -*- coding: utf8 -*-\n", "# coding: latin-1\n", "#\n#\n# coding: utf-7\n"]
)
def test_an_encoding_that_changes_nothing_may_be_declared(first: str) -> None:
    assert from_source(first + ADDS, ".py", "k.py").language == "torch"
