"""Objects in place of names, as in `policy=MyPolicy(k=4)`. A run stores a description of each object, and resumes only
with objects that have the same description."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from presage.core.errors import PresageError
from presage.devices.base import Device
from presage.forecasters.base import Forecaster
from presage.kernels.kernel import Kernel
from presage.plugins.group import settings_of
from presage.policies.base import Policy
from presage.problems import registry as problems
from presage.problems.base import Problem
from presage.searches.base import Acquisition, Strategy

_KINDS: dict[str, type] = {
    "problem": Problem,
    "device": Device,
    "forecaster": Forecaster,
    "policy": Policy,
    "strategy": Strategy,
    "acquisition": Acquisition,
    "anchor": Kernel,
}
_PLAIN = (str, int, float, bool, type(None))

Part = TypeVar("Part")


def split(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings with each object replaced by its description, and the objects by name. Paths, and problems of
    the catalogue, become plain texts. Raises PresageError for an object of the wrong type."""
    texts, objects = dict(settings), {}
    for name in settings.keys() & {*_KINDS, "proposer"}:
        given = settings[name]
        if isinstance(given, Path):
            texts[name] = str(given)
        elif isinstance(given, Problem) and given.name in problems.names() and problems.get(given.name) is given:
            texts[name] = given.name
        elif given is not None and not isinstance(given, str):
            _check(name, given)
            texts[name], objects[name] = describe(given), given
    return texts, objects


def _check(name: str, given: Any) -> None:
    if name == "proposer":
        wanted, fits = "Proposer class, or a function that makes one from a Ground", callable(given)
    else:
        wanted, fits = f"{_KINDS[name].__name__} object", isinstance(given, _KINDS[name])
    if not fits:
        raise PresageError(f"{name} must be a name or a {wanted}, not {given!r:.80}")


def describe(thing: object) -> str:
    """Describe an object: its class and those constructor settings that can be read, in angle brackets, which no name
    contains.

    >>> from presage.policies.topk import TopK
    >>> describe(TopK(k=4))
    '<presage.policies.topk.TopK(k=4)>'
    """
    if isinstance(thing, Kernel):
        return f"<{thing.name} {thing.hash}>"
    if isinstance(thing, functools.partial):
        words = [*map(_plain, thing.args), *(f"{name}={_plain(value)}" for name, value in thing.keywords.items())]
        return f"<{_name(thing.func)}({', '.join(words)})>"
    if isinstance(thing, type) or not isinstance(thing, tuple(_KINDS.values())):
        return f"<{_name(thing)}>"
    if isinstance(thing, Problem):
        return f"<{_name(type(thing))} {thing.name}>"
    return f"<{_name(type(thing))}({', '.join(f'{name}={_plain(v)}' for name, v in _settings(thing).items())})>"


def _settings(thing: object) -> dict[str, Any]:
    """The constructor's arguments, as far as the object has an attribute of that name, or of that name with a leading
    underscore."""
    found = {}
    for name in settings_of(type(thing)):
        for attribute in (name, f"_{name}"):
            if hasattr(thing, attribute):
                found[name] = getattr(thing, attribute)
                break
    return found


def _plain(value: object) -> str:
    """A text for a value that is the same in every process."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_plain(key)}: {_plain(each)}' for key, each in value.items())}}}"
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else _name(value if callable(value) else type(value))


def _name(thing: object) -> str:
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def label(thing: object) -> str:
    """A short name of an object, for the name of the run's folder."""
    name = getattr(thing, "name", None)
    return name if isinstance(name, str) and name else type(thing).__name__


def fresh(part: Part) -> Part:
    """Return a deep copy of a part that learns, so that the caller can reuse the original. Raises PresageError if the
    part cannot be copied."""
    try:
        return copy.deepcopy(part)
    except Exception as error:  # __deepcopy__ of a user's class may raise anything
        raise PresageError(
            f"{type(part).__name__} cannot be copied, and each search needs one of its own: {error}; write __deepcopy__"
        ) from error
