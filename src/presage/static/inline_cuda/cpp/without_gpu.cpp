// CUDA's run time and torch's use of it where there is no GPU: it answers for the target, and tells Python of copies,
// fills and waits. Everything that would happen on a stream has happened.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "presage_runtime.h"

#define PRESAGE_API extern "C" __attribute__((visibility("default")))
using presage::ask;
using presage::tell;
using Word = unsigned long long;

namespace {

Word word(const void *pointer) { return reinterpret_cast<Word>(pointer); }
int property(const char *name) { return static_cast<int>(ask("property", "(s)", name)); }

cudaError_t copy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
  tell("copy", "(sKKK)", presage::copy_kind(kind), word(to), word(from), static_cast<Word>(size));
  return cudaSuccess;
}
cudaError_t fill(void *to, int value, size_t size) {
  tell("fill", "(KiK)", word(to), value, static_cast<Word>(size));
  return cudaSuccess;
}
cudaError_t wait(const char *what) {
  tell("sync", "(s)", what);
  return cudaSuccess;
}
cudaError_t give(void **out, size_t size) {
  *out = reinterpret_cast<void *>(ask("allocate", "(K)", static_cast<Word>(size)));
  return cudaSuccess;
}
template <class Handle> cudaError_t make(Handle *out) {
  static Word made = 0;
  *out = reinterpret_cast<Handle>(++made << 8);
  return cudaSuccess;
}
void unsupported(const char *what) { tell("unsupported", "(s)", what); }

void describe(cudaDeviceProp *out) {
  std::memset(out, 0, sizeof(*out));
  std::strcpy(out->name, "GPU");
  out->major = property("major");
  out->minor = property("minor");
  out->multiProcessorCount = property("multi_processor_count");
  out->warpSize = 32;
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 2147483647;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->maxThreadsPerMultiProcessor = property("max_threads_per_multi_processor");
  out->maxBlocksPerMultiProcessor = 32;
  out->regsPerBlock = out->regsPerMultiprocessor = 65536;
  out->sharedMemPerBlock = 48 << 10;
  out->sharedMemPerBlockOptin = property("shared_memory_per_block_optin");
  out->sharedMemPerMultiprocessor = property("shared_memory_per_multiprocessor");
  out->l2CacheSize = property("L2_cache_size");
  out->totalGlobalMem = ask("property", "(s)", "total_memory");
  out->totalConstMem = 65536;
  out->concurrentKernels = out->unifiedAddressing = out->cooperativeLaunch = 1;
}

}  // namespace

// -- CUDA's run time --------------------------------------------------------------------------------------------------

PRESAGE_API cudaError_t cudaGetLastError() { return cudaSuccess; }
PRESAGE_API cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
PRESAGE_API const char *cudaGetErrorString(cudaError_t status) { return status ? "an error" : "no error"; }
PRESAGE_API const char *cudaGetErrorName(cudaError_t status) { return status ? "cudaError" : "cudaSuccess"; }
PRESAGE_API cudaError_t cudaGetDevice(int *out) { *out = 0; return cudaSuccess; }
PRESAGE_API cudaError_t cudaSetDevice(int) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaGetDeviceCount(int *out) { *out = 1; return cudaSuccess; }
PRESAGE_API cudaError_t cudaDriverGetVersion(int *out) { *out = CUDART_VERSION; return cudaSuccess; }
PRESAGE_API cudaError_t cudaRuntimeGetVersion(int *out) { *out = CUDART_VERSION; return cudaSuccess; }
PRESAGE_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int) { describe(out); return cudaSuccess; }
PRESAGE_API cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr which, int) {
  cudaDeviceProp all;
  describe(&all);
  switch (which) {
    case cudaDevAttrMultiProcessorCount: *out = all.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *out = all.major; break;
    case cudaDevAttrComputeCapabilityMinor: *out = all.minor; break;
    case cudaDevAttrMaxThreadsPerBlock: *out = all.maxThreadsPerBlock; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *out = all.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *out = all.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *out = static_cast<int>(all.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *out = static_cast<int>(all.sharedMemPerBlockOptin); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *out = static_cast<int>(all.sharedMemPerMultiprocessor); break;
    case cudaDevAttrL2CacheSize: *out = all.l2CacheSize; break;
    case cudaDevAttrWarpSize: *out = 32; break;
    case cudaDevAttrMaxGridDimX: *out = all.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *out = all.maxGridSize[1]; break;
    case cudaDevAttrMaxRegistersPerBlock: *out = 65536; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *out = 65536; break;
    case cudaDevAttrCooperativeLaunch: *out = 1; break;
    default: unsupported("cudaDeviceGetAttribute of this attribute");
  }
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *free = *total = ask("property", "(s)", "total_memory");
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *) {
  tell("guess", "(s)", "cudaFuncGetAttributes");
  std::memset(out, 0, sizeof(*out));
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 32;
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *, int threads,
                                                                              size_t shared, unsigned) {
  // Registers are not known here: as many blocks as threads and shared memory allow.
  tell("guess", "(s)", "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int most = property("max_threads_per_multi_processor") / (threads > 0 ? threads : 1);
  const int room = shared ? property("shared_memory_per_multiprocessor") / static_cast<int>(shared) : 32;
  *out = most < room ? most : room;
  *out = *out < 32 ? *out : 32;
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *function, int threads,
                                                                     size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads, shared, 0);
}
PRESAGE_API cudaError_t cudaOccupancyMaxActiveClusters(int *out, const void *, const cudaLaunchConfig_t *how) {
  // As many as threads and shared memory allow, as if clusters could begin anywhere.
  int blocks = 0, cluster = 1;
  const unsigned threads = how->blockDim.x * how->blockDim.y * how->blockDim.z;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nullptr, static_cast<int>(threads), how->dynamicSmemBytes);
  for (unsigned i = 0; i < how->numAttrs; i++)
    if (how->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto &size = how->attrs[i].val.clusterDim;
      cluster = static_cast<int>(size.x * size.y * size.z);
    }
  *out = blocks * property("multi_processor_count") / (cluster > 0 ? cluster : 1);
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *out, const void *, const cudaLaunchConfig_t *) {
  tell("guess", "(s)", "cudaOccupancyMaxPotentialClusterSize");
  *out = 8;  // the largest that every device with clusters has
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) {
  unsupported("cudaLaunchKernel");
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) {
  unsupported("cudaLaunchCooperativeKernel");
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) {
  unsupported("cudaLaunchKernelEx");
  return cudaSuccess;
}

PRESAGE_API cudaError_t cudaMalloc(void **out, size_t size) { return give(out, size); }
PRESAGE_API cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t) { return give(out, size); }
PRESAGE_API cudaError_t cudaFree(void *) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaFreeAsync(void *, cudaStream_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaMallocHost(void **out, size_t size) {
  *out = std::calloc(1, size);
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaHostAlloc(void **out, size_t size, unsigned) { return cudaMallocHost(out, size); }
PRESAGE_API cudaError_t cudaFreeHost(void *pointer) {
  std::free(pointer);
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
  return copy(to, from, size, kind);
}
PRESAGE_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t) {
  return copy(to, from, size, kind);
}
PRESAGE_API cudaError_t cudaMemset(void *to, int value, size_t size) { return fill(to, value, size); }
PRESAGE_API cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t) { return fill(to, value, size); }

PRESAGE_API cudaError_t cudaDeviceSynchronize() { return wait("cudaDeviceSynchronize"); }
PRESAGE_API cudaError_t cudaStreamSynchronize(cudaStream_t) { return wait("cudaStreamSynchronize"); }
PRESAGE_API cudaError_t cudaEventSynchronize(cudaEvent_t) { return wait("cudaEventSynchronize"); }
PRESAGE_API cudaError_t cudaEventCreate(cudaEvent_t *out) { return make(out); }
PRESAGE_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) { return make(out); }
PRESAGE_API cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t, cudaEvent_t) {
  *out = 0;
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaStreamCreate(cudaStream_t *out) { return make(out); }
PRESAGE_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) { return make(out); }
PRESAGE_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned, int) { return make(out); }
PRESAGE_API cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
PRESAGE_API cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *out) {
  *out = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
PRESAGE_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

// -- torch's use of it ------------------------------------------------------------------------------------------------

namespace c10::cuda {
DeviceIndex device_count() noexcept { return 1; }
DeviceIndex device_count_ensure_non_zero() { return 1; }
DeviceIndex current_device() { return 0; }
void set_device(DeviceIndex, bool) {}
void device_synchronize() { wait("torch::cuda::synchronize"); }
void warn_or_error_on_sync() {}
cudaError_t GetDeviceCount(int *out) { return cudaGetDeviceCount(out); }
cudaError_t GetDevice(DeviceIndex *out) { *out = 0; return cudaSuccess; }
cudaError_t SetDevice(DeviceIndex, bool) { return cudaSuccess; }
cudaError_t MaybeSetDevice(DeviceIndex) { return cudaSuccess; }
DeviceIndex ExchangeDevice(DeviceIndex) { return 0; }
DeviceIndex MaybeExchangeDevice(DeviceIndex) { return 0; }
void c10_cuda_check_implementation(int32_t status, const char *, const char *, uint32_t, bool) {
  TORCH_CHECK(status == cudaSuccess, "CUDA error ", status);
}
static CUDAStream only() { return CUDAStream(CUDAStream::UNCHECKED, Stream(Stream::DEFAULT, Device(kCUDA, 0))); }
CUDAStream getCurrentCUDAStream(DeviceIndex) { return only(); }
CUDAStream getDefaultCUDAStream(DeviceIndex) { return only(); }
CUDAStream getStreamFromPool(bool, DeviceIndex) { return only(); }
CUDAStream getStreamFromPool(int, DeviceIndex) { return only(); }
CUDAStream getStreamFromExternal(cudaStream_t, DeviceIndex) { return only(); }
void setCurrentCUDAStream(CUDAStream) {}
cudaStream_t CUDAStream::stream() const { return nullptr; }
void CUDAStream::synchronize() const { wait("CUDAStream::synchronize"); }
bool CUDAStream::query() const { return true; }
namespace CUDACachingAllocator {
std::atomic<CUDAAllocator *> allocator;
}
}  // namespace c10::cuda

namespace at::cuda {
cudaDeviceProp *getCurrentDeviceProperties() { return getDeviceProperties(0); }
cudaDeviceProp *getDeviceProperties(c10::DeviceIndex) {
  static cudaDeviceProp found;
  describe(&found);
  return &found;
}
int warp_size() { return 32; }
}  // namespace at::cuda
