"""Modules that call torch's operators on shapes of common models. The modules are traced, and each operator call of the
trace is measured. The folder is an entry point in the group `presage.operators`."""

from pathlib import Path

COMMON = Path(__file__).parent
