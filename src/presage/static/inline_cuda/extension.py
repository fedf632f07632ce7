"""Replaces torch.utils.cpp_extension.load_inline and load, without nvcc: sources are split, the host part is compiled
with precompiled headers, and device code is compiled when it is launched."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import presage.static.inline_cuda.host_code as host_code
import presage.static.inline_cuda.toolchain as toolchain
from presage.core.errors import PresageError
from presage.static import nvrtc, ptx
from presage.static.inline_cuda.device_code import DeviceCode, Unit, options_of
from presage.static.inline_cuda.host_code import Settings, Text
from presage.static.inline_cuda.lexer import tokens
from presage.static.inline_cuda.splitting import Parts, SplitError, needs_expanding, split, with_macros_expanded

Size = tuple[int, int, int]
_LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.MULTILINE)
_BOUND_TWICE = "error: the module is bound twice, by `functions` and by PYBIND11_MODULE"
_DEEPEST = 8
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
"""Bytes of a parameter by the end of its type in PTX."""


@dataclass(frozen=True)
class Configuration:
    """How a kernel is launched."""

    grid: Size
    block: Size
    shared: int = 0
    """Bytes of dynamic shared memory."""
    stream: int = 0
    cluster: Size = (1, 1, 1)
    cooperative: bool = False
    overlapping: bool = False
    """Whether the kernel may start before the previous launch has ended."""


class Launcher(Protocol):
    """Receives reports of what host code does to the device, in order."""

    def launch(self, code: DeviceCode, name: str, how: Configuration, parameters: Sequence[bytes]) -> None:
        """`name` is the kernel's name in the cubin. Each parameter is the bytes that the kernel receives."""

    def copy(self, kind: str, destination: int, source: int, size: int) -> None:
        """`kind` is `host_to_device` or the like. Host memory can be read during the call."""

    def to_variable(self, unit: Unit, name: str, offset: int, source: int, size: int, stream: int) -> None:
        """A copy to a variable of the device, from `offset` on. The unit may not be compiled yet."""

    def fill(self, address: int, value: int, size: int) -> None: ...

    def sync(self, what: str) -> None:
        """Host code waits for the device."""

    def other(self, what: str) -> None:
        """Host code calls a function of CUDA's run time whose effects are not reported. Only where there is a GPU."""


class NotSupportedError(RuntimeError):
    """Host code does something that cannot be traced."""


class CompileError(RuntimeError):
    """A kernel of an extension does not compile. Torch reports that earlier, while it builds the extension."""


class Extensions:
    """Builds extensions, and reports to a launcher what they do."""

    def __init__(self, launcher: Launcher, arch: str, has_gpu: bool, properties: Callable[[str], int]) -> None:
        """properties: returns a property of the device, as torch.cuda gives it, by name."""
        self._launcher, self.arch, self._properties = launcher, arch, properties
        self._has_gpu = has_gpu
        self._units: dict[str, Unit] = {}
        self._built: dict[tuple[Any, ...], ModuleType | str | Exception] = {}
        self._memory = 1 << 60
        self.failures: list[str] = []
        self.notes: dict[str, None] = {}

    def load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str] = "",
        cuda_sources: str | Sequence[str] | None = None,
        functions: Any = None,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: Any = None,
        *_: Any,
        is_python_module: bool = True,
        **__: Any,
    ) -> Any:
        """Like torch's. Raises RuntimeError where torch's does, or if the source cannot be built here."""
        cpp, cuda = _joined(cpp_sources), _joined(cuda_sources or "")
        try:
            bindings = _bindings(cpp, functions)
        except ValueError as error:
            raise self._failed(name, error) from error
        if bindings and "PYBIND11_MODULE" in _words(cpp) | _words(cuda):
            raise self._failed(name, ValueError(_BOUND_TWICE))
        sources = [("main.cpp", cpp + bindings, False), *([("cuda.cu", cuda, True)] if cuda.strip() else [])]
        folders = _strings(extra_include_paths)
        return self._load(name, sources, extra_cflags, extra_cuda_cflags, folders, is_python_module)

    def load(
        self,
        name: str,
        sources: Any,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: Any = None,
        *_: Any,
        is_python_module: bool = True,
        **__: Any,
    ) -> Any:
        places = [Path(place) for place in _strings(sources)]
        folders = [*_strings(extra_include_paths), *dict.fromkeys(str(place.parent.absolute()) for place in places)]
        texts = [(place.name, _with_local_headers(place, folders), place.suffix in (".cu", ".cuh")) for place in places]
        return self._load(name, texts, extra_cflags, extra_cuda_cflags, folders, is_python_module)

    def _load(
        self,
        name: str,
        sources: Sequence[tuple[str, str, bool]],
        cflags: Sequence[str] | None,
        cuda_flags: Sequence[str] | None,
        folders: Sequence[str],
        is_module: bool,
    ) -> Any:
        """Return an extension, or the path of a library that is no Python module. Like torch, build it only once."""
        asked = (name, *sources, *(cflags or ()), *(cuda_flags or ()), *folders, is_module)
        if asked not in self._built:
            self._built[asked] = self._build(name, sources, cflags or (), cuda_flags or (), folders, is_module)
        if isinstance(found := self._built[asked], Exception):
            raise self._failed(name, found) from found
        return found

    def _build(
        self,
        name: str,
        sources: Sequence[tuple[str, str, bool]],
        cflags: Sequence[str],
        cuda_flags: Sequence[str],
        folders: Sequence[str],
        is_module: bool,
    ) -> ModuleType | str | Exception:
        """Build an extension. Return it, or the error if it cannot be built."""
        macros = [flag for flag in cflags if re.fullmatch(r"-[DU]\w.*", flag)]
        of_cuda = [flag for flag in cuda_flags if re.fullmatch(r"-[DU](?!__CUDA_NO_)\w.*", flag)]
        try:
            if missing := toolchain.why_not():
                raise host_code.BuildError(missing)
            texts = [self._text(name, *source, options_of(cuda_flags), folders) for source in sources]
            settings = Settings(folders, [*macros, *of_cuda], self._has_gpu)
            library, whole = host_code.build(name, texts, settings)
            host_code.runtime().set_reporter(self._report)
            if not is_module:
                return host_code.load_operators(library)
            return host_code.load(name, library, whole, _nothing if self._has_gpu else place_tensors)
        except (host_code.BuildError, SplitError, ImportError, OSError, PresageError) as error:
            return error

    def _failed(self, name: str, error: Exception) -> RuntimeError:
        failure = f"extension '{name}': {error}"
        if failure not in self.failures:
            self.failures.append(failure)
        return RuntimeError(f"Error building extension '{name}': {error}")

    def _text(
        self, name: str, file: str, source: str, is_cuda: bool, options: Sequence[str], folders: Sequence[str]
    ) -> Text:
        if not is_cuda:
            return Text(file, source)
        parts = self._split(source, file, options)
        unit = f"{name}.{len(self._units)}"
        self._units[unit] = Unit(parts.device, file, self.arch, parts.kernels, options, folders)
        return Text(file, parts.host, unit)

    def _split(self, source: str, file: str, options: Sequence[str]) -> Parts:
        """Split a source. If macros define device functions, they are expanded before, as each side sees them."""
        if not needs_expanding(source):
            return split(source)
        macros = [option for option in options if option.startswith(("-D", "-U"))]
        capability = re.sub(r"\D", "", self.arch)
        host = split(with_macros_expanded(source, file, macros))
        device = split(with_macros_expanded(source, file, [*macros, f"-D__CUDA_ARCH__={capability}0", "-D__CUDACC__"]))
        return Parts(device.device, host.host, host.kernels)

    # -- what host code reports ---------------------------------------------------------------------------------------

    def _report(self, kind: str, arguments: Any) -> Any:
        return getattr(self, f"_on_{kind}")(*arguments)

    def _on_launch(self, unit: str, kernel: str, parameters: Sequence[bytes], *how: Any) -> None:
        self.launch(self._units[unit], kernel, Configuration(*how), parameters)

    def launch(self, unit: Unit, kernel: str, how: Configuration, parameters: Sequence[bytes]) -> None:
        """Compile the kernel, unless that was done before, and report the launch."""
        code, lowered = self.compiled(unit, kernel)
        self._launcher.launch(code, lowered, how, parameters)

    def parameter_sizes(self, unit: Unit, kernel: str) -> list[int] | None:
        """The bytes of each parameter of a kernel, 0 where its type does not tell; None if they are not known. Raises
        CompileError."""
        code, lowered = self.compiled(unit, kernel)
        entry = ptx.parse(code.ptx, lowered)
        return [_SIZES.get(kind[1:], 0) if kind != "b8" else 0 for kind in entry.parameters.values()] if entry else None

    def compiled(self, unit: Unit, kernel: str) -> tuple[DeviceCode, str]:
        """A kernel's code, and the kernel's name in it. Raises CompileError."""
        try:
            return unit.code(kernel)
        except nvrtc.CompileError as error:
            self.failures.append(f"kernel `{kernel}`: {error}")
            raise CompileError(f"the kernel `{kernel}` does not compile: {error}") from error

    def _on_copy(self, kind: str, destination: int, source: int, size: int) -> None:
        self._launcher.copy(kind, destination, source, size)

    def _on_symbol(self, unit: str, symbol: str, source: int, size: int, offset: int, stream: int) -> None:
        self._launcher.to_variable(self._units[unit], symbol, offset, source, size, stream)

    def _on_fill(self, address: int, value: int, size: int) -> None:
        self._launcher.fill(address, value, size)

    def _on_sync(self, what: str) -> None:
        self._launcher.sync(what)

    def _on_other(self, what: str) -> None:
        self._launcher.other(what)

    def _on_allocate(self, size: int) -> int:
        """Return an address that no tensor has."""
        address, self._memory = self._memory, self._memory + (size + 511) // 512 * 512
        return address

    def _on_property(self, name: str) -> int:
        return self._properties(name)

    def _on_guess(self, what: str) -> None:
        self.notes[f"{what} was answered without knowing a kernel's registers"] = None

    def _on_unsupported(self, what: str) -> None:
        self.failures.append(f"host code calls {what}, which is not supported")
        raise NotSupportedError(self.failures[-1])


def has_runtime() -> bool:
    """Whether an extension was built in this process, so that the run time for host code is loaded."""
    return toolchain.RUNTIME in sys.modules


def place_tensors(values: Any) -> None:
    """Give tensors without memory the addresses that Python code sees."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._pytree import tree_leaves

    for value in tree_leaves(values):
        if isinstance(value, FakeTensor):
            place(value)


def _nothing(values: Any) -> None:
    """Do nothing: tensors on a real GPU have their addresses."""


def place(tensor: Any) -> None:
    base = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
    host_code.runtime().place(tensor, base)


# -- sources ----------------------------------------------------------------------------------------------------------


def _joined(sources: str | Sequence[str]) -> str:
    return sources if isinstance(sources, str) else "\n".join(sources)


def _strings(places: Any) -> list[str]:
    return [] if places is None else [str(places)] if isinstance(places, str | Path) else [str(each) for each in places]


def _words(source: str) -> set[str]:
    return {token.text for token in tokens(source) if token.kind == "word"}


def _bindings(cpp: str, functions: Any) -> str:
    """The bindings that torch adds to the C++ source. Raises ValueError if the source does not name each function."""
    if functions is None:
        return ""
    named = {functions: functions} if isinstance(functions, str) else functions
    named = dict(named) if isinstance(named, dict) else {each: each for each in named}
    known = _words(cpp)
    lines = []
    for function, text in named.items():
        if function.split("::")[-1] not in known:
            raise ValueError(
                f"main.cpp: error: '{function}' was not declared in this scope: cpp_sources must declare each of "
                "`functions`"
            )
        quoted = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        lines.append(f'm.def("{function}", {function}, "{quoted}");')
    return "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + "\n".join(lines) + "\n}\n"


def _with_local_headers(place: Path, folders: Sequence[str], depth: int = 0, seen: set[Path] | None = None) -> str:
    """A file's text with its own headers inserted, since they may contain kernels, too."""
    seen = set() if seen is None else seen

    def included(match: re.Match[str]) -> str:
        found = next((Path(f, match[1]) for f in (str(place.parent), *folders) if Path(f, match[1]).is_file()), None)
        if found is None or depth > _DEEPEST:
            return match[0]
        if found.resolve() in seen:
            return ""
        seen.add(found.resolve())
        return _with_local_headers(found, folders, depth + 1, seen).replace("#pragma once", "")

    return _LOCAL_INCLUDE.sub(included, place.read_text(encoding="utf-8"))
