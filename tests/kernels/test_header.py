"""Headers: what they declare, what is said about each mistake, and that rendering moves no line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.kernels.header import HeaderError, Launch, parse, render
from presage.kernels.kernel import from_source

FAMILY = """\
// presage: problem softmax
// presage: entry first
// presage: grid cdiv(n, BLOCK), min(rows, 65535), 2
// presage: block BLOCK
// presage: shared 4 * BLOCK
//   presage:   entry   second
// presage: tune BLOCK = 64, 128, 256
// presage: tune UNROLL = 1, 2, 4
// presage: tune KIND = float, half
// presage: where BLOCK % (64 * UNROLL) == 0
// presage: scratch partial = 4 * rows
int f(void) { return BLOCK; } // line 12
"""


def test_everything_that_can_be_declared() -> None:
    header = parse(FAMILY, "k.cu")
    assert header.problem == "softmax"
    assert header.launches == (
        Launch("first", ("cdiv(n, BLOCK)", "min(rows, 65535)", "2"), ("BLOCK",), "4 * BLOCK"),
        Launch("second"),
    )
    assert header.tunables == {"BLOCK": (64, 128, 256), "UNROLL": (1, 2, 4), "KIND": ("float", "half")}
    assert header.constraints == ("BLOCK % (64 * UNROLL) == 0",)
    assert header.scratch == {"partial": "4 * rows"}


def test_a_file_without_a_header_declares_nothing() -> None:
    header = parse("import numpy as np  # presage is not addressed here\n", "k.py")
    assert (header.problem, header.launches, header.tunables) == (None, (), {})


@pytest.mark.parametrize(
    ("line", "complaint", "mend"),
    [
        ("tuen A = 1", "unknown directive 'tuen'", "use one of: problem, entry, tune, where, grid, block"),
        ("", "unknown directive ''", "use one of: problem, entry"),
        ("tune", "'tune' says nothing", "write '// presage: tune BLOCK = 64, 128, 256'"),
        ("entry", "'entry' says nothing", "write '// presage: entry softmax_rows'"),
        ("where", "'where' says nothing", "write '// presage: where BLOCK % UNROLL == 0'"),
        ("tune A", "tunable 'A' has no values", "write '// presage: tune BLOCK = 64, 128, 256'"),
        ("tune A =", "tunable 'A' has no values", "write '// presage: tune BLOCK"),
        ("tune A = ,", "tunable 'A' has no values", "write '// presage: tune BLOCK"),
        ("tune = 1, 2", "'' is not a name", "write '// presage: tune BLOCK"),
        ("tune 2A = 1, 2", "'2A' is not a name", "write '// presage: tune BLOCK"),
        ("tune A B = 1", "'A B' is not a name", "write '// presage: tune BLOCK"),
        ("tune A = 1, 2, 1", "tunable 'A' repeats a value", "list each value once"),
        ("tune B = 3", "tunable 'B' is declared twice", "keep one of the two lines"),
        ("where B +", "'B +' is not an expression", "mend the expression"),
        ("where B ** 2 > 1", "'B ** 2 > 1' uses something that is not allowed", "mend the expression"),
        ("where C == 1", "constraint uses 'C', which is no tunable", "use the tunables: B"),
        ("problem two words", "'two words' is not a name", "write '// presage: problem softmax'"),
        ("entry a-b", "'a-b' is not a name", "write '// presage: entry softmax_rows'"),
        ("grid 1, 2, 3, 4", "4 dimensions", "a launch has one to three, separated by commas"),
        ("grid n /", "'n /' is not an expression", "mend the expression"),
        ("block 1,", "'' is not an expression", "mend the expression"),
        ("shared 1.5", "'1.5' uses something that is not allowed", "mend the expression"),
        ("scratch partial", "'scratch' has no size", "write '// presage: scratch partial = 4 * rows'"),
        ("scratch 1 = 4", "'1' is not a name", "write '// presage: scratch partial = 4 * rows'"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_its_mend(line: str, complaint: str, mend: str) -> None:
    source = f"// a kernel\n// presage: entry f\n// presage: tune B = 1, 2\n// presage: {line}\nvoid f(void) {{}}\n"
    with pytest.raises(HeaderError) as error:
        parse(source, "dir/k.cu")
    message = str(error.value)
    assert message.startswith(f"dir/k.cu:4: {complaint}")
    assert f"; {mend}" in message


@pytest.mark.parametrize("keyword", ["grid 1", "block 1", "shared 1"])
def test_a_launch_line_needs_an_entry_above_it(keyword: str) -> None:
    with pytest.raises(HeaderError, match=rf"k\.cu:1: '{keyword[:-2]}' comes before any 'entry'; put it under"):
        parse(f"// presage: {keyword}\n// presage: entry f\n", "k.cu")


@pytest.mark.parametrize(
    ("source", "suffix", "complaint"),
    [
        ("void f(void) {}", ".c", "k:1: the header declares no entry; add a line like '// presage: entry my_function'"),
        ("// presage: entry f\n// presage: entry g\n", ".c", "k:1: a C kernel has one entry; keep one 'entry' line"),
        ("", ".rs", "k: '.rs' is no kernel file; kernels end in .c, .cu, .py"),
    ],
)
def test_a_file_that_is_no_kernel_is_explained(source: str, suffix: str, complaint: str) -> None:
    with pytest.raises(Exception, match=complaint.replace(".", r"\.")):
        from_source(source, suffix, "k")


# -- rendering --------------------------------------------------------------------------------------------------------


def test_rendering_defines_each_tunable_on_its_own_line() -> None:
    before = FAMILY.split("\n")
    after = render(FAMILY, {"BLOCK": 128, "UNROLL": 2, "KIND": "half"}).split("\n")
    assert after[6:10] == ["#define BLOCK 128", "#define UNROLL 2", "#define KIND half", ""]
    assert (after[:6], after[10:]) == (before[:6], before[10:])


def test_rendering_a_module_writes_python_where_the_line_stood() -> None:
    source = "# presage: tune BLOCK = 64, 128\ndef f():\n    # presage: tune KIND = half, float\n    pass\n"
    rendered = render(source, {"BLOCK": 64, "KIND": "half"})
    assert rendered == "BLOCK = 64\ndef f():\n    KIND = 'half'\n    pass\n"
    compile(rendered, "k.py", "exec")


@pytest.mark.parametrize("odd", ["a\fb", "a\vb", "a\u2028b", "a\x1cb", "a\rb"])
def test_only_newlines_end_a_line(odd: str) -> None:
    source = f"// {odd}\n// presage: tune A = 1\nchar *s;"
    assert render(source, {"A": 1}) == f"// {odd}\n#define A 1\nchar *s;"
    with pytest.raises(HeaderError, match=r"^k\.c:2: "):
        parse(f"// {odd}\n// presage: what\n", "k.c")


def test_windows_line_ends_are_read() -> None:
    header = parse("// presage: entry f\r\n// presage: tune A = 1, 2\r\n", "k.c")
    assert (header.launches, header.tunables) == ((Launch("f"),), {"A": (1, 2)})


value_lists = st.lists(st.integers(0, 64), min_size=1, max_size=4, unique=True)


@given(value_lists, value_lists, st.integers(1, 5))
def test_every_configuration_satisfies_the_constraints(a: list[int], b: list[int], divisor: int) -> None:
    family = from_source(
        f"// presage: entry f\n// presage: tune A = {', '.join(map(str, a))}\n"
        f"// presage: tune B = {', '.join(map(str, b))}\n"
        f"// presage: where (A + B) % {divisor} == 0\n// presage: where A <= B\n",
        ".c",
        "k.c",
    )
    expected = [{"A": x, "B": y} for x in a for y in b if (x + y) % divisor == 0 and x <= y]
    assert list(family.configurations()) == expected
    for values in expected:
        assert f"#define A {values['A']}\n#define B {values['B']}\n" in family.render(values).source
