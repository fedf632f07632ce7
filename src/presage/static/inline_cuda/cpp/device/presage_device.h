// What kernels use of torch's headers, for a compiler that has not read them: its 16-bit floats, types to sum in, and
// accessors, laid out as torch lays them out.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_ALWAYS_INLINE __forceinline__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_RESTRICT __restrict__
#define C10_LIKELY(truth) (truth)
#define C10_UNLIKELY(truth) (truth)
#define C10_WARP_SIZE 32
#define CUDA_KERNEL_ASSERT(truth) ((truth) ? (void)0 : __trap())
#define CUDA_KERNEL_LOOP_TYPE(i, n, type)                                                            \
  for (long long presage_##i = (long long)blockIdx.x * blockDim.x + threadIdx.x, presage_once = 1;   \
       presage_once; presage_once = 0)                                                               \
    for (type i = presage_##i; presage_##i < (n); presage_##i += (long long)blockDim.x * gridDim.x, i = presage_##i)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace c10 {

#define PRESAGE_SHORT_FLOAT(Name, Native, from_float, to_float)                                      \
  struct alignas(2) Name {                                                                           \
    unsigned short x;                                                                                \
    struct from_bits_t {};                                                                           \
    static constexpr __host__ __device__ from_bits_t from_bits() { return {}; }                      \
    Name() = default;                                                                                \
    constexpr __device__ Name(unsigned short bits, from_bits_t) : x(bits) {}                         \
    __device__ Name(float value) { *this = Name(from_float(value)); }                                \
    __device__ Name(const Native &value) : x(*reinterpret_cast<const unsigned short *>(&value)) {}   \
    __device__ operator float() const { return to_float(*reinterpret_cast<const Native *>(&x)); }    \
    __device__ operator Native() const { return *reinterpret_cast<const Native *>(&x); }             \
  };                                                                                                 \
  PRESAGE_OPERATOR(Name, +)                                                                          \
  PRESAGE_OPERATOR(Name, -)                                                                          \
  PRESAGE_OPERATOR(Name, *)                                                                          \
  PRESAGE_OPERATOR(Name, /)                                                                          \
  __device__ inline Name operator-(Name a) { return Name(-static_cast<float>(a)); }

#define PRESAGE_OPERATOR(Name, op)                                                                   \
  __device__ inline Name operator op(Name a, Name b) { return Name(float(a) op float(b)); }          \
  __device__ inline float operator op(Name a, float b) { return float(a) op b; }                     \
  __device__ inline float operator op(float a, Name b) { return a op float(b); }                     \
  __device__ inline double operator op(Name a, double b) { return double(float(a)) op b; }           \
  __device__ inline double operator op(double a, Name b) { return a op double(float(b)); }           \
  __device__ inline Name operator op(Name a, int b) { return Name(float(a) op float(b)); }           \
  __device__ inline Name operator op(int a, Name b) { return Name(float(a) op float(b)); }           \
  __device__ inline Name operator op(Name a, long long b) { return Name(float(a) op float(b)); }     \
  __device__ inline Name operator op(long long a, Name b) { return Name(float(a) op float(b)); }     \
  __device__ inline Name &operator op##=(Name &a, Name b) { return a = a op b; }                     \
  __device__ inline float &operator op##=(float &a, Name b) { return a = a op float(b); }

PRESAGE_SHORT_FLOAT(Half, __half, __float2half, __half2float)
PRESAGE_SHORT_FLOAT(BFloat16, __nv_bfloat16, __float2bfloat16, __bfloat162float)
#undef PRESAGE_OPERATOR
#undef PRESAGE_SHORT_FLOAT

}  // namespace c10

namespace at {

using c10::BFloat16;
using c10::Half;

template <class T, bool on_cuda> struct AccumulateType { using type = T; };
template <> struct AccumulateType<Half, true> { using type = float; };
template <> struct AccumulateType<BFloat16, true> { using type = float; };
template <> struct AccumulateType<signed char, true> { using type = long long; };
template <> struct AccumulateType<unsigned char, true> { using type = long long; };
template <> struct AccumulateType<short, true> { using type = long long; };
template <> struct AccumulateType<int, true> { using type = long long; };
template <class T, bool on_cuda> using acc_type = typename AccumulateType<T, on_cuda>::type;

template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;

template <class T> struct DefaultPtrTraits { typedef T *PtrType; };
template <class T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class index_t = long long>
class TensorAccessor {
 public:
  typedef typename Traits<T>::PtrType PtrType;
  __device__ TensorAccessor(PtrType data, const index_t *sizes, const index_t *strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __device__ index_t size(index_t i) const { return sizes_[i]; }
  __device__ index_t stride(index_t i) const { return strides_[i]; }
  __device__ PtrType data() const { return data_; }
  __device__ decltype(auto) operator[](index_t i) const {
    if constexpr (N == 1) return (data_[strides_[0] * i]);
    else return TensorAccessor<T, N - 1, Traits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }

 private:
  PtrType data_;
  const index_t *sizes_, *strides_;
};

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class index_t = long long>
class GenericPackedTensorAccessor {
 public:
  typedef typename Traits<T>::PtrType PtrType;
  __device__ index_t size(index_t i) const { return sizes_[i]; }
  __device__ index_t stride(index_t i) const { return strides_[i]; }
  __device__ PtrType data() const { return data_; }
  __device__ decltype(auto) operator[](index_t i) const {
    if constexpr (N == 1) return (data_[strides_[0] * i]);
    else return TensorAccessor<T, N - 1, Traits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }

 private:
  PtrType data_;
  index_t sizes_[N], strides_[N];
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, long>;

template <class T> __device__ inline T ceil_div(T a, T b) { return (a + b - 1) / b; }

}  // namespace at

namespace torch {
using namespace at;
namespace headeronly { using namespace at; }
}  // namespace torch

template <class T> __device__ inline auto gpuAtomicAdd(T *address, T value) { return atomicAdd(address, value); }
template <class T> __device__ inline auto gpuAtomicAddNoReturn(T *address, T value) { return atomicAdd(address, value); }
