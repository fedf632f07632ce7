"""What reaches a terminal: words of others as they are read, and commands of ours alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import presage as package
from presage.cli import documents, terminal
from presage.cli.main import main

HOSTILE = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb\ud800"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(str(package.__file__)).parents[1])}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_error_shows_escape_sequences_and_does_not_obey_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["problems", HOSTILE]) == 2
    said = capsys.readouterr().err
    assert "\\x1b[2J" in said
    assert all(sign.isprintable() or sign == "\n" for sign in said)


def test_so_does_whatever_a_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.shown():
        print(HOSTILE, terminal.table([[HOSTILE]], ["name"]))
        print(HOSTILE, file=sys.stderr)
        terminal.ProgressLine()(HOSTILE, 0.5)
    for said in capsys.readouterr():
        assert all(sign.isprintable() or sign == "\n" for sign in said)


def test_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.shown():
        documents.write("test", {"text": f"{HOSTILE}\x7f"})
    said = capsys.readouterr().out
    assert json.loads(said) == {"schema": "test/1", "text": f"{HOSTILE}\x7f"}
    assert all(sign.isprintable() or sign == "\n" for sign in said)


def test_progress_is_redrawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal.shown():
        line = terminal.ProgressLine()
        line("half\x1b[2J", 0.5)
        line.clear()
    assert screen.getvalue() == "\r\x1b[K[##########..........] half\\x1b[2J\r\x1b[K"


def test_streams_are_what_they_were_once_the_command_is_done() -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit):
        main(["--version"])
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_encoding_that_lacks_a_sign_ends_no_command(encoding: str) -> None:
    command = [sys.executable, "-m", "presage", "problems", "é\udcff\x1b"]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, timeout=120, env=environment)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stderr


def test_an_ascii_terminal_shows_signs_as_they_are_typed() -> None:
    command = [sys.executable, "-c", "from presage.cli import terminal\nwith terminal.shown(): print('±46 % … – √é±')"]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, timeout=120, env=environment)
    assert done.stdout == b"+-46 % ... - \\u221a\\xe9+-\n"


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("corpus collect --into x --per-problem -1", "'-1' is not a whole number, 1 or more"),
        ("corpus collect --into x --chunk 0", "'0' is not a whole number, 1 or more"),
        ("corpus ls cpu -n ²", "'²' is not a whole number, 1 or more"),
        ("llm serve --port 70000", "'70000' is not a port: 0 to 65535"),
        ("train learned --lora-rank 0", "--lora-rank is for 'presage train llm'"),
    ],
)
def test_a_number_that_cannot_be_is_refused(typed: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-config", *typed.split()]) == 2
    assert complaint in capsys.readouterr().err
