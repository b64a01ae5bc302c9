"""The reader of OpenHands' recordings.

Its agents write one file per event into the folder `events` of a conversation; its servers export these events as
a list or as JSON Lines, and its evaluations write one row per task with all events of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.folders import in_number_order, names_in
from windowpane.sources.transcripts.formats.openhands.events import EventLog, costs_by_response
from windowpane.sources.transcripts.formats.openhands.v0 import ClassicEvents
from windowpane.sources.transcripts.formats.openhands.v1 import SdkEvents, described, main_metrics
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    document_key,
    kind_of,
    load_document,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import (
    dollars,
    head_rows,
    instant,
    is_lines,
    mapping,
    read_rows,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import (
    Broken,
    ModelCalled,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import GrowingReader

SUBAGENTS: Final = "subagents"
"""Folder of a conversation in which the SDK keeps those of its sub-agents."""
_SDK_FILE: Final = re.compile(r"event-\d+-[0-9A-Za-z-]+\.json")
_CLASSIC_FILE: Final = re.compile(r"\d+\.json")
_KINDS: Final = frozenset(
    {"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "ConversationStateUpdateEvent",
     "AgentErrorEvent", "Condensation", "PauseEvent"}
)  # fmt: skip
_MICRO: Final = 1_000_000
_TASK_STARTS: Final = (b'{"instance_id":', b'{"issue":')
_TASK_MARKS: Final = (b'"history":', b'"instance":', b'"instruction":', b'"metadata":')
"""Fields of a task before its history, which may be far into the row."""


class OpenHandsReader(GrowingReader):
    """Reads conversations, exported events, and the output of evaluations."""

    format: ClassVar[str] = "openhands"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file holds events of either generation, or rows with a history of them."""
        paths = shape_of(head)
        if {"[].action", "[].args"} <= paths or {"[].observation", "[].extras"} <= paths:
            return True
        if {"[].kind", "[].source", "[].timestamp"} <= paths:
            return any(kind.encode() in head for kind in _KINDS)
        if _SDK_FILE.fullmatch(path.name) and {"kind", "source"} <= paths:
            return True
        rows = head_rows(head)
        if rows and "history" in rows[0] and "metrics" in rows[0]:
            return "instance_id" in rows[0] or "issue" in rows[0]
        if not rows and head.lstrip().startswith(_TASK_STARTS):  # the first row exceeds the head
            return any(mark in head for mark in _TASK_MARKS)
        return any(text(row.get("kind")) in _KINDS and "source" in row for row in rows) or any(
            "args" in row and "action" in row and "source" in row for row in rows
        )

    @staticmethod
    def parts(folder: Path, files: Sequence[str]) -> list[str]:
        """Return the files of a conversation's events."""
        if folder.name != "events":
            return []
        chosen = [name for name in files if _SDK_FILE.fullmatch(name)]
        return in_number_order(chosen or [name for name in files if _CLASSIC_FILE.fullmatch(name)])

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all conversations. Raises `SourceError` when the recording holds no events."""
        log = DocumentLog(path, stats, problems)
        parts = self.parts(path, names_in(path)) if path.is_dir() else []
        is_complete = partial(self._is_complete, path / parts[-1] if parts else path)
        if path.is_dir():
            conversation = _Conversation(path, log)
            yield from _read(conversation.start, _files(path, parts, stats, problems), log, is_complete)
            return
        rows = _rows(path, log)
        first = next(rows, None)
        if first is None:
            return
        if _is_task(first[1]):
            yield from _tasks(_chained(first, rows), log)
            return

        def start(event: dict[str, Any]) -> EventLog:
            key = text(event.get("id")) or document_key("conversation", digest=record_digest(event))
            return _event_log(event, key, log)

        yield from _read(start, _chained(first, rows), log, is_complete)


Row = tuple[int, dict[str, Any]]
"""The number and the object of one row, event or file."""


def _chained(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _rows(path: Path, log: DocumentLog) -> Iterator[Row]:
    """Yield the events or tasks of a file."""
    if is_lines(path):
        for row in read_rows(path, log):
            if row.value is not None:
                yield row.line, row.value
            elif not row.last:
                log.odd(row.line, "", "the events after it may answer what is lost")
        return
    document = load_document(path, log)
    entries = document if isinstance(document, list) else [document]
    for number, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield number, entry
        else:
            log.bad(f"[{number}]", f"expected an event, got {kind_of(entry)}")


def _files(folder: Path, parts: Sequence[str], stats: FileStats, problems: list[Problem]) -> Iterator[Row]:
    """Yield the events of a folder; one that is still being written ends it."""
    for number, name in enumerate(parts):
        log = DocumentLog(folder / name, stats, problems)
        try:
            event = load_document(folder / name, log)
        except SourceError:
            if number + 1 == len(parts):
                return
            yield number, {}
            continue
        if isinstance(event, dict):
            yield number, event
        else:
            log.bad("", f"expected an event, got {kind_of(event)}")


class _Conversation:
    """The files beside a conversation's events."""

    def __init__(self, folder: Path, log: DocumentLog) -> None:
        self._log = log
        self._key = folder.parent.name
        above = folder.parent.parent
        self._parent = above.parent.name if above.name == SUBAGENTS else None
        self._state = _beside(folder.parent / "base_state.json")
        self._metadata = _beside(folder.parent / "metadata.json")

    def start(self, event: dict[str, Any]) -> EventLog:
        """Return the reader of the events, the first of which is *event*."""
        metrics = main_metrics(mapping(self._state.get("stats")))
        events = _event_log(event, self._key, self._log, costs=costs_by_response(metrics))
        model = text(mapping(mapping(self._state.get("agent")).get("llm")).get("model"))
        events.open(None, model=model[:200], parent_key=self._parent)
        stated = described(self._state)
        events.describe(
            SessionDescribed(
                title=text(self._metadata.get("title")) or stated.title,
                folder=stated.folder,
                repository=text(self._metadata.get("selected_repository")),
                branch=text(self._metadata.get("selected_branch")),
            )
        )
        return events


def _beside(path: Path) -> dict[str, Any]:
    """Return a file beside the events; an empty object where it is absent or damaged."""
    try:
        return mapping(load_document(path, DocumentLog(path, FileStats(), [])))
    except SourceError:
        return {}


def _event_log(event: dict[str, Any], key: str, log: DocumentLog, **more: Any) -> EventLog:
    return SdkEvents(log, key, **more) if "kind" in event else ClassicEvents(log, key, **more)


def _read(
    start: Any, rows: Iterator[Row], log: DocumentLog, is_complete: Callable[[float | None], bool]
) -> Iterator[Record]:
    """Yield the records of one conversation; *is_complete* is asked with the time of its last event."""
    events: EventLog | None = None
    settled, last = False, None
    for number, event in rows:
        if not event:
            if events is not None:
                events.out.append(Broken("a damaged event", number))
            continue
        if events is None:
            events = start(event)
        events.read(event, number)
        last = event.get("timestamp")
        settled = settled or any(map(_settles, events.out))
        if settled:
            yield from events.out
            events.out.clear()
    if events is None:
        return
    complete = is_complete(instant(last))
    events.finish(complete=complete)
    if settled or complete:
        yield from events.out
    if events.stats.compactions:
        log.experimental("a condensation of OpenHands")
    if not events.has_usage:
        log.unstated("the usage of single calls")


def _settles(record: Record) -> bool:
    """Return whether a session's first events no longer depend on what follows."""
    if isinstance(record, SessionOpened):
        return bool(record.model)
    return isinstance(record, ModelCalled | SessionClosed)


def _is_task(row: dict[str, Any]) -> bool:
    return "instance_id" in row or ("history" in row and "metrics" in row)


def _tasks(rows: Iterator[Row], log: DocumentLog) -> Iterator[Record]:
    """Yield one session per row of an evaluation's output."""
    seen: dict[str, int] = {}
    has_usage = False
    for number, row in rows:
        history = row.get("history")
        if not isinstance(history, list):
            log.bad(f"line {number}: history", f"expected a list of events, got {kind_of(history)}")
            continue
        issue = mapping(row.get("issue"))
        name = text(row.get("instance_id")) or "-".join(
            str(issue[field])[:100] for field in ("owner", "repo", "number") if field in issue
        )
        key = document_key(name, digest=record_digest(history[:1]))
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key}-{seen[key]}"
        flat = [event for entry in history for event in (entry if isinstance(entry, list) else [entry])]
        entries = [event for event in flat if isinstance(event, dict)]
        metrics = mapping(row.get("metrics"))
        first = entries[0] if entries else {}
        events = _event_log(first, key, log, costs=costs_by_response(metrics))
        model = text(mapping(mapping(row.get("metadata")).get("llm_config")).get("model"))
        events.open(None, model=model[:200])
        events.describe(_described(row, issue))
        for position, event in enumerate(entries):
            events.read(event, position)
        events.finish(complete=True)
        yield from _priced(events.out, metrics)
        spent = dollars(metrics.get("accumulated_cost"))
        if spent:
            log.stats.add_usage(cost_microusd=round(spent * _MICRO))
        has_usage = has_usage or events.has_usage
        yield SessionClosed("error: other" if row.get("error") else "completed")
    if not has_usage:
        log.unstated("the usage of single calls")


def _described(row: dict[str, Any], issue: dict[str, Any]) -> SessionDescribed:
    owner, repository = text(issue.get("owner")), text(issue.get("repo"))
    return SessionDescribed(
        title=text(issue.get("title")),
        repository=f"{owner}/{repository}" if owner and repository else "",
        label=text(row.get("instance_id")),
    )


def _priced(records: list[Record], metrics: dict[str, Any]) -> Iterator[Record]:
    """Yield *records* with the prices that the metrics list, where they are as many as the calls."""
    costs = sequence(metrics.get("costs"))
    prices = [dollars(cost.get("cost") if isinstance(cost, dict) else cost) for cost in costs]
    calls = sum(isinstance(record, ModelCalled) for record in records)
    listed = iter(prices if len(prices) == calls else [None] * calls)
    for record in records:
        if isinstance(record, ModelCalled):
            price = next(listed)
            if record.cost_dollars is None and price is not None:
                yield replace(record, cost_dollars=price)
                continue
        yield record
