"""Reads a cubin, the ELF file that a GPU loads: each kernel's registers, stack, shared memory and machine code."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_RESERVED_SHARED = 1024
_KERNEL_SYMBOL = 0x10
"""Flag in a symbol's `other` byte: the function is a kernel."""
_REQUIRED_THREADS, _FRAME, _MIN_STACK, _REGISTERS, _BARRIERS = 0x10, 0x11, 0x12, 0x2F, 0x4C
_MOST_THREADS = 0x05
_SIZED = 0x04
_MOST_TIMES = 8
"""How many sections or names may share each byte, on average. It limits the memory that a small file can take."""


@dataclass(frozen=True)
class Resources:
    """The resources that one kernel of a cubin needs."""

    registers: int
    stack_bytes: int
    shared_bytes: int
    """Static shared memory, without the bytes that the system reserves."""
    barriers: int
    required_threads: int | None
    """Threads per block, if the code requires an exact number."""
    code: bytes
    most_threads: int | None = None
    """The most threads per block that the code was compiled for, if it states a limit."""


@dataclass(frozen=True)
class _Section:
    name: str
    data: bytes
    size: int
    info: int
    flags: int


def read(cubin: bytes) -> dict[str, Resources]:
    """Every kernel in the cubin, by name. Raises ValueError if the bytes are no cubin."""
    try:
        sections = _sections(cubin)
        return dict(_kernels(sections))
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(f"not a cubin: {error}") from error


def _kernels(sections: list[_Section]) -> Iterator[tuple[str, Resources]]:
    by_name = {section.name: section for section in sections}
    symbols = _symbols(by_name)
    of_module = _attributes(by_name[".nv.info"].data) if ".nv.info" in by_name else []
    per_symbol = {
        (kind, *struct.unpack_from("<I", value)): struct.unpack_from("<I", value, 4)[0]
        for kind, value in of_module
        if len(value) == 8
    }
    reserved = _RESERVED_SHARED if ".nv.shared.reserved.0" in by_name else 0
    for index, (name, is_kernel) in enumerate(symbols):
        text = by_name.get(f".text.{name}")
        if not is_kernel or text is None:
            continue
        own = dict(_attributes(by_name[f".nv.info.{name}"].data)) if f".nv.info.{name}" in by_name else {}
        shared = by_name.get(f".nv.shared.{name}")
        resources = Resources(
            registers=per_symbol.get((_REGISTERS, index), text.info >> 24),
            stack_bytes=per_symbol.get((_MIN_STACK, index), per_symbol.get((_FRAME, index), 0)),
            shared_bytes=max(shared.size - reserved, 0) if shared else 0,
            barriers=own[_BARRIERS][0] if _BARRIERS in own else text.flags >> 20 & 0x7F,
            required_threads=_threads(own.get(_REQUIRED_THREADS)),
            code=text.data,
            most_threads=_threads(own.get(_MOST_THREADS)),
        )
        yield name, resources


def _sections(cubin: bytes) -> list[_Section]:
    if cubin[:4] != b"\x7fELF":
        raise ValueError("not a cubin: it does not start as an ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    entry_size, count, names_at = struct.unpack_from("<3H", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + entry_size * index) for index in range(count)]
    names = _Strings(cubin, headers[names_at][4])
    held = sum(min(size, max(len(cubin) - offset, 0)) for _, _, _, _, offset, size, *_ in headers)
    if held > _MOST_TIMES * len(cubin):
        raise ValueError("not a cubin: its sections lie over each other")
    return [
        _Section(names.at(name), cubin[offset : offset + size], size, info, flags)
        for name, _, flags, _, offset, size, _, info, _, _ in headers
    ]


def _symbols(sections: dict[str, _Section]) -> list[tuple[str, bool]]:
    """Each symbol's name and whether it is a kernel, in the order by which attributes refer to them."""
    names = _Strings(sections[".strtab"].data if ".strtab" in sections else b"")
    table = sections[".symtab"].data if ".symtab" in sections else b""
    return [
        (names.at(name), kind & 0xF == 2 and other & _KERNEL_SYMBOL != 0)
        for name, kind, other, _, _, _ in struct.iter_unpack("<IBBHQQ", table)
    ]


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    """(kind, value) of every attribute in a .nv.info section."""
    found, at = [], 0
    while at + 4 <= len(data):
        form, kind, value = data[at], data[at + 1], data[at + 2 : at + 4]
        at += 4
        if form == _SIZED:
            (size,) = struct.unpack("<H", value)
            value = data[at : at + size]
            at += size
        found.append((kind, value))
    return found


class _Strings:
    """Zero-terminated strings. They may overlap, but their total length is limited, so that a small file cannot expand
    to gigabytes."""

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data, self._start = data, start
        self._left = _MOST_TIMES * len(data)

    def at(self, place: int) -> str:
        start = self._start + place
        end = self._data.index(b"\0", start, start + self._left + 1)
        self._left -= end - start
        return self._data[start:end].decode()


def _threads(value: bytes | None) -> int | None:
    """The product of an attribute's three sizes; None without the attribute."""
    return math.prod(struct.unpack("<3I", value)) if value and len(value) == 12 else None
