"""Number formats for pages."""

from __future__ import annotations

from presage.report.run_view import Packed, Seen

TIMES = "×"


def times(log2_S: float) -> str:
    """Format a speedup, given as log2 S.

    >>> times(1.0)
    '2×'
    """
    return f"{2**log2_S:.3g}{TIMES}"


def duration(seconds: float) -> str:
    """
    >>> [duration(seconds) for seconds in (0.04, 59.6, 200, 7_190, 10_000)]
    ['0.04 s', '60 s', '3 min 20 s', '2 h 0 min', '2 h 47 min']
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 9.5 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"


def nanoseconds(ns: float) -> str:
    """
    >>> nanoseconds(1234.5), nanoseconds(2.5e6)
    ('1.23 µs', '2.5 ms')
    """
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def amount(count: float, unit: str = "") -> str:
    """Format a count with a metric prefix.

    >>> amount(4.2e6, "B"), amount(12, "B")
    ('4.2 MB', '12 B')
    """
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {prefix}{unit}".rstrip()
    return f"{count:.4g} {unit}".rstrip()


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.1 or not dollars else f"${dollars:.2g}"


def forecast(of: Packed | None) -> str:
    """Format a forecast: the median with the 90 % interval."""
    if of is None:
        return ""
    low, middle, high = (2 ** of.quantile(q) for q in (0.05, 0.5, 0.95))
    return f"{middle:.3g}{TIMES} ({low:.3g} to {high:.3g})"


def outcome(seen: Seen) -> str:
    """Format the measured speedup, or say how the kernel failed; empty if it was not measured."""
    if seen.value is not None:
        return times(seen.value)
    return seen.failure or ("failed" if seen.measured is not None else "")
