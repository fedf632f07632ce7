"""Takes rights away from the calling process, for good. Runs inside the child, before any foreign code.

Each layer is independent and used where the system has it: resource limits; user, network and IPC namespaces;
Landlock for files; seccomp for system calls. `enter` returns which of them hold, and the device shows that.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys

LAYERS = ("limits", "namespaces", "landlock", "seccomp")

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38


def enter(scratch: str, memory_bytes: int, file_bytes: int, readable: list[str], may_spawn: bool) -> dict[str, bool]:
    """Enter every layer; `may_spawn` keeps process creation, which compilers need and kernels do not."""
    return separate() | confine(scratch, memory_bytes, file_bytes, readable, may_spawn)


def separate() -> dict[str, bool]:
    """Leave the caller's network, and tie our life to its own. Only a process with one thread can do this."""
    held = {"namespaces": _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC) == 0}
    # The parent must outlive us, and must be able to read our memory, which unshare has just forbidden.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return held


def confine(
    scratch: str, memory_bytes: int, file_bytes: int, readable: list[str], may_spawn: bool, by_use: bool = False
) -> dict[str, bool]:
    """Limit memory and files, and refuse system calls. Torch and a GPU's driver reserve far more address space than
    they use, so with `by_use` the limit is on what can be written to."""
    return {
        "limits": _limit(resource.RLIMIT_DATA if by_use else resource.RLIMIT_AS, memory_bytes, file_bytes),
        "landlock": _confine_files(scratch, readable),
        "seccomp": refuse_calls(kill=False, may_spawn=may_spawn),
    }


def system_paths() -> list[str]:
    """What any program needs to read: the system's libraries and tools, this Python, and a few files of /etc."""
    etc = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "passwd", "nsswitch.conf", "alternatives")
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [
        *("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/proc", "/sys", "/run/opengl-driver", "/nix"),
        *(f"/etc/{name}" for name in etc),
        *{sys.prefix, sys.base_prefix, sys.exec_prefix, package},
        *(path for path in sys.path if path.endswith(("site-packages", "dist-packages"))),
    ]


def _limit(memory: int, memory_bytes: int, file_bytes: int) -> bool:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # where memory runs out, we are the one to go
    limits = {resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 1024}
    if memory_bytes:
        limits[memory] = memory_bytes
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    return True


# -- namespaces -------------------------------------------------------------------------------------------------------

_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000

# -- Landlock: which files may be read and written --------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/dev/tty")


def _confine_files(scratch: str, readable: list[str]) -> bool:
    abi = _libc.syscall(_CREATE_RULESET, None, 0, 1)
    if abi < 1:
        return False
    every = (1 << (13, 14, 15, 15, 16, 16)[min(abi, 6) - 1]) - 1
    scope = 3 if abi >= 6 else 0  # no abstract sockets and no signals to processes outside
    attributes = struct.pack("QQQ", every, 0, scope)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        return False
    nvidia = [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith("nvidia")]
    for path in readable:
        _allow(ruleset, path, _READ & every)
    for path in (*_DEVICES, *nvidia):
        _allow(ruleset, path, (_READ | _WRITE_FILE | _IOCTL_DEV) & every)
    _allow(ruleset, scratch, every & ~_IOCTL_DEV)
    done = _libc.syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return bool(done == 0)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        access &= _FILE_ONLY
    _libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", access, fd), 0)
    os.close(fd)


# -- seccomp: which system calls may be made --------------------------------------------------------------------------

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_CLONE, _CLONE3, _KILL, _TGKILL = (56, 220), (435, 435), (62, 129), (234, 131)
_PRLIMIT, _SCHED_SETAFFINITY, _FCNTL, _PRCTL = (302, 261), (203, 122), (72, 25), (157, 167)
_F_SETSIG = 10
_NONE = 0xFFFF
_REFUSED = {
    "fork": (57, _NONE),
    "vfork": (58, _NONE),
    "execve": (59, 221),
    "execveat": (322, 281),
    "socket": (41, 198),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "open_by_handle_at": (304, 265),
    "clock_settime": (227, 112),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    # They make other processes of the same user slower.
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    # They send signals later, even to a process that is stopped.
    "timer_create": (222, 107),
    "mq_open": (240, 180),
    # They get memory that no limit counts.
    "memfd_create": (319, 279),
    "shmget": (29, 194),
}
_SPAWNING = ("fork", "vfork", "execve", "execveat")
_PRETENDED = "setpgid"
"""Where processes may be started: Ninja wants a group of its own for each. It is told that it has it, and none leaves
the group that is stopped and ended as one."""
_RET_KILL, _RET_ERRNO, _RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT_0, _ARGUMENT_1, _ARGUMENT_2 = 0, 4, 16, 24, 32
_CLONE_THREAD = 0x00010000
_SET_MODE_FILTER, _FLAG_TSYNC = 1, 1


def refuse_calls(kill: bool, may_spawn: bool = False) -> bool:
    """Refuse system calls no kernel needs: with EPERM while it is loading, by death (SIGSYS) once it is called."""
    architecture = _ARCHITECTURES.get(platform.machine())
    if architecture is None:
        return False
    code = _filter(*architecture, _RET_KILL if kill else _RET_ERRNO | errno.EPERM, may_spawn)
    program = ctypes.create_string_buffer(code, len(code))
    descriptor = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(program))
    seccomp = 277 if platform.machine() == "aarch64" else 317
    return bool(_libc.syscall(seccomp, _SET_MODE_FILTER, _FLAG_TSYNC, descriptor) == 0)


def _filter(audit: int, column: int, refuse: int, may_spawn: bool) -> bytes:
    def op(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, k)

    out = [op(_LOAD, _ARCH), op(_JUMP_EQ, audit, 1, 0), op(_RETURN, _RET_KILL), op(_LOAD, _NUMBER)]
    if column == 0:
        out += [op(_JUMP_GE, 0x40000000, 0, 1), op(_RETURN, _RET_KILL)]  # the x32 numbers would slip past the table
    for name, numbers in _REFUSED.items():
        if numbers[column] != _NONE and not (may_spawn and name in _SPAWNING):
            instead = _RET_ERRNO if may_spawn and name == _PRETENDED else refuse
            out += [op(_JUMP_EQ, numbers[column], 0, 1), op(_RETURN, instead)]
    # clone3 hides its flags behind a pointer; with ENOSYS the C library falls back to clone, which shows them.
    out += [op(_JUMP_EQ, _CLONE3[column], 0, 1), op(_RETURN, _RET_ERRNO | errno.ENOSYS)]
    if not may_spawn:
        out += [op(_JUMP_EQ, _CLONE[column], 0, 4), op(_LOAD, _ARGUMENT_0)]
        out += [op(_JUMP_SET, _CLONE_THREAD, 0, 1), op(_RETURN, _RET_ALLOW), op(_RETURN, refuse)]

    def only(argument: int, *values: int, otherwise: int = refuse) -> list[bytes]:
        tests = [op(_JUMP_EQ, value, len(values) - i) for i, value in enumerate(values)]
        return [op(_LOAD, argument), *tests, op(_RETURN, otherwise)]

    def never(argument: int, *values: int) -> list[bytes]:
        return [op(_LOAD, argument), *(part for v in values for part in (op(_JUMP_EQ, v, 0, 1), op(_RETURN, refuse)))]

    itself = os.getpid()
    # Signals only to oneself, and none that would look as if the machine or the parent had sent it.
    unsent = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)
    rules = {
        _KILL: only(_ARGUMENT_0, itself) + never(_ARGUMENT_1, *unsent),
        _TGKILL: only(_ARGUMENT_0, itself) + never(_ARGUMENT_2, *unsent),
        _FCNTL: never(_ARGUMENT_1, _F_SETSIG),
        _PRLIMIT: only(_ARGUMENT_0, 0, itself),
        # A thread may bind itself; an honest kernel may try to bind its others, which look like other processes.
        _SCHED_SETAFFINITY: only(_ARGUMENT_0, 0, itself, otherwise=_RET_ERRNO | errno.EPERM),
        _PRCTL: never(_ARGUMENT_0, _PR_SET_PDEATHSIG, _PR_SET_DUMPABLE),
    }
    for numbers, rule in rules.items():
        out += [op(_JUMP_EQ, numbers[column], 0, len(rule) + 1), *rule, op(_RETURN, _RET_ALLOW)]
    out += [op(_RETURN, _RET_ALLOW)]
    return b"".join(out)


def main() -> None:
    """`python sandbox.py SCRATCH MEMORY FILE_BYTES COMMAND...`: run a command (a compiler) inside the sandbox."""
    scratch, memory, file_bytes, *command = sys.argv[1:]
    enter(scratch, int(memory), int(file_bytes), system_paths(), may_spawn=True)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
