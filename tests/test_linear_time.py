"""Whatever a person, a model or a compiler writes, reading it takes time in proportion to its length.

Each text is read at a length and at eight times that, in one run: linear reading takes eight times as long, quadratic
sixty-four. Process time is compared, and if need be the quickest of three, so that a busy machine changes nothing.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable

import pytest

from presage import PresageError
from presage.core.text import printable
from presage.kernels import header, kernel
from presage.kernels.normalise import digest
from presage.llm import structured
from presage.llm.anonymise import Unreadable, anonymise
from presage.llm.structured import MalformedError
from presage.problems import task_file
from presage.proposers import llm as proposing
from presage.static import ptx

TIMES = 8
MOST = 3.5 * TIMES

SOURCES: dict[str, Callable[[int], str]] = {
    "blank lines": lambda n: "\n" * n,
    "a long run of spaces": lambda n: " " * n + "x",
    "comments never closed": lambda n: "/* " * n,
    "raw strings never closed": lambda n: "".join(f'R"{i}(' for i in range(n)),
    "strings never closed": lambda n: '\\"' * n,
    "a directive full of quotes": lambda n: "#define A " + "\"\\'" * n,
    "comments in directives": lambda n: "#a /*\n" * n,
    "comments before a directive": lambda n: "/*\n*/ " * n + "#",
    "digits": lambda n: "1'" * n,
    "open braces": lambda n: "{" * n,
    "backslashes": lambda n: "\\ " * n,
    "one long word": lambda n: "a" * n,
    "dollars": lambda n: "$a" * n,
}
PYTHON: dict[str, Callable[[int], str]] = {
    "blank lines": lambda n: "\n" * n,
    "blank imports": lambda n: "from\t\n" * n,
    "statements": lambda n: "x\n" * (n // 8),
    "settings": lambda n: "A = 1\n" * (n // 8),
}


def grows(read: Callable[[str], object], make: Callable[[int], str], n: int) -> float:
    """How many times as long the longer text takes."""
    short, long = make(n), make(TIMES * n)
    times = {short: math.inf, long: math.inf}
    ratio = math.inf
    for _ in range(3):
        for text, least in times.items():
            start = time.process_time()
            with contextlib.suppress(PresageError, MalformedError, Unreadable):
                read(text)
            times[text] = min(least, time.process_time() - start)
        ratio = times[long] / max(times[short], 1e-3)
        if ratio < MOST:
            break
    return ratio


def bare(text: str) -> kernel.Kernel:
    return kernel.from_source(f"// presage: entry f\n{text}", ".cu", "k.cu")


@pytest.mark.parametrize("name", SOURCES)
def test_c(name: str) -> None:
    assert grows(lambda text: digest(text, "cuda"), SOURCES[name], 4000) < MOST
    assert grows(bare, SOURCES[name], 4000) < MOST
    assert grows(lambda text: anonymise(bare(text)), SOURCES[name], 2000) < MOST


@pytest.mark.parametrize("name", PYTHON)
def test_python(name: str) -> None:
    assert grows(lambda text: kernel.from_source(text, ".py", "k.py").hash, PYTHON[name], 8000) < MOST


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "// presage: grid " + " " * n + "x",
        lambda n: "// presage: entry f\n" + "// presage: grid n\n" * (n // 8),
        lambda n: "// presage: entry f\n// presage: grid " + "(" * n,
        lambda n: "// presage:\n" * n,
        lambda n: "//" + " " * n + "presage:" + " " * n,
        lambda n: "// presage: tune A = " + ", ".join(map(str, range(n))),
    ],
)
def test_headers(make: Callable[[int], str]) -> None:
    assert grows(lambda text: header.parse(text, "k.cu"), make, 20_000) < MOST


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "```\n" * (n // 4),
        lambda n: "```c\n" * (n // 4),
        lambda n: "<<<<<<< SEARCH\n" * (n // 4),
        lambda n: "<<<<<<< SEARCH\n=======\n" * (n // 4),
        lambda n: "<" * n + "\n" + "=" * n,
        lambda n: " " * n + "```",
    ],
)
def test_fences_and_edits(make: Callable[[int], str]) -> None:
    assert grows(lambda text: (proposing._edits(text), proposing._fenced(text)), make, 20_000) < MOST
    assert grows(proposing._idea, make, 20_000) < MOST


@pytest.mark.parametrize("make", [lambda n: "{" * n, lambda n: '{"a":' * n, lambda n: '{"a": 1} ' * n])
def test_objects_in_answers(make: Callable[[int], str]) -> None:
    assert grows(lambda text: structured.find_object(text, ["p"]), make, 2000) < MOST


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "a" + " " * n,
        lambda n: "a: " + "[" * n,
        lambda n: "a: {" + "b: 1, " * n,
        lambda n: "a: '" + "''" * n,
        lambda n: 'a: "' + '\\"' * n,
        lambda n: "- " * n,
        lambda n: "a: |" + " " * n + "x",
        lambda n: "\n" * n + "a: 1",
    ],
)
def test_task_files(make: Callable[[int], str]) -> None:
    assert grows(lambda text: task_file.parse(text, "task.yml"), make, 10_000) < MOST


@pytest.mark.parametrize(
    "body",
    [
        lambda n: "a" + "{}" * n,
        lambda n: "mov " + "[" * n + ";",
        lambda n: "/* " * n,
        lambda n: " " * n,
        lambda n: "a:" * n,
        lambda n: ".shared .b8 x[]; " * n,
    ],
)
def test_ptx(body: Callable[[int], str]) -> None:
    def make(n: int) -> str:
        return f".entry f(.param .u64 {'p' * n}!) {{ {body(n)} }}"

    assert grows(lambda text: ptx.parse.__wrapped__(text, "f"), make, 10_000) < MOST
    assert grows(lambda text: ptx.parse.__wrapped__(text, "f"), lambda n: ".entry f(" * n, 10_000) < MOST


def test_what_is_shown() -> None:
    assert grows(printable, lambda n: "\x1b[31m\ud800" * n, 50_000) < MOST


# -- tunables ---------------------------------------------------------------------------------------------------------


def family(constraint: str, tunables: int = 20) -> kernel.Kernel:
    lines = [f"// presage: tune T{i} = {', '.join(map(str, range(10)))}" for i in range(tunables)]
    return bare("\n".join([*lines, f"// presage: where {constraint}", "void f() {}"]))


def test_constraints_that_nothing_satisfies_are_given_up() -> None:
    everything = " + ".join(f"T{i}" for i in range(20))
    with pytest.raises(PresageError, match=r"too many combinations: \d+ values were tried.*list fewer values, or name"):
        family(f"{everything} < 0").render()


def test_a_constraint_excludes_as_soon_as_it_can() -> None:
    with pytest.raises(PresageError, match="no configuration has any values"):
        family("T3 > 10").render()
    assert family("T19 == 9 and T0 == 9").render({f"T{i}": 9 for i in range(1, 19)}).values["T0"] == 9


def test_a_constraint_that_an_earlier_one_guards_is_never_asked() -> None:
    guarded = bare(
        "// presage: tune A = 0, 1\n// presage: tune B = 1, 2\n"
        "// presage: where A + B > 1\n// presage: where B // A > 0"
    )
    with pytest.raises(PresageError, match="divides by zero"):
        list(guarded.configurations())
    assert list(guarded.configurations({"A": 1})) == [{"A": 1, "B": 1}, {"A": 1, "B": 2}]
    late = bare(
        "// presage: tune A = 0, 1\n// presage: tune B = 1\n// presage: tune C = 1, 2\n"
        "// presage: where A > 0 and C > 0\n// presage: where B // A > 0"
    )
    assert list(late.configurations()) == [{"A": 1, "B": 1, "C": 1}, {"A": 1, "B": 1, "C": 2}]
