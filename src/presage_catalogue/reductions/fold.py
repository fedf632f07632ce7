"""The `Fold` of a reduction: code in C, CUDA and Triton for the state that accumulates the elements.

A family decides which thread reads which elements in which order. The fold says how an element is added to a state, how
two states are merged, and how the result is computed. In C and CUDA, `s` points to a state and `o` to another one. An
element of an input has the input's name; `i` is its index in the group, and `n` is the size of the group. In Triton,
each field is a tile of [HEIGHT, WIDTH], elements outside the group are `other`, and folding leaves one element along
AXIS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from presage_catalogue.operation import indented

Field = tuple[str, str, str]
"""A type, a name and a start value."""

_ODD = "THREADS == 256 and VECTOR == 4"
"""The only CUDA configuration in which unusual methods are tried."""

WALK = """
#define INPUTS $inputs$
template <int N> struct alignas(4 * N) Pack { float at[N]; };

template <int N> __device__ void include_pack(State *s, const Pack<N> *packs, int first) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        float in[INPUTS];
#pragma unroll
        for (int k = 0; k < INPUTS; k++) in[k] = packs[k].at[i];
        include(s, in, first + i);
    }
}

// Vectors first, first + step, ... below end, UNROLLED of them in flight at once; those left over only for ALL.
template <int N, int UNROLLED, bool ALL>
__device__ State walk(const float *const *from, int first, int end, int step) {
    State s[UNROLLED];
#pragma unroll
    for (int u = 0; u < UNROLLED; u++) s[u] = empty();
    int v = first;
    for (; v + (UNROLLED - 1) * step < end; v += UNROLLED * step) {
        Pack<N> packs[UNROLLED][INPUTS];
#pragma unroll
        for (int u = 0; u < UNROLLED; u++)
#pragma unroll
            for (int k = 0; k < INPUTS; k++) packs[u][k] = ((const Pack<N> *)from[k])[v + u * step];
#pragma unroll
        for (int u = 0; u < UNROLLED; u++) include_pack(&s[u], packs[u], (v + u * step) * N);
    }
    if (ALL)
        for (; v < end; v += step) {
            Pack<N> packs[INPUTS];
#pragma unroll
            for (int k = 0; k < INPUTS; k++) packs[k] = ((const Pack<N> *)from[k])[v];
            include_pack(&s[0], packs, v * N);
        }
#pragma unroll
    for (int u = 1; u < UNROLLED; u++) merge(&s[0], &s[u]);
    return s[0];
}"""

BLOCK = """
// The block's state, in its first thread: by shuffles and the first warp (HOW 0), by halving in shared memory (1), or
// by shuffles and the first thread (2).
template <int HOW> __device__ State block_total(State s) {
    __shared__ State part[HOW == 1 ? THREADS : 32];
    const int t = threadIdx.x;
    if (HOW == 1) {
        part[t] = s;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (t < half) merge(&part[t], &part[t + half]);
            __syncthreads();
        }
        return part[0];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        const State o = from_lane(&s, offset);
        merge(&s, &o);
    }
    if (t % 32 == 0) part[t / 32] = s;
    __syncthreads();
    if (HOW == 2) {
        if (t == 0)
            for (int w = 1; w < THREADS / 32; w++) merge(&s, &part[w]);
    } else if (t < 32) {
        s = t < THREADS / 32 ? part[t] : empty();
        for (int offset = 16; offset > 0; offset /= 2) {
            const State o = from_lane(&s, offset);
            merge(&s, &o);
        }
    }
    return s;
}"""

DOWN = """
#define INPUTS $inputs$
struct alignas(4 * VECTOR) Pack { float at[VECTOR]; };

__device__ Pack load(const float *from, bool whole, int left) {
    if (whole) return *(const Pack *)from;
    Pack pack;
#pragma unroll
    for (int i = 0; i < VECTOR; i++) pack.at[i] = i < left ? from[i] : 0.0f;
    return pack;
}

// Rows begin, begin + step, ... below end of VECTOR columns, UNROLL of them in flight at once.
__device__ void down(State *s, const float *const *from, int first, int cols, int begin, int end, int step) {
    const bool whole = cols % VECTOR == 0;
#pragma unroll
    for (int i = 0; i < VECTOR; i++) s[i] = empty();
    if (first >= cols) return;
    for (int r = begin; r < end; r += UNROLL * step) {
        Pack packs[UNROLL][INPUTS];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int k = 0; k < INPUTS; k++)
                if (r + u * step < end)
                    packs[u][k] = load(from[k] + (size_t)(r + u * step) * cols + first, whole, cols - first);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (r + u * step < end)
#pragma unroll
                for (int i = 0; i < VECTOR; i++) {
                    float in[INPUTS];
#pragma unroll
                    for (int k = 0; k < INPUTS; k++) in[k] = packs[u][k].at[i];
                    include(&s[i], in, r + u * step);
                }
    }
}

// Merges the states of the threads above one another, into those of the first row of threads.
__device__ void up(State *s) {
    __shared__ State part[THREADS * VECTOR];
    const int x = threadIdx.x % ACROSS, level = threadIdx.x / ACROSS;
    for (int half = THREADS / ACROSS / 2; half > 0; half /= 2) {
        if (level >= half && level < 2 * half)
            for (int i = 0; i < VECTOR; i++) part[((level - half) * VECTOR + i) * ACROSS + x] = s[i];
        __syncthreads();
        if (level < half)
            for (int i = 0; i < VECTOR; i++) merge(&s[i], &part[(level * VECTOR + i) * ACROSS + x]);
        __syncthreads();
    }
}"""


@dataclass(frozen=True)
class Fold:
    """Code that reduces elements to one number."""

    fields: tuple[Field, ...]
    add: str
    merge: str
    finish: str
    tiles: tuple[Field, ...]
    """The fields in Triton."""
    tile_add: str
    tile_fold: str
    tile_finish: str
    other: str = "0.0"
    result: str = "float"
    setup: str = ""
    """C code before the struct, such as type definitions."""
    defaults: Mapping[str, int] = field(default_factory=dict)
    """The values of the tunables below in kernels without tunables."""
    cuda_tunes: tuple[str, ...] = ()
    c_tunes: tuple[str, ...] = ()
    tile_tunes: tuple[str, ...] = ()
    tile_helpers: str = ""
    atomic: str = ""
    """CUDA code that merges a state atomically into the one that `to` points to. Empty if that is impossible."""
    bytes: int = 4
    """The largest size of a state in bytes."""

    def struct(self, qualifier: str, ins: tuple[str, ...], tunes: tuple[str, ...]) -> str:
        """Return the code of the state and its functions, preceded by the tunables or by fixed values for them."""
        named = {tune.split("=")[0].split()[-1] for tune in tunes if tune.startswith("tune")}
        lines = [f"// presage: {tune}" for tune in tunes]
        lines += [f"#define {name} {value}" for name, value in self.defaults.items() if name not in named]
        lines += [self.setup] if self.setup else []
        lines += ["typedef struct {", *(f"    {kind} {name};" for kind, name, _ in self.fields), "} State;", ""]
        lines += [f"{qualifier} State empty() {{", "    State s;"]
        lines += [f"    s.{name} = {value};" for _, name, value in self.fields] + ["    return s;", "}", ""]
        lines += [f"{qualifier} void include(State *s, const float *in, int i) {{"]
        lines += [f"    const float {name} = in[{k}];" for k, name in enumerate(ins)]
        lines += [*indented(self.add), "}", "", f"{qualifier} void merge(State *s, const State *o) {{"]
        lines += [*indented(self.merge), "}", "", f"{qualifier} {self.result} finish(const State *s, int n) {{"]
        return "\n".join([*lines, f"    return {self.finish};", "}"])

    def shuffles(self) -> str:
        """Return CUDA code that fetches the state of the lane whose index differs by XOR with `offset`."""
        lines = ["__device__ inline State from_lane(const State *s, int offset) {", "    State o;"]
        lines += [f"    o.{name} = __shfl_xor_sync(0xffffffffu, s->{name}, offset);" for _, name, _ in self.fields]
        return "\n".join([*lines, "    return o;", "}"])

    def cuda(self, ins: tuple[str, ...]) -> dict[str, str]:
        struct = self.struct("__device__ inline", ins, self.cuda_tunes)
        given = {
            "fold": f"{struct}\n\n{self.shuffles()}",
            "walk": WALK.strip("\n").replace("$inputs$", str(len(ins))),
            "block": BLOCK.strip("\n"),
            "down": DOWN.strip("\n").replace("$inputs$", str(len(ins))),
            "plain": self.struct("__device__ inline", ins, ()),
            "in_pointers": ", ".join(ins),
            "inputs": str(len(ins)),
            "state_bytes": str(self.bytes),
        }
        return given | ({"atomic": self.atomic} if self.atomic else {})

    def c(self, ins: tuple[str, ...]) -> dict[str, str]:
        return {
            "fold": self.struct("static inline", ins, self.c_tunes),
            "plain": self.struct("static inline", ins, ()),
            "in_pointers": ", ".join(ins),
            "inputs": str(len(ins)),
        }

    def triton(self, ins: tuple[str, ...]) -> dict[str, str]:
        method = [f"# presage: {tune}" for tune in self.tile_tunes] or ["METHOD = 0"]
        return {
            "tunes": "\n".join(method),
            "helpers": self.tile_helpers,
            "ins": ", ".join(ins),
            "first": ins[0],
            "pointers": ", ".join(f"{name}_ptr" for name in ins),
            "start": "\n".join(f"{n} = tl.full([HEIGHT, WIDTH], {value}, {t})" for t, n, value in self.tiles),
            "load": "\n".join(f"{name} = tl.load({name}_ptr + at, mask=inside, other={self.other})" for name in ins),
            "add": self.tile_add,
            "fold": self.tile_fold,
            "finish": self.tile_finish,
            "fields": str(len(self.tiles)),
            "save": "\n".join(
                f"tl.store(partial_ptr + {k} * parts + part, {_as_float(kind, name)}, mask=kept)"
                for k, (kind, name, _) in enumerate(self.tiles)
            ),
            "restore": "\n".join(
                f"{name} = tl.where(inside, {_from_float(kind, k)}, {value})"
                for k, (kind, name, value) in enumerate(self.tiles)
            ),
            "result": {"float": "torch.float32", "long long": "torch.int64"}[self.result],
        }


def _as_float(kind: str, name: str) -> str:
    return name if "int32" not in kind else f"{name}.to(tl.float32, bitcast=True)"


def _from_float(kind: str, k: int) -> str:
    load = f"tl.load(partial_ptr + {k} * parts + part, mask=inside, other=0.0)"
    return load if "int32" not in kind else f"{load}.to(tl.int32, bitcast=True)"


_SUM_TYPES = """\
#if SUM == 1
typedef double Sum;
#elif SUM == 2
#include <cuda_fp16.h>
typedef half Sum;
#else
typedef float Sum;
#endif"""


def sums(terms: Mapping[str, str], finish: str, tile_terms: Mapping[str, str], tile_finish: str) -> Fold:
    """Return the fold of one or more sums, accumulated in float, double or half precision."""
    tile = "tl.float16 if METHOD == 1 else tl.float32"
    return Fold(
        fields=tuple(("Sum", name, "(Sum)0.0f") for name in terms),
        add="\n".join(f"s->{name} = s->{name} + (Sum)({term});" for name, term in terms.items()),
        merge="\n".join(f"s->{name} = s->{name} + o->{name};" for name in terms),
        finish=finish,
        tiles=tuple((tile, name, "0.0") for name in tile_terms),
        tile_add="\n".join(f"{name} += ({term}).to({name}.dtype)" for name, term in tile_terms.items()),
        tile_fold="\n".join(
            f"{name} = tl.sum({name}, axis=AXIS, keep_dims=True).to(tl.float32)" for name in tile_terms
        ),
        tile_finish=tile_finish,
        setup=_SUM_TYPES,
        defaults={"SUM": 0},
        cuda_tunes=("tune SUM = 0, 1, 2", "where SUM != 1 or VECTOR == 4", f"where SUM != 2 or {_ODD}"),
        c_tunes=("tune SUM = 0, 1",),
        tile_tunes=("tune METHOD = 0, 1", "where METHOD == 0 or (WARPS == 4 and BLOCK == 256)"),
        atomic="\n".join(f"atomicAdd(&to->{name}, s.{name});" for name in terms),
        bytes=8 * len(terms),
    )


def extreme(name: str, function: str, start: str, other_start: str, tile_function: str, tile_start: str) -> Fold:
    """Return the fold of the maximum or minimum, starting from the identity or from another value."""
    return Fold(
        fields=(("float", "best", f"START == 1 ? {other_start} : {start}"),),
        add=f"s->best = {function}(s->best, x);",
        merge=f"s->best = {function}(s->best, o->best);",
        finish="s->best",
        tiles=(("tl.float32", "best", f"0.0 if METHOD == 1 else {tile_start}"),),
        tile_add=f"best = {tile_function}(best, x)",
        tile_fold=f"best = tl.{name}(best, axis=AXIS, keep_dims=True)",
        tile_finish="best",
        other=tile_start,
        defaults={"START": 0},
        cuda_tunes=("tune START = 0, 1", f"where START == 0 or {_ODD}"),
        tile_tunes=("tune METHOD = 0, 1", "where METHOD == 0 or (WARPS == 4 and BLOCK == 256)"),
    )


PRODUCT = Fold(
    fields=(("float", "part", "METHOD == 1 ? 0.0f : START"), ("int", "negative", "0")),
    add="""\
#if METHOD == 1
s->part += logf(fabsf(x));
s->negative ^= x < 0.0f;
#else
s->part *= x;
#endif""",
    merge="""\
#if METHOD == 1
s->part += o->part;
s->negative ^= o->negative;
#else
s->part *= o->part;
#endif""",
    finish="METHOD == 1 ? (s->negative ? -expf(s->part) : expf(s->part)) : s->part",
    tiles=(("tl.float32", "product", "0.0 if METHOD == 1 else 1.0"), ("tl.int32", "negative", "0")),
    tile_add="""\
if METHOD == 1:
    product += tl.log(tl.abs(x))
    negative ^= (x < 0.0).to(tl.int32)
else:
    product *= x""",
    tile_fold="""\
if METHOD == 1:
    product = tl.sum(product, axis=AXIS, keep_dims=True)
    negative = tl.xor_sum(negative, axis=AXIS, keep_dims=True)
else:
    product = tl.reduce(product, AXIS, multiply, keep_dims=True)
    negative = tl.max(negative, axis=AXIS, keep_dims=True)""",
    tile_finish="tl.where(negative > 0, -tl.exp(product), tl.exp(product)) if METHOD == 1 else product",
    tile_helpers="\n@triton.jit\ndef multiply(a, b):\n    return a * b\n",
    other="1.0",
    defaults={"METHOD": 0, "START": 1},
    cuda_tunes=(
        "tune METHOD = 0, 1",
        "tune START = 1, 0",
        "where METHOD == 0 or (VECTOR == 4 and START == 1)",
        f"where START == 1 or {_ODD}",
    ),
    tile_tunes=("tune METHOD = 0, 1",),
    bytes=8,
)

VARIANCE = Fold(
    fields=(("Part", "mean", "0"), ("Part", "squares", "0"), ("float", "count", "0.0f")),
    add="""\
#if METHOD == 0
s->count += 1.0f;
const float apart = x - s->mean;
s->mean += apart / s->count;
s->squares += apart * (x - s->mean);
#else
s->mean += x;
s->squares += (Part)x * x;
#endif""",
    merge="""\
#if METHOD == 0
const float count = s->count + o->count;
if (o->count == 0.0f) return;
const float share = o->count / count, apart = o->mean - s->mean;
s->squares += o->squares + apart * apart * s->count * share;
s->mean += apart * share;
s->count = count;
#else
s->mean += o->mean;
s->squares += o->squares;
#endif""",
    finish="(float)(METHOD == 0 ? s->squares / n : s->squares / n - s->mean / n * (s->mean / n))",
    setup="#if METHOD == 1\ntypedef double Part;\n#else\ntypedef float Part;\n#endif",
    tiles=(("tl.float32", "mean", "0.0"), ("tl.float32", "squares", "0.0"), ("tl.float32", "count", "0.0")),
    tile_add="""\
if METHOD == 0:
    count += tl.where(inside, 1.0, 0.0)
    apart = tl.where(inside, x - mean, 0.0)
    mean += apart / tl.maximum(count, 1.0)
    squares += apart * (x - mean)
else:
    mean += x
    squares += x * x""",
    tile_fold="""\
if METHOD == 0:
    total = tl.sum(count, axis=AXIS, keep_dims=True)
    middle = tl.sum(mean * count, axis=AXIS, keep_dims=True) / tl.maximum(total, 1.0)
    squares = tl.sum(squares + count * (mean - middle) * (mean - middle), axis=AXIS, keep_dims=True)
    mean = middle
    count = total
else:
    mean = tl.sum(mean, axis=AXIS, keep_dims=True)
    squares = tl.sum(squares, axis=AXIS, keep_dims=True)
    count = tl.sum(count, axis=AXIS, keep_dims=True)""",
    tile_finish="squares / n if METHOD == 0 else squares / n - (mean / n) * (mean / n)",
    defaults={"METHOD": 0},
    cuda_tunes=("tune METHOD = 0, 1, 2", f"where METHOD != 2 or {_ODD}"),
    c_tunes=("tune METHOD = 0, 1",),
    tile_tunes=("tune METHOD = 0, 1", "where METHOD == 0 or (WARPS == 4 and BLOCK == 256)"),
    bytes=24,
)

LOGSUMEXP = Fold(
    fields=(("float", "top", "-INFINITY"), ("float", "total", "0.0f")),
    add="""\
#if METHOD == 0
if (x > s->top) s->total *= expf(s->top - x), s->top = x;
s->total += expf(x - s->top);
#elif METHOD == 1
const float top = fmaxf(s->top, x);
s->total = s->total * expf(s->top - top) + expf(x - top);
s->top = top;
#else
s->total += expf(x);
#endif""",
    merge="""\
#if METHOD != 2
const float top = fmaxf(s->top, o->top);
if (top == -INFINITY) return;
s->total = s->total * expf(s->top - top) + o->total * expf(o->top - top);
s->top = top;
#else
s->total += o->total;
#endif""",
    finish="METHOD == 2 ? logf(s->total) : s->top + logf(s->total)",
    tiles=(("tl.float32", "top", '-float("inf")'), ("tl.float32", "total", "0.0")),
    tile_add="""\
if METHOD == 0:
    above = tl.maximum(top, x)
    base = tl.where(above == -float("inf"), 0.0, above)
    total = total * tl.exp(top - base) + tl.exp(x - base)
    top = above
else:
    total += tl.exp(x)""",
    tile_fold="""\
if METHOD == 0:
    above = tl.max(top, axis=AXIS, keep_dims=True)
    base = tl.where(above == -float("inf"), 0.0, above)
    total = tl.sum(total * tl.exp(top - base), axis=AXIS, keep_dims=True)
    top = above
else:
    total = tl.sum(total, axis=AXIS, keep_dims=True)
    top = tl.max(top, axis=AXIS, keep_dims=True)""",
    tile_finish="top + tl.log(total) if METHOD == 0 else tl.log(total)",
    other='-float("inf")',
    defaults={"METHOD": 0},
    cuda_tunes=("tune METHOD = 0, 1, 2", f"where METHOD != 2 or {_ODD}"),
    c_tunes=("tune METHOD = 0, 1",),
    tile_tunes=("tune METHOD = 0, 1", "where METHOD == 0 or (WARPS == 4 and BLOCK == 256)"),
    bytes=8,
)


def _place_of(best: str) -> Fold:
    """Return the fold of the first index of the smallest (`min`) or the largest (`max`) element."""
    sign, end = ("<", "INFINITY") if best == "min" else (">", "-INFINITY")
    tile_end = 'float("inf")' if best == "min" else '-float("inf")'
    return Fold(
        fields=(("float", "best", end), ("int", "place", "2147483647")),
        add=f"if (x {sign} s->best) s->best = x, s->place = i;",
        merge=f"""\
#if METHOD == 0
if (o->best {sign} s->best || (o->best == s->best && o->place < s->place)) *s = *o;
#elif METHOD == 1
const int earlier = o->best == s->best ? min(s->place, o->place) : o->best {sign} s->best ? o->place : s->place;
s->best = f{best}f(s->best, o->best);
s->place = earlier;
#else
if (o->best {sign} s->best) *s = *o;
#endif""",
        finish="s->place",
        result="long long",
        tiles=(("tl.float32", "best", tile_end), ("tl.int32", "place", "2147483647")),
        tile_add=f"""\
closer = x {sign}= best if METHOD == 1 else x {sign} best
place = tl.where(closer & inside, index, place)
best = tl.{best}imum(best, x)""",
        tile_fold=f"""\
low = tl.{best}(best, axis=AXIS, keep_dims=True)
place = tl.min(tl.where(best == low, place, 2147483647), axis=AXIS, keep_dims=True)
best = low""",
        tile_finish="place.to(tl.int64)",
        other=tile_end,
        defaults={"METHOD": 0},
        cuda_tunes=("tune METHOD = 0, 1, 2", "where METHOD != 1 or VECTOR == 4", f"where METHOD != 2 or {_ODD}"),
        tile_tunes=("tune METHOD = 0, 1", "where METHOD == 0 or (WARPS == 4 and BLOCK == 256)"),
        bytes=8,
    )


ARGMIN, ARGMAX = _place_of("min"), _place_of("max")

COUNT = Fold(
    fields=(("Count", "count", "0"),),
    add="s->count += x > 0.5f;",
    merge="s->count += o->count;",
    finish="(long long)s->count",
    result="long long",
    setup="""\
#if METHOD == 1
typedef float Count;
#elif METHOD == 2
typedef unsigned char Count;
#else
typedef int Count;
#endif""",
    tiles=(("tl.int8 if METHOD == 1 else tl.int32", "count", "0"),),
    tile_add="count += ((x > 0.5) & inside).to(count.dtype)",
    tile_fold="count = tl.sum(count, axis=AXIS, keep_dims=True, dtype=count.dtype).to(tl.int32)",
    tile_finish="count.to(tl.int64)",
    defaults={"METHOD": 0},
    cuda_tunes=("tune METHOD = 0, 1, 2", "where METHOD != 1 or VECTOR == 4", f"where METHOD != 2 or {_ODD}"),
    c_tunes=("tune METHOD = 0, 1",),
    tile_tunes=("tune METHOD = 0, 1", "where METHOD == 0 or (WARPS == 4 and BLOCK == 256)"),
)
