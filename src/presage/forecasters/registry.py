"""Forecasters by name, which is their file's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from presage.core import plugins
from presage.core.errors import PresageError
from presage.devices import recorded
from presage.forecasters.base import Forecaster
from presage.forecasters.blend import MEMBERS

if TYPE_CHECKING:
    from presage.devices.recording import Recording

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Every file here that defines a forecaster; none is imported for that."""
    return plugins.names(_FOLDER, "Forecaster")


def get(name: str, recording: Recording | None = None) -> Forecaster:
    """The forecaster of this name; or `blend:A,B`, a blend of those; or `learned:FOLDER`, as it was trained into that
    folder; or `surrogate:FILE,FILE`, which starts from what was recorded on other devices. A recording is given to
    those that learn from one. A PresageError says why a forecaster cannot be had."""
    kind, _, members = name.partition(":")
    if kind not in names() or (members and kind not in ("blend", "learned", "surrogate")):
        known, more = ", ".join(names()), "blend:A,B, learned:FOLDER and surrogate:FILE,FILE"
        raise PresageError(f"there is no forecaster '{name}'; there are: {known}, and {more}")
    make: Callable[..., Forecaster] = plugins.find("presage.forecasters", kind, Forecaster)
    if kind == "learned" and members:
        return make(Path(members))
    if kind == "surrogate" and members:
        return make([recorded.find(member) for member in members.split(",")])
    if kind == "blend":
        return make({member: get(member, recording) for member in (members.split(",") if members else MEMBERS)})
    wanted = inspect.signature(make).parameters.get("recording")
    if wanted and not recording and wanted.default is inspect.Parameter.empty:
        raise PresageError(f"{name} learns from a recording; name one: --recording FILE, or --device recorded:FILE")
    return make(recording=recording) if wanted and recording else make()
