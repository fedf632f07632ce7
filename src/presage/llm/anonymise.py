"""Anonymise a kernel's source for a language model: the normalised source without the author's words.

Normalising removes comments, docstrings and layout. This module replaces every name that the author chose by n1, n2, …
in order of appearance, and strings that are neither code nor the value of an option by "text". Words of the languages
and libraries stay, because they say what the code does. A kernel called `twice_as_fast`, or a string that addresses the
model, therefore tells the model nothing.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection

from presage.kernels.kernel import Kernel
from presage.kernels.normalise import normalise
from presage.llm import vocabulary as words

_DECLARED = re.compile(r"\.reg\s+\.\w+\s+([^;]++)|(?m:^|[;{])[ \t\r\f\v]*+(\w++):")
_ASM_COMMENT = re.compile(r"//.*?(?=\\n|\n|$)|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ASM_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_DEEPEST = 40
"""The deepest indentation. Without a limit, the text would grow with the square of the number of braces."""
_TOKEN = re.compile(
    r"""(?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\((?:.*?\)(?P=tag)"|.*))
      | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\])*+"?)
      | (?P<character>'(?:\\.[^']{0,8}|[^'\\])')
      | (?P<number>(?:\d|\.\d)(?:[eEpP][+-]|['.\w])*+)
      | (?P<word>[^\W\d]\w*)
      | (?P<other>\n|::|->|.)""",
    re.VERBOSE | re.DOTALL,
)
_INDENTED_DIRECTIVE = re.compile(r"^[ \t]+#", re.MULTILINE)
_NUMBER = re.compile(
    r"(?:0[xX][\da-fA-F']*+(?:\.[\da-fA-F]*+)?(?:[pP][+-]?\d++)?|0[bB][01']++"
    r"|[\d']*+(?:\.[\d']*+)?(?:[eE][+-]?\d++)?)[uUlLfFzZ]{0,3}"
)
_EINSUM = re.compile(r"[a-z.]{1,6}(?:,[a-z.]{1,6})*->[a-z.]{0,6}")


class Unreadable(Exception):  # noqa: N818  a verdict on the source, not a fault of ours
    """The source is not valid in its language, so nothing of it can be shown safely."""


def anonymise(kernel: Kernel, dimensions: Collection[str] = ()) -> str:
    """The anonymised source. Names in `dimensions`, those of the problem, stay in launch declarations. Raises
    Unreadable.

    >>> from presage.kernels.kernel import from_source
    >>> text = "// presage: entry twice_as_fast\\n// presage: grid rows\\nvoid twice_as_fast(float *x) { *x = 2; }"
    >>> print(anonymise(from_source(text, ".c", "k.c"), ["rows"]))
    // presage: entry n1
    // presage: grid rows
    void n1(float*n2){
      *n2=2;
    }
    """
    names = _Names()
    if kernel.is_bare:
        lines = _normalise_c(kernel.source).split("\n")
        launch = [line for line in lines if line.startswith("// presage: ")]
        shown = [names.in_expression(line, dimensions) for line in launch]
        return "\n".join([*shown, _anonymise_c("\n".join(lines[len(launch) :]), names)])
    return anonymise_python(kernel.normalised, names)


def anonymise_python(normalised: str, names: _Names | None = None) -> str:
    """The anonymised text of a normalised Python module. Raises Unreadable."""
    try:
        tree = ast.parse(normalised)
        return ast.unparse(ast.fix_missing_locations(_Renaming(tree, names or _Names()).visit(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable("the source is not valid Python") from error


class _Names:
    """The mapping from the author's names to new names, in order of appearance."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self.functions: set[str] = set()
        """The author's names that C code in the source calls or defines as functions."""

    def of(self, word: str) -> str:
        return self._given.setdefault(word, f"n{len(self._given) + 1}")

    def __contains__(self, word: str) -> bool:
        return word in self._given

    def in_expression(self, line: str, dimensions: Collection[str]) -> str:
        """A launch declaration with new names, such as `// presage: grid cdiv(rows, BLOCK)`."""
        start, keyword, rest = re.match(r"(// presage: )(\w+)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        known = {*dimensions, *words.EXPRESSION}
        renamed = re.sub(r"[^\W\d]\w*", lambda m: m[0] if m[0] in known else self.of(m[0]), rest)
        return f"{start}{keyword}{renamed}"


# -- C and CUDA -------------------------------------------------------------------------------------------------------


def _normalise_c(source: str) -> str:
    """The normalised source, with every directive on a separate line."""
    return normalise(_INDENTED_DIRECTIVE.sub("#", source), "cuda")


def _anonymise_c(text: str, names: _Names) -> str:
    layout, shown = _Layout(names), []
    for line in text.split("\n"):
        shown.append(_directive(line, names) if line.startswith("#") else layout.lay_out(line))
    return "\n".join(part for part in shown if part)


def _directive(line: str, names: _Names) -> str:
    """A preprocessor line. Lines that are only text (#error, #warning, an unknown #pragma) are removed."""
    keyword, _, rest = line.removeprefix("#").strip().partition(" ")
    if keyword == "include":
        name = rest.strip().strip('<>"')
        return f"#include <{name if name in words.HEADERS else 'another header'}>"
    if keyword == "pragma":
        parts = re.findall(r"(?:max|min)(?=\s*:)|\w+|\W", rest)
        if not parts or parts[0] not in words.PRAGMAS:
            return ""
        known = (*words.PRAGMAS, "max", "min")
        return "#pragma " + "".join(p if p in known or not _is_word(p) else names.of(p) for p in parts)
    if keyword not in words.DIRECTIVES:
        return ""
    return f"#{keyword} {_Layout(names, broken=False).lay_out(rest)}".rstrip()


def _is_word(text: str) -> bool:
    return text[0].isalpha() or text[0] == "_"


class _Layout:
    """Writes C tokens with the author's words replaced, one statement per line."""

    def __init__(self, names: _Names, broken: bool = True) -> None:
        self._names, self._broken = names, broken
        self._depth = self._parentheses = 0
        self._asm: int | None = None
        """How many parentheses were open before the current assembly."""
        self._before = ""

    def lay_out(self, text: str) -> str:
        indent = self._indent() if self._broken else ""
        written = "".join(self._write(match) for match in _TOKEN.finditer(text))
        joined = re.sub(r"}\s+(?=[;,)])", "}", re.sub(r"\n\s*(?=\n|$)", "", written)).strip("\n")
        return joined if joined.startswith("}") or not joined else f"{indent}{joined}"

    def _write(self, match: re.Match[str]) -> str:
        kind, token = str(match.lastgroup), match[0]
        shown = token
        if kind == "word":
            shown = self._word(token, is_called=match.string[match.end() : match.end() + 1] == "(")
        elif kind in ("string", "raw", "tag"):
            shown = self._string(token)
        elif kind == "number" and not _NUMBER.fullmatch(token):
            shown = "0"
        elif kind == "character" and not token.isascii():
            shown = "' '"
        elif kind == "other":
            shown = self._punctuation(token)
        if not token.isspace():
            self._before = f"{self._before}{token}"[-40:] if token == "::" else token
        return shown

    def _word(self, word: str, is_called: bool) -> str:
        if word in words.ASSEMBLY:
            self._asm = self._parentheses
        member = self._before in (".", "->")
        scoped = self._before.removesuffix("::") in words.NAMESPACES and self._before.endswith("::")
        known = word in words.MEMBERS if member else words.is_of_c(word)
        if scoped or (known and (is_called or word not in words.COMMON)):
            return word
        if is_called:
            self._names.functions.add(word)
        return self._names.of(word)

    def _string(self, token: str) -> str:
        if self._asm is None:
            if (word := token.strip('"')).isidentifier():
                self._names.functions.add(word)  # such as m.def("word", …), which defines a name in Python
            return token if token == '"C"' else '"text"'
        text = _ASM_COMMENT.sub("", token)
        if not text.isascii() or not text.endswith('"'):
            return '"text"'
        named = (name for found in _DECLARED.findall(text) for name in re.findall(r"[A-Za-z_]\w*", "".join(found)))
        given = {name: self._names.of(name) for name in named}
        return _ASM_WORD.sub(lambda word: given.get(word[0], word[0]), text)

    def _punctuation(self, token: str) -> str:
        if not (token.isascii() and (token.isprintable() or token == "\n")):
            return " "
        if token in "([":
            self._parentheses += 1
        elif token in ")]":
            self._parentheses = max(0, self._parentheses - 1)
            if self._asm == self._parentheses:
                self._asm = None
        if not self._broken or self._parentheses or self._asm is not None:
            return token
        if token == "{":
            self._depth += 1
        elif token == "}":
            self._depth = max(0, self._depth - 1)
            return f"\n{self._indent()}}}\n{self._indent()}"
        return f"{token}\n{self._indent()}" if token in "{;" else token

    def _indent(self) -> str:
        return "  " * min(self._depth, _DEEPEST)


# -- Python -----------------------------------------------------------------------------------------------------------


class _Bound(ast.NodeVisitor):
    """The names that a module defines, the attributes that it sets, and its imports by local name."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.imports: dict[str, str] = {}
        self.visit(tree)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)
        elif isinstance(node, ast.arg):
            self.names.add(node.arg)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            self.attributes.add(node.attr)
        elif isinstance(node, ast.Call) and _last_name(node.func) in words.NAMING_CALLS:
            self.attributes |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self.names.add(node.name)
        super().generic_visit(node)
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                self.attributes |= {n.name for n in ast.walk(statement) if isinstance(n, ast.FunctionDef)}
                targets: list[ast.expr] = [statement.target] if isinstance(statement, ast.AnnAssign) else []
                targets += statement.targets if isinstance(statement, ast.Assign) else []
                self.attributes |= {target.id for target in targets if isinstance(target, ast.Name)}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self.imports[alias.asname] = alias.name
            else:
                self.imports[alias.name.split(".")[0]] = alias.name.split(".")[0]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"


class _Renaming(ast.NodeTransformer):
    """Rewrites a module with new names, depth first, in the order of the source."""

    def __init__(self, tree: ast.AST, names: _Names) -> None:
        self._names, self._bound = names, _Bound(tree)

    def _name(self, name: str) -> str:
        if name in self._bound.names:
            return name if name in words.ENTRIES else self._names.of(name)
        if (path := self._bound.imports.get(name)) and _is_library(path):
            return words.ALIASES.get(path, path.split(".")[-1])
        return name if hasattr(builtins, name) or name in words.MODULE else self._names.of(name)

    def _attribute(self, name: str) -> str:
        ours = name in self._bound.attributes or name in self._names.functions
        return self._names.of(name) if ours and name not in words.ENTRIES else name

    def _is_ours(self, function: ast.expr) -> bool:
        """Whether the module defines the function, so that its keywords are the author's words."""
        while isinstance(function, ast.Subscript):
            function = function.value
        if isinstance(function, ast.Attribute):
            ours = function.attr in self._bound.attributes or function.attr in self._names.functions
            return ours or _first_name(function) == "functools"
        if isinstance(function, ast.Name):
            return not _is_library(self._bound.imports.get(function.id, ""))
        return True

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._name(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._name(node.arg)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._attribute(node.attr)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        ours = self._is_ours(node.func)
        for keyword in node.keywords:
            if keyword.arg and ours and keyword.arg not in words.LAUNCH_OPTIONS:
                keyword.arg = self._names.of(keyword.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._defined(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._defined(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._defined(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        return self._defined(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        return self._defined(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        return self._defined(node)

    def _defined(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar,
    ) -> ast.AST:
        if node.name:
            node.name = self._name(node.name)
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self._name(name) for name in node.names]
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [self._name(name) for name in node.names]
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            alias.asname = words.ALIASES.get(alias.name) if alias.asname else None
            if not _is_library(alias.name):
                alias.name = self._names.of(alias.name)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            alias.asname = words.ALIASES.get(path)
            if not _is_library(path) and alias.name != "*":
                alias.name = self._names.of(alias.name)
        if not _is_library(str(node.module)):
            node.module = self._names.of(str(node.module))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bytes):
            node.value = b"text"
        elif isinstance(node.value, str):
            node.value = self._string(node.value)
        return node

    def _string(self, text: str) -> str:
        if text in self._bound.names or text in self._bound.attributes or text in self._names:
            return text if text in words.ENTRIES else self._names.of(text)
        if text in words.OPTION_VALUES or _EINSUM.fullmatch(text) or not any(c.isalnum() for c in text):
            return text if text.isascii() else "text"
        if "\n" in text or (";" in text and "(" in text):
            return f"\n{_anonymise_c(_normalise_c(text), self._names)}\n"
        return "text"


def _last_name(function: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _first_name(function: ast.expr) -> str:
    """`a` of `a.b.c`."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return getattr(function, "id", "")


def _is_library(path: str) -> bool:
    return path.split(".")[0] in words.LIBRARIES
