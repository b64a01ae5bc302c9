"""The process that reads the passing calls and runs the outputs, seen from the forwarding one.

Parsing, comparing and counting a call takes longer than forwarding it, and would share one interpreter with it.
The messages go through the process's standard input, each after its length. It ends at the end of its input,
so it never outlives the forwarding process; its standard output has a line of JSON for its start and for each
line of its log.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from windowpane.exceptions import WindowpaneError
from windowpane.proxy.call_messages import CallMessage

START_SECONDS: Final = 60.0
PIPE_BYTES: Final = 1 << 20
LENGTH_BYTES: Final = 4
"""Size of the length before each message."""

_log: Final = logging.getLogger("windowpane")
_encoder: Final = msgspec.msgpack.Encoder()


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the process, its first message."""

    agent: str
    limit_tokens: int | None = None
    metrics_port: int = 0
    store: str | None = None
    capture: bool | None = None


class ReaderError(WindowpaneError):
    """The process did not start; the message is its reason."""


class ReaderProcess:
    """One process, which is ready to read. *on_end* is called on another thread when it has ended.

    Raises `ReaderError` if it does not start.
    """

    def __init__(self, settings: ReaderSettings, on_end: Callable[[], object]) -> None:
        self._on_end = on_end
        self._error = "it did not start"
        self.metrics_url: str | None = None
        """URL of `/metrics`; None if no port is free."""
        self.started_at = time.monotonic()
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._popen = subprocess.Popen(  # this program
            [sys.executable, "-P", "-m", "windowpane.proxy.reader_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pipesize=PIPE_BYTES,
            start_new_session=True,  # an interrupt from the terminal is for the forwarding process
        )
        threading.Thread(target=self._read_lines, name="windowpane-reader", daemon=True).start()
        with suppress(OSError):
            self.send(settings)
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

    def send(self, message: CallMessage | ReaderSettings) -> None:
        """Pass on a message; waits while the pipe is full. Raises `OSError` if the process has ended."""
        encoded = _encoder.encode(message)
        assert self._popen.stdin is not None
        self._popen.stdin.write(len(encoded).to_bytes(LENGTH_BYTES, "big"))
        self._popen.stdin.write(encoded)
        self._popen.stdin.flush()

    def stop(self, timeout_seconds: float) -> int | None:
        """Let it read what it was sent, and return its exit code; None if it took longer and was killed."""
        assert self._popen.stdin is not None
        code = self._popen.poll()
        if timeout_seconds > 0:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._popen.stdin.close()
                code = self._popen.wait(timeout_seconds)
        if code is None:
            self._popen.kill()
            self._popen.wait()
        with suppress(OSError):
            self._popen.stdin.close()
        self._ended.set()
        return code

    def _read_lines(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as lines:
            for line in lines:
                self._read_line(line)
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
