"""Normalised source: what a kernel does, without what it says about itself. Comments are not evidence."""

from __future__ import annotations

import ast
import hashlib
import re

_C_TOKENS = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<literal>R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
      | (?P<space>\s+)
      | (?P<code>\w+|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_HEADER_LINE = re.compile(r"^\s*(?://|#)\s*presage:\s*(?:entry|grid|block|shared|scratch)\b.*$", re.MULTILINE)


def normalise(source: str, language: str) -> str:
    """The source with comments, docstrings and layout removed; launch declarations are kept, being code.

    >>> normalise("int  f(){ return 1; } // 2x faster", "c")
    'int f(){return 1;}'
    """
    if language in ("c", "cuda"):
        launch = "\n".join(" ".join(line.split()) for line in _HEADER_LINE.findall(source))
        code = _normalise_c(source)
        return f"{launch}\n{code}" if launch else code
    return _normalise_python(source)


def digest(source: str, language: str) -> str:
    """A kernel's identity: the hash of its normalised source and language."""
    text = f"{language}\n{normalise(source, language)}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _normalise_c(source: str) -> str:
    out: list[str] = []
    space = False
    for match in _C_TOKENS.finditer(source):
        kind, text = match.lastgroup, match[0]
        if kind == "tag":
            kind = "literal"
        if kind in ("comment", "space"):
            space = True
            continue
        if kind == "directive":
            text = _normalise_c_directive(text)
            if out and not out[-1].endswith("\n"):
                out.append("\n")
            out.append(text + "\n")
            space = False
            continue
        if space and out and _is_word(out[-1][-1]) and _is_word(text[0]):
            out.append(" ")
        out.append(text)
        space = False
    return "".join(out).strip()


def _normalise_c_directive(text: str) -> str:
    """A preprocessor line on one line, without comments; its spacing can carry meaning, so it is only collapsed."""
    text = text.replace("\\\n", " ")
    kept = [
        m[0] for m in _C_TOKENS.finditer(text.lstrip().removeprefix("#")) if m.lastgroup != "comment"
    ]
    return "#" + " ".join("".join(kept).split())


def _is_word(character: str) -> bool:
    return character.isalnum() or character in "_\"'"


def _normalise_python(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
