"""The documentation is a site without broken links, which needs no network, and its reference shows what there is."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import presage
from presage.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="the extra [docs] is not installed")
def test_the_site_is_built_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    source = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        assert "<!-- generated" not in text
        assert not re.search(r'<(?:script|img|iframe)[^>]* src="?(?:https?:)?//', text), page
        assert not re.search(r'<link[^>]* rel="?stylesheet"?[^>]*https?://', text), page
    api = (tmp_path / "reference" / "api.html").read_text()
    assert [name for name in presage.__all__ if f'id="presage.{name}"' not in api] == []


def test_the_reference_shows_every_command_and_option(generated: ModuleType) -> None:
    page = generated.on_page_markdown((ROOT / "docs" / "reference" / "cli.md").read_text())
    for name in main.COMMANDS:
        assert f"## presage {name}\n" in page
        for parser in _with_children(generated, generated._parser(name)):
            assert f"# {parser.prog}\n" in page
            section = page.split(f"# {parser.prog}\n")[1].split("\n#")[0]
            options = set(re.findall(r"^ +(?:-\w[^,]*, )?(--[a-z-]+)", parser.format_help(), re.MULTILINE)) - {"--help"}
            if not generated._choices(parser):
                assert {option for option in options if option not in section} == set(), parser.prog


def test_the_reference_shows_every_gpu(generated: ModuleType) -> None:
    page = generated.on_page_markdown((ROOT / "docs" / "reference" / "targets.md").read_text())
    assert "| `h200` | NVIDIA H200 SXM 141 GB | sm\\_90 | 132 | 4,800 |" in page


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_outside_of_the_site_lead_to_a_heading_that_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        if name.startswith("http"):
            continue
        file = ROOT / name if name else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert anchor in map(_slug, headings), target


def test_files_of_the_code_that_pages_name_exist() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"`((?:[a-z_]+/)+\w+\.(?:py|toml))`", page.read_text()):
            places = (ROOT, ROOT / "src", ROOT / "src" / "presage")
            assert any((place / name).exists() for place in places), f"{page.name} names {name}"


def _slug(heading: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower())).strip("-")


def _with_children(generated: ModuleType, parser: object) -> Iterator[object]:
    yield parser
    for child in generated._choices(parser).values():
        yield from _with_children(generated, child)
