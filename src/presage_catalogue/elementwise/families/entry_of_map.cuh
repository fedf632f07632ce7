__device__ __forceinline__ void apply(const float *in, float *out) {
    $unpack$
    $apply$
}

extern "C" __global__ void __launch_bounds__(THREADS) $entry$($arguments$) {
    const T *const from[] = {$in_pointers$};
    T *const to[] = {$out_pointers$};
