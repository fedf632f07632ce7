// presage: entry $entry$
// presage: grid cdiv(n, 256)
// presage: block 256

__device__ void apply(const float *in, float *out) {
    $unpack$
    $apply$
}

extern "C" __global__ void $entry$($arguments$) {
    const float *const from[] = {$in_pointers$};
    float *const to[] = {$out_pointers$};
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float in[$inputs$], out[$outputs$];
    for (int k = 0; k < $inputs$; k++) in[k] = from[k][i];
    apply(in, out);
    for (int k = 0; k < $outputs$; k++) to[k][i] = out[k];
}
