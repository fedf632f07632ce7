"""The targets are shared with benchmarks/fuzz.py, and are found beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
