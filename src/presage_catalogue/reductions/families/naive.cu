// presage: entry $entry$
// presage: grid cdiv($groups$, 128)
// presage: block 128

$plain$

extern "C" __global__ void $entry$($arguments$) {
    const float *const from[] = {$in_pointers$};
    const size_t g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= $groups$) return;
    State s = empty();
    for (size_t i = 0; i < $group_size$; i++) {
        float in[$inputs$];
        for (int k = 0; k < $inputs$; k++) in[k] = from[k][$element$];
        include(&s, in, i);
    }
    y[g] = finish(&s, $group_size$);
}
