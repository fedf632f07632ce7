"""What asking costs: tokens and attempts as they were spent, and dollars where the price is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from presage.core.errors import PresageError


@dataclass(frozen=True)
class Spent:
    """What attempts cost, those that failed included. Sums with +.

    >>> (Spent(attempts=1, input_tokens=10) + Spent(attempts=2, failed=1, unmetered=1)).attempts
    3
    """

    attempts: int = 0
    """Requests sent."""
    failed: int = 0
    """Those of them that brought no answer."""
    unmetered: int = 0
    """Those of them whose tokens the endpoint did not tell: what they cost is not known."""
    input_tokens: int = 0
    cached_tokens: int = 0
    """Those of the input tokens that the endpoint had kept from an earlier request, and may sell cheaper."""
    output_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))

    @classmethod
    def of_attempt(cls, body: Any, failed: bool) -> Spent:
        """What one attempt cost, by the `usage` of the body that came back, if any did."""
        usage = body.get("usage") if isinstance(body, dict) else None
        if not isinstance(usage, dict):
            return cls(attempts=1, failed=int(failed), unmetered=1)
        details = usage.get("prompt_tokens_details")
        return cls(
            attempts=1,
            failed=int(failed),
            input_tokens=_count(usage.get("prompt_tokens")),
            cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
            output_tokens=_count(usage.get("completion_tokens")),
        )


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """Of input tokens the endpoint had kept; None: as the others."""

    def dollars(self, spent: Spent) -> float:
        """What was spent, in dollars; unmetered attempts are not in it.

        >>> Price(input=1.0, output=10.0).dollars(Spent(input_tokens=2000, output_tokens=100))
        0.003
        """
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, spent.input_tokens - spent.cached_tokens)
        return (fresh * self.input + spent.cached_tokens * cached + spent.output_tokens * self.output) / 1e6

    @classmethod
    def read(cls, table: Any, where: str) -> Price:
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(table, Mapping) or not {"input", "output"} <= table.keys() <= set(names):
            raise PresageError(f"{where}: price must be a table with input, output and perhaps cached_input")
        for name, value in table.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise PresageError(f"{where}: the price of {name} must be dollars per million tokens, 0 or more")
        return cls(**table)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
