// presage: entry sort_rows
// presage: tune ITEMS = 8, 4, 16, 32, 2
// presage: tune WARPS = 1, 2, 4
// presage: tune EXCHANGE = 0, 1
// presage: tune STAGED = 1, 0
// presage: where EXCHANGE == 0 or STAGED == 1
// presage: grid cdiv(rows, WARPS if cols <= 32 * ITEMS else 1)
// presage: block (32 * WARPS) if cols <= 32 * ITEMS else (64 if cols <= 64 * ITEMS else 128 if cols <= 128 * ITEMS else 256 if cols <= 256 * ITEMS else 512 if cols <= 512 * ITEMS else 1024 if cols <= 1024 * ITEMS else 2048)
// presage: shared $item_bytes$ * 33 * ITEMS * (WARPS if cols <= 32 * ITEMS else 2 if cols <= 64 * ITEMS else 4 if cols <= 128 * ITEMS else 8 if cols <= 256 * ITEMS else 16 if cols <= 512 * ITEMS else 32)
//
// Bitonic sort with ITEMS neighbours in each thread's registers. A row that fits into one warp gets one, WARPS of them
// to a block; a longer one gets a block of as many threads as it needs. Comparisons within a thread are free of
// exchanges, those within a warp are by shuffles (EXCHANGE 0) or all through shared memory (1), like those between
// warps. STAGED reads and writes the row in order and hands it over in shared memory.

$items$

extern __shared__ Item staged[];

// A place free after every 32 keeps neighbours' items in different banks.
__device__ int padded(int i) { return i + i / 32; }

__device__ void synchronise(bool one_warp) {
    if (one_warp) __syncwarp();
    else __syncthreads();
}

__device__ Item kept(Item mine, Item other, bool smaller) { return above(mine, other) == smaller ? other : mine; }

extern "C" __global__ void sort_rows($parameters$) {
    const bool one_warp = cols <= 32 * ITEMS;
    const int threads = one_warp ? 32 : blockDim.x, t = threadIdx.x % threads, count = threads * ITEMS;
    const int r = one_warp ? blockIdx.x * WARPS + threadIdx.x / 32 : blockIdx.x;
    if (r >= rows) return; // whole warps of their own
    const float *row = x + (size_t)r * cols;
    Output *out = y + (size_t)r * cols;
    Item *exchange = staged + (one_warp ? threadIdx.x / 32 * 33 * ITEMS : 0), item[ITEMS];
    if (STAGED) {
        for (int c = t; c < count; c += threads) exchange[padded(c)] = c < cols ? item_of(row, c) : item_last();
        synchronise(one_warp);
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int c = t * ITEMS + i;
        item[i] = STAGED ? exchange[padded(c)] : c < cols ? item_of(row, c) : item_last();
    }
    for (int size = 2; size <= count; size *= 2) {
        for (int stride = size / 2; stride >= ITEMS; stride /= 2) {
            const int by = stride / ITEMS;
            // The half of the pair with the smaller items, turned around in every other stretch of `size`.
            const bool smaller = ((t & by) == 0) == ((t * ITEMS & size) == 0);
            if (EXCHANGE == 0 && by < 32) {
#pragma unroll
                for (int i = 0; i < ITEMS; i++) item[i] = kept(item[i], shuffled(item[i], by), smaller);
                continue;
            }
            synchronise(one_warp);
#pragma unroll
            for (int i = 0; i < ITEMS; i++) exchange[padded(t * ITEMS + i)] = item[i];
            synchronise(one_warp);
#pragma unroll
            for (int i = 0; i < ITEMS; i++) item[i] = kept(item[i], exchange[padded((t ^ by) * ITEMS + i)], smaller);
        }
#pragma unroll
        for (int stride = ITEMS / 2; stride > 0; stride /= 2) {
            if (stride > size / 2) continue;
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                if (i & stride) continue;
                const bool up = ((t * ITEMS + i) & size) == 0;
                const Item low = item[i], high = item[i + stride];
                item[i] = kept(low, high, up);
                item[i + stride] = kept(high, low, !up);
            }
        }
    }
    if (STAGED) {
        synchronise(one_warp);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) exchange[padded(t * ITEMS + i)] = item[i];
        synchronise(one_warp);
        for (int c = t; c < cols; c += threads) out[c] = result(exchange[padded(c)]);
        return;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (t * ITEMS + i < cols) out[t * ITEMS + i] = result(item[i]);
}
