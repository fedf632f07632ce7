"""Turn a conversation into the inputs of a model: tokens and, for a vision model, pictures.

Messages have the form of the OpenAI interface: the content is text, or a list of parts `text` and `image_url`. The
address of a picture is a `data:` URL or the path of a file; nothing is fetched from the network.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError, install
from presage.core.text import one_line
from presage.llm.weights import Weights, import_libraries

Messages = Sequence[Mapping[str, Any]]
_TOKENS = ("input_ids", "attention_mask")


@dataclass(frozen=True)
class Prompt:
    """A conversation up to the point where the model answers."""

    ids: tuple[int, ...]
    text: str = ""
    pictures: tuple[str, ...] = ()
    """The addresses of the pictures. Pixels take much memory, so they are read when they are needed."""

    def __len__(self) -> int:
        return len(self.ids)


def prompts(weights: Weights, conversations: Sequence[Messages]) -> list[Prompt]:
    """The prompt of each conversation. Raises PresageError if one has a picture and the model is not a vision model."""
    if weights.processor is None:
        return [Prompt(tuple(ids)) for ids in all_prompt_ids(weights.tokenizer, conversations)]
    found = []
    for messages in conversations:
        text = prompt_text(weights.processor, [_for_processor(each) for each in messages])
        pictures = addresses(messages)
        taken = _processed(weights, text, pictures)
        found.append(Prompt(tuple(taken["input_ids"][0].tolist()), text, pictures))
    return found


def addresses(messages: Messages) -> tuple[str, ...]:
    """The addresses of all pictures in a conversation."""
    parts = [part for each in messages if not isinstance(each["content"], str) for part in each["content"]]
    return tuple(part["image_url"]["url"] for part in parts if part["type"] == "image_url")


def beside(weights: Weights, prompt: Prompt) -> dict[str, Any]:
    """The model's inputs for the pictures of a prompt, by the processor's names for them; empty without pictures."""
    if not prompt.pictures:
        return {}
    taken = _processed(weights, prompt.text, prompt.pictures)
    return {name: value for name, value in taken.items() if name not in _TOKENS}


def _processed(weights: Weights, text: str, pictures: Sequence[str]) -> Mapping[str, Any]:
    images = [_picture(address) for address in pictures]
    try:
        taken: Mapping[str, Any] = weights.processor(text=[text], images=images or None, return_tensors="pt")
    except (ValueError, IndexError, RuntimeError) as error:
        raise PresageError(f"{weights.name} cannot take a question with {len(images)} pictures: {error}") from error
    return taken


def _picture(address: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise PresageError(f"pictures need the pillow package; {install('gui')}") from error
    try:
        return Image.open(io.BytesIO(_content(address))).convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise PresageError(f"{one_line(address, 80)} is not a picture that can be read: {error}") from error


def _content(address: str) -> bytes:
    if address.startswith("data:"):
        try:
            return base64.b64decode(address.partition(",")[2], validate=True)
        except binascii.Error as error:
            raise ValueError(f"it is not base64: {error}") from error
    if "://" in address:
        raise ValueError("only files and data: addresses are read")
    return Path(address).read_bytes()


def _for_processor(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the form that the chat templates of vision models expect."""
    told = [{"type": "image"} if part["type"] == "image_url" else dict(part) for part in _parts(message["content"])]
    return {"role": message["role"], "content": told}


# -- text alone --------------------------------------------------------------------------------------------------------


def prompt_ids(tokenizer: Any, messages: Messages) -> list[int]:
    """The tokens of a conversation up to the answer, in the model's chat template if it has one."""
    return all_prompt_ids(tokenizer, [messages])[0]


def all_prompt_ids(tokenizer: Any, conversations: Sequence[Messages]) -> list[list[int]]:
    """The tokens of many conversations. The tokenizer uses all cores for a batch. It refuses halves of surrogate pairs,
    which become question marks."""
    if not conversations:
        return []
    if any(map(addresses, conversations)):
        raise PresageError("the questions have pictures, which this model does not take")
    has_template = bool(getattr(tokenizer, "chat_template", None))
    texts = [prompt_text(tokenizer, messages).encode(errors="replace").decode() for messages in conversations]
    found: list[list[int]] = tokenizer(texts, add_special_tokens=not has_template)["input_ids"]
    return found


def prompt_text(template: Any, messages: Messages) -> str:
    """The text of a conversation up to the answer. template: a tokenizer, or the processor of a vision model."""
    if getattr(template, "chat_template", None):
        return _in_template(template, messages)[0]
    if not all(isinstance(message["content"], str) for message in messages):
        raise PresageError("this model sees pictures, but has no template for a conversation with them")
    return "\n\n".join(message["content"] for message in messages) + "\n\nAnswer: "


def accepted(template: Any, messages: Messages) -> Messages:
    """The conversation as the model's chat template accepts it: some templates refuse a system message."""
    return _in_template(template, messages)[1]


def _in_template(template: Any, messages: Messages) -> tuple[str, Messages]:
    """The text of a conversation, and the conversation as the template has accepted it."""
    try:
        text = template.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        return str(text), messages
    except Exception as error:  # a template is a program of its author's, and may raise anything
        if (folded := without_system(messages)) is not messages:
            return _in_template(template, folded)
        raise PresageError(f"the model's chat template refuses a conversation: {one_line(str(error), 200)}") from error


def without_system(messages: Messages) -> Messages:
    """The conversation with its system message at the start of the user's, for templates that refuse a system message.

    >>> without_system([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}])
    [{'role': 'user', 'content': 'Be brief.\\n\\nHello'}]
    """
    if [each["role"] for each in messages[:2]] != ["system", "user"]:
        return messages
    system, user = (each["content"] for each in messages[:2])
    if isinstance(system, str) and isinstance(user, str):
        content: Any = f"{system}\n\n{user}"
    else:
        content = [part for each in (system, user) for part in _parts(each)]
    return [{"role": "user", "content": content}, *messages[2:]]


def _parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def answer_ids(tokenizer: Any, answers: Iterable[str]) -> list[int]:
    """The token of each short answer; some tokenizers put a token for a space before it. Raises PresageError if an
    answer has no token of its own."""
    tokens: list[int] = []
    for answer in answers:
        *_, last = tokenizer.encode(answer, add_special_tokens=False) or [None]
        if last is None or last in tokens or tokenizer.decode([last]).strip() != answer.strip():
            raise PresageError(f"this model cannot be read out: its tokenizer has no one token for {answer[:40]!r}")
        tokens.append(last)
    return tokens


# -- many in one pass --------------------------------------------------------------------------------------------------


def padded(rows: Sequence[Sequence[int]], besides: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The model's inputs for these rows of tokens, padded on the right. besides: the inputs of each row for its
    pictures. Token types are padded like tokens; pixels are concatenated."""
    torch, _ = import_libraries()
    longest = max(map(len, rows))
    ids = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.as_tensor(list(row))
        mask[place, : len(row)] = 1
    told = {"input_ids": ids}
    names = dict.fromkeys(name for each in besides for name in each)
    if names:  # vision models compute token positions from the mask
        told["attention_mask"] = mask
    for name in names:
        if name.endswith("type_ids"):
            told[name] = _along(ids, [each.get(name) for each in besides])
        else:
            told[name] = _stacked([each[name] for each in besides if name in each])
    return told


def _along(ids: Any, kinds: Sequence[Any]) -> Any:
    """The type of each token; 0 for tokens of answers and of rows without pictures."""
    torch, _ = import_libraries()
    whole = torch.zeros_like(ids)
    for place, kind in enumerate(kinds):
        if kind is not None:
            whole[place, : kind.shape[1]] = kind[0]
    return whole


def _stacked(values: Sequence[Any]) -> Any:
    """The concatenation of tensors; smaller ones are padded with zeros."""
    torch, _ = import_libraries()
    most = [max(sizes) for sizes in zip(*(value.shape[1:] for value in values), strict=True)]
    whole = []
    for value in values:
        room = [size - has for has, size in zip(value.shape[1:], most, strict=True)]
        whole.append(torch.nn.functional.pad(value, [side for extra in reversed(room) for side in (0, extra)]))
    return torch.cat(whole)
