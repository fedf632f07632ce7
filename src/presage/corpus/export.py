"""Export a recording as a folder that the Hugging Face `datasets` library can load: a file per split, and a card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from presage.core import scale
from presage.core.errors import PresageError
from presage.core.files import whole_folder
from presage.corpus import check
from presage.devices.recording import Recording, Row
from presage.problems.base import SPLITS


def export(found: Recording, folder: Path) -> dict[str, Any]:
    """Write the recording into an empty or new folder. Returns the folder and the number of rows of each split. Raises
    PresageError if the folder is not empty or cannot be written to; then it is left as it was."""
    import pyarrow
    import pyarrow.parquet

    if folder.exists() and any(folder.iterdir()):
        raise PresageError(f"{folder} is not empty; name an empty folder")
    rows = found.rows(reports=False)
    names = [name for name in SPLITS if any(row.split == name for row in rows)] or ["train"]
    counts = {}
    try:
        with whole_folder(folder) as part:
            (part / "data").mkdir()
            for name in names:
                chosen = [row for row in rows if row.split == name or not row.split]
                records = _records(chosen, rows, str(found.facts.get("hardware")))
                table = pyarrow.Table.from_pylist(records)
                pyarrow.parquet.write_table(table, part / "data" / f"{name}.parquet", compression="zstd")
                counts[name] = len(records)
            (part / "README.md").write_text(_card(found, rows, counts), encoding="utf-8")
    except OSError as error:
        raise PresageError(f"cannot write to {folder}: {error.strerror or error}") from error
    return {"folder": str(folder), "splits": counts}


def _records(chosen: Sequence[Row], rows: Sequence[Row], hardware: str) -> list[dict[str, Any]]:
    """The records of the rows: the columns of published pairs (two sources and a speedup), and the other recorded
    columns."""
    sources = {(row.problem, row.hash): row.source for row in rows}
    return [
        {
            "problem": row.problem,
            "room": row.room,
            "hardware": hardware,
            "language": row.language,
            "anchor_code": sources.get((row.problem, row.anchor)),
            "candidate_code": row.source,
            "candidate_hash": row.hash,
            "tunables": json.dumps(dict(row.values)),
            "status": str(row.status),
            "reason": row.reason,
            "cases": [case.case for case in row.cases],
            "median_ns": [case.median.value for case in row.cases],
            "ci_low_ns": [case.median.low for case in row.cases],
            "ci_high_ns": [case.median.high for case in row.cases],
            "floor_ns": [case.floor_ns for case in row.cases],
            "samples_ns": [list(case.samples_ns) for case in row.cases],
            "aggregated_speedup": row.speedup.value if row.speedup else None,
            "speedup_low": row.speedup.low if row.speedup else None,
            "speedup_high": row.speedup.high if row.speedup else None,
            "speedup_bin": int(scale.bin_of([row.speedup.value])[0]) if row.speedup else None,
        }
        for row in chosen
    ]


def _card(found: Recording, rows: Sequence[Row], counts: dict[str, int]) -> str:
    numbers = check.card(found, rows)
    files = "".join(f"  - split: {name}\n    path: data/{name}.parquet\n" for name in counts)
    statuses = ", ".join(f"{count} {name}" for name, count in numbers["statuses"].items())
    noise = numbers["noise"]
    between = (
        f"Of {noise['repeated']} kernels measured again in another run, half were within"
        f" {100 * noise['between_runs']:.2g} % and 95 % within {100 * noise['between_runs_95']:.2g} % of the first."
        if noise["repeated"]
        else "No kernel was measured in two runs."
    )
    return f"""---
license: apache-2.0
pretty_name: Presage, measured kernels of {numbers["hardware"]}
tags: [gpu, cuda, triton, performance]
configs:
- config_name: default
  data_files:
{files}---

# Measured kernels of {numbers["hardware"]}

## What
{numbers["kernels"]} kernels of {numbers["operations"]} operations, failures included ({statuses}). A row is a
candidate, the seed kernel of its operation (the anchor), and how many times as fast the candidate is
(`aggregated_speedup`, the geometric mean over the timed cases, with a 95 % interval). `speedup_bin` counts from 0 on
the scale {", ".join(scale.labels())}.

## How measured
Every kernel was checked against a reference in double precision on inputs that no kernel had seen, then timed call by
call with cold caches. All samples are here. {between}

## Splits
{", ".join(f"{name}: {count}" for name, count in counts.items())}. `test_op` has operations that training has not seen,
`test_family` whole families of operations, and `test_problem` problems from elsewhere.

## Limits
One device and one toolchain ({found.facts.get("toolchain", "unknown")}). The kernels are configurations of hand-written
families, so they are more regular than what people or models write. Speedups are relative to a plain kernel, not to a
library.

## Licence
Apache-2.0
"""
