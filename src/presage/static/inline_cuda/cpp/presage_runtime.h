// What our stand-in for CUDA's run time asks and tells Python.
#pragma once
#include <Python.h>
#include <cuda_runtime_api.h>

#include <cstdarg>
#include <cstdint>

namespace presage {
// Both call the reporter with the kind and a tuple, whose format is Py_BuildValue's. Python's errors become C++'s.
void tell(const char *kind, const char *format, ...);
int64_t ask(const char *kind, const char *format, ...);

inline const char *copy_kind(cudaMemcpyKind kind) {
  static const char *const names[] = {"host_to_host", "host_to_device", "device_to_host", "device_to_device", "default"};
  return names[kind];
}
}  // namespace presage
