"""Formulas: translate a map, written once as assignments in Python syntax, into C, CUDA C++ and Triton."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Steps = list[tuple[str, str]]
"""Assignments in order, as pairs of a name and an expression."""

_ONLY_IN_C = ("pow", "normcdf", "erfc", "hypot")
_FUNCTIONS = ("abs", "erf", "exp", "expm1", "floor", "log", "log1p", "max", "min", "rsqrt", "sin", "sqrt", "tanh")


@dataclass(frozen=True)
class Dialect:
    """The function names and the syntax of constants and divisions of one language, or of one precision in it."""

    names: Mapping[str, str]
    suffix: str = ""
    """The suffix of constants."""
    divide: str = ""
    """The function for division. Empty for the operator `/`."""
    ternary: bool = True
    """Whether `where(c, a, b)` is written `(c ? a : b)`."""
    helpers: Mapping[str, str] = field(default_factory=dict)
    """The definitions of functions that the language lacks, by name."""

    def steps(self, formula: str) -> Steps:
        """Return the formula's assignments in this dialect. Raises ValueError if it has other statements.

        >>> FLOAT.steps("e = exp(-x); y = where(x > 0.0, x, 1.0 / e)")
        [('e', 'expf(-x)'), ('y', '(x > 0.0f ? x : 1.0f / e)')]
        """
        translator = _Translator(self)
        found: Steps = []
        for statement in ast.parse(formula.replace(";", "\n").replace("\n ", "\n")).body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                raise ValueError(f"'{formula}' is not made of assignments to names")
            found.append((statement.targets[0].id, ast.unparse(translator.visit(statement.value))))
        return found

    def needed(self, code: str) -> list[str]:
        """Return the helper definitions that the code needs."""
        return [text for name, text in self.helpers.items() if re.search(rf"\b{name}\(", code)]


class _Translator(ast.NodeTransformer):
    """Rewrites functions, constants and divisions for a dialect. Translated code is wrapped in `ast.Name` nodes."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        assert isinstance(node.func, ast.Name)
        arguments = [ast.unparse(argument) for argument in node.args]
        if node.func.id == "where" and self._dialect.ternary:
            return ast.Name("({} ? {} : {})".format(*arguments))
        return ast.Name(f"{self._dialect.names[node.func.id]}({', '.join(arguments)})")

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Name(f"{node.value!r}{self._dialect.suffix}")

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and self._dialect.divide:
            return ast.Name(f"{self._dialect.divide}({ast.unparse(node.left)}, {ast.unparse(node.right)})")
        return node


_C_NAMES = {name: f"{name}f" for name in (*_FUNCTIONS, *_ONLY_IN_C)} | {"abs": "fabsf", "max": "fmaxf", "min": "fminf"}

FLOAT = Dialect(_C_NAMES, suffix="f")
"""CUDA C++ in single precision, with the functions of CUDA's math library."""

PLAIN_C = Dialect(
    _C_NAMES,
    suffix="f",
    helpers={
        "rsqrtf": "static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }",
        "normcdff": "static inline float normcdff(float x) { return 0.5f * erfcf(-0.70710678f * x); }",
    },
)

DOUBLE = Dialect({name: name for name in (*_FUNCTIONS, *_ONLY_IN_C)} | {"abs": "fabs", "max": "fmax", "min": "fmin"})
"""CUDA C++ in double precision."""

QUICK = Dialect(
    _C_NAMES
    | {name: f"__{name}f" for name in ("exp", "log", "sin", "pow")}
    | {name: f"approx_{name}" for name in ("tanh", "log1p", "expm1", "erf")},
    suffix="f",
    divide="__fdividef",
    helpers={
        "approx_tanh": """\
__device__ __forceinline__ float approx_tanh(float v) {
    return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * v));
}""",
        "approx_log1p": "__device__ __forceinline__ float approx_log1p(float v) { return __logf(1.0f + v); }",
        "approx_expm1": "__device__ __forceinline__ float approx_expm1(float v) { return __expf(v) - 1.0f; }",
        "approx_erf": """\
__device__ __forceinline__ float approx_erf(float v) { // Abramowitz and Stegun 7.1.26
    const float z = fabsf(v), t = __fdividef(1.0f, 1.0f + 0.3275911f * z);
    float p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    return copysignf(1.0f - p * t * __expf(-z * z), v);
}""",
    },
)
"""CUDA C++ with fast hardware intrinsics for functions and division, and helpers built from them."""

TRITON = Dialect(
    {name: f"tl.{name}" for name in ("abs", "erf", "exp", "floor", "log", "rsqrt", "sin", "sqrt", "where")}
    | {"max": "tl.maximum", "min": "tl.minimum", "tanh": "tanh_of", "log1p": "log1p_of", "expm1": "expm1_of"},
    ternary=False,
    helpers={
        "log1p_of": """\
@triton.jit
def log1p_of(v):  # for v >= 0: a series in v / (2 + v) where 1 + v would lose digits
    s = v / (2.0 + v)
    q = s * s
    near = 2.0 * s * (1.0 + q * (0.33333333 + q * (0.2 + q * 0.14285714)))
    return tl.where(v < 0.25, near, tl.log(1.0 + v))""",
        "expm1_of": """\
@triton.jit
def expm1_of(v):  # Taylor's series where exp(v) - 1 would lose digits
    near = v * (1.0 + v * (0.5 + v * (0.16666667 + v * (0.041666668 + v * (0.008333334 + v * 0.0013888889)))))
    return tl.where(tl.abs(v) < 0.3, near, tl.exp(v) - 1.0)""",
        "tanh_of": """\
@triton.jit
def tanh_of(v):
    w = -2.0 * tl.abs(v)
    near = w * (1.0 + w * (0.5 + w * (0.16666667 + w * (0.041666668 + w * (0.008333334 + w * 0.0013888889)))))
    m = tl.where(w > -0.3, near, tl.exp(w) - 1.0)
    t = -m / (m + 2.0)
    return tl.where(v < 0.0, -t, t)""",
    },
)


@dataclass(frozen=True)
class Code:
    """A map's names and formula, and the code that it fills into the placeholders of the room's families.

    `others` are alternative ways to compute the formula. They may be wrong or inaccurate."""

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    formula: str
    others: Sequence[str] = ()
    half: bool = False
    """Whether the arrays are float16. The computation is in float32 in any case."""

    def given(self, suffix: str) -> dict[str, str]:
        return {".c": self._for_c, ".cu": self._for_cuda, ".py": self._for_triton}[suffix]()

    def _for_c(self) -> dict[str, str]:
        if self.half:
            return {}
        pointers = [f"const float *restrict from_{name}" for name in self.inputs]
        pointers += [f"float *restrict to_{name}" for name in self.outputs]
        forms = [self._assignments(PLAIN_C.steps(formula)) for formula in (self.formula, *self.others)]
        return {
            "entry": f"map_{self.name}",
            "arguments": f"{', '.join(pointers)}, int n",
            "helpers": "\n".join(PLAIN_C.needed("\n".join(forms))),
            "load": "\n".join(f"const float {name} = from_{name}[i];" for name in self.inputs),
            "apply": forms[0],
            "tune_form": f"// presage: tune FORM = {', '.join(map(str, range(len(forms))))}",
            "forms": _choice(dict(enumerate(forms))),
            "store": "\n".join(f"to_{name}[i] = {name};" for name in self.outputs),
            "from_start": ", ".join(
                f"{way}_{name} + start"
                for way, names in (("from", self.inputs), ("to", self.outputs))
                for name in names
            ),
        }

    def _for_cuda(self) -> dict[str, str]:
        kind = "half" if self.half else "float"
        pointers = [f"const {kind} *__restrict__ from_{name}" for name in self.inputs]
        pointers += [f"{kind} *__restrict__ to_{name}" for name in self.outputs]
        plain = self._assignments(FLOAT.steps(self.formula))
        given = {
            "entry": f"map_{self.name}",
            "element": "#include <cuda_fp16.h>\ntypedef half T;" if self.half else "typedef float T;",
            "bytes": "2" if self.half else "4",
            "wide": "8" if self.half else "4",
            "widths": "8, 1, 2, 16" if self.half else "4, 1, 2, 8",
            "arguments": f"{', '.join(pointers)}, int n",
            "inputs": str(len(self.inputs)),
            "outputs": str(len(self.outputs)),
            "in_pointers": ", ".join(f"from_{name}" for name in self.inputs),
            "out_pointers": ", ".join(f"to_{name}" for name in self.outputs),
            "unpack": self._unpack("float"),
            "apply": f"{plain}\n{self._pack()}",
            "load": "\n".join(f"const float {name} = from_{name}[i];" for name in self.inputs),
            "plain": plain,
            "store": "\n".join(f"to_{name}[i] = {name};" for name in self.outputs),
            **self._cuda_forms(),
        }
        if not self.half and len(FLOAT.steps(self.formula)) > 1:
            given |= self._passes()
        return given

    def _cuda_forms(self) -> dict[str, str]:
        """Return one function body for each way to compute the formula (FORM). Duplicate bodies are left out."""
        quick = QUICK.steps(self.formula)
        bodies = {
            0: f"{self._unpack('float')}\n{self._assignments(FLOAT.steps(self.formula))}",
            1: f"{self._unpack('float')}\n{self._assignments(quick)}",
            2: f"{self._unpack('double')}\n{self._assignments(DOUBLE.steps(self.formula), 'double')}",
            3: "\n".join(
                [f"const float {name} = (half)in[{i}];" for i, name in enumerate(self.inputs)]
                + [f"const float {name} = (half)({value});" for name, value in FLOAT.steps(self.formula)]
            ),
        }
        for i, formula in enumerate(self.others):
            bodies[4 + i] = f"{self._unpack('float')}\n{self._assignments(FLOAT.steps(formula))}"
        distinct = {body: i for i, body in reversed(bodies.items())}
        kept = {i: f"{body}\n{self._pack()}" for i, body in bodies.items() if distinct[body] == i}
        return {
            "tune_form": f"// presage: tune FORM = {', '.join(map(str, kept))}",
            "form_helpers": "\n".join(QUICK.needed(str(quick))),
            "forms": _choice(kept),
        }

    def _passes(self) -> dict[str, str]:
        """Return one kernel launch per assignment. Intermediate results are kept in memory for the later launches."""
        steps = FLOAT.steps(self.formula)
        kept = [name for name, _ in steps if name not in self.outputs]
        where = {name: f"from_{name}" for name in self.inputs} | {name: f"temp_{name}" for name in kept}
        where |= {name: f"to_{name}" for name in self.outputs}
        launches, kernels = [f"// presage: scratch temp_{name} = 4 * n" for name in kept], []
        for number, (target, value) in enumerate(steps, start=1):
            used = [name for name in where if re.search(rf"\b{name}\b", value)]
            entry = f"map_{self.name}_{number}"
            launches += [
                f"// presage: entry {entry}",
                "// presage: grid BLOCKS if BLOCKS else cdiv(n, THREADS * VECTOR)",
                "// presage: block THREADS",
            ]
            unpack = " ".join(f"const float {name} = in[{i}];" for i, name in enumerate(used))
            kernels += [
                f'extern "C" __global__ void __launch_bounds__(THREADS) {entry}(ARGUMENTS) {{',
                f"    const float *const from[] = {{{', '.join(where[name] for name in used)}}};",
                f"    walk(from, {where[target]}, n, [](const float *in) {{",
                f"        {unpack}",
                f"        return {value};",
                "    });",
                "}",
            ]
        temporaries = "".join(f", float *__restrict__ temp_{name}" for name in kept)
        return {"launches": "\n".join(launches), "kernels": "\n".join(kernels), "temporaries": temporaries}

    def _for_triton(self) -> dict[str, str]:
        steps = TRITON.steps(self.formula)
        plain = "\n".join(f"{name} = {value}" for name, value in steps)
        rounded = [f"{name} = {name}.to(tl.float16).to(tl.float32)" for name in self.inputs]
        rounded += [f"{name} = ({value}).to(tl.float16).to(tl.float32)" for name, value in steps]
        forms = {
            0: plain,
            1: "\n".join([*(f"{name} = {name}.to(tl.float64)" for name in self.inputs), plain]),
            2: "\n".join(rounded),
        }
        for formula in self.others:
            if not any(re.search(rf"\b{name}\(", formula) for name in _ONLY_IN_C):
                forms[len(forms)] = "\n".join(f"{name} = {value}" for name, value in TRITON.steps(formula))
        branches = [
            f"{'if' if not i else 'elif'} FORM == {i}:\n" + "\n".join(f"    {line}" for line in text.split("\n"))
            for i, text in forms.items()
        ]
        names = (*self.inputs, *self.outputs)
        wide = ".to(tl.float32)" if self.half else ""
        return {
            "ins": ", ".join(self.inputs),
            "outs": ", ".join(self.outputs),
            "pointers": ", ".join(f"{name}_ptr" for name in names),
            "load": "\n".join(f"{name} = tl.load({name}_ptr + at, mask=inside){wide}" for name in self.inputs),
            "load_with": "\n".join(
                f"{name} = tl.load({name}_ptr + at, mask=inside, cache_modifier=LOAD, eviction_policy=EVICT){wide}"
                for name in self.inputs
            ),
            "apply": plain,
            "store": "\n".join(f"tl.store({name}_ptr + at, {name}, mask=inside)" for name in self.outputs),
            "store_with": "\n".join(
                f"tl.store({name}_ptr + at, {name}, mask=inside, cache_modifier=STORE)" for name in self.outputs
            ),
            "helpers": "\n\n\n".join(TRITON.needed(plain)),
            "first": self.outputs[0],
            "empty": "\n".join(f"{name} = torch.empty_like({self.inputs[0]})" for name in self.outputs),
            "tune_form": f"# presage: tune FORM = {', '.join(map(str, forms))}",
            "form_helpers": "\n\n\n".join(TRITON.needed("\n".join(forms.values()))),
            "forms": "\n".join(branches),
        }

    def _unpack(self, kind: str) -> str:
        return "\n".join(f"const {kind} {name} = in[{i}];" for i, name in enumerate(self.inputs))

    def _pack(self) -> str:
        return "\n".join(f"out[{i}] = {name};" for i, name in enumerate(self.outputs))

    @staticmethod
    def _assignments(steps: Steps, kind: str = "float") -> str:
        return "\n".join(f"const {kind} {name} = {value};" for name, value in steps)


def _choice(bodies: Mapping[int, str]) -> str:
    """Return the bodies as preprocessor branches on FORM."""
    lines: list[str] = []
    for i, body in bodies.items():
        lines += [f"#{'elif' if lines else 'if'} FORM == {i}", body]
    return "\n".join([*lines, "#endif"])
