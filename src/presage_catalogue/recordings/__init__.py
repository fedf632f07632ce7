"""Recordings of whole devices. Each is an entry point in the group `presage.recordings`: the path of its file.
The recording of operators is an entry point in the group `presage.operator_recordings`."""

from pathlib import Path

H200 = Path(__file__).with_name("h200.parquet")
H200_MODULES = Path(__file__).with_name("h200_modules.parquet")
CPU = Path(__file__).with_name("cpu.parquet")
H200_OPERATORS = Path(__file__).with_name("h200_operators.parquet")
