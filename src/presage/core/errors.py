"""The one exception that reaches a person: its message says what is wrong and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PresageError(Exception):
    """A mistake of the caller (a bad file, flag or value), explained in the message; commands exit with 2."""


def install(extra: str) -> str:
    """How to install an optional part, for messages.

    >>> install("llm")
    "pip install 'presage-kernels[llm]', or in a checkout run PRESAGE_EXTRAS=llm ./presage"
    """
    return f"pip install 'presage-kernels[{extra}]', or in a checkout run PRESAGE_EXTRAS={extra} ./presage"


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """What to say to whoever wrote a name that is not known: names like it, if there are any.

    >>> hint("sofmax", ["softmax", "matmul"], "'presage problems' lists them.")
    'did you mean softmax?'
    >>> hint("xyz", ["softmax", "matmul"], "'presage problems' lists them.")
    "'presage problems' lists them."
    """
    near = difflib.get_close_matches(name.lower(), known)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
