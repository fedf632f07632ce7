"""Completion in a real bash. Scripts for zsh and fish are only parsed, and only where these shells are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from presage.cli.main import COMMANDS, main
from presage.plugins.group import POLICIES, RECORDINGS

TAB = """
source "$1"
complete -p presage >/dev/null || exit 3
COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDS=($2)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_presage
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""What bash does when Tab is pressed after a line."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


def script(shell: str, scripts: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = scripts / shell
    if not file.exists():
        assert main(["completion", shell]) == 0
        file.write_text(capsys.readouterr().out)
    return file


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("presage mea", ["measure"]),
        ("presage search --pol", ["--policy"]),
        ("presage search softmax --policy ", [*POLICIES.names()]),
        ("presage search softmax --policy=to", ["topk"]),
        ("presage search softmax --strategy pu", ["puct"]),
        ("presage search softmax_c", ["softmax_causal"]),
        ("presage measure softmax --device recorded:", [*RECORDINGS.names()]),  # what follows the colon
        ("presage forecast softmax x.cu --target h200", ["h200"]),
        ("presage measure softmax my", ["my kernel.cu"]),
        ("presage corpus im", ["import"]),
        ("presage corpus ls --pro", ["--problem"]),
        ("presage search softmax --budget ", []),
        ("presage --no", ["--no-config"]),
        ("presage --no-config search --str", ["--strategy"]),
        ("presage completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_bash(scripts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, offered: list[str]) -> None:
    file = script("bash", scripts, capsys)
    (tmp_path / "my kernel.cu").touch()
    command = ["bash", "--norc", "-c", TAB, "bash", str(file), line]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:-1] == (offered or [""])


def test_every_command_is_offered(scripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = script("bash", scripts, capsys)
    done = subprocess.run(
        ["bash", "-c", TAB, "bash", str(file), "presage "], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == list(COMMANDS)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str, scripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = script(shell, scripts, capsys)
    text = file.read_text()
    assert all(f"{name}" in text for name in (*COMMANDS, "always", "softmax_causal"))
    if program := shutil.which(shell):
        done = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
