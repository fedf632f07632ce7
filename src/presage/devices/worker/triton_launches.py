"""Suppresses Triton's launches while a module is only compiled."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any


def warm_up() -> None:
    """Let Triton compute the hash of itself that it needs for compiling. That takes nearly half a second, and is done
    once for all forked processes."""
    with contextlib.suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()


class NoLaunches:
    """Inside, Triton compiles kernels instead of launching them; afterwards all tuning results are dropped. Captures
    into a graph are let through: they launch nothing, and the module may keep the graph."""

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
