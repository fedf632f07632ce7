"""Figures: points where they belong, ticks that people read, and nothing that is not finite."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.report.figure import HEIGHT, WIDTH, Axis, Series, figure, ticks

number = st.floats(-1e9, 1e9)
anything = st.floats(allow_nan=True, allow_infinity=True)


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


@pytest.mark.parametrize(
    ("low", "high", "right"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (-2.1, 2.1, [-2, -1, 0, 1, 2]),
        (0.03, 0.07, [0.03, 0.04, 0.05, 0.06, 0.07]),
    ],
)
def test_ticks_are_round(low: float, high: float, right: list[float]) -> None:
    assert ticks(low, high) == right


@given(number, st.floats(1e-6, 1e9))
def test_ticks_lie_inside_and_are_few(low: float, width: float) -> None:
    found = ticks(low, low + width)
    slack = 1e-6 * width + 1e-9 * abs(low)
    assert all(low - slack <= tick <= low + width + slack for tick in found)
    assert len(found) <= 12


@pytest.mark.parametrize("kind", ["line", "points", "steps", "bars"])
@pytest.mark.parametrize("log", [False, True])
@given(points=st.lists(st.tuples(anything, anything), max_size=8))
def test_whatever_is_drawn_is_well_formed_and_on_the_page(kind, log: bool, points) -> None:
    x, y = [p[0] for p in points], [p[1] for p in points]
    text = figure("t", Axis("x", log=log), Axis("y", log=log), [Series("s", x, y, kind)], diagonal=not log)
    parsed(text)
    assert "nan" not in text
    assert "inf" not in text
    for place in re.findall(r'c[xy]="(-?[\d.]+)"', text):
        assert -10 <= float(place) <= WIDTH + 10


def test_points_are_where_they_should_be() -> None:
    text = figure("t", Axis("x", 0, 10), Axis("y", 0, 1), [Series("s", [0, 10], [0, 1], "points")])
    (x0, y0), (x1, y1) = re.findall(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)"', text)
    assert float(x0) < float(x1) <= WIDTH
    assert 0 <= float(y1) < float(y0) < HEIGHT
    logarithmic = figure("t", Axis("x", 1, 4, log=True), Axis("y"), [Series("s", [1, 2, 4], [0, 0, 0], "points")])
    a, b, c = (float(place) for place in re.findall(r'cx="([\d.]+)"', logarithmic))
    assert b - a == pytest.approx(c - b, abs=0.2)
    assert ">2<" in logarithmic


def test_readers_of_all_kinds_are_told_what_it_is() -> None:
    root = parsed(figure("A <title> & more", Axis("x"), Axis("y"), [Series("one", [1], [1]), Series("two", [], [])]))
    drawing = root.find("svg")
    assert drawing is not None
    assert drawing.get("role") == "img"
    assert drawing.findtext("title") == drawing.get("aria-label") == "A <title> & more"
    assert drawing.findtext("desc") == "one: 1 points; two: 0 points"
    assert [item.find("span").tail for item in root.findall("ul/li")] == ["one", "two"]


def test_a_figure_of_very_many_points_stays_small() -> None:
    many = [math.sin(i) for i in range(100_000)]
    assert len(figure("t", Axis("x"), Axis("y"), [Series("s", range(100_000), many, "points")])) < 1_000_000
