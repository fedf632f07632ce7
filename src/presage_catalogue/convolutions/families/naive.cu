// presage: entry $entry$
// presage: grid cdiv($points$, 256)
// presage: block 256

$macros$

extern "C" __global__ void $entry$($arguments$) {
    $naive$
}
