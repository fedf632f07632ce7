"""The output of `presage --version`: presage, its dependencies and third-party plugins. None of them is imported."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution

from presage import __version__
from presage.cli.plugins import KINDS
from presage.plugins.entry_points import DISTRIBUTION, entry_points

_PARTS = ("numpy", "lightgbm", "pyarrow", "torch", "triton", "cuda-core", "nvidia-cuda-nvrtc", "openai", "xllamacpp")


def text() -> str:
    """Return a line for each part. The first line is `presage VERSION`."""
    parts = [("presage", __version__), ("python", platform.python_version())]
    parts += [(name, found.version) for name in _PARTS if (found := _installed(name))]
    parts += [("catalogue", _catalogue()), *plugins()]
    return "".join(f"{name} {said}\n" for name, said in parts)


def plugins() -> list[tuple[str, str]]:
    """Return the third-party packages with plugins: the name of each, and its version with the plugins that it adds."""
    added: dict[str, tuple[str, list[str]]] = {}
    for point in _points():
        if point.dist and point.dist.name != DISTRIBUTION:
            kind = point.group.removeprefix("presage.")
            added.setdefault(point.dist.name, (point.dist.version, []))[1].append(f"{kind} {point.name}")
    return [(name, f"{version} (plugin: {', '.join(sorted(what))})") for name, (version, what) in sorted(added.items())]


def _catalogue() -> str:
    """Summarise our own entry points. The catalogue has no version of its own: it is installed with presage."""
    own = [point for point in _points() if point.dist and point.dist.name == DISTRIBUTION]
    rooms = sum(point.group == "presage.problems" for point in own)
    recordings = sorted({point.name for point in own if point.group == "presage.recordings"})
    return f"{rooms} rooms of problems; recordings: {', '.join(recordings) or 'none'}" if own else "not installed"


def _points() -> Iterator[EntryPoint]:
    for kind in KINDS:
        yield from entry_points(f"presage.{kind}")


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None
