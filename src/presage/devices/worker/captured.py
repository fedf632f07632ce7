"""Pretended CUDA graphs for modules that are rehearsed: what is captured is done again on the CPU whenever the graph is
replayed, on the same memory. As on a GPU, capturing itself computes nothing that can be seen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_capturing: list[_Capture] = []


def put_off(work: Callable[[], Any]) -> bool:
    """Whether a graph is being captured. Then the work, such as a launch, is part of it, and must not be done now."""
    if _capturing:
        _capturing[-1].works.append(work)
    return bool(_capturing)


def install() -> None:
    """Replace torch's CUDA graphs for the rest of this process."""
    torch.cuda.CUDAGraph, torch.cuda.graph = Graph, captured
    torch.cuda.is_current_stream_capturing = lambda: bool(_capturing)
    torch.cuda.graph_pool_handle = lambda: (0, 0)
    torch.cuda.make_graphed_callables = lambda called, *_, **__: called


class Graph:
    """What was captured, and can be replayed."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._works: list[Callable[[], Any]] = []
        self._capture: _Capture | None = None

    def capture_begin(self, *_: Any, **__: Any) -> None:
        self._capture = _Capture()
        self._capture.__enter__()

    def capture_end(self) -> None:
        assert self._capture is not None
        self._capture.__exit__(None, None, None)
        self._works = self._capture.works

    def replay(self) -> None:
        """Do all of it again. The operators were recorded below autograd and autocast, and are called there again."""
        with torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast():
            for work in self._works:
                work()

    def pool(self) -> tuple[int, int]:
        return 0, 0

    def reset(self) -> None:
        self._works = []

    instantiate = enable_debug_mode = debug_dump = lambda self, *_: None


@contextlib.contextmanager
def captured(graph: Graph, *_: Any, **__: Any) -> Iterator[None]:
    graph.capture_begin()
    try:
        yield
    finally:
        graph.capture_end()


class _Capture(TorchDispatchMode):  # type: ignore[misc]
    """Records operators. They run, since others need the shapes of their results; at the end, what was there before is
    as it was, and new tensors have no values."""

    def __init__(self) -> None:
        super().__init__()
        self.works: list[Callable[[], Any]] = []
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        """By address: memory that was there before, and what was in it."""
        self._new: dict[int, torch.Tensor] = {}

    def __enter__(self) -> Any:
        _capturing.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        _capturing.remove(self)
        with torch._C._AutoDispatchBelowAutograd():
            for memory, held in self._before.values():
                memory.copy_(held)
            for made in self._new.values():
                if made.is_floating_point():
                    made.fill_(torch.nan)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        self._keep(func, args, kwargs)
        result = func(*args, **kwargs)
        held = {_address(each) for each in given}
        made = [each for each in _tensors(result) if _address(each) not in held]
        self._new.update({_address(each): each for each in made})
        if not func.is_view:
            self.works.append(lambda: _do(func, args, kwargs, result, held))
        return result

    def _keep(self, func: Any, args: Any, kwargs: Any) -> None:
        """Keep what is in memory that an operator will change."""
        for place, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[place] if place < len(args) else kwargs.get(argument.name)
                for each in _tensors(value):
                    if _address(each) not in self._before and _address(each) not in self._new:
                        whole = each.new_empty(0).set_(each.untyped_storage(), 0, (_room(each),), (1,))
                        self._before[_address(each)] = whole, whole.clone()


def _do(func: Any, args: Any, kwargs: Any, old: Any, held: set[int]) -> None:
    """Call an operator again, with its results in the memory of the old ones."""
    new = func(*args, **kwargs)
    for before, after in zip(_tensors(old), _tensors(new), strict=True):
        if _address(before) not in held:
            before.copy_(after)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _room(tensor: torch.Tensor) -> int:
    """The number of elements that fit into the memory of which a tensor is a part."""
    return int(tensor.untyped_storage().nbytes() // tensor.element_size())
