// presage: entry $entry$
// presage: tune LANES = 32, 1, 4, 8, 16
// presage: tune WARPS = 4, 1, 8, 16
// presage: tune VECTOR = 1, 2, 4
// presage: tune UNROLL = 1, 4
// presage: tune TAIL = 1, 0
// presage: where TAIL == 1 or VECTOR == 4 and LANES >= 16 and UNROLL == 1
// presage: grid cdiv($planes$ * LANES, 32 * WARPS)
// presage: block 32 * WARPS
//
// LANES neighbouring threads reduce one plane together: elements LANES apart, VECTOR at a time where the plane's size
// allows or the TAIL is left to another loop, UNROLL loads in flight; shuffles merge the results.

$row_state$

__device__ void take(State &s, float x) { $row_take$ }

extern "C" __global__ void __launch_bounds__(32 * WARPS) $entry$($arguments$) {
    const int length = h * w, thread = blockIdx.x * 32 * WARPS + threadIdx.x;
    const int at = thread / LANES, lane = thread % LANES;
    State s = $row_start$;
    if (at < n * c) {
        const float *row = x + (size_t)at * length;
        int i = lane * VECTOR;
        if (length % VECTOR == 0 || !TAIL) {
            const int whole = length / VECTOR * VECTOR;
#pragma unroll UNROLL
            for (; i < whole; i += LANES * VECTOR) {
                alignas(16) float next[VECTOR];
                if (length % VECTOR == 0 && VECTOR == 4) *(float4 *)next = *(const float4 *)(row + i);
                else if (length % VECTOR == 0 && VECTOR == 2) *(float2 *)next = *(const float2 *)(row + i);
                else
                    for (int k = 0; k < VECTOR; k++) next[k] = row[i + k];
#pragma unroll
                for (int k = 0; k < VECTOR; k++) take(s, next[k]);
            }
        } else {
#pragma unroll UNROLL
            for (i = lane; i < length; i += LANES) take(s, row[i]);
        }
    }
#pragma unroll
    for (int by = LANES / 2; by; by /= 2) take(s, __shfl_xor_sync(0xffffffff, s, by));
    if (at < n * c && lane == 0) {
        $row_write$
    }
}
