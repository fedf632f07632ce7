#include <cuda_fp16.h>

typedef $type$ Number;
#define DIM 64 // no head has more dimensions

__device__ __forceinline__ float number(float v) { return v; }
__device__ __forceinline__ float number(half v) { return __half2float(v); }
__device__ __forceinline__ void put(float *to, float v) { *to = v; }
__device__ __forceinline__ void put(half *to, float v) { *to = __float2half(v); }
__device__ __forceinline__ float4 four(const float *from) { return *(const float4 *)from; }
__device__ __forceinline__ float4 four(const half *from) {
    const half2 low = ((const half2 *)from)[0], high = ((const half2 *)from)[1];
    return make_float4(__low2float(low), __high2float(low), __low2float(high), __high2float(high));
}

// The first key that query i sees and the one after the last; both grow with i.
__device__ __forceinline__ int first_key(int i, int queries, int keys$window_parameter$) { return $begin$; }
__device__ __forceinline__ int end_key(int i, int queries, int keys$window_parameter$) { return $end$; }

// What is added to the score of query i and key j.
__device__ __forceinline__ float bias(int head, int i, int j, int queries, int keys$slopes_parameter$) {
    return $bias$;
}
