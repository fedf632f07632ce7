"""The command line as it is typed, but in this process: starting Python would take most of the time."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from presage.cli import main

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def presage() -> Callable[..., Done]:
    """presage(*arguments, cwd=): the exit status of a command, and what it writes to stdout and stderr."""

    def run(*arguments: str | Path, cwd: Path | None = None) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
            try:
                status = main.main([*map(str, arguments)])
            except SystemExit as end:  # as --help ends
                status = int(end.code or 0)
        return Done(arguments, status, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def ran(presage: Callable[..., Done]) -> Callable[..., str]:
    """ran(*arguments): what a command prints, which must succeed."""

    def run(*arguments: str) -> str:
        done = presage(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


DOUBLING = '''
import torch
class Model(torch.nn.Module):
    """Doubles."""
    def forward(self, x):
        return 2 * x
def get_inputs():
    return [torch.rand(1000)]
def get_init_inputs():
    return []
'''


@pytest.fixture(scope="session")
def doubling() -> str:
    """A problem in KernelBench's form."""
    return DOUBLING


@pytest.fixture(scope="session")
def tuning_cache() -> dict[str, Any]:
    """A cache of Kernel Tuner's with two times and a failure."""
    return {
        "device_name": "A GPU",
        "kernel_name": "add",
        "problem_size": 64,
        "tune_params_keys": ["block"],
        "tune_params": {"block": [32, 64]},
        "cache": {
            "32": {"block": 32, "time": 2.0, "times": [2.0] * 8},
            "64": {"block": 64, "time": 1.0, "times": [1.0] * 8},
            "96": {"block": 96, "time": "RuntimeFailedConfig"},
        },
    }
