"""Aider's history of chats (`.aider.chat.history.md`): Markdown with several chats, one after the other.

Lines of the user and of the program end in two spaces, unlike headings and quotes in a reply, which is the text
between them. Neither the system prompt nor the files and the map of the repository that
every call sends are in it: the totals of the calls show them as content that is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar, Final

from windowpane.core.characters import encodable
from windowpane.core.events import Usage
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.folders import AIDER_HISTORY
from windowpane.sources.transcripts.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
    document_key,
    record_digest,
)
from windowpane.sources.transcripts.json_lines import instant
from windowpane.sources.transcripts.reader import MAXIMUM_RECORD_BYTES, FileStats, Problem
from windowpane.sources.transcripts.records import (
    Cleared,
    ContentAdded,
    ModelCalled,
    Record,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import GrowingReader

AGENT: Final = "aider"
MAXIMUM_LINE_BYTES: Final = 2**20
_STARTED: Final = "# aider chat started at "
_USER: Final = "#### "
_PROGRAM: Final = "> "
_BREAK: Final = "  "
"""The end of the lines that Aider writes for the user and for itself."""
_SENT_COMMANDS: Final = ("/ask ", "/code ", "/architect ", "/context ", "/help ")
"""Commands whose text is a message to the model."""
_CLEARING: Final = ("/clear", "/reset")
_NUMBER: Final = r"([\d.,]{1,16}k?)"
_TOKENS: Final = re.compile(
    rf"Tokens: {_NUMBER} sent(?:, {_NUMBER} cache write)?(?:, {_NUMBER} cache hit)?, {_NUMBER} received\.?"
    rf"(?: Cost: \$([\d.,]{{1,16}}) (?:message|request|send))?"
)
_MODEL: Final = re.compile(r"(?:Main model|Model|Models): (\S{1,200})(?: with|,|$)")
_VERSION: Final = re.compile(r"Aider v(\S{1,40})")
_MARKS: Final = (b"# aider chat started at ", b"\n> Aider v", b"\n> $ aider ")


class AiderHistoryReader(GrowingReader):
    """Reads the history of chats."""

    format: ClassVar[str] = "aider"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a history of chats."""
        return path.name == AIDER_HISTORY or (path.suffix == ".md" and any(mark in head for mark in _MARKS))

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all chats. Raises `SourceError` when the file cannot be opened."""
        log = DocumentLog(path, stats, problems)
        complete = self._is_complete(path)
        try:
            file = path.open("rb")
        except OSError as error:
            raise SourceError(str(path), error.strerror or "cannot be opened") from error
        history = _History(path, log)
        with file:
            for line in _lines(file, log):
                history.read(line)
                yield from history.out
                history.out.clear()
        history.finish(complete=complete)
        yield from history.out
        log.unstated("system prompts, the contents of files in the chat, the repository map, and a time zone")
        if history.rounded:
            log.unstated("exact tokens: counts above a thousand are rounded")


def _lines(file: BinaryIO, log: DocumentLog) -> Iterator[str]:
    """Yield the lines; the rest of a line over the cap is skipped."""
    number = 0
    while raw := file.readline(MAXIMUM_LINE_BYTES):
        number += 1
        yield raw.decode(errors="replace")
        if not raw.endswith(b"\n"):
            skipped = 0
            while rest := file.readline(MAXIMUM_LINE_BYTES):
                skipped += len(rest)
                if rest.endswith(b"\n") or skipped > MAXIMUM_RECORD_BYTES:
                    break
            if skipped:
                log.bad_line(
                    number, f"{skipped:,} bytes of a line over {MAXIMUM_LINE_BYTES:,} bytes skipped", used=True
                )


class _History:
    """Reads the lines of one file."""

    def __init__(self, path: Path, log: DocumentLog) -> None:
        self.out: list[Record] = []
        self.rounded = False
        self._log = log
        self._stats = log.stats
        self._folder = encodable(str(path.parent)) if path.name == AIDER_HISTORY else ""
        self._opened: SessionOpened | None = None
        self._keys: dict[str, int] = {}
        self._user: list[str] = []
        self._reply: list[str] = []
        self._sent = False
        """A message was sent, so text that follows is a reply; some messages lead to several calls."""

    def read(self, line: str) -> None:
        """Add the records that end with a line."""
        self._stats.content_chars += len(line)
        written = line.rstrip("\r\n")
        if written.startswith(_STARTED):
            self._end_call()
            self._open(written.removeprefix(_STARTED).strip(), is_stated=True)
        elif written.startswith(_USER) and written.endswith(_BREAK):
            if not self._user:
                self._end_call()
            self._user.append(written.removeprefix(_USER).removesuffix(_BREAK))
        elif written.startswith(_PROGRAM) and written.endswith(_BREAK):
            self._end_user()
            self._program(written.removeprefix(_PROGRAM).strip())
        elif written.strip() or self._reply:
            self._end_user()
            if self._sent:
                self._reply.append(line)

    def finish(self, *, complete: bool) -> None:
        """Add what is due at the end; the call under way only where no more of it can follow."""
        if complete:
            self._end_user()
            self._end_call()

    # -- chats ------------------------------------------------------------------------------------------------

    def _open(self, started: str, *, is_stated: bool) -> None:
        self._sent = False
        number = self._keys[started] = self._keys.get(started, 0) + 1
        key = document_key(
            started.replace(" ", "T")[:32] if is_stated else None, digest=record_digest([started, number])
        )
        self._stats.sessions += 1
        self._opened = SessionOpened(key, AGENT, at=instant(started) if is_stated else None)
        self.out.append(self._opened)
        if self._folder:
            self.out.append(SessionDescribed(folder=self._folder))

    def _program(self, line: str) -> None:
        """Read a line of the program: usage, the model, its version, or anything else."""
        if match := _TOKENS.match(line):
            self._end_call(match)
        elif (match := _MODEL.match(line)) and self._opened is not None:
            self.out.append(SessionOpened(self._opened.session_key, AGENT, match[1][:MAXIMUM_NAME_CHARS]))
        elif (match := _VERSION.match(line)) and self._opened is not None:
            self.out.append(SessionDescribed(agent_version=match[1]))

    def _end_user(self) -> None:
        """Add the message of the user, which opens a call unless it is a command."""
        if not self._user:
            return
        message = "\n".join(self._user)
        self._user.clear()
        if self._opened is None:
            self._open(message[:200], is_stated=False)
        self._stats.messages += 1
        self._stats.user_turns += 1
        command = message.split(maxsplit=1)[0] if message.startswith("/") else ""
        if command in _CLEARING:
            self.out.append(Cleared())
        if command and not message.startswith(_SENT_COMMANDS):
            return
        self.out.append(ContentAdded("user_message", message))
        self._sent = True

    def _end_call(self, tokens: re.Match[str] | None = None) -> None:
        """Add the reply, and its call with the usage that *tokens* states."""
        self._end_user()
        reply = "".join(self._reply).strip()
        self._reply.clear()
        if not self._sent or not (reply or tokens):
            return
        if reply:
            self.out.append(ContentAdded("assistant_response", reply))
        usage = None if tokens is None else self._usage(tokens)
        cost = None if tokens is None or not tokens[5] else _number(tokens[5])
        self._stats.api_calls += 1
        self.out.append(ModelCalled(usage, cost_dollars=cost))

    def _usage(self, tokens: re.Match[str]) -> Usage:
        sent, written, read, received = (self._count(group) for group in tokens.groups()[:4])
        usage = Usage.of_prompt(sent, received, cached=read, written=written)
        self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        self._stats.add_usage(prompt_tokens=usage.input_total, completion_tokens=received)
        return usage

    def _count(self, written: str | None) -> int:
        if not written:
            return 0
        thousands = written.endswith("k")
        self.rounded = self.rounded or thousands
        return min(round((_number(written.removesuffix("k")) or 0) * (1_000 if thousands else 1)), MAXIMUM_TOKENS)


def _number(written: str) -> float | None:
    try:
        return float(written.replace(",", "").rstrip("."))
    except ValueError:
        return None
