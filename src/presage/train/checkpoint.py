"""The checkpoint of a training: one file, replaced atomically, so that a training killed at any time can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError

FILE = "checkpoint.safetensors"


def save(folder: Path, parameters: Mapping[str, Any], optimiser: Any, facts: Mapping[str, Any]) -> None:
    """Write the trained parameters, the optimiser's state, the state of the random generator and a few plain facts."""
    import torch
    from safetensors.torch import save_file

    tensors = {f"parameter.{name}": each.detach() for name, each in parameters.items()}
    by_place = {id(each): name for name, each in parameters.items()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            tensors[f"optimiser.{by_place[id(parameter)]}.{key}"] = torch.as_tensor(value)
    tensors["random"] = torch.get_rng_state()
    part = folder / f".{FILE}.part"
    plain = {name: each.contiguous().cpu().clone() for name, each in tensors.items()}
    with written(folder / FILE):
        save_file(plain, str(part), metadata={"presage": json.dumps(dict(facts))})
        os.replace(part, folder / FILE)


@contextmanager
def written(file: Path) -> Iterator[None]:
    """Turn an error of writing safetensors, such as a full disk, into a PresageError."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise PresageError(f"cannot write {file}: {error}; when that is mended, the same command continues") from error


def load(folder: Path, parameters: Mapping[str, Any], optimiser: Any) -> dict[str, Any] | None:
    """Restore everything, and return the facts; None if there is no checkpoint. Raises PresageError."""
    import torch
    from safetensors import SafetensorError, safe_open

    if not (folder / FILE).exists():
        return None
    try:
        with safe_open(str(folder / FILE), framework="pt") as file:
            facts: dict[str, Any] = json.loads(file.metadata()["presage"])
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(file.get_tensor(f"parameter.{name}"))
            kept = {f"optimiser.{name}.": parameter for name, parameter in parameters.items()}
            for key in file.keys():  # noqa: SIM118  it is no mapping
                start, _, what = key.rpartition(".")
                if (parameter := kept.get(f"{start}.")) is not None:
                    value = file.get_tensor(key)
                    place = value if what == "step" else value.to(parameter.device)
                    optimiser.state[parameter][what] = place
            torch.set_rng_state(file.get_tensor("random"))
    except (SafetensorError, KeyError, ValueError, RuntimeError, OSError) as error:
        raise PresageError(f"{folder / FILE} cannot be continued from: {error}; remove it to begin again") from error
    return facts
