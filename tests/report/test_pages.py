"""Pages: whole, offline, and safe whatever kernels and models wrote."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from presage import Evaluation, Forecast, Interval, PresageError
from presage.core.text import printable
from presage.report import evaluate_page, page, run_page
from presage.report.run_view import RunView, Seen

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)> \x1b[31m \u202e & \"quoted\" 'text'"
VOID = {"meta", "img", "br"}


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
            str(value) for name, value in attrs if name in ("src", "href", "srcset") or name.startswith("on")
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


# -- runs -------------------------------------------------------------------------------------------------------------


def around(y: float) -> Forecast:
    return Forecast((y - 0.5, y + 0.5), (0.0, 1.0), p_fail=0.1)


def view(count: int = 20) -> RunView:
    """A chain of kernels, each a little faster; every third is trusted, every seventh fails."""
    kernels = [Seen("k0", "naive.cu", measured=1, value=0.0)]
    measured = 1
    for i in range(1, count):
        seen = Seen(
            f"k{i}", f"rows.cu@N={i}", f"k{i - 1}", "unroll", around(2 * i / count), "measure", "not sure enough"
        )
        if i % 3 == 0:
            seen = replace(seen, action="trust", reason="sure enough")
        else:
            measured += 1
            seen = replace(seen, measured=measured, value=2 * i / count + 0.05)
        if i % 7 == 0:
            seen = replace(seen, value=None, failure="wrong result: y[0] is 1")
        kernels.append(seen)
    winner = max((seen for seen in kernels if seen.value is not None), key=lambda seen: seen.value or 0)
    return RunView(
        run="softmax-0",
        problem="softmax",
        facts={"device": "recorded:h200", "spent: measurements": "14"},
        kernels=kernels,
        best=winner.hash,
        speedup=Interval(3.5, 3.4, 3.6),
        anchor_source="a\nb\nc\n",
        best_source="a\nB\nc\n",
        missed="probably nothing",
        ended="the budget of 14 measurements is spent",
    )


def test_a_run_is_shown_whole() -> None:
    text = run_page.render(view())
    found = check(text)
    assert text.count("<svg") == 3
    for heading in ("Result", "Figures", "The winner against the anchor", "Lineage", "Decisions"):
        assert f"<h2>{heading}</h2>" in text
    for words in ("3.5x (3.4 to 3.6)", "probably nothing", "sure enough", "wrong result: y[0] is 1", "unroll"):
        assert words in found.text
    assert "The budget of 14 measurements is spent." in found.text
    assert '<span class="removed">-b</span>' in text
    assert '<span class="added">+B</span>' in text
    assert re.search(r'<span class="best">rows\.cu@N=19', text)


def test_lineage_is_a_tree() -> None:
    kernels = [
        Seen("a", "anchor", measured=1, value=0.0),
        Seen("b", "left", "a", measured=2, value=1.0),
        Seen("c", "leaf", "b", measured=3, value=2.0),
        Seen("d", "right", "a", forecast=around(0.5), action="trust"),
    ]
    text = run_page.render(replace(view(), kernels=kernels, best="c"))
    tree = re.sub(r"<span[^>]*>(\w+):[^<]*</span>", r"\1", text[text.index('<ul class="tree">') :])
    wanted = '<ul class="tree"><li>anchor<ul><li>left<ul><li>leaf</li></ul></li><li>right</li></ul></li></ul>'
    assert tree.startswith(wanted)


def test_hostile_words_stay_words() -> None:
    plain = view()
    kernels = [
        replace(seen, name=HOSTILE, why=HOSTILE, reason=HOSTILE, failure=seen.failure and HOSTILE)
        for seen in plain.kernels
    ]
    hostile = replace(
        plain, run=HOSTILE, problem=HOSTILE, kernels=kernels, facts={HOSTILE: HOSTILE}, ended=HOSTILE,
        anchor_source=HOSTILE, best_source=f"{HOSTILE}\n{HOSTILE}",
    )  # fmt: skip
    assert printable(HOSTILE) in check(run_page.render(hostile)).text


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_run_that_has_hardly_begun_has_a_page(count: int) -> None:
    young = replace(view(count), speedup=None, missed="", ended="", best_source="a\nb\nc\n")
    found = check(run_page.render(young))
    assert "It has not ended." in found.text
    assert "The winner is the anchor itself." in found.text


def test_a_very_long_run_has_a_page_of_bearable_size() -> None:
    text = run_page.render(view(8_000))
    check(text)
    assert len(text) < 3_000_000
    assert "The last 500 of 7999." in text


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = page.write(tmp_path / "report.html", "é \ud800")
    assert path.read_text() == "é \\ud800"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(PresageError, match=r"cannot write .*: No such file or directory"):
        page.write(tmp_path / "nowhere" / "report.html", "")
