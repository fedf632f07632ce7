"""Triton's launches are held back while a module is only compiled."""

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
