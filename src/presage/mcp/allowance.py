"""Allowance: the budgets of one server for measurements, device seconds and searches. No budget is ever exceeded.

The budgets last for the server's lifetime and are shared by all clients, so that reconnecting does not reset them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from presage.core.errors import PresageError

_WORDS = {"measurements": "measurements", "device_seconds": "seconds of the device", "searches": "searches"}
_FLAGS = {name: f"--max-{name.replace('_', '-')}" for name in _WORDS}


@dataclass
class Amounts:
    """An amount of each budgeted resource."""

    measurements: float = 0
    device_seconds: float = 0.0
    searches: float = 0


class Allowance:
    """The budgets and what is taken of them. Callers take the most they may need, and give back what is left over."""

    def __init__(self, limits: Amounts) -> None:
        self.limits = limits
        self.taken = Amounts()

    def left(self, name: str) -> float:
        return max(0.0, float(getattr(self.limits, name) - getattr(self.taken, name)))

    def take(self, amounts: Amounts) -> None:
        """Take all amounts. Raises PresageError, and takes nothing, if any amount exceeds what is left."""
        for field in fields(amounts):
            wanted, left = getattr(amounts, field.name), self.left(field.name)
            if wanted > left:
                raise PresageError(
                    f"{wanted:g} {_WORDS[field.name]} are wanted, and {left:g} of {getattr(self.limits, field.name):g}"
                    f" are left to this server; ask for less, or have it started with a larger {_FLAGS[field.name]}"
                )
        self._change(amounts, 1)

    def give_back(self, amounts: Amounts) -> None:
        self._change(amounts, -1)

    def _change(self, amounts: Amounts, sign: int) -> None:
        for field in fields(amounts):
            name = field.name
            setattr(self.taken, name, getattr(self.taken, name) + sign * getattr(amounts, name))

    def to_json(self) -> dict[str, float]:
        return {field.name: self.left(field.name) for field in fields(self.limits)}
