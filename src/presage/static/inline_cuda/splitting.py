"""Splits CUDA C++ into a part for the device's compiler and a part for the host's compiler.

nvcc runs both compilers over everything, torch's headers included, which takes most of a minute. Here the device part
has no host functions, so that NVRTC accepts it without torch's headers. In the host part each kernel is a function that
records its own launch. Line numbers stay the same, so that messages name the author's lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import presage.static.inline_cuda.toolchain as toolchain
from presage.static.inline_cuda.lexer import (
    Token,
    angle_close_of,
    blank,
    close_of,
    split_at_commas,
    text_of,
    tokens,
)

Side = Literal["device", "host"]


class SplitError(Exception):
    """The text uses a construct that this module does not understand. The message names it."""


@dataclass(frozen=True)
class Parts:
    """The two parts of a source, and the qualified names of its kernels that are not templates."""

    device: str
    host: str
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class _Item:
    """A declaration, a definition or a directive: a slice of the tokens."""

    kind: Literal["directive", "scope", "function", "class", "other"]
    found: list[Token]
    body: int = -1
    """The index of the token that opens the braces; -1 if there is none."""
    inside: list[_Item] = field(default_factory=list)
    """The items of a namespace."""
    name: str = ""
    """The name of a namespace."""

    @property
    def head(self) -> list[Token]:
        return self.found[: self.body] if self.body >= 0 else self.found

    @property
    def words(self) -> list[str]:
        """The words of the head that are in no bracket."""
        return [token.text for token in _outside_brackets(self.head) if token.kind == "word"]


def split(text: str) -> Parts:
    items = _items(tokens(text))
    kernels: list[str] = []
    host = _render(items, "host", "", kernels)
    return Parts(_render(items, "device", "", []), launches_as_calls(host), tuple(dict.fromkeys(kernels)))


# -- macros -----------------------------------------------------------------------------------------------------------

_OF_DEVICE = re.compile(r"\s*#\s*define\b.*\b__(?:global|device|host)__", re.DOTALL)
_LEFT_ALONE = re.compile(r"\s*#\s*(?:include|pragma|error|warning|line)\b")
_PLACE = re.compile(r"\bPRESAGE_DIRECTIVE_(\d+)\b")


def needs_expanding(text: str) -> bool:
    """Whether macros hide which functions are for the device."""
    return any(token.kind == "directive" and _OF_DEVICE.match(token.text) for token in tokens(text))


def with_macros_expanded(text: str, name: str, macros: Sequence[str]) -> str:
    """The source with its own macros expanded. Headers are not read, and their includes stay. Raises SplitError."""
    kept: list[str] = []
    out = [f'#line 1 "{name}"\n']
    for token in tokens(text):
        if token.kind == "directive" and _LEFT_ALONE.match(token.text):
            out.append(f"PRESAGE_DIRECTIVE_{len(kept)}" + blank([token]))
            kept.append(token.text)
        else:
            out.append(token.text)
    try:
        found = toolchain.expanded("".join(out), macros)
    except ValueError as error:
        raise SplitError(f"its macros cannot be expanded: {error}") from error
    return _PLACE.sub(lambda match: kept[int(match[1])], found)


# -- items ------------------------------------------------------------------------------------------------------------

_NOT_PARAMETERS = ("__align__", "alignas", "__attribute__", "__launch_bounds__", "__declspec", "decltype", "noexcept")


def _items(found: list[Token]) -> list[_Item]:
    items, index = [], 0
    while index < len(found):
        item = _item(found, index)
        items.append(item)
        index += len(item.found)
    return items


def _item(found: list[Token], start: int) -> _Item:
    """The item that begins at `start`."""
    index, begun = start, False
    while index < len(found):
        token = found[index]
        if token.kind == "directive" and not begun:
            return _Item("directive", found[start : index + 1])
        begun = begun or token.kind != "space"
        if token.kind == "mark" and token.text == ";":
            return _Item("other", found[start : index + 1])
        if token.kind == "mark" and token.text in "([":
            index = close_of(found, index)
        elif token.kind == "mark" and token.text == "{":
            return _with_braces(found, start, index)
        elif token.text == "<" and token.kind == "mark":
            index = angle_close_of(found, index) or index
        index += 1
    return _Item("other", found[start:])


def _with_braces(found: list[Token], start: int, opening: int) -> _Item:
    head, closing = found[start:opening], close_of(found, opening)
    if (name := _scope(head)) is not None:
        inside = _items(found[opening + 1 : closing])
        return _Item("scope", found[start : closing + 1], opening - start, inside, name)
    if _is_function(head):
        return _Item("function", found[start : closing + 1], opening - start)
    words = [token.text for token in _outside_brackets(head) if token.kind == "word"]
    end = next((i for i in _plain(found, closing + 1) if found[i].text == ";"), len(found) - 1)
    is_class = not {"class", "struct", "union"}.isdisjoint(words) and not _has_mark(head, "=")
    return _Item("class" if is_class else "other", found[start : end + 1], opening - start)


def _scope(head: Sequence[Token]) -> str | None:
    """The name of the namespace that this head opens, empty for `extern "C"`; None if it opens none."""
    written = [token.text for token in head if token.kind not in ("space", "directive")]
    if written[:1] == ["extern"] and len(written) == 2 and written[1].startswith('"'):
        return ""
    if "namespace" in written[:2]:
        return "".join(written[written.index("namespace") + 1 :])
    return None


def _is_function(head: Sequence[Token]) -> bool:
    """Whether braces after this head are a function's body."""
    outside = [token for token in _outside_brackets(head) if token.kind != "space"]
    if _has_mark(head, "=") and "operator" not in [token.text for token in outside]:
        return False
    marks = [i for i, token in enumerate(outside) if token.text == "("]
    return any(i and outside[i - 1].text not in _NOT_PARAMETERS for i in marks)


def _has_mark(head: Sequence[Token], mark: str) -> bool:
    return any(token.text == mark and token.kind == "mark" for token in _outside_brackets(head))


def _plain(found: Sequence[Token], index: int) -> Iterator[int]:
    """Yield the indices from `index` on, skipping what is in brackets. The opening bracket itself is included."""
    while index < len(found):
        yield index
        if found[index].kind == "mark" and found[index].text in "([{":
            index = close_of(found, index)
        elif found[index].kind == "mark" and found[index].text == "<":
            index = angle_close_of(found, index) or index
        index += 1


def _outside_brackets(found: Sequence[Token]) -> list[Token]:
    return [found[index] for index in _plain(found, 0)]


# -- the two sides ----------------------------------------------------------------------------------------------------

_DEVICE_NAMES = (
    "Half|BFloat16|acc_type|opmath_type|OpMathType|PackedTensorAccessor(?:32|64)?|GenericPackedTensorAccessor|"
    "TensorAccessor|RestrictPtrTraits|DefaultPtrTraits"
)
_OF_HOST = re.compile(
    rf"\b(?:torch|at|c10)::(?!(?:{_DEVICE_NAMES})\b)\w|\b(?:py|pybind11)::|\bPyObject\b|\bTORCH_\w+"
    r"|\bstd::(?:vector|string|map|unordered_map|set|function|shared_ptr|unique_ptr|mutex|once_flag|cout|cerr|ostream"
    r"|stringstream|runtime_error|thread|deque|list)\b|\b(?:cuda[A-Z]|cublas|cudnn|curandGenerator|cufft)\w*"
)
_USING_NAMESPACE = re.compile(r"\busing\s+namespace\s+(?:torch|at|c10)\s*;")
_INCLUDE = re.compile(r"#\s*include\s*([<\"])([^>\"]+)[>\"]")
_FOR_HOST = re.compile(
    r"(?:torch|ATen|c10|pybind11|caffe2)/.*|Python\.h|cuda(?:_runtime|_runtime_api|_device_runtime_api)?\.h"
    r"|device_launch_parameters\.h|device_functions\.h|vector_(?:types|functions)\.h|cu(?:blas|dnn|sparse|fft|rand|solver)[^/]*\.h"
    r"|(?:vector|string|iostream|fstream|sstream|iomanip|memory|map|unordered_map|set|unordered_set|stdexcept|mutex"
    r"|thread|chrono|random|numeric|optional|deque|list|queue|cassert|ctime|time\.h|stdio\.h|sys/.*|unistd\.h)"
)
_FOR_DEVICE = re.compile(
    r"(?:cooperative_groups|cub|cuda|cute|cutlass|nv)(?:/.*|\.h)|(?:mma|cuda_pipeline.*|curand_.*)\.h"
)


def _render(items: Sequence[_Item], side: Side, scope: str, kernels: list[str]) -> str:
    return "".join(_item_on(item, side, scope, kernels) for item in items)


def _item_on(item: _Item, side: Side, scope: str, kernels: list[str]) -> str:
    if item.kind == "scope":
        closing = item.found[-1].text if item.found[-1].text == "}" else ""
        inner = f"{scope}{item.name}::" if item.name else scope
        return text_of(item.found[: item.body + 1]) + _render(item.inside, side, inner, kernels) + closing
    if item.kind == "directive":
        return _directive(item, side)
    if item.kind == "function":
        return _function(item, side, scope, kernels)
    text = text_of(item.found)
    words = item.words
    if side == "host":
        if "__shared__" in words or (_is_prototype(item) and "__device__" in words and "__host__" not in words):
            return blank(item.found)
        return _without_device_bodies(item) if item.kind == "class" else text
    is_host = "__global__" not in words and (_OF_HOST.search(text) or _USING_NAMESPACE.search(text))
    return blank(item.found) if is_host else text


def _is_prototype(item: _Item) -> bool:
    return item.body < 0 and item.found[-1].text == ";" and _is_function(item.found[:-1])


def _directive(item: _Item, side: Side) -> str:
    text = text_of(item.found)
    included = _INCLUDE.search(text)
    if included and (_FOR_HOST if side == "device" else _FOR_DEVICE).fullmatch(included.group(2)):
        return blank(item.found)
    return text


def _function(item: _Item, side: Side, scope: str, kernels: list[str]) -> str:
    words, text = item.words, text_of(item.found)
    for_device, for_host = "__device__" in words, "__host__" in words
    if "__global__" in words:
        return _stub(item, scope, kernels) if side == "host" else text
    if side == "host":
        return blank(item.found) if for_device and not for_host else text
    if not for_device and ("constexpr" not in words or _OF_HOST.search(text)):
        return blank(item.found)
    return text


def _without_device_bodies(item: _Item) -> str:
    """A class for the host, in which functions that only the device can run have empty bodies."""
    begin, out = item.body + 1, [text_of(item.found[: item.body + 1])]
    end = close_of(item.found, item.body)
    for member in _items(item.found[begin:end]):
        words = member.words
        if member.kind == "function" and "__device__" in words and "__host__" not in words:
            out.append(text_of(member.head) + "{" + blank(member.found[member.body :]) + "}")
        else:
            out.append(text_of(member.found))
    return "".join(out) + text_of(item.found[end:])


# -- kernels ----------------------------------------------------------------------------------------------------------


def _stub(item: _Item, scope: str, kernels: list[str]) -> str:
    """A kernel for the host: a function of the same parameters that passes them to our launch function."""
    head = item.head
    opening, closing = _parameter_list(head)
    name_start = _name_start(head, opening)
    name = re.sub(r"\s+", "", text_of(head[name_start:opening]))
    template = _template_parameters(head)
    parameters, names = _named(head[opening + 1 : closing])
    expression = f'"{scope}{name}"'
    if template:
        expression = f"::presage::instance({expression}, {{{', '.join(template)}}})"
    elif not _is_template(head):
        kernels.append(scope + name)
    call = ", ".join(["PRESAGE_UNIT", expression, *names])
    body = "{ ::presage::launch(" + call + ");" + blank(item.found[item.body :]) + "}"
    return text_of(head[: opening + 1]) + parameters + text_of(head[closing:]) + body


def _parameter_list(head: list[Token]) -> tuple[int, int]:
    """The indices of the brackets around a function's parameters: the last ones that do not belong to an attribute."""
    found = []
    for index in _plain(head, 0):
        before = next((token.text for token in reversed(head[:index]) if token.kind != "space"), "")
        if head[index].text == "(" and head[index].kind == "mark" and before not in _NOT_PARAMETERS:
            found.append(index)
    if not found:
        raise SplitError(f"cannot read the parameters of the kernel `{_one_line(head)}`")
    return found[-1], close_of(head, found[-1])


def _name_start(head: list[Token], opening: int) -> int:
    """The index where the kernel's name begins, which ends before the parameters and may include template arguments."""
    index = opening - 1
    while index >= 0 and head[index].kind == "space":
        index -= 1
    start = _callee_start(head, index)
    if start is None:
        raise SplitError(f"cannot read the name of the kernel `{_one_line(head)}`")
    return start


def _is_template(head: Sequence[Token]) -> bool:
    return any(token.text == "template" for token in head)


def _template_parameters(head: list[Token]) -> list[str]:
    """For each template parameter, the C++ expression that gives its type or value at run time."""
    written = [i for i, token in enumerate(head) if token.kind not in ("space", "directive")]
    if not written or head[written[0]].text != "template" or len(written) < 2:
        return []
    opening = written[1]
    closing = angle_close_of(head, opening)
    if head[opening].text != "<" or closing is None:
        raise SplitError(f"cannot read the template of the kernel `{_one_line(head)}`")
    return [_spelled(part, head) for part in split_at_commas(head[opening + 1 : closing])]


def _spelled(parameter: list[Token], head: list[Token]) -> str:
    default = next((i for i, token in enumerate(parameter) if token.text == "="), len(parameter))
    words = [token.text for token in parameter[:default] if token.kind == "word"]
    is_pack = text_of(parameter[:default]).count(".") == 3
    if len(words) < 2 or words[0] == "template":
        raise SplitError(f"a template's parameter without a name, or that is a template: `{_one_line(head)}`")
    kind = "type" if words[0] in ("typename", "class") else "value"
    return f"::presage::{kind}s<{words[-1]}...>()" if is_pack else f"::presage::{kind}<{words[-1]}>()"


def _named(parameters: list[Token]) -> tuple[str, list[str]]:
    """The parameters, each with a name, and the list of the names."""
    texts, names = [], []
    if text_of(parameters).strip() == "void":
        return "", []
    for number, part in enumerate(split_at_commas(parameters)):
        default = next((i for i, token in enumerate(part) if token.text == "="), len(part))
        outside = [token for token in _outside_brackets(part[:default]) if token.kind == "word"]
        types = [token.text for token in outside if token.text not in _QUALIFIERS]
        if len(types) > 1 and types[-1] not in _TYPE_WORDS:
            texts.append(text_of(part))
            names.append(types[-1])
        else:
            name = f"presage_{number}"
            texts.append(f"{text_of(part[:default])} {name} {text_of(part[default:])}")
            names.append(name)
    return ",".join(texts), names


_QUALIFIERS = ("const", "volatile", "__restrict__", "__restrict", "restrict", "struct", "__grid_constant__", "typename")
_TYPE_WORDS = ("int", "long", "short", "char", "unsigned", "signed", "float", "double", "bool", "size_t")


def _one_line(head: Sequence[Token]) -> str:
    return " ".join(text_of(head).split())[:200]


# -- launches ---------------------------------------------------------------------------------------------------------


def launches_as_calls(text: str) -> str:
    """Replace `k<<<grid, block>>>(x)` by a call of ours that takes grid and block, and a call of k.

    >>> launches_as_calls("if (n) ns::k<T, 4><<<1, 32>>>(x);")
    'if (n) ::presage::configure(1, 32), ns::k<T, 4>(x);'
    """
    return _calls(tokens(text))


def _calls(found: list[Token]) -> str:
    out: list[str] = []
    index = 0
    while index < len(found):
        token = found[index]
        if token.kind == "directive" and "<<<" in token.text:
            out.append("#" + _calls(tokens(token.text[1:])))
        elif token.kind == "mark" and token.text == "<<<":
            end = _configuration_end(found, index)
            start = _callee_start(found, _before_space(found, index))
            if end is None or start is None:
                raise SplitError(f"cannot read the launch `{_one_line(found[max(0, index - 20) : index + 20])}`")
            callee = "".join(out[start:])
            written = _calls(found[index + 1 : end])
            del out[start:]
            # Keep one piece per token, so that indices in `out` are those of the tokens.
            out += [f"::presage::configure({written}), {callee}"] + [""] * (end - start)
            index = end
        else:
            out.append(token.text)
        index += 1
    return "".join(out)


def _before_space(found: Sequence[Token], index: int) -> int:
    index -= 1
    while index >= 0 and found[index].kind == "space":
        index -= 1
    return index


def _configuration_end(found: list[Token], opening: int) -> int | None:
    return next((i for i in _inside(found, opening + 1) if found[i].text == ">>>"), None)


def _inside(found: list[Token], index: int) -> Iterator[int]:
    while index < len(found):
        yield index
        if found[index].kind == "mark" and found[index].text in "([{":
            index = close_of(found, index)
        index += 1


def _callee_start(found: Sequence[Token], last: int) -> int | None:
    """The index where an expression that names a function begins, if it ends at the token `last`; else None."""
    index = last
    while index >= 0:
        if found[index].text in (">", ">>>", ")", "]"):
            index = _opening_of(found, index)
            index = _before_space(found, index) if found[index].text == "<" else index
            if found[index].text in "([" and found[_before_space(found, index)].kind != "word":
                return index
            if found[index].text in "([":
                index = _before_space(found, index)
        if index < 0 or found[index].kind != "word":
            return None
        before = _before_space(found, index)
        if before >= 0 and found[before].text == "template":
            before = _before_space(found, before)
        if before < 0 or found[before].text not in ("::", ".", "->"):
            return index
        index = _before_space(found, before)
        if index < 0 or (found[index].kind != "word" and found[index].text not in (">", ">>>")):
            return before
    return None


def _opening_of(found: Sequence[Token], closing: int) -> int:
    """The index of the opening bracket for the closing bracket at this index."""
    depth = 0
    for index in range(closing, -1, -1):
        text = found[index].text if found[index].kind == "mark" else ""
        depth += {")": 1, "]": 1, "}": 1, ">": 1, ">>>": 3, "(": -1, "[": -1, "{": -1, "<": -1}.get(text, 0)
        if depth <= 0:
            return index
    return 0
