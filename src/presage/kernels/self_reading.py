"""Tells whether a Python module could read its own text: docstrings, comments or line numbers. If so, they are part of
its identity.

The check is conservative: a module is plain only if it uses nothing that might read text. A false alarm costs little:
the module's comments are then part of its identity.
"""

from __future__ import annotations

import ast

_LIBRARIES = {
    "__future__", "collections", "dataclasses", "functools", "itertools", "math", "numpy", "torch", "triton", "typing",
}  # fmt: skip
_READING_BUILTINS = {
    "__import__", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "help", "input",
    "locals", "open", "setattr", "vars",
}  # fmt: skip
_PLAIN_DUNDERS = {"__init__", "__call__", "__name__", "__main__", "__all__", "__enter__", "__exit__", "__future__"}
_READING_ATTRIBUTES = {
    # modules that are attributes of libraries
    "abc", "ast", "builtins", "code", "codecs", "copyreg", "ctypes", "ctypeslib", "dis", "gc", "glob", "hub",
    "importlib", "inspect", "io", "lib", "linecache", "logging", "marshal", "mmap", "operator", "os", "overrides",
    "package", "path", "pathlib", "pickle", "pkgutil", "platform", "posix", "re", "reprlib", "runpy", "runtime",
    "shutil", "subprocess", "sys", "tempfile", "testing", "textwrap", "threading", "token", "tokenize", "tools",
    "traceback", "types", "warnings", "weakref", "zipfile",
    # attributes that read files, or that make or inspect names, functions and frames
    "DataSource", "WRAPPER_ASSIGNMENTS", "attrgetter", "format", "format_map", "from_file", "fromfile", "fromregex",
    "fx", "genfromtxt", "load", "loadtxt", "memmap", "methodcaller", "open_memmap", "read", "read_text", "script",
    "source", "trace", "update_wrapper", "wraps",
    # attributes in which Triton keeps a kernel's text
    "cache_key", "hash", "raw_src", "src", "starting_line_number",
}  # fmt: skip


def reads_itself(tree: ast.AST) -> bool:
    """Whether anything in the module could distinguish its text from another text with the same code.

    >>> reads_itself(ast.parse("import torch\\nx = torch.zeros(1)"))
    False
    >>> reads_itself(ast.parse("exec(__doc__)"))
    True
    """
    nodes = list(ast.walk(tree))
    of_triton = {id(plain) for node in nodes if (plain := _of_triton(node))}
    return any(_could_read(node) for node in nodes if id(node) not in of_triton)


def _of_triton(node: ast.AST) -> ast.AST | None:
    """The node that is harmless because it is Triton's: `tl.load`, which loads memory, or `getattr(tl, name)`."""
    match node:
        case ast.Attribute(value=ast.Name(id="tl"), attr="load"):
            return node
        case ast.Call(func=ast.Name(id="getattr") as function, args=[ast.Name(id="tl"), _], keywords=[]):
            return function
    return None


def _could_read(node: ast.AST) -> bool:
    match node:
        case (
            ast.Name(id="tl", ctx=ast.Store())
            | ast.arg(arg="tl")
            | ast.FunctionDef(name="tl")
            | ast.ClassDef(name="tl")
        ):
            return True  # `tl` is not Triton's language here
        case ast.ExceptHandler(name="tl") | ast.MatchAs(name="tl") | ast.MatchStar(name="tl"):
            return True
        case ast.Name(id=name):
            return name in _READING_BUILTINS or _is_hidden(name)
        case ast.Attribute(attr=name):
            return name in _READING_ATTRIBUTES or _is_hidden(name)
        case ast.alias(name=name, asname=known_as):
            parts = name.split(".")
            is_another = (known_as or name) == "tl" and name not in ("triton.language", "language")
            return is_another or any(part in _READING_ATTRIBUTES or _is_hidden(part) for part in parts)
        case ast.Import(names=names):
            return any(alias.name.split(".")[0] not in _LIBRARIES for alias in names)
        case ast.ImportFrom(module=module, level=level, names=names):
            parts = (module or "").split(".")
            is_known = level == 0 and parts[0] in _LIBRARIES and names[0].name != "*"
            return not is_known or any(part in _READING_ATTRIBUTES for part in parts)
    return False


def _is_hidden(name: str) -> bool:
    """Whether a name belongs to Python's internals: special names, and attributes of frames and code objects."""
    if name.startswith("__"):
        return name not in _PLAIN_DUNDERS
    return name.startswith(("co_", "f_", "tb_", "gi_", "cr_", "ag_", "_sys", "_os", "_C", "_getframe"))
