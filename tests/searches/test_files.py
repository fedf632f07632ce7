"""A search reads downwards: docs/architecture.md lists its files in the order in which they import each other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "presage" / "searches"


def listed() -> list[str]:
    section = (ROOT / "docs" / "architecture.md").read_text().split("## What a search does")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`searches/(\w+)\.py`", row)]


def test_every_file_is_listed_and_imports_only_those_below_it() -> None:
    order = listed()
    assert sorted(order) == sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")
    for place, name in enumerate(order):
        for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("presage.searches"):
                last = str(node.module).rpartition(".")[2]
                needed = [alias.name for alias in node.names] if last == "searches" else [last]
                assert set(needed) <= set(order[place + 1 :]), f"{name} imports {needed}"


def test_no_file_is_longer_than_a_reader_can_bear() -> None:
    assert [file.name for file in FOLDER.glob("*.py") if len(file.read_text().splitlines()) >= 600] == []
