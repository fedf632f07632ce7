// How the next kernel is launched.
#pragma once
#include <cuda_runtime_api.h>

struct presage_configuration {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  dim3 cluster;
  bool cooperative = false;
  bool overlapping = false;  // it may start before the previous launch has ended
};
