// presage: entry $entry$
// presage: grid $queries$, heads
// presage: block 128
// presage: scratch scratch = 4 * heads * $queries$ * keys
//
// $summary$
$scores$

extern "C" __global__ void $entry$($arguments$, float *__restrict__ scratch) {
    __shared__ float shared[128];
    const int rows = $queries$, head = blockIdx.y, i = blockIdx.x, thread = threadIdx.x;
    const size_t row = (size_t)head * rows + i, kept = (size_t)($head$) * keys;
    const int first = first_key(i, rows, keys$range_arguments$), end = end_key(i, rows, keys$range_arguments$);
    float *scores = scratch + row * keys;

    float largest = -INFINITY;
    for (int j = first + thread; j < end; j += 128) {
        float dot = 0.0f;
        for (int c = 0; c < dim; c++) dot += number(q[row * dim + c]) * number(k[(kept + j) * dim + c]);
        scores[j] = dot / sqrtf((float)dim) + bias(head, i, j, rows, keys$bias_arguments$);
        largest = fmaxf(largest, scores[j]);
    }
    shared[thread] = largest;
    __syncthreads();
    for (int t = 0; t < 128; t++) largest = fmaxf(largest, shared[t]);
    __syncthreads();

    float sum = 0.0f;
    for (int j = first + thread; j < end; j += 128) {
        scores[j] = expf(scores[j] - largest);
        sum += scores[j];
    }
    shared[thread] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int t = 0; t < 128; t++) sum += shared[t];

    for (int c = thread; c < dim; c += 128) {
        float total = 0.0f;
        for (int j = first; j < end; j++) total += scores[j] * number(v[(kept + j) * dim + c]);
        put(out + row * dim + c, total / sum);
    }
}
