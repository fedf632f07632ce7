// presage: entry $entry$
// presage: grid cdiv($points$, 256)
// presage: block 256

extern "C" __global__ void $entry$($arguments$) {
    const size_t at = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (at >= (size_t)$points$) return;
    $naive$
}
