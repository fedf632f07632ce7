"""Programs that start at once: a process that has imported what they need makes a copy of itself for each call.

    python warm.py serve SOCKET                 until its standard input is closed
    python -IS warm.py SOCKET PROGRAM ARGUMENTS what PROGRAM does with these arguments, in this folder and environment

PROGRAM is presage, presage-gui, or python with a text to run as its argument. Pages of the docs and tests of plugins
call `presage` some two hundred times, and importing takes half of that time.
"""

import json
import os
import socket
import sys

PROGRAMS = {"presage": "presage.cli.main", "presage-gui": "presage_gui.cli.main"}
OFTEN_NEEDED = (
    "presage.devices.exclusive",
    "lightgbm",
    "pyarrow.parquet",
    "presage.api",
    "presage.report.frozen",
    "presage.forecasters.learned",
)


def serve(path: str) -> None:
    import gc
    import importlib
    import signal
    import threading

    gc.disable()
    for name in (*PROGRAMS.values(), *OFTEN_NEEDED):
        importlib.import_module(name)
    gc.freeze()  # copies need not look through what was imported
    gc.enable()
    sys.modules["presage.devices.exclusive"].PLACES = (os.path.dirname(path),)  # nobody waits for others' measurements
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        parent = os.getpid()
        threading.Thread(target=lambda: (os.read(0, 1), os.kill(parent, signal.SIGKILL)), daemon=True).start()
        while True:
            connection, _ = listening.accept()
            if not os.fork():
                listening.close()
                answer(connection)
            connection.close()


def answer(connection: socket.socket) -> None:
    """Be the program that was called, and end as it does."""
    import atexit
    import importlib
    import signal

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    asked = json.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv = [asked["program"], *asked["arguments"]]
    sys.path[:0] = asked["environment"].get("PYTHONPATH", "").split(os.pathsep)
    importlib.invalidate_caches()
    told = bytearray([1])
    atexit.register(lambda: (sys.stdout.flush(), sys.stderr.flush(), connection.sendall(told)))  # after all others
    try:
        if asked["program"] == "python":
            sys.exit(run(*asked["arguments"]))
        sys.exit(importlib.import_module(PROGRAMS[asked["program"]]).main(asked["arguments"]))
    except SystemExit as ended:
        told[0] = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise


def run(text: str) -> int:
    """What `python -c` does."""
    import traceback
    import types

    sys.argv, sys.modules["__main__"] = ["-c"], types.ModuleType("__main__")
    sys.path.insert(0, "")
    try:
        exec(compile(text, "<string>", "exec"), vars(sys.modules["__main__"]))
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def call(path: str, program: str, arguments: list[str]) -> int:
    asked = {"program": program, "arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [json.dumps(asked).encode()], [0, 1, 2])
        return (connection.recv(1) or b"\1")[0]


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(call(sys.argv[1], sys.argv[2], sys.argv[3:]))
