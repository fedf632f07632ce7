"""Everything the edge table produces must name the same bin, for every speedup."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.core import scale

EDGE_OF_TEXT = {f"{edge:.3g}": edge for edge in scale.EDGES}
NEAR_EDGES = [s for edge in scale.EDGES for s in (math.nextafter(edge, 0.0), edge, math.nextafter(edge, math.inf))]
speedups = st.one_of(st.floats(5e-324, math.inf), st.floats(0.1, 8.0), st.sampled_from(NEAR_EDGES))


def holds(condition: str, S: float) -> bool:
    """Whether S meets a condition such as "0.5 < S <= 0.707", each number read as the edge that prints so."""
    found = re.fullmatch(r"(?:(?P<low>\S+) < )?S(?: > (?P<above>\S+))?(?: <= (?P<high>\S+))?", condition)
    assert found, condition
    low, above, high = (EDGE_OF_TEXT[t] if t else None for t in found.group("low", "above", "high"))
    return (low is None or low < S) and (above is None or above < S) and (high is None or high >= S)


def schema_condition(key: str) -> str:
    found = re.search(r"of (.+) if", scale.answer_schema()["properties"][key]["description"])
    assert found
    return found.group(1)


@given(speedups)
def test_labels_prompt_schema_and_midpoints_agree_with_the_bin(S: float) -> None:
    k = int(scale.bin_of(S))
    expected = [i == k for i in range(scale.BINS)]
    assert [holds(label, S) for label in scale.labels()] == expected
    prompt = dict(line.split(": ") for line in scale.prompt_lines())
    assert [holds(prompt[key], S) for key in scale.KEYS] == expected
    assert [holds(schema_condition(key), S) for key in scale.KEYS] == expected
    assert scale.LOG2_KNOTS[k] <= min(max(math.log2(S), -3.0), 3.0) + 1e-15
    assert min(max(math.log2(S), -3.0), 3.0) <= scale.LOG2_KNOTS[k + 1] + 1e-15


@pytest.mark.parametrize("k", range(len(scale.EDGES)))
def test_the_upper_edge_is_included(k: int) -> None:
    edge = scale.EDGES[k]
    assert scale.bin_of([math.nextafter(edge, 0), edge, math.nextafter(edge, 9)]).tolist() == [k, k, k + 1]


def test_the_table_is_the_one_agreed_on() -> None:
    assert list(scale.EDGES) == [0.25, 0.5, math.sqrt(0.5), 1.0, math.sqrt(2.0), 2.0, 4.0]
    assert list(scale.LOG2_KNOTS) == [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0]
    assert scale.BINS == len(scale.labels()) == len(scale.KEYS) == 8
    assert len(EDGE_OF_TEXT) == len(scale.EDGES)


@pytest.mark.parametrize("k", range(8))
def test_a_midpoint_lies_in_its_own_bin(k: int) -> None:
    assert scale.bin_of(2.0 ** ((scale.LOG2_KNOTS[k] + scale.LOG2_KNOTS[k + 1]) / 2)) == k


@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0, -math.inf])
def test_what_is_no_speedup_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive number"):
        scale.bin_of([1.0, bad])
    with pytest.raises(ValueError, match="positive number"):
        scale.bin_of(bad)


def test_the_shape_is_kept() -> None:
    assert scale.bin_of(np.ones((2, 3))).shape == (2, 3)
    assert scale.bin_of([]).shape == (0,)


@pytest.mark.parametrize("k", range(8))
def test_the_schema_is_flat_and_closed(k: int) -> None:
    schema = scale.answer_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"]) == {"reason", "p_fail", *scale.KEYS}
    assert schema["properties"][scale.KEYS[k]]["type"] == schema["properties"]["p_fail"]["type"] == "number"
    assert schema["properties"]["reason"]["type"] == "string"
