"""Compiles CUDA C++ to a cubin with NVRTC, called through ctypes: no GPU and no toolkit installation are needed.

The code is what nvcc would take for a kernel file: names from <math.h>, <stdint.h> and the like are there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_INTEGERS = """#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long long uint64_t; typedef uint64_t uintptr_t; typedef int64_t intptr_t;
"""
_LIMITS = """#pragma once
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
"""
_FLOATS = """#pragma once
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATHS = """#pragma once
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VALF INFINITY
#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440
#define M_LOG2E 1.4426950408889634074
#endif
"""
_ASSERT = """#pragma once
#ifdef NDEBUG
#define assert(truth) ((void)0)
#else
#define assert(truth) ((truth) ? (void)0 : __trap())
#endif
"""
_HEADERS = {
    "presage_prelude.h": _INTEGERS + _MATHS.replace("#pragma once\n", ""),
    **dict.fromkeys(("stdint.h", "cstdint"), _INTEGERS),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    **dict.fromkeys(("math.h", "cmath"), _MATHS),
    **dict.fromkeys(("assert.h", "cassert"), _ASSERT),
    **dict.fromkeys(
        ("stddef.h", "cstddef", "stdio.h", "cstdio", "stdlib.h", "cstdlib", "string.h", "cstring", "iostream"),
        "#pragma once\n",
    ),
    **{
        name: f"#pragma once\n#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"
        for name in ("algorithm", "array", "functional", "limits", "tuple", "type_traits", "utility")
    },
}
_OPTIONS = (
    "--std=c++17",
    "--pre-include=presage_prelude.h",
    "--device-as-default-execution-space",
    "--ptxas-options=-v",
    "--disable-warnings",
)


class CompileError(Exception):
    """The source is not a kernel for this architecture; the message is the compiler's log."""


@dataclass(frozen=True)
class Compiled:
    """A loadable kernel file, and what the compiler said of it."""

    cubin: bytes
    log: str
    ptx: str


def compile(source: str, arch: str, library: str, includes: Sequence[str] = (), name: str = "kernel.cu") -> Compiled:
    """Compile for one architecture (`sm_90a`) with the NVRTC at `library`; raises CompileError."""
    nvrtc = _load(library)
    program = ctypes.c_void_p()
    texts, names = [text.encode() for text in _HEADERS.values()], [key.encode() for key in _HEADERS]
    strings = ctypes.c_char_p * len(_HEADERS)
    created = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), name.encode(), len(texts), strings(*texts), strings(*names)
    )
    if created:
        raise CompileError(f"NVRTC cannot start: {_message(nvrtc, created)}")
    try:
        options = [*_OPTIONS, f"--gpu-architecture={arch}", *(f"--include-path={folder}" for folder in includes)]
        result = nvrtc.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        )
        log = _text(nvrtc, program, "ProgramLog").decode(errors="replace").rstrip("\0")
        if result:
            lines = log.replace("\0", "").splitlines()
            said = [line for line in lines if not line.startswith(("ptxas info", "ptxas  "))]
            raise CompileError("\n".join(said).strip() or _message(nvrtc, result))
        ptx = _text(nvrtc, program, "PTX").decode(errors="replace").rstrip("\0")
        return Compiled(_text(nvrtc, program, "CUBIN"), log, ptx)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def version(library: str) -> str:
    """The compiler's version, as in `13.0`."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _load(library).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def _message(nvrtc: ctypes.CDLL, result: int) -> str:
    text: bytes = nvrtc.nvrtcGetErrorString(result)
    return text.decode()


@cache
def _load(library: str) -> ctypes.CDLL:
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return nvrtc
