// presage: entry $entry$
// presage: grid $rows$
// presage: block 128
//
// One block per row, which it reads for each of the statistics' passes and again for the result.

$plain$

$packs$

__device__ State total(State s) {
    __shared__ State part[128];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) merge(&part[threadIdx.x], &part[threadIdx.x + half]);
        __syncthreads();
    }
    s = part[0];
    __syncthreads(); // before the next total writes to part
    return s;
}

extern "C" __global__ void $entry$($arguments$) {
    const Arrays a = $arrays$;
    const int row = blockIdx.x;
    State first = empty(), last;
    for (int c = threadIdx.x; c < a.cols; c += 128) include_all(&first, gather<1>(a, row, c), 0, nullptr, a.cols);
    last = first = total(first);
    if (PASSES == 2) {
        last = empty();
        for (int c = threadIdx.x; c < a.cols; c += 128) include_all(&last, gather<1>(a, row, c), 1, &first, a.cols);
        last = total(last);
    }
    const Row r = finish(&first, &last, a.cols);
    for (int c = threadIdx.x; c < a.cols; c += 128) scatter<1>(a, row, c, gather<1>(a, row, c), &r);
}
