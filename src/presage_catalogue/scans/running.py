"""Running totals along rows: scans with an associative operation on states of one or two floats.

Each entry of `OPERATIONS` gives the operation for the oracle, C and Triton. In C, `joined` merges state `a` with the
later state `b`, `lifted` turns an element into a state, and `finished` computes the result at an element from the
states before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Unpack

from presage.problems.base import Array, Case, Tolerance, cases
from presage.problems.sampler import Sampler
from presage_catalogue.operation import Facts, Formula, Operation, filled

States = tuple[Any, ...]


def prefixes(xp: ModuleType, combine: Callable[[States, States], States], states: States) -> States:
    """Return the inclusive scan of each row, in log2(cols) steps of doubling distance."""
    distance = 1
    while distance < states[0].shape[1]:
        joined = combine(tuple(s[:, :-distance] for s in states), tuple(s[:, distance:] for s in states))
        states = tuple(xp.concat((s[:, :distance], j), axis=1) for s, j in zip(states, joined, strict=True))
        distance *= 2
    return states


_STATE = """
#define REVERSE $reverse$
typedef struct { $members$ int rows, cols; } Arguments;
typedef struct { float $fields$; } State;

FUNCTION State identity() {
    const State s = {$identity$};
    return s;
}

// The total of a stretch of elements and of the one that follows it.
FUNCTION State joined(State a, State b) {
    $joined$
}

// The result at an element, from the totals without it and with it.
FUNCTION float finished(State before, State s) { return $finished$; }

FUNCTION size_t position(const Arguments *a, int r, int c) {
    return (size_t)r * a->cols + (REVERSE ? a->cols - 1 - c : c);
}

FUNCTION State element(const Arguments *a, int r, int c) {
    const size_t at = position(a, r, c);
    $unpack$
    const State s = {$lifted$};
    return s;
}
"""

_CUDA_PRELUDE = f"""
{_STATE}
FUNCTION State shuffled_up(State s, int by) {{ return {{$shuffle_up$}}; }}
FUNCTION State shuffled(State s, int from) {{ return {{$shuffle$}}; }}

template <class T, int N> struct alignas(sizeof(T) * N) Pack {{ T at[N]; }};

// The elements c to c + N of a row, where c is a multiple of N; beyond the row's end, the identity.
template <int N> FUNCTION void load(const Arguments &a, int r, int c, State (&item)[N]) {{
    constexpr int W = N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
    if (W > 1 && a.cols % W == 0) {{
#pragma unroll
        for (int k = 0; k < N; k += W) {{
            const bool inside = c + k < a.cols;
            const size_t start = position(&a, r, inside ? c + k + (REVERSE ? W - 1 : 0) : REVERSE ? a.cols - 1 : 0);
            $fetch$
#pragma unroll
            for (int i = 0; i < W; i++) {{
                const int j = REVERSE ? W - 1 - i : i;
                $unpack_pack$
                item[k + i] = inside ? State{{$lifted$}} : identity();
            }}
        }}
        return;
    }}
#pragma unroll
    for (int i = 0; i < N; i++) item[i] = c + i < a.cols ? element(&a, r, c + i) : identity();
}}

// Writes the results of those elements; `item` holds their totals within the N, `offset` the total before them.
template <int N> FUNCTION void store(const Arguments &a, int r, int c, State offset, const State (&item)[N]) {{
    constexpr int W = N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
    float out[N];
    State before = offset;
#pragma unroll
    for (int i = 0; i < N; i++) {{
        const State s = joined(offset, item[i]);
        out[i] = finished(before, s);
        before = s;
    }}
    if (W > 1 && a.cols % W == 0) {{
#pragma unroll
        for (int k = 0; k < N; k += W) {{
            if (c + k >= a.cols) continue;
            Pack<float, W> pack;
#pragma unroll
            for (int i = 0; i < W; i++) pack.at[REVERSE ? W - 1 - i : i] = out[k + i];
            *(Pack<float, W> *)(a.$out$ + position(&a, r, c + k + (REVERSE ? W - 1 : 0))) = pack;
        }}
        return;
    }}
#pragma unroll
    for (int i = 0; i < N; i++)
        if (c + i < a.cols) a.$out$[position(&a, r, c + i)] = out[i];
}}

template <int N> FUNCTION void scan_items(State (&item)[N]) {{
#pragma unroll
    for (int i = 1; i < N; i++) item[i] = joined(item[i - 1], item[i]);
}}

// Inclusive, over groups of Lanes threads of a warp.
template <int Lanes> FUNCTION State warp_scan(State s) {{
    for (int by = 1; by < Lanes; by *= 2) {{
        const State other = shuffled_up(s, by);
        if (threadIdx.x % Lanes >= by) s = joined(other, s);
    }}
    return s;
}}

// The total of the threads before this one; `total` becomes that of all.
template <int Count> FUNCTION State before_thread(State s, State &total) {{
    __shared__ State of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    s = warp_scan<32>(s);
    __syncthreads(); // an earlier call's readers are done
    if (lane == 31) of_warp[warp] = s;
    __syncthreads();
    const State warps = warp_scan<32>(lane < Count / 32 ? of_warp[lane] : identity());
    total = shuffled(warps, 31);
    const State earlier = shuffled(warps, warp > 0 ? warp - 1 : 0), inner = shuffled_up(s, 1);
    return joined(warp > 0 ? earlier : identity(), lane > 0 ? inner : identity());
}}
"""

# A scan of 256 elements at a time, in steps of doubling distance.
_NAIVE = """
__shared__ State totals[256];
const Arguments a = {$names$};
const int r = blockIdx.x, t = threadIdx.x;
State carried = identity();
for (int start = 0; start < cols; start += 256) {
    totals[t] = start + t < cols ? element(&a, r, start + t) : identity();
    __syncthreads();
    for (int distance = 1; distance < 256; distance *= 2) {
        const State other = t >= distance ? totals[t - distance] : identity();
        __syncthreads();
        totals[t] = joined(other, totals[t]);
        __syncthreads();
    }
    const State before = t > 0 ? joined(carried, totals[t - 1]) : carried;
    if (start + t < cols) $out$[position(&a, r, start + t)] = finished(before, joined(carried, totals[t]));
    carried = joined(carried, totals[255]);
    __syncthreads();
}
"""

_RECURRENCE = """

def recurrence(a, b):
    distance = 1
    while distance < b.shape[1]:
        b = torch.cat((b[:, :distance], a[:, distance:] * b[:, :-distance] + b[:, distance:]), dim=1)
        a = torch.cat((a[:, :distance], a[:, distance:] * a[:, :-distance]), dim=1)
        distance *= 2
    return b
"""
_SEGMENTED = """

def segmented(x, flags):
    distance, start = 1, flags > 0
    while distance < x.shape[1]:
        added = torch.where(start[:, distance:], 0.0, x[:, :-distance])
        x = torch.cat((x[:, :distance], x[:, distance:] + added), dim=1)
        start = torch.cat((start[:, :distance], start[:, distance:] | start[:, :-distance]), dim=1)
        distance *= 2
    return x
"""
# PyTorch code for scans that PyTorch has no function for, in steps of doubling distance.
_HELPERS = {"linear_recurrence": _RECURRENCE, "ema": _RECURRENCE, "segmented_cumsum": _SEGMENTED}


class Scan(Operation):
    timed = {
        "cpu": cases("rows cols: 512 1024; 2 262144"),
        "gpu": cases("rows cols: 65536 256; 64 262144"),
    }
    # The `equal` case is short: sums of equal terms are rounded in the same direction again and again.
    checks = cases(
        "rows cols: 1 1; 67 1 large; 1 20011 normal; 37 251 outliers; 5 23 equal; 3 4100 tiny; 13 7 zeros;"
        " 130 36 normal"
    )

    outputs = (Array("y", "rows, cols"),)
    _draw = (9, (100, 1200))

    def __init__(
        self,
        name: str,
        summary: str,
        oracle: Formula,
        eager: str,
        /,
        *,
        identity: str,
        joined: str,
        triton_combine: str,
        relative: float,
        reason: str,
        fields: str = "sum",
        lifted: str = "x",
        triton_lifted: str = "",
        finished: str = "",
        triton_finished: str = "",
        reads: str = "x",
        reverse: bool = False,
        exclusive: bool = False,
        gpu: str = "",
        **facts: Unpack[Facts],
    ) -> None:
        facts["tolerance"] = Tolerance(relative, reason)
        facts["oracle"], facts["eager"] = oracle, eager
        super().__init__(name, summary, **facts)
        self._fields, self._identity = fields.split(), identity
        self._joined, self._combine = joined, triton_combine
        self._lifted, self._triton_lifted = lifted, triton_lifted or lifted
        self._finished = finished or f"s.{self._fields[0]}"
        self._triton_finished = triton_finished or self._fields[0]
        self._reverse, self._exclusive = reverse, exclusive
        kinds = {"flags": "int32"}
        self.inputs = tuple(Array(each, "rows, cols", kinds.get(each, "T")) for each in reads.split())
        if gpu:
            self.timed = {**self.timed, "gpu": cases(f"rows cols: {gpu}")}

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        xp, shape = sampler.xp, self.shape(self.inputs[0], case)
        x = sampler.values(shape, case.dtype)
        match self.name:
            case "cumprod":
                # The factors are so close to 1 that no product leaves the range of float32, but not so close that all
                # products are rounded in the same direction.
                if sampler.style == "tiny":
                    x = x * 1e4
                return (1.0 + xp.clip(x, -2.0, 2.0) * (0.5 / shape[1] ** 0.5),)
            case "linear_recurrence":  # decays between 0 and 1, and addends
                decay = 1.0 / (1.0 + xp.exp(-xp.clip(x, -4.0, 4.0)))
                return decay, sampler.values(shape, case.dtype)
            case "segmented_cumsum":
                flags = sampler.integers(shape, 0, 50)
                return x, xp.astype(flags == 0, xp.int32)
        return (x,)

    def magnitude(self, xp: ModuleType, case: Case, expected: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        lengths = xp.arange(1, case.dims["cols"] + 1, dtype=xp.float64, device=inputs[0].device)
        return super().magnitude(xp, case, expected, expected[0], lengths, *inputs)

    def flops(self, case: Case) -> int:
        each = self._flops if isinstance(self._flops, int) else 0
        return each * case.dims["rows"] * (case.dims["cols"] - 1)

    def code(self, suffix: str) -> Mapping[str, str]:
        return self._given_triton() if suffix == ".py" else self._given_c(suffix == ".cu")

    def _given_c(self, cuda: bool) -> Mapping[str, str]:
        kinds = {array.name: "int" if array.dtype == "int32" else "float" for array in self.inputs}
        pointers = [(f"const {kind} *", name) for name, kind in kinds.items()] + [("float *", "y")]
        restrict = "__restrict__ " if cuda else "restrict "
        shuffle = [f"__shfl_sync(0xffffffffu, s.{name}, from)" for name in self._fields]
        code = {
            "reverse": str(int(self._reverse)),
            "members": " ".join(f"{kind}{name};" for kind, name in pointers),
            "fields": ", ".join(self._fields),
            "identity": self._identity,
            "joined": self._joined,
            "finished": self._finished,
            "unpack": "\n".join(f"const {kind} {name} = a->{name}[at];" for name, kind in kinds.items()),
            "lifted": self._lifted,
            "shuffle": ", ".join(shuffle),
            "shuffle_up": ", ".join(each.replace("_sync", "_up_sync").replace("from", "by") for each in shuffle),
            "fetch": "\n".join(
                f"const Pack<{kind}, W> pack_{name} = *(const Pack<{kind}, W> *)(a.{name} + start);"
                for name, kind in kinds.items()
            ),
            "unpack_pack": "\n".join(f"const {kind} {name} = pack_{name}.at[j];" for name, kind in kinds.items()),
            "out": "y",
        }
        names = ", ".join([*(name for _, name in pointers), "rows", "cols"])
        prelude = filled(_CUDA_PRELUDE if cuda else _STATE, code)
        return {
            "entry": self.name,
            "tunables": "//",
            "parameters": ", ".join([*(f"{kind}{restrict}{name}" for kind, name in pointers), "int rows", "int cols"]),
            "names": names,
            "prelude": prelude.replace("FUNCTION", "__device__" if cuda else "static inline"),
            "naive": filled(_NAIVE, {"names": names, "out": "y"}),
            "state_bytes": str(4 * len(self._fields)),
            "out": "y",
        }

    def _given_triton(self) -> Mapping[str, str]:
        ins = [array.name for array in self.inputs]
        fields, identity = self._fields, [_in_triton(each) for each in self._identity.split(", ")]
        states = ", ".join(fields)
        before = [f"before_{name}" for name in fields]
        lifted = [part.strip() for part in self._triton_lifted.split(";")]
        arguments = [f"{side}_{name}" for side in ("a", "b") for name in fields]
        return {
            "ins": ", ".join(ins),
            "first": ins[0],
            "pointers": ", ".join(f"{name}_ptr" for name in (*ins, "y")),
            "in_pointers": ", ".join(f"{name}_ptr" for name in ins),
            "arguments": ", ".join(arguments),
            "combine": self._combine,
            "column": "cols - 1 - col" if self._reverse else "col",
            # The exclusive total of an element is the inclusive total of its predecessor, so read the predecessor.
            "source": "cols - 1 - col" if self._reverse else "col - 1" if self._exclusive else "col",
            "seen": "inside & (col > 0)" if self._exclusive else "inside",
            "load": "\n".join(f"{name} = tl.load({name}_ptr + at, mask=seen, other=0)" for name in ins),
            "lift": "\n".join(
                f"{name} = tl.where(seen, {value}, {empty})"
                for name, value, empty in zip(fields, lifted, identity, strict=True)
            ),
            "scan": f"{states} = tl.associative_scan({self._tuple(fields)}, 1, combine)",
            "begin": "\n".join(
                f"{b} = tl.full([ROWS, 1], {v}, tl.float32)" for b, v in zip(before, identity, strict=True)
            ),
            "offset": f"{states} = combine({', '.join([*before, *fields])})",
            # Carry over the totals of the last lane.
            "carry": "\n".join(
                f"{b} = tl.sum(tl.where(lane == BLOCK - 1, {name}, 0.0), axis=1, keep_dims=True)"
                for b, name in zip(before, fields, strict=True)
            ),
            "result": self._triton_finished,
            "count": str(len(fields)),
            "save": "\n".join(f"tl.store(partial_ptr + {i} * stride + chunk, {b})" for i, b in enumerate(before)),
            "restore": "\n".join(
                f"{b} = tl.load(partial_ptr + {i} * stride + chunk - 1, mask=chunk % chunks > 0, other={v})"
                for i, (b, v) in enumerate(zip(before, identity, strict=True))
            ),
            "load_states": "\n".join(
                f"{name} = tl.load(partial_ptr + {i} * stride + at, mask=inside, other={v})"
                for i, (name, v) in enumerate(zip(fields, identity, strict=True))
            ),
            "store_states": "\n".join(
                f"tl.store(partial_ptr + {i} * stride + at, {name}, mask=inside)" for i, name in enumerate(fields)
            ),
            "torch_helpers": _HELPERS.get(self.name, "").strip("\n"),
        }

    @staticmethod
    def _tuple(names: list[str]) -> str:
        return f"({', '.join(names)})" if len(names) > 1 else names[0]


def _in_triton(number: str) -> str:
    return number.replace("-INFINITY", '-float("inf")').replace("INFINITY", 'float("inf")').removesuffix("f")


def _sums(xp: ModuleType, before: States, after: States) -> States:
    return (before[0] + after[0],)


def _recurrences(xp: ModuleType, before: States, after: States) -> States:
    """Compose two recurrences h -> a * h + b, `before` first."""
    return before[0] * after[0], after[0] * before[1] + after[1]


def _recurrence(xp: ModuleType, a: Any, b: Any) -> Any:
    return prefixes(xp, lambda s, t: _recurrences(xp, s, t), (a, b))[1]


def _log_sums(xp: ModuleType, x: Any) -> Any:
    def combine(s: States, t: States) -> States:
        top = xp.maximum(s[0], t[0])
        return top, s[1] * xp.exp(s[0] - top) + t[1] * xp.exp(t[0] - top)

    largest, total = prefixes(xp, combine, (x, x * 0.0 + 1.0))
    return largest + xp.log(total)


def _segments(xp: ModuleType, x: Any, flags: Any) -> Any:
    def combine(s: States, t: States) -> States:
        return xp.where(t[1] > 0, t[0], s[0] + t[0]), s[1] + t[1]

    return prefixes(xp, combine, (x, xp.astype(flags, xp.float64)))[0]


def _root_squares(xp: ModuleType, y: Any, lengths: Any, x: Any) -> Any:
    """The root sum of squares of the prefix times the root of its length, as each element adds one rounding."""
    return xp.sqrt(lengths * xp.cumulative_sum(x * x, axis=-1))


def _root_squares_after(xp: ModuleType, y: Any, lengths: Any, x: Any) -> Any:
    return xp.flip(_root_squares(xp, y, lengths, xp.flip(x, 1)), 1)


def _exclusive(xp: ModuleType, y: Any) -> Any:
    return xp.concat((y[:, :1] * 0.0, y[:, :-1]), axis=1)


_SUM: dict[str, Any] = {
    "identity": "0.0f",
    "joined": "const State s = {a.sum + b.sum};\nreturn s;",
    "triton_combine": "return a_sum + b_sum",
    "flops": 1,
    "relative": 16 * 2.0**-24,
    "reason": "a running sum of n terms collects n roundings of 2^-24, which add up like a random walk; 16 covers the"
    " worst of all elements, while terms rounded to a 10-bit mantissa already show in short prefixes",
}
_LINEAR: dict[str, Any] = {
    "fields": "a b",
    "identity": "1.0f, 0.0f",
    "joined": "const State s = {a.a * b.a, b.a * a.b + b.b};\nreturn s;",
    "triton_combine": "return a_a * b_a, b_a * a_b + b_b",
    "finished": "s.b",
    "triton_finished": "b",
    "relative": 1e-5,
    "reason": "roundings of 2^-24 decay with the state, within some 50 steps, and add up to a few 1e-6 of the"
    " recurrence of the sizes; inputs rounded to 11 bits are off by some 3e-4",
}
DECAY = 0.9

OPERATIONS = (
    Scan(
        "cumsum",
        "y[r, c] = sum over i <= c of x[r, i], for each row r",
        lambda xp, x: xp.cumulative_sum(x, axis=-1),
        "torch.cumsum(x, dim=-1)",
        scale=_root_squares,
        timed={
            "cpu": cases("rows cols: 512 2048; 1 1048576"),
            "gpu": cases("rows cols: 8192 4096; 65536 256; 4 4194304"),
        },
        checks=cases(
            "rows cols: 1 1; 259 1 large; 1 70001 normal; 67 251 outliers; 5 23 equal; 3 4099 tiny; 13 7 zeros"
        ),
        draw=(40, 5000),
        **_SUM,
    ),
    Scan(
        "exclusive_cumsum",
        "y[r, c] = sum over i < c of x[r, i], so that y[r, 0] = 0",
        lambda xp, x: _exclusive(xp, xp.cumulative_sum(x, axis=-1)),
        "torch.nn.functional.pad(torch.cumsum(x[:, :-1], dim=-1), (1, 0))",
        scale=lambda xp, y, n, x: _exclusive(xp, _root_squares(xp, y, n, x)),
        finished="before.sum",
        exclusive=True,
        **_SUM,
    ),
    Scan(
        "reverse_cumsum",
        "y[r, c] = sum over i >= c of x[r, i]",
        lambda xp, x: xp.flip(xp.cumulative_sum(xp.flip(x, 1), axis=-1), 1),
        "torch.flip(torch.cumsum(torch.flip(x, dims=(1,)), dim=-1), dims=(1,))",
        scale=_root_squares_after,
        reverse=True,
        gpu="131072 128; 128 131072",
        **_SUM,
    ),
    Scan(
        "cumprod",
        "y[r, c] = product over i <= c of x[r, i]",
        lambda xp, x: prefixes(xp, lambda s, t: (s[0] * t[0],), (x,))[0],
        "torch.cumprod(x, dim=-1)",
        fields="product",
        identity="1.0f",
        joined="const State s = {a.product * b.product};\nreturn s;",
        triton_combine="return a_product * b_product",
        flops=1,
        relative=32 * 2.0**-24,
        reason="a product of n factors collects n relative roundings of 2^-24, which add up like a random walk; 32"
        " covers the worst of millions of elements, while factors rounded to 11 bits are off by 2e-4 each",
        scale=lambda xp, y, n, x: xp.abs(y) * xp.sqrt(n),
        gpu="32768 512; 32 524288",
    ),
    Scan(
        "cummax",
        "y[r, c] = the largest of x[r, 0] to x[r, c]",
        lambda xp, x: prefixes(xp, lambda s, t: (xp.maximum(s[0], t[0]),), (x,))[0],
        "torch.cummax(x, dim=-1).values",
        fields="largest",
        identity="-INFINITY",
        joined="const State s = {fmaxf(a.largest, b.largest)};\nreturn s;",
        triton_combine="return tl.maximum(a_largest, b_largest)",
        flops=1,
        relative=1e-9,
        reason="it is one of the inputs, exactly",
        scale=lambda xp, y, n, x: xp.abs(y),
    ),
    Scan(
        "cummin",
        "y[r, c] = the smallest of x[r, 0] to x[r, c]",
        lambda xp, x: -prefixes(xp, lambda s, t: (xp.maximum(s[0], t[0]),), (-x,))[0],
        "torch.cummin(x, dim=-1).values",
        fields="smallest",
        identity="INFINITY",
        joined="const State s = {fminf(a.smallest, b.smallest)};\nreturn s;",
        triton_combine="return tl.minimum(a_smallest, b_smallest)",
        flops=1,
        relative=1e-9,
        reason="it is one of the inputs, exactly",
        scale=lambda xp, y, n, x: xp.abs(y),
        gpu="8192 2048; 256 65536",
    ),
    Scan(
        "logcumsumexp",
        "y[r, c] = log(sum over i <= c of exp(x[r, i])), without overflow",
        _log_sums,
        "torch.logcumsumexp(x, dim=-1)",
        fields="largest sum",
        identity="-3.0e38f, 0.0f",
        lifted="x, 1.0f",
        triton_lifted="x; 1.0",
        joined="const float top = fmaxf(a.largest, b.largest);\n"
        "const State s = {top, a.sum * expf(a.largest - top) + b.sum * expf(b.largest - top)};\n"
        "return s;",
        triton_combine="top = tl.maximum(a_largest, b_largest)\n"
        "return top, a_sum * tl.exp(a_largest - top) + b_sum * tl.exp(b_largest - top)",
        finished="s.largest + logf(s.sum)",
        triton_finished="largest + tl.log(sum)",
        flops=2,
        relative=16 * 2.0**-24,
        reason="a running sum of n exponentials collects n relative roundings of 2^-24 like a random walk, which become"
        " absolute in its logarithm; inputs rounded to 11 bits are off by some 3e-4",
        scale=lambda xp, y, n, x: xp.sqrt(n) + xp.abs(y),
        gpu="16384 1024; 128 131072",
    ),
    Scan(
        "linear_recurrence",
        "y[r, c] = decay[r, c] * y[r, c - 1] + x[r, c] along each row, from y[r, -1] = 0",
        _recurrence,
        "recurrence(decay, x)",
        reads="decay x",
        lifted="decay, x",
        triton_lifted="decay; x",
        flops=2,
        scale=lambda xp, y, n, a, b: _recurrence(xp, xp.abs(a), xp.abs(b)),
        gpu="65536 256; 64 262144",
        **_LINEAR,
    ),
    Scan(
        "ema",
        f"y[r, c] = {DECAY} * y[r, c - 1] + {1 - DECAY:.1f} * x[r, c] along each row, from y[r, -1] = 0",
        lambda xp, x: _recurrence(xp, x * 0.0 + DECAY, (1 - DECAY) * x),
        f"recurrence(torch.full_like(x, {DECAY}), {1 - DECAY:.1f} * x)",
        lifted=f"{DECAY}f, {1 - DECAY:.1f}f * x",
        triton_lifted=f"{DECAY}; {1 - DECAY:.1f} * x",
        flops=2,
        scale=lambda xp, y, n, x: _recurrence(xp, x * 0.0 + DECAY, (1 - DECAY) * xp.abs(x)),
        gpu="16384 1024; 16 1048576",
        **_LINEAR,
    ),
    Scan(
        "segmented_cumsum",
        "y[r, c] = x[r, c], plus y[r, c - 1] unless flags[r, c] is 1 or c is 0: running sums that start anew at flags",
        _segments,
        "segmented(x, flags)",
        reads="x flags",
        fields="sum start",
        identity="0.0f, 0.0f",
        lifted="x, (float)flags",
        triton_lifted="x; flags.to(tl.float32)",
        joined="const State s = {b.start > 0.0f ? b.sum : a.sum + b.sum, fmaxf(a.start, b.start)};\nreturn s;",
        triton_combine="return tl.where(b_start > 0.0, b_sum, a_sum + b_sum), tl.maximum(a_start, b_start)",
        flops=1,
        relative=_SUM["relative"],
        reason=_SUM["reason"],
        scale=lambda xp, y, n, x, flags: xp.sqrt(_segments(xp, x * 0.0 + 1.0, flags) * _segments(xp, x * x, flags)),
    ),
)
