"""Configuration files: what they set, what wins, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from presage.cli import defaults
from presage.cli.main import build, main

Parsed = Callable[..., Any]


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file; the current folder is an empty one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "presage").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "config" / "presage" / "config.toml"


def parsed(*arguments: str) -> Any:
    parser = build(arguments[0])
    given = defaults.apply(parser, arguments[0])
    found = parser.parse_args(arguments)
    defaults.fill(found, given)
    return found


def write(text: str) -> None:
    Path("presage.toml").write_text(text)


def test_without_files_nothing_changes() -> None:
    assert parsed("search", "softmax").batch is None


def test_what_is_typed_wins_over_the_folder_s_file_which_wins_over_the_user_s(own: Path) -> None:
    own.write_text("[search]\nbudget = 10\nseed = 5\npolicy = 'topk:k=4'\n")
    write("[search]\nbudget = 20\nuntil = 0.02\n")
    found = parsed("search", "softmax")
    assert (found.budget, found.seed, found.policy, found.until) == (20, 5, "topk:k=4", 0.02)
    assert parsed("search", "softmax", "--budget", "30").budget == 30


def test_underscores_and_commands_of_commands() -> None:
    write("[corpus.collect]\nper_problem = 7\n[corpus.ls]\nproblem = 'softmax'\n")
    assert parsed("corpus", "collect", "--into", "x").per_problem == 7
    assert parsed("corpus", "ls").problem == "softmax"


def test_an_option_that_may_be_repeated_is_replaced_and_not_added_to() -> None:
    write("[evaluate]\nforecaster = ['nearest', 'prior']\n")
    assert parsed("evaluate").forecaster == ["nearest", "prior"]
    assert parsed("evaluate", "--forecaster", "uniform").forecaster == ["uniform"]


def test_an_option_that_is_required_may_come_from_the_file(own: Path) -> None:
    own.write_text("[corpus.collect]\ninto = 'journals'\n")
    assert parsed("corpus", "collect").into == Path("journals")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serch]\nbudget = 3", "presage.toml: [serch] there is no command 'serch'; did you mean search?"),
        ("[search]\nbugdet = 3", "presage.toml: [search] search has no option 'bugdet'; did you mean budget"),
        ("[search]\nzzz = 3", "search has no option 'zzz'; it has: problem, only, device, forecaster"),
        ("[search]\nbudget = 0", "presage.toml: [search] budget: '0' is not a whole number, 1 or more"),
        ("[search]\nbudget = [1]", "presage.toml: [search] budget must be text or a number"),
        ("[search]\nuntil = true", "presage.toml: [search] until must be text or a number"),
        ("[search]\njson = true", "search has no option 'json'"),
        ("budget = 3", "presage.toml: 'budget' belongs to a command; write it under a table such as [search]"),
        ("[search", "presage.toml is not valid TOML"),
        ("[search]\nrun = '/etc/x'", "'run' can be set only in your own file,"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(text)
    for arguments in (("search", "softmax"), ("config",)):
        assert main([*arguments]) == 2
        errors = capsys.readouterr().err
        assert said in errors
        assert len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("measure", "cc", "x"), ("llm.check", "base-url", "x"), ("evaluate", "html", "x"), ("train", "into", "x"),
        ("corpus.pack", "output", "x"), ("corpus.import", "modules", "x"),
        ("search", "device", "ray:cuda@example.org:6379,only=H200"), ("corpus.collect", "device", "ray@10.0.0.1:6379"),
    ],
)  # fmt: skip
def test_a_file_that_came_with_a_folder_chooses_no_program_no_address_and_no_file_to_write(
    command: str, option: str, value: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(f"[{command}]\n{option} = '{value}'\n")
    assert main(["config"]) == 2
    assert f"'{option}' can be set only in your own file, {own}, or on the command line" in capsys.readouterr().err
    Path("presage.toml").rename(own)
    assert main(["config"]) == 0


def test_no_config_reads_none(capsys: pytest.CaptureFixture[str]) -> None:
    write("[search")
    assert main(["runs"]) == 2
    assert main(["runs", "--no-config"]) == 0
    assert main(["--no-config", "runs"]) == 0
    assert main(["corpus", "ls", "--no-config", "--problem", "softmax"]) == 0


def test_config_shows_the_files_and_what_they_set(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("[search]\nbudget = 3\n")
    assert main(["config"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{own}: does not exist",
        "presage.toml: read",
        "",
        "command  option  value  file",
        "search   budget  3      presage.toml",
    ]
