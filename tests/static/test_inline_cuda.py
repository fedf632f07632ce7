"""Inline CUDA in a module: what host code launches is recorded without a GPU and without nvcc."""

import importlib.util
import json
import os
import shutil
import struct
import sys
from pathlib import Path

import pytest

from presage import PresageError
from presage.sandbox import processes, scratch
from presage.sandbox import rules as sandbox_rules
from presage.sandbox.processes import Task
from presage.static import compiling, inline_cuda

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("has_triton", "nvrtc_library")]


@pytest.fixture(scope="session")
def trace():
    """trace(source, *inputs): what a module did. Torch's headers are precompiled once for all tests: a minute."""
    if shutil.which("g++") is None or importlib.util.find_spec("torch") is None:
        pytest.skip("there is no g++, or no torch")
    try:
        inline_cuda.precompile()
    except PresageError as error:
        pytest.fail(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(Path(__file__).parent)])
        zygote = processes.zygote("inline tests", ("presage.static.child:warm_up_triton", "inline_child"), {})
    return lambda source, *inputs: _trace(zygote, source, inputs)


def _trace(zygote, source, inputs):
    request = {"compiler": "triton", "source": source, "inputs": inputs}
    folder = scratch.make("presage-inline-")
    Path(folder, "request.json").write_text(json.dumps(request))
    reader, writer = os.pipe()
    environment = sandbox_rules.environment(folder) | compiling._for_inline_cuda(request)
    rules = compiling._rules("triton", folder, request)
    process = processes.fork(zygote, Task("inline_child:answer", rules, environment, (writer,)))
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    process.wait()
    scratch.remove(folder)
    return json.loads(said) if said else {"error": f"the child ended with {process.status()}", "events": []}


def module(cuda, cpp="", functions=None, call="ext.run(x)", more=""):
    """A module of one tensor, whose extension is made of these sources."""
    return f'''
import torch
from torch.utils.cpp_extension import load_inline
CUDA = r"""{cuda}"""
CPP = r"""{cpp}"""
ext = load_inline(name="ext", cpp_sources=CPP, cuda_sources=CUDA, functions={functions!r}{more})
def custom_kernel(data):
    x = data[0]
    return {call}
'''


X = (1000, "float32")
SCALE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#define THREADS 256
/* a comment with { and " and __global__ */
__device__ __forceinline__ float twice(float x) { return 2 * x; }
template <typename T, int N, bool EVEN>
__global__ void __launch_bounds__(THREADS) scale(const T* __restrict__ in, T* out, const float by, int n = 7) {
    __shared__ T kept[N];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    kept[threadIdx.x % N] = in[i];
    if (i < n) out[i] = static_cast<T>(twice(static_cast<float>(kept[threadIdx.x % N])) * by);
}
static __global__ void clear(float* out, long n) { if (threadIdx.x < n) out[threadIdx.x] = std::max(0.0f, -FLT_MAX); }
torch::Tensor run(torch::Tensor x, double by) {
    TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
    const at::cuda::CUDAGuard guard(x.device());
    auto out = torch::empty_like(x);
    const int n = x.numel();
    auto stream = at::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", ([&] {
        scale<scalar_t, 32, true><<<(n + THREADS - 1) / THREADS, dim3(THREADS), 0, stream>>>(
            x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), by, n);
    }));
    if (x.scalar_type() == torch::kFloat) clear<<<1, min(64, n), 128>>>(out.data_ptr<float>(), out.size(0));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""
BOUND = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run, "scales", py::arg("x"), py::arg("by") = 1.5); }'


def test_templates_dispatch_defaults_and_several_kernels(trace):
    done = trace(module(SCALE + BOUND), X)
    assert done["error"] is None
    first, second = done["events"]
    assert first[1].startswith("_Z5scaleIfLi32ELb1EE")
    assert first[2:5] == [[4, 1, 1], [256, 1, 1], 0]
    pointer, out, by, n = first[5]
    assert pointer == done["addresses"][0]
    assert out == done["result"][2]
    assert bytes.fromhex(by) == struct.pack("<f", 1.5)
    assert bytes.fromhex(n) == struct.pack("<i", 1000)
    assert "clear" in second[1]
    assert second[2:5] == [[1, 1, 1], [64, 1, 1], 128]
    assert second[5] == [out, struct.pack("<q", 1000).hex()]
    assert done["result"][:2] == [[1000], "torch.float32"]


HALVES = r"""
template <typename T> __global__ void scale(const T* in, T* out, float by) {
    out[threadIdx.x] = static_cast<T>(static_cast<float>(in[threadIdx.x]) * by);
}
torch::Tensor run(torch::Tensor x, double by = 2.0) {
    auto out = torch::empty_like(x);
    scale<at::Half><<<1, 32>>>(x.data_ptr<at::Half>(), out.data_ptr<at::Half>(), by);
    return out;
}
"""


@pytest.mark.sweep
def test_half_and_functions_of_the_c_plus_plus_source(trace):
    cpp = "torch::Tensor run(torch::Tensor x, double by = 2.0);\n"  # said twice, which is right in two files
    cpp += "torch::Tensor both(torch::Tensor x) { return run(x, 3); }"
    done = trace(module(HALVES, cpp, ["run", "both"], "ext.both(x)"), (1000, "float16"))
    assert done["error"] is None
    ((_, name, _, _, _, values, *_),) = done["events"]
    assert "c10" in name
    assert "Half" in name
    assert bytes.fromhex(values[2]) == struct.pack("<f", 3)


SEVERAL = r"""
#include <cuda_fp16.h>
#include <ATen/AccumulateType.h>
#define DEVICE __device__ __forceinline__
#define KERNEL(name, expression) \
    __global__ void name(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = expression; }
DEVICE float half_of(float x) { return x / 2; }
#pragma unroll
KERNEL(halve, half_of(x[i]))
#define GO(name, ...) name<<<1, 32>>>(__VA_ARGS__)
void macros(torch::Tensor x) { GO(halve, x.data_ptr<float>(), 3); }

__global__ void sum(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> a,
                    at::acc_type<float, true>* s) { s[0] = a[threadIdx.x][1] + a.size(0); }
namespace {
struct By { float by; __device__ float operator()(float x) const { return __fmul_rn(x, by); } };
template <typename F> __global__ void apply(F f, float* x) { x[0] = f(x[0]); }
}
void accessors(torch::Tensor x) {
    auto y = x.view({10, 100});
    sum<<<1, 10>>>(y.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), x.data_ptr<float>());
    apply<<<1, 1>>>(By{2.0f}, x.data_ptr<float>());
}

__constant__ float weights[8];
__global__ void k(float* out) { out[threadIdx.x] = weights[threadIdx.x]; }
std::vector<torch::Tensor> copies(torch::Tensor x) {
    auto y = torch::empty({8}, x.options());
    cudaMemcpyToSymbol(weights, x.data_ptr<float>(), 8 * sizeof(float), 0, cudaMemcpyDeviceToDevice);
    cudaMemsetAsync(y.data_ptr(), 0, 32, nullptr);
    cudaMemcpy(y.data_ptr(), x.data_ptr(), 16, cudaMemcpyDeviceToDevice);
    auto function = k;
    function<<<1, 8>>>(y.data_ptr<float>());
    cudaDeviceProp found;
    cudaGetDeviceProperties(&found, 0);
    TORCH_CHECK(found.multiProcessorCount == 132);
    cudaDeviceSynchronize();
    return {y, x};
}"""


@pytest.fixture(scope="module")
def several(trace):
    """What three functions of one extension do, one after the other: to compile host code takes seconds."""
    cpp = "void macros(torch::Tensor); void accessors(torch::Tensor); std::vector<torch::Tensor> copies(torch::Tensor);"
    call = "(ext.macros(x), ext.accessors(x), len(ext.copies(x)))[2]"
    done = trace(module(SEVERAL, cpp, ["macros", "accessors", "copies"], call), X)
    assert done["error"] is None
    assert len(done["events"]) == 1 + 2 + 5
    return done


def test_macros_that_define_kernels(several):
    assert [event[1] for event in several["events"][:1]] == ["_Z5halvePfi"]


def test_accessors_functors_and_namespaces(several):
    first, second = several["events"][1:3]
    accessor = bytes.fromhex(first[5][0])
    assert accessor == bytes.fromhex(several["addresses"][0]) + struct.pack("<4i", 10, 100, 100, 1)
    assert second[5][0] == struct.pack("<f", 2).hex()


def test_copies_fills_waits_and_symbols(several):
    assert several["result"] == 2
    source = int.from_bytes(bytes.fromhex(several["addresses"][0]), "little")
    symbol, fill, copy, launch, sync = several["events"][3:]
    assert symbol == ["variable", "weights", 0, source, 32, 0]
    assert fill[2:] == [0, 32]
    assert copy == ["copy", "device_to_device", fill[1], source, 16]
    assert launch[1] == "_Z1kPf"
    assert sync == ["sync", "cudaDeviceSynchronize"]


BY_POINTER = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct Pair { double a; int b[40]; };
template <typename T, int N> __global__ void scale(const T* in, T* out, float by, int n) {
    int i = blockIdx.x * N + threadIdx.x;
    if (i < n) out[i] = static_cast<T>(by * static_cast<float>(in[i]));
}
__global__ void together(float* x, Pair pair, bool flag) {
    cg::this_grid().sync();
    if (flag) x[threadIdx.x] = pair.a + pair.b[39];
}
__global__ void clustered(float* x, char c) { cg::this_cluster().sync(); x[0] = c; }
__global__ void late(float* x, double by) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    x[1] = by;
}
__global__ void nothing() {}
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const float* source = x.data_ptr<float>();
    float *target = out.data_ptr<float>(), by = 0.5f;
    int n = x.numel();
    void* values[] = {&source, &target, &by, &n};
    cudaLaunchKernel((void*)scale<float, 128>, dim3(8), dim3(128), values, 16, at::cuda::getCurrentCUDAStream());
    auto one = n > 1 ? scale<float, 64> : scale<float, 32>;
    ::cudaLaunchKernel(reinterpret_cast<const void*>(one), 16, 64, values);
    C10_CUDA_CHECK(cudaLaunchKernel(nothing, 1, 1, nullptr, 0, nullptr));
    Pair pair{2.0, {}};
    pair.b[39] = 7;
    bool flag = true;
    void* others[] = {&target, &pair, &flag};
    cudaLaunchCooperativeKernel((void*)together, dim3(2, 3), dim3(32), others, 0, nullptr);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8);
    config.blockDim = dim3(64);
    config.dynamicSmemBytes = 32;
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = 4;
    attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    int clusters = 0, blocks = 0;
    cudaOccupancyMaxActiveClusters(&clusters, clustered, &config);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, clustered, 64, 32);
    TORCH_CHECK(blocks > 1 && clusters == blocks * 132 / 4);
    char c = 'c';
    void* last[] = {&target, &c};
    cudaLaunchKernelExC(&config, (const void*)clustered, last);
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchKernelEx(&config, late, target, 3);
    late<<<1, 1>>>(target, 4);
    return out;
}"""


def test_launches_by_a_pointer_to_the_kernel(trace):
    """Also with cooperation, with clusters, and with overlap."""
    cpp = "torch::Tensor run(torch::Tensor x);"
    done = trace(module(BY_POINTER, cpp, "run"), X)
    assert done["error"] is None
    source, target = done["addresses"][0], done["result"][2]
    names, grids, blocks, shared, values, together = zip(
        *[(e[1], e[2][0], e[3][0], e[4], e[5], e[7]) for e in done["events"]], strict=True
    )
    scaled = [source, target, struct.pack("<f", 0.5).hex(), struct.pack("<i", 1000).hex()]
    pair = struct.pack("<d40i", 2.0, *[0] * 39, 7).hex()
    assert names[:3] == ("_Z5scaleIfLi128EEvPKT_PS0_fi", "_Z5scaleIfLi64EEvPKT_PS0_fi", "_Z7nothingv")
    assert grids == (8, 16, 1, 2, 8, 8, 1)
    assert blocks == (128, 64, 1, 32, 64, 64, 1)
    assert shared == (16, 0, 0, 0, 32, 32, 0)
    late = [[target, struct.pack("<d", by).hex()] for by in (3, 4)]
    assert list(values) == [scaled, scaled, [], [target, pair, "01"], [target, b"c".hex()], *late]
    assert done["events"][3][2] == [2, 3, 1]
    plain = {"cluster": [1, 1, 1], "cooperative": False, "overlapping": False}
    others = [plain | {"cooperative": True}, plain | {"cluster": [4, 1, 1]}, plain | {"overlapping": True}]
    assert list(together) == [plain, plain, plain, *others, plain]


@pytest.mark.parametrize(
    ("of_kernel", "of_launch", "where", "kind"),
    [
        ("nothing", "1", "cuda.cu(3)", "CompileError"),
        ("1", "nothing", "cuda.cu:4", "RuntimeError: Error building extension"),
    ],
    ids=["device", "host"],
)
def test_an_error_names_its_line(trace, of_kernel, of_launch, where, kind):
    cuda = f"int a;\n\n__global__ void k(float* x) {{ x[0] = {of_kernel}; }}\n"
    cuda += f"void run(torch::Tensor x) {{ k<<<{of_launch}, 1>>>(x.data_ptr<float>()); }}"
    done = trace(module(cuda, "void run(torch::Tensor x);", "run"), X)
    assert where in done["error"]
    assert done["error"].startswith(kind)
    assert "nothing" in done["error"]
    assert len(done["failures"]) == 1


def test_what_torch_would_refuse_is_refused(trace):
    cuda = 'extern "C" __global__ void run(float* x) { x[0] = 1; }'
    assert "'run' was not declared" in trace(module(cuda, "", ["run"]), X)["error"]


ESCAPES = """
#include <cstdlib>
#include <fstream>
#include <sys/socket.h>
int count(torch::Tensor x);
int escape(torch::Tensor x) {
    std::ifstream file("/etc/passwd");
    int done = file.good() ? 1 : 0;
    done += socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 2 : 0;
    return done + (system("/usr/bin/touch /tmp/presage-was-here") == 0 ? 4 : 0);
}"""


@pytest.fixture(scope="module")
def counted(trace):
    """How often an extension that is asked for three times was called, and what of it escaped, as two digits."""
    cuda = "__global__ void k() {}\nint count(torch::Tensor x) { static int calls = 0; return ++calls; }"
    again = "[load_inline('ext', CPP, CUDA, None, ['count', 'escape']).count(x) for _ in range(3)][-1]"
    done = trace(module(cuda, ESCAPES, ["count", "escape"], f"10 * {again} + ext.escape(x)"), X)
    assert done["error"] is None
    return divmod(done["result"], 10)


def test_what_was_built_is_not_built_again(counted):
    assert counted[0] == 3


def test_host_code_is_confined(counted):
    """It reads no file, opens no socket and starts no program."""
    assert counted[1] == 0


RAW = r"""
extern "C" __global__ void add(const float* a, float* b, int n, float by) {
    int i = threadIdx.x; if (i < n) b[i] = a[i] + by;
}"""


def test_raw_kernels(trace):
    source = f'''
import numpy, torch, cupy
CODE = r"""{RAW}"""
def custom_kernel(data):
    x = data[0]
    y = torch.empty_like(x)
    torch.cuda._compile_kernel(CODE, "add")(grid=(1, 1, 1), block=(32, 1, 1), args=[x, y, 5, 0.5])
    array = cupy.asarray(x)
    assert not isinstance(x, cupy.ndarray), "which libraries ask of tensors"
    kernel = cupy.RawKernel(CODE, "add", options=("-std=c++11",))
    kernel((2,), (64,), (array.data_ptr(), y, numpy.int32(6), numpy.float32(2)))
    cupy.RawModule(code=CODE).get_function("add")((3,), (8,), (x, y, 7, numpy.float32(2)), shared_mem=16)
    return y
'''
    done = trace(source, X)
    assert done["error"] is None
    pointer = done["addresses"][0]
    values = [event[5] for event in done["events"]]
    assert [event[2][0] for event in done["events"]] == [1, 2, 3]
    assert [value[0] for value in values] == [pointer] * 3
    assert [value[2:] for value in values] == [
        [struct.pack("<i", n).hex(), struct.pack("<f", by).hex()] for n, by in ((5, 0.5), (6, 2), (7, 2))
    ]
