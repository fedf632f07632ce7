"""Tests of the critic share what draws screens, and the endpoint that misbehaves."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "llm")]
