"""`Screen`: the pixels that an agent and a critic see. `Box`: a rectangle on a screen."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from presage import PresageError
from presage.core.files import write_whole

Pixels = npt.NDArray[np.uint8]
LARGEST = 16_384
"""A screen is at most this many pixels wide and high."""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels. The right and bottom edges are exclusive.

    >>> Box(10, 20, 30, 60).middle, Box(10, 20, 30, 60).holds(10, 59), Box(10, 20, 30, 60).holds(30, 20)
    ((20.0, 40.0), True, False)
    """

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        return max(self.width, 0.0) * max(self.height, 0.0)

    @property
    def middle(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x < self.right and self.top <= y < self.bottom

    def grown(self, by: float) -> Box:
        """Return the box grown by a margin on every side. The margin may be negative."""
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def within(self, width: float, height: float) -> Box:
        """Return the box clipped to a screen of this size."""
        left, top = min(max(self.left, 0.0), width), min(max(self.top, 0.0), height)
        return Box(left, top, max(left, min(self.right, width)), max(top, min(self.bottom, height)))

    def to_json(self) -> list[float]:
        return [self.left, self.top, self.right, self.bottom]


@dataclass(frozen=True, eq=False)
class Screen:
    """One frame. Two screens are equal if their pixels are."""

    pixels: Pixels
    """Red, green, blue; shape (height, width, 3)."""

    def __post_init__(self) -> None:
        shape = self.pixels.shape
        if self.pixels.dtype != np.uint8 or len(shape) != 3 or shape[2] != 3:
            raise PresageError(f"a screen is an array of bytes of shape (height, width, 3), not {shape}")
        if not (0 < shape[0] <= LARGEST and 0 < shape[1] <= LARGEST):
            raise PresageError(f"a screen is 1 to {LARGEST} pixels wide and high, not {shape[1]} × {shape[0]}")

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height

    @cached_property
    def digest(self) -> str:
        """A hash of the shape and the pixels, 32 hexadecimal digits."""
        content = hashlib.sha256(repr(self.pixels.shape).encode())
        content.update(np.ascontiguousarray(self.pixels).data)
        return content.hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Screen) and np.array_equal(self.pixels, other.pixels)

    def __hash__(self) -> int:
        return hash(self.digest)

    def crop(self, box: Box) -> Screen:
        """Return the part of the screen inside a box. The part has at least one pixel."""
        part = box.within(self.width, self.height)
        left, top = min(int(part.left), self.width - 1), min(int(part.top), self.height - 1)
        right, bottom = max(round(part.right), left + 1), max(round(part.bottom), top + 1)
        return Screen(self.pixels[top:bottom, left:right])

    @cached_property
    def png(self) -> bytes:
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(self.pixels).save(file, "png", optimize=False)
        return file.getvalue()

    def keep(self, folder: Path) -> str:
        """Store the screen as screens/DIGEST.png in a folder, unless it is there already. Return the digest."""
        file = folder / "screens" / f"{self.digest}.png"
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            write_whole(file, self.png)
        return self.digest

    @classmethod
    def from_png(cls, content: bytes) -> Screen:
        """Read the bytes of an image in PNG or any other format that Pillow reads. Raises PresageError otherwise."""
        from PIL import Image

        try:
            with Image.open(io.BytesIO(content)) as image:
                if max(image.size) > LARGEST:
                    raise PresageError(f"a screen is at most {LARGEST} pixels wide and high, not {image.size}")
                return cls(np.asarray(image.convert("RGB"), dtype=np.uint8))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise PresageError(f"this is not an image of a screen: {error}; send a PNG file") from None

    @classmethod
    def from_file(cls, file: Path | str) -> Screen:
        return cls.from_png(Path(file).read_bytes())
