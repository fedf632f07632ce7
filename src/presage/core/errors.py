"""PresageError, the exception for errors that the user can fix, and helpers for its messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PresageError(Exception):
    """An error that the caller can fix, such as a bad file, flag or value. The message says what is wrong and what to
    do. Commands print the message and exit with status 2."""


def install(extra: str) -> str:
    """Return the command that installs an optional extra, for messages.

    >>> install("llm")
    "pip install 'presage-kernels[llm]', or in a checkout run PRESAGE_EXTRAS=llm ./presage"
    """
    return f"pip install 'presage-kernels[{extra}]', or in a checkout run PRESAGE_EXTRAS={extra} ./presage"


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint for an unknown name: similar known names if there are any, else the text `otherwise`.

    >>> hint("sofmax", ["softmax", "matmul"], "'presage problems' lists them.")
    'did you mean softmax?'
    >>> hint("xyz", ["softmax", "matmul"], "'presage problems' lists them.")
    "'presage problems' lists them."
    """
    near = difflib.get_close_matches(name.lower(), known)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that an answer causes that foreign code has written."""
