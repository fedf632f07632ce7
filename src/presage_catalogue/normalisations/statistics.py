"""Statistics of a row: code that computes values such as the row's mean and scale from sums over its elements.

In C, a family passes the elements of the inputs as `in`, those of the parameters as `p`, and the results of `prepare`
as `k`. In Triton, each of them has its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ODD = "THREADS == 256 and VECTOR == 4"
_TILE_ODD = "WARPS == 4 and LONG == 1024"


@dataclass(frozen=True)
class Statistics:
    """Code that computes a row's `mean`, `scale` and other results from sums over the row."""

    fields: tuple[tuple[str, str], ...]
    """The C types and names of the state's fields, which start at zero."""
    include: str
    """C: adds `k` to `s`. `pass` is 0 or 1. In pass 1, `first` is the whole row's state after pass 0."""
    merge: str
    finish: str
    """C: computes the results `r` from `first` and `last`, the row's states after the first and last pass, and `n`."""
    tunes: tuple[str, ...]
    defaults: Mapping[str, int]
    tile_whole: str
    """Triton: computes the statistics of rows that fit into one tile."""
    tile_fields: tuple[str, ...]
    tile_add: str
    tile_fold: str
    tile_tunes: tuple[str, ...] = ()
    results: tuple[str, ...] = ("scale",)
    setup: str = ""
    one_pass: str = ""
    """A `presage: where` header line: only methods with one pass may have several PARTS. Empty if all have one pass."""


MOMENTS = Statistics(
    fields=(("float", "count"), ("float", "mean"), ("float", "squares")),
    include="""\
#if METHOD == 0
if (pass == 0) s->mean += k[0];
else s->squares += (k[0] - first->mean / n) * (k[0] - first->mean / n);
#elif METHOD == 1
s->count += 1.0f;
const float apart = k[0] - s->mean;
s->mean += __fdividef(apart, s->count);
s->squares += apart * (k[0] - s->mean);
#else
s->mean += k[0];
s->squares += k[0] * k[0];
#endif""",
    merge="""\
#if METHOD == 1
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
    finish="""\
r.mean = METHOD == 1 ? first->mean : first->mean / n;
r.scale = rsqrtf(fmaxf(METHOD == 2 ? last->squares / n - r.mean * r.mean : last->squares / n, 0.0f) + 1e-5f);""",
    tunes=("tune METHOD = 0, 1, 2", f"where METHOD != 2 or ({_ODD})"),
    defaults={"METHOD": 0},
    setup="#define PASSES (METHOD == 0 ? 2 : 1)",
    one_pass="// presage: where METHOD != 0 or PARTS == 1",
    tile_whole="""\
mean = tl.sum(v0, axis=1, keep_dims=True) / cols
apart = tl.where(inside, v0 - mean, 0.0)
scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=1, keep_dims=True) / cols + 1e-5)""",
    tile_fields=("count", "means", "squares"),
    tile_add="""\
if METHOD == 0:
    count += tl.where(inside, 1.0, 0.0)
    apart = tl.where(inside, v0 - means, 0.0)
    means += apart / tl.maximum(count, 1.0)
    squares += apart * (v0 - means)
else:
    means += v0
    squares += v0 * v0""",
    tile_fold="""\
if METHOD == 0:
    mean = tl.sum(means * count, axis=1, keep_dims=True) / cols
    spread = tl.sum(squares + count * (means - mean) * (means - mean), axis=1, keep_dims=True) / cols
else:
    mean = tl.sum(means, axis=1, keep_dims=True) / cols
    spread = tl.maximum(tl.sum(squares, axis=1, keep_dims=True) / cols - mean * mean, 0.0)
scale = 1.0 / tl.sqrt(spread + 1e-5)""",
    tile_tunes=("tune METHOD = 0, 1", f"where METHOD == 0 or ({_TILE_ODD})"),
    results=("mean", "scale"),
)


def _squares(scale: str, tile_scale: str) -> Statistics:
    """Return the statistics of the sum of squares, accumulated in float, double or half precision (METHOD 0, 1, 2)."""
    return Statistics(
        fields=(("Sum", "squares"),),
        include="s->squares = s->squares + (Sum)(k[0] * k[0]);",
        merge="s->squares = s->squares + o->squares;",
        finish=f"const float squares = (float)last->squares;\nr.scale = {scale};",
        tunes=("tune METHOD = 0, 1, 2", "where METHOD != 1 or VECTOR == 4", f"where METHOD != 2 or ({_ODD})"),
        defaults={"METHOD": 0},
        setup="""\
#define PASSES 1
#if METHOD == 1
typedef double Sum;
#elif METHOD == 2
#include <cuda_fp16.h>
typedef half Sum;
#else
typedef float Sum;
#endif""",
        tile_whole=f"total = tl.sum(v0 * v0, axis=1, keep_dims=True)\nscale = {tile_scale}",
        tile_fields=("squares",),
        tile_add="squares += v0 * v0",
        tile_fold=f"total = tl.sum(squares, axis=1, keep_dims=True)\nscale = {tile_scale}",
    )


ROOT_MEAN_SQUARE = _squares("rsqrtf(squares / n + 1e-6f)", "1.0 / tl.sqrt(total / cols + 1e-6)")
LENGTH = _squares("1.0f / fmaxf(sqrtf(squares), 1e-12f)", "1.0 / tl.maximum(tl.sqrt(total), 1e-12)")

BACKWARD = Statistics(
    fields=(("Sum", "mean"), ("Sum", "squares"), ("Sum", "along"), ("Sum", "across")),
    include="""\
#if METHOD == 0
if (pass == 0) {
    s->mean += k[0];
    s->along += k[1];
} else {
    const float apart = k[0] - first->mean / n;
    s->squares += apart * apart;
    s->across += apart * k[1];
}
#else
s->mean += k[0];
s->along += k[1];
s->squares += (Sum)k[0] * k[0];
s->across += (Sum)k[0] * k[1];
#endif""",
    merge="""\
s->mean += o->mean;
s->squares += o->squares;
s->along += o->along;
s->across += o->across;""",
    finish="""\
const Sum mean = first->mean / n, along = first->along / n;
const Sum squares = METHOD == 0 ? last->squares / n : last->squares / n - mean * mean;
const Sum across = METHOD == 0 ? last->across / n : last->across / n - mean * along;
r.mean = mean;
r.scale = rsqrtf(fmaxf((float)squares, 0.0f) + 1e-5f);
r.along = along;
r.across = (float)across * r.scale * r.scale;""",
    tunes=("tune METHOD = 0, 1, 2", f"where METHOD != 2 or ({_ODD})"),
    defaults={"METHOD": 0},
    setup="""\
#define PASSES (METHOD == 0 ? 2 : 1)
#if METHOD == 1
typedef double Sum;
#else
typedef float Sum;
#endif""",
    one_pass="// presage: where METHOD != 0 or PARTS == 1",
    tile_whole="""\
mean = tl.sum(v0, axis=1, keep_dims=True) / cols
apart = tl.where(inside, v0 - mean, 0.0)
scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=1, keep_dims=True) / cols + 1e-5)
along = tl.sum(v1, axis=1, keep_dims=True) / cols
across = tl.sum(apart * v1, axis=1, keep_dims=True) / cols * scale * scale""",
    tile_fields=("count", "means", "squares", "alongs", "acrosses"),
    tile_add="""\
if METHOD == 0:
    # Running means of both, and sums of products of the distances from them.
    count += tl.where(inside, 1.0, 0.0)
    apart = tl.where(inside, v0 - means, 0.0)
    beside = tl.where(inside, v1 - alongs, 0.0)
    means += apart / tl.maximum(count, 1.0)
    alongs += beside / tl.maximum(count, 1.0)
    squares += apart * (v0 - means)
    acrosses += beside * (v0 - means)
else:
    means += v0
    alongs += v1
    squares += v0 * v0
    acrosses += v0 * v1""",
    tile_fold="""\
if METHOD == 0:
    mean = tl.sum(means * count, axis=1, keep_dims=True) / cols
    along = tl.sum(alongs * count, axis=1, keep_dims=True) / cols
    spread = tl.sum(squares + count * (means - mean) * (means - mean), axis=1, keep_dims=True) / cols
    product = tl.sum(acrosses + count * (means - mean) * (alongs - along), axis=1, keep_dims=True) / cols
else:
    mean = tl.sum(means, axis=1, keep_dims=True) / cols
    along = tl.sum(alongs, axis=1, keep_dims=True) / cols
    spread = tl.maximum(tl.sum(squares, axis=1, keep_dims=True) / cols - mean * mean, 0.0)
    product = tl.sum(acrosses, axis=1, keep_dims=True) / cols - mean * along
scale = 1.0 / tl.sqrt(spread + 1e-5)
across = product * scale * scale""",
    tile_tunes=("tune METHOD = 0, 1", f"where METHOD == 0 or ({_TILE_ODD})"),
    results=("mean", "scale", "along", "across"),
)
