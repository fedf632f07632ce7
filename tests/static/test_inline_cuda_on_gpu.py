"""Inline CUDA where there is a GPU: host code is linked to the real run time, and our launches compute the same."""

import ctypes

import pytest

from presage.static.tracing.driver_launch import starting

pytestmark = [pytest.mark.cuda, pytest.mark.slow]

SOURCE = r"""
#include <c10/cuda/CUDAGuard.h>
template <typename T, int N> __global__ void scale(const T* in, T* out, const float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = static_cast<T>(static_cast<float>(in[i]) * by);
}
torch::Tensor run(torch::Tensor x, double by) {
    const at::cuda::CUDAGuard guard(x.device());
    auto out = torch::empty_like(x);
    const int n = x.numel();
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "run", ([&] {
        scale<scalar_t, 32><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), by, n);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""


class Launcher:
    """Launches through the driver."""

    def __init__(self, driver):
        self._driver, self.names = driver, []

    def launch(self, code, name, how, parameters):
        error, module = self._driver.cuModuleLoadData(code.cubin)
        assert not error
        error, function = self._driver.cuModuleGetFunction(module, name.encode())
        assert not error
        kept = [ctypes.create_string_buffer(value, len(value)) for value in parameters]
        pointers = (ctypes.c_void_p * len(kept))(*map(ctypes.addressof, kept))
        (error,) = starting(self._driver, function, how, ctypes.addressof(pointers), how.stream)()
        assert not error
        self.names.append(name)


def test_our_launches_compute_the_same(monkeypatch):
    torch = pytest.importorskip("torch")
    driver = pytest.importorskip("cuda.bindings.driver")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    from torch.utils import cpp_extension

    from presage.sandbox import launch
    from presage.static import inline_cuda

    for name in ("load_inline", "load"):
        monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))
    monkeypatch.setattr(launch, "_is_confined", True)  # what is built here is ours
    inline_cuda.precompile()
    major, minor = torch.cuda.get_device_capability()
    launcher = Launcher(driver)
    inline_cuda.install(launcher, target_arch=f"sm_{major}{minor}", has_gpu=True)
    declared = "torch::Tensor run(torch::Tensor x, double by);"
    extension = cpp_extension.load_inline("ext", declared, SOURCE, functions="run")
    x = torch.randn(100_000, device="cuda")
    for dtype in (torch.float32, torch.float16):
        assert torch.equal(extension.run(x.to(dtype), 2.0), x.to(dtype) * 2)
    assert len(launcher.names) == 2
    assert inline_cuda.failures() == []
