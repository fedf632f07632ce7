// Launches: a kernel's host stub hands its name, with the template's arguments as they turned out, and its parameters
// to presage_launch. Also what nvcc declares for the host and cuda_runtime.h leaves out for other compilers.
#pragma once
#include <cuda_runtime.h>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include "presage_configuration.h"

extern "C" void presage_configure(const presage_configuration *next);
// Launches a kernel whose stub has this address. Each of `values` points at one of its parameters.
extern "C" void presage_launch_at(const void *stub, const void *const *values);
extern "C" void presage_launch(const char *unit, const char *name, int count, const void *const *values,
                               const size_t *sizes);
extern "C" cudaError_t presage_symbol_copy(const char *unit, const char *symbol, const void *source, size_t size,
                                           size_t offset, cudaStream_t stream);

namespace presage {

inline void configure(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) {
  const presage_configuration next{grid, block, shared, stream};
  presage_configure(&next);
}

// Attributes that only make a launch faster are left out, but for the overlap of launches.
inline void configure(const cudaLaunchConfig_t &given) {
  presage_configuration next{given.gridDim, given.blockDim, given.dynamicSmemBytes, given.stream};
  for (unsigned i = 0; i < given.numAttrs; ++i) {
    const auto &value = given.attrs[i].val;
    switch (given.attrs[i].id) {
      case cudaLaunchAttributeClusterDimension:
        next.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        break;
      case cudaLaunchAttributeCooperative: next.cooperative = value.cooperative; break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        next.overlapping = value.programmaticStreamSerializationAllowed;
        break;
      default: break;
    }
  }
  presage_configure(&next);
}

template <class... Parameters>
void launch(const char *unit, const std::string &name, const Parameters &...parameters) {
  const void *values[] = {static_cast<const void *>(&parameters)..., nullptr};
  const size_t sizes[] = {sizeof(Parameters)..., 0};
  presage_launch(unit, name.c_str(), sizeof...(Parameters), values, sizes);
}

// The compiler spells what a template's parameter is in the name of the function.
template <class Spelled> const char *type_in_name() { return __PRETTY_FUNCTION__; }
template <auto Spelled> const char *value_in_name() { return __PRETTY_FUNCTION__; }
inline std::string after_equals(std::string text) {
  text = text.substr(text.find("Spelled = ") + 10);
  return text.substr(0, text.rfind(']'));
}
template <class T> std::string type() { return after_equals(type_in_name<T>()); }
template <auto V> std::string value() { return after_equals(value_in_name<V>()); }

inline std::string joined(std::initializer_list<std::string> parts) {
  std::string out;
  for (const auto &part : parts)
    if (!part.empty()) out += (out.empty() ? "" : ", ") + part;
  return out;
}
template <class... Each> std::string types() { return joined({type<Each>()...}); }
template <auto... Each> std::string values() { return joined({value<Each>()...}); }

inline std::string instance(const char *name, std::initializer_list<std::string> arguments) {
  return std::string(name) + "<" + joined(arguments) + ">";
}

}  // namespace presage

// Attributes of kernels, which only nvcc knows.
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __maxnreg__
#define __maxnreg__(...)

#define PRESAGE_MINMAX(T)                                            \
  constexpr T min(T a, T b) { return a < b ? a : b; }                \
  constexpr T max(T a, T b) { return a > b ? a : b; }
PRESAGE_MINMAX(int)
PRESAGE_MINMAX(unsigned)
PRESAGE_MINMAX(long)
PRESAGE_MINMAX(unsigned long)
PRESAGE_MINMAX(long long)
PRESAGE_MINMAX(unsigned long long)
PRESAGE_MINMAX(float)
PRESAGE_MINMAX(double)
#undef PRESAGE_MINMAX
#define PRESAGE_MIXED(T, A, B)                                                                   \
  constexpr T min(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b); } \
  constexpr T max(A a, B b) { return static_cast<T>(a) > static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b); } \
  constexpr T min(B a, A b) { return min(b, a); }                                                \
  constexpr T max(B a, A b) { return max(b, a); }
PRESAGE_MIXED(unsigned, int, unsigned)
PRESAGE_MIXED(unsigned long, long, unsigned long)
PRESAGE_MIXED(unsigned long long, long long, unsigned long long)
PRESAGE_MIXED(double, float, double)
#undef PRESAGE_MIXED

// Variables of the device are known by their names.
namespace presage {
inline cudaError_t to_symbol(const char *unit, const char *name, const void *source, size_t size, size_t offset = 0,
                             cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t stream = nullptr) {
  return presage_symbol_copy(unit, name, source, size, offset, stream);
}
}  // namespace presage
#define cudaMemcpyToSymbol(symbol, ...) ::presage::to_symbol(PRESAGE_UNIT, #symbol, __VA_ARGS__)
#define cudaMemcpyToSymbolAsync(symbol, ...) ::presage::to_symbol(PRESAGE_UNIT, #symbol, __VA_ARGS__)

// The functions that launch a kernel take its stub for the kernel.
template <class Kernel>
inline cudaError_t presage_launch_kernel(Kernel *kernel, dim3 grid, dim3 block, void **values, size_t shared = 0,
                                         cudaStream_t stream = nullptr) {
  ::presage::configure(grid, block, shared, stream);
  presage_launch_at((const void *)kernel, values);
  return cudaSuccess;
}
template <class Kernel>
inline cudaError_t presage_launch_cooperative_kernel(Kernel *kernel, dim3 grid, dim3 block, void **values,
                                                     size_t shared = 0, cudaStream_t stream = nullptr) {
  presage_configuration next{grid, block, shared, stream};
  next.cooperative = true;
  presage_configure(&next);
  presage_launch_at((const void *)kernel, values);
  return cudaSuccess;
}
inline cudaError_t presage_launch_kernel_exc(const cudaLaunchConfig_t *config, const void *kernel, void **values) {
  ::presage::configure(*config);
  presage_launch_at(kernel, values);
  return cudaSuccess;
}
template <class... Parameters, class... Values>
inline cudaError_t presage_launch_kernel_ex(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                            Values &&...values) {
  ::presage::configure(*config);
  kernel(std::forward<Values>(values)...);
  return cudaSuccess;
}
#define cudaLaunchKernel presage_launch_kernel
#define cudaLaunchCooperativeKernel presage_launch_cooperative_kernel
#define cudaLaunchKernelExC presage_launch_kernel_exc
#define cudaLaunchKernelEx presage_launch_kernel_ex

// Kernels are functions here, whose addresses CUDA's run time takes as any pointer.
template <class Result, class... P>
inline cudaError_t cudaFuncSetAttribute(Result (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}
template <class Result, class... P>
inline cudaError_t cudaFuncSetCacheConfig(Result (*kernel)(P...), cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void *>(kernel), config);
}
template <class Result, class... P>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, Result (*kernel)(P...)) {
  return cudaFuncGetAttributes(out, reinterpret_cast<const void *>(kernel));
}

// What torch defines for nvcc only.
namespace at {
template <class T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };
}  // namespace at

// Names of libraries for the device that the host part may mention.
namespace cooperative_groups {}
namespace nvcuda { namespace wmma {} }
namespace cub {}
