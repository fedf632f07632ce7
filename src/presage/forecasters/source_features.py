"""Features from a kernel's text alone: its syntax tree, words of the language and its libraries, and constants.

Names that the author chose are not counted, so that they cannot mislead.
"""

from __future__ import annotations

import math
import re
import sys
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from presage.kernels.kernel import Kernel

Row = dict[str, float]

_NODES = {
    "for_statement": "for", "while_statement": "while", "do_statement": "while", "if_statement": "if",
    "conditional_expression": "conditional", "subscript_expression": "subscript", "subscript": "subscript",
    "binary_expression": "binary", "binary_operator": "binary", "boolean_operator": "binary",
    "comparison_operator": "binary", "assignment_expression": "assign", "assignment": "assign",
    "augmented_assignment": "assign", "update_expression": "assign", "call_expression": "call", "call": "call",
    "cast_expression": "cast", "function_definition": "function", "template_declaration": "template",
    "array_declarator": "array", "return_statement": "return",
}  # fmt: skip
_LOOPS = ("for_statement", "while_statement", "do_statement")
_LOOP = "loop"
_WORDS = {
    "shuffle": r"__shfl\w*|__reduce_\w+",
    "vote": r"__ballot\w*|__any\w*|__all\w*|__match\w*",
    "barrier": r"__syncthreads\w*|__syncwarp|tl\.debug_barrier|sync|arrive\w*",
    "atomic": r"atomic\w+|tl\.atomic_\w+",
    "shared": r"__shared__",
    "vector": r"float[24]|half2|__half2|int[24]|uint[24]|double2|__nv_bfloat162",
    "restrict": r"__restrict__|restrict",
    "cached": r"__ldg|__ldcs|__ldca|__ldcg|__stcs|__stcg|__stwt",
    "bounds": r"__launch_bounds__",
    "unroll": r"unroll",
    "tensor": r"mma|wmma|wgmma|tl\.dot",
    "exponential": r"__?expf?|expf|exp2f|tl\.exp2?|tl\.math\.\w+|tanhf?|logf|__logf|tl\.log2?|erff?|rsqrtf?|sqrtf",
    "double": r"double|float64",
    "half": r"half|__half|__nv_bfloat16|float16|bfloat16",
    "async": r"__pipeline_\w+|cp_async\w*|memcpy_async|cp\.async\w*",
    "load": r"tl\.load",
    "store": r"tl\.store",
    "reduce": r"tl\.sum|tl\.max|tl\.min|tl\.reduce|tl\.argmax|tl\.argmin",
    "scan": r"tl\.cumsum|tl\.associative_scan|tl\.cumprod",
    "arange": r"tl\.arange",
    "program_id": r"tl\.program_id|blockIdx",
    "where": r"tl\.where",
    "range": r"tl\.range|tl\.static_range|range",
    "torch": r"torch\.\w+",
    "parallel": r"omp|parallel|simd",
}  # fmt: skip
_PATTERNS = {name: re.compile(rf"(?:{pattern})(?!\w)") for name, pattern in _WORDS.items()}
_NAME = re.compile(r"[\w.]+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_CONSTANT = re.compile(r"^(?:#define\s+\w+\s+|\w+\s*=\s*)(\d+)\s*$", re.MULTILINE)
_KEYWORD = re.compile(r"\b(num_warps|num_stages)\s*=\s*(\w+)")
_NAMED = re.compile(r"^(?:#define\s+(\w+)\s+|(\w+)\s*=\s*)(\d+)\s*$", re.MULTILINE)


def source_features(kernel: Kernel) -> Row:
    """The features of a kernel's normalised source; mostly logarithms of counts."""
    return dict(_features(kernel.normalised, kernel.language))


@lru_cache(maxsize=4096)
def _features(text: str, language: str) -> tuple[tuple[str, float], ...]:
    row: Row = {"length": math.log2(1 + len(_TOKEN.findall(text)))}
    counts: Counter[str] = Counter()
    for name, count in Counter(_NAME.findall(text)).items():
        for word in _words(name):
            counts[word] += count
    row |= {f"word_{word}": math.log2(1 + counts[word]) for word in _WORDS}
    row |= _constants(text) | dict(_structure(_CONSTANT.sub(_without_number, text), language))
    return tuple(row.items())


def _without_number(constant: re.Match[str]) -> str:
    """The line with its number replaced by 0. The structure does not depend on it, so variants share a cache entry."""
    start, end = constant.start(), constant.start(1)
    return constant.string[start:end] + "0"


@lru_cache(maxsize=1 << 16)
def _words(name: str) -> tuple[str, ...]:
    """The words of `_WORDS` that a dotted name begins with."""
    return tuple(word for word, pattern in _PATTERNS.items() if pattern.match(name))


def _constants(text: str) -> Row:
    """Features of the constants that a file defines, without their names; and the launch's num_warps and num_stages."""
    values = sorted(math.log2(1 + int(value)) for value in _CONSTANT.findall(text))
    row = {"constants": float(len(values)), "constants_sum": sum(values), "constants_most": max(values, default=0.0)}
    named = {first or second: int(value) for first, second, value in _NAMED.findall(text)}
    for word, value in _KEYWORD.findall(text):
        number = int(value) if value.isdigit() else named.get(value)
        if number is not None:
            row[word] = float(number)
    return row


@lru_cache(maxsize=1024)
def _structure(text: str, language: str) -> tuple[tuple[str, float], ...]:
    """Counts of syntax nodes by kind, counts of nodes inside loops, and the nesting depth of loops."""
    parser, query = _grammar(language)
    found = _cursor(query).captures(parser.parse(text.encode()).root_node)
    loops = sorted((node.start_byte, node.end_byte) for node in found.get(_LOOP, ()))
    outermost, deepest = _nesting(loops)
    row = {f"node_{name}": math.log2(1 + len(found.get(name, ()))) for name in sorted(set(_NODES.values()))}
    for name in ("subscript", "binary", "call", "if", "assign"):
        starts = [node.start_byte for node in found.get(name, ())]
        row[f"inside_{name}"] = math.log2(1 + sum(_is_inside(start, outermost) for start in starts))
    return *row.items(), ("depth", float(deepest))


def _nesting(loops: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """The outermost loops, and the greatest nesting depth. loops: the start and end of each, in order."""
    outermost, deepest = [], 0
    ends: list[int] = []  # of the enclosing loops
    for start, end in loops:
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends:
            outermost.append((start, end))
        ends.append(end)
        deepest = max(deepest, len(ends))
    return outermost, deepest


def _is_inside(start: int, spans: Sequence[tuple[int, int]]) -> bool:
    place = bisect(spans, (start, sys.maxsize)) - 1
    return place >= 0 and start < spans[place][1]


@lru_cache(maxsize=2)
def _grammar(language: str) -> tuple[Any, Any]:
    """A parser, and a query for the nodes of `_NODES` and `_LOOPS` that the grammar has."""
    import tree_sitter

    module = import_module("tree_sitter_cuda" if language in ("c", "cuda") else "tree_sitter_python")
    grammar = tree_sitter.Language(module.language())
    wanted = [*_NODES.items(), *((type, _LOOP) for type in _LOOPS)]
    patterns = [f"({type}) @{name}" for type, name in wanted if grammar.id_for_node_kind(type, True)]
    return tree_sitter.Parser(grammar), tree_sitter.Query(grammar, " ".join(patterns))


def _cursor(query: Any) -> Any:
    import tree_sitter

    return tree_sitter.QueryCursor(query)
