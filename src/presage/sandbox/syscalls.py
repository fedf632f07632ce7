"""Which system calls a confined child may make: the tables, and the seccomp filter that is built from them.

The filter is an allow-list. A call that is in no table gets ENOSYS, so that libraries fall back to older calls. A call
that has no honest use in a kernel is refused, or passed to the parent, which decides (see `listener`).
"""

from __future__ import annotations

import errno
import os
import platform
import signal
import struct

Numbers = tuple[int | None, int | None]
"""A call's number on x86_64 and on aarch64; None where there is no such call."""


def _table(text: str) -> dict[str, Numbers]:
    def number(digits: str) -> int | None:
        return int(digits) if digits else None

    return {name: (number(x86), number(arm)) for name, x86, arm in (entry.split(":") for entry in text.split())}


ALLOWED = _table("""
    read:0:63 write:1:64 open:2: openat:257:56 openat2:437:437 creat:85: close:3:57 close_range:436:436 lseek:8:62
    pread64:17:67 pwrite64:18:68 readv:19:65 writev:20:66 preadv:295:69 pwritev:296:70 preadv2:327:286
    pwritev2:328:287 stat:4: fstat:5:80 lstat:6: newfstatat:262:79 statx:332:291 statfs:137:43 fstatfs:138:44
    access:21: faccessat:269:48 faccessat2:439:439 readlink:89: readlinkat:267:78 getdents:78: getdents64:217:61
    getcwd:79:17 chdir:80:49 fchdir:81:50 dup:32:23 dup2:33: dup3:292:24 pipe:22: pipe2:293:59 flock:73:32
    fsync:74:82 fdatasync:75:83 sync_file_range:277:84 ftruncate:77:46 truncate:76:45 fallocate:285:47
    fadvise64:221:223 readahead:187:213 mkdir:83: mkdirat:258:34 rmdir:84: unlink:87: unlinkat:263:35 rename:82:
    renameat:264:38 renameat2:316:276 link:86: linkat:265:37 symlink:88: symlinkat:266:36 umask:95:166
    copy_file_range:326:285 sendfile:40:71 splice:275:76 tee:276:77 vmsplice:278:75 ioctl:16:29 fcntl:72:25
    mmap:9:222 munmap:11:215 mremap:25:216 mprotect:10:226 madvise:28:233 brk:12:214 mincore:27:232 msync:26:227
    mlock:149:228 munlock:150:229 mlock2:325:284 mlockall:151:230 munlockall:152:231 mbind:237:235
    get_mempolicy:239:236 set_mempolicy:238:237 set_mempolicy_home_node:450:450 membarrier:324:283
    pkey_alloc:330:289 pkey_free:331:290 pkey_mprotect:329:288 map_shadow_stack:453:453 exit:60:93 exit_group:231:94
    wait4:61:260 waitid:247:95 getpid:39:172 getppid:110:173 gettid:186:178 getuid:102:174 geteuid:107:175
    getgid:104:176 getegid:108:177 getresuid:118:148 getresgid:120:150 getgroups:115:158 getpgrp:111:
    getpgid:121:155 getsid:124:156 uname:63:160 sysinfo:99:179 getrusage:98:165 times:100:153 getrlimit:97:163
    setrlimit:160:164 prlimit64:302:261 set_tid_address:218:96 set_robust_list:273:99 get_robust_list:274:100
    rseq:334:293 futex:202:98 futex_waitv:449:449 futex_wake:454:454 futex_wait:455:455 futex_requeue:456:456
    sched_yield:24:124 sched_getaffinity:204:123 sched_setaffinity:203:122 sched_getparam:143:121
    sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126 sched_getattr:315:275
    sched_rr_get_interval:148:127 getpriority:140:141 ioprio_get:252:31 getcpu:309:168 arch_prctl:158: prctl:157:167
    capget:125:90 kill:62:129 tgkill:234:131 restart_syscall:219:128 rt_sigaction:13:134 rt_sigprocmask:14:135
    rt_sigreturn:15:139 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132
    pause:34: alarm:37: setitimer:38:103 getitimer:36:102 signalfd:282: signalfd4:289:74 clock_gettime:228:113
    clock_getres:229:114 clock_nanosleep:230:115 nanosleep:35:101 gettimeofday:96:169 time:201:
    timerfd_create:283:85 timerfd_settime:286:86 timerfd_gettime:287:87 poll:7: ppoll:271:73 select:23:
    pselect6:270:72 epoll_create:213: epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232: epoll_pwait:281:22
    epoll_pwait2:441:441 eventfd:284: eventfd2:290:19 socketpair:53:199 sendmsg:46:211 recvmsg:47:212
    sendmmsg:307:269 recvmmsg:299:243 sendto:44:206 recvfrom:45:207 shutdown:48:210 getsockopt:55:209
    setsockopt:54:208 getsockname:51:204 getpeername:52:205 getrandom:318:278
""")
"""Calls that programs make all the time, on themselves and on files."""

ATTRIBUTES = _table("""
    chmod:90: fchmod:91:52 fchmodat:268:53 fchmodat2:452:452 utime:132: utimes:235: futimesat:261: utimensat:280:88
""")
"""Calls that change files in ways that Landlock does not prevent. Allowed if the child can write only its own files."""

SPAWNING = _table("""
    fork:57: vfork:58: clone:56:220 execve:59:221 execveat:322:281
""")
"""Calls that start processes and programs."""

DEADLY = _table("""
    socket:41:198 connect:42:203 bind:49:200 listen:50:201 accept:43:202 accept4:288:242 tkill:200:130
    rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240 pidfd_open:434:434 pidfd_send_signal:424:424
    pidfd_getfd:438:438 ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 process_madvise:440:440
    kcmp:312:272 unshare:272:97 setns:308:268 mount:165:40 umount2:166:39 pivot_root:155:41 chroot:161:51
    move_mount:429:429 open_tree:428:428 fsopen:430:430 fsmount:432:432 fsconfig:431:431 fspick:433:433
    mount_setattr:442:442 setsid:112:157 setpgid:109:154 bpf:321:280 perf_event_open:298:241 userfaultfd:323:282
    io_uring_setup:425:425 io_uring_enter:426:426 io_uring_register:427:427 keyctl:250:219 add_key:248:217
    request_key:249:218 open_by_handle_at:304:265 clock_settime:227:112 settimeofday:164:170 adjtimex:159:171
    reboot:169:142 init_module:175:105 finit_module:313:273 kexec_load:246:104 setpriority:141:140 ioprio_set:251:30
    sched_setparam:142:118 sched_setscheduler:144:119 sched_setattr:314:274 timer_create:222:107 mq_open:240:180
    memfd_create:319:279 shmget:29:194 inotify_init:253: inotify_init1:294:26 inotify_add_watch:254:27
    fanotify_init:300:262 fanotify_mark:301:263 seccomp:317:277 landlock_create_ruleset:444:444
    landlock_add_rule:445:445 landlock_restrict_self:446:446
""")
"""Calls that no kernel needs. They reach other processes, the network, the system's settings, or memory that no limit
counts; they send signals later, even to a process that is stopped; or they loosen the sandbox."""

DECLINED = _table("""
    setuid:105:146 setgid:106:144 setreuid:113:145 setregid:114:143 setresuid:117:147 setresgid:119:149
    setgroups:116:159 setfsuid:122:151 setfsgid:123:152 capset:126:91 personality:135:92 mknod:133: mknodat:259:33
    chown:92: fchown:93:55 lchown:94: fchownat:260:54 setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7
    removexattr:197:14 lremovexattr:198:15 fremovexattr:199:16 migrate_pages:256:238 move_pages:279:239
    timer_settime:223:110 shmat:30:196 shmctl:31:195 semget:64:190 msgget:68:186 sethostname:170:161
    setdomainname:171:162 acct:163:89 syslog:103:116 vhangup:153:58 iopl:172: ioperm:173: modify_ldt:154:
    name_to_handle_at:303:264 clock_adjtime:305:266 swapon:167:224 swapoff:168:225 quotactl:179:60
    quotactl_fd:443:443 lookup_dcookie:212:18 delete_module:176:106 kexec_file_load:320:294 memfd_secret:447:447
""")
"""Calls that would change what does not belong to the child. Programs try some of them and work without them."""

XATTRS = _table("""
    getxattr:191:8 lgetxattr:192:9 fgetxattr:193:10 listxattr:194:11 llistxattr:195:12 flistxattr:196:13
""")
"""Calls that read a file's extended attributes. A file system may lack them, and programs are told that this one
does."""

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""seccomp's number for each architecture, and its column in the tables."""

_KILL, _NOTIFY, _ERRNO, _ALLOW = 0x80000000, 0x7FC00000, 0x00050000, 0x7FFF0000
_LOAD, _AND, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16

_CLONE_VFORK, _CLONE_THREAD = 0x00004000, 0x00010000
_SHARED_ANONYMOUS = 0x21
_FCNTL = {"F_SETOWN": 8, "F_SETSIG": 10, "F_SETOWN_EX": 15, "F_SETLEASE": 1024, "F_NOTIFY": 1026}
"""Commands that make the system send signals, or make others wait that open a file."""
_PRCTL = {
    "PR_GET_PDEATHSIG": 2, "PR_GET_DUMPABLE": 3, "PR_SET_NAME": 15, "PR_GET_NAME": 16, "PR_GET_SECCOMP": 21,
    "PR_CAPBSET_READ": 23, "PR_SET_TIMERSLACK": 29, "PR_GET_TIMERSLACK": 30, "PR_SET_NO_NEW_PRIVS": 38,
    "PR_GET_NO_NEW_PRIVS": 39, "PR_SET_THP_DISABLE": 41, "PR_GET_THP_DISABLE": 42, "PR_SVE_SET_VL": 50,
    "PR_SVE_GET_VL": 51, "PR_PAC_RESET_KEYS": 54, "PR_SET_TAGGED_ADDR_CTRL": 55, "PR_GET_TAGGED_ADDR_CTRL": 56,
    "PR_SET_VMA": 0x53564D41,
}  # fmt: skip
"""What a process may ask about itself or set for itself. Not included: seccomp, its parent's death, who may trace
it."""
_PRCTL_DEADLY = {"PR_SET_PDEATHSIG": 1, "PR_SET_DUMPABLE": 4, "PR_SET_SECCOMP": 22}
_IOCTL = {
    "TCGETS": 0x5401, "TIOCGPGRP": 0x540F, "TIOCGWINSZ": 0x5413, "FIONREAD": 0x541B, "FIONBIO": 0x5421,
    "FIONCLEX": 0x5450, "FIOCLEX": 0x5451, "TIOCGPTN": 0x80045430,
}  # fmt: skip
"""Requests that programs make of files and terminals."""
_IOCTL_NEVER = {
    "TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "FIOASYNC": 0x5452, "FIOSETOWN": 0x8901, "SIOCSPGRP": 0x8902,
    "FS_IOC_SETFLAGS": 0x40086602, "FS_IOC_FSSETXATTR": 0x401C5820, "FICLONE": 0x40049409,
}  # fmt: skip
"""Requests that are refused even with a GPU, since its driver does not make them. The driver's own requests are too
many to list."""


def name_of(number: int) -> str:
    """The name of a system call of this machine by its number."""
    _, column = ARCHITECTURES[platform.machine()]
    tables = (ALLOWED, ATTRIBUTES, SPAWNING, DEADLY, DECLINED, XATTRS)
    found = (name for table in tables for name, numbers in table.items() if numbers[column] == number)
    return next(found, f"system call {number}")


def filter_code(
    machine: str, may_spawn: bool, uses_gpu: bool, attributes: bool, shared_memory: bool, notifies: bool
) -> bytes:
    """The filter's instructions for this machine, which must be in ARCHITECTURES.

    `attributes`: whether only the child's own files can be changed. `shared_memory`: whether something else limits
    shared memory. `notifies`: whether deadly calls are passed to the listener; otherwise they get EPERM.
    """
    audit, column = ARCHITECTURES[machine]
    refused = _NOTIFY if notifies else _ERRNO | errno.EPERM
    parts = _Parts(column, refused)
    out = [_op(_LOAD, _ARCH), _op(_JUMP_EQ, audit, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NUMBER)]
    if column == 0:
        out += [_op(_JUMP_GE, 0x40000000, 0, 1), _op(_RETURN, _KILL)]  # x32 numbers would bypass the tables
    for name, rule in parts.conditional(may_spawn, uses_gpu, shared_memory).items():
        out += parts.when(name, rule)
    always = {**ALLOWED, **(ATTRIBUTES if attributes else {}), **(SPAWNING if may_spawn else {})}
    for name in always:
        out += parts.when(name, [_op(_RETURN, _ALLOW)])
    if may_spawn:
        # Ninja wants a process group for each job. It is told that it has one, but no process leaves the group that is
        # stopped and killed as a whole.
        out += parts.when("setpgid", [_op(_RETURN, _ERRNO)])
    for table, action in (
        (SPAWNING if not may_spawn else {}, refused),
        (DEADLY, refused),
        (DECLINED, _ERRNO | errno.EPERM),
        ({} if attributes else ATTRIBUTES, _ERRNO | errno.EPERM),
        (XATTRS, _ERRNO | errno.EOPNOTSUPP),
    ):
        for name in table:
            out += parts.when(name, [_op(_RETURN, action)])
    return b"".join([*out, _op(_RETURN, _ERRNO | errno.ENOSYS)])


class _Parts:
    """Builds the rules for single calls of one architecture."""

    def __init__(self, column: int, refused: int) -> None:
        self._column, self._refused = column, refused
        self._tables = {**ALLOWED, **ATTRIBUTES, **SPAWNING, **DEADLY, **DECLINED, **XATTRS, "clone3": (435, 435)}

    def when(self, name: str, rule: list[bytes]) -> list[bytes]:
        """The rule, guarded so that it applies to this call only. Every rule ends with a return."""
        number = self._tables[name][self._column]
        return [] if number is None else [_op(_JUMP_EQ, number, 0, len(rule)), *rule]

    def conditional(self, may_spawn: bool, uses_gpu: bool, shared_memory: bool) -> dict[str, list[bytes]]:
        """The rules for calls whose arguments decide, by name."""
        itself, eperm = os.getpid(), _ERRNO | errno.EPERM
        unsent = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)
        rules = {
            # clone3 hides its flags behind a pointer. With ENOSYS the C library falls back to clone, which shows them.
            "clone3": [_op(_RETURN, _ERRNO | errno.ENOSYS)],
            # Signals only to itself, and none that would look as if the machine or the parent had sent it.
            "kill": [*self._only(0, (itself,)), *self._never(1, unsent), _op(_RETURN, _ALLOW)],
            "tgkill": [*self._only(0, (itself,)), *self._never(2, unsent), _op(_RETURN, _ALLOW)],
            "fcntl": [*self._never(1, tuple(_FCNTL.values())), _op(_RETURN, _ALLOW)],
            "prlimit64": [*self._only(0, (0, itself)), _op(_RETURN, _ALLOW)],
            # A thread may bind itself. An honest kernel may try to bind its other threads, which look like other
            # processes.
            "sched_setaffinity": [*self._only(0, (0, itself), eperm), _op(_RETURN, _ALLOW)],
            "prctl": [
                *self._never(0, tuple(_PRCTL_DEADLY.values())),
                *self._only(0, tuple(_PRCTL.values()), _ERRNO | errno.EINVAL),
                _op(_RETURN, _ALLOW),
            ],
            "ioctl": [
                *(
                    self._never(1, tuple(_IOCTL_NEVER.values()))
                    if uses_gpu
                    else self._only(1, tuple(_IOCTL.values()), _ERRNO | errno.ENOTTY)
                ),
                _op(_RETURN, _ALLOW),
            ],
        }
        if not shared_memory:
            rules["mmap"] = [
                _op(_LOAD, _ARGUMENTS + 8 * 3),
                _op(_AND, _SHARED_ANONYMOUS),
                _op(_JUMP_EQ, _SHARED_ANONYMOUS, 0, 1),
                _op(_RETURN, eperm),
                _op(_RETURN, _ALLOW),
            ]
        if not may_spawn:  # threads only, and no vfork, whose caller waits where no signal stops it
            rules["clone"] = [
                _op(_LOAD, _ARGUMENTS),
                _op(_JUMP_SET, _CLONE_VFORK, 1, 0),
                _op(_JUMP_SET, _CLONE_THREAD, 1, 0),
                _op(_RETURN, self._refused),
                _op(_RETURN, _ALLOW),
            ]
        return rules

    def _only(self, argument: int, values: tuple[int, ...], otherwise: int | None = None) -> list[bytes]:
        tests = [_op(_JUMP_EQ, value, len(values) - i) for i, value in enumerate(values)]
        instead = self._refused if otherwise is None else otherwise
        return [_op(_LOAD, _ARGUMENTS + 8 * argument), *tests, _op(_RETURN, instead)]

    def _never(self, argument: int, values: tuple[int, ...]) -> list[bytes]:
        tests = (part for value in values for part in (_op(_JUMP_EQ, value, 0, 1), _op(_RETURN, self._refused)))
        return [_op(_LOAD, _ARGUMENTS + 8 * argument), *tests]


def _op(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, k)
