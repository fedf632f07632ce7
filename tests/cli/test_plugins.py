"""What is installed, as users see it: `presage plugins`, `presage search --help`, `presage --version`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from presage.cli import version
from presage.cli.main import main
from presage.plugins import group
from presage.plugins.group import POLICIES, PROPOSERS, STRATEGIES, Group
from presage.plugins.summaries import summaries


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package is installed, with a policy."""
    (tmp_path / "other_policies.py").write_text(
        "raise SystemError('nobody imports this for a list')\n"
        "class Half:\n    '''Measures every other candidate. Forgets the rest.'''\n"
    )
    about = tmp_path / "other_policies-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-policies\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text("[presage.policies]\nhalf = other_policies:Half\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("other")
def test_summaries_are_read_and_nothing_is_imported() -> None:
    assert summaries(POLICIES)["half"] == "Measures every other candidate"
    assert "other_policies" not in sys.modules


@pytest.mark.parametrize("parts", [POLICIES, PROPOSERS, STRATEGIES, group.FORECASTERS], ids=lambda parts: parts.plural)
def test_every_part_of_ours_says_what_it_does(parts: Group) -> None:
    assert [name for name, said in summaries(parts).items() if not said] == []


@pytest.mark.usefixtures("other")
def test_the_help_of_search_lists_what_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["search", "--help"])
    text = capsys.readouterr().out
    for name in ("topk ", "puct ", "knobs ", "surrogate "):
        assert f"\n  {name}" in text
    assert "half         Measures every other candidate" in text


def test_plugins_are_listed_with_their_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (topk,) = (line for line in lines if line.split()[1] == "topk")
    assert re.match(r"policy  topk       presage-kernels \S+  Measures the k candidates", topk)
    assert topk.endswith("[k=2]")
    assert main(["plugins", "nonsense"]) == 2


@pytest.mark.usefixtures("other")
def test_the_version_names_plugins_of_others() -> None:
    assert version.text().startswith("presage 0.1.0\npython 3.")
    assert "\nother-policies 2.5 (plugin: policies half)\n" in version.text()
