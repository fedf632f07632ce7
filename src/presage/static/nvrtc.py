"""Compiles CUDA C++ to a cubin with NVRTC, called through cuda.bindings: no GPU and no toolkit installation are needed.

It accepts the kernel files that nvcc accepts: names from <math.h>, <stdint.h> and similar headers are defined.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

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
_CUB = "#pragma once\n" + "".join(
    f"#include <cub/{place}.cuh>\n"
    for place in (
        *(f"block/block_{what}" for what in ("discontinuity", "exchange", "load", "radix_sort", "reduce", "scan")),
        *(f"block/block_{what}" for what in ("shuffle", "store")),
        *(f"warp/warp_{what}" for what in ("reduce", "scan")),
        *(f"thread/thread_{what}" for what in ("load", "operators", "store")),
    )
)
"""Device code's part of <cub/cub.cuh>, which NVRTC refuses as a whole."""
_HEADERS = {
    "cub/cub.cuh": _CUB,
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
    """The source does not compile for this architecture. The message is the compiler's log."""


@dataclass(frozen=True)
class Compiled:
    """A compiled source: its cubin, its PTX and the compiler's log."""

    cubin: bytes
    log: str
    ptx: str
    names: Mapping[str, str] = field(default_factory=dict)
    """The name in the cubin of each function that was requested by a name expression."""


def compile(
    source: str,
    arch: str,
    library: str,
    includes: Sequence[str] = (),
    name: str = "kernel.cu",
    more: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    wanted: Sequence[str] = (),
) -> Compiled:
    """Compile for one architecture (`sm_90a`) with the NVRTC at `library`. `more` are options, `headers` are texts that
    can be included by name, and `wanted` are name expressions such as `k<float, 4>`. Raises CompileError."""
    nvrtc = _load(library)
    known = {**_HEADERS, **(headers or {})}
    texts, names = [text.encode() for text in known.values()], [key.encode() for key in known]
    created, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), len(texts), texts, names)
    if created:
        raise CompileError(f"NVRTC cannot start: {_message(nvrtc, created)}")
    try:
        for expression in wanted:
            nvrtc.nvrtcAddNameExpression(program, expression.encode())
        options = [*_OPTIONS, f"--gpu-architecture={arch}", *(f"--include-path={folder}" for folder in includes), *more]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = _text(nvrtc, program, "ProgramLog")
        if result:
            said = [line for line in log.splitlines() if not line.startswith(("ptxas info", "ptxas  "))]
            raise CompileError("\n".join(said).strip() or _message(nvrtc, result))
        lowered = {each: nvrtc.nvrtcGetLoweredName(program, each.encode())[1].decode() for each in wanted}
        return Compiled(_bytes(nvrtc, program, "CUBIN"), log, _text(nvrtc, program, "PTX"), lowered)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def version(library: str) -> str:
    """The compiler's version, as in `13.0`."""
    _, major, minor = _load(library).nvrtcVersion()
    return f"{major}.{minor}"


def _bytes(nvrtc: Any, program: Any, what: str) -> bytes:
    _, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    buffer = bytes(size)  # the library writes into this buffer
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer


def _text(nvrtc: Any, program: Any, what: str) -> str:
    return _bytes(nvrtc, program, what).decode(errors="replace").replace("\0", "")


def _message(nvrtc: Any, result: Any) -> str:
    text: bytes = nvrtc.nvrtcGetErrorString(result)[1]
    return text.decode()


@cache
def _load(library: str) -> Any:
    """Load the library, and return NVIDIA's bindings, which use the loaded library."""
    ctypes.CDLL(library)
    from cuda.bindings import nvrtc

    return nvrtc
