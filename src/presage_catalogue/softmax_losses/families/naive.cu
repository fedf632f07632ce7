// presage: entry $entry$
// presage: grid rows
// presage: block 256
//
// One block per row.

$prelude$

extern "C" __global__ void $entry$($parameters$) {
    const Arguments a = {$names$};
    const int r = blockIdx.x;
    const Row row = row_of(&a, r);
    State s = identity();
    for (int c = threadIdx.x; c < row.extent; c += 256) s = included<1>(s, fetch<1>(a, r, c), row, c);
    $finish_naive$
}
