"""`presage evaluate [FORECASTER…]`: score forecasters on a recording, and compare them."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from pathlib import Path
from typing import Any

from presage import api
from presage.cli import documents, terminal
from presage.core.errors import PresageError
from presage.evaluations.comparison import Comparison, compare
from presage.evaluations.evaluation import MORE, NAMES, Evaluation
from presage.forecasters import registry

_PAGE = Path("presage-evaluation.html")
_SHOWN = ("learned", "nearest", "roofline", "prior", "uniform")
"""The forecasters to evaluate if none is named: the default forecaster, and the baselines that it must beat."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "forecasters", nargs="*", metavar="FORECASTER",
        help=f"one of {', '.join(registry.names())}, or blend:A,B; several are compared with the first"
        f" (default: {', '.join(_SHOWN)})",
    )  # fmt: skip
    parser.add_argument("--forecaster", action="append", metavar="NAME", help="the same; may be given several times")
    parser.add_argument("--baseline", metavar="NAME", help="compare with this one of them (default: the first)")
    parser.add_argument(
        "--problem", metavar="PROBLEM", help="score only the recorded kernels of this problem, whatever its split"
    )
    parser.add_argument(
        "--split", default="test_op", help="the split of the recording to score on, or 'all' (default: test_op)"
    )
    parser.add_argument(
        "--suite", type=lambda text: text.split(","), default=NAMES, metavar="NAME,…",
        help=f"some of {', '.join(NAMES)} (default: all of these), or {' or '.join(MORE)}",
    )  # fmt: skip
    parser.add_argument(
        "--recording", help="the name of an installed recording, or a .parquet file (default: h200, or the first)"
    )
    parser.add_argument(
        "--device", metavar="recorded:NAME", help="the same for a recorded device: recorded:h200 is the recording h200"
    )
    parser.add_argument(
        "--neighbours", type=terminal.whole(0), default=0, metavar="N",
        help="show the forecaster this many measured kernels of each operation, as a search would (default: 0)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="the seed that chooses anchors and neighbours (default: 0)")
    parser.add_argument(
        "--html",
        type=Path,
        default=_PAGE,
        metavar="FILE",
        help=f"where to write the page with figures (default: {_PAGE})",
    )


def run(arguments: argparse.Namespace) -> int:
    from presage.report import evaluate_page, page

    _check_writable(arguments.html)
    found = api.load_recording(_recording(arguments))
    evaluations = [
        api.evaluate(
            name,
            recording=found,
            problem=arguments.problem,
            split=arguments.split,
            suites=arguments.suite,
            neighbours=arguments.neighbours,
            seed=arguments.seed,
            say=lambda line: print(line, file=sys.stderr, flush=True),
        )
        for name in _names(arguments)
    ]
    comparisons = compare(evaluations, arguments.baseline)
    document = _document(arguments, found.name, evaluations, comparisons)
    if arguments.json:
        documents.write("evaluate", document)
    else:
        rows, header = evaluate_page.numbers(evaluations)
        what = f"{evaluations[0].operations} operations of {found.name}, split {arguments.split}"
        print(f"{f'{arguments.problem} of {found.name}' if arguments.problem else what}\n")
        print(terminal.table(rows, header))
        if comparisons:
            print(f"\n{evaluate_page.how_compared(comparisons)}\n")
            print(terminal.table(*evaluate_page.differences(comparisons)))
    page.write(arguments.html, evaluate_page.render(evaluations, comparisons))
    page.write(_kept(arguments.html), documents.text("evaluate", document))
    print(f"figures are in {arguments.html}", file=sys.stderr)
    return 0


def _kept(page: Path) -> Path:
    """Return the path of the JSON file beside the page. `presage ui` reads the numbers and curves from it."""
    return page.with_name(f"{page.stem}{'' if 'evaluation' in page.stem else '-evaluation'}.json")


def _document(
    arguments: argparse.Namespace, recording: str, evaluations: list[Evaluation], comparisons: list[Comparison]
) -> dict[str, Any]:
    return {
        "recording": recording,
        "split": evaluations[0].split,
        "operations": evaluations[0].operations,
        "evaluations": [each.to_json() for each in evaluations],
        "comparisons": [each.to_json() for each in comparisons],
        "page": str(arguments.html),
    }


def _recording(arguments: argparse.Namespace) -> str | None:
    """Return the recording that --recording or --device names, or None. The device must be a recorded one."""
    if arguments.device is None:
        return str(arguments.recording) if arguments.recording else None
    if arguments.recording or not arguments.device.startswith("recorded:"):
        raise PresageError("forecasters are scored on a recording: write --device recorded:NAME, or --recording NAME")
    return str(arguments.device.removeprefix("recorded:"))


def _names(arguments: argparse.Namespace) -> list[str]:
    """Return the forecasters to evaluate, each once. Raises PresageError if the baseline is not one of them."""
    named = [*arguments.forecasters, *(arguments.forecaster or ())]
    names = list(dict.fromkeys(named)) or [name for name in _SHOWN if name in registry.names()]
    if arguments.baseline and arguments.baseline not in names:
        raise PresageError(f"--baseline {arguments.baseline} is not evaluated; name it among the forecasters")
    return names


def _check_writable(page: Path) -> None:
    """Raise PresageError if the page cannot be written, before minutes of work are spent."""
    part = page.with_name(f".{page.name}.part") if page.name else page
    try:
        if page.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part.touch()
        part.unlink()
    except OSError as error:
        raise PresageError(f"cannot write {page}: {error.strerror}; name another file with --html") from error
