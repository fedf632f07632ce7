"""The C++ compiler for host code, and what is made once for it on a machine and kept in the user's cache: torch's
headers, precompiled, and the library that host code is linked to.

Only torch's headers and our own sources are compiled for that. It takes a minute and half a gigabyte, for each version
of torch and of the compiler; what has not been used for long is removed.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
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
"""The name of the library, which is a module of Python's."""
_HOME = "PRESAGE_INLINE_CUDA"
_WHY_NOT = "PRESAGE_INLINE_CUDA_MISSING"
_FLAGS = ("-std=c++20", "-w", "-O0", "-fPIC", "-pipe")
_WITHOUT_GPU = "without_gpu"
_LINKER = "linker"
"""A file with the options that choose one: the fast one does not find every compiler's libraries."""
_SECONDS = 600.0
_LARGEST = 4 << 30
_UNUSED_DAYS = 60


@dataclass(frozen=True)
class Torch:
    """Where torch lies, which is found without importing it."""

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
    """Make what is not there yet. Raises PresageError where it cannot be made."""
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
    """The folder for what is made here, by all that it depends on; a child is told it."""
    if told := os.environ.get(_HOME):
        return Path(told)
    return machine.cache_folder() / "inline_cuda" / _identity()


def environment() -> dict[str, str]:
    """Make what is not there yet, and say what a child must be told: where it is, or why it cannot be made. A child may
    find other programs than its parent."""
    try:
        precompile()
        return {_HOME: str(kept()), "CXX": compiler()}
    except PresageError as error:
        return {_WHY_NOT: str(error)}


def why_not() -> str:
    """Why host code cannot be compiled here; empty where it can."""
    return "" if is_ready() else os.environ.get(_WHY_NOT) or "torch's headers were not precompiled"


def expanded(text: str, macros: Sequence[str]) -> str:
    """A source in which its own macros are expanded, with no header read. Raises ValueError."""
    command = [compiler(), "-E", "-x", "c++", "-nostdinc", "-undef", *macros, "-"]
    status, found, said = foreign.run_program(command, text)
    if status:
        raise ValueError(said.strip()[:500])
    return found


def is_ready() -> bool:
    """Whether all that host code needs is there."""
    try:
        return _is_whole(kept())
    except PresageError:
        return False


def host_command(
    sources: Sequence[Path], library: Path, folders: Sequence[str], macros: Sequence[str], whole: bool, has_gpu: bool
) -> list[str]:
    """Compiles and links host code. `whole`: with torch's and pybind11's headers as they are, which takes long.
    Without a GPU, CUDA's run time is ours."""
    found = torch()
    home = kept()
    before = [] if whole else ["-include", str(home / "host.h")]
    linked = [f"-l{name}" for name in ("c10", "torch_cpu", "torch", "torch_python")]
    if has_gpu:
        linked += ["-lc10_cuda", "-ltorch_cuda", *map(str, _cuda_runtime())]
    else:  # bound to it even where torch has loaded the real one
        linked += [str(home / f"{_WITHOUT_GPU}.o"), "-Wl,-Bsymbolic"]
    return [
        *(
            compiler(),
            *_FLAGS,
            *macros,
            *before,
            *_includes(ours_first=not whole),
            *(f"-I{folder}" for folder in folders),
        ),
        *("-shared", "-Wl,-z,now", *(home / _LINKER).read_text().split()),
        *(*map(str, sources), "-o", str(library), f"-L{found.folder / 'lib'}", *linked),
    ]


def readable() -> tuple[str, ...]:
    """What a confined child needs to read beside Python and the system."""
    return (str(kept()), *(str(folder) for folder in toolkit.host_includes()), *_compiler_s_own())


def _compiler_s_own() -> tuple[str, ...]:
    """The folders of a compiler that does not belong to the system: its programs, headers and libraries."""
    home = Path(os.path.realpath(compiler())).parent.parent
    if str(home) in ("/", "/usr", "/usr/local"):
        return ()
    return tuple(str(home / part) for part in ("bin", "include", "lib", "lib64", "libexec") if (home / part).is_dir())


def programs() -> tuple[str, ...]:
    """What it may start: the compiler and its parts, from files and folders."""
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


# -- what is kept -----------------------------------------------------------------------------------------------------


@cache
def _identity() -> str:
    about = [compiler(), torch().version, str(torch().folder), str(torch().has_cuda), str(toolkit.host_includes())]
    about += [*_FLAGS, sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX") or ""]
    for place in (Path(os.path.realpath(compiler())), torch().folder / "version.py"):
        about.append(f"{place.stat().st_size} {place.stat().st_mtime_ns}")
    content = b"".join(file.read_bytes() for file in sorted(SOURCES.rglob("*.*")) if file.suffix in (".h", ".cpp"))
    return hashlib.sha256("\n".join(about).encode() + content).hexdigest()[:24]


def _is_whole(home: Path) -> bool:
    return all(
        (home / name).is_file() for name in ("host.h", "host.h.gch", f"{_WITHOUT_GPU}.o", _LINKER, f"{RUNTIME}.so")
    )


def _make(home: Path) -> None:
    """All of it in a folder beside, which then gets its name."""
    part = home.with_name(f".{home.name}.{secrets.token_hex(8)}")
    part.mkdir()
    try:
        (part / "host.h").write_text("#include <presage_host.h>\n")
        with concurrent.futures.ThreadPoolExecutor(machine.cores()) as pool:
            for done in [pool.submit(_compile, part, *each) for each in _steps()]:
                done.result()
        _link(part)
        (part / "runtime.o").unlink()
        if home.exists():  # what is left of one that was not whole
            shutil.rmtree(home)
        part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _steps() -> Iterator[tuple[str, list[str]]]:
    header = [*_includes(ours_first=True), "-x", "c++-header", "host.h", "-o", "host.h.gch"]
    yield "torch's headers", [compiler(), *_FLAGS, *header]
    for name in ("runtime", _WITHOUT_GPU):
        yield f"{name}.cpp", [compiler(), *_FLAGS, *_includes(), "-c", str(SOURCES / f"{name}.cpp"), "-o", f"{name}.o"]


def _link(part: Path) -> None:
    """With the fast linker if that works, and all host code then as well."""
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
    """Torch's, Python's and CUDA's headers; and ours, which stand before torch's or only for those that are missing."""
    folders = [*torch().includes, *(str(folder) for folder in toolkit.host_includes()), sysconfig.get_path("include")]
    host = [f"-I{SOURCES / 'host'}"] if ours_first else ["-idirafter", str(SOURCES / "host")]
    return [*host, *(f"-I{folder}" for folder in folders), f"-I{SOURCES}", "-idirafter", str(SOURCES / "missing")]


def _cuda_runtime() -> list[Path]:
    """CUDA's run time as torch brings it."""
    roots = [folder.parent for folder in toolkit.includes()]
    return [place for root in roots for place in sorted(root.glob("lib*/libcudart.so.1[2-9]"))[:1]][:1]


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process makes it, and others wait for it."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_unused(home: Path) -> None:
    for folder in home.parent.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > _UNUSED_DAYS * 86400:
                shutil.rmtree(folder)
