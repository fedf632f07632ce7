#include <cuda_fp16.h>

typedef $left_type$ Left;
typedef $right_type$ Right;
typedef $out_type$ Out;
#define FACTORS $factors$ // right factors, each of which has a sum of its own
// Whether the terms of one sum lie side by side in memory; if not, the rows of the left or columns of the right do.
#define LEFT_ALONG_K $left_along_k$
#define RIGHT_ALONG_K $right_along_k$

__device__ __forceinline__ float number(float v) { return v; }
__device__ __forceinline__ float number(half v) { return __half2float(v); }
__device__ __forceinline__ float number(signed char v) { return (float)v; }
__device__ __forceinline__ void put(float *to, float v) { *to = v; }
__device__ __forceinline__ void put(half *to, float v) { *to = __float2half(v); }

__device__ __forceinline__ float4 four(const float *from) { return *(const float4 *)from; }
__device__ __forceinline__ float4 four(const half *from) {
    const half2 low = ((const half2 *)from)[0], high = ((const half2 *)from)[1];
    return make_float4(__low2float(low), __high2float(low), __low2float(high), __high2float(high));
}
__device__ __forceinline__ float4 four(const signed char *from) {
    const char4 v = *(const char4 *)from;
    return make_float4((float)v.x, (float)v.y, (float)v.z, (float)v.w);
}
__device__ __forceinline__ void put_four(float *to, float4 v) { *(float4 *)to = v; }
__device__ __forceinline__ void put_four(half *to, float4 v) {
    ((half2 *)to)[0] = __floats2half2_rn(v.x, v.y);
    ((half2 *)to)[1] = __floats2half2_rn(v.z, v.w);
}

// Where term p of a row of the left factor, or of a column of the right one, is: `outer` of them have k terms each.
template <bool ALONG_K> __device__ __forceinline__ size_t place(int o, int p, int outer, int k) {
    return ALONG_K ? (size_t)o * k + p : (size_t)p * outer + o;
}

// Four neighbours in memory from term p of o on; zeros outside of the factor and from the term `end` on.
template <bool ALONG_K, class T>
__device__ __forceinline__ float4 neighbours(const T *from, int o, int p, int outer, int k, int end) {
    if (o >= outer || p >= end) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    from += place<ALONG_K>(o, p, outer, k);
    const int left = ALONG_K ? end - p : outer - o;
    if ((ALONG_K ? k : outer) % 4 == 0 && left >= 4) return four(from);
    return make_float4(number(from[0]), left > 1 ? number(from[1]) : 0.0f, left > 2 ? number(from[2]) : 0.0f,
                       left > 3 ? number(from[3]) : 0.0f);
}

// The element (i, j) of the result, from its sum v and, with two right factors, the other one's u.
__device__ __forceinline__ float finish(float v, float u, int i, int j, int m, int n$extra_parameters$) {
    $finish$
}
