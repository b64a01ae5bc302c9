"""The binary framing of event streams in AWS services."""

from __future__ import annotations

import json
import struct
from binascii import crc32
from typing import Any

_STRING = 7
"""Type of a header whose value is text."""


def frame(event: dict[str, Any]) -> bytes:
    """Return one event, given as its name and its fields, as a message of the stream."""
    [(name, fields)] = event.items()
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, json.dumps(fields).encode())


def exception_frame(name: str, text: str) -> bytes:
    """Return an exception that ends a stream."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, json.dumps({"message": text}).encode())


def message(headers: dict[str, str], payload: bytes) -> bytes:
    """Return a message: lengths, headers and payload, each part with its checksum."""
    encoded = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    checked = prelude + struct.pack("!I", crc32(prelude)) + encoded + payload
    return checked + struct.pack("!I", crc32(checked))


def _header(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([_STRING]) + struct.pack("!H", len(value)) + value
