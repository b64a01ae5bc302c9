"""The file in which calls wait: what is written is read, in order, whatever its size and however full it is."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windowpane.sources.proxy import spool as spool_module
from windowpane.sources.proxy.call_messages import EndedCall, FailedCall, SentCall, size_of
from windowpane.sources.proxy.spool import LENGTH_BYTES, Spool

CAPACITY = 300
OPERATIONS = st.lists(st.none() | st.binary(max_size=CAPACITY), max_size=40)
"""Writes, and None for a read."""


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool.create(tmp_path, CAPACITY)
    yield made
    made.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPERATIONS)
def test_messages_are_read_in_the_order_of_their_writing(spool: Spool, operations: list[bytes | None]) -> None:
    reading = Spool(spool.descriptor, CAPACITY)
    while reading.read() is not None:
        pass
    expected: deque[bytes] = deque()
    for message in operations:
        if message is None:
            assert reading.read() == (expected.popleft() if expected else None)
            continue
        used = sum(LENGTH_BYTES + len(one) for one in expected)
        has_room = used + LENGTH_BYTES + len(message) <= CAPACITY
        assert spool.write(message) is has_room
        if has_room:
            expected.append(message)

    assert [reading.read() for _ in range(len(expected) + 1)] == [*expected, None]


def test_the_room_of_what_was_read_is_given_back(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "SHRINK_BYTES", 250)
    empty = os.fstat(spool.descriptor).st_size
    spool.write(b"x" * 280)
    assert os.fstat(spool.descriptor).st_size > empty
    spool.read()
    spool.write(b"y")

    assert os.fstat(spool.descriptor).st_blocks * 512 <= empty + os.fstat(spool.descriptor).st_blksize
    assert spool.read() == b"y"


def test_no_other_program_can_open_the_file(spool: Spool, tmp_path: Path) -> None:
    """It has no name, and would be its owner's alone if it had one."""
    assert list(tmp_path.iterdir()) == []
    assert os.fstat(spool.descriptor).st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "/v1/messages", "é" * 50_000])
@pytest.mark.parametrize("pieces", [[], [b""] * 300, [b"x"] * 70_000, [bytes(300)] * 20, [bytes(70_000)]])
def test_the_size_of_a_message_covers_its_encoding(text: str, pieces: list[bytes]) -> None:
    for message in (
        SentCall(2**60, "messages", text, "claude-code", text, pieces, pieces, 1e18),
        EndedCall(2**60, 599, pieces, pieces, 1e18, 1e18),
        FailedCall(2**60, text, 1e18, 1e18),
    ):
        assert len(msgspec.msgpack.encode(message)) + LENGTH_BYTES <= size_of(message)
