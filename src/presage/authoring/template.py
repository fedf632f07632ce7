"""Write a new package from a template: a problem, forecaster or policy that works as written."""

from __future__ import annotations

import keyword
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template

from presage.core.errors import PresageError
from presage.plugins.group import PROBLEMS, Group
from presage.problems import registry as problems

_TEMPLATES = Path(__file__).with_name("templates")
_SUFFIX = ".template"
_LONGEST = 40
VERBS = ("new", "check")
"""Subcommands that take the place of a name on the command line. They cannot be names of parts."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Written:
    """A package that was written."""

    folder: Path
    files: tuple[Path, ...]
    """In the order in which an author should read them."""


def write(group: Group, name: str, into: Path = Path()) -> Written:
    """Write the package of a new part into the folder `into/NAME`. Raises PresageError for an invalid or taken name, a
    folder that is not empty, and a folder that cannot be written to."""
    _check_name(group, name)
    folder = into / name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PresageError(f"{folder} is there already; choose another name, or another folder with --into")
    package = f"presage_{name}"
    if find_spec(package):
        raise PresageError(f"the package {package} is installed already; choose another name")
    fields = {
        "noun": group.noun,
        "plural": group.plural,
        "name": name,
        "package": package,
        "distribution": package.replace("_", "-"),
        "class_name": "".join(part.capitalize() for part in name.split("_")),
    }
    texts = {folder / place: text for place, text in _filled(group.noun, fields)}
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        place = error.filename or folder
        raise PresageError(f"cannot write {place}: {error.strerror}; name a folder with --into") from error
    return Written(folder, tuple(texts))


def _check_name(group: Group, name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in VERBS or len(name) > _LONGEST:
        rule = f"lower-case letters, digits and underscores, a letter first, {_LONGEST} characters at most"
        raise PresageError(f"'{name}' cannot be the name of a {group.noun}: it has {rule}, and is no Python keyword")
    if name in (problems.names() if group is PROBLEMS else group.names()):
        raise PresageError(f"there is a {group.noun} '{name}' already; choose another name")


def _filled(noun: str, fields: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """The path of each file in the new folder, and its text."""
    shared = _TEMPLATES / f"pyproject.toml{_SUFFIX}"
    yield Path("pyproject.toml"), Template(shared.read_text()).substitute(fields)
    names = {"package": fields["package"], "kernels": fields["name"]}
    folder = _TEMPLATES / noun
    files = folder.rglob(f"*{_SUFFIX}")
    for file in sorted(files, key=lambda file: (file.name.startswith("test_"), len(file.parts), file)):
        *parents, last = file.relative_to(folder).parts
        last = last.removesuffix(_SUFFIX).replace("test_package", f"test_{fields['name']}")
        yield Path(*(names[part] for part in parents), last), Template(file.read_text()).substitute(fields)
