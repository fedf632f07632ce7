"""GPU MODE's task files, read as GPU MODE reads them, and what is said of what cannot be read."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from presage import PresageError
from presage.problems.task_file import parse

TASK = """\
# name: vectoradd

files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}   # shared by all tasks

lang: "py"

description: |

  Adds two vectors: `a: b`, # not a comment

    * with a list
  ```
  and code
  ```
config:
  main: 'eval.py'
  nested:
    ridge: 0.00001
    deep: [1, 2.5, "x", [true, null]]

tests:
- {"size": 127, "shape": [1, 2], "case": "odd, {really}", "flag": false, "seed":}
- {size: -1, mode: fast}

benchmarks:
  # the large ones
  - size: 16384
    seed: 3
  - {}

gpus:
  - B200
  - H100 SXM
empty:
"""


def test_a_task_is_read_as_yaml_is() -> None:
    task = parse(TASK, "task.yml")
    assert list(task) == ["files", "lang", "description", "config", "tests", "benchmarks", "gpus", "empty"]
    assert task["files"][1] == {"name": "utils.py", "source": "../utils.py"}
    assert task["description"].startswith("\nAdds two vectors: `a: b`, # not a comment\n\n  * with a list\n```\n")
    assert task["description"].endswith("code\n```\n")
    assert task["config"] == {"main": "eval.py", "nested": {"ridge": 1e-5, "deep": [1, 2.5, "x", [True, None]]}}
    assert task["tests"] == [
        {"size": 127, "shape": [1, 2], "case": "odd, {really}", "flag": False, "seed": None},
        {"size": -1, "mode": "fast"},
    ]
    assert task["benchmarks"] == [{"size": 16384, "seed": 3}, {}]
    assert task["gpus"] == ["B200", "H100 SXM"]
    assert task["empty"] is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", 1),
        ("a: -2.0e+3", -2000.0),
        ("a: .5", 0.5),
        ("a: 1.", 1.0),
        ("a: true  # yes", True),
        ("a: ~", None),
        ("a: null", None),
        ("a: some words, and more", "some words, and more"),
        ("a: 2026-01-31", "2026-01-31"),
        ("---\na: [[1, 2],\n    [3]]", [[1, 2], [3]]),
        ("a:\n  - - 1", [[1]]),
        ("a: 'it''s'", "it's"),
        ('a: "tab\\t"', "tab\t"),
        ("a: []", []),
        ("a: >\n  two\n  lines\n", "two lines\n"),
        ("a: |-\n  two\n  lines\n", "two\nlines"),
        ("a: |\n", ""),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse(text, "task.yml") == {"a": value}


def test_an_empty_file_says_nothing() -> None:
    assert parse("\n# only a comment\n", "task.yml") == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tests:\n\t- {}", "task.yml:2: found character"),
        ("a: 1\nnonsense\n", "task.yml:3: could not find expected ':'"),
        ("a: some words, and: more", "task.yml:1: mapping values are not allowed"),
        ("a: 1\na: 2", "task.yml:2: 'a' is there twice"),
        ('a: {"x": 1, "x": 2}', "task.yml:1: 'x' is there twice"),
        ("a: 1\n   b: 2", "task.yml:2: mapping values are not allowed"),
        ("  a: 1\nb: 2", "task.yml:2: "),
        ("a:\n  - {size: 1", "did not find expected ',' or '}'"),
        ("a: {b: 1} c", "task.yml:1: "),
        ("a: &anchor 1", "task.yml:1: anchors, aliases and tags cannot be used here"),
        ("a: [x]\nb: *a", "task.yml:2: anchors, aliases and tags cannot be used here"),
        ("a: !tag 1", "task.yml:1: anchors, aliases and tags cannot be used here"),
        ("a: !!python/object/apply:os.system [id]", "task.yml:1: anchors, aliases and tags cannot be used here"),
        ("a: {[1]: 2}", "task.yml:1: a list, a mapping or half"),
        ("a: " + "[" * 40, "task.yml:1: more than 32 lists and mappings within each other"),
        ("a: " + "9" * 500, "is too long for a number"),
        ("a: 1" + ":59" * 200, "is too long for a number"),
        ('a: "\\q"', "task.yml:1: found unknown escape character"),
        ('a: "\\ud800"', "task.yml:1: "),
        ("a: \ud800", "task.yml: "),
        ("a: \0", "task.yml: "),
        ('a: "open', "task.yml:1: "),
        ("- 1\n- 2", "task.yml:1: this must be a mapping"),
        ("a: 1\n---\nb: 1", "task.yml:2: "),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(PresageError) as raised:
        parse(text, "task.yml")
    assert complaint in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_without_its_reader_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(PresageError, match="needs PyYAML, which is not installed; pip install PyYAML"):
        parse("a: 1", "task.yml")
