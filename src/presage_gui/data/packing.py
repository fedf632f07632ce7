"""Pack a recorded set into one small zip file, with the screens as lossless WebP."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from presage import PresageError
from presage.core.files import write_whole
from presage_gui.data.splits import SPLITS, Split
from presage_gui.screen import Screen

_WHEN = (2026, 1, 1, 0, 0, 0)
"""The timestamp of all zip entries. It is fixed so that the same content gives the same file."""


def pack(folder: Path, file: Path, seeds: Mapping[Split, int]) -> int:
    """Pack the first `seeds[split]` episodes of each task of each split. Return the number of states.

    Raises PresageError if there are none."""
    screens: set[str] = set()
    count = 0
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for split in SPLITS:
            for source in sorted((folder / split).glob("*.jsonl")):
                kept = [json.loads(line) for line in source.read_text().splitlines()]
                chosen = sorted({state["seed"] for state in kept})[: seeds[split]]
                states = [state for state in kept if state["seed"] in chosen]
                for state in states:
                    screens.add(state["screen"])
                    screens.update(each[when] for each in state["history"] for when in ("before", "after"))
                count += len(states)
                _add(packed, f"{split}/{source.name}", "".join(json.dumps(state) + "\n" for state in states).encode())
        for digest in sorted(screens):
            screen = Screen.from_file(folder / "screens" / f"{digest}.png")
            _add(packed, f"screens/{digest}.webp", _webp(screen), zipfile.ZIP_STORED)
    if not count:
        raise PresageError(f"there are no states in {folder}; 'presage-gui record' makes them")
    write_whole(file, content.getvalue())
    return count


def _add(packed: zipfile.ZipFile, name: str, content: bytes, how: int = zipfile.ZIP_DEFLATED) -> None:
    about = zipfile.ZipInfo(name, _WHEN)
    about.compress_type = how
    packed.writestr(about, content, compresslevel=9)


def _webp(screen: Screen) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(screen.pixels).save(file, "webp", lossless=True, quality=90, method=5)
    return file.getvalue()
