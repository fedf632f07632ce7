"""Packages of others: installed into a folder of their own, and used as a person would, in new processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def install() -> Callable[..., None]:
    """install(target, *packages): what `pip install` does with them, without the network and into another folder."""

    def run(target: Path, *packages: Path) -> None:
        options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(target))
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *options, *map(str, packages)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return run


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that commands run in."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def program(target: Path, here: Path, programs: list[str]) -> Run:
    """program(name, *arguments): a process that finds the packages in `target`, which each test file makes."""

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(target))))
        command = [sys.executable, *arguments] if name == "python" else [*programs, name, *arguments]
        return subprocess.run(
            command, cwd=here, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def python(program: Run) -> Run:
    return lambda *arguments: program("python", *arguments)


@pytest.fixture
def presage(program: Run) -> Callable[..., str]:
    """presage(*arguments): what the command prints; its exit status must be 0, or the one that is named."""

    def run(*arguments: str, status: int = 0) -> str:
        done = program("presage", *arguments)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    return run
