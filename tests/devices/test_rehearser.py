"""A rehearsal tells a kernel that is wrong from one that is right, with no GPU, and lets neither do any harm."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from presage import Kernel, Problem, load_kernel, load_problem
from presage.devices import child
from presage.devices.emulation.cuda_on_cpu import EmulationError, translated
from presage.devices.emulation.rehearser import Rehearser, small_cases
from presage.devices.rehearsal import Rehearsal

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")

HEADER = """// presage: problem {problem}
// presage: entry f
// presage: grid {grid}
// presage: block {block}
"""
SUM = """extern "C" __global__ void f(const float *x, float *y, int rows, int cols) {{
    __shared__ float part[128];
    const int t = threadIdx.x;
    part[t] = 0;
    for (int c = t; c < cols; c += 128) part[t] += x[(long)blockIdx.x * cols + c];
    {first}
    for (int step = 64; step; step /= 2) {{
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }}
    if (t == 0) y[blockIdx.x] = part[0];
}}
"""


@pytest.fixture(scope="module")
def rehearser() -> Iterator[Rehearser]:
    made = Rehearser()
    yield made
    made.close()


@pytest.fixture
def rehearse(rehearser: Rehearser, tmp_path: Path) -> object:
    def rehearsed(problem: str, text: str, name: str = "mine.cu", seconds: float = 60.0) -> Rehearsal:
        known = load_problem(problem)
        (found,) = rehearser.rehearse(known, [written(tmp_path / name, known, text)], seconds)
        return found

    return rehearsed


def written(path: Path, problem: Problem, text: str) -> Kernel:
    path.write_text(text)
    return load_kernel(problem, path)


def add(body: str) -> str:
    header = HEADER.format(problem="vector_add", grid="cdiv(n, 256)", block="256")
    return f'{header}extern "C" __global__ void f(const float *x, const float *y, float *z, int n) {{ {body} }}\n'


INDEX = "int i = blockIdx.x * 256 + threadIdx.x; "


def test_a_right_kernel_is_right(rehearse) -> None:
    found = rehearse("vector_add", add(f"{INDEX} if (i < n) z[i] = x[i] + y[i];"))
    assert found == Rehearsal("right", cases=len(small_cases(load_problem("vector_add"))))
    assert found.cases >= 4


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (f"{INDEX} if (i < n) z[i] = x[i] - y[i];", "elements are wrong"),
        (f"{INDEX} if (i < n / 2) z[i] = x[i] + y[i];", "elements are wrong"),
        (f"{INDEX} z[i] = i < n ? x[i] + y[i] : 0;", "outside"),
        (f"{INDEX} if (i < n) {{ z[i] = x[i] + y[i]; ((float *)x)[i] = 0; }}", "changed"),
        (f"{INDEX} if (i < n) z[i] = x[i] + y[i]; *(int *)8 = 1;", "SIGSEGV"),
        ("if (threadIdx.x < 9) __syncthreads(); else __syncwarp(0xffffffff);", "barriers"),
    ],
    ids=["meaning", "half", "no mask", "changes its input", "crashes", "deadlock"],
)
def test_a_wrong_kernel_is_wrong_and_the_reason_says_how(rehearse, body: str, what: str) -> None:
    found = rehearse("vector_add", add(body))
    assert found.status == "wrong"
    assert what in found.reason


HALVES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T, class T2> __device__ bool is_right(T2 a, T2 b) {  // of 1.5 and -2, and of 0.5 and 4
    T2 sum = __hfma2(a, b, __hsub2(__hmul2(a, b), __hneg2(a))) + h2exp(__hadd2(b, __hneg2(b)));
    bool ordered = __hlt(a.y, b.y) && __hge(a.x, b.x) && !__heq(__hmin(a.x, b.x), a.x);
    T2 root = h2rsqrt(__habs2(__h2div(b, __hmax2(a, b))));
    return (float)sum.x == 4.0f && (float)sum.y == -17.0f && ordered && (float)root.y == 1.0f;
}
"""


def test_half_precision_is_computed_alone_and_in_pairs(rehearse) -> None:
    pairs = "half2 a = __floats2half2_rn(1.5f, -2.f), b = __floats2half2_rn(0.5f, 4.f);"
    brains = "__nv_bfloat162 c = __floats2bfloat162_rn(1.5f, -2.f), d = __floats2bfloat162_rn(0.5f, 4.f);"
    both = "is_right<half>(a, b) && is_right<__nv_bfloat16>(c, d)"
    found = rehearse("vector_add", HALVES + add(f"{pairs} {brains} {INDEX} if (i < n && {both}) z[i] = x[i] + y[i];"))
    assert found.status == "right", found.reason


def test_a_barrier_that_is_missing_shows(rehearse) -> None:
    header = HEADER.format(problem="sum", grid="rows", block="128")
    assert rehearse("sum", header + SUM.format(first="__syncthreads();")).status == "right"
    assert rehearse("sum", header + SUM.format(first="")).status == "wrong"


def test_a_kernel_that_keeps_its_first_result_is_wrong(rehearse) -> None:
    kept = "static float kept[1 << 20]; static int sizes[1 << 20]; "
    body = f"{kept}{INDEX} if (i < n) {{ if (sizes[i] != n) kept[i] = x[i] + y[i]; sizes[i] = n; z[i] = kept[i]; }}"
    found = rehearse("vector_add", add(body))
    assert found.status == "wrong"
    assert "its first result again" in found.reason


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('asm volatile("membar.gl;");', "asm"),
        ("this is no C++;", "the C++ compiler refuses it: kernel.cpp:"),
        ("for (volatile int k = 0;; k = k + 1);", "still running"),
    ],
)
def test_what_cannot_be_run_here_is_not_judged(rehearse, body: str, why: str) -> None:
    found = rehearse("vector_add", add(body), seconds=1.0)
    assert found.status == "untried"
    assert why in found.reason


@pytest.mark.parametrize("header", ["cub/cub.cuh", "thrust/scan.h", "cuda/barrier"])
def test_libraries_that_cannot_be_emulated_are_named(header: str) -> None:
    with pytest.raises(EmulationError, match=f"it uses {header.partition('/')[0]}/, which cannot be emulated"):
        translated(f"#include <{header}>\n")


def test_only_processor_time_is_limited(rehearse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes a kernel wait as a sleep does. Here it may wait for as long as it likes."""
    monkeypatch.setattr(child, "WALL_SHARE", 100.0)
    sleeps = 'extern "C" int usleep(unsigned);\n'
    body = f"{INDEX} if (!i) usleep(300000); if (i < n) z[i] = x[i] + y[i];"
    asleep = rehearse("vector_add", sleeps + add(body), seconds=2.0)
    assert asleep.status == "right", asleep.reason
    assert 2 * asleep.cases * 0.3 > 2.0, "each case is run twice"
    endless = rehearse("vector_add", add("for (volatile int k = 0;; k = k + 1);"), seconds=1.23456)
    assert endless.reason == "was still running after 1.2 s of processor time and was killed"


def test_a_kernel_can_neither_write_files_nor_start_programs(rehearse, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = add(f"{INDEX} if (i < n) z[i] = x[i] + y[i];").replace(
        'extern "C"',
        f'#include <fstream>\nstatic int gone = (std::ofstream("{mark}") << 1, std::system("touch {mark}"), 0);\n'
        'extern "C"',
        1,
    )
    rehearse("vector_add", text)
    assert not mark.exists()


def test_triton_is_interpreted(rehearse) -> None:
    pytest.importorskip("triton")
    text = """# presage: problem vector_add
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < MASK
    tl.store(z + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


def custom_kernel(data):
    x, y = data
    z = torch.zeros_like(x)
    add[(triton.cdiv(x.numel(), 4096),)](x, y, z, x.numel(), BLOCK=4096)
    return z
"""
    assert rehearse("vector_add", text.replace("MASK", "n"), "right.py").status == "right"
    assert rehearse("vector_add", text.replace("MASK", "n - 1"), "wrong.py").status == "wrong"
    cannot = rehearse("vector_add", text.replace("zeros_like(x)", "zeros_like(x, device='cuda')"), "asks.py")
    assert cannot.status == "untried"


def test_a_kernel_file_that_states_its_problem_is_held_to_its_first_configuration(rehearser, tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(
        """// presage: entry scale
// presage: grid cdiv(n, 64)
// presage: block 64
// presage: tune FACTOR = 2, 3
// presage: tune SPREAD = 0, 1
// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 1000
extern "C" __global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = FACTOR * x[i];
}
"""
    )
    problem = load_problem(path)
    (family,) = problem.families
    kernels = [family.render({"FACTOR": factor, "SPREAD": spread}) for factor in (2, 3) for spread in range(2)]
    found = rehearser.rehearse(problem, kernels, 60.0)
    assert [each.status for each in found] == ["right"] * 2 + ["wrong"] * 2, found


def test_a_kernel_file_with_large_cases_only_is_rehearsed_at_smaller_sizes(rehearser, tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(
        """// presage: entry scale
// presage: grid cdiv(n, 64 * PER)
// presage: block 64
// presage: tune TAIL = 1, 0
// presage: tune PER = 1, 2, 4
// presage: tune ECHO = 0, 1
// presage: input x = float32[n]
// presage: output y = float32[n]
// presage: case n = 16777217
extern "C" __global__ void scale(const float *x, float *y, int n) {
    int i = (blockIdx.x * 64 + threadIdx.x) * PER;
    if (TAIL || i + PER < n) for (int k = 0; k < PER && i + k < n; k++) y[i + k] = 2 * x[i + k];
}
"""
    )
    groups = tmp_path / "groups.cu"
    groups.write_text(path.read_text().replace("extern", "#include <cooperative_groups.h>\nextern"))
    problem = load_problem(groups)
    (told,) = rehearser.rehearse(problem, [problem.families[0].render({"TAIL": 1, "PER": 4, "ECHO": 0})])
    assert (told.status, told.reason) == ("untried", "it uses cooperative_groups, which cannot be emulated")
    problem = load_problem(path)
    (family,) = problem.families
    kernels = [family.render({"TAIL": tail, "PER": 4, "ECHO": echo}) for tail in (1, 0) for echo in range(2)]
    found = rehearser.rehearse(problem, kernels, 60.0)
    assert [each.status for each in found] == ["right"] * 2 + ["wrong"] * 2, found
