"""Desk: the working folder of a worker. It holds the sources that the agent sent, under the agent's file names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import presage
from presage.core.errors import PresageError
from presage.sandbox import scratch


class Desk:
    """The files of one request, written to a folder, and the names to load them by."""

    def __init__(self, folder: Path, asked: Mapping[str, Any]) -> None:
        self.folder, self._asked = folder, asked
        self._names: dict[str, str] = {}
        problem = asked.get("problem") or {}
        for part in (problem, *asked.get("kernels", ()), asked.get("anchor") or {}):
            for name, text in part.get("files", {}).items():
                self._put(name, text)

    def _put(self, name: str, text: str) -> None:
        if self._names.setdefault(name, text) != text:
            raise PresageError(f"two different sources are called {name}; give each a name of its own")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))

    @property
    def problem(self) -> str:
        """The problem's name, or its path relative to the folder."""
        asked = self._asked["problem"]
        return str(asked["name"] if "name" in asked else asked["main"])

    @property
    def kernels(self) -> list[str]:
        """The names and paths of the kernels, as they would be typed on the command line."""
        return [str(each["spec"]) for each in self._asked.get("kernels", ())]

    @property
    def anchor(self) -> str | None:
        asked = self._asked.get("anchor")
        return str(asked["spec"]) if asked else None

    def unreadable(self) -> dict[str, str]:
        """Return the sent kernels that cannot be loaded, with the error of each. They must not fail the other kernels.

        Raises PresageError if no kernel can be loaded."""
        problem = presage.load_problem(self.problem)
        wrong = {}
        for spec in filter(self.has, self.kernels):
            try:
                presage.load_kernel(problem, spec)
            except presage.PresageError as error:
                wrong[spec] = str(error)
        if wrong and len(wrong) == len(set(self.kernels)):
            raise PresageError("; ".join(wrong.values()))
        return wrong

    def has(self, spec: str) -> bool:
        """Whether the agent sent this kernel's source."""
        return spec.partition("@")[0] in self._names


@contextmanager
def desk(asked: Mapping[str, Any]) -> Iterator[Desk]:
    """A desk for one call. The process's working directory is the desk's folder until the context ends."""
    folder = scratch.make()
    before = os.getcwd()
    try:
        made = Desk(Path(folder), asked)
        os.chdir(folder)
        yield made
    finally:
        os.chdir(before)
        scratch.remove(folder)
