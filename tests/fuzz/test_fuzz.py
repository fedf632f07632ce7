"""What the parent reads of others, with texts that are nearly right: a value, or the error that is documented.

benchmarks/fuzz.py does the same for as long as one likes.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from targets import TARGETS

FEWER = {"forecasts": 25, "journals": 15, "kernels": 50} | dict.fromkeys(
    ("pairs", "recordings", "Kernel Tuner caches", "T4 files", "runs' files", "runs' events", "runs' rows"), 15
)
"""They have long examples, or write files. The examples are the same each time: more are for the benchmark."""


@pytest.mark.parametrize("name", TARGETS)
def test_reading_gives_a_value_or_the_documented_error(name: str) -> None:
    target = TARGETS[name]()

    @settings(max_examples=FEWER.get(name, 100), database=None)
    @given(target.examples)
    def read(example: object) -> None:
        target.try_out(example)

    read()
