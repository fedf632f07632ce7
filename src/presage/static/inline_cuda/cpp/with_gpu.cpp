// Where there is a GPU: Python is told of each copy, fill and wait of host code, and then CUDA does it. The linker puts
// these functions in the place of the ones they are named after (--wrap). Versions of torch whose header has all of
// CUDAStream::synchronize do not export it: hence the weak symbol.
#include <cuda_runtime_api.h>

#include "presage_runtime.h"

using presage::tell;
using Word = unsigned long long;

namespace {

Word word(const void *pointer) { return reinterpret_cast<Word>(pointer); }
void copy(const void *to, const void *from, size_t size, cudaMemcpyKind kind) {
  tell("copy", "(sKKK)", presage::copy_kind(kind), word(to), word(from), static_cast<Word>(size));
}
void fill(const void *to, int value, size_t size) { tell("fill", "(KiK)", word(to), value, static_cast<Word>(size)); }
void wait(const char *what) { tell("sync", "(s)", what); }
void other(const char *what) { tell("other", "(s)", what); }

}  // namespace

#define PRESAGE_WRAP(name, Result, parameters, arguments, report) \
  extern "C" Result __real_##name parameters;                     \
  extern "C" Result __wrap_##name parameters {                    \
    report;                                                       \
    return __real_##name arguments;                               \
  }
#define PRESAGE_WRAP_WAIT(name, parameters, arguments) \
  PRESAGE_WRAP(name, cudaError_t, parameters, arguments, wait(#name))
#define PRESAGE_WRAP_OTHER(name, parameters, arguments) \
  PRESAGE_WRAP(name, cudaError_t, parameters, arguments, other(#name))

PRESAGE_WRAP(cudaMemcpy, cudaError_t, (void *to, const void *from, size_t size, cudaMemcpyKind kind),
             (to, from, size, kind), copy(to, from, size, kind))
PRESAGE_WRAP(cudaMemcpyAsync, cudaError_t,
             (void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream),
             (to, from, size, kind, stream), copy(to, from, size, kind))
PRESAGE_WRAP(cudaMemset, cudaError_t, (void *to, int value, size_t size), (to, value, size), fill(to, value, size))
PRESAGE_WRAP(cudaMemsetAsync, cudaError_t, (void *to, int value, size_t size, cudaStream_t stream),
             (to, value, size, stream), fill(to, value, size))

PRESAGE_WRAP_WAIT(cudaDeviceSynchronize, (), ())
PRESAGE_WRAP_WAIT(cudaStreamSynchronize, (cudaStream_t stream), (stream))
PRESAGE_WRAP_WAIT(cudaEventSynchronize, (cudaEvent_t event), (event))
PRESAGE_WRAP(_ZN3c104cuda18device_synchronizeEv, void, (), (), wait("c10::cuda::device_synchronize"))
extern "C" __attribute__((weak)) void __real__ZNK3c104cuda10CUDAStream11synchronizeEv(const void *self);
PRESAGE_WRAP(_ZNK3c104cuda10CUDAStream11synchronizeEv, void, (const void *self), (self),
             wait("CUDAStream::synchronize"))
PRESAGE_WRAP(_ZN5torch4cuda11synchronizeEl, void, (int64_t device), (device), wait("torch::cuda::synchronize"))

PRESAGE_WRAP_OTHER(cudaStreamQuery, (cudaStream_t stream), (stream))
PRESAGE_WRAP_OTHER(cudaEventQuery, (cudaEvent_t event), (event))
PRESAGE_WRAP_OTHER(cudaMemcpy2D,
                   (void *to, size_t pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                    cudaMemcpyKind kind),
                   (to, pitch, from, from_pitch, width, height, kind))
PRESAGE_WRAP_OTHER(cudaMemcpy2DAsync,
                   (void *to, size_t pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                    cudaMemcpyKind kind, cudaStream_t stream),
                   (to, pitch, from, from_pitch, width, height, kind, stream))
PRESAGE_WRAP_OTHER(cudaMemcpy3D, (const cudaMemcpy3DParms *given), (given))
PRESAGE_WRAP_OTHER(cudaMemcpy3DAsync, (const cudaMemcpy3DParms *given, cudaStream_t stream), (given, stream))
PRESAGE_WRAP_OTHER(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
                   (to, pitch, value, width, height))
PRESAGE_WRAP_OTHER(cudaMemset2DAsync,
                   (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
                   (to, pitch, value, width, height, stream))
PRESAGE_WRAP_OTHER(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))
PRESAGE_WRAP_OTHER(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
                   (stream, function, data))
PRESAGE_WRAP_OTHER(cudaStreamAddCallback,
                   (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags),
                   (stream, function, data, flags))
