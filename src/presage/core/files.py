"""Safe access to files in untrusted folders: atomic writes that follow no links, folders that are complete or do not
exist, and reading and unpacking with a size limit."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

_GZIP = 16 + zlib.MAX_WBITS


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, a text in UTF-8. An existing file or link at `path` is replaced. Raises OSError."""
    data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
    part = path.with_name(_part(path))
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)  # where the disk is full, Python names no file
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that is complete or does not exist: yields a folder to write to, which gets its name at the end. A
    folder that exists must be empty; it stays the same one, and its files get their names at the end. Raises OSError.

    What a killed process leaves has a name that begins with a dot and ends with `.part`."""
    folder = folder.absolute()
    is_there = folder.exists()
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = (folder if is_there else folder.parent) / _part(folder)
    part.mkdir()
    try:
        yield part
        if is_there:
            for each in sorted(part.iterdir(), key=Path.is_file):  # folders before the files that describe them
                each.rename(folder / each.name)
        else:
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _part(path: Path) -> str:
    """A name for what is not complete yet."""
    return f".{path.name[:60]}.{secrets.token_hex(8)}.part"


def inflate(packed: bytes, most: int) -> bytes:
    """Decompress zlib data to at most `most` bytes. Raises ValueError if there are more, or if the data is damaged.

    >>> inflate(zlib.compress(b"abc"), 3)
    b'abc'
    """
    return _unpack(zlib.decompressobj(), packed, most, most)


def gunzip(packed: bytes, most: int) -> bytes:
    """Decompress gzip data, which may consist of several members, to at most `most` bytes in total. Raises ValueError
    if there are more, or if the data is damaged."""
    parts, left = [], most
    while packed:
        unpacking = zlib.decompressobj(_GZIP)
        parts.append(_unpack(unpacking, packed, left, most))
        left -= len(parts[-1])
        packed = unpacking.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _unpack(unpacking: zlib._Decompress, packed: bytes, left: int, most: int) -> bytes:
    """Decompress one piece to at most `left` bytes. `most` is the limit for all pieces, named in the error message."""
    try:
        found = unpacking.decompress(packed, left + 1)
    except zlib.error as error:
        raise ValueError(f"what is packed in it is damaged: {error}") from error
    if len(found) > left:
        raise ValueError(f"it unpacks to more than the {most} bytes that are allowed")
    if not unpacking.eof:
        raise ValueError("what is packed in it was cut short")
    return found


def read_limited(path: Path, most: int) -> bytes:
    """Return the bytes of a file. Raises ValueError if there are more than `most`, and OSError."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most} bytes")
    return data
