"""The training data of a model: conversations that end with the right answer.

`presage train llm` makes them from recordings, or reads a folder of the user's own (`--questions FOLDER`). The folder
has `train.jsonl` and `validation.jsonl` with a conversation in each line, `{"messages": […], "group": …}`, in the usual
form for chat models; the last message is the answer. Pictures are files in the folder. `group` (a task, an operation)
is optional; the two halves of the validation split never share a group.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.text import one_line
from presage.llm.prompts import Messages, addresses

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Conversation:
    """A question and its right answer."""

    messages: Messages
    answer: str
    group: str = ""

    @property
    def has_pictures(self) -> bool:
        return bool(addresses(self.messages))


def read(folder: Path, split: str, limit: int = 0, seed: int = 0) -> list[Conversation]:
    """The user's own conversations in a random order. A limit takes the first of this order. Raises PresageError."""
    file = folder / f"{split}.jsonl"
    try:
        lines = file.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise PresageError(
            f"cannot read {file}: {why}; a folder of questions has train.jsonl and validation.jsonl"
        ) from error
    if lines == [""]:
        raise PresageError(f"{file} is empty")
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(_conversation(json.loads(line), folder, f"{split}:{number}"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PresageError(
                f"{file}, line {number}: {one_line(str(error), 200)}; each line is a JSON object with the list "
                "'messages', of which the last is the assistant's"
            ) from error
    random.Random(seed).shuffle(found)
    return found[:limit] if limit else found


def answers(conversations: Sequence[Conversation]) -> list[str]:
    """All distinct answers: the choices of a model that is read out."""
    return sorted({each.answer for each in conversations})


def digest(folder: Path) -> str:
    """A hash of the training data. A training continues only with the questions that it began with."""
    return hashlib.sha256((folder / "train.jsonl").read_bytes()).hexdigest()[:16]


def _conversation(record: Mapping[str, Any], folder: Path, name: str) -> Conversation:
    *asked, last = record["messages"]
    if last["role"] != "assistant" or not isinstance(last["content"], str):
        raise ValueError("the last message is not the assistant's, in words")
    if not asked:
        raise ValueError("nothing is asked")
    return Conversation([_message(each, folder) for each in asked], last["content"], str(record.get("group", name)))


def _message(message: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    role, content = message["role"], message["content"]
    if role not in _ROLES:
        raise ValueError(f"the role '{role}' is none of {', '.join(_ROLES)}")
    if isinstance(content, str):
        return {"role": role, "content": content}
    return {"role": role, "content": [_part(part, folder) for part in content]}


def _part(part: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": str(part["text"])}
    if part["type"] != "image_url":
        raise ValueError(f"a part is text or image_url, not '{part['type']}'")
    address = str(part["image_url"]["url"])
    if not address.startswith("data:"):
        if "://" in address:
            raise ValueError("a picture is a file of the folder; nothing is fetched")
        place = (folder / address).resolve()
        if not place.is_relative_to(folder.resolve()) or not place.is_file():
            raise ValueError(f"there is no picture {address} in the folder")
        address = str(place)
    return {"type": "image_url", "image_url": {"url": address}}
