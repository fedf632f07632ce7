"""Normalised source: comments and layout go, every token stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.kernels.normalise import digest, normalise


@pytest.mark.parametrize(
    ("source", "normal"),
    [
        ("int  f ( ) ;", "int f();"),
        ("int a; // 2x faster", "int a;"),
        ("int /* very */ a;", "int a;"),
        ("int/**/a;", "int a;"),
        ("/* one\n two */ int a;", "int a;"),
        ("// runs on \\\n int b;\nint a;", "int a;"),
        ("/\\\n/ hidden\nint a;", "int a;"),
        ("in\\\nt a;", "int a;"),
        ('char *s = "// not a comment";', 'char*s="// not a comment";'),
        ('char *s = "/* nor */  this";', 'char*s="/* nor */  this";'),
        (r's = "a \" // b"; // c', r's="a \" // b";'),
        ("c = '\"'; // c", "c='\"';"),
        ('s = R"x(// kept )" too)x"; // gone', 's=R"x(// kept )" too)x";'),
        ('s = LR"(" // kept)";', 's=LR"(" // kept)";'),
        ("x = 1'000 /* gone */ + 2'000;", "x=1'000+2'000;"),
        ("a = b + ++c;", "a=b+ ++c;"),
        ("a = b++ + c;", "a=b+++c;"),
        ("a = b / *c;", "a=b/ *c;"),
        ("f<<<g, b>>>(x);", "f<<<g,b>>>(x);"),
        ("#define  A   1 // why", "#define A 1"),
        ("#define A /* why\n so */ 1\nint a;", "#define A 1\nint a;"),
        ("#define A/**/1", "#define A 1"),
        ("#define F(x) \\\n  (x)\nint a;", "#define F(x) (x)\nint a;"),
        ('#define S "/*"\nint a; /* b */', '#define S "/*"\nint a;'),
        ("  # include <math.h>\nint a;", "#include <math.h>\nint a;"),
        ("// presage: problem p\n//presage:  entry   f\nint a;", "// presage: entry f\nint a;"),
        ("// presage: grid  cdiv(n, 4)\n// presage: tune A = 1\nint a;", "// presage: grid cdiv(n, 4)\nint a;"),
        ("/* never closed", "/ *never closed"),
    ],
)
def test_c(source: str, normal: str) -> None:
    assert normalise(source, "c") == normal
    assert normalise(source, "cuda") == normal


@pytest.mark.parametrize(
    ("source", "normal"),
    [
        ('"""2x faster."""\nx = 1  # why\n', "x = 1"),
        ('def f():\n    """Doc."""\n    return 1\n', "def f():\n    return 1"),
        ('def f():\n    """Only a doc."""\n', "def f():\n    pass"),
        ('class A:\n    """Doc."""\n    b = 1\n', "class A:\n    b = 1"),
        ('x = 1\n"""trust me"""\n', "x = 1"),
        ('if a:\n    "b"\nelse:\n    "c"\n', "if a:\n    pass\nelse:\n    pass"),
        ("s = '# not a comment'", "s = '# not a comment'"),
        ("x = (1 +\n     2)", "x = 1 + 2"),
        ("def broken(:\n\n   x  \n", "def broken(:\n   x"),
        ("A = 0\nB  =  64 \nf(A, B)\n", "A = 0\nB = 64\nf(A, B)"),
        ('A = 8\n"""\nA = 16\n"""\nB = 2\n', "A = 8\nB = 2"),
        ('s = """\nA = 16\n"""\nA = 4\n', "s = '\\nA = 16\\n'\nA = 4"),
        ("A = 3\ndef broken(:\n  A  =  4\n", "A = 3\ndef broken(:\n  A  =  4"),
    ],
)
def test_python(source: str, normal: str) -> None:
    assert normalise(source, "torch") == normal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a;", "int b;"),
        ("a = b + ++c;", "a = b++ + c;"),
        ('s = "a b";', 's = "a  b";'),
        ('#define S "a b"', '#define S "a  b"'),
        ("#define F(x) x", "#define F (x) x"),
        ("#define A 1\nint a;", "#define A 1 int a;"),
        ("a < b > c", "a < b >> c"),
        ("// presage: entry f\nint a;", "// presage: entry g\nint a;"),
        ("// presage: block 32\nint a;", "// presage: block 64\nint a;"),
        ("int a;", "inta;"),
        ("x = 10;", "x = 1 0;"),
    ],
)
def test_different_code_has_a_different_identity(one: str, other: str) -> None:
    assert digest(one, "c") != digest(other, "c")


def test_the_language_is_part_of_the_identity() -> None:
    assert digest("int a;", "c") != digest("int a;", "cuda")


# -- properties over random C -----------------------------------------------------------------------------------------

TOKENS = ["int", "y7", "0.5f", "1e", "+", "++", "-", "->", "/", "*", "<", "<<", "=", "==", ">>=", "(", ")", "{", "}"]
TOKENS += [
    "x",
    ";",
    ",",
    "&&",
    "&",
    "|",
    "::",
    ":",
    '"a // b"',
    "'c'",
    'L"w"',
    'R"(/* raw */)"',
    "#define A(b) b /* c */",
]
REMARKS = [" ", "\n", "\t", "  \n ", "\f", " /* 2x faster */ ", "/* a\nb */", " // ignore all rules\n", "// a \\\n b\n"]
tokens = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=25)


def write(parts: list[str], remarks: list[str]) -> str:
    """The tokens with one remark before each; a directive gets a line of its own."""
    lines = [f"\n{p}\n" if p.startswith("#") else p for p in parts]
    return "".join(remark + part for part, remark in zip(lines, remarks, strict=True))


@given(tokens, st.data())
def test_comments_and_layout_never_change_the_identity(parts: list[str], data: st.DataObject) -> None:
    remarks = [data.draw(st.lists(st.sampled_from(REMARKS), min_size=1, max_size=3)) for _ in parts]
    plain = write(parts, [" "] * len(parts))
    assert digest(write(parts, ["".join(remark) for remark in remarks]), "c") == digest(plain, "c")


@given(tokens, st.data())
def test_another_token_always_changes_the_identity(parts: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(parts) - 1))
    other = data.draw(st.sampled_from([token for token in TOKENS if token != parts[at]]))
    changed = [*parts[:at], other, *parts[at + 1 :]]
    spaces = [" "] * len(parts)
    assert digest(write(changed, spaces), "c") != digest(write(parts, spaces), "c")


@given(tokens, st.data())
def test_normalising_twice_changes_nothing(parts: list[str], data: st.DataObject) -> None:
    remarks = [data.draw(st.sampled_from(REMARKS)) for _ in parts]
    once = normalise(write(parts, remarks), "c")
    assert normalise(once, "c") == once


@given(st.text(max_size=80), st.sampled_from(["c", "cuda", "triton", "torch", "numpy"]))
def test_any_text_can_be_normalised(source: str, language: str) -> None:
    assert isinstance(normalise(source, language), str)


def test_a_directive_may_be_indented() -> None:
    flat, indented = (f"void f(){{\n{indent}#pragma unroll\nfor(;;);\n}}" for indent in ("", "    "))
    assert normalise(indented, "cuda") == normalise(flat, "cuda")
    assert "\n#pragma unroll\n" in normalise(indented, "cuda")
