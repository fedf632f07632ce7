"""The words of the languages and libraries that kernels are written in.

A name that is not listed may have been chosen by the author, and is hidden from the model. A word may be added if no
author would choose it to impress a model.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# -- C and CUDA -------------------------------------------------------------------------------------------------------

_C = _words("""
    alignas alignof asm auto bool break case catch char class concept const const_cast consteval constexpr continue
    decltype default delete do double dynamic_cast else enum explicit extern false final float for friend goto if inline
    int long mutable namespace new noexcept nullptr operator override private protected public register reinterpret_cast
    restrict return short signed sizeof static static_assert static_cast struct switch template this throw true try
    typedef typeid typename union unsigned using virtual void volatile wchar_t while _Bool _Alignas _Noreturn
    __attribute__ __align__ __asm __asm__ __inline__ __inline __volatile__ __restrict__ __restrict __extension__
    __global__ __device__ __host__ __shared__ __constant__ __managed__ __forceinline__ __noinline__ __launch_bounds__
    __grid_constant__ __cluster_dims__ __maxnreg__ __builtin_expect __builtin_prefetch __builtin_assume
    __builtin_shuffle __builtin_shufflevector __builtin_assume_aligned __builtin_unreachable __VA_ARGS__
    __cplusplus __CUDA_ARCH__
    __CUDACC__ __CUDACC_RTC__ __clang__ __GNUC__ __AVX__ __AVX2__ __AVX512F__ __FMA__ __SSE2__ __ARM_NEON defined
    vector_size always_inline noinline
    size_t ssize_t ptrdiff_t uintptr_t intptr_t uchar uint ulong
    half half2 nv_half nv_half2 nv_bfloat16 nv_bfloat162 bfloat16 __half __half2 __nv_bfloat16 __nv_bfloat162
    __nv_fp8_e4m3 __nv_fp8_e5m2 __nv_fp8x2_e4m3 __nv_fp8x4_e4m3 dim3 cudaStream_t cudaError_t cudaSuccess
    threadIdx blockIdx blockDim gridDim warpSize NULL INFINITY NAN FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX INT_MAX INT_MIN
    UINT_MAX CUDART_INF_F CUDART_NAN_F M_PI M_PI_F M_SQRT2 M_SQRT1_2 M_LOG2E M_LN2
    std torch at c10 cub thrust cg cooperative_groups wmma nvcuda cute cutlass cuda ptx pybind11
    omp_get_thread_num omp_get_num_threads malloc calloc free aligned_alloc memcpy memset memmove printf assert
    mma_sync load_matrix_sync store_matrix_sync fill_fragment matrix_a matrix_b row_major col_major
    mem_row_major mem_col_major thread_block this_thread_block tiled_partition this_grid this_cluster
    memcpy_async
    PYBIND11_MODULE TORCH_EXTENSION_NAME TORCH_CHECK TORCH_LIBRARY AT_DISPATCH_FLOATING_TYPES scalar_t
    AT_DISPATCH_FLOATING_TYPES_AND_HALF AT_DISPATCH_ALL_TYPES C10_CUDA_KERNEL_LAUNCH_CHECK
    __trap __brkpt __nanosleep __threadfence __threadfence_block __threadfence_system __activemask __popc __popcll __clz
    __clzll __ffs __ffsll __brev __byte_perm __umulhi __mulhi __mul24 __umul24 __fdividef __saturatef __sinf __cosf
    __tanf __expf __exp2f __exp10f __logf __log2f __log10f __powf __sincosf __frsqrt_rn __fsqrt_rn
    __cvta_generic_to_shared __cvta_generic_to_global __isShared __isGlobal __dp4a __dp2a clock clock64
    __funnelshift_l __funnelshift_r
    __funnelshift_lc __funnelshift_rc __match_any_sync __match_all_sync min max abs labs llabs
""")

_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfinv exp exp10 exp2"
    " expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan j0 j1 ldexp lgamma log log10"
    " log1p log2 logb lrint lround nearbyint norm normcdf pow rcbrt remainder rhypot rint round rsqrt scalbn"
    " signbit sin sincos sinh sinpi sqrt tan tanh tgamma trunc"
)
_SCALAR = r"(?:float|double|half|half2|int|uint|ll|ull|short|ushort|char|uchar|bfloat16|bfloat162|low|high|lows|highs)"
_FORMS = re.compile(
    rf"""(?:{"|".join(_MATH.split())})[fl]?
    | u?int(?:8|16|32|64)_t
    | (?:make_)?(?:u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4]
    | __(?:shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all)_sync
    | __reduce_(?:add|min|max|and|or|xor)_sync
    | __sync(?:threads|warp|threads_count|threads_and|threads_or)
    | __ld(?:g|ca|cg|cs|lu|cv) | __st(?:wb|cg|cs|wt)
    | __[fd](?:add|sub|mul|div|rcp|sqrt|ma|maf)_r[nzud]
    | __{_SCALAR}(?:2|_as_|s2){_SCALAR}(?:_r[nzud])? | __(?:float|half|int|uint)_as_(?:float|half|int|uint|short)
    | __h(?:add|sub|mul|div|fma|neg|abs|max|min|eq|ne|le|lt|ge|gt|isnan)2?(?:_rn|_sat|_relu|_nan)?
    | h(?:exp|exp2|exp10|log|log2|log10|sqrt|rsqrt|rcp|sin|cos|floor|ceil|rint|trunc)2? | h2(?:exp|log|sqrt|rsqrt|rcp)
    | atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)?
    | _mm(?:256|512)?_(?:load|loadu|store|storeu|add|sub|mul|div|max|min|sqrt|set1|setzero|fmadd|stream)_(?:ps|pd|si256)
    | __m(?:128|256|512)[di]?""",
    re.VERBOSE,
)


def is_of_c(word: str) -> bool:
    """Whether a word belongs to C, C++ or CUDA."""
    return word in _C or _FORMS.fullmatch(word) is not None


COMMON = _words("min max abs clock norm round floor ceil pow log exp trunc hypot remainder assert free cuda at ptx")
"""Words of libraries that an author may also use for a variable. They count as the library's if they are called."""
NAMESPACES = _words("std torch at c10 cub thrust cg cooperative_groups wmma nvcuda cute cutlass cuda ptx")
"""A word after `NAMESPACE::` belongs to that library."""
MEMBERS = _words("""
    x y z w size sizes numel data data_ptr options dim device dtype contiguous is_cuda is_contiguous scalar_type stride
    type toType zero_ fill_ push_back sync thread_rank num_threads shfl_down shfl_up shfl_xor shfl num_elements
    packed_accessor32 packed_accessor64 def c_str
""")
ASSEMBLY = _words("asm __asm __asm__")
DIRECTIVES = _words("define undef if ifdef ifndef elif else endif")
PRAGMAS = _words("""
    unroll nounroll once omp parallel for simd reduction schedule static dynamic collapse private firstprivate aligned
    num_threads safelen GCC ivdep clang loop vectorize interleave enable STDC FP_CONTRACT ON OFF nv_diag_suppress
""")
HEADERS = _words("""
    assert.h cfloat climits cmath cstdint cstdio cstdlib cstring float.h immintrin.h limits.h math.h omp.h stdbool.h
    stddef.h stdint.h stdio.h stdlib.h string.h type_traits utility vector algorithm array limits x86intrin.h
    cooperative_groups.h cooperative_groups/reduce.h cooperative_groups/memcpy_async.h cub/cub.cuh cuda.h cuda_bf16.h
    cuda_fp16.h cuda_fp8.h cuda_pipeline.h cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h
    math_constants.h mma.h cuda/barrier cuda/pipeline cuda/std/utility ATen/ATen.h ATen/cuda/CUDAContext.h
    c10/cuda/CUDAException.h torch/extension.h torch/types.h
""")
EXPRESSION = _words("cdiv min max abs next_power_of_2 and or not if else")

# -- Python -----------------------------------------------------------------------------------------------------------

LIBRARIES = _words("""
    torch triton numpy math functools itertools typing operator collections dataclasses contextlib cupy numba cutlass os
    sys time warnings __future__
""")
ALIASES = {
    "numpy": "np",
    "torch.nn": "nn",
    "torch.nn.functional": "F",
    "triton.language": "tl",
}
ENTRIES = _words("""
    custom_kernel Model ModelNew forward backward __init__ __call__ __name__ __main__ setup_context get_inputs
    get_init_inputs input_t output_t
""")
"""Names that a harness or Python requires, so that the author did not choose them."""
MODULE = _words("__name__ __file__ __doc__")
NAMING_CALLS = _words("register_buffer register_parameter register_module add_module setattr getattr hasattr delattr")
"""Calls that name an attribute by a string."""
LAUNCH_OPTIONS = _words("num_warps num_stages num_ctas maxnreg grid warmup stream")
OPTION_VALUES = _words("""
    inf -inf nan cuda cpu tf32 tf32x3 ieee bf16x3 bf16x6 fp16 fp32 bf16 fp64 float16 float32 float64 bfloat16 int8
    int32 int64 uint8 evict_first evict_last evict_normal .ca .cg .cv .cs .wb .wt relaxed acquire release acq_rel gpu
    cta sys mean sum none max min amax amin prod zeros constant reflect replicate circular same valid nearest bilinear
    trilinear linear tanh reduce-overhead max-autotune max-autotune-no-cudagraphs default high highest medium ij xy
    channels_last -O2 -O3 --use_fast_math -use_fast_math rtne rtz
""")
OPERATORS = _words("""
    abs acos acosh adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d add addbmm
    addcdiv addcmul addmm _addmm_activation addmv addr all amax amin aminmax any arange argmax argmin as_strided
    asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bernoulli
    binary_cross_entropy_with_logits bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm bucketize cat cdist _cdist_forward ceil celu channel_shuffle clamp clamp_max
    clamp_min clone col2im complex conj constant_pad_nd convolution copy cos cosh count_nonzero cross
    cudnn_batch_norm _cudnn_rnn cummax cummin cumprod cumsum deg2rad diag_embed diff digamma dist div dot elu
    embedding _embedding_bag _embedding_bag_forward_only empty_strided eq erf erfc erfinv exp exp2 expm1 exponential
    eye _fft_c2c _fft_c2r _fft_r2c fill flip floor floor_divide fmod frac fractional_max_pool2d full full_like
    _fused_rms_norm gather ge gelu glu grid_sampler_2d grid_sampler_3d _grouped_mm gt hardshrink hardsigmoid
    hardswish hardtanh heaviside histc huber_loss hypot im2col index index_add index_copy index_fill index_put
    _index_put_impl index_reduce index_select _int_mm isfinite isin isinf isnan kthvalue le leaky_relu lerp lgamma
    linalg_cholesky_ex linalg_cross _linalg_det _linalg_eigh linalg_inv_ex linalg_lu_factor_ex linalg_qr _linalg_svd
    linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid_forward _log_softmax logaddexp logcumsumexp
    logical_and logical_not logical_or logical_xor logit logspace logsumexp lt masked_fill masked_scatter
    masked_select matmul max max_pool2d_with_indices max_pool3d_with_indices max_unpool2d maximum mean median min
    minimum miopen_batch_norm mish mm mode mse_loss mul multinomial mv mvlgamma nan_to_num nansum native_batch_norm
    _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training native_dropout
    native_group_norm native_layer_norm ne neg new_full new_zeros nll_loss2d_forward nll_loss_forward nonzero norm
    normal ones ones_like pixel_shuffle pixel_unshuffle polar pow _prelu_kernel prod put rand rand_like randint
    randn randn_like randperm reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu remainder renorm
    repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll rot90 round rrelu_with_noise
    rsqrt rsub scalar_tensor _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
    _scaled_dot_product_flash_attention _scaled_mm scatter scatter_add scatter_reduce searchsorted segment_reduce
    sgn sigmoid sign silu sin sinc sinh smooth_l1_loss soft_margin_loss _softmax softplus softshrink sort
    special_erfcx sqrt square stack std std_mean sub sum take tan tanh _thnn_fused_gru_cell _thnn_fused_lstm_cell
    threshold _to_copy topk trace triangular_solve tril tril_indices triu triu_indices trunc unfold uniform _unique2
    unique_dim _unsafe_index upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d
    upsample_nearest2d upsample_nearest3d _upsample_nearest_exact2d upsample_trilinear3d var var_mean view_as_real
    _weight_norm_interface where xlogy zero zeros zeros_like
""")
"""Base names of operators in torch's namespace `aten`, without the underscore at the end of in-place ones."""
