"""Kernel: source text in one language, with its tunables; its identity is the hash of its normalised source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.shown import Shown
from presage.core.text import excerpt, lone_surrogate
from presage.kernels import header as headers
from presage.kernels.expression import ExpressionError
from presage.kernels.header import Header, Value
from presage.kernels.normalise import digest, normalise

LANGUAGES = ("c", "cuda", "triton", "torch", "numpy")
_SUFFIXES = {".c": "c", ".cu": "cuda", ".py": "module"}
_MAX_BYTES = 1 << 20
"""Limits memory: the syntax tree of a Python file takes a few hundred times the file's bytes."""
_MOST_TRIED = 300_000
"""Limit of the values tried in a search for configurations. Larger families could never be measured completely."""
_SIGNS_AT_ONCE = 16
"""Evaluating this many characters of a constraint takes as long as trying a value."""
_WORD = re.compile(r"\w+")
_ENCODING = re.compile(r"[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_LINE_END = re.compile(r"\r\n?|\n")
_LIKE_ASCII = ("ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1")
"""Encodings in which ASCII text is what it is in UTF-8."""


@dataclass(frozen=True)
class Kernel(Shown):
    """Source in one language. A family has tunables; `render` gives a concrete kernel."""

    source: str
    language: str
    header: Header
    name: str
    values: Mapping[str, Value] = field(default_factory=dict)
    """The tunables' values this kernel was rendered with; empty for a hand-written concrete kernel."""

    @cached_property
    def hash(self) -> str:
        return digest(self.source, self.language)

    @cached_property
    def normalised(self) -> str:
        return normalise(self.source, self.language)

    @property
    def family(self) -> str:
        """The name of the file that it was rendered from, or of its own file."""
        return Path(self.name.partition("@")[0]).name

    @property
    def is_family(self) -> bool:
        return bool(self.header.tunables)

    @property
    def compiles_by_torch(self) -> bool:
        """Whether it is a module that makes torch build an extension or compile functions, which takes a minute."""
        return not self.is_bare and any(word in self.source for word in ("cpp_extension", "torch.compile"))

    @property
    def is_bare(self) -> bool:
        """Bare kernels are launched by the harness; modules bring their own host code."""
        return self.language in ("c", "cuda")

    def configurations(self, fixed: Mapping[str, Value] | None = None) -> Iterator[dict[str, Value]]:
        """Yield every assignment of the tunables that satisfies the constraints, in the declared order. `fixed` selects
        the assignments that have these values."""
        choices = {**self.header.tunables, **{name: (value,) for name, value in (fixed or {}).items()}}
        checks = [self.header.constraints_at(list(choices)[: at + 1]) for at in range(len(choices))]
        return self._extended({}, list(choices.items()), checks, _Tries(self.name))

    def _extended(
        self,
        values: dict[str, Value],
        choices: Sequence[tuple[str, Sequence[Value]]],
        checks: Sequence[Sequence[str]],
        tries: _Tries,
    ) -> Iterator[dict[str, Value]]:
        """Yield the configurations that begin with these values. Values that violate a constraint are not extended."""
        if len(values) == len(choices):
            if self._admits(values):
                yield values
            return
        (name, given), own = choices[len(values)], checks[len(values)]
        for value in given:
            tries.count(1 + sum(map(len, own)) // _SIGNS_AT_ONCE)
            extended = {**values, name: value}
            if not headers.excluded(own, extended):
                yield from self._extended(extended, choices, checks, tries)

    def _admits(self, values: Mapping[str, Value]) -> bool:
        try:
            return self.header.admits(values)
        except ExpressionError as error:
            raise PresageError(f"{self.name}: a constraint cannot be worked out: {error}") from error

    def render(self, values: Mapping[str, Value] | None = None) -> Kernel:
        """The concrete kernel for these values. Other tunables get the first values that the constraints admit."""
        if not self.is_family:
            if values:
                raise PresageError(f"{self.name} has no tunables, so nothing can be set in it")
            return self
        chosen = self._complete(values or {})
        source = headers.render(self.source, chosen)
        label = ",".join(f"{name}={value}" for name, value in chosen.items())
        return Kernel(source, self.language, headers.parse(source, self.name), f"{self.name}@{label}", chosen)

    def _complete(self, values: Mapping[str, Value]) -> dict[str, Value]:
        tunables = self.header.tunables
        for name, value in values.items():
            if name not in tunables:
                raise PresageError(f"{self.name} has no tunable '{name}'; it has: {', '.join(tunables)}")
            if value not in tunables[name]:
                allowed = ", ".join(map(str, tunables[name]))
                raise PresageError(f"{self.name}: {name} cannot be {value}; it can be: {allowed}")
        for configuration in self.configurations(values):
            return configuration
        asked = ", ".join(f"{name}={value}" for name, value in values.items()) or "any values"
        rules = "; ".join(self.header.constraints)
        raise PresageError(f"{self.name}: no configuration has {asked} and satisfies its constraints: {rules}")


class _Tries:
    """Counts tried values, so that a search whose constraints exclude nearly everything ends with an error."""

    def __init__(self, name: str) -> None:
        self._name, self._left = name, _MOST_TRIED

    def count(self, more: int) -> None:
        self._left -= more
        if self._left < 0:
            raise PresageError(
                f"{self._name}: its tunables have too many combinations: {_MOST_TRIED} values were tried in"
                " search of those that its constraints admit; list fewer values, or name those you want with"
                " PATH@NAME=VALUE"
            )


def from_source(source: str, suffix: str, name: str) -> Kernel:
    """Make a kernel from its text. `suffix` (.c, .cu, .py) is that of its kind of file."""
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        raise PresageError(f"{name}: '{suffix}' is no kernel file; kernels end in {', '.join(_SUFFIXES)}")
    if len(source) > _MAX_BYTES:
        raise PresageError(f"{name} has more than {_MAX_BYTES} bytes, the most that a kernel file may have")
    if (at := lone_surrogate(source)) is not None:
        raise PresageError(
            f"{name} holds half of a surrogate pair (character {at + 1}), which no file can; leave that character out"
        )
    if "\0" in source:
        raise PresageError(f"{name} has a zero byte in it, which no compiler reads over; is it text?")
    if places := headers.places(source):
        raise headers.HeaderError(
            f"{name}: is shared by several operations, and ${sorted(places)[0]}$ in it is left to each; name it with a"
            f" problem, as in 'presage measure PROBLEM {Path(name).name}'"
        )
    if kind == "module" and (encoding := _other_encoding(source)):
        raise PresageError(
            f"{name} declares the encoding {excerpt(encoding)}; save it as UTF-8 and remove that comment"
        )
    header = headers.parse(source, name)
    language = _module_language(source) if kind == "module" else kind
    if language in ("c", "cuda") and not header.launches:
        raise headers.HeaderError(
            f"{name}:1: the header declares no entry; add a line like '// presage: entry my_function' at the top"
        )
    if language == "c" and len(header.launches) > 1:
        raise headers.HeaderError(f"{name}:1: a C kernel has one entry; keep one 'entry' line")
    return Kernel(source, language, header, name)


def read(spec: str | Path) -> Kernel:
    """Read `PATH` or `PATH@NAME=VALUE,NAME=VALUE`. A family without values gets the first values it admits."""
    path, values = split_spec(str(spec))
    return read_family(path).render(values)


def read_family(path: str) -> Kernel:
    """Read a file. A family is not rendered."""
    return from_source(_text(path), Path(path).suffix, path)


def read_without_header(path: str) -> Kernel:
    """Read a file whose header has an error. Its kernel can be named, but not compiled."""
    kind, source = _SUFFIXES[Path(path).suffix], _text(path)
    return Kernel(source, _module_language(source) if kind == "module" else kind, Header(), path)


def _text(path: str) -> str:
    if not path:
        raise PresageError("name a kernel: its path is empty")
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise PresageError(f"there is no kernel file {path}") from error
    except OSError as error:
        raise PresageError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise PresageError(f"{path} has more than {_MAX_BYTES} bytes, the most that a kernel file may have")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PresageError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def split_spec(spec: str) -> tuple[str, dict[str, Value]]:
    """Split `PATH@A=1,B=2` into the path and the values.

    >>> split_spec("softmax.c@BLOCK=64")
    ('softmax.c', {'BLOCK': 64})
    """
    path, at, settings = spec.rpartition("@")
    if not at or "/" in settings or not _WORD.fullmatch(settings.partition("=")[0]) or "=" not in settings:
        return spec, {}
    values = {}
    for part in settings.split(","):
        name, equals, text = part.partition("=")
        if not equals or not text:
            raise PresageError(f"'{part}' in '{spec}' is no setting; write PATH@NAME=VALUE,NAME=VALUE")
        values[name.strip()] = headers.parse_value(text)
    return path, values


def _other_encoding(source: str) -> str:
    """The encoding, other than UTF-8, by which Python would read the module since a comment in its first two lines
    declares it; empty if there is none. Comments could then hold code that nobody else reads."""
    for line in _LINE_END.split(source, maxsplit=2)[:2]:
        if found := _ENCODING.match(line):
            name = found[1].lower().replace("_", "-")
            is_same = name.startswith(("utf-8", "utf8")) or (name in _LIKE_ASCII and source.isascii())
            return "" if is_same else found[1]
    return ""


def _module_language(source: str) -> str:
    imported: set[str] = set()
    for line in source.split("\n"):
        word, *rest = line.split(None, 1)[:2] or [""]
        if rest and word == "from" and (first := _WORD.match(rest[0])):
            imported.add(first[0])
        elif rest and word == "import":
            imported |= {name.strip().split(".")[0].split(" ")[0] for name in rest[0].split(",")}
    if "triton" in imported:
        return "triton"
    return "torch" if "torch" in imported else "numpy"
