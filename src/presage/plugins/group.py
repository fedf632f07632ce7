"""Group: finds the parts of one kind (such as all policies) by name. Presage's own parts are entry points, too.

The name may be followed by settings, which are arguments of the part's constructor: `topk:k=4,share=0.5`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any

from presage.core.errors import PresageError
from presage.plugins.entry_points import entry_points

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Group:
    """The entry points of the group `presage.<plural>`. A part is imported only when it is loaded."""

    noun: str
    plural: str
    base: str = ""
    """The class that every part derives from, as MODULE:CLASS; empty if a part is the path of a file."""

    @cached_property
    def _found(self) -> Mapping[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(f"presage.{self.plural}"):
            found.setdefault(point.name, []).append(point)
        return found

    def names(self) -> tuple[str, ...]:
        """Every name, in alphabetical order."""
        return tuple(sorted(self._found))

    def points(self) -> list[EntryPoint]:
        """Every entry point, sorted by name. A name that several packages declare appears several times."""
        return [point for name in self.names() for point in self._found[name]]

    def load(self, name: str) -> Any:
        """Return the object that the entry point of this name refers to.

        Raises PresageError if no package declares the name, if several packages declare it, if the package cannot be
        imported, and if the object is not a part of this kind."""
        points = self._found.get(name, [])
        if not points:
            raise PresageError(f"there is no {self.noun} '{name}'; {self._listed()}")
        if len(points) > 1:
            raise PresageError(declared_twice(self.noun, name, map(package, points)))
        with self.blamed(name, "cannot be loaded"):
            part = points[0].load()
        if wrong := self._why_wrong(part):
            raise PresageError(f"{self._part(points[0])} {wrong}; see {points[0].value}")
        return part

    def _why_wrong(self, part: Any) -> str:
        """Return why `part` is not a part of this kind; empty if it is one. A function is accepted here, and
        `check_made` checks what the function returns."""
        if not self.base:
            return "" if isinstance(part, str | os.PathLike) else "is not the path of a file"
        if isinstance(part, type):
            return "" if issubclass(part, self._base) else f"does not derive from {self._base_name}"
        return "" if callable(part) else f"is not a class that derives from {self._base_name}"

    @property
    def _base(self) -> type:
        module, _, name = self.base.partition(":")
        base: type = getattr(importlib.import_module(module), name)
        return base

    @property
    def _base_name(self) -> str:
        """The name by which plugin authors import the base class."""
        return f"presage.{self.base.partition(':')[2]}"

    @contextmanager
    def blamed(self, name: str, what: str) -> Iterator[None]:
        """Convert any exception from the code of this part's package to a PresageError that names the package."""
        try:
            yield
        except PresageError:
            raise
        except (Exception, SystemExit) as error:
            point = self._found[name][0]
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            raise PresageError(f"{self._part(point)} {what}: {said}; see {point.value}") from error

    def check_made(self, name: str, made: Any) -> None:
        """Raise PresageError unless `made` is a part of this kind."""
        if not isinstance(made, self._base):
            point = self._found[name][0]
            gave = f"gave a {type(made).__name__}, which does not derive from {self._base_name}"
            raise PresageError(f"{self._part(point)} {gave}; see {point.value}")

    def package(self, name: str) -> str:
        """The package that declares this name, with its version, for messages."""
        return package(self._found[name][0])

    def _part(self, point: EntryPoint) -> str:
        return f"the {self.noun} '{point.name}' of {package(point)}"

    def _listed(self) -> str:
        if not self._found:
            return "presage is not installed as a package, so none is declared: run 'pip install -e .' in its folder"
        return f"there are: {', '.join(self.names())}"

    def make(self, spec: str, *arguments: Any, **settings: Any) -> Any:
        """Construct a part from `NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`. `arguments` are passed to it first.

        Raises PresageError where `load` does, if a setting is unknown or a required one is missing, and if the
        constructor raises an exception."""
        name, _, text = spec.partition(":")
        make = self.load(name)
        given = parse_settings(make, text, f"the {self.noun} {name}") if text else {}
        chosen = checked(make, settings | given, f"the {self.noun} {name}", len(arguments))
        with self.blamed(name, "cannot be made"):
            made = make(*arguments, **chosen)
        self.check_made(name, made)
        return made

    def canonical(self, spec: str, **settings: Any) -> str:
        """Return the spec with these settings added and default values left out, so that equal parts have equal specs.

        Raises PresageError where `load` does, if a setting is unknown or a required one is missing, and if a setting is
        given both in the spec and here."""
        name, _, text = spec.partition(":")
        make, owner = self.load(name), f"the {self.noun} {name}"
        given = parse_settings(make, text, owner) if text else {}
        for twice in sorted(given.keys() & settings.keys()):
            raise PresageError(f"{twice} of {owner} is given twice; leave one out")
        given = checked(make, settings | given, owner)
        known = settings_of(make)
        told = [each for each in known if each in given and given[each] != known[each].default]
        return f"{name}:{','.join(f'{each}={_text(given[each])}' for each in told)}" if told else name


def parse_settings(make: Callable[..., Any], text: str, owner: str) -> dict[str, Any]:
    """Parse the settings in `k=4,share=0.5`. Each value gets the type of the constructor's argument.

    >>> parse_settings(lambda k=1, share=0.5, name="": None, "k=4,name=x", "the policy topk")
    {'k': 4, 'name': 'x'}
    """
    settings: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise PresageError(f"'{part}' is not a setting of {owner}; write SETTING=VALUE")
        if name in settings:
            raise PresageError(f"{name} of {owner} is given twice; leave one out")
        settings[name] = _value(value, _type_of(make, name), f"{name} of {owner}")
    return settings


def checked(make: Callable[..., Any], settings: Mapping[str, Any], owner: str, leading: int = 0) -> dict[str, Any]:
    """Return the settings after checking that the constructor has them all and that no required one is missing. The
    first `leading` arguments of the constructor are not settings."""
    known = settings_of(make, leading)
    for setting in sorted(settings.keys() - known.keys()):
        raise PresageError(f"{owner} has no setting '{setting}'; it has: {', '.join(known) or 'none'}")
    for setting, parameter in known.items():
        if parameter.default is parameter.empty and setting not in settings:
            raise PresageError(f"{owner} needs the setting '{setting}'; write NAME:{setting}=VALUE")
    return dict(settings)


def settings_of(make: Callable[..., Any], leading: int = 0) -> dict[str, inspect.Parameter]:
    """The arguments of a constructor after the first `leading` ones, by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [each for each in inspect.signature(make).parameters.values() if each.kind in kinds]
    return {each.name: each for each in parameters[leading:]}


def _type_of(make: Callable[..., Any], name: str) -> Any:
    """The annotated type of an argument, or else the type of its default value, or else str."""
    try:
        hints = typing.get_type_hints(make.__init__ if isinstance(make, type) else make)  # type: ignore[misc]
    except Exception:  # third-party annotations may raise anything
        hints = {}
    declared = hints.get(name)
    if typing.get_origin(declared) in (typing.Union, types.UnionType):
        declared = next((each for each in typing.get_args(declared) if each is not type(None)), None)
    if declared in (int, float, bool, str):
        return declared
    parameter = inspect.signature(make).parameters.get(name)
    return type(parameter.default) if parameter and parameter.default is not inspect.Parameter.empty else str


def _value(text: str, wanted: Any, what: str) -> Any:
    try:
        if wanted is bool:
            return _WORDS[text.lower()]
        return wanted(text) if wanted in (int, float) else text
    except (KeyError, ValueError):
        kind = {bool: "yes or no", int: "a whole number", float: "a number"}[wanted]
        raise PresageError(f"{what} must be {kind}, not '{text}'") from None


def _text(value: Any) -> str:
    """Format a value as it is written in a spec."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def package(point: EntryPoint) -> str:
    """The name and version of the package that declares an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def declared_twice(noun: str, name: str, packages: Iterable[str]) -> str:
    """The error message for a name that several packages declare."""
    return f"{' and '.join(sorted(packages))} both declare the {noun} '{name}'; uninstall one of them"


PROBLEMS = Group("problem", "problems", "presage.problems.base:Problem")
DEVICES = Group("device", "devices", "presage.devices.base:Device")
FORECASTERS = Group("forecaster", "forecasters", "presage.forecasters.base:Forecaster")
POLICIES = Group("policy", "policies", "presage.policies.base:Policy")
PROPOSERS = Group("proposer", "proposers", "presage.proposers.base:Proposer")
STRATEGIES = Group("strategy", "strategies", "presage.searches.base:Strategy")
ACQUISITIONS = Group("acquisition", "acquisitions", "presage.searches.base:Acquisition")
RECORDINGS = Group("recording", "recordings")
MODELS = Group("model", "models")
OPERATORS = Group("list of operators", "operators")
OPERATOR_RECORDINGS = Group("recording of operators", "operator_recordings")
GROUPS = (
    *(PROBLEMS, DEVICES, FORECASTERS, POLICIES, PROPOSERS, STRATEGIES, ACQUISITIONS, RECORDINGS, MODELS),
    *(OPERATORS, OPERATOR_RECORDINGS),
)
