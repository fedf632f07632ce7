"""Removes rights from the calling process, for good. Runs inside the child, before any foreign code.

Each layer is independent and is used if the system has it: resource limits; user, network, IPC and mount namespaces; a
file system that holds only what the rules name, read-only except for the child's folder; no capabilities; Landlock;
seccomp. The layers that are in force are reported, and devices show them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import socket
import struct
from collections.abc import Iterable

from presage.sandbox import syscalls
from presage.sandbox.rules import Rules

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38


def separate(rules: Rules) -> dict[str, bool]:
    """Leave the caller's network, files and rights, and end when the caller ends. Must be called while the process has
    only one thread. Returns which layers are in force."""
    if rules.nice:
        os.nice(rules.nice)
    namespaces = _unshare()
    held = {"namespaces": namespaces, "mounts": namespaces and _mount_only(rules)}
    _drop_capabilities()
    # End with the parent. The parent must also be able to read our memory, which unshare has just forbidden.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return held


def confine(rules: Rules, alone: bool, counted: bool, listener: socket.socket | None) -> dict[str, bool]:
    """Limit memory and files, and refuse system calls. Returns which layers are in force. `alone`: whether no files but
    our own can be changed, so that changes of modes and times are allowed. `counted`: whether the system counts all our
    memory, including shared memory."""
    return {
        "limits": _limit(rules),
        "landlock": _confine_files(rules),
        "seccomp": _filter_calls(rules, alone, counted, listener),
    }


def _limit(rules: Rules) -> bool:
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # if memory runs out, this process is killed first
    limits = {resource.RLIMIT_FSIZE: rules.file_bytes, resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 1024}
    if rules.memory_bytes:
        limits[resource.RLIMIT_DATA if rules.reserves else resource.RLIMIT_AS] = rules.memory_bytes
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    return True


# -- namespaces -------------------------------------------------------------------------------------------------------

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC = 0x00020000, 0x10000000, 0x40000000, 0x08000000


def _unshare() -> bool:
    """Enter namespaces of our own. Returns whether that worked. A privileged process can do so even if users may not
    make namespaces."""
    ours = _CLONE_NEWNS | _CLONE_NEWNET | _CLONE_NEWIPC
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | ours) != 0:
        return bool(_libc.unshare(ours) == 0)
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # otherwise we may not write the files below
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


_CAPABILITY_VERSION = 0x20080522


def _drop_capabilities() -> None:
    """Drop all capabilities: those that come with a namespace of our own, and an administrator's."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    capset = 91 if platform.machine() == "aarch64" else 126
    _libc.syscall(capset, struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24))


# -- mounts: which files are there ------------------------------------------------------------------------------------

_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
_MNT_DETACH, _AT_RECURSIVE, _AT_FDCWD = 2, 0x8000, -100
_MOUNT_SETATTR = 442
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_OLD = "/.before"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")
_DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1"}


def _mount_only(rules: Rules) -> bool:
    """Replace the file system by one with only the paths that the rules name, at the same places, and read-only except
    for the scratch folder. Returns False if the system does not allow that; then nothing has been moved."""
    start = next((folder for folder in ("/tmp", rules.scratch) if os.path.isdir(folder)), "")
    if not start or _libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None) != 0:
        return False
    plan = _plan(rules)  # resolve links before anything is moved
    if _libc.mount(b"tmpfs", start.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=1m,mode=755") != 0:
        return False
    os.mkdir(start + _OLD)
    os.chdir(start)
    pivot_root = 41 if platform.machine() == "aarch64" else 155
    if _libc.syscall(pivot_root, b".", _OLD[1:].encode()) != 0:
        os.chdir("/")
        _libc.umount2(start.encode(), _MNT_DETACH)
        return False
    os.chdir("/")
    for place, source in plan.items():
        # /proc is writable, since the driver of a GPU writes there. Landlock protects it afterwards.
        writable = place in (rules.scratch, "/proc") or place.startswith("/dev/")
        _bind(_OLD + source, place, writable)
    for name, target in _DEVICE_LINKS.items():
        if not os.path.lexists(f"/dev/{name}"):
            os.symlink(target, f"/dev/{name}")
    _libc.umount2(_OLD.encode(), _MNT_DETACH)
    os.rmdir(_OLD)
    _set_attributes("/", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=False)
    os.chdir(rules.scratch)
    return True


def _plan(rules: Rules) -> dict[str, str]:
    """For each path of the new file system, its real path now. A path inside another one is left out, since it comes
    with that."""
    system = ("/proc", "/sys" if rules.uses_gpu else "/sys/devices/system", *DEVICES, *_gpu_devices(rules))
    wanted = dict.fromkeys(os.path.normpath(path) for path in (*rules.readable, *system) if os.path.isabs(path))
    wanted |= dict.fromkeys(os.path.realpath(path) for path in tuple(wanted))
    plan: dict[str, str] = {}
    for place in sorted(wanted, key=len):
        if os.path.exists(place) and not any(place == held or place.startswith(f"{held}/") for held in plan):
            plan[place] = os.path.realpath(place)
    return {**plan, rules.scratch: os.path.realpath(rules.scratch)}


def _bind(source: str, place: str, writable: bool) -> None:
    if not os.path.exists(place):
        if os.path.isdir(source):
            os.makedirs(place)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_CLOEXEC, 0o600))
    if _libc.mount(source.encode(), place.encode(), None, _MS_BIND | _MS_REC, None) == 0 and not writable:
        _set_attributes(place, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=True)


def _set_attributes(place: str, attributes: int, recursive: bool) -> None:
    """Set the attributes of a mount. A mount that cannot be made read-only is removed."""
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    if _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, place.encode(), flags, wanted, len(wanted)) != 0:
        _libc.umount2(place.encode(), _MNT_DETACH)


def _gpu_devices(rules: Rules) -> list[str]:
    if not rules.uses_gpu:
        return []
    return [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith("nvidia")]


# -- Landlock: which files may be read and written --------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_PROC = ("cpuinfo", "meminfo", "stat", "filesystems", "version", "loadavg", "uptime", "devices", "driver", "sys/vm")


def _confine_files(rules: Rules) -> bool:
    abi = _libc.syscall(_CREATE_RULESET, None, 0, 1)
    if abi < 1:
        return False
    every = (1 << (13, 14, 15, 15, 16, 16)[min(abi, 6) - 1]) - 1
    network = 3 if abi >= 4 else 0  # no TCP
    scope = 3 if abi >= 6 else 0  # no abstract sockets and no signals to processes outside
    attributes = struct.pack("QQQ", every, network, scope)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        return False
    read = _READ_FILE | _READ_DIR
    if rules.sees_itself:
        # Held open: the system may forget these files and make new ones, which the rules would not cover.
        itself = (f"/proc/{os.getpid()}", f"/proc/{os.getppid()}/stat")
        _allow(ruleset, itself, read & every, keep_open=True)
        _allow(ruleset, (f"/proc/{name}" for name in _PROC), read & every)
        _allow(ruleset, ("/sys" if rules.uses_gpu else "/sys/devices/system",), read & every)
    _allow(ruleset, rules.readable, (read if rules.programs is not None else read | _EXECUTE) & every)
    _allow(ruleset, rules.programs or (), (read | _EXECUTE) & every)
    _allow(ruleset, (*DEVICES, *_gpu_devices(rules)), (read | _WRITE_FILE | _IOCTL_DEV) & every)
    _allow(ruleset, (rules.scratch,), every & ~(_IOCTL_DEV | (_EXECUTE if rules.programs is not None else 0)))
    done = _libc.syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return bool(done == 0)


def _allow(ruleset: int, paths: Iterable[str], access: int, keep_open: bool = False) -> None:
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        wanted = access if os.path.isdir(path) else access & _FILE_ONLY
        _libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", wanted, fd), 0)
        if not keep_open:
            os.close(fd)


# -- seccomp: which system calls may be made --------------------------------------------------------------------------

_SET_MODE_FILTER = 1
_TSYNC, _NEW_LISTENER, _TSYNC_ESRCH = 1, 8, 16


def _filter_calls(rules: Rules, alone: bool, counted: bool, listener: socket.socket | None) -> bool:
    """Install the seccomp filter for every thread. With a listener, send its descriptor to the parent and keep no
    copy."""
    if platform.machine() not in syscalls.ARCHITECTURES:
        return False
    if listener is not None:
        heard = _install(rules, alone, counted, notifies=True)
        if heard >= 0:
            socket.send_fds(listener, [b"listener"], [heard])
            os.close(heard)
            listener.close()
            return True
        listener.close()
    return _install(rules, alone, counted, notifies=False) == 0


def _install(rules: Rules, alone: bool, counted: bool, notifies: bool) -> int:
    code = syscalls.filter_code(platform.machine(), rules.may_spawn, rules.uses_gpu, alone, counted, notifies)
    program = ctypes.create_string_buffer(code, len(code))
    descriptor = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(program))
    seccomp = 277 if platform.machine() == "aarch64" else 317
    flags = _TSYNC | (_NEW_LISTENER | _TSYNC_ESRCH if notifies else 0)
    return int(_libc.syscall(seccomp, _SET_MODE_FILTER, flags, descriptor))
