"""`presage corpus collect | compile | pack | operators | check | ls | show | import | export | fastp`."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

from presage.api import load_recording
from presage.cli import documents, exchange, terminal
from presage.cli.exchange import say
from presage.core.errors import PresageError
from presage.devices import recorded, recording
from presage.devices import registry as devices
from presage.devices.recording import Row
from presage.devices.status import Status
from presage.static import toolkit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, (summary, declare, _) in _COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        sub.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document")
        declare(sub)


def run(arguments: argparse.Namespace) -> int:
    document = _COMMANDS[arguments.what][2](arguments)
    if arguments.json:
        documents.write(f"corpus.{arguments.what}", document)
    return 0


# -- collect, compile, pack -------------------------------------------------------------------------------------------


def _collect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "problems", nargs="*", metavar="PROBLEM", help="problems, or rooms of the catalogue (default: all)"
    )
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER", help="the folder to write journals to")
    parser.add_argument(
        "--modules", type=Path, metavar="FOLDER",
        help="measure modules for problems from elsewhere: NAME.py states one, and NAME/*.py are its modules",
    )  # fmt: skip
    parser.add_argument(
        "--without", action="append", metavar="RECORDING",
        help="with --modules: leave out what this recording has, by name or path; can be repeated",
    )  # fmt: skip
    parser.add_argument("--device", default="cuda", help="where to measure (default: cuda)")
    parser.add_argument(
        "--per-problem", type=terminal.whole(1), default=250, metavar="N", help="kernels per problem (default: 250)"
    )
    parser.add_argument(
        "--chunk", type=terminal.whole(1), default=60, metavar="N", help="measure this many at a time (default: 60)"
    )
    parser.add_argument(
        "--seconds", type=terminal.positive, metavar="S", help="stop after this long; run the command again to continue"
    )
    parser.add_argument(
        "--repeat", type=float, default=0.05, metavar="SHARE",
        help="measure this share of the kernels of earlier runs a second time (default: 0.05)",
    )  # fmt: skip
    parser.add_argument("--again", action="store_true", help="measure everything again")


def _collect(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage.corpus import collect

    if arguments.modules and arguments.problems:
        raise PresageError("--modules measures what is in its folder; leave out the problems")
    if arguments.without and not arguments.modules:
        raise PresageError("--without is for --modules; what a folder of journals has is not measured again")
    without = {pair for name in arguments.without or () for pair in recorded.find(name).pairs}
    problems = collect.find_problems(arguments.problems)
    device = devices.get(arguments.device)
    try:
        count = (
            collect.collect_modules(
                device, arguments.into, arguments.modules, seconds=arguments.seconds, without=without, say=say
            )
            if arguments.modules
            else collect.collect(
                device,
                arguments.into,
                problems,
                device.bulk_effort,
                per_problem=arguments.per_problem,
                chunk=arguments.chunk,
                seconds=arguments.seconds,
                repeat=arguments.repeat,
                again=arguments.again,
                say=say,
            )
        )
    finally:
        device.close()
    say(f"{count} measurements in {arguments.into}")
    return {"folder": str(arguments.into), "measurements": count}


def _compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        type=Path,
        help="the folder that 'presage corpus collect' wrote to, or a recording: a .parquet file",
    )
    parser.add_argument(
        "--target", help="the GPU that was measured (default: h200, or the one that a .parquet file names)"
    )
    parser.add_argument(
        "--seconds", type=terminal.positive, metavar="S", help="stop after this long; run the command again to continue"
    )
    parser.add_argument(
        "--processes", type=terminal.whole(1), metavar="N", help="compile this many at a time (default: one per core)"
    )
    parser.add_argument(
        "--modules", type=Path, metavar="FOLDER",
        help="the folder of the problems whose modules were measured; those of a recording are compiled again",
    )  # fmt: skip


def _compile(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage.corpus import pack
    from presage.static import hardware

    if arguments.folder.suffix == ".parquet":
        target = hardware.find(arguments.target) if arguments.target else None
        count = pack.add_reports_to(
            arguments.folder, target, arguments.seconds, arguments.processes, say, arguments.modules
        )
        say(f"{count} kernels compiled")
        return {"folder": str(arguments.folder), "compiled": count}
    count = pack.add_reports(
        arguments.folder,
        hardware.find(arguments.target or "h200"),
        arguments.seconds,
        arguments.processes,
        say,
        arguments.modules,
    )
    say(f"{count} kernels compiled")
    return {"folder": str(arguments.folder), "compiled": count}


def _pack_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the folder that 'presage corpus collect' wrote to")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.parquet", help="the recording to write"
    )
    parser.add_argument("--hardware", help="the name of the device, if it did not report one")
    parser.add_argument(
        "--without-sources", type=Path, metavar="FOLDER",
        help="of modules that lie in this folder record everything but the text, which belongs to others",
    )  # fmt: skip
    parser.add_argument(
        "--with", dest="earlier", metavar="RECORDING",
        help="take from this recording, by name or path, what the folder does not have",
    )  # fmt: skip


def _pack(arguments: argparse.Namespace) -> Any:
    from presage.corpus import pack

    earlier = recorded.find(arguments.earlier) if arguments.earlier else None
    found = pack.pack(
        arguments.folder,
        arguments.output,
        arguments.output.stem,
        arguments.hardware,
        arguments.without_sources,
        earlier,
    )
    summary = pack.summary(found)
    say(f"{arguments.output}: {summary['kernels']} kernels of {summary['problems']} problems")
    if summary["left_out"]:
        say(f"{summary['left_out']} kernels are left out: the machine failed each time they were measured")
    if summary["unreadable_lines"]:
        say(f"{summary['unreadable_lines']} lines of the journals cannot be read; collect again to replace them")
    return summary


# -- operators --------------------------------------------------------------------------------------------------------


def _operators_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--into", type=Path, required=True, metavar="FOLDER",
        help="the folder for the list of calls (calls.parquet) and the journals; if it has a list, that is measured",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="sources", type=Path, action="append", default=[], metavar="FOLDER",
        help="a folder of KernelBench problems, whose operators are listed, too; can be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--modules", type=Path, action="append", default=[], metavar="FOLDER",
        help="a folder as for 'corpus collect --modules', whose modules' operators are listed, too; can be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--without", action="append", default=[], metavar="RECORDING",
        help="leave out calls that this recording of operators has, by name or path; can be repeated",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="only make the list, which needs no GPU")
    parser.add_argument("--device", default="cuda", help="where to measure: cuda or cpu (default: cuda)")
    parser.add_argument("--target", default="h200", help="the GPU that modules are traced for (default: h200)")
    parser.add_argument(
        "--seconds", type=terminal.positive, metavar="S", help="stop after this long; run the command again to continue"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.parquet", help="write what was measured by now to this file"
    )
    parser.add_argument(
        "--with", dest="earlier", metavar="RECORDING",
        help="with -o: take from this recording of operators, by name or path, what the folder does not have",
    )  # fmt: skip


def _operators(arguments: argparse.Namespace) -> dict[str, Any]:
    if importlib.util.find_spec("torch") is None:
        raise PresageError(f"listing and measuring operators needs torch; {toolkit.INSTALL}")
    from presage.corpus import operator_list, operators
    from presage.devices import operator_recording, operator_timing

    if arguments.earlier and not arguments.output:
        raise PresageError("--with is for -o: it says what else the file is to have")
    path = arguments.into / operator_list.FILE
    if path.exists() and (arguments.sources or arguments.modules or arguments.without):
        raise PresageError(f"{path} is a list already; leave out what it is made from, or name another folder")
    timer = None if arguments.list else operator_timing.timer(arguments.device)
    if not path.exists():
        from presage.static import hardware

        target = hardware.find(arguments.target)
        known = {row["hash"] for name in arguments.without for row in operator_list.read(operator_recording.find(name))}
        found = operator_list.listed(arguments.sources, target, say, arguments.modules, known)
        operator_list.write(path, found)
    rows = operator_list.read(path)
    say(f"{len(rows)} calls of {len({row['operator'] for row in rows})} operators in {path}")
    count = operators.measure(rows, timer, arguments.into, seconds=arguments.seconds, say=say) if timer else 0
    recording = None
    if arguments.output:
        earlier = operator_recording.find(arguments.earlier) if arguments.earlier else None
        recording = operators.pack(rows, arguments.into, arguments.output, earlier)
        say(f"{arguments.output}: {recording['calls']} calls of {recording['operators']} operators")
    return {"folder": str(arguments.into), "listed": len(rows), "measured": count, "recording": recording}


# -- check, ls, show --------------------------------------------------------------------------------------------------


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    exchange.add_recording(parser)
    parser.add_argument(
        "--quick", action="store_true", help="do not check the hash of every source, which takes a minute"
    )


def _check(arguments: argparse.Namespace) -> dict[str, Any]:
    from presage.corpus import check

    document = check.check(load_recording(arguments.recording), hashes=not arguments.quick, say=say)
    if not arguments.json:
        _print_card(document)
    return document


def _print_card(card: dict[str, Any]) -> None:
    noise = card["noise"]
    print(f"{card['kernels']} kernels of {card['operations']} operations on {card['hardware']}")
    print(f"operations with CUDA and Triton  {card['operations_with_both_languages']}")
    print(f"failures                         {100 * card['failures']:.1f} %")
    print(f"statuses                         {', '.join(f'{n} {s}' for s, n in card['statuses'].items())}")
    print(f"with static reports              {card['with_reports']}")
    for what in ("within_run", "between_runs"):
        value = noise[what]
        print(f"noise {what.replace('_', ' '):26} {'not known' if value is None else f'{100 * value:.2g} %'}")
    rows = [[name, str(s["operations"]), str(s["kernels"])] for name, s in card["splits"].items()]
    print(terminal.table(rows, ["split", "operations", "kernels"]))
    rows = [[name, str(r["operations"]), str(r["kernels"])] for name, r in card["rooms"].items()]
    print(terminal.table(rows, ["room", "operations", "kernels"]))
    print("\n".join(card["problems"]) or "no problem was found")


def _ls_arguments(parser: argparse.ArgumentParser) -> None:
    exchange.add_recording(parser)
    parser.add_argument("--problem", help="list the kernels of this problem, the fastest first")
    parser.add_argument(
        "-n", type=terminal.whole(1), default=20, metavar="N", help="list at most this many kernels (default: 20)"
    )


def _ls(arguments: argparse.Namespace) -> dict[str, Any]:
    found = load_recording(arguments.recording)
    if arguments.problem:
        rows = recorded.RecordedDevice(found).rows(arguments.problem).values()
        ordered = sorted(rows, key=lambda row: (row.total_ns, row.name))[: arguments.n]
        if not arguments.json:
            cells = [[r.hash, r.language, str(r.status), _time(r), _speedup(r), r.name] for r in ordered]
            print(terminal.table(cells, ["hash", "language", "status", "time", "speedup", "kernel"]))
        return {"recording": found.name, "problems": [], "kernels": [_row_document(row) for row in ordered]}
    columns = found.columns("problem", "room", "split", "status", "speedup")
    problems: dict[str, dict[str, Any]] = {}
    for name, room, split, status, speedup in zip(*columns.values(), strict=True):
        entry = problems.setdefault(
            name, {"problem": name, "room": room, "split": split, "kernels": 0, "failures": 0, "best": 0.0}
        )
        entry["kernels"] += 1
        entry["failures"] += status != Status.OK
        entry["best"] = max(entry["best"], speedup or 0.0)
    if not arguments.json:
        cells = [
            [p["problem"], p["room"], p["split"], str(p["kernels"]), str(p["failures"]), f"{p['best']:.3g}x"]
            for p in problems.values()
        ]
        print(terminal.table(cells, ["problem", "room", "split", "kernels", "failures", "best over the seed"]))
    return {"recording": found.name, "problems": list(problems.values()), "kernels": []}


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", help="a problem of the recording")
    parser.add_argument("kernel", help="the hash or the name of a kernel, as 'presage corpus ls' prints it")
    exchange.add_recording(parser)


def _show(arguments: argparse.Namespace) -> dict[str, Any]:
    found = load_recording(arguments.recording)
    rows = recorded.RecordedDevice(found).rows(arguments.problem)
    row = next((row for row in rows.values() if arguments.kernel in (row.hash, row.name)), None)
    if row is None:
        raise PresageError(f"{found.name} has no kernel '{arguments.kernel}' of {arguments.problem}; see 'corpus ls'")
    if not arguments.json:
        print(f"{row.problem} {row.name}\n{row.hash}, {row.language}, {row.split or 'in no split'}: {row.status}")
        if row.reason:
            print(row.reason)
        for case in row.cases:
            value, low, high = case.median
            print(f"  {case.case}: {terminal.duration(value)} ({terminal.duration(low)} to {terminal.duration(high)})")
        if row.speedup:
            print(f"  {_speedup(row)} the speed of {row.anchor}")
        for report in row.reports[:1]:
            for launch in report.launches:
                shared, occupancy = f"{launch.shared_bytes} bytes shared", f"{launch.occupancy:.0%} occupancy"
                print(f"  {launch.name}: {launch.registers} registers, {shared}, {occupancy}")
        print(f"\n{row.source}")
    return _row_document(row) | {"source": row.source, "reports": [report.to_json() for report in row.reports]}


def _time(row: Row) -> str:
    return terminal.duration(row.total_ns) if row.cases else ""


def _speedup(row: Row) -> str:
    return f"{row.speedup.value:.3g}x" if row.speedup else ""


def _row_document(row: Row) -> dict[str, Any]:
    return {
        "problem": row.problem,
        "kernel": {"name": row.name, "hash": row.hash, "language": row.language, "values": dict(row.values)},
        "split": row.split,
        "status": str(row.status),
        "reason": row.reason,
        "cases": [recording.case_record(case) for case in row.cases],
        "anchor": row.anchor,
        "speedup": row.speedup._asdict() if row.speedup else None,
        "facts": dict(row.facts),
    }


_COMMANDS = {
    "collect": (
        "measure the kernels of the catalogue on a device; run it again to continue",
        _collect_arguments,
        _collect,
    ),
    "compile": ("compile what was collected, and add what that tells", _compile_arguments, _compile),
    "pack": ("write a recording of what was collected", _pack_arguments, _pack),
    "operators": (
        "measure calls of torch's operators on a device; run it again to continue",
        _operators_arguments,
        _operators,
    ),
    "check": ("check a recording and print its numbers", _check_arguments, _check),
    "ls": ("list the problems of a recording, or the kernels of one", _ls_arguments, _ls),
    "show": ("show one recorded kernel", _show_arguments, _show),
    **exchange.COMMANDS,
}
