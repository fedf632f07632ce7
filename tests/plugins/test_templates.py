"""What `new` writes can be installed, checked and used as it is written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from presage import PresageError
from presage.authoring import template
from presage.cli.main import main
from presage.plugins.group import FORECASTERS, POLICIES, PROBLEMS

Presage = Callable[..., str]
GROUPS = {"my_operation": PROBLEMS, "my_forecaster": FORECASTERS, "my_policy": POLICIES}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    for name, group in GROUPS.items():
        template.write(group, name, folder)
    return folder


@pytest.fixture(scope="module")
def target(written: Path, install: Callable[..., None]) -> Path:
    install(written / "site", *(written / name for name in GROUPS))
    return written / "site"


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "my_operation",
            [
                "pyproject.toml",
                "presage_my_operation/__init__.py",
                "presage_my_operation/problem.py",
                "presage_my_operation/my_operation/blocks.c",
                "presage_my_operation/my_operation/eager.py",
                "presage_my_operation/my_operation/naive.c",
                "presage_my_operation/my_operation/naive.cu",
                "test_my_operation.py",
            ],
        ),
        (
            "my_forecaster",
            [
                "pyproject.toml",
                "presage_my_forecaster/__init__.py",
                "presage_my_forecaster/forecaster.py",
                "test_my_forecaster.py",
            ],
        ),
        (
            "my_policy",
            ["pyproject.toml", "presage_my_policy/__init__.py", "presage_my_policy/policy.py", "test_my_policy.py"],
        ),
    ],
)
def test_new_writes_a_package_and_says_what_to_do_next(
    presage: Presage, here: Path, name: str, files: list[str]
) -> None:
    # The names are those of installed packages here, so others are written.
    name, files = f"{name}2", [file.replace(name, f"{name}2") for file in files]
    kind = GROUPS[name[:-1]].plural
    document = json.loads(presage(kind, "new", name, "--json"))
    assert document["files"] == [f"{name}/{file}" for file in files]
    assert all((here / file).is_file() for file in document["files"])
    assert document["then"] == [f"pip install -e {name}", f"presage {kind} check {name}"]
    presage(kind, "new", name, "--into", "elsewhere")
    assert (here / "elsewhere" / name / "pyproject.toml").is_file()


def test_the_text_has_no_places_left_and_is_in_good_form(written: Path) -> None:
    texts = {file: file.read_text() for file in written.glob("my_*/**/*") if file.is_file()}
    assert len(texts) == 16
    assert not [file for file, text in texts.items() if "$" in text or ".template" in file.name]
    assert max(len(line) for text in texts.values() for line in text.splitlines()) <= 120
    for file, text in texts.items():
        if file.suffix == ".py":
            compile(text, str(file), "exec")


def test_the_problem_passes_its_check_and_is_measured(presage: Presage) -> None:
    checked = presage("problems", "check", "my_operation")
    assert "ok           naive.c: agrees with the oracle on the CPU" in checked
    assert "all-zero outputs pass 0 of" in checked
    assert "my_operation: nothing failed" in checked
    quick = ("--seconds", "10", "--precision", "0.9")
    text = presage("measure", "my_operation", "blocks.c@THREADS=1", *quick)
    assert "the anchor's speed" in text


def test_the_forecaster_and_the_policy_search(presage: Presage) -> None:
    names = ("--forecaster", "my_forecaster", "--policy", "my_policy", "--device", "recorded:h200")
    found = json.loads(presage("search", "softmax", *names, "--budget", "6", "--json"))
    assert 0 < found["measurements"] <= 6
    assert found["forecasts"] > 0


@pytest.mark.parametrize("kind", ["forecasters", "policies"])
def test_the_others_pass_their_checks(presage: Presage, kind: str) -> None:
    name = {"forecasters": "my_forecaster", "policies": "my_policy"}[kind]
    document = json.loads(presage(kind, "check", name, "--json"))
    assert document["ok"]
    assert {finding["verdict"] for finding in document["findings"]} == {"ok"}
    shown = json.loads(presage(kind, name, "--json"))[kind]
    assert [(each["name"], each["package"]) for each in shown] == [(name, f"presage-{name.replace('_', '-')}")]


def test_the_tests_that_come_with_them_pass(python: Callable[..., object], written: Path) -> None:
    files = [str(written / name / f"test_{name}.py") for name in GROUPS]
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", *files)
    assert "3 passed" in done.stdout, done.stdout  # type: ignore[attr-defined]


def test_a_problem_is_not_run_from_a_path(presage: Presage, written: Path) -> None:
    path = written / "my_operation" / "presage_my_operation" / "problem.py"
    for command in (("measure", str(path), "naive.c"), ("problems", str(path)), ("problems", "check", str(path))):
        errors = presage(*command, status=2)
        assert f"install its package ('pip install -e {written / 'my_operation'}')" in errors
    assert f"run 'pip install -e {written / 'my_operation'}'" in presage(
        "measure", str(written / "my_operation"), "naive.c", status=2
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("softmax", "there is a problem 'softmax' already"),
        ("My-Op", "'My-Op' cannot be the name of a problem: it has lower-case letters"),
        ("class", "cannot be the name"),
        ("new", "cannot be the name"),
        ("../up", "cannot be the name"),
        ("x" * 41, "40 characters at most"),
        ("", "cannot be the name"),
    ],
)
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(PresageError, match=said.replace("(", r"\(")):
        template.write(PROBLEMS, name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.txt").write_text("of a week")
    with pytest.raises(PresageError, match="is there already; choose another name, or another folder with --into"):
        template.write(POLICIES, "mine", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(PresageError, match=r"cannot write .*: Not a directory; name a folder with --into"):
        template.write(POLICIES, "mine", tmp_path / "file")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "mine"]


@pytest.mark.parametrize("words", [("new",), ("check",), ("one", "two"), ("new", "one", "two")])
def test_how_to_write_the_command_is_said(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", *words]) == 2
    assert "'presage policies new NAME' or 'presage policies check NAME'" in capsys.readouterr().err


def test_a_full_disk_leaves_no_half_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(PresageError, match=r"cannot write .*full: No space left on device"):
            template.write(POLICIES, "full", tmp_path)
    assert template.write(POLICIES, "full", tmp_path).files
