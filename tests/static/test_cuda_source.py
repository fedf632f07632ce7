"""Static reports of CUDA kernels, compiled for real."""

import itertools

import pytest
from sweeps import others_in_sweeps

from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.problems import static as problem_static
from presage.static import hardware, reporting
from presage.static.launch_request import Job

pytestmark = pytest.mark.usefixtures("nvrtc_library")

HEADER = "// presage: entry kernel\n// presage: grid {grid}\n// presage: block {block}\n// presage: shared {shared}\n"


def source(body, grid="1", block="256", shared="0"):
    return HEADER.format(grid=grid, block=block, shared=shared) + body


COPY = 'extern "C" __global__ void kernel(const float4 *x, float4 *y, int n) { y[threadIdx.x] = x[threadIdx.x]; }'
SPILLS = """
extern "C" __global__ void __launch_bounds__(1024, 2) kernel(const float *x, float *y, int n) {
    float all[64], sum = 0;
#pragma unroll
    for (int i = 0; i < 64; i++) all[i] = x[i * n + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++) sum = sum * all[i] + all[63 - i] * all[(i * 7) % 64];
    y[threadIdx.x] = sum;
}
"""


STANDARD = """
#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
extern "C" __global__ void kernel(const float *x, float *y, int n) {
    static_assert(std::is_same<decltype(x), const float *>::value, "");
    assert(n > 0);
    y[threadIdx.x] = std::max(std::move(x[threadIdx.x]), std::numeric_limits<float>::lowest());
}
"""


@pytest.mark.sweep
def test_headers_of_the_standard_library_that_kernels_include(inspect_source):
    assert inspect_source(source(STANDARD), ".cu", dims={"n": 256}).error is None


def test_a_block_must_be_one_that_the_code_was_compiled_for(inspect_source):
    text = 'extern "C" __global__ void __launch_bounds__(128) kernel(float *y, int n) { y[threadIdx.x] = n; }'
    assert inspect_source(source(text, block="128"), ".cu", dims={"n": 1}).error is None
    report = inspect_source(source(text, block="256"), ".cu", dims={"n": 1})
    assert report.status == "runtime_error"
    assert report.error == "cannot launch kernel: a block of 256 threads, but the code was compiled for at most 128"


def test_launch_and_resources(inspect_source, arch):
    text = source(COPY, grid="cdiv(n, 1024), 2", block="64, 4", shared="n + 24")
    report = inspect_source(text, ".cu", target=arch, dims={"n": 5000})
    assert report.status == "ok"
    assert report.arch.startswith(arch)
    (launch,) = report.launches
    assert (launch.grid, launch.block) == ((5, 2, 1), (64, 4, 1))
    assert launch.shared_bytes == 5024
    assert launch.spill_bytes == launch.stack_bytes == 0
    assert launch.instructions["global_load_128"] == 1
    assert launch.waves is None


def test_spills_are_seen(inspect_source, arch):
    (launch,) = inspect_source(source(SPILLS, block="1024"), ".cu", target=arch).launches
    assert launch.registers == 32
    assert launch.spill_bytes > 100
    assert launch.stack_bytes > 0
    # Every local load and store here is a spill of one register, so the two counts must agree.
    local = launch.instructions["local_load"] + launch.instructions["local_store"]
    assert launch.spill_bytes >= 4 * local
    assert (launch.occupancy, launch.occupancy_limiter) == (1.0, "warps")


def test_waves_and_occupancy_on_a_product(inspect_source):
    report = inspect_source(source(COPY, grid="264", block="1024"), ".cu", target="h200")
    (launch,) = report.launches
    assert (launch.occupancy, launch.blocks_per_sm, launch.waves) == (1.0, 2, 1.0)


def test_tunables_reach_the_launch_and_the_code():
    text = "// presage: tune N = 128, 512\n" + source(
        'extern "C" __global__ void kernel(float *y) { __shared__ float s[N]; s[threadIdx.x] = y[0]; __syncthreads();'
        " y[1] = s[N - 1]; }",
        block="N",
    )
    family = from_source(text, ".cu", "k.cu")
    jobs = [Job(family.render(values), {}, (), hardware.find("sm_90")) for values in family.configurations()]
    launches = [report.launches[0] for report in reporting.reports(jobs)]
    assert [(launch.block[0], launch.shared_bytes) for launch in launches] == [(128, 512), (512, 2048)]


def test_two_entries_are_two_launches(inspect_source):
    text = (
        "// presage: entry first\n// presage: grid 2\n// presage: entry second\n// presage: block 64\n"
        'extern "C" __global__ void first(float *x) { x[0] = 1; }\n'
        'extern "C" __global__ void second(double *x) { x[0] *= 3; }\n'
    )
    first, second = inspect_source(text, ".cu").launches
    assert (first.name, first.grid, second.name, second.block) == ("first", (2, 1, 1), "second", (64, 1, 1))
    assert second.instructions["fp64"] == 1


HEADERS = ("math", "stdint", "float", "cuda_fp16", "cuda_bf16", "cuda_runtime", "cooperative_groups", "mma")


@pytest.mark.parametrize(
    "header", others_in_sweeps({name: f"{name}.h" for name in HEADERS}, "math", "cuda_fp16", "cuda_runtime")
)
def test_headers_that_kernels_include(inspect_source, header):
    body = 'extern "C" __global__ void kernel(float *x, uint32_t n) { x[n] = fminf(x[n], INFINITY); }'
    report = inspect_source(source(f"#include <{header}>\n{body}"), ".cu")
    assert report.error is None


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (source('extern "C" __global__ void kernel(float *x) { x[0] = y; }'), "compile_error", 'identifier "y"'),
        (source("__global__ void kernel(float *x) { x[0] = 1; }"), "compile_error", 'extern "C"'),
        (source(COPY, block="2048"), "runtime_error", "x is 2048; it can be 1 to 1024"),
        (source(COPY, block="64, 32"), "runtime_error", "block of 2048 threads"),
        (source(COPY, grid="0"), "runtime_error", "grid's x is 0"),
        (source(COPY, grid="1, 70000"), "runtime_error", "65535"),
        (source(COPY, shared="300000"), "runtime_error", "300000 bytes of shared memory"),
        (source(COPY, grid="missing"), "runtime_error", "'missing' has no value"),
        (source("#error not for you"), "compile_error", "not for you"),
    ],
)
def test_what_cannot_work_says_so(inspect_source, text, status, message):
    report = inspect_source(text, ".cu", dims={"n": 1})
    assert report.status == status
    assert message in report.error
    assert report.launches == ()


def test_wgmma_and_tensor_cores(inspect_source):
    body = """#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void kernel(const half *a, const half *b, float *c) {
    fragment<matrix_a, 16, 16, 16, half, row_major> x; fragment<matrix_b, 16, 16, 16, half, col_major> y;
    fragment<accumulator, 16, 16, 16, float> z;
    fill_fragment(z, 0.0f); load_matrix_sync(x, a, 16); load_matrix_sync(y, b, 16);
    mma_sync(z, x, y, z); store_matrix_sync(c, z, 16, mem_row_major);
}"""
    (launch,) = inspect_source(source(body, block="32"), ".cu").launches
    assert launch.instructions["tensor"] == 2
    body = 'extern "C" __global__ void kernel() { asm volatile("wgmma.fence.sync.aligned;"); }'
    assert inspect_source(source(body), ".cu", target="sm_90").status == "ok"
    assert inspect_source(source(body), ".cu", target="sm_80").status == "compile_error"


def test_a_compiler_that_takes_too_long_is_stopped(inspect_source):
    body = SPILLS.replace("64", "900").replace("63", "899")
    report = inspect_source(source(body), ".cu", timeout=0.2)
    assert (report.status, report.error) == ("timeout", "compiling took longer than 0.2 s")


def test_every_configuration_of_the_softmax_seed_compiles():
    problem = registry.get("softmax")
    (family,) = (kernel for kernel in registry.seed_kernels(problem, "cuda") if "block_row" in kernel.name)
    kernels = [family.render(values) for values in itertools.islice(family.configurations(), 0, None, 20)]
    reports = problem_static.reports(problem, kernels, problem.timed["gpu"], hardware.find("a100"))
    assert {report.status for of_kernel in reports for report in of_kernel} == {"ok"}
    (first, second) = reports[0]
    assert first.launches[0].grid == (16384, 1, 1)
    assert second.launches[0].grid == (1024, 1, 1)
    assert first.launches[0].spill_bytes == 0
