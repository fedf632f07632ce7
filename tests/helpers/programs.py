"""Programs under test that start at once."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WARM = str(Path(__file__).with_name("warm.py"))


@contextmanager
def warmed() -> Iterator[list[str]]:
    """The beginning of a command that runs `presage` or `presage-gui`: its name and its arguments follow."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/socket"
        command = [sys.executable, "-P", WARM, "serve", place]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield [sys.executable, "-IS", WARM, place]
