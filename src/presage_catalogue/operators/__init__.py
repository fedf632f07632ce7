"""What operators are measured at: modules that call torch's operators on shapes of common models. They are traced, and
each operator of the trace is one call to measure. The folder is an entry point in the group `presage.operators`."""

from pathlib import Path

COMMON = Path(__file__).parent
