__device__ State block_total(State s) {
    __shared__ State part[32];
    const int lane = threadIdx.x % 32;
    s = warp_total(s);
    __syncthreads(); // an earlier call's readers are done with part
    if (lane == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    return warp_total(lane < THREADS / 32 ? part[lane] : empty());
}
