"""What a module does with Triton: launches are counted while it is timed, and held back while it is only compiled."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any


def warm_up() -> None:
    """Triton hashes itself before it compiles, for nearly half a second: once is enough for all that are forked."""
    with contextlib.suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()


class OwnLaunches:
    """Counts launches of Triton kernels that are a module's own: neither torch's nor Triton's, and none that failed.
    A replay counts as one, if any such kernel has been captured."""

    def __init__(self, graph: Any, capturing: Callable[[], bool]) -> None:
        from triton.compiler import CompiledKernel
        from triton.runtime.jit import JITFunction

        self.count, self._captured, self._capturing = 0, False, capturing
        run, runner, replay = JITFunction.run, CompiledKernel.__getitem__, graph.replay
        self._originals = [
            (JITFunction, "run", run),
            (CompiledKernel, "__getitem__", runner),
            (graph, "replay", replay),
        ]

        def counted_run(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            compiled = run(kernel, *args, grid=grid, warmup=warmup, **options)
            if not warmup:
                self._note(kernel)
            return compiled

        def counted_runner(compiled: Any, grid: Any) -> Any:
            launch = runner(compiled, grid)

            def launch_and_count(*args: Any, **options: Any) -> None:
                launch(*args, **options)
                self._note(getattr(compiled.src, "fn", None))

            return launch_and_count

        def counted_replay(captured: Any) -> None:
            replay(captured)
            self.count += self._captured

        JITFunction.run, CompiledKernel.__getitem__, graph.replay = counted_run, counted_runner, counted_replay

    def _note(self, kernel: Any) -> None:
        home = getattr(getattr(kernel, "fn", None), "__module__", None) or ""
        if home.partition(".")[0] not in ("torch", "triton"):
            self.count += 1
            self._captured |= self._capturing()

    def close(self) -> None:
        for kind, name, original in self._originals:
            setattr(kind, name, original)


class NoLaunches:
    """Inside, Triton compiles what it is asked to launch and launches nothing; afterwards no tuning result is kept.
    What is captured in a graph is not launched anyway, and the module may keep that graph."""

    def __init__(self, capturing: Callable[[], bool]) -> None:
        self._capturing = capturing

    def __enter__(self) -> None:
        from triton.runtime.jit import JITFunction

        self._class, self._run = JITFunction, JITFunction.run
        original = self._run

        def compile_only(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            compiled = original(kernel, *args, grid=grid, warmup=warmup or not self._capturing(), **options)
            getattr(compiled, "run", None)  # builds the launcher and loads the code, which takes longest of all
            return compiled

        JITFunction.run = compile_only

    def __exit__(self, *problem: object) -> None:
        from triton.runtime.autotuner import Autotuner

        self._class.run = self._run
        for thing in gc.get_objects():
            if type(thing) is Autotuner:
                thing.cache.clear()
