"""The part of YAML that GPU MODE's tasks are written in, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from presage.core.errors import PresageError
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
        ("a: -2e3", -2000.0),
        ("a: .5", 0.5),
        ("a: 1.", 1.0),
        ("a: true  # yes", True),
        ("a: ~", None),
        ("a: null", None),
        ("a: some words, and: more", "some words, and: more"),
        ("a: 'it''s'", "it's"),
        ('a: "tab\\t"', "tab\t"),
        ("a: []", []),
        ("a: >\n  two\n  lines", "two lines\n"),
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
        ("tests:\n\t- {}", "task.yml:2: a tab in the indentation"),
        ("a: 1\nnonsense\n", "task.yml:2: 'nonsense' is no 'name: value'"),
        ("a: 1\na: 2", "task.yml:2: 'a' is there twice"),
        ('a: {"x": 1, "x": 2}', "task.yml:1: 'x' is there twice"),
        ("a: 1\n   b: 2", "task.yml:2: this is indented more than what it follows"),
        ("  a: 1\nb: 2", "task.yml:2: this is indented less than what it follows"),
        ("a:\n  - {size: 1", "task.yml:2: no '}' on the line of its '{'"),
        ("a: [1, 2", "task.yml:1: no ']' on the line of its '['"),
        ("a: {1 2}", "task.yml:1: '1 2' has no ':' after it"),
        ("a: {b: 1} c", "task.yml:1: 'c' after the end of the value"),
        ("a: &anchor 1", "task.yml:1: '&anchor 1': this part of YAML is not understood here"),
        ("a:\n  - - 1", "task.yml:2: '- 1': this part of YAML is not understood here"),
        ("a: {[1]: 2}", "task.yml:1: '[1]' has no ':' after it"),
        ("a: !tag 1", "task.yml:1: '!tag 1': this part of YAML is not understood here"),
        ('a: "\\q"', r'task.yml:1: "\\q" is no string'),
        ('a: "open', "task.yml:1: "),
        ("- 1\n- 2", "task.yml:1: a list, where a mapping"),
        ("---\na: 1", "task.yml:1: '---' is no 'name: value'"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(PresageError) as raised:
        parse(text, "task.yml")
    assert complaint.replace("\\\\", "\\") in str(raised.value)
