"""The reading process: `python -m windowpane.proxy.reader_main`, started by `reader_process`."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from windowpane.observer.conversations import Scope
from windowpane.proxy.call_messages import CallMessage, LostCalls
from windowpane.proxy.call_reader import CallReader
from windowpane.proxy.reader_process import ReaderSettings
from windowpane.proxy.spool import LENGTH_BYTES, Spool
from windowpane.runtime.start import start

NICENESS: Final = 10
"""The calls themselves come first where processors are scarce."""
INPUT: Final = 0
"""Standard input."""
WAKE_BYTES: Final = 1 << 16


class _LogLines(logging.Handler):
    """Writes each record as a line for the forwarding process, which logs it."""

    def emit(self, record: logging.LogRecord) -> None:
        _write_line(log=(record.levelno, self.format(record)))


def main() -> None:
    """Read calls until the end of the input."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the end of the input is the end
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    logging.basicConfig(handlers=[_LogLines()], level=logging.WARNING)
    spool = Spool(int(sys.argv[1]), int(sys.argv[2]))
    settings = _settings()
    try:
        outputs = start(port=settings.metrics_port, store=settings.store, capture=settings.capture)
    except Exception as error:  # noqa: BLE001  # reported by the forwarding process, which was not started either
        _write_line(error=str(error))
        sys.exit(1)
    _write_line(metrics_url=outputs.url)
    _step_back()
    reader = CallReader(outputs, Scope(settings.agent, limit_tokens=settings.limit_tokens))
    decoder = msgspec.msgpack.Decoder(CallMessage)
    for encoded in _messages(spool):
        message = decoder.decode(encoded)
        if isinstance(message, LostCalls):
            outputs.record_drop("observer", "full", message.count)
        else:
            reader.read(message)
    outputs.close()


def _settings() -> ReaderSettings:
    size = int.from_bytes(os.read(INPUT, LENGTH_BYTES), "big")
    return msgspec.msgpack.decode(os.read(INPUT, size), type=ReaderSettings)


def _messages(spool: Spool) -> Iterator[bytes]:
    """Yield the messages until the forwarding process has ended and all are read."""
    is_open = True
    while True:
        while (message := spool.read()) is not None:  # some may be those of a process that was killed
            yield message
        if not is_open:
            return
        is_open = bool(os.read(INPUT, WAKE_BYTES))


def _step_back() -> None:
    """Let this thread read only while no other one needs the processor, where the system can do that."""
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _write_line(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
