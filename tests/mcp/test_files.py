"""What an agent may hand over: texts, and files under the roots. Whoever tries to reach another file is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from presage import PresageError
from presage.mcp.files import LONGEST_SOURCE, Roots, kernel, problem


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A root with files in it, a secret beside it, and ways that lead from one to the other."""
    root = tmp_path / "root"
    (root / "inner" / "deep").mkdir(parents=True)
    (root / "mine.cu").write_text("mine")
    (root / "inner" / "task.yml").write_text("task")
    (root / "inner" / "reference.py").write_text("reference")
    (tmp_path / "secret.cu").write_text("secret")
    (root / "link.cu").symlink_to(tmp_path / "secret.cu")
    (root / "away").symlink_to(tmp_path)
    (root / "loop.cu").symlink_to(root / "loop.cu")
    os.mkfifo(root / "pipe.cu")
    (root / "large.cu").write_bytes(b"x" * (LONGEST_SOURCE + 1))
    (root / "binary.cu").write_bytes(b"\xff\xfe\xff")
    return tmp_path


def test_files_under_a_root_are_read(place: Path) -> None:
    roots = Roots([place / "root"])
    assert kernel("mine.cu", roots) == {"spec": "mine.cu", "files": {"mine.cu": "mine"}}
    assert kernel(f"{place}/root/mine.cu@A=1", roots) == {"spec": "mine.cu@A=1", "files": {"mine.cu": "mine"}}
    assert problem("inner/reference.py", roots) == {
        "files": {"inner/reference.py": "reference"}, "main": "inner/reference.py",
    }  # fmt: skip
    assert problem("inner/", roots) == {
        "files": {"inner/reference.py": "reference", "inner/task.yml": "task"}, "main": "inner",
    }  # fmt: skip


def test_other_words_are_names(place: Path) -> None:
    roots = Roots([place / "root"])
    assert kernel("naive.cu@BLOCK=4", roots) == {"spec": "naive.cu@BLOCK=4", "files": {}}
    assert problem("softmax", roots) == {"name": "softmax"}


@pytest.mark.parametrize(
    "path",
    [
        "../secret.cu",
        "inner/../../secret.cu",
        "inner/deep/../../../secret.cu",
        "{place}/secret.cu",
        "{place}/root/../secret.cu",
        "link.cu",
        "away/secret.cu",
        "{place}/root/away/secret.cu",
        "loop.cu",
        "pipe.cu",
        "large.cu",
        "binary.cu",
        "/etc/passwd",
        "~/secret.cu",
        "/proc/self/environ",
        "/dev/zero",
        "secret.cu\0",
        "no such/../name",
        "inner/no*such.cu",
        "a" * 2000,
        "./",
        "",
        "file:///etc/passwd",
    ],
)
def test_nothing_else_is_opened(place: Path, path: str) -> None:
    """At most it is taken for the name of something that comes with presage."""
    for roots in (Roots([place / "root"]), Roots([])):
        for read in (kernel, problem):
            try:
                found = read(path.format(place=place), roots)
            except PresageError:
                continue
            assert not found.get("files")
            assert "/" not in path


@pytest.mark.parametrize("name", ["../mine.cu", "/mine.cu", "a/b.cu", ".cu", "mine.txt", "mine.cu\n", "-o.cu", "é.cu"])
def test_a_source_has_a_plain_name(name: str) -> None:
    with pytest.raises(PresageError, match="is no name for a source"):
        kernel({"name": name, "source": ""}, Roots([]))


def test_a_source_has_an_end() -> None:
    with pytest.raises(PresageError, match="the most that a source may have"):
        kernel({"name": "mine.cu", "source": "é" * LONGEST_SOURCE}, Roots([]))


def test_a_root_is_a_folder(place: Path) -> None:
    with pytest.raises(PresageError, match="is no folder"):
        Roots([place / "secret.cu"])
