"""The description in the folder of a model, which may come from anyone."""

from __future__ import annotations

from pathlib import Path

import pytest

from presage import PresageError
from presage.llm.weights import DESCRIPTION, Description


def test_a_description_comes_back_as_it_was_written(tmp_path: Path) -> None:
    written = Description("base", adapter="sft/result", temperature=1.25, answers=("0", "1"), advised=True)
    written.write(tmp_path)
    assert Description.read(tmp_path) == written
    assert Description.read(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "[" * 100_000, "{}", '{"base": 3}', '{"base": "a", "more": 1}',
        '{"base": "a", "temperature": "1"}', '{"base": "a", "temperature": 0}', '{"base": "a", "temperature": NaN}',
        '{"base": "a", "answers": 1}', '{"base": "a", "answers": [1]}', '{"base": "a", "advised": "no"}',
    ],
)  # fmt: skip
def test_what_is_no_description_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    (tmp_path / DESCRIPTION).write_text(text)
    with pytest.raises(PresageError, match=r"model\.json is not a description of a model"):
        Description.read(tmp_path)
