"""`PYTHONPATH=src python -m presage` on a machine whose Python has the packages: presage is not installed there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from presage.cli import version

ROOT = Path(__file__).parents[2]


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Everything that is installed here but presage."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for each in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "presage" not in each.name:
            (folder / each.name).symlink_to(each)
    return folder


def run(packages: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{packages}"}
    command = [sys.executable, "-S", "-P", "-m", "presage", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_catalogue_is_there_without_an_installation(packages: Path) -> None:
    assert run(packages, "problems", "softmax").startswith("softmax")
    assert run(packages, "--version") == version.text()
    assert "topk" in run(packages, "plugins")
