"""`presage corpus import | export | fastp`: exchange recordings with other projects, and score as KernelBench does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from presage.api import load_recording
from presage.cli import terminal
from presage.core.errors import PresageError


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def add_recording(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", nargs="?", help="the name of an installed recording, or a .parquet file (default: the first)"
    )


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        help="a Kernel Tuner cache, a T4 file, the folder of a FlashInfer-Bench data set, or pairs of kernels"
        " (a Parquet file, JSON lines or a folder)",
    )
    parser.add_argument(
        "--modules", type=Path, metavar="FOLDER",
        help="of a FlashInfer-Bench data set, also write the definitions as problems and the solutions as modules here,"
        " for 'presage corpus collect --modules'",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.parquet", help="the recording to write; only --modules needs none"
    )
    parser.add_argument(
        "--source",
        type=Path,
        help="the source of the kernel; each candidate is this file with its values. With a header that declares"
        " its launch and arrays, 'presage corpus compile' can compile them",
    )
    parser.add_argument("--name", help="the name of the problem (default: the name in the file)")
    parser.add_argument("--hardware", help="the GPU that was measured, if the file does not say")


_NOTHING_RECORDED = {
    "name": None, "hardware": None, "kernels": 0, "left_out": 0, "unreadable_lines": 0, "bytes": 0, "problem": None,
}  # fmt: skip


def _import(arguments: argparse.Namespace) -> Any:
    from presage.corpus import importing, pack
    from presage.neighbours import flashinfer_bench

    if arguments.source and not arguments.source.is_file():
        raise PresageError(f"there is no file {arguments.source}")
    is_dataset = flashinfer_bench.is_dataset(arguments.file)
    if arguments.modules and not is_dataset:
        raise PresageError("--modules is for FlashInfer-Bench data sets, which have a folder 'definitions'")
    if not (arguments.output or arguments.modules):
        raise PresageError("name the recording to write: -o FILE.parquet")
    modules = 0
    if is_dataset:
        if arguments.name or arguments.source:
            raise PresageError("a data set has its own names and sources; leave out --name and --source")
        if arguments.modules:
            counts = flashinfer_bench.write_modules(arguments.file, arguments.modules)
            modules = counts["modules"]
            say(f"{arguments.modules}: {counts['problems']} problems, {counts['modules']} modules")
            if counts["left_out"]:
                say(f"{counts['left_out']} are left out: they need data from files, or are not one Python file")
        if not arguments.output:
            return {**_NOTHING_RECORDED, "problems": counts["problems"], "modules": modules}
        found = flashinfer_bench.import_traces(arguments.file, arguments.output, hardware=arguments.hardware)
    elif arguments.file.is_dir() or arguments.file.suffix in (".parquet", ".jsonl"):
        if arguments.name or arguments.source:
            raise PresageError("a file of pairs has its own names and sources; leave out --name and --source")
        found = importing.import_pairs(arguments.file, arguments.output, hardware=arguments.hardware)
    else:
        found = importing.import_tuning(
            arguments.file,
            arguments.output,
            name=arguments.name,
            hardware=arguments.hardware,
            source=arguments.source,
        )
    summary = dict(pack.summary(found)) | {"modules": modules}
    problems = sorted(found.counts)
    summary["problem"] = problems[0] if len(problems) == 1 else None
    if not arguments.json:
        what = problems[0] if len(problems) == 1 else f"{len(problems)} problems"
        print(f"{arguments.output}: {summary['kernels']} kernels of {what} on {summary['hardware']}")
        named = problems[0] if len(problems) == 1 else "PROBLEM"
        print(f"search it with: presage search {named} --device recorded:{arguments.output}")
    return summary


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    add_recording(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="PATH",
        help="a new or empty folder; of Kernel Tuner's formats, the file to write",
    )  # fmt: skip
    parser.add_argument(
        "--to", choices=["datasets", *_OTHERS], default="datasets",
        help="whose format: Hugging Face's datasets library (the default), a Kernel Tuner cache, T4, or a"
        " FlashInfer-Bench data set",
    )  # fmt: skip
    parser.add_argument("--problem", help="write only this problem; for other formats than datasets")
    parser.add_argument("--family", help="of Kernel Tuner's formats: the file whose configurations are written")


_OTHERS = ("kernel-tuner", "t4", "flashinfer-bench")


def _export(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage.corpus import export

    if arguments.to != "datasets":
        return _export_to_others(arguments)
    if arguments.problem or arguments.family:
        raise PresageError("--problem and --family are for other formats; add --to, or leave them out")
    document = export.export(load_recording(arguments.recording), arguments.output)
    if not arguments.json:
        for name, count in document["splits"].items():
            print(f"{arguments.output}/data/{name}.parquet: {count} rows")
    return document


def _export_to_others(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage.neighbours import flashinfer_export, kernel_tuner

    found = load_recording(arguments.recording)
    if arguments.to == "flashinfer-bench":
        if not arguments.problem or arguments.family:
            raise PresageError("a FlashInfer-Bench data set is written of one problem; name it with --problem alone")
        counts = flashinfer_export.export(found, arguments.problem, arguments.output)
    else:
        if arguments.output.exists():
            raise PresageError(f"{arguments.output} exists; name another file with -o")
        write = kernel_tuner.write_t4 if arguments.to == "t4" else kernel_tuner.write_cache
        counts = {"kernels": write(found, arguments.output, arguments.problem, arguments.family)}
    if not arguments.json:
        told = ", ".join(f"{count} {name}" for name, count in counts.items()).replace("_", " ")
        print(f"{arguments.output}: {told}")
    return {"folder": str(arguments.output), "splits": counts}


# -- scores -----------------------------------------------------------------------------------------------------------


def _fastp_arguments(parser: argparse.ArgumentParser) -> None:
    add_recording(parser)
    parser.add_argument(
        "--at", type=float, action="append", default=[], metavar="P",
        help="a threshold; can be repeated (default: 0, 1, 1.5 and 2)",
    )  # fmt: skip


def _fastp(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage.neighbours import kernelbench

    document = kernelbench.scores(load_recording(arguments.recording), arguments.at or kernelbench.THRESHOLDS)
    if not arguments.json:
        print(f"{document['attempts']} attempts at {document['problems']} problems, against the reference of each\n")
        rows = [[name, f"{share:.1%}", f"{document['best'][name]:.1%}"] for name, share in document["each"].items()]
        print(terminal.table(rows, ["", "of attempts", "of problems, by their best"]))
    return document


COMMANDS = {
    "import": (
        "make a recording from a Kernel Tuner cache, a T4 file, a FlashInfer-Bench data set or published pairs",
        _import_arguments,
        _import,
    ),
    "export": (
        "write a recording for the Hugging Face datasets library, or in another project's format",
        _export_arguments,
        _export,
    ),
    "fastp": ("score a recording of modules as KernelBench does: fast_p", _fastp_arguments, _fastp),
}
