"""What of the machine is ours to use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from presage.core import machine


@pytest.mark.parametrize(
    ("files", "most"),
    [
        pytest.param({}, None, id="no container"),
        pytest.param({"cpu.max": "max 100000\n"}, None, id="no limit"),
        pytest.param({"cpu.max": "150000 100000\n"}, 2, id="a core and a half"),
        pytest.param({"cpu.max": "50000 100000\n"}, 1, id="half a core"),
        pytest.param({"cpu.max": "nonsense"}, None, id="not understood"),
        pytest.param({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1, id="the older way"),
        pytest.param({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None, id="and no limit"),
    ],
)
def test_a_container_may_have_a_share_of_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], most: int | None
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(128)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine.cores(tmp_path) == (most or 128)
