"""Models are made from what `get_init_inputs` returns, in either of its forms."""

from __future__ import annotations

from typing import Any

import pytest

from presage.sandbox import foreign, launch


class Plain:
    def __init__(self, size: Any = 1, options: Any = None) -> None:
        self.got = size, options


class Named:
    def __init__(self, n: int, p: float = 0.5) -> None:
        self.got = n, p


class Nothing:
    got = ()


@pytest.mark.parametrize(
    ("kind", "arguments", "got"),
    [
        (Plain, [4], (4, None)),
        (Plain, [[64, 32], {}], ([64, 32], {})),
        (Plain, [[64, 32], {"dropout": 0.1}], ([64, 32], {"dropout": 0.1})),
        (Plain, [[], {"options": 7}], (1, 7)),
        (Named, [[], {"n": 4}], (4, 0.5)),
        (Named, [[4], {"p": 0.1}], (4, 0.1)),
        (Nothing, [[], {}], ()),
        (Nothing, [], ()),
    ],
)
def test_the_arguments_of_a_model(
    kind: Any, arguments: list[Any], got: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="only in a confined child"):
        foreign.construct(kind, arguments)
    monkeypatch.setattr(launch, "is_confined", lambda: True)
    assert foreign.construct(kind, arguments).got == got
