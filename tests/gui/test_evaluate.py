"""`presage-gui evaluate`, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("PIL", reason="needs the gui extra")

from presage_gui.cli.main import main


def test_a_baseline_on_the_shipped_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--critic", "none", "--split", "test", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["false_alarms_at_half"][0] == 0
    assert 0.5 <= found["auroc"][0] < 0.7
    assert found["classes"]["malformed_action"]["recall_at_half"] > 0.8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "nowhere"], "presage-gui record"),
        (["--critic", "pixel"], "pixels"),
        (["--live", "click-test", "--episodes", "0"], "at least one episode"),
        (["--critic", "blend:none"], "two or more"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_risk_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--env", "miniwob:click-test", "--risk", "2"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err
