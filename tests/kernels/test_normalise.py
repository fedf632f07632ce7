"""Normalised source: comments and layout go, every token stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.devices import recorded
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
        ("/* never closed", ""),
        ("#include <a.h> /* why */", "#include <a.h>"),
        ("/* why */ #define A 1 // so\nint a;", "#define A 1\nint a;"),
        ("%: define A 1\nint a;", "#define A 1\nint a;"),
        ("x = 0xe + 1e+5 - 1.f;", "x=0xe +1e+5-1.f;"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("#include <a//b.h>\n", "#include <a//c.h>\n"),
        ("#include <a/*b.h>\nint a; /* */", "#include <a/*b.h>\nint b; /* */"),
        ("#if __has_include(<a//b.h>)\n#endif", "#if __has_include(<a//c.h>)\n#endif"),
        ("#define L __LINE__\nint a = L;", "#define L __LINE__\n\nint a = L;"),
        ("#define P(a, b) a##b\nint a = P(__LI, NE__);", "#define P(a, b) a##b\n\nint a = P(__LI, NE__);"),
        ("#define S(x) #x\nint a = sizeof(S(b+c));", "#define S(x) #x\nint a = sizeof(S(b + c));"),
        ("%:define A 1\nint a;", "%:define A 1 int a;"),
        ("/**/ #define A 1\nint a;", "/**/ #define A 1 int a;"),
        ("int a; // ??/\nint b;", "int a; // ??/\nint c;"),
        ("int a; // \\ \nint b;", "int a; // \\ \nint c;"),
        ("int a; // \rint b;", "int a; // \rint c;"),
        ('s = R"(a\\\nb)";', 's = R"(ab)";'),
        ("x = 0xe+1;", "x = 0xe + 1;"),
        ("x = 1.0e+5;", "x = 1.0e + 5;"),
        ("x = 1.5;", "x = 1 .5;"),
        ("int\u00a0x;", "int x;"),
        ("int a$b;", "int a $b;"),
        ("int a\\u00e9;", "int a \\u00e9;"),
        ('x = "a"_b;', 'x = "a" _b;'),
        ("/* a", "/* b"),
        ("#error don't // a", "#error don't // b"),
        ("// presage: grid 2 if 'a  b' == 'a b' else 1\n", "// presage: grid 2 if 'a b' == 'a b' else 1\n"),
        ('asm(".inc" "bin k.c"); // a', 'asm(".inc" "bin k.c"); // b'),
    ],
)
def test_what_a_compiler_may_see_of_the_layout_is_part_of_the_identity(one: str, other: str) -> None:
    assert digest(one, "c") != digest(other, "c")


READING = [
    "exec(__doc__)",
    "x = custom_kernel.__doc__",
    "import inspect",
    "from torch import inspect",
    "x = torch.os.environ",
    "x = open(__file__)",
    "x = getattr(custom_kernel, '__do' + 'c__')",
    "x = '{0.__do' + 'c__}'.format(custom_kernel)",
    "x = globals()",
    "x = custom_kernel.__code__.co_consts",
    "x = np.fromfile('k.py')",
    "x = np.load('k.py')",
    "x = kernel.src",
    "tl = np\nx = tl.load('k.py')",
    "import numpy as tl\nx = tl.load('k.py')",
    "import numpy as tl\nx = getattr(tl, 'load')",
    "from triton import *",
    "from . import k",
    "import linecache",
]


@pytest.mark.parametrize("reading", READING)
def test_a_docstring_that_a_module_could_read_is_part_of_its_identity(reading: str) -> None:
    one, other = (f'"""{doc}"""\ndef custom_kernel(data):\n    pass\n{reading}\n' for doc in ("return 1", "return 2"))
    assert digest(one, "torch") != digest(other, "torch")
    assert normalise(one, "torch") == normalise(other, "torch")


def test_a_docstring_that_nothing_reads_is_not() -> None:
    plain = "import torch\nimport triton.language as tl\ndef f(x):\n    return getattr(tl, 'float16')(tl.load(x))\n"
    assert digest(f'"""One."""\n{plain}', "triton") == digest(f'"""Two."""\n{plain}', "triton")


def test_numbers_in_texts_are_not_taken_for_settings() -> None:
    one = 's = """\nN = 5\n"""\nt = f"{s}\\nN = 0\\n"\n'
    other = 's = """\nN = 0\n"""\nt = f"{s}\\nN = 5\\n"\n'
    assert normalise(one, "torch") != normalise(other, "torch")


def test_a_sum_of_a_thousand_terms_is_normalised() -> None:
    assert normalise(f"x = {' + '.join('a' * 1000)}", "torch").count("a") == 1000


@pytest.mark.sweep
def test_every_recorded_kernel_keeps_its_identity() -> None:
    for name in recorded.packaged():
        columns = recorded.find(name).columns("source", "language", "hash")
        rows = zip(columns["source"], columns["language"], columns["hash"], strict=True)
        assert all(digest(source, language) == hash for source, language, hash in list(rows)[::7] if source)


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
REMARKS = [
    " ",
    "\n",
    "\t",
    "  \n ",
    "\f",
    " /* 2x faster */ ",
    " /* a\nb */",
    " // ignore all rules\n",
    "// a \\\n b\n",
]
tokens = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=25)


def write(parts: list[str], remarks: list[str]) -> str:
    """The tokens with one remark before each; a directive gets a line of its own."""
    lines = [f"\n{p}\n" if p.startswith("#") else p for p in parts]
    return "".join(remark + part for part, remark in zip(lines, remarks, strict=True))


@given(tokens, st.data())
def test_comments_and_layout_never_change_the_identity(parts: list[str], data: st.DataObject) -> None:
    possible = REMARKS[:-1] if 'R"(/* raw */)"' in parts else REMARKS  # a line that goes on may be a raw string's
    remarks = [data.draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3)) for _ in parts]
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
