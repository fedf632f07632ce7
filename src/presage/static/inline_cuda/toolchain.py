"""The C++ compiler for host code, and its cache in the user's cache folder: torch's precompiled headers, and the
runtime library that host code is linked to. They are made once per machine.

Only torch's headers and our own sources are compiled for the cache. That takes a minute and half a gigabyte, for each
version of torch and of the compiler. Entries that have not been used for _UNUSED_DAYS days are removed.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import secrets
import shutil
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from presage.core import machine
from presage.core.errors import PresageError
from presage.sandbox import foreign, processes, rules
from presage.sandbox.rules import Rules
from presage.static import toolkit

SOURCES = Path(__file__).parent / "cpp"
RUNTIME = "presage_inline_runtime"
"""The name of the runtime library, which is a Python extension module."""
_HOME = "PRESAGE_INLINE_CUDA"
_WHY_NOT = "PRESAGE_INLINE_CUDA_MISSING"
_FLAGS = ("-std=c++20", "-w", "-O0", "-fPIC", "-pipe")
_WITH_HEADERS = "-O1"
"""For what is compiled with the precompiled headers, and for these: -O0 would emit a thousand of their functions that
nobody calls, which takes longer than -O1 takes for the others."""
_WITH_GPU, _WITHOUT_GPU = "with_gpu", "without_gpu"
_LINKER = "linker"
"""A file with the options that choose a linker: the fast one does not find every compiler's libraries."""
_SECONDS = 600.0
_LARGEST = 4 << 30
_UNUSED_DAYS = 60


@dataclass(frozen=True)
class Torch:
    """torch's folder and version, found without importing torch."""

    folder: Path
    version: str

    @property
    def has_cuda(self) -> bool:
        return (self.folder / "lib" / "libc10_cuda.so").is_file()

    @property
    def includes(self) -> tuple[str, ...]:
        found = self.folder / "include"
        return str(found), str(found / "torch" / "csrc" / "api" / "include")


def precompile() -> None:
    """Make the cache, unless it is complete. Raises PresageError if that fails."""
    home = kept()
    if _is_whole(home):
        with contextlib.suppress(OSError):
            os.utime(home)
        return
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with _alone(home.parent / "lock"):
            if not _is_whole(home):
                _make(home)
                _remove_unused(home)
    except OSError as error:
        raise PresageError(f"cannot keep torch's precompiled headers in {home.parent}: {error.strerror}") from error


def kept() -> Path:
    """The cache's folder, named by a hash of all that it depends on. A child gets it in its environment."""
    if told := os.environ.get(_HOME):
        return Path(told)
    return machine.cache_folder() / "inline_cuda" / _identity()


def environment() -> dict[str, str]:
    """Make the cache, unless it is complete. Return the environment variables for a child: the cache and the compiler,
    since a child may find other programs than its parent; or why the cache cannot be made."""
    try:
        precompile()
        return {_HOME: str(kept()), "CXX": compiler()}
    except PresageError as error:
        return {_WHY_NOT: str(error)}


def why_not() -> str:
    """Why host code cannot be compiled here; empty if it can."""
    return "" if is_ready() else os.environ.get(_WHY_NOT) or "torch's headers were not precompiled"


def expanded(text: str, macros: Sequence[str]) -> str:
    """A source with its own macros expanded. No header is read. Raises ValueError."""
    command = [compiler(), "-E", "-x", "c++", "-nostdinc", "-undef", *macros, "-"]
    status, found, said = foreign.run_program(command, text)
    if status:
        raise ValueError(said.strip()[:500])
    return found


def is_ready() -> bool:
    """Whether everything that host code needs is in the cache."""
    try:
        return _is_whole(kept())
    except PresageError:
        return False


def host_command(
    sources: Sequence[Path], library: Path, folders: Sequence[str], macros: Sequence[str], whole: bool, has_gpu: bool
) -> list[str]:
    """The command that compiles and links host code. With `whole`, torch's and pybind11's full headers are used, which
    is slow. Without a GPU, our replacement of the CUDA runtime is linked; with one, what reports the calls of it."""
    found = torch()
    home = kept()
    before = [] if whole else ["-include", str(home / "host.h")]
    linked = [f"-l{name}" for name in ("c10", "torch_cpu", "torch", "torch_python")]
    if has_gpu:
        linked += [str(home / f"{_WITH_GPU}.o"), *(f"-Wl,--wrap={name}" for name in _wrapped())]
        linked += ["-lc10_cuda", "-ltorch_cuda", *map(str, _cuda_runtime())]
    else:  # use ours even if torch has loaded the real one
        linked += [str(home / f"{_WITHOUT_GPU}.o"), "-Wl,-Bsymbolic"]
    return [
        *(
            compiler(),
            *_FLAGS,
            *([] if whole else [_WITH_HEADERS]),
            *macros,
            *before,
            *_includes(ours_first=not whole),
            *(f"-I{folder}" for folder in folders),
        ),
        *("-shared", "-Wl,-z,now", *(home / _LINKER).read_text().split()),
        *(*map(str, sources), "-o", str(library), f"-L{found.folder / 'lib'}", *linked),
    ]


def readable() -> tuple[str, ...]:
    """The paths that a sandboxed child must read besides those of Python and the system."""
    return (str(kept()), *(str(folder) for folder in toolkit.host_includes()), *_compiler_s_own())


def _compiler_s_own() -> tuple[str, ...]:
    """The folders of a compiler that does not belong to the system: its programs, headers and libraries."""
    home = Path(os.path.realpath(compiler())).parent.parent
    if str(home) in ("/", "/usr", "/usr/local"):
        return ()
    return tuple(str(home / part) for part in ("bin", "include", "lib", "lib64", "libexec") if (home / part).is_dir())


def programs() -> tuple[str, ...]:
    """The files and folders of the programs that a sandboxed child may start: the compiler and its parts."""
    found = [compiler(), *(shutil.which(name) or "" for name in ("as", "ld", "ld.gold", "ld.bfd"))]
    folders = [folder for folder in ("/usr/lib/gcc", "/usr/libexec/gcc", "/usr/lib64/gcc") if os.path.isdir(folder)]
    beside = str(Path(os.path.realpath(compiler())).parent.parent / "libexec" / "gcc")
    places = [place for place in (*found, *folders, beside) if place and os.path.exists(place)]
    return tuple(dict.fromkeys((*places, *map(os.path.realpath, places))))


@cache
def compiler() -> str:
    found = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("g++")
    if found is None:
        raise toolkit.ToolkitError("inline CUDA needs a C++ compiler, and there is no g++; install it")
    return found


@cache
def torch() -> Torch:
    found = importlib.util.find_spec("torch")
    if found is None or not found.origin:
        raise toolkit.ToolkitError(f"torch is not installed; {toolkit.INSTALL}")
    return Torch(Path(found.origin).parent, importlib.metadata.version("torch"))


# -- the cache --------------------------------------------------------------------------------------------------------


@cache
def _identity() -> str:
    about = [compiler(), torch().version, str(torch().folder), str(torch().has_cuda), str(toolkit.host_includes())]
    about += [*_FLAGS, _WITH_HEADERS, sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX") or ""]
    for place in (Path(os.path.realpath(compiler())), torch().folder / "version.py"):
        about.append(f"{place.stat().st_size} {place.stat().st_mtime_ns}")
    content = b"".join(file.read_bytes() for file in sorted(SOURCES.rglob("*.*")) if file.suffix in (".h", ".cpp"))
    return hashlib.sha256("\n".join(about).encode() + content).hexdigest()[:24]


def _is_whole(home: Path) -> bool:
    return all(
        (home / name).is_file()
        for name in ("host.h", "host.h.gch", f"{_WITH_GPU}.o", f"{_WITHOUT_GPU}.o", _LINKER, f"{RUNTIME}.so")
    )


def _make(home: Path) -> None:
    """Make the cache in a temporary folder beside `home`, and rename that folder in the end."""
    part = home.with_name(f".{home.name}.{secrets.token_hex(8)}")
    part.mkdir()
    try:
        (part / "host.h").write_text("#include <presage_host.h>\n")
        with concurrent.futures.ThreadPoolExecutor(machine.cores()) as pool:
            for done in [pool.submit(_compile, part, *each) for each in _steps()]:
                done.result()
        _link(part)
        (part / "runtime.o").unlink()
        if home.exists():  # an incomplete cache
            shutil.rmtree(home)
        part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _steps() -> Iterator[tuple[str, list[str]]]:
    header = [*_includes(ours_first=True), "-x", "c++-header", "host.h", "-o", "host.h.gch"]
    yield "torch's headers", [compiler(), *_FLAGS, _WITH_HEADERS, *header]
    few = "-DAT_PER_OPERATOR_HEADERS"  # torch's headers then leave out its operators, of which ours use none
    for name in ("runtime", _WITH_GPU, _WITHOUT_GPU):
        source = str(SOURCES / f"{name}.cpp")
        yield f"{name}.cpp", [compiler(), *_FLAGS, few, *_includes(), "-c", source, "-o", f"{name}.o"]


def _link(part: Path) -> None:
    """Link the runtime library with the fast linker if that works, and note the choice for all host code."""
    linked = [f"-L{torch().folder / 'lib'}", *(f"-l{name}" for name in ("c10", "torch_cpu", "torch", "torch_python"))]
    for options in (["-fuse-ld=gold"], []) if shutil.which("ld.gold") else ([],):
        try:
            command = [compiler(), "-shared", *options, "runtime.o", "-o", f"{RUNTIME}.so", *linked]
            _compile(part, "our library", command)
            (part / _LINKER).write_text(" ".join(options))
            return
        except PresageError:
            if not options:
                raise


def _compile(part: Path, what: str, command: list[str]) -> None:
    includes = (str(folder) for folder in toolkit.host_includes())
    read = (*rules.system_paths(), str(torch().folder), *includes, *_compiler_s_own())
    limits = Rules(str(part), read, machine.memory(), file_bytes=_LARGEST, may_spawn=True, reserves=True)
    done = processes.run(command, limits, _SECONDS)
    if done.status:
        said = [line for line in done.output.splitlines() if "error" in line] or done.output.splitlines()
        raise PresageError(f"cannot compile {what} for inline CUDA: {' '.join(said[:2]).strip() or done.status}")


def _includes(ours_first: bool = False) -> list[str]:
    """The include options for torch's, Python's and CUDA's headers, and for ours. Ours come before torch's if
    `ours_first`, else they only replace missing ones."""
    folders = [*torch().includes, *(str(folder) for folder in toolkit.host_includes()), sysconfig.get_path("include")]
    host = [f"-I{SOURCES / 'host'}"] if ours_first else ["-idirafter", str(SOURCES / "host")]
    return [*host, *(f"-I{folder}" for folder in folders), f"-I{SOURCES}", "-idirafter", str(SOURCES / "missing")]


@cache
def _wrapped() -> tuple[str, ...]:
    """The functions whose calls are reported where there is a GPU."""
    source = (SOURCES / f"{_WITH_GPU}.cpp").read_text(encoding="utf-8")
    return tuple(re.findall(r"^PRESAGE_WRAP\w*\((\w+),", source, re.MULTILINE))


def _cuda_runtime() -> list[Path]:
    """The CUDA runtime's library from the folders of the toolkit; empty if it is not found."""
    roots = [folder.parent for folder in toolkit.includes()]
    return [place for root in roots for place in sorted(root.glob("lib*/libcudart.so.1[2-9]"))[:1]][:1]


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a file lock: one process makes the cache, and others wait."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_unused(home: Path) -> None:
    for folder in home.parent.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > _UNUSED_DAYS * 86400:
                shutil.rmtree(folder)
