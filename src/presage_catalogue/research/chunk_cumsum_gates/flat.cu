// presage: problem chunk_cumsum_gates
// presage: tune THREADS = 256, 128, 512
// presage: tune WIDTH = 32, 16, 64
// presage: tune PAD = 1, 0
// presage: tune VECTOR = 0, 1
// presage: tune LANES = 1, 32
// presage: where VECTOR == 0 or (PAD == 1 and THREADS != 512)
// presage: entry sums
// presage: grid cdiv(length, 64), cdiv(heads, WIDTH), batch
// presage: block THREADS
// presage: shared 4 * 64 * (WIDTH + PAD)
//
// A block copies a chunk of WIDTH heads to shared memory, in rows of WIDTH + PAD, sums it there and copies it back. A
// thread sums one head, or (LANES) a warp does, two tokens to a lane, by shuffles. VECTOR copies four numbers at a time
// and takes it that the heads are a multiple of four.

extern "C" __global__ void __launch_bounds__(THREADS)
sums(const float *__restrict__ g, float *__restrict__ y, int batch, int length, int heads) {
    extern __shared__ float tile[];
    const int first = blockIdx.x * 64, h0 = blockIdx.y * WIDTH, thread = threadIdx.x, pitch = WIDTH + PAD;
    const size_t start = ((size_t)blockIdx.z * length + first) * heads + h0;
    const int tall = min(64, length - first), wide = min(WIDTH, heads - h0);
    if (VECTOR) {
        for (int e = thread; e < 64 * WIDTH / 4; e += THREADS) {
            const int t = e / (WIDTH / 4), h = e % (WIDTH / 4) * 4;
            float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (t < tall && h + 3 < wide) v = *(const float4 *)(g + (start + (size_t)t * heads + h) / 4 * 4);
            float *to = tile + t * pitch + h;
            to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
        }
    } else {
        for (int e = thread; e < 64 * WIDTH; e += THREADS) {
            const int t = e / WIDTH, h = e % WIDTH;
            tile[t * pitch + h] = t < tall && h < wide ? g[start + (size_t)t * heads + h] : 0.0f;
        }
    }
    __syncthreads();
    if (LANES == 1) {
        if (thread < WIDTH)
            for (int t = 1; t < 64; t++) tile[t * pitch + thread] += tile[(t - 1) * pitch + thread];
    } else {
        const int lane = thread % 32;
        for (int h = thread / 32; h < WIDTH; h += THREADS / 32) {
            const float a = tile[2 * lane * pitch + h], b = tile[(2 * lane + 1) * pitch + h];
            float sum = a + b;
#pragma unroll
            for (int by = 1; by < 32; by *= 2) {
                const float other = __shfl_up_sync(0xffffffffu, sum, by);
                if (lane >= by) sum += other;
            }
            const float before = __shfl_up_sync(0xffffffffu, sum, 1);
            tile[2 * lane * pitch + h] = lane ? before + a : a;
            tile[(2 * lane + 1) * pitch + h] = lane ? before + a + b : a + b;
        }
    }
    __syncthreads();
    for (int e = thread; e < 64 * WIDTH; e += THREADS) {
        const int t = e / WIDTH, h = e % WIDTH;
        if (t < tall && h < wide) y[start + (size_t)t * heads + h] = tile[t * pitch + h];
    }
}
