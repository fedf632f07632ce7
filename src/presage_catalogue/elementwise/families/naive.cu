// presage: entry $entry$
// presage: grid cdiv(n, 256)
// presage: block 256
$element$

extern "C" __global__ void $entry$($arguments$) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    $load$
    $plain$
    $store$
}
