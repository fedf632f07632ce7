// presage: entry $entry$
// presage: grid rows
// presage: block 256
//
// One block per row.

$prelude$

extern "C" __global__ void $entry$($parameters$) {
    $naive$
}
