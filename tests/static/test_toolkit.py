"""Where an installed toolkit is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from presage.static import toolkit


def installed(folder: Path) -> Path:
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    return folder


def test_the_toolkit_that_extensions_are_built_with_is_torch_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, found = installed(tmp_path / "named"), installed(tmp_path / "found")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", str(found / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(named))
    assert toolkit.home() == named
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "gone"))
    assert toolkit.home() == found
