"""Logs of evaluations with inspect_ai: `.json`, and the `.eval` archive of one JSON document per sample.

A sample is one session; model events hold all messages of their call, so sub-agents and models that grade become
child sessions by the messages they send. Long texts are attachments; newer logs pool the messages of a sample.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.core.events import Usage
from windowpane.models.wire.calls import ApiCall, message_blocks
from windowpane.models.wire.replies import Reply
from windowpane.models.wire.traced import Message, messages_of, reply_parts_of
from windowpane.models.wire.usage import INSPECT_AI
from windowpane.sources.transcripts.folders import in_number_order
from windowpane.sources.transcripts.formats.exchanges.bodies import cleaned
from windowpane.sources.transcripts.formats.exchanges.exchange import (
    Exchange,
    ExchangeSorter,
    is_nested_too_deeply,
)
from windowpane.sources.transcripts.formats.openai_chat import Chat
from windowpane.sources.transcripts.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
    JsonObject,
    document_key,
    load_document,
    parse_embedded,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import count, dollars, instant, mapping, sequence, text
from windowpane.sources.transcripts.reader import MAXIMUM_DOCUMENT_BYTES, FileStats, Problem
from windowpane.sources.transcripts.records import (
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)

AGENT: Final = "inspect-ai"
MAXIMUM_ARCHIVE_BYTES: Final = 4 * MAXIMUM_DOCUMENT_BYTES
"""Bytes that are unpacked from one archive."""
MAXIMUM_CALL_MESSAGES: Final = 20_000
"""Messages of one call that refers to a pool."""
MAXIMUM_LEVELS: Final = 80
"""Levels of a message in which attachments are looked for."""
_ATTACHMENT: Final = "attachment://"
_ZIP: Final = b"PK\x03\x04"
_HEADERS: Final = ("header.json", "_journal/start.json")
_USAGE_NAMES: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "input_tokens_cache_read",
    "reasoning_tokens",
)


class InspectReader:
    """Reads the samples of an evaluation."""

    format: ClassVar[str] = "inspect_ai"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is an evaluation's log, or an archive of samples."""
        if head.startswith(_ZIP):
            return path.suffix == ".eval" or b"_journal/" in head or b"samples/" in head
        paths = shape_of(head)
        return "eval" in paths and "eval.task" in paths and ("status" in paths or "version" in paths)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield one session per sample. Raises `SourceError` when the file is not a log."""
        log = DocumentLog(path, stats, problems)
        with path.open("rb") as file:
            is_archive = file.read(len(_ZIP)) == _ZIP
        evaluation = _archive(path, log) if is_archive else _document(path, log)
        without_events = 0
        for sample in evaluation.samples:
            stats.sessions += 1
            reading = _Sample(sample, evaluation, stats)
            yield from reading.records()
            without_events += not reading.has_events
        if without_events:
            log.unstated(f"the calls of {without_events} samples; their messages are read")


@dataclass(frozen=True, slots=True)
class _Evaluation:
    spec: dict[str, Any]
    samples: Iterator[JsonObject]


def _document(path: Path, log: DocumentLog) -> _Evaluation:
    document = load_document(path, log)
    if not isinstance(document, dict) or not isinstance(document.get("eval"), dict):
        log.fail("expected an evaluation's log with `eval` and `samples`")
    holder = JsonObject(document, "", log)
    if not holder.value.get("samples"):
        log.unusual("samples", "the log has no samples")
    return _Evaluation(document["eval"], holder.items("samples"))


def _archive(path: Path, log: DocumentLog) -> _Evaluation:
    try:
        archive = zipfile.ZipFile(path)
        names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError) as error:
        log.fail(f"not a whole archive ({error}); an evaluation that still runs has none")
    unpacked = _Unpacked(archive, log)
    spec: dict[str, Any] = {}
    for name in _HEADERS:
        if name in names and not spec:
            spec = mapping(mapping(unpacked.read(name)).get("eval"))
    return _Evaluation(spec, _samples(unpacked, names, log))


def _samples(unpacked: _Unpacked, names: list[str], log: DocumentLog) -> Iterator[JsonObject]:
    inside = [name for name in dict.fromkeys(names) if name.startswith("samples/") and name.endswith(".json")]
    whole = in_number_order([name for name in inside if name.count("/") == 1])
    if len(whole) < len(inside):
        log.unusual("samples", f"{len(inside) - len(whole)} pieces of samples in chunks are skipped")
    if not whole:
        log.unusual("samples", "the log has no samples")
    for name in whole:
        sample = unpacked.read(name)
        if isinstance(sample, dict):
            yield JsonObject(sample, name, log)
        elif sample is not None:
            log.bad(name, "expected a sample")
    unpacked.archive.close()


class _Unpacked:
    """Unpacks the documents of an archive, up to a total size: a small archive can hold any amount of text."""

    def __init__(self, archive: zipfile.ZipFile, log: DocumentLog) -> None:
        self.archive = archive
        self._log = log
        self._remaining = MAXIMUM_ARCHIVE_BYTES

    def read(self, name: str) -> Any:
        """Return one document; None where it cannot be read, which is reported."""
        limit = min(MAXIMUM_DOCUMENT_BYTES, self._remaining)
        try:
            with self.archive.open(name) as entry:
                content = entry.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
            self._log.bad(name[:MAXIMUM_NAME_CHARS], f"cannot be unpacked: {error}")
            return None
        if len(content) > limit:
            self._log.bad(name[:MAXIMUM_NAME_CHARS], f"skipped: more than {limit // 2**20} MB unpacked")
            return None
        self._remaining -= len(content)
        value = parse_embedded(content.decode(errors="replace"))
        if value is None:
            self._log.bad(name[:MAXIMUM_NAME_CHARS], "not a JSON document")
        return value


class _Sample:
    """Reads one sample."""

    def __init__(self, sample: JsonObject, evaluation: _Evaluation, stats: FileStats) -> None:
        self._sample = sample
        self._spec = evaluation.spec
        self._stats = stats
        self._attachments = mapping(sample.value.get("attachments"))
        data = mapping(sample.value.get("events_data"))
        self._pool = sequence(sample.value.get("message_pool")) or sequence(data.get("messages"))
        self._converted: dict[int, list[dict[str, Any]]] = {}
        """Messages of the pool that a call referred to."""
        self.has_events = False

    def records(self) -> Iterator[Record]:
        """Yield the records of the sample's session, and of those of its sub-agents."""
        sample, value = self._sample, self._sample.value
        name = f"{text(self._spec.get('task')) or 'task'}-{sample.name('id') or 'sample'}"
        key = sample.name("uuid") or document_key(
            name, trial=sample.name("epoch"), digest=record_digest([self._spec.get("eval_id"), value.get("id")])
        )
        self._count()
        described = SessionDescribed(
            label=name,
            repository=text(mapping(self._spec.get("revision")).get("origin")),
            agent_version=text(mapping(self._spec.get("packages")).get("inspect_ai")),
        )
        sorter = ExchangeSorter(AGENT, FileStats())
        for number, event in enumerate(sequence(value.get("events"))):
            if mapping(event).get("event") != "model":
                continue
            exchange = self._exchange(event, number, key, described)
            if exchange is not None:
                self.has_events = True
                yield from sorter.add(exchange)
        yield from sorter.finish()
        if not self.has_events:
            yield SessionOpened(key, AGENT, text(self._spec.get("model"))[:MAXIMUM_NAME_CHARS])
            yield described
            yield from _contents(messages_of(self._resolved(value.get("messages"))) or ())
        yield SessionOpened(key, AGENT)
        yield SessionClosed("error: other" if value.get("error") else "completed")

    def _exchange(
        self, event: dict[str, Any], number: int, key: str, described: SessionDescribed
    ) -> Exchange | None:
        sent, output = self._sent(event), mapping(event.get("output"))
        if is_nested_too_deeply([sent, output, event.get("tools")]):
            self._sample.log.bad(f"{self._sample.at('events')}[{number}]", "nested too deeply")
            return None
        choice = mapping(next(iter(sequence(output.get("choices"))), None))
        answer = self._resolved(choice.get("message"))
        model = text(event.get("model"))[:MAXIMUM_NAME_CHARS]
        started = instant(event.get("timestamp"))
        latency = dollars(output.get("time"))
        ended = instant(event.get("completed")) or (None if started is None else started + (latency or 0.0))
        error = text(event.get("error")) or text(output.get("error"))
        reply = cleaned(
            Reply(
                reply_parts_of(answer),
                self._usage(mapping(output.get("usage"))),
                model,
                text(choice.get("stop_reason")) or None,
                latency_seconds=latency,
            )
        )
        failed = bool(error) and not reply.parts
        return Exchange(
            ApiCall("chat", model, sent, None, sequence(self._resolved(event.get("tools"))) or None),
            text(event.get("uuid")) or f"call-{number}",
            None if failed else reply,
            error if failed else "",
            started,
            ended,
            key,
            description=described,
        )

    def _sent(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the messages of a call, which a pool may hold."""
        sent = messages_of(self._resolved(event.get("input"))) or []
        for entry in sequence(event.get("input_refs")):
            bounds = [bound for bound in sequence(entry) if isinstance(bound, int) and bound >= 0]
            if len(bounds) == 2 and len(sent) < MAXIMUM_CALL_MESSAGES:
                sent += [
                    message for number in range(*bounds)[: len(self._pool)] for message in self._pooled(number)
                ]
        return sent[:MAXIMUM_CALL_MESSAGES]

    def _pooled(self, number: int) -> list[dict[str, Any]]:
        """Return one entry of the pool, converted once."""
        if number not in self._converted:
            entry = self._pool[number] if number < len(self._pool) else None
            self._converted[number] = messages_of(self._resolved(entry)) or []
        return self._converted[number]

    def _resolved(self, value: Any, depth: int = 0) -> Any:
        """Return *value* with the texts of its attachments."""
        if isinstance(value, str):
            if value.startswith(_ATTACHMENT):
                attached = self._attachments.get(value.removeprefix(_ATTACHMENT))
                return attached if isinstance(attached, str) else value
            return value
        if depth > MAXIMUM_LEVELS:
            return value
        if isinstance(value, list):
            return [self._resolved(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {name: self._resolved(item, depth + 1) for name, item in value.items()}
        return value

    def _count(self) -> None:
        chat = Chat(self._stats, calls_are_content=True)
        for message in sequence(self._resolved(self._sample.value.get("messages"))):
            if not isinstance(message, dict):
                continue
            holder = JsonObject(message, self._sample.at("messages"), self._sample.log)
            chat.count(holder)
            self._stats.user_turns += message.get("role") == "user"
            if message.get("role") == "tool" and isinstance(message.get("content"), str):
                self._stats.max_tool_output_chars = max(
                    self._stats.max_tool_output_chars, len(message["content"])
                )

    def _usage(self, stated: dict[str, Any]) -> Usage | None:
        """Return the usage of a call, whose input excludes the cache where the total shows it."""
        self._stats.api_calls += 1
        usage = INSPECT_AI.read(stated)
        if usage is None or not (usage.input_total or usage.output_tokens):
            return None
        self._stats.add_usage(**{name: count(stated.get(name)) for name in _USAGE_NAMES})
        self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        return usage


def _contents(messages: Iterable[Message]) -> Iterator[Record]:
    """Yield the records of a sample whose calls were not logged; every reply is one call."""
    for message in messages:
        for spec in message_blocks("chat", message):
            yield ContentAdded.of(spec, None)
        if message["role"] == "assistant":
            yield ModelCalled(None)
