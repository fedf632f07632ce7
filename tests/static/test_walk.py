"""Walking PTX: counts that can be worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.static import ptx, toolkit, walk, warp
from presage.static.hardware import find

LOOP = """
.visible .entry loop(.param .u64 loop_param_0, .param .u32 loop_param_1, .param .u32 loop_param_2)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [loop_param_0];
    ld.param.u32 %r1, [loop_param_1];
    ld.param.u32 %r2, [loop_param_2];
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra $END;
    mul.wide.s32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
$AGAIN:
    st.global.f32 [%rd3], 0f00000000;
    add.s64 %rd3, %rd3, 4;
    add.s32 %r1, %r1, {step};
    setp.lt.s32 %p2, %r1, %r2;
    @%p2 bra $AGAIN;
$END:
    ret;
}}
"""


def walked(text: str, name: str, *integers: int, grid: int = 1, block: int = 32) -> dict[str, float]:
    found = walk.of_launch(text, name, integers, (grid, 1, 1), (block, 1, 1))
    assert found is not None
    return found


@given(start=st.integers(-1000, 1000), end=st.integers(-1000, 100_000), step=st.integers(1, 500))
def test_a_loop_runs_as_often_as_it_would(start: int, end: int, step: int) -> None:
    counts = walked(LOOP.format(step=step), "loop", start, end)
    assert counts.get("global_store", 0) == max(0, -(-(end - start) // step))


@pytest.mark.parametrize(
    "loads",
    [
        "ld.param.u32 %r1, [loop_param_1+8];\n    ld.param.u32 %r2, [loop_param_1+12];",
        "ld.param.v2.u32 {%r1, %r2}, [loop_param_1+8];",
        "ld.param.v2.u32 {%r1, %r2}, [loop_param_1+8];\n    ld.param.u64 %rd9, [loop_param_1+8];",
    ],
)
def test_members_of_a_struct_are_known(loads: str) -> None:
    text = LOOP.format(step=1).replace(".param .u32 loop_param_1", ".param .align 8 .b8 loop_param_1[16]")
    text = text.replace("ld.param.u32 %r1, [loop_param_1];\n    ld.param.u32 %r2, [loop_param_2];", loads)
    struct = (-1).to_bytes(8, "little", signed=True) + (-5).to_bytes(4, "little", signed=True) + bytes([100, 0, 0, 0])
    counts = walk.of_call(text, "loop", [None, struct], (1, 1, 1), (32, 1, 1))
    assert counts
    assert counts["global_store"] == 105
    cut_short = walk.of_call(text, "loop", [None, struct[:8]], (1, 1, 1), (32, 1, 1))
    assert cut_short
    assert cut_short["global_store"] == 1, "what is not known decides no branch"
    assert 4 <= cut_short["instructions"] - cut_short["skippable"] <= 6, "and may skip all that follows"
    assert "skippable" not in counts
    assert "skippable" not in walked(LOOP.format(step=1), "loop", 0, 3)


def test_every_store_to_one_place_is_one_sector() -> None:
    counts = walked(LOOP.format(step=1), "loop", 0, 1_000_000)
    assert counts["store_sectors"] == counts["global_store"] == 1_000_000
    assert counts["lanes"] == 32 * counts["instructions"]


def test_a_loop_that_memory_ends_is_walked_once_and_said_to_be_so() -> None:
    text = LOOP.format(step=1).replace("ld.param.u32 %r2, [loop_param_2];", "ld.global.u32 %r2, [%rd1];")
    every, unbounded = walk.parted(walked(text, "loop", 0))
    assert (every["global_store"], every["global_load"]) == (1, 1)
    assert unbounded == {
        "instructions": 5,
        "global_store": 1,
        "store_sectors": 1,
        "integer": 3,
        "branch": 1,
        "lanes": 160,
    }
    assert walk.parted(walked(LOOP.format(step=1), "loop", 0, 9))[1] == {}


def test_atomic_additions_to_shared_memory_are_told_from_those_to_global_memory() -> None:
    """NVRTC hands their addresses to instructions that could be meant for any memory."""
    source = """
    extern "C" __global__ void f(const int *x, float *y) {
        __shared__ float sums[64];
        for (int i = threadIdx.x; i < 64; i += 32) sums[i] = 0;
        __syncthreads();
        atomicAdd(sums + x[threadIdx.x], 1.f);
        __syncthreads();
        %s
    }"""
    away = "for (int i = threadIdx.x; i < 64; i += 32) y[i] = sums[i];"
    kept = walked(compiled(source % away), "f")
    assert kept["atomic"] == 1
    assert "atomic_sectors" not in kept
    told = walked(compiled(source % "atomicAdd(y + x[threadIdx.x], sums[0]);"), "f")
    assert told["atomic"] == 2
    assert told["atomic_sectors"] == 32


@pytest.mark.parametrize(
    ("index", "sectors"),
    [("blockIdx.x", 1 + 4), ("blockIdx.x + threadIdx.x / 8", 1 + 4), ("blockIdx.x * 32 + threadIdx.x", 4 + 32)],
    ids=["one row a warp", "four rows a warp", "a row a lane"],
)
def test_rows_that_memory_names_are_read_as_they_lie(index: str, sectors: int) -> None:
    source = """
    extern "C" __global__ void f(const int *rows, const float *x, float *y) {
        y[threadIdx.x] = x[rows[%s] * 32 + threadIdx.x];
    }"""
    assert walked(compiled(source % index), "f", grid=8)["load_sectors"] == sectors


def test_memory_ends_an_inner_loop_in_each_round_of_an_outer_one() -> None:
    inner = "$IN: ld.global.u32 %r5, [%rd1]; setp.lt.s32 %p0, %r5, 7; @%p0 bra $IN; st.global"
    text = LOOP.format(step=1).replace("st.global", inner).replace(".reg .pred", ".reg .pred %p0; .reg .pred")
    every, unbounded = walk.parted(walked(text, "loop", 0, 1000))
    assert every["global_store"] == every["global_load"] == 1000
    assert unbounded["global_load"] == 1000
    assert "global_store" not in unbounded


@pytest.mark.parametrize(
    ("loop", "loads"),
    [
        ("while (*(volatile int *)(x + 1) == 0);", 1),
        ("while (atomicCAS(lock, 0, 1) != 0);", 0),
        ("for (int i = x[0]; i < x[1]; i++) sum += x[i];", 3),
        ("float z = x[0]; do z = z * z - 0.5f; while (z > 0.1f); sum = z;", 1),
    ],
    ids=["a wait", "a lock", "data of an unknown length", "until something fits"],
)
def test_one_round_counts_of_a_loop_whose_end_is_not_known_and_is_marked(loop: str, loads: int) -> None:
    source = 'extern "C" __global__ void f(const int *x, int *lock, float *y) { float sum = 0; %s y[0] = sum; }'
    every, unbounded = walk.parted(walked(compiled(source % loop), "f"))
    assert every.get("global_load", 0) <= loads + 16, "an unrolled round at most"
    assert 0 < unbounded["instructions"] < every["instructions"]


def test_a_branch_past_a_jump_does_not_jump_where_memory_decides() -> None:
    """NVRTC takes a loop out of a condition, so that the branch leads to the loop that does the work."""
    fork = "ld.global.u32 %r5, [%rd1]; setp.lt.s32 %p0, %r5, 7; @%p0 bra $WORK; bra.uni $END; $WORK: st.global"
    text = LOOP.format(step=1).replace("st.global", fork).replace(".reg .pred", ".reg .pred %p0; .reg .pred")
    assert walked(text, "loop", 0, 9)["global_store"] == 9


@pytest.mark.parametrize("row", ["mov.u32 %r3, %ctaid.x;", "mov.u32 %r4, %ctaid.x; rem.u32 %r3, %r4, 64;"])
def test_a_triangle_counts_as_its_mean(row: str) -> None:
    """A block that does as much as its number, alone or as the row of a row and a head, as under a causal mask."""
    text = LOOP.format(step=1).replace("ld.param.u32 %r2, [loop_param_2];", f"{row} add.s32 %r2, %r3, 1;")
    counts = walked(text, "loop", 0, grid=64 if "rem" not in row else 64 * 32)
    assert counts["global_store"] == pytest.approx(32.5)


@pytest.mark.parametrize("axes", ["xy", "yx"])
@pytest.mark.parametrize("grid", [(64, 64, 1), (48, 64, 2)])
def test_blocks_on_one_side_of_a_diagonal_count_as_their_mean(axes: str, grid: tuple[int, int, int]) -> None:
    """Of a block (i, j), the work is j - i + 1, or none, as in a product of triangular matrices."""
    begin, end = axes
    text = LOOP.format(step=1).replace("ld.param.u32 %r1, [loop_param_1];", f"mov.u32 %r1, %ctaid.{begin};")
    text = text.replace("ld.param.u32 %r2, [loop_param_2];", f"mov.u32 %r3, %ctaid.{end}; add.s32 %r2, %r3, 1;")
    counts = walk.of_call(text, "loop", [None, 0, 0], grid, (32, 1, 1))
    assert counts
    sizes = dict(zip("xyz", grid, strict=True))
    work = [max(0, j - i + 1) for i in range(sizes[begin]) for j in range(sizes[end])]
    assert counts["global_store"] == pytest.approx(sum(work) / len(work), rel=0.3)


def test_a_branch_backwards_to_where_both_ways_lead_is_no_end_of_a_loop() -> None:
    text = """
.visible .entry f(.param .u64 f_param_0, .param .u32 f_param_1)
{
    ld.param.u64 %rd1, [f_param_0];
    ld.param.u32 %r1, [f_param_1];
    mov.b32 %r2, 0;
    bra.uni $BODY;
$JOIN:
    st.global.f32 [%rd1], %f1;
    add.s32 %r2, %r2, 1;
    setp.ge.s32 %p1, %r2, %r1;
    @%p1 bra $END;
$BODY:
    ld.global.f32 %f1, [%rd1];
    setp.lt.f32 %p2, %f1, 0f00000000;
    @%p2 bra $JOIN;
    neg.f32 %f1, %f1;
    bra.uni $JOIN;
$END:
    ret;
}
"""
    counts = walk.of_call(text, "f", [None, 5], (1, 1, 1), (32, 1, 1))
    assert counts
    every, unbounded = walk.parted(counts)
    assert (every["global_store"], unbounded) == (5, {})
    _, unbounded = walk.parted(walked(text, "f", 5))
    assert unbounded, "as when the trees were trained"


def test_what_never_ends_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp, "MOST_STEPS", 500)
    text = LOOP.format(step=1).replace("setp.lt.s32 %p2, %r1, %r2;", "setp.ne.s32 %p2, %r2, 12345;")
    assert walk.of_launch(text, "loop", (0, 10), (1, 1, 1), (32, 1, 1)) is None


def test_what_memory_decides_is_left_after_one_round() -> None:
    text = LOOP.format(step=1).replace(
        "setp.lt.s32 %p2, %r1, %r2;", "ld.global.u32 %r5, [%rd1]; setp.lt.s32 %p2, %r5, 7;"
    )
    assert walked(text, "loop", 0, 10)["global_store"] == 1


@pytest.mark.parametrize("text", ["", "nonsense", ".visible .entry loop(", LOOP.format(step=1)[:300]])
def test_what_is_no_kernel_is_not_known(text: str) -> None:
    assert walk.of_launch(text, "loop", (0, 10), (1, 1, 1), (32, 1, 1)) is None


def test_an_entry_is_found_among_others() -> None:
    other = LOOP.format(step=1).replace("loop", "other")
    entry = ptx.parse(other + LOOP.format(step=1), "loop")
    assert entry is not None
    assert entry.parameters == {"loop_param_0": "u64", "loop_param_1": "u32", "loop_param_2": "u32"}
    assert len(entry.blocks) == 4


# -- what a real compiler makes ---------------------------------------------------------------------------------------


def compiled(source: str) -> str:
    from presage.static import nvrtc

    try:
        library, includes = str(toolkit.nvrtc()), [str(folder) for folder in toolkit.includes()]
    except toolkit.ToolkitError as error:
        pytest.skip(str(error))
    return nvrtc.compile(source, find("h200").compile_arch, library, includes).ptx


def test_strides_in_global_memory() -> None:
    text = compiled("""
    extern "C" __global__ void copy(const float *x, float *y, int n, int stride) {
        for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) y[i] = x[i * stride];
    }""")
    for stride, sectors in ((1, 4), (2, 8), (4, 16), (8, 32), (1000, 32)):
        counts = walked(text, "copy", 128 * 40 * 10, stride, grid=40, block=128)
        assert counts["global_load"] == counts["global_store"] == 10
        assert counts["load_sectors"] == 10 * sectors
        assert counts["store_sectors"] == 40


def test_banks_of_shared_memory() -> None:
    text = compiled("""
    extern "C" __global__ void rows(float *y, int pitch) {
        __shared__ float tile[32 * 33];
        tile[threadIdx.x * pitch] = threadIdx.x;
        __syncthreads();
        y[threadIdx.x] = tile[threadIdx.x];
    }""")
    for pitch, passes in ((1, 1), (2, 2), (16, 16), (32, 32), (33, 1)):
        counts = walked(text, "rows", pitch)
        assert counts["shared_wavefronts"] == passes + 1
        assert counts["barrier"] == 1


def test_lanes_that_part_meet_again() -> None:
    text = compiled("""
    extern "C" __global__ void part(float *y, int n) {
        if (threadIdx.x < 8) for (int i = 0; i < n; i++) y[i * 64 + threadIdx.x] = 1.0f;
        y[threadIdx.x] = 2.0f;
    }""")
    few, many = walked(text, "part", 100), walked(text, "part", 1100)
    assert many["global_store"] - few["global_store"] == 1000
    assert many["lanes"] - few["lanes"] == 8 * (many["instructions"] - few["instructions"])
    assert few["store_sectors"] == 100 + 4


def test_loops_in_loops_and_rings() -> None:
    text = compiled("""
    extern "C" __global__ void ring(const float *x, float *y, int n, int m) {
        float sum = 0.0f;
        int stage = 0;
        for (int i = 0; i < n; i++) {
            stage = stage == 2 ? 0 : stage + 1;
            #pragma unroll 1
            for (int j = 0; j < m; j++) sum += x[(stage * m + j) * 32 + threadIdx.x];
        }
        y[threadIdx.x] = sum;
    }""")
    counts = walked(text, "ring", 3000, 500)
    assert counts["global_load"] == 3000 * 500
    assert counts["load_sectors"] == 4 * 3000 * 500
    assert counts["fp32"] == 3000 * 500


def test_rounds_of_two_loops_that_look_alike_by_chance() -> None:
    """Three rounds of the inner loop apart, with the outer one between: registers change evenly, comparisons do not."""
    text = compiled("""
    extern "C" __global__ void tiles(const unsigned char *x, float *y, const float *shifts) {
        int column = blockIdx.x * 8 + threadIdx.x * 4, row = blockIdx.y * 800 + threadIdx.y * 4;
        #pragma unroll 1
        for (int i = 0; i < 4; i++) {
            if (column + i >= 25000) continue;
            #pragma unroll 1
            for (int j = 0; j < 4; j++) {
                if (row + j >= 2048) continue;
                float sum = 0.0f;
                for (int k = 0; k < 1536; k++) sum += x[k * 25650 + column + i + (int)((row + j) * shifts[k])];
                y[(row + j) * 25000 + column + i] = sum;
            }
        }
    }""")
    counts = walk.of_launch(text, "tiles", [], (3125, 3, 1), (2, 200, 1))
    assert counts
    assert counts["global_store"] == 16
    assert counts["global_load"] == 2 * 16 * 1536
    assert [depth for depth, _ in walk.rounds(counts)] == [0, 1, 2]
    assert [often for _, often in walk.rounds(counts)][:2] == [4, 16]


COPIES = """
.version 8.0
.target sm_90a
.visible .entry copies(.param .u32 copies_param_0)
{
    ld.param.u32 %r1, [copies_param_0];
    mov.u32 %r2, %tid.x;
    setp.eq.s32 %p1, %r2, 0;
$AGAIN:
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;
    {
    .reg .pred complete;
    waitLoop:
    mbarrier.try_wait.parity.shared::cta.b64 complete, [%r3], %r4;
    @!complete bra.uni waitLoop;
    }
    wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f1, %f2}, {%r5}, {%r6}, {%f1, %f2};
    sub.s32 %r1, %r1, 1;
    setp.gt.s32 %p2, %r1, 0;
    @%p2 bra $AGAIN;
    {
    waitLoop:
    mbarrier.try_wait.parity.shared::cta.b64 complete, [%r3], %r4;
    @!complete bra.uni waitLoop;
    }
    ret;
}
"""
"""Waits for copies, in a loop and after it, as Triton writes it: with one label in two pairs of braces."""


def test_bytes_that_a_block_waits_for_are_read_by_it() -> None:
    counts = walk.of_call(COPIES, "copies", [50], (1, 1, 1), (128, 1, 1))
    assert counts is not None
    assert walk.parted(counts)[1] == {}, "waiting is no loop whose length is unknown"
    assert counts["load_sectors"] * 4 == 50 * 4096 / 32, "of all four warps, though one thread announces them"


def test_matrix_products_of_a_module_are_counted_however_they_are_written() -> None:
    counts = walk.of_call(COPIES, "copies", [50], (1, 1, 1), (128, 1, 1))
    assert counts is not None
    assert counts["tensor_flops"] == 50 * 2 * 16**3
    assert not any("flops" in kind for kind in walked(COPIES, "copies", 50)), "bare kernels' forecasts do not change"
