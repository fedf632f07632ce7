"""Forecasters by name: entry points in the group `presage.forecasters`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.core.errors import PresageError
from presage.forecasters.base import Forecaster
from presage.plugins.group import FORECASTERS, settings_of

if TYPE_CHECKING:
    from presage.devices.recording import Recording

names = FORECASTERS.names


def get(spec: str, recording: Recording | None = None, **settings: Any) -> Forecaster:
    """The forecaster that a specification names: `NAME`; `NAME:SETTING=VALUE`; `blend:A,B`; `learned:FOLDER`, with the
    models in that folder; or `surrogate:FILE,FILE`, which starts from recordings of other devices. The recording is
    passed to forecasters that learn from one. Raises PresageError if the forecaster cannot be made."""
    name, _, text = spec.partition(":")
    make = FORECASTERS.load(name)
    forecaster: Forecaster
    if hasattr(make, "from_text") and not settings:
        with FORECASTERS.blamed(name, "cannot be made"):
            forecaster = make.from_text(text, lambda member: get(member, recording))
        return forecaster
    wanted = settings_of(make).get("recording")
    if wanted and not recording and wanted.default is wanted.empty:
        raise PresageError(f"{name} learns from a recording; name one: --recording FILE, or --device recorded:FILE")
    forecaster = FORECASTERS.make(spec, **settings, **({"recording": recording} if wanted and recording else {}))
    return forecaster
