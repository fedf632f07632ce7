"""The JSON documents that `--json` prints, one per command. documents.json holds their schemas.

`python -m presage.cli.documents` prints docs/reference/json.md, which is generated from documents.json.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # these modules import numpy
    from presage.core.forecast import Forecast
    from presage.kernels.kernel import Kernel

_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
VERSION = 1
"""The version of all schemas. It grows when a field is removed or changes its meaning, not when a field is added."""
SCHEMA = Path(__file__).with_name("documents.json")


def write(name: str, document: dict[str, Any]) -> None:
    """Print the document of a command on stdout."""
    sys.stdout.write(text(name, document))


def text(name: str, document: dict[str, Any]) -> str:
    """Return the document of a command as it is printed."""
    written = json.dumps(whole(name, document), indent=2).replace("\x7f", "\\u007f")
    return f"{written}\n"


def whole(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the name of its schema. Numbers that JSON cannot represent (NaN, inf) become null."""
    return {"schema": f"{name}/{VERSION}", **_finite(document)}


def write_error(message: str, kind: str) -> None:
    """Print an error document in place of a command's document."""
    write("error", {"error": {"message": message, "kind": kind}})


def kernel(of: Kernel) -> dict[str, Any]:
    """Describe a kernel, without its source."""
    return {"name": of.name, "hash": of.hash, "language": of.language, "values": dict(of.values)}


def forecast(of: Forecast) -> dict[str, Any]:
    """Describe a forecast: its summary numbers, and its distribution over bins with their edges."""
    low, median, high = (2 ** of.quantile(q) for q in (0.05, 0.5, 0.95))
    return {
        "speedup": {"value": median, "low": low, "high": high},
        "p_fail": of.p_fail,
        "p_faster": of.exceeds(1.0),
        "mean_log2": of.mean(),
        "confidence": of.confidence(),
        "bins": bins(of),
    }


def quantiles(of: Forecast) -> dict[str, float]:
    """Return log2 S at the levels of `_LEVELS`, given that the kernel works."""
    return {f"{level:g}": of.quantile(level) for level in _LEVELS}


def bins(of: Forecast) -> list[dict[str, Any]]:
    """Return the probability of each speedup bin. The first bin has no lower edge, the last no upper edge."""
    from presage.core import scale

    edges = [None, *scale.EDGES, None]
    shares = of.bin_probabilities().tolist()
    return [
        {"label": label, "above": edges[at], "up_to": edges[at + 1], "probability": share}
        for at, (label, share) in enumerate(zip(scale.labels(), shares, strict=True))
    ]


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


# -- the reference page -----------------------------------------------------------------------------------------------


def reference() -> str:
    """Return the text of docs/reference/json.md, made from the descriptions in documents.json."""
    shapes = json.loads(SCHEMA.read_text())
    lines = [f"# JSON output\n\n{shapes['description']}"]
    for name, shape in shapes["$defs"].items():
        command = name.removesuffix(f"/{VERSION}")
        title = f"`presage {command.replace('.', ' ')} --json`" if command != name and command != "error" else name
        lines += [f"\n## {title}\n", f"{shape['description']}\n", "| field | type | meaning |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in _rows(shape)]
    return "\n".join(lines) + "\n"


def _rows(shape: dict[str, Any], prefix: str = "") -> list[tuple[str, str, str]]:
    """Return a row for each field: name, type and description. A nested field is named `outer.inner`."""
    found = []
    required = shape.get("required", ())
    for name, part in shape.get("properties", {}).items():
        optional = "" if name in required else " (may be missing)"
        found.append((f"`{prefix}{name}`", _type(part), f"{part.get('description', '')}{optional}".strip()))
        inner = part.get("items") or next((each for each in part.get("anyOf", ()) if "properties" in each), part)
        found += _rows(inner, f"{prefix}{name}{'[]' if 'items' in part else ''}.")
    return found


def _type(part: dict[str, Any]) -> str:
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "anyOf" in part:
        return " or ".join(_type(each) for each in part["anyOf"])
    if "enum" in part:
        return " or ".join(f"`{json.dumps(each)}`" for each in part["enum"])
    names = part.get("type", "any")
    said = " or ".join([names] if isinstance(names, str) else names)
    return f"{said} of {_type(part['items'])}" if "items" in part else said


if __name__ == "__main__":
    sys.stdout.write(reference())
