"""The reader of Cline's session store, which its program and its editor extensions share since version 4.

Built from Cline's source; no recording was available.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.formats.cline.session import ClineMessages, Compaction
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    load_document,
    load_list,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import instant, mapping, milliseconds, text
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import ContentAdded, Record, SessionDescribed, SessionOpened

MESSAGES: Final = ".messages.json"
COMPACTION: Final = ".compaction.json"
AGENT: Final = "cline"
SUBAGENT: Final = "cline-agent"
DELEGATED: Final = ("subagent", "teammate")
UNSTATED: Final = "the usage of some calls: Cline states sums of several, or none"


class ClineSessionReader:
    """Reads a session's folder: its messages, those of its sub-agents, and the file that describes it."""

    format: ClassVar[str] = "cline"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a list of a session's messages."""
        return path.name.endswith(MESSAGES) and shape_of(head) >= {"version", "sessionId", "messages"}

    @staticmethod
    def parts(folder: Path, files: Sequence[str]) -> list[str]:
        """Return the files of a session: the one named as the folder first, then those of sub-agents."""
        main = folder.name + MESSAGES
        if main not in files:
            return []
        others = sorted(name for name in files if name.endswith(MESSAGES) and name != main)
        beside = [name for name in (f"{folder.name}.json", folder.name + COMPACTION) if name in files]
        return [main, *others, *beside]

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session and its sub-agents. Raises `SourceError` when it cannot be read."""
        folder = path.parent if path.is_file() else path
        log = DocumentLog(path, stats, problems)
        main = path if path.is_file() else folder / (folder.name + MESSAGES)
        manifest = _beside(folder, main, ".json", log)
        yield from _Session(main, manifest, log).read(Compaction.of(_beside(folder, main, COMPACTION, log)))
        for file in sorted(folder.glob("*" + MESSAGES)) if path.is_dir() else ():
            if file != main:
                try:
                    yield from _Session(file, manifest, log).read()
                except SourceError:  # listed
                    continue


class _Session:
    """One agent's session: that of the user, or of a sub-agent."""

    def __init__(self, file: Path, manifest: dict[str, Any], log: DocumentLog) -> None:
        self._file = file
        self._manifest = manifest
        self._log = log

    def read(self, compaction: Compaction | None = None) -> Iterator[Record]:
        """Yield its records. Raises `SourceError` when its messages cannot be read."""
        document = load_list(self._file, self._log, of="messages")
        messages = [JsonObject(message.value, message.path, self._log) for message in document.items("messages")]
        is_child = document.value.get("agent") in DELEGATED
        yield from self._opened(document.value, messages, is_child=is_child)
        reader = ClineMessages(self._log.stats, model=text(self._manifest.get("model")))
        inherited = 0 if is_child else self._inherited(messages)
        yield from reader.read(messages, compaction=compaction, inherited=inherited)
        for kind in sorted(reader.unknown):
            self._log.odd(None, "content", f"blocks of the unknown type {kind!r} are skipped")
        if reader.unstated:
            self._log.unstated(UNSTATED)

    def _opened(
        self, document: dict[str, Any], messages: Sequence[JsonObject], *, is_child: bool
    ) -> Iterator[Record]:
        own, root = self._file.name.removesuffix(MESSAGES), text(document.get("sessionId"))
        model, folder = text(self._manifest.get("model"))[:200], text(self._manifest.get("cwd"))
        times = (milliseconds(message.value.get("ts")) for message in messages)
        started = next((at for at in times if at is not None), None)
        self._log.stats.sessions += 1
        if is_child:
            infix = "__teamtask__" if document.get("taskType") == "team" else "__"
            yield SessionOpened(f"{root}{infix}{own}", SUBAGENT, model, root, at=started, folder=folder)
        else:
            started = instant(self._manifest.get("started_at")) or started
            key = text(self._manifest.get("session_id")) or own
            yield SessionOpened(key, AGENT, model, at=started, folder=folder)
        title = "" if is_child else text(mapping(self._manifest.get("metadata")).get("title"))
        yield SessionDescribed(title, folder=folder)
        prompt = text(document.get("system_prompt"))
        if prompt:
            yield ContentAdded("system_prompt", prompt, at=started)

    def _inherited(self, messages: Sequence[JsonObject]) -> int:
        """Return the number of messages that a fork repeats from the session it came from, if that is here."""
        metadata = mapping(self._manifest.get("metadata"))
        origin = text(mapping(metadata.get("fork")).get("forkedFromSessionId"))
        if not origin:
            return 0
        try:
            silent = DocumentLog(self._file, FileStats(), [])
            file = self._file.parent.parent / Path(origin).name / (Path(origin).name + MESSAGES)
            others = list(load_list(file, silent, of="messages").items("messages"))
        except SourceError:
            problem = f"a fork of {origin[:64]}, which is not there: the calls it repeats count here too"
            self._log.odd(None, "fork", problem)
            return 0
        pairs = zip(messages, others, strict=False)
        return sum(1 for _ in takewhile(lambda pair: _same(*pair), pairs))


def _same(message: JsonObject, other: JsonObject) -> bool:
    return all(message.value.get(name) == other.value.get(name) for name in ("role", "content", "metrics"))


def _beside(folder: Path, main: Path, suffix: str, log: DocumentLog) -> dict[str, Any]:
    """Return the document of a file that may be missing; an empty one, reported, where it cannot be read."""
    file = folder / (main.name.removesuffix(MESSAGES) + suffix)
    if not file.is_file():
        return {}
    try:
        return mapping(load_document(file, log))
    except SourceError:
        return {}
