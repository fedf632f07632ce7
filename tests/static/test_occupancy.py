"""Occupancy against values from NVIDIA's cuda_occupancy.h."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.static import hardware
from presage.static.occupancy import occupancy

# Printed by cudaOccMaxActiveBlocksPerMultiprocessor (CUDA 13) with the largest carve-out.
GOLDEN = [
    # arch, threads, registers, shared, barriers, blocks
    ("sm_75", 192, 40, 100000, 16, 0),
    ("sm_75", 384, 48, 65536, 16, 1),
    ("sm_75", 96, 200, 3000, 4, 2),
    ("sm_75", 128, 168, 16384, 4, 3),
    ("sm_75", 256, 33, 1, 4, 4),
    ("sm_75", 192, 16, 0, 4, 5),
    ("sm_75", 64, 129, 0, 4, 6),
    ("sm_75", 128, 72, 3000, 1, 7),
    ("sm_75", 384, 40, 33000, 16, 1),
    ("sm_80", 256, 40, 232448, 0, 0),
    ("sm_80", 64, 33, 166912, 16, 1),
    ("sm_80", 1024, 32, 3000, 16, 2),
    ("sm_80", 320, 64, 49152, 0, 3),
    ("sm_80", 256, 64, 16384, 16, 4),
    ("sm_80", 128, 96, 16384, 1, 5),
    ("sm_80", 320, 16, 1, 1, 6),
    ("sm_80", 128, 72, 0, 16, 7),
    ("sm_80", 384, 64, 1024, 4, 2),
    ("sm_86", 96, 168, 232448, 1, 0),
    ("sm_86", 192, 16, 101376, 0, 1),
    ("sm_86", 768, 40, 16384, 4, 2),
    ("sm_86", 192, 96, 3000, 1, 3),
    ("sm_86", 256, 63, 16384, 1, 4),
    ("sm_86", 1, 24, 16384, 4, 5),
    ("sm_86", 33, 129, 3000, 0, 6),
    ("sm_86", 128, 72, 3000, 16, 7),
    ("sm_86", 33, 200, 33000, 1, 3),
    ("sm_86", 768, 48, 166912, 0, 0),
    ("sm_89", 640, 32, 166912, 1, 0),
    ("sm_89", 256, 24, 100000, 1, 1),
    ("sm_89", 640, 24, 1024, 16, 2),
    ("sm_89", 256, 63, 33000, 16, 3),
    ("sm_89", 96, 129, 16384, 16, 4),
    ("sm_89", 32, 168, 16384, 16, 5),
    ("sm_89", 256, 16, 1024, 16, 6),
    ("sm_89", 128, 72, 1, 1, 7),
    ("sm_89", 1, 168, 0, 1, 12),
    ("sm_90", 384, 255, 101376, 4, 0),
    ("sm_90", 384, 128, 0, 1, 1),
    ("sm_90", 128, 24, 100000, 1, 2),
    ("sm_90", 640, 24, 65536, 0, 3),
    ("sm_90", 32, 24, 1, 16, 4),
    ("sm_90", 256, 48, 16384, 4, 5),
    ("sm_90", 32, 129, 33000, 1, 6),
    ("sm_90", 128, 72, 1, 1, 7),
    ("sm_90", 1024, 129, 232448, 4, 0),
    ("sm_90", 768, 168, 65536, 16, 0),
    ("sm_100", 512, 200, 1024, 4, 0),
    ("sm_100", 512, 96, 100000, 4, 1),
    ("sm_100", 128, 255, 1024, 0, 2),
    ("sm_100", 512, 33, 3000, 4, 3),
    ("sm_100", 128, 16, 0, 16, 4),
    ("sm_100", 384, 24, 16384, 4, 5),
    ("sm_100", 1, 168, 33000, 4, 6),
    ("sm_100", 128, 72, 1024, 1, 7),
    ("sm_100", 96, 96, 33000, 4, 6),
    ("sm_100", 32, 40, 1024, 0, 32),
    ("sm_120", 768, 96, 16384, 1, 0),
    ("sm_120", 256, 32, 100000, 16, 1),
    ("sm_120", 512, 48, 0, 0, 2),
    ("sm_120", 512, 33, 1, 1, 3),
    ("sm_120", 320, 32, 1, 4, 4),
    ("sm_120", 256, 48, 16384, 1, 5),
    ("sm_120", 1, 168, 0, 4, 6),
    ("sm_120", 128, 72, 1, 1, 7),
    ("sm_120", 1024, 40, 33000, 4, 1),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "barriers", "blocks"), GOLDEN)
def test_agrees_with_the_cuda_header(arch, threads, registers, shared, barriers, blocks):
    found = occupancy(hardware.find(arch), threads, registers, shared, barriers)
    assert found.blocks == blocks


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "limiter", "fraction"),
    [
        (256, 32, 0, "warps", 1.0),
        (256, 64, 0, "registers", 0.5),
        (32, 16, 0, "blocks", 0.5),
        (128, 32, 100 << 10, "shared_memory", 2 * 4 / 64),
        (1024, 255, 0, "registers", 0.0),
        (256, 32, 228 << 10, "shared_memory", 0.0),
    ],
)
def test_limiter_on_hopper(threads, registers, shared, limiter, fraction):
    found = occupancy(hardware.find("sm_90"), threads, registers, shared)
    assert (found.limiter, found.fraction) == (limiter, fraction)


@given(
    gpu=st.sampled_from(list(hardware.catalogue().values())),
    threads=st.integers(1, 1024),
    registers=st.integers(1, 255),
    shared=st.integers(0, 300 << 10),
)
def test_never_more_than_the_hardware_has(gpu, threads, registers, shared):
    found = occupancy(gpu, threads, registers, shared)
    assert 0 <= found.fraction <= 1
    assert found.blocks <= gpu.blocks_per_sm
    assert found.blocks * threads <= gpu.threads_per_sm
    assert found.blocks * threads * registers <= 65536
    assert found.blocks * shared <= gpu.shared_per_sm
    richer = occupancy(gpu, threads, max(registers - 1, 1), max(shared - 1, 0))
    assert richer.blocks >= found.blocks
