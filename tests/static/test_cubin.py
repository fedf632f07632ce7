"""Cubins and their machine code: resources from the ELF file, instruction classes from the disassembly."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import others_in_sweeps

from presage.static import cubin, nvrtc, sass, toolkit

SOURCE = """
#include <cuda_fp16.h>
#include <stdint.h>
extern "C" __global__ void copy(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void reverse(const float *x, float *y) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void loop(const float *x, float *y, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) sum += __expf(x[i]);
    y[0] = sum;
}
extern "C" __global__ void local(const float *x, float *y, int n) {
    float all[64];
#pragma unroll 1
    for (int i = 0; i < 64; i++) all[(i * n) & 63] = x[i];
    y[0] = all[n & 63];
}
"""


ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")


@pytest.fixture(
    scope="module", params=others_in_sweeps({arch: arch for arch in ARCHITECTURES}, "sm_75", "sm_90a", "sm_120a")
)
def compiled(request, nvrtc_library):
    includes = [str(folder) for folder in toolkit.includes()]
    done = nvrtc.compile(SOURCE, request.param, nvrtc_library, includes)
    kernels = cubin.read(done.cubin)
    pieces = sass.disassemble([each.code for each in kernels.values()], request.param)
    return kernels, {name: sass.mix(piece) for name, piece in zip(kernels, pieces, strict=True)}, done.log


def test_resources(compiled):
    kernels, _, log = compiled
    assert set(kernels) == {"copy", "reverse", "loop", "local"}
    assert {name: each.shared_bytes for name, each in kernels.items()} == {
        "copy": 0, "reverse": 1024, "loop": 0, "local": 0,
    }  # fmt: skip
    assert kernels["local"].stack_bytes == 256
    assert kernels["copy"].stack_bytes == 0
    assert kernels["reverse"].barriers == 1
    for name, each in kernels.items():
        said = log.split(f"Compiling entry function '{name}'")[1].split("Used ")[1].split(" registers")[0]
        assert each.registers == int(said)


def test_instruction_classes(compiled):
    _, mixes, _ = compiled
    assert mixes["copy"].classes["global_load_128"] == 1
    assert mixes["copy"].classes["global_store_128"] == 1
    assert mixes["reverse"].classes["shared_load"] == 1
    assert mixes["reverse"].classes["shared_store"] == 1
    assert mixes["reverse"].classes["barrier"] >= 1
    assert mixes["local"].classes["local_load"] >= 1
    assert all("other" not in mix.classes for mix in mixes.values())


def test_loops(compiled):
    _, mixes, _ = compiled
    assert mixes["copy"].loops == mixes["reverse"].loops == 0
    assert mixes["loop"].loops == 1
    assert mixes["loop"].in_loops["global_load_32"] == 1
    assert mixes["loop"].in_loops["special_function"] == 1
    assert "global_store_32" not in mixes["loop"].in_loops


@pytest.mark.parametrize(
    ("opcode", "operands", "kind"),
    [
        ("LDG.E", "", "global_load_32"),
        ("LDG.E.U8.CONSTANT", "", "global_load_32"),
        ("LDG.E.64.STRONG.GPU", "", "global_load_64"),
        ("LDG.E.LTC128B.128", "", "global_load_128"),
        ("STG.E.ENL2.256", "", "global_store_128"),
        ("ST.E.64", "", "global_store_64"),
        ("LDGSTS.E.BYPASS.128", "", "async_copy"),
        ("UTMALDG.2D", "", "async_copy"),
        ("LDSM.16.M88.4", "", "shared_load"),
        ("HMMA.16816.F32", "", "tensor"),
        ("HGMMA.64x256x16.F32.BF16", "", "tensor"),
        ("UTCHMMA", "", "tensor"),
        ("ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU", "", "atomic"),
        ("FFMA.FTZ", "", "fp32"),
        ("IMAD.WIDE", "", "integer"),
        ("UIADD3", "", "integer"),
        ("IMAD.MOV.U32", "", "move"),
        ("HFMA2.MMA", "R1, -RZ, RZ, 0, 0", "move"),
        ("HFMA2", "R1, R2, R3, R4", "fp16"),
        ("MUFU.EX2", "", "special_function"),
        ("F2FP.F16.F32.PACK_AB", "", "convert"),
        ("UISETP.NE.AND", "", "compare"),
        ("SHFL.BFLY", "", "warp"),
        ("BAR.SYNC.DEFER_BLOCKING", "", "barrier"),
        ("FROBNICATE.X", "", "other"),
        ("UFROBNICATE", "", "other"),
    ],
)
def test_classes(opcode, operands, kind):
    assert sass.classify(opcode, operands) == kind
    assert kind in sass.CLASSES


def test_kernels_disassembled_together_are_told_apart(nvrtc_library):
    done = nvrtc.compile(SOURCE, "sm_90a", nvrtc_library, [str(folder) for folder in toolkit.includes()])
    codes = [each.code for each in cubin.read(done.cubin).values()]
    together = sass.disassemble([*codes, codes[0]], "sm_90a")
    sass._CACHE.clear()
    for code, piece in zip([*codes, codes[0]], together, strict=True):
        assert [each.address for each in piece] == list(range(0, len(code), 16))
        assert sass.disassemble([code], "sm_90a") == [piece]


@given(st.binary(max_size=300))
def test_what_is_no_cubin_is_refused(data):
    with pytest.raises(ValueError, match="not a cubin"):
        cubin.read(data)


@given(st.binary(max_size=200), st.integers(0, 2**16 - 1))
def test_a_broken_cubin_is_refused_or_empty(data, sections):
    header = (
        b"\x7fELF\x02\x01\x01" + bytes(33) + struct.pack("<Q", 64) + bytes(10) + struct.pack("<3H", 64, sections, 0)
    )
    with contextlib.suppress(ValueError):
        assert isinstance(cubin.read(header + data), dict)
