"""Messages between parent and child: what one side sends, and what the other believes."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from presage.devices.worker import wire


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        try:
            os.close(fd)
        except OSError:
            continue


@pytest.mark.parametrize("message", [{}, {"a": 1, "b": [1.5, None, "é"]}, {"long": "x" * 300_000}])
def test_a_message_arrives_as_it_was_sent(pipe: tuple[int, int], message: dict[str, object]) -> None:
    sender = threading.Thread(target=wire.send, args=(pipe[1], message))
    sender.start()
    assert wire.receive(pipe[0], time.monotonic() + 60) == message
    sender.join()


def test_a_token_arrives_as_it_was_sent_and_every_one_is_new(pipe: tuple[int, int]) -> None:
    tokens = [wire.token() for _ in range(5)]
    assert len(set(tokens)) == 5
    for token in tokens:
        wire.send_token(pipe[1], token)
    wire.send(pipe[1], {"b": 1})
    assert [wire.receive_token(pipe[0]) for _ in tokens] == tokens
    assert wire.receive(pipe[0]) == {"b": 1}


def test_whoever_watches_returns_at_the_deadline_or_when_there_is_something(pipe: tuple[int, int]) -> None:
    wire.watch(pipe[0], time.monotonic() + 0.02)
    assert not wire.pending(pipe[0])
    later = threading.Timer(0.05, wire.send_token, (pipe[1], wire.token()))
    later.start()
    wire.watch(pipe[0])
    assert wire.pending(pipe[0])
    os.close(pipe[1])
    wire.receive_token(pipe[0])
    wire.watch(pipe[0])
    with pytest.raises(wire.ClosedError):
        wire.receive_token(pipe[0])


def test_half_a_token_is_none(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"\xff" * 8)
    with pytest.raises(wire.SilenceError):
        wire.receive_token(pipe[0], time.monotonic() + 0.05)
    os.write(pipe[1], b"12345678")
    os.close(pipe[1])
    with pytest.raises(wire.WireError, match="cut off"):
        wire.receive_token(pipe[0])


def test_messages_keep_their_order(pipe: tuple[int, int]) -> None:
    for i in range(5):
        wire.send(pipe[1], {"i": i})
    assert [wire.receive(pipe[0])["i"] for _ in range(5)] == list(range(5))


def framed(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (framed(b"not json"), "not JSON"),
        (framed(b'{"a": '), "not JSON"),
        (framed(b"\xff\xfe\xfd"), "not JSON"),
        (framed(b""), "not JSON"),
        (framed(b"[" * 50_000), "not JSON"),
        (framed(b"[1, 2]"), "not an object"),
        (framed(b"null"), "not an object"),
        (struct.pack("<I", wire.MAX_BYTES + 1), "bytes was announced"),
        (b"\xff\xff\xff\xff", "bytes was announced"),
        (framed(b"{}")[:-1], "cut off"),
        (b"\x01", "cut off"),
    ],
)
def test_garbage_is_no_message(pipe: tuple[int, int], data: bytes, complaint: str) -> None:
    os.write(pipe[1], data)
    os.close(pipe[1])
    with pytest.raises(wire.WireError, match=complaint):
        wire.receive(pipe[0], time.monotonic() + 60)


def test_a_closed_channel_is_told_from_a_silent_one(pipe: tuple[int, int]) -> None:
    with pytest.raises(wire.SilenceError):
        wire.receive(pipe[0], time.monotonic() + 0.01)
    os.close(pipe[1])
    with pytest.raises(wire.ClosedError):
        wire.receive(pipe[0], time.monotonic() + 60)


@pytest.mark.parametrize("start", [b"\x01", framed(b'{"a": 1}')[:-1]])
def test_half_a_message_does_not_hold_the_reader_for_ever(pipe: tuple[int, int], start: bytes) -> None:
    os.write(pipe[1], start)
    with pytest.raises(wire.SilenceError):
        wire.receive(pipe[0], time.monotonic() + 0.05)


def test_what_nobody_asked_for_is_seen(pipe: tuple[int, int]) -> None:
    assert not wire.pending(pipe[0])
    os.write(pipe[1], b"!")
    assert wire.pending(pipe[0])
