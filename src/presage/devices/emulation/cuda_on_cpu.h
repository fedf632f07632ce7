// Runs CUDA C++ on the CPU, one block at a time, to check what a kernel computes where there is no GPU.
//
// Every thread of a block is a fibre. It runs until it meets a barrier or a warp-wide operation and then lets the others
// go on; when all that are still alive have arrived, all are released. Threads run in one order and, in every
// second call, in the opposite one. Reads of shared memory that was never written are not found.
#pragma once
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __CUDA_ARCH__ 900

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
#define VECTOR_TYPES(T, N)                                                                                              \
    struct N##2 { T x, y; };                                                                                            \
    struct N##3 { T x, y, z; };                                                                                         \
    static inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                         \
    static inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                                 \
    struct alignas(sizeof(T) < 8 ? 4 * sizeof(T) : 16) N##4 { T x, y, z, w; };                                          \
    static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
typedef unsigned int uint;
typedef unsigned char uchar;
VECTOR_TYPES(float, float)
VECTOR_TYPES(int, int)
VECTOR_TYPES(double, double)
VECTOR_TYPES(unsigned char, uchar)
VECTOR_TYPES(signed char, char)
VECTOR_TYPES(short, short)
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;
alignas(256) static unsigned char presage_dynamic[256 << 10];

namespace presage {
struct Fibre {
    ucontext_t start;
    jmp_buf at;
    uint3 thread;
    bool begun = false, done = false;
    int waits = 0; // 0: runs, 1: for its block, 2: for the lanes in `mask`
    unsigned mask = 0;
    std::unique_ptr<char[]> stack;
};
static std::vector<Fibre> fibres;
static int current;
static jmp_buf scheduler;
static void (*body)();
static uint64_t slots[64][32];
static uint64_t predicates[64][32];
static int votes;
static bool backwards; // whether the last thread runs first: the other way in every second call

static void enter() { // a fibre lives on: its next block is another thread of its place
    for (;;) {
        body();
        fibres[current].done = true;
        if (!_setjmp(fibres[current].at)) longjmp(scheduler, 1);
    }
}
static void yield(int why, unsigned mask) {
    Fibre &self = fibres[current];
    self.waits = why;
    self.mask = mask;
    if (!_setjmp(self.at)) longjmp(scheduler, 1);
    threadIdx = fibres[current].thread;
}
static bool release() {
    bool any = false, all_at_block = true, alive = false;
    for (auto &f : fibres)
        if (!f.done) alive = true, all_at_block = all_at_block && f.waits == 1;
    if (alive && all_at_block) {
        for (auto &f : fibres) f.waits = 0;
        return true;
    }
    for (size_t w = 0; w < fibres.size(); w += 32) {
        for (int lane = 0; lane < 32 && w + lane < fibres.size(); lane++) {
            Fibre &f = fibres[w + lane];
            if (f.done || f.waits != 2) continue;
            bool together = true;
            for (int other = 0; other < 32 && w + other < fibres.size(); other++)
                if (f.mask >> other & 1) {
                    Fibre &g = fibres[w + other];
                    together = together && (g.done || (g.waits == 2 && g.mask == f.mask));
                }
            if (!together) continue;
            const unsigned mask = f.mask;
            for (int other = 0; other < 32 && w + other < fibres.size(); other++)
                if (mask >> other & 1) fibres[w + other].waits = 0;
            any = true;
        }
    }
    return any;
}
static const char *run_block(unsigned threads) {
    const size_t bytes = 96 << 10;
    if (fibres.size() < threads || fibres.size() > threads) fibres.resize(threads);
    for (unsigned t = 0; t < threads; t++) {
        Fibre &f = fibres[t];
        f.done = false, f.waits = 0;
        f.thread = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
        if (!f.stack) f.stack.reset(new char[bytes]);
    }
    for (;;) {
        bool ran = false, alive = false;
        for (volatile unsigned turn = 0; turn < threads; turn = turn + 1) {
            const unsigned t = backwards ? threads - 1 - turn : turn;
            Fibre &f = fibres[t];
            if (f.done) continue;
            alive = true;
            if (f.waits) continue;
            ran = true;
            current = t;
            threadIdx = f.thread;
            if (_setjmp(scheduler)) continue;
            if (f.begun) longjmp(f.at, 1);
            f.begun = true;
            getcontext(&f.start);
            f.start.uc_stack.ss_sp = f.stack.get();
            f.start.uc_stack.ss_size = bytes;
            f.start.uc_link = nullptr;
            makecontext(&f.start, enter, 0);
            setcontext(&f.start);
        }
        if (!alive) return nullptr;
        if (!ran && !release()) return "threads wait for each other at different barriers";
    }
}
static int lane() { return current % 32; }
static int warp() { return current / 32; }
template <class T> static T exchange(unsigned mask, T value, int from) {
    static_assert(sizeof(T) <= 8, "at most eight bytes are exchanged");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    slots[warp()][lane()] = bits;
    yield(2, mask);
    bits = slots[warp()][from & 31];
    yield(2, mask);
    memcpy(&value, &bits, sizeof(T));
    return value;
}
template <class... A, size_t... I> static void call(void (*f)(A...), void **a, std::index_sequence<I...>) {
    f(*(std::remove_const_t<A> *)a[I]...);
}
template <class... A> static void call(void (*f)(A...), void **a) { call(f, a, std::index_sequence_for<A...>{}); }
template <class F> static const char *launch(F *f, const unsigned *grid, const unsigned *block, void **arguments) {
    static F *entry;
    static void **values;
    entry = f, values = arguments;
    body = [] { call(entry, values); };
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                memset(presage_dynamic, 0xff, 4096);
                if (const char *wrong = run_block(block[0] * block[1] * block[2])) return wrong;
            }
    return nullptr;
}
[[noreturn]] static void give_up(const char *why) {
    fprintf(stderr, "%s\n", why);
    fflush(stderr);
    abort();
}
struct Three { unsigned of[3]; };
template <class F> static void launch_or_give_up(F *f, Three grid, Three block, void **arguments) {
    if (const char *wrong = launch(f, grid.of, block.of, arguments)) give_up(wrong);
}
} // namespace presage

static inline void __syncthreads() { presage::yield(1, 0); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { presage::yield(2, mask); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
template <class T> static T __shfl_sync(unsigned m, T v, int from, int width = 32) {
    return presage::exchange(m, v, presage::lane() / width * width + from % width);
}
template <class T> static T __shfl_xor_sync(unsigned m, T v, int by, int width = 32) {
    const int to = presage::lane() ^ by;
    return presage::exchange(m, v, to / width == presage::lane() / width ? to : presage::lane());
}
template <class T> static T __shfl_down_sync(unsigned m, T v, int by, int width = 32) {
    const int l = presage::lane();
    return presage::exchange(m, v, l % width + by < width ? l + by : l);
}
template <class T> static T __shfl_up_sync(unsigned m, T v, int by, int width = 32) {
    const int l = presage::lane();
    return presage::exchange(m, v, l % width >= by ? l - by : l);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    presage::predicates[presage::warp()][presage::lane()] = predicate != 0;
    presage::yield(2, mask);
    unsigned bits = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1 && presage::warp() * 32 + i < (int)presage::fibres.size())
            bits |= (unsigned)(presage::predicates[presage::warp()][i] != 0) << i;
    presage::yield(2, mask);
    return bits;
}
template <class T> static unsigned __match_any_sync(unsigned mask, T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    presage::slots[presage::warp()][presage::lane()] = bits;
    presage::yield(2, mask);
    unsigned same = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1 && presage::warp() * 32 + i < (int)presage::fibres.size())
            same |= (unsigned)(presage::slots[presage::warp()][i] == bits) << i;
    presage::yield(2, mask);
    return same;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
static inline int __syncthreads_count(int predicate) {
    __syncthreads();
    presage::votes = 0;
    __syncthreads();
    presage::votes += predicate != 0;
    __syncthreads();
    const int count = presage::votes;
    __syncthreads();
    return count;
}
static inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) > 0; }
static inline int __syncthreads_and(int predicate) {
    return __syncthreads_count(predicate) == (int)presage::fibres.size();
}
#define REDUCE_SYNC(NAME, OP)                                                                                           \
    template <class T> static T NAME(unsigned mask, T v) {                                                              \
        for (int by = 16; by; by /= 2) { const T o = __shfl_xor_sync(mask, v, by); v = OP; }                            \
        return v;                                                                                                       \
    }
REDUCE_SYNC(__reduce_add_sync, v + o)
REDUCE_SYNC(__reduce_max_sync, v > o ? v : o)
REDUCE_SYNC(__reduce_min_sync, v < o ? v : o)

#define ATOMIC(NAME, EXPRESSION)                                                                                        \
    template <class T, class U> static T NAME(T *at, U given) {                                                         \
        const T old = *at, value = (T)given;                                                                            \
        *at = EXPRESSION;                                                                                               \
        return old;                                                                                                     \
    }
ATOMIC(atomicAdd, old + value)
static inline float2 atomicAdd(float2 *at, float2 given) {
    const float2 old = *at;
    *at = {old.x + given.x, old.y + given.y};
    return old;
}
static inline float4 atomicAdd(float4 *at, float4 given) {
    const float4 old = *at;
    *at = {old.x + given.x, old.y + given.y, old.z + given.z, old.w + given.w};
    return old;
}
ATOMIC(atomicSub, old - value)
ATOMIC(atomicMax, old > value ? old : value)
ATOMIC(atomicMin, old < value ? old : value)
ATOMIC(atomicAnd, old & value)
ATOMIC(atomicOr, old | value)
ATOMIC(atomicXor, old ^ value)
ATOMIC(atomicExch, value)
template <class T, class U, class V> static T atomicCAS(T *at, U expected, V value) {
    const T old = *at;
    if (old == (T)expected) *at = (T)value;
    return old;
}
static inline unsigned atomicInc(unsigned *at, unsigned limit) {
    const unsigned old = *at;
    *at = old >= limit ? 0 : old + 1;
    return old;
}

template <class T> static T __ldg(const T *p) { return *p; }
template <class T> static T __ldcs(const T *p) { return *p; }
template <class T> static T __ldcg(const T *p) { return *p; }
template <class T> static T __ldca(const T *p) { return *p; }
template <class T> static T __ldlu(const T *p) { return *p; }
template <class T> static T __ldcv(const T *p) { return *p; }
template <class T, class U> static void __stcs(T *p, U v) { *p = v; }
template <class T, class U> static void __stcg(T *p, U v) { *p = v; }
template <class T, class U> static void __stwt(T *p, U v) { *p = v; }
template <class T, class U> static void __stwb(T *p, U v) { *p = v; }

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t zeros = 0) {
    memcpy(to, from, bytes - zeros);
    memset((char *)to + bytes - zeros, 0, zeros);
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(size_t) {}

template <class T, class F> static T presage_cast(F from) {
    T to;
    memcpy(&to, &from, sizeof(T));
    return to;
}
static inline int __float_as_int(float x) { return presage_cast<int>(x); }
static inline unsigned __float_as_uint(float x) { return presage_cast<unsigned>(x); }
static inline float __int_as_float(int x) { return presage_cast<float>(x); }
static inline float __uint_as_float(unsigned x) { return presage_cast<float>(x); }
static inline long long __double_as_longlong(double x) { return presage_cast<long long>(x); }
static inline double __longlong_as_double(long long x) { return presage_cast<double>(x); }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline unsigned __float2uint_rn(float x) { return (unsigned)rintf(x); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned __activemask() { return 0xffffffffu; }
static inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; i++) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
    return c;
}
static inline float __expf(float x) { return expf(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __exp10f(float x) { return powf(10.0f, x); }
static inline float exp10f(float x) { return powf(10.0f, x); }
static inline void __sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
static inline void sincospif(float x, float *s, float *c) { *s = sinf(x * 3.14159265358979f), *c = cosf(x * 3.14159265358979f); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float fdividef(float x, float y) { return x / y; }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
static inline float erfcxf(float x) { return expf(x * x) * erfcf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline float sinpif(float x) { return sinf(x * 3.14159265358979f); }
static inline float cospif(float x) { return cosf(x * 3.14159265358979f); }
#define COMPARE(T)                                                                                                      \
    static inline T max(T a, T b) { return a > b ? a : b; }                                                             \
    static inline T min(T a, T b) { return a < b ? a : b; }
COMPARE(int)
COMPARE(unsigned)
COMPARE(long)
COMPARE(unsigned long)
COMPARE(long long)
COMPARE(unsigned long long)
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
#define CUDART_INF_F INFINITY

// Half precision: the arithmetic of _Float16, which rounds after each operation as a GPU does.
#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
typedef __fp16 half;  // which g++ has there before version 13; it rounds when a value is stored
#else
typedef _Float16 half;
#endif
typedef half __half;
struct alignas(4) half2 { half x, y; };
typedef half2 __half2;
static inline half __float2half(float x) { return (half)x; }
static inline half __float2half_rn(float x) { return (half)x; }
static inline float __half2float(half x) { return (float)x; }
static inline half __int2half_rn(int x) { return (half)(float)x; }
static inline half2 make_half2(half x, half y) { return {x, y}; }
static inline half2 __halves2half2(half x, half y) { return {x, y}; }
static inline half2 __half2half2(half x) { return {x, x}; }
static inline half2 __floats2half2_rn(float x, float y) { return {(half)x, (half)y}; }
static inline half2 __float22half2_rn(float2 v) { return {(half)v.x, (half)v.y}; }
static inline float2 __half22float2(half2 v) { return {(float)v.x, (float)v.y}; }
static inline half2 __float2half2_rn(float x) { return {(half)x, (half)x}; }
static inline half __low2half(half2 v) { return v.x; }
static inline half __high2half(half2 v) { return v.y; }
static inline float __low2float(half2 v) { return (float)v.x; }
static inline float __high2float(half2 v) { return (float)v.y; }
static inline unsigned short __half_as_ushort(half x) { return presage_cast<unsigned short>(x); }
static inline half __ushort_as_half(unsigned short x) { return presage_cast<half>(x); }

// The brain's floating point: a float whose lower half is rounded away after each conversion.
struct nv_bfloat16 {
    uint16_t bits = 0;
    nv_bfloat16() = default;
    nv_bfloat16(float x) {
        const unsigned u = presage_cast<unsigned>(x);
        bits = x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
    }
    operator float() const { return presage_cast<float>((unsigned)bits << 16); }
};
typedef nv_bfloat16 __nv_bfloat16;
struct alignas(4) nv_bfloat162 { nv_bfloat16 x, y; };
typedef nv_bfloat162 __nv_bfloat162;
static inline nv_bfloat16 __float2bfloat16(float x) { return nv_bfloat16(x); }
static inline nv_bfloat16 __float2bfloat16_rn(float x) { return nv_bfloat16(x); }
static inline float __bfloat162float(nv_bfloat16 x) { return x; }
static inline nv_bfloat162 make_bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
static inline nv_bfloat162 __halves2bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
static inline nv_bfloat162 __bfloat162bfloat162(nv_bfloat16 x) { return {x, x}; }
static inline nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
static inline nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
static inline nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
static inline float2 __bfloat1622float2(nv_bfloat162 v) { return {v.x, v.y}; }
static inline nv_bfloat16 __low2bfloat16(nv_bfloat162 v) { return v.x; }
static inline nv_bfloat16 __high2bfloat16(nv_bfloat162 v) { return v.y; }
static inline float __low2float(nv_bfloat162 v) { return v.x; }
static inline float __high2float(nv_bfloat162 v) { return v.y; }

// Arithmetic of both, alone and in pairs: a float's, rounded.
#define PAIRED_UNARY(T, T2, one, two, value)                                                                            \
    static inline T one(T v) { const float a = (float)v; return (T)(value); }                                          \
    static inline T2 two(T2 v) { return {one(v.x), one(v.y)}; }
#define PAIRED_BINARY(T, T2, one, two, value)                                                                           \
    static inline T one(T v, T w) { const float a = (float)v, b = (float)w; return (T)(value); }                       \
    static inline T2 two(T2 v, T2 w) { return {one(v.x, w.x), one(v.y, w.y)}; }
#define COMPARED(T, name, operation)                                                                                    \
    static inline bool name(T a, T b) { return (float)a operation (float)b; }
#define SMALL_FLOATS(T, T2)                                                                                             \
    PAIRED_UNARY(T, T2, __hneg, __hneg2, -a)                                                                           \
    PAIRED_UNARY(T, T2, __habs, __habs2, fabsf(a))                                                                     \
    PAIRED_UNARY(T, T2, hexp, h2exp, expf(a))                                                                          \
    PAIRED_UNARY(T, T2, hlog, h2log, logf(a))                                                                          \
    PAIRED_UNARY(T, T2, hsqrt, h2sqrt, sqrtf(a))                                                                       \
    PAIRED_UNARY(T, T2, hrsqrt, h2rsqrt, 1.0f / sqrtf(a))                                                              \
    PAIRED_UNARY(T, T2, hrcp, h2rcp, 1.0f / a)                                                                         \
    PAIRED_BINARY(T, T2, __hadd, __hadd2, a + b)                                                                       \
    PAIRED_BINARY(T, T2, __hsub, __hsub2, a - b)                                                                       \
    PAIRED_BINARY(T, T2, __hmul, __hmul2, a * b)                                                                       \
    PAIRED_BINARY(T, T2, __hdiv, __h2div, a / b)                                                                       \
    PAIRED_BINARY(T, T2, __hmax, __hmax2, a > b || b != b ? a : b)                                                     \
    PAIRED_BINARY(T, T2, __hmin, __hmin2, a < b || b != b ? a : b)                                                     \
    COMPARED(T, __heq, ==) COMPARED(T, __hne, !=) COMPARED(T, __hlt, <) COMPARED(T, __hle, <=)                         \
    COMPARED(T, __hgt, >) COMPARED(T, __hge, >=)                                                                       \
    static inline T __hfma(T a, T b, T c) { return (T)((float)a * (float)b + (float)c); }                              \
    static inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }              \
    static inline T2 operator+(T2 a, T2 b) { return __hadd2(a, b); }                                                   \
    static inline T2 operator-(T2 a, T2 b) { return __hsub2(a, b); }                                                   \
    static inline T2 operator*(T2 a, T2 b) { return __hmul2(a, b); }                                                   \
    static inline T2 operator/(T2 a, T2 b) { return __h2div(a, b); }
SMALL_FLOATS(half, half2)
SMALL_FLOATS(nv_bfloat16, nv_bfloat162)

// Eight bits with four of exponent (largest 448, no infinities), as a quantised network stores them.
struct __nv_fp8_e4m3 {
    uint8_t __x = 0;
    __nv_fp8_e4m3() = default;
    explicit __nv_fp8_e4m3(float x) {
        const uint8_t sign = std::signbit(x) ? 0x80 : 0;
        const float size = fabsf(x);
        if (x != x) { __x = sign | 0x7f; return; }
        if (size > 448.0f) { __x = sign | 0x7e; return; }
        int exponent;
        frexpf(size, &exponent);
        exponent = size == 0.0f ? -5 : exponent;
        const float step = ldexpf(1.0f, (exponent - 1 < -6 ? -6 : exponent - 1) - 3);
        const float rounded = rintf(size / step) * step;
        if (rounded > 448.0f) { __x = sign | 0x7e; return; }
        int e;
        const float f = frexpf(rounded, &e);
        if (rounded < 0.015625f) __x = sign | (uint8_t)rintf(rounded / 0.001953125f);
        else __x = sign | (uint8_t)((e - 1 + 7) << 3) | (uint8_t)rintf((f * 2 - 1) * 8);
    }
    operator float() const {
        const int e = __x >> 3 & 15, m = __x & 7;
        if (e == 15 && m == 7) return NAN;
        const float v = e ? ldexpf(1 + m / 8.0f, e - 7) : ldexpf(m / 8.0f, -6);
        return __x & 0x80 ? -v : v;
    }
};
