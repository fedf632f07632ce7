"""The sources that an agent sends: texts, and files below the folders given with --root. No other file is ever opened.

A path is opened component by component from its root, and no component may be a symbolic link. The text of the file is
copied, so that the worker never sees the path that the agent wrote.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.text import excerpt

LONGEST_SOURCE = 256 << 10
_MOST_FILES = 32
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}\.(c|cu|py)")
_OWN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_VALUES = re.compile(r"@[A-Za-z_]\w*=[^@/]*")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""With O_NONBLOCK, because opening a named pipe would otherwise block for ever."""


class Roots:
    """The folders in which an agent may name files."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [(folder.absolute(), folder.resolve()) for folder in folders]
        for folder, _ in self._folders:
            if not folder.is_dir():
                raise PresageError(f"--root {folder} is no folder")

    def read(self, path: str) -> dict[str, str] | None:
        """Return the text of this file, or of the files in this folder, by their paths relative to the root.

        Return None if no root has the path. Raises PresageError for a path that may not be read."""
        if "\0" in path or len(path) > 1000:
            raise PresageError("a path is too long, or has a zero in it")
        for parts, root in self._places(path):
            if ".." in parts:
                raise PresageError(f"'{excerpt(path)}' leads out of its folder; name a file without '..'")
            with suppress(FileNotFoundError, NotADirectoryError):
                return _texts(root, parts)
        if path.startswith(("/", "~")) or ".." in Path(path).parts:
            raise PresageError(f"'{excerpt(path)}' is not in a folder that may be read; {self._said()}")
        return None

    def _places(self, path: str) -> list[tuple[tuple[str, ...], Path]]:
        """Return the roots that may contain the path, each with the path's components relative to that root."""
        wanted = Path(path)
        if not wanted.is_absolute():
            return [(wanted.parts, root) for _, root in self._folders] if wanted.parts else []
        return [
            (wanted.relative_to(named).parts, root)
            for folder, root in self._folders
            for named in dict.fromkeys((folder, root))
            if wanted.is_relative_to(named) and wanted != named
        ]

    def _said(self) -> str:
        if not self._folders:
            return "hand over the text itself, or have the server started with --root FOLDER"
        return f"files may be in {', '.join(str(folder) for folder, _ in self._folders)}"


def problem(asked: str | Mapping[str, str], roots: Roots) -> dict[str, Any]:
    """Return a problem as a worker gets it: its name, or its files and the path of the file or folder to load."""
    if not isinstance(asked, str):
        return {"files": _given(asked), "main": asked["name"]}
    found = roots.read(asked) if "/" in asked or asked.endswith((".c", ".cu", ".py")) else None
    if found is None:
        if not _OWN.fullmatch(asked):
            raise PresageError(f"there is no problem '{excerpt(asked)}', and no such file; list_problems lists them")
        return {"name": asked}
    first = next(iter(found))
    is_folder = len(found) > 1 or Path(asked).name != Path(first).name
    return {"files": found, "main": str(Path(first).parent) if is_folder else first}


def kernel(asked: str | Mapping[str, Any], roots: Roots) -> dict[str, Any]:
    """Return a kernel as a worker gets it: its spec, and its files, which are empty for the problem's own kernels."""
    if not isinstance(asked, str):
        values = ",".join(f"{name}={value}" for name, value in asked.get("values", {}).items())
        return {"spec": f"{asked['name']}@{values}" if values else asked["name"], "files": _given(asked)}
    path, at, values = asked.rpartition("@")
    if not at or not _VALUES.fullmatch(f"@{values}"):
        path, at, values = asked, "", ""
    found = roots.read(path)
    if found is None:
        if not _OWN.fullmatch(path):
            raise PresageError(f"there is no file '{excerpt(path)}', and no kernel of the problem has such a name")
        return {"spec": asked, "files": {}}
    if len(found) != 1 or not path.endswith(Path(next(iter(found))).name):
        raise PresageError(f"'{excerpt(path)}' is a folder; name a file in it")
    return {"spec": f"{next(iter(found))}{at}{values}", "files": found}


def _given(asked: Mapping[str, Any]) -> dict[str, str]:
    name, text = str(asked["name"]), str(asked["source"])
    if not _NAME.fullmatch(name):
        raise PresageError(f"'{excerpt(name)}' is no name for a source; write one such as mine.cu, mine.c or mine.py")
    if len(text.encode(errors="surrogatepass")) > LONGEST_SOURCE:
        raise PresageError(f"{name} has more than {LONGEST_SOURCE} bytes, the most that a source may have")
    return {name: text}


def _texts(root: Path, parts: Sequence[str]) -> dict[str, str]:
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = _step(part, _FOLDER, folder)
            os.close(folder)
            folder = inner
        opened = _step(parts[-1], _FILE, folder)
    finally:
        os.close(folder)
    name = "/".join(parts)
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            return {name: _text(opened, name)}
        inside = sorted(os.listdir(opened))
        if len(inside) > _MOST_FILES:
            raise PresageError(f"{name} has more than {_MOST_FILES} files; name a file, or the folder of one problem")
        return dict(_inside(opened, name, inside))
    finally:
        os.close(opened)


def _inside(folder: int, name: str, inside: Sequence[str]) -> list[tuple[str, str]]:
    """Return the path and text of each plain file of a folder. Subfolders are skipped."""
    found = []
    for each in inside:
        opened = _step(each, _FILE, folder)
        try:
            if not stat.S_ISDIR(os.fstat(opened).st_mode):
                found.append((f"{name}/{each}", _text(opened, f"{name}/{each}")))
        finally:
            os.close(opened)
    if not found:
        raise PresageError(f"{name} is a folder without files")
    return found


def _step(part: str, flags: int, folder: int) -> int:
    try:
        return os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if stat.S_ISLNK(_mode(part, folder)):
            raise PresageError(f"'{excerpt(part)}' is a link, which is not followed; name the file itself") from error
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise
        raise PresageError(f"'{excerpt(part)}' cannot be read: {error.strerror}") from error


def _mode(part: str, folder: int) -> int:
    try:
        return os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return 0


def _text(opened: int, name: str) -> str:
    about = os.fstat(opened)
    if not stat.S_ISREG(about.st_mode):
        raise PresageError(f"{name} is no plain file")
    if about.st_size > LONGEST_SOURCE:
        raise PresageError(f"{name} has more than {LONGEST_SOURCE} bytes, the most that a source may have")
    with os.fdopen(os.dup(opened), "rb") as stream:
        data = stream.read(LONGEST_SOURCE + 1)
    if len(data) > LONGEST_SOURCE:
        raise PresageError(f"{name} has more than {LONGEST_SOURCE} bytes, the most that a source may have")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PresageError(f"{name} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
