"""Pages: whole, offline, and safe whatever kernels and models wrote."""

from __future__ import annotations

import itertools
import math
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Evaluation, Interval, PresageError
from presage.cli import documents
from presage.report import compare_page, evaluate_page, frozen, lineage, page, run_view, source
from presage.report.html import address, tag
from presage.store.store import Event, Store

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)> \x1b[31m \u202e & \"quoted\" 'text'"
VOID = {"meta", "img", "br", "input", "link"}


class Checker(HTMLParser):
    """Every tag closed in order, and the list of all tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [
            str(value)
            for name, value in attrs
            if (name in ("src", "srcset") or name.startswith("on"))
            or (name == "href" and not str(value).startswith("#"))
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check(text: str) -> Checker:
    found = Checker(text)
    assert not found.tags & {"script", "img", "link", "iframe", "object"}
    assert found.links == []
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text
    return found


# -- evaluations ------------------------------------------------------------------------------------------------------


def evaluation(name: str) -> Evaluation:
    some = np.linspace(0.1, 1, 5)
    curves = {name: (some, some) for name in ("reliability", "risk_coverage", "recovery", "recovery_random")}
    metrics = {
        "exact": Interval(0.61234, 0.5, 0.7),
        "ece": Interval(math.nan, math.nan, math.nan),
        "spearman": Interval(0.5, -math.inf, math.inf),
        "recovery": {"0.02": Interval(0.1, 0.05, 0.2)},
    }
    return Evaluation(name, "test_op", "h200", 35, 1000, metrics, curves)


def test_an_evaluation_has_its_figures_and_numbers() -> None:
    text = evaluate_page.render([evaluation("learned"), evaluation(HOSTILE)])
    found = check(text)
    assert text.count("<svg") == 3
    assert "35 operations of h200, split test_op" in found.text
    assert "0.612 (0.500 to 0.700)" in found.text
    assert "recovery 0.02" in found.text
    assert "drawn at random" in found.text


def test_numbers_that_are_not_known_are_dashes() -> None:
    rows, header = evaluate_page.numbers([evaluation("learned"), replace(evaluation("other"), metrics={})])
    table = {row[0]: row[1:-1] for row in rows}
    assert header == ["", "learned", "other", "meaning"]
    assert table["ece"] == ["–", "–"]
    assert table["spearman"] == ["0.500", "–"]


def test_an_evaluation_without_curves_has_no_figures() -> None:
    assert "<svg" not in evaluate_page.render([replace(evaluation("learned"), curves={})])


def test_an_evaluation_is_the_same_after_it_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "an-evaluation.json"
    both = [evaluation("learned"), evaluation("other")]
    told = {"recording": "h200", "operations": 35, "comparisons": [], "evaluations": [each.to_json() for each in both]}
    file.write_text(documents.text("evaluate", told))
    assert list(evaluate_page.saved(tmp_path)) == ["an-evaluation"]
    assert evaluate_page.render(*evaluate_page.load(file)).count("<svg") == 3
    rows, _ = evaluate_page.numbers(evaluate_page.load(file)[0])
    assert [row for row in rows if row[0] != "spearman"] == [
        row for row in evaluate_page.numbers(both)[0] if row[0] != "spearman"
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"recording": 1}', "{" * 99, '{"evaluations": [{}], "recording": 0}'])
def test_what_is_no_evaluation_is_said(text: str, tmp_path: Path) -> None:
    file = tmp_path / "evaluation.json"
    file.write_text(text)
    with pytest.raises(PresageError, match="is not an evaluation"):
        evaluate_page.load(file)
    assert "is not an evaluation" in page.frozen(evaluate_page.listed(evaluate_page.saved(tmp_path)))


# -- runs -------------------------------------------------------------------------------------------------------------


def written(folder: Path, writer: Any, steps: int, words: str = "") -> str:
    run = writer(folder, words)
    for _ in range(steps):
        run.step()
    run.close()
    return frozen.render(folder)


def test_the_answer_comes_first(writer: Any, tmp_path: Path) -> None:
    text = written(tmp_path / "run", writer, 4)
    found = check(text)
    assert re.search(r"<main.*?<h1>softmax on recorded:h200</h1><section id=\"answer\">", text)
    for heading in ("What was found", "How sure", "What it cost", "What it saved"):
        assert heading in found.text
    assert "2.46× the anchor's speed so far" in found.text
    assert "The proposer's model: 400 tokens, $0.04" in found.text
    assert "800 of 10,000 spent, 9,200 left" in found.text
    order = [found.text.index(word) for word in ("Budget", "Progress", "Forecasts against", "Lineage", "Settings")]
    assert order == sorted(order)


def test_decisions_are_in_order_of_time_with_their_reasons_in_view(writer: Any, tmp_path: Path) -> None:
    text = written(tmp_path / "run", writer, 100)
    table = text[text.index('<section id="decisions"') : text.index('<section id="lineage"')]
    numbers = [int(number) for number in re.findall(r"rows\.c@N=(\d+)", table)]
    groups = [number // 4 for number in (n - 1 for n in numbers)]
    assert groups == sorted(groups)
    assert len(numbers) == 300
    assert "the last 300 of 400" in table
    assert 'class="box tall"' in table  # it scrolls in a box of its own
    assert table.index("unroll the inner loop") < table.index("</tr>", table.index("<tbody>"))
    assert len(text) < 3_000_000


@pytest.mark.parametrize("steps", [0, 1])
def test_a_run_that_has_hardly_begun_has_a_page(writer: Any, tmp_path: Path, steps: int) -> None:
    found = check(written(tmp_path / "run", writer, steps))
    assert ("Nothing faster than the anchor yet" in found.text) == (steps == 0)


def test_hostile_words_stay_words(writer: Any, tmp_path: Path) -> None:
    found = check(written(tmp_path / "run", writer, 3, HOSTILE))
    assert found.text.count("<script>alert(1)</script>") > 20
    assert "\u202e" not in found.text
    assert "\x1b" not in found.text


def test_words_without_end_are_cut(writer: Any, tmp_path: Path) -> None:
    text = written(tmp_path / "run", writer, 2, "ab " * 40_000)
    check(text)
    assert len(text) < 1_500_000


def test_headings_are_in_order_and_ids_unique(writer: Any, tmp_path: Path) -> None:
    text = written(tmp_path / "run", writer, 3)
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert not re.search(r"<th(?![^>]*scope=)[ >]", text)


def test_lineage_keeps_every_ancestor(writer: Any, tmp_path: Path) -> None:
    view = run_view.RunView(tmp_path)
    told: dict[str, Any] = {"status": "ok", "reason": "", "seconds": 0.1}
    view.apply(Event(1, 0.0, "measured", {"kernel": "k0", "value": 0.0} | told))
    for number in range(1, 500):  # each is the child of the one before, and only the last is any good
        parent = {"parent_kernel": f"k{max(0, number - 1)}" if number % 9 else "k0"}
        candidates = {"candidates": [[f"k{number}", "why"]], "duplicates": 0, "tokens": 0, "dollars": 0.0}
        view.apply(Event(2, 0.0, "proposed", parent | candidates))
        view.apply(Event(3, 0.0, "measured", {"kernel": f"k{number}", "value": number / 100} | told))
    shown = lineage.worth_showing(view)
    assert {"k499", "k498", "k0"} <= shown
    assert len(shown) <= 210
    assert all(view.kernels[hash].parent in {*shown, None} for hash in shown)


# -- HTML -------------------------------------------------------------------------------------------------------------


@given(st.text(), st.text())
def test_no_text_becomes_markup(text: str, value: str) -> None:
    made = tag("p", text, tag("b", text), title=value)
    found = ET.fromstring(re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", made))
    assert [each.tag for each in found.iter()] == ["p", "b"]
    assert set(found.attrib) == {"title"}


@pytest.mark.parametrize(
    "to", ["javascript:alert(1)", "//evil.example", "https://evil.example", "/\\evil", "data:x", ""]
)
def test_links_lead_nowhere_else(to: str) -> None:
    with pytest.raises(ValueError, match="pages of their own"):
        tag("a", "x", href=to)


@given(st.text(min_size=1))
def test_an_address_is_one_path(part: str) -> None:
    part = part.encode(errors="replace").decode()
    assert tag("a", "x", href=address("runs", part))
    assert unquote(urlsplit(address("runs", part)).path) == f"/runs/{part}"
    assert address("runs", part).count("/") == 2


def test_a_folder_whose_name_is_not_utf8_has_an_address() -> None:
    assert address("runs", os.fsdecode(b"k\xff")) == "/runs/k%FF"


@pytest.mark.parametrize("language", ["c", "cuda", "triton", "torch"])
@given(text=st.text(alphabet=st.sampled_from(list("ab(){}<>&\"'#/*\n\t 1.é\u202e\\")), max_size=60))
def test_a_highlighted_source_has_all_of_its_text(text: str, language: str) -> None:
    shown = Checker(source.highlighted(text, language))
    assert shown.text == text


def test_a_source_is_highlighted() -> None:
    shown = source.highlighted("// hi\n__global__ void f(int n) { return 12; }\n", "cuda")
    for kind, text in (("comment", "// hi"), ("number", "12"), ("keyword", "return"), ("keyword", "void")):
        assert f'<span class="{kind}">{text}</span>' in shown


# -- comparing --------------------------------------------------------------------------------------------------------


def test_runs_that_differ_only_in_their_seed_are_one_line(writer: Any, tmp_path: Path) -> None:
    compared = []
    for name, asked in (("a", {"seed": 0}), ("b", {"seed": 1}), ("c", {"policy": "always"}), ("d", {"device": "cpu"})):
        run = writer(tmp_path / name, **asked)
        run.step()
        run.close()
        view = run_view.read(tmp_path / name)
        with Store(tmp_path / name, writes=False) as store:
            compared.append(compare_page.Compared.of(view, frozen.standing(view, store, False)))
    assert list(map(len, compare_page.groups(compared[:3]).values())) == [2, 1]
    text = page.live(compare_page.build(compared, ["a", "b", "c", "d"]), None)
    assert text.count("<svg") == 4  # two for each device: what was measured elsewhere is never on the same axes
    assert text.count('class="band') == 2
    assert "softmax on cpu" in text


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = page.write(tmp_path / "report.html", "é \ud800")
    assert path.read_text() == "é \\ud800"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(PresageError, match=r"cannot write .*: No such file or directory"):
        page.write(tmp_path / "nowhere" / "report.html", "")
