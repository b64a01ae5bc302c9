"""The reading process: `python -m windowpane.sources.proxy.reader_main`, started by `reader_process`."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from windowpane.models.tokens import load_for_bulk
from windowpane.outputs.runtime.start import start
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy.call_messages import CallMessage, LostCalls
from windowpane.sources.proxy.call_reader import CallReader, boundary
from windowpane.sources.proxy.reader_process import ReaderSettings
from windowpane.sources.proxy.spool import LENGTH_BYTES, Spool
from windowpane.sources.transcripts.agent_settings import stated_level

NICENESS: Final = 10
"""The calls themselves come first where processors are scarce."""
INPUT: Final = 0
"""Standard input."""
WAKE_BYTES: Final = 1 << 16
AUTOGROUP: Final = Path("/proc/self/autogroup")
LEAST_SHARE: Final = 19
USUAL_SHARE: Final = 0


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
    load_for_bulk()
    try:
        outputs = start(port=settings.metrics_port, store=settings.store, capture=settings.capture)
    except Exception as error:  # noqa: BLE001  # reported by the forwarding process, which was not started either
        _write_line(error=str(error))
        sys.exit(1)
    _write_line(metrics_url=outputs.url)
    level = partial(_level_by_settings, settings) if settings.folder else None
    calls = CallReader(
        outputs, Scope(settings.agent, limit_tokens=settings.limit_tokens, level_by_settings=level)
    )
    decoder = msgspec.msgpack.Decoder(CallMessage)

    def read(encoded: bytes) -> None:
        with boundary.contain("reading a call"):
            message = decoder.decode(encoded)
            if isinstance(message, LostCalls):
                outputs.record_drop("observer", "full", message.count)
            else:
                calls.read(message)

    _read_beside_calls(spool, read)
    while (encoded := spool.read()) is not None:  # the forwarding process has ended: nothing is delayed any more
        read(encoded)
    outputs.close()


def _level_by_settings(settings: ReaderSettings, agent: str, limit_tokens: int | None) -> int | None:
    """Return the level for a session that starts now; the variables of the agent are those of this process."""
    return stated_level(
        agent,
        limit_tokens=limit_tokens,
        started_at=time.time(),
        folder=settings.folder,
        environment=os.environ,
        overrides=settings.overrides,
    )


def _read_beside_calls(spool: Spool, read: Callable[[bytes], None]) -> None:
    """Read messages until the forwarding process has ended, only while no other process needs the processor."""
    woken, is_over = threading.Event(), threading.Event()
    woken.set()  # messages of a process that was killed may wait

    def read_waiting() -> None:
        with suppress(AttributeError, OSError):  # not the thread that reads the rest: it cannot be undone
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while not is_over.is_set():
            woken.wait()
            woken.clear()
            while not is_over.is_set() and (encoded := spool.read()) is not None:
                read(encoded)

    _share_processors(LEAST_SHARE)
    reading = threading.Thread(target=read_waiting, name="windowpane-reading")
    reading.start()
    while os.read(INPUT, WAKE_BYTES):
        woken.set()
    is_over.set()
    woken.set()
    _share_processors(USUAL_SHARE)
    reading.join()


def _share_processors(niceness: int) -> None:
    """Set the priority of this process beside those of other sessions, where Linux groups processes by them."""
    with suppress(OSError):
        AUTOGROUP.write_text(str(niceness), encoding="ascii")


def _settings() -> ReaderSettings:
    size = int.from_bytes(os.read(INPUT, LENGTH_BYTES), "big")
    return msgspec.msgpack.decode(os.read(INPUT, size), type=ReaderSettings)


def _write_line(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
