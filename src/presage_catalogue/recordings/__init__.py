"""Recordings of whole devices. Each is an entry point in the group `presage.recordings`: the path of its file."""

from pathlib import Path

H200 = Path(__file__).with_name("h200.parquet")
CPU = Path(__file__).with_name("cpu.parquet")
