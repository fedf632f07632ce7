"""Fuzzy text matching that tolerates the typical errors of text recognition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_CONFUSED = str.maketrans(
    {"0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "5": "s", "‘": "'", "’": "'", "“": '"', "”": '"'}
)
_EDGES = ".,:;!?\"'()[]<>“”‘’…·"


def tokens(text: str) -> list[str]:
    """Split a text into words and numbers, case-folded, without punctuation at their edges.

    >>> tokens('Click the "OK" button, then $5.')
    ['click', 'the', 'ok', 'button', 'then', '$5']
    """
    return [word for each in re.split(r"[\s>/|]+", text.casefold()) if (word := each.strip(_EDGES))]


def plain(text: str) -> str:
    return " ".join(tokens(text))


@lru_cache(maxsize=200_000)
def likeness(a: str, b: str) -> float:
    """Return 1 minus the edit distance divided by the longer length, or 0 if a text is empty.

    Letters that look alike, such as 0 and O, count as equal. Texts of very different lengths get a rough estimate.

    >>> likeness("Submit", "submit"), likeness("O'Neil", "0'Neil"), round(likeness("cat", "cut"), 2)
    (1.0, 1.0, 0.67)
    """
    a, b = plain(a).translate(_CONFUSED).replace(" ", ""), plain(b).translate(_CONFUSED).replace(" ", "")
    if not a or not b:
        return 0.0
    if a == b:
        return 1.0
    if abs(len(a) - len(b)) > 0.6 * max(len(a), len(b)):
        return min(len(a), len(b)) / max(len(a), len(b)) * 0.5
    return 1 - distance(a, b) / max(len(a), len(b))


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the edit distance: the least number of insertions, deletions and substitutions.

    >>> distance("kitten", "sitting")
    3
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def contained(phrase: str, text: str) -> float:
    """Return the best likeness of a phrase to a run of about as many words (one more or fewer) in a text.

    >>> contained("new york", "fly to New York today"), contained("paris", "fly to New York") < 0.5
    (1.0, True)
    """
    wanted, words = tokens(phrase), tokens(text)
    if not wanted or not words:
        return 0.0
    joined = " ".join(wanted)
    best = 0.0
    for size in {len(wanted), len(wanted) + 1, max(1, len(wanted) - 1)}:
        for start in range(max(1, len(words) - size + 1)):
            best = max(best, likeness(joined, " ".join(words[start : start + size])))
            if best == 1.0:
                return best
    return best
