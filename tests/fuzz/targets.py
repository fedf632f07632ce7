"""What the parent reads of others, and texts that are nearly right: a target is a strategy and what reads its examples.

Reading gives a value or the error that the reader documents. Anything else is a fault of ours.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from presage import Device, Ground, Measured, Measurement, PresageError, search
from presage.core.text import printable
from presage.corpus import importing, journal
from presage.devices import recorded, recording
from presage.forecasters import llm as forecasting
from presage.kernels import expression, header
from presage.kernels.kernel import from_source, split_spec
from presage.kernels.normalise import digest, normalise
from presage.llm.anonymise import Unreadable, anonymise
from presage.llm.client import Answer
from presage.llm.structured import MalformedError
from presage.problems import registry, task_file
from presage.proposers import llm as proposing
from presage.report import frozen
from presage.static import cubin, ptx
from presage.store.store import FILE, Store

ANY = st.characters(exclude_categories=[])
"""Every sign that a Python string can hold, halves of surrogate pairs too."""


@dataclass(frozen=True)
class Target:
    """One reader."""

    examples: st.SearchStrategy[Any]
    read: Callable[[Any], object]
    errors: tuple[type[Exception], ...] = (PresageError,)
    """What it may raise."""

    def try_out(self, example: Any) -> None:
        """Reads one example. An error of another kind comes through."""
        try:
            self.read(example)
        except self.errors as error:
            printable(str(error)).encode()


def mixture(*pieces: str, most: int = 40) -> st.SearchStrategy[str]:
    """Texts made of pieces that mean something to the reader, with any others in between."""
    return st.lists(st.one_of(st.sampled_from(pieces), st.text(ANY, max_size=6)), max_size=most).map("".join)


def mutated(whole: bytes) -> st.SearchStrategy[bytes]:
    """The bytes with some of them changed, a part left out or repeated, or the end cut off."""
    change = st.tuples(st.integers(0, len(whole) - 1), st.binary(max_size=8), st.integers(0, 64))

    def apply(changes: list[tuple[int, bytes, int]], end: int) -> bytes:
        data = bytearray(whole)
        for at, put, removed in changes:
            data[at : at + removed] = put
        return bytes(data[: len(data) - end])

    return st.builds(apply, st.lists(change, min_size=1, max_size=6), st.one_of(st.just(0), st.integers(0, len(whole))))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(ANY, max_size=8),
    st.sampled_from(["NaN", "", "ok", "0"]),
)
JSON = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(max_size=6), inner)))


def document(whole: Any) -> st.SearchStrategy[Any]:
    """A JSON document in which some values are others, or are missing."""
    paths = list(_paths(whole))

    def apply(changes: list[tuple[int, Any, bool]]) -> Any:
        copy = json.loads(json.dumps(whole))
        for number, value, is_removed in changes:
            *way, last = paths[number % len(paths)]
            with contextlib.suppress(LookupError, TypeError):
                at = functools.reduce(lambda part, key: part[key], way, copy)
                if is_removed:
                    del at[last]
                else:
                    at[last] = value
        return copy

    return st.lists(st.tuples(st.integers(0, 10**6), JSON, st.booleans()), max_size=3).map(apply)


def _paths(value: Any) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, part in items for path in [(key,), *((key, *rest) for rest in _paths(part))]]


# -- sources ----------------------------------------------------------------------------------------------------------

DIRECTIVES = (
    "// presage: ", "# presage: ", "problem softmax\n", "entry f\n", "tune A = 1, 2\n", "tune B = 0, x, 1.5, 1e999\n",
    "where A % 2 == 0\n", "where A // B > 0\n", "grid cdiv(n, A), 1\n", "block A\n", "shared 4 * A\n",
    "scratch s = n\n", "tune", "where", "=", ",", "(", ")", "\n", " ", "\t", "\r", "9" * 30, "$place$",
)  # fmt: skip
EXPRESSIONS = (
    "n", "A", "1", "0", "9" * 25, "+", "-", "*", "//", "%", "(", ")", " ", "min", "max", "cdiv", ",", " if ", " else ",
    " and ", " not ", "==", "<", "'a'", "**", "[", "]", ".", "lambda", ":", "\n",
)  # fmt: skip
C = (
    "// presage: entry f\n", "// presage: grid n\n", "#define A ", "#include <a//b.h>\n", "%:", "/*", "*/", "//",
    '"', "'", 'R"x(', ')x"', "\\", "\\\n", "\n", " ", "int", "0xe", "+", "++", "{", "}", "asm(", ")", ";",
    ".reg .b32 a;", "a:", "#", "??/", "1'0", "'\\''", "__LINE__", "\r", "float4", "__shared__",
)  # fmt: skip
PYTHON = (
    "import torch\n", "import triton.language as tl\n", "def f(x):\n", "    ", "return x\n", '"""', "'", '"', "\n",
    "A = 1\n", "A = 0\n", "# presage: tune B = 1, 2\n", "class C:\n", "(", ")", "[", "]", "{", "}", "lambda: ", "+",
    "-", "f'{", "}'", ":", "@triton.jit\n", "getattr(tl, x)", "x.y", "\\\n", "if x:\n", "match x:\n", "case _:\n",
    "\t", "async ", "*", "not ", "é",
)  # fmt: skip
SUFFIXES = st.sampled_from([".c", ".cu", ".py"])


def catalogue() -> st.SearchStrategy[tuple[str, str]]:
    """Kernels of the catalogue, damaged."""
    names = ("softmax", "matmul", "attention", "topk_rows", "histogram")
    seeds = [kernel for name in names for kernel in registry.seed_kernels(registry.get(name))]

    def damaged(number: int) -> st.SearchStrategy[tuple[str, str]]:
        texts = mutated(seeds[number].source.encode()).map(lambda data: data.decode(errors="replace"))
        return st.tuples(texts, st.just(Path(seeds[number].name).suffix))

    return st.integers(0, len(seeds) - 1).flatmap(damaged)


def read_source(example: tuple[str, str]) -> None:
    source, suffix = example
    for language in ("c", "cuda", "torch"):
        assert len(digest(source, language)) == 16
        normalise(source, language)
    kernel = from_source(source, suffix, f"k{suffix}")
    with contextlib.suppress(Unreadable):
        anonymise(kernel, ["n"])
    anonymise(kernel.render(), ["n"])


def read_header(source: str) -> None:
    found = header.parse(source, "k.cu")
    kernel = from_source(f"// presage: entry f\n{source}", ".cu", "k.cu")
    for number, values in enumerate(kernel.configurations()):
        if number > 20:
            break
        kernel.render(values)
        for launch in found.launches:
            expression.evaluate(launch.grid[0], {"n": 7, "rows": 3, **values})


def read_expression(text: str) -> None:
    value = expression.evaluate(text, {"n": 12, "A": -3, "x": 1.5})
    assert isinstance(value, str) or abs(value) <= expression.MAX_VALUE


# -- models -----------------------------------------------------------------------------------------------------------

FORECAST = json.dumps({"reason": "so", **{f"p{i}": 0.125 for i in range(1, 9)}, "p_fail": 0.1})
ANSWERS = (
    FORECAST, "```json\n", "```\n", "```c\n", "```python\n", "{", "}", '"p1": ', '"p_fail": 1e999', "NaN",
    "Infinity", "-1", ",", "\n", "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n",
    "// presage: entry softmax\n", "void softmax(", ")", "{}",
    "import numpy as np\ndef custom_kernel(data):\n    return data\n", "[" * 50, "9" * 30, "\ud800", "\x1b[31m",
)  # fmt: skip


class Nowhere(Device):
    """A device that is never asked to measure."""

    name, kind, languages = "nowhere", "cpu", ("c", "numpy")

    def describe(self) -> dict[str, Any]:
        return {}

    def measure(self, *arguments: Any, **more: Any) -> list[Measurement]:
        raise NotImplementedError


@functools.cache
def ground() -> Ground:
    problem = registry.get("softmax")
    seed = next(each for each in registry.seed_kernels(problem) if each.language == "c")
    return Ground(problem, Nowhere(), Measured(seed.render(), times_ns={}))


def read_proposal(text: str) -> None:
    found = proposing.parse(Answer(text), ground().anchor.kernel, ground())
    found.kernel.source.encode()
    assert found.why.isprintable()


def read_forecast(text: str) -> None:
    found = forecasting.parse(Answer(text))
    assert 0 <= found.forecast.p_fail <= 1
    assert found.reason.isprintable()


# -- files ------------------------------------------------------------------------------------------------------------

CACHE = {
    "device_name": "A GPU", "kernel_name": "add", "problem_size": 64, "tune_params_keys": ["block"],
    "tune_params": {"block": [32, 64]},
    "cache": {
        "32": {"block": 32, "time": 1.5, "times": [1.5, 1.6]},
        "64": {"block": 64, "time": "RuntimeFailedConfig", "times": []},
    },
}  # fmt: skip
T4 = {
    "metadata": {"timeunit": "miliseconds"},
    "results": [
        {"configuration": {"block": 32}, "times": {"runtimes": [1.5, 1.6]}, "invalidity": "correct",
         "measurements": [{"name": "time", "value": 1.5}]},
        {"configuration": {"block": 64}, "times": {}, "invalidity": "timeout", "measurements": []},
    ],
}  # fmt: skip
TASK = "lang: py\ntests:\n  - {\"size\": 64, 'seed': 1}\nfiles:\n- name: a.py\n  source: b.py\ntext: |\n  a\n  b\n"
TASKS = (
    "a: ",
    "- ",
    "\n",
    "  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "'",
    "|",
    ">",
    "#",
    "1",
    "1e5",
    "9" * 500,
    "\\",
    "\t",
    "~",
)


@contextlib.contextmanager
def folder() -> Any:
    with tempfile.TemporaryDirectory(prefix="presage-fuzz-") as made:
        yield Path(made)


def read_import(data: bytes | Any) -> None:
    with folder() as made:
        (made / "cache.json").write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        found = importing.import_tuning(made / "cache.json", made / "gpu.parquet")
        for row in found.rows():
            assert row.total_ns > 0


def read_pairs(lines: list[Any]) -> None:
    with folder() as made:
        (made / "pairs.jsonl").write_text("\n".join(map(json.dumps, lines)))
        importing.import_pairs(made / "pairs.jsonl", made / "gpu.parquet")


def read_recording(data: bytes) -> None:
    with folder() as made:
        (made / "r.parquet").write_bytes(data)
        found = recording.open_recording(made / "r.parquet")
        for row in found.rows():
            _ = row.kernel, row.total_ns
        _ = found.counts


def read_journal(lines: list[Any]) -> None:
    with folder() as made:
        (made / "run.jsonl").write_text("\n".join(map(json.dumps, lines)))
        state = journal.read(made)
        for found in state.kernels.values():
            with contextlib.suppress(PresageError):
                state.render(found)
        state.measured("softmax", "abc")


@functools.cache
def small_recording() -> bytes:
    rows = recorded.find("cpu").rows("softmax", reports=True)[:6]
    with folder() as made:
        recording.write(made / "r.parquet", rows, {"name": "small", "kind": "cpu", "hardware": "none"})
        return (made / "r.parquet").read_bytes()


JOURNAL = [
    {"kind": "run", "run": "r", "date": "2026-01-01", "device": "cpu", "kind_of_device": "cpu"},
    {"kind": "family", "family": "k", "name": "a.c", "source": "// presage: entry f\nvoid f() {}", "problem": "p"},
    {
        "kind": "kernel", "problem": "softmax", "hash": "abc", "family": "k", "values": {"A": 1}, "language": "c",
        "status": "ok", "reason": "", "cases": [{"case": "n=1", "floor_ns": 1.0, "samples_ns": [1.0, 2.0]}],
        "facts": {}, "seconds": 1.0,
    },
    {"kind": "reports", "problem": "softmax", "hash": "abc", "reports": [{"target": "h200"}]},
]  # fmt: skip
PAIRS = [{"anchor_code": "a = 1", "candidate_code": "b = 2", "hardware": "A GPU", "aggregated_speedup": 1.5}] * 2


# -- runs -------------------------------------------------------------------------------------------------------------


@functools.cache
def small_run() -> bytes:
    """The database of a finished search."""
    with folder() as made:
        search("softmax", device="recorded:cpu", forecaster="uniform", policy="always", budget=5, batch=2, run=made)
        with contextlib.closing(sqlite3.connect(made / FILE)) as database:  # all of it in one file
            database.execute("PRAGMA journal_mode = DELETE")
        return (made / FILE).read_bytes()


@contextlib.contextmanager
def copied_run() -> Any:
    with folder() as made:
        (made / FILE).write_bytes(small_run())
        yield made


def read_run(made: Path) -> None:
    """Everything that anybody reads of a run."""
    with Store(made, writes=False) as store:
        hashes = list(store.names())
        for _ in store.events():
            pass
        store.last()
        for hash in hashes:
            store.kernel(hash)
            store.reports(hash)
            store.measurements(hash)
    frozen.render(made)


def read_run_file(data: bytes) -> None:
    with folder() as made:
        (made / FILE).write_bytes(data)
        read_run(made)


def read_run_events(changes: list[tuple[int, Any]]) -> None:
    """A run in which some events tell something else."""
    with copied_run() as made:
        with contextlib.closing(sqlite3.connect(made / FILE)) as database, database:
            count = database.execute("SELECT count(*) FROM events").fetchone()[0]
            for number, payload in changes:
                told = (json.dumps(payload), number % count + 1)
                database.execute("UPDATE events SET payload = ? WHERE seq = ?", told)
        read_run(made)


def read_run_rows(change: tuple[str, bytes, bool]) -> None:
    place, value, is_packed = change
    with copied_run() as made:
        with contextlib.closing(sqlite3.connect(made / FILE)) as database, database:
            packed = zlib.compress(value) if is_packed else value
            table, column = place.split(".")
            database.execute(f"UPDATE {table} SET {column} = ?", (packed,))
        read_run(made)


def run_events() -> st.SearchStrategy[list[tuple[int, Any]]]:
    with copied_run() as made, Store(made, writes=False) as store:
        payloads = [(event.seq - 1, event.payload) for event in store.events()]
    one = st.sampled_from(payloads).flatmap(lambda told: st.tuples(st.just(told[0]), document(told[1])))
    return st.lists(st.one_of(one, st.tuples(st.integers(0, 100), JSON)), min_size=1, max_size=2)


def run_rows() -> st.SearchStrategy[tuple[str, bytes, bool]]:
    assert small_run()
    places = ("kernels.source", "kernels.reports", "kernels.tunables", "kernels.name", "measurements.document")
    documents = st.one_of(st.binary(max_size=30), JSON.map(lambda value: json.dumps(value).encode()))
    return st.tuples(st.sampled_from(places), documents, st.booleans())


PTX = (
    ".version 8.0\n", ".entry f(", ".param .u64 p", ".param .align 8 .b8 q[16]", ")", "{", "}", ".reg .b32 %r<4>;",
    "mov.u32 %r1, 5;", "@%p1 bra L;", "L:", "ret;", ".shared .align 4 .b8 s[16];", ".shared .b8 t[];", "/*", "*/",
    "//", "[%r1+4]", "{%r1, %r2}", ";", "\n", "9" * 30, " ",
)  # fmt: skip


def elf() -> bytes:
    """The beginning of an ELF file with a table of two sections."""
    head = bytearray(64)
    head[:4] = b"\x7fELF"
    head[40:48] = (64).to_bytes(8, "little")
    head[58:64] = (64).to_bytes(2, "little") + (2).to_bytes(2, "little") + (1).to_bytes(2, "little")
    return bytes(head) + bytes(128) + b"\0.text\0" * 4


TARGETS: dict[str, Callable[[], Target]] = {
    "headers": lambda: Target(mixture(*DIRECTIVES), read_header, (PresageError, expression.ExpressionError)),
    "expressions": lambda: Target(mixture(*EXPRESSIONS), read_expression, (expression.ExpressionError,)),
    "C": lambda: Target(st.tuples(mixture(*C), SUFFIXES), read_source, (PresageError, Unreadable)),
    "Python": lambda: Target(st.tuples(mixture(*PYTHON), SUFFIXES), read_source, (PresageError, Unreadable)),
    "kernels": lambda: Target(catalogue(), read_source, (PresageError, Unreadable)),
    "specs": lambda: Target(mixture("k.c", "@", "A=1", ",", "/", "="), split_spec),
    "PTX": lambda: Target(mixture(*PTX), lambda text: ptx.parse(text, "f"), ()),
    "cubins": lambda: Target(st.one_of(mutated(elf()), st.binary(max_size=300)), cubin.read, (ValueError,)),
    "proposals": lambda: Target(mixture(*ANSWERS), read_proposal, (MalformedError,)),
    "forecasts": lambda: Target(
        st.one_of(mixture(*ANSWERS), document(json.loads(FORECAST)).map(json.dumps)), read_forecast, (MalformedError,)
    ),
    "task files": lambda: Target(
        st.one_of(mixture(*TASKS), mutated(TASK.encode()).map(lambda data: data.decode(errors="replace"))),
        lambda text: task_file.parse(text, "task.yml"),
    ),
    "Kernel Tuner caches": lambda: Target(st.one_of(document(CACHE), mutated(json.dumps(CACHE).encode())), read_import),
    "T4 files": lambda: Target(st.one_of(document(T4), mutated(json.dumps(T4).encode())), read_import),
    "pairs": lambda: Target(document(PAIRS), read_pairs),
    "recordings": lambda: Target(mutated(small_recording()), read_recording),
    "journals": lambda: Target(document(JOURNAL), read_journal),
    "runs' files": lambda: Target(mutated(small_run()), read_run_file),
    "runs' events": lambda: Target(run_events(), read_run_events),
    "runs' rows": lambda: Target(run_rows(), read_run_rows),
}
"""Each is made when it is needed: some need files."""
