"""The reading process: `python -m windowpane.proxy.reader_main`, started by `reader_process`."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

import msgspec

from windowpane.observer.conversations import Scope
from windowpane.proxy.call_messages import CallMessage, LostCalls
from windowpane.proxy.call_reader import CallReader
from windowpane.proxy.reader_process import LENGTH_BYTES, ReaderSettings
from windowpane.runtime.start import start

NICENESS: Final = 10
"""The calls themselves come first where processors are scarce."""


class _LogLines(logging.Handler):
    """Writes each record as a line for the forwarding process, which logs it."""

    def emit(self, record: logging.LogRecord) -> None:
        _write_line(log=(record.levelno, self.format(record)))


def main() -> None:
    """Read calls until the end of the input."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the end of the input is the end
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(NICENESS)
    logging.basicConfig(handlers=[_LogLines()], level=logging.WARNING)
    frames = _frames(sys.stdin.buffer)
    settings = msgspec.msgpack.decode(next(frames), type=ReaderSettings)
    try:
        outputs = start(port=settings.metrics_port, store=settings.store, capture=settings.capture)
    except Exception as error:  # noqa: BLE001  # reported by the forwarding process, which was not started either
        _write_line(error=str(error))
        sys.exit(1)
    _write_line(metrics_url=outputs.url)
    reader = CallReader(outputs, Scope(settings.agent, limit_tokens=settings.limit_tokens))
    decoder = msgspec.msgpack.Decoder(CallMessage)
    for frame in frames:
        message = decoder.decode(frame)
        if isinstance(message, LostCalls):
            outputs.record_drop("observer", "full", message.count)
        else:
            reader.read(message)
    outputs.close()


def _frames(stream: BinaryIO) -> Iterator[bytes]:
    while len(length := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        size = int.from_bytes(length, "big")
        frame = stream.read(size)
        if len(frame) < size:  # the forwarding process was killed
            return
        yield frame


def _write_line(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
