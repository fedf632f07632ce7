"""Find the JSON object in a model's answer: alone, in a code fence, or between sentences."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

_LONGEST = 200_000


class MalformedError(ValueError):
    """An answer is malformed. The message can be sent back to the model."""


def find_object(text: str, keys: Collection[str]) -> dict[str, Any]:
    """The last object in the text that has all these keys, because drafts come before the answer. Raises
    MalformedError.

    >>> find_object('Well: ```json\\n{"p": 0.5}\\n``` I hope it helps.', ["p"])
    {'p': 0.5}
    """
    if len(text) > _LONGEST:
        raise MalformedError(f"the answer has {len(text)} characters; it must be one short JSON object")
    nearest: list[str] | None = None
    chosen: dict[str, Any] | None = None
    for found in _objects(text):
        missing = [key for key in keys if key not in found]
        if not missing:
            chosen = found
        elif nearest is None or len(missing) < len(nearest):
            nearest = missing
    if chosen is not None:
        return chosen
    if nearest is not None:
        raise MalformedError(f"the JSON object lacks {', '.join(nearest)}")
    raise MalformedError("there is no complete JSON object in the answer")


def _objects(text: str) -> list[dict[str, Any]]:
    """Every outermost object in the text, in order."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    objects: list[dict[str, Any]] = []
    start = text.find("{")
    tries = 0
    while start >= 0 and tries < 100:
        tries += 1
        try:
            found, end = decoder.raw_decode(text, start)
            objects.append(found)
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
    return objects


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
