"""The process that reads the passing calls and runs the outputs, seen from the forwarding one.

Parsing, comparing and counting a call takes longer than forwarding it, and would share one interpreter with it.
The messages go through a file (`spool`), so the forwarding process never waits for the reading one. The
process's standard input has its settings, then a byte for each message; it ends at the end of its input, with
the last message, so it does not outlive the forwarding process for long. Its standard output has a line of JSON
for its start and for each line of its log.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from windowpane.exceptions import WindowpaneError
from windowpane.sources.proxy.spool import LENGTH_BYTES, Spool

START_SECONDS: Final = 60.0

_log: Final = logging.getLogger("windowpane")


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the process, which it is sent when it starts."""

    agent: str
    limit_tokens: int | None = None
    metrics_port: int = 0
    store: str | None = None
    capture: bool | None = None
    folder: str = ""
    """The folder in which the only caller runs, on this machine; empty where any program may call."""
    overrides: dict[str, Any] = {}
    """Settings on the command line of that program that decide the level at which it compacts."""


class ReaderError(WindowpaneError):
    """The process did not start; the message is its reason."""


class ReaderProcess:
    """One process, which is ready to read. *on_end* is called on another thread when it has ended.

    Raises `ReaderError` if it does not start.
    """

    def __init__(self, settings: ReaderSettings, spool: Spool, on_end: Callable[[], object]) -> None:
        self._on_end = on_end
        self._error = "it did not start"
        self.metrics_url: str | None = None
        """URL of `/metrics`; None if no port is free."""
        self.started_at = time.monotonic()
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._popen = subprocess.Popen(  # noqa: S603  # this program
            [
                *(sys.executable, "-P", "-m", "windowpane.sources.proxy.reader_main"),
                *(str(spool.descriptor), str(spool.capacity)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[spool.descriptor],
            start_new_session=True,  # an interrupt from the terminal is for the forwarding process
        )
        assert self._popen.stdin is not None
        self._input = self._popen.stdin
        threading.Thread(target=self._read_lines, name="windowpane-reader", daemon=True).start()
        with suppress(OSError):
            encoded = msgspec.msgpack.encode(settings)
            self._input.write(len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded)
            self._input.flush()
        os.set_blocking(self._input.fileno(), False)
        is_ready = self._ready.wait(START_SECONDS) and not self._ended.is_set()
        if not is_ready:
            self.stop(0)
            raise ReaderError(self._error)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def has_ended(self) -> bool:
        """The process runs no longer."""
        return self._ended.is_set()

    def wake(self) -> None:
        """Let it look for messages. One that has ended, or still has to read earlier ones, needs no notice."""
        with suppress(OSError, ValueError):
            os.write(self._input.fileno(), b"+")

    def stop(self, timeout_seconds: float) -> int | None:
        """Let it read what waits, and return its exit code; None if it took longer and was killed."""
        code = self._popen.poll()
        if timeout_seconds > 0:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._input.close()
                code = self._popen.wait(timeout_seconds)
        if code is None:
            self._popen.kill()
            self._popen.wait()
        with suppress(OSError):
            self._input.close()
        self._ended.set()
        return code

    def _read_lines(self) -> None:
        assert self._popen.stdout is not None
        try:
            with self._popen.stdout as lines:
                for line in lines:
                    self._read_line(line)
        finally:
            self._ended.set()
            self._ready.set()
            self._on_end()

    def _read_line(self, line: bytes) -> None:
        try:
            level, text = json.loads(line)["log"]
        except KeyError:
            started = json.loads(line)
            self.metrics_url = started.get("metrics_url")
            self._error = started.get("error", self._error)
            if "error" not in started:
                self._ready.set()
        except (ValueError, TypeError):  # written by the interpreter, or by a library
            _log.warning("the process that reads calls: %s", line.decode("utf-8", "replace").rstrip())
        else:
            _log.log(level, "%s", text)
