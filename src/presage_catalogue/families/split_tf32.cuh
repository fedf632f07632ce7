// d += a * b, with a of 16 by 8 and b of 8 by 8 elements spread over the warp.
__device__ void mma(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
                   "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// The nearest TF32 number, which has 10 bits of mantissa; what it misses, rounded the same way, is the second one.
__device__ float nearest(float v) { return __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xffffe000u); }

template <int N> struct Split {
    float high[N], low[N];

    __device__ void set(int i, float v) {
        high[i] = nearest(v);
        low[i] = nearest(v - high[i]);
    }
};
