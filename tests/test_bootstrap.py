"""The `./presage` script as a user meets it: first use, later uses, and what it says when something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BASIC_TOOLS = ("sh", "cat", "cksum", "dirname", "ls", "mkdir", "readlink", "rm", "tail", "touch")

OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}

pytestmark = pytest.mark.slow


def environment(**changes: str) -> dict[str, str]:
    ours = ("PRESAGE_EXTRAS", "PRESAGE_VENV", "PYTHONPATH")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return inherited | {"PIP_NO_COMPILE": "1"} | changes  # numpy need not be byte-compiled here


def run(script: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, *arguments], env=environment(**changes), cwd="/", capture_output=True, text=True, timeout=900
    )


def copy_tree(to: Path) -> Path:
    """What a checkout needs to run, in `to`; the script's path is returned. It needs numpy alone, to be quick."""
    to.mkdir(parents=True)
    shutil.copytree(ROOT / "src", to / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("presage", "pyproject.toml", "constraints.txt", "LICENSE", "README.md"):
        shutil.copy2(ROOT / name, to / name)
    project = to / "pyproject.toml"
    named, needs, rest = project.read_text().partition("\ndependencies = [\n")
    project.write_text(named + needs + '    "numpy>=2.0",\n' + rest[rest.index("]\n") :])
    return to / "presage"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A checkout that was never used."""
    return copy_tree(tmp_path / "a checkout")


@pytest.fixture
def few_tools(tmp_path: Path) -> Path:
    """A folder for PATH that has the basic tools and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in BASIC_TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    return folder


def add_program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def first_uses(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, str, str]]]:
    """One checkout that two people use for the first time at once: its script, and what each of them saw."""
    script = copy_tree(tmp_path_factory.mktemp("first use") / "a checkout")
    users = [
        subprocess.Popen(
            [script, "--version"],
            env=environment(PIP_RETRIES="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    seen = [(*user.communicate(timeout=900), user.returncode) for user in users]
    if any(status for *_, status in seen) and "connection broken" in (script.parent / ".venv/presage.log").read_text():
        pytest.skip("no package registry can be reached, so nothing can be installed")
    return script, [(status, out, err) for out, err, status in seen]


@pytest.fixture
def installed(first_uses: tuple[Path, list[tuple[int, str, str]]]) -> Path:
    return first_uses[0]


def stamp(script: Path) -> Path:
    return script.parent / ".venv" / "presage.base"


def test_two_first_uses_at_once_install_once(first_uses: tuple[Path, list[tuple[int, str, str]]]) -> None:
    _, seen = first_uses
    assert [(status, out.splitlines()[:1]) for status, out, _ in seen] == [(0, ["presage 0.1.0"])] * 2, seen
    waiting, making = sorted((err for _, _, err in seen), key=len)
    assert waiting == "presage: waiting for another presage, which is installing here\n"
    assert "making a Python environment" in making
    assert len(making.splitlines()) == 2


def processor_time() -> float:
    """Seconds that processes which have ended here have run; a busy machine does not change it."""
    spent = os.times()
    return spent.children_user + spent.children_system


def test_later_uses_are_quick_quiet_and_install_nothing(installed: Path) -> None:
    before = stamp(installed).stat().st_mtime_ns
    python = installed.parent / ".venv/bin/python"
    ours, bare = [], []
    for _ in range(3):
        start = processor_time()
        result = run(installed, "--help")
        middle = processor_time()
        subprocess.run([python, "-P", "-m", "presage", "--help"], capture_output=True, check=True)
        ours.append(middle - start)
        bare.append(processor_time() - middle)
        assert (result.returncode, result.stderr) == (0, "")
    assert stamp(installed).stat().st_mtime_ns == before
    assert min(ours) < 2 * min(bare), "the script should add about 10 ms"


def test_the_command_keeps_its_exit_status(installed: Path) -> None:
    assert run(installed, "no-such-command").returncode == 2


def test_a_changed_constraint_installs_again(installed: Path) -> None:
    before = stamp(installed).read_text()
    with (installed.parent / "constraints.txt").open("a") as constraints:
        constraints.write("# changed\n")
    result = run(installed, "--version", **OFFLINE)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("presage 0.1.0\n")
    assert result.stderr == "presage: installing presage and what it needs\n"
    assert stamp(installed).read_text() != before


def test_an_interrupted_environment_is_made_again(fresh: Path, few_tools: Path) -> None:
    """By a Python whose environments are made at once: what the script does is the same."""
    venv = fresh.parent / ".venv"
    for name in ("bin/python", "lib/half installed", "presage.base", "presage.lock", "presage.making"):
        (venv / name).parent.mkdir(parents=True, exist_ok=True)
        (venv / name).touch(mode=0o755)
    made = 'printf "#!/bin/sh\\necho ran \\$*\\n" >"$3/bin/python"; chmod +x "$3/bin/python"'
    add_program(
        few_tools,
        "python3",
        f'case "$1 $2" in "-m venv") mkdir "$3/bin"; {made} ;; *) exec "{sys.executable}" "$@" ;; esac',
    )
    (few_tools / "chmod").symlink_to(shutil.which("chmod") or "/bin/chmod")
    result = run(fresh, "--version", PATH=str(few_tools))
    assert (result.returncode, result.stdout) == (0, "ran -P -m presage --version\n"), result.stderr
    assert "making a Python environment" in result.stderr
    assert sorted(file.name for file in venv.iterdir()) == sorted(
        ("bin", "presage.base", "presage.extras", "presage.lock", "presage.log")
    )
    assert "pip install" in (venv / "presage.log").read_text()


def test_a_symbolic_link_to_the_script_works(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "presage").symlink_to(installed)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to("../presage")
    assert run(tmp_path / "folder" / "link", "--version").stdout.startswith("presage 0.1.0\n")


def test_a_failed_install_shows_the_log_and_is_tried_again(installed: Path) -> None:
    constraints = installed.parent / "constraints.txt"
    good = constraints.read_text()
    constraints.write_text(good.replace("numpy==", "numpy==99."))
    result = run(installed, "--version", **OFFLINE)
    assert result.returncode == 1
    assert "ERROR: " in result.stderr
    assert "numpy==99." in result.stderr
    assert result.stderr.endswith("presage.log\n")
    constraints.write_text(good)
    assert run(installed, "--version", **OFFLINE).stdout.startswith("presage 0.1.0\n")


def test_a_missing_python_is_explained(fresh: Path, few_tools: Path) -> None:
    result = run(fresh, "--version", PATH=str(few_tools))
    assert result.returncode == 1
    assert result.stderr.startswith("presage: Python 3.11 or newer is needed. ")
    assert "apt install python3" in result.stderr


def test_an_old_python_is_named(fresh: Path, few_tools: Path) -> None:
    add_program(few_tools, "python3", "echo 3.9")
    result = run(fresh, "--version", PATH=str(few_tools))
    assert result.returncode == 1
    assert "3.11 or newer is needed; python3 here is 3.9." in result.stderr


def test_a_python_without_venv_is_explained(fresh: Path, few_tools: Path) -> None:
    add_program(few_tools, "python3.12", "case $2 in *ensurepip*) exit 1 ;; *) echo 3.12 ;; esac")
    result = run(fresh, "--version", PATH=str(few_tools))
    assert result.returncode == 1
    assert "apt install python3.12-venv" in result.stderr


def test_an_unwritable_place_is_explained(fresh: Path) -> None:
    result = run(fresh, "--version", PRESAGE_VENV="/dev/null/venv")
    assert result.returncode == 1
    assert "cannot write to /dev/null/venv" in result.stderr
    assert "PRESAGE_VENV" in result.stderr


def test_a_folder_of_other_things_is_left_alone(fresh: Path, tmp_path: Path) -> None:
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "letter").write_text("dear")
    result = run(fresh, "--version", PRESAGE_VENV=str(precious))
    assert result.returncode == 1
    assert [file.name for file in precious.iterdir()] == ["letter"]
