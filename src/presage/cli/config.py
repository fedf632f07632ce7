"""`presage config`: show where configuration files are looked for, and what they set."""

from __future__ import annotations

import argparse

from presage.cli import defaults, documents, terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    return


def run(arguments: argparse.Namespace) -> int:
    from presage.cli import completion

    found = defaults.settings()
    defaults.apply(completion.whole_parser(), None)  # raises if a file sets an option that does not exist
    files = [{"path": str(file), "exists": file.is_file()} for file in defaults.files()]
    if arguments.json:
        rows = [setting._asdict() | {"file": str(setting.file)} for setting in found]
        documents.write("config", {"files": files, "settings": rows})
        return 0
    for file in files:
        print(f"{file['path']}: {'read' if file['exists'] else 'does not exist'}")
    if found:
        cells = [[each.command, each.option, str(each.value), str(each.file)] for each in found]
        print(f"\n{terminal.table(cells, ['command', 'option', 'value', 'file'])}")
    return 0
