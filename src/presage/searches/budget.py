"""Budget: the limits of a search on five resources, and what is left of each. No limit is ever exceeded."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields

from presage.core.errors import PresageError

_WORDS = {
    "measurements": "measurements",
    "device_seconds": "seconds of the device",
    "wall_seconds": "seconds",
    "tokens": "tokens",
    "dollars": "dollars",
}
_MOST_FINALISTS = 3
_MEASUREMENTS_PER_FINALIST = 8


@dataclass
class Amounts:
    """How much of each resource a search has spent."""

    measurements: int = 0
    device_seconds: float = 0.0
    """The time for which measurements occupied the device."""
    wall_seconds: float = 0.0
    """The total lifetime of the run's processes."""
    tokens: int = 0
    dollars: float = 0.0

    def to_json(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Budget:
    """The limit on each resource; None for no limit. Raises PresageError for a limit that is not positive, for fewer
    than 2 measurements, and if neither measurements nor time are limited."""

    measurements: int | None = 64
    device_seconds: float | None = None
    wall_seconds: float | None = None
    tokens: int | None = None
    dollars: float | None = None

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if limit is not None and not 0 < limit < math.inf:
                raise PresageError(f"the budget of {_WORDS[name]} must be a positive number, not {limit}")
        if self.measurements is not None and self.measurements < 2:
            raise PresageError("a search needs 2 measurements or more: the first is the anchor's")
        if self.measurements is None and self.device_seconds is None and self.wall_seconds is None:
            raise PresageError("a search needs an end: set a budget of measurements, device seconds or wall time")

    @property
    def finalists(self) -> int:
        """How many of the best kernels are measured again at the end, beside the anchor. 0 on a small budget."""
        if self.measurements is None:
            return _MOST_FINALISTS
        return min(_MOST_FINALISTS, self.measurements // _MEASUREMENTS_PER_FINALIST)

    @property
    def reserve(self) -> int:
        """The number of measurements reserved for the finals: the finalists and the anchor."""
        return self.finalists + 1 if self.finalists else 0

    def reserved_seconds(self, name: str, each: float) -> float:
        """The seconds of a limit that are reserved for the finals, if each measurement takes `each` seconds. At most a
        quarter of the limit; 0 if a quarter does not cover two measurements."""
        limit: float | None = getattr(self, name)
        if limit is None or limit / 4 < 2 * each:
            return 0.0
        return min(self.reserve * each, limit / 4)

    def left(self, name: str, spent: Amounts) -> float:
        """What is left of one resource; infinite without a limit."""
        limit = getattr(self, name)
        return math.inf if limit is None else max(0.0, limit - getattr(spent, name))

    def describe(self, name: str) -> str:
        return f"the budget of {getattr(self, name):g} {_WORDS[name]} is spent"

    def limits(self) -> dict[str, float]:
        """The limits that are set, by name."""
        return {field.name: limit for field in fields(self) if (limit := getattr(self, field.name)) is not None}
