"""Dumps of OpenTelemetry's traces and logs: requests of OTLP/JSON, one, a list or one a line, and lists of spans.

They are read as the receiver reads them (`telemetry`): the same conventions, the same merging of what reports one
call, the same sessions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.telemetry.assembly import CallAssembly
from windowpane.sources.telemetry.compactions import InferredCompactions
from windowpane.sources.telemetry.json_bodies import logs_of, traces_of
from windowpane.sources.telemetry.records import LogRecord, Span, Telemetry, UnreadableBodyError
from windowpane.sources.telemetry.reported_call import AssembledCall, AssembledCompaction
from windowpane.sources.telemetry.sdk_spans import sdk_spans_of
from windowpane.sources.telemetry.session_keys import SessionKeys
from windowpane.sources.transcripts.formats.exchanges.bodies import cleaned
from windowpane.sources.transcripts.formats.exchanges.body_files import read_body_file
from windowpane.sources.transcripts.formats.exchanges.entries import entries_of
from windowpane.sources.transcripts.formats.exchanges.exchange import Exchange, ExchangeSorter
from windowpane.sources.transcripts.json_document import DocumentLog, shape_of
from windowpane.sources.transcripts.json_lines import head_rows
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Compacted, Record

AGENT: Final = "otlp"
REQUESTS: Final = frozenset(
    {"resourceSpans", "resourceLogs", "resourceMetrics", "resource_spans", "resource_logs", "resource_metrics"}
)
_SDK_SPANS: Final = (
    frozenset({"spanContext", "attributes", "startTime"}),
    frozenset({"context", "attributes", "start_time", "end_time"}),
)
"""Fields of spans of the JavaScript SDK, and of the Python SDK and Phoenix."""
_PRINTED_SPAN: Final = re.compile(rb'\A\s*\{\s*"name": .{0,1000}?"context": \{\s*"trace_id": "0x', re.DOTALL)
"""Start of what Python's console exporter prints: spans one after the other."""


class OtlpReader:
    """Reads dumps of traces and logs."""

    format: ClassVar[str] = "otlp"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file holds requests of OTLP/JSON, or spans of an SDK."""
        del path
        fields = {name.removeprefix("[].").removeprefix("data[].") for name in shape_of(head)}
        if fields & REQUESTS or any(span <= fields for span in _SDK_SPANS):
            return True
        rows = head_rows(head)
        if rows and (rows[0].keys() & REQUESTS or any(span <= rows[0].keys() for span in _SDK_SPANS)):
            return True
        return _PRINTED_SPAN.match(head) is not None

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the calls of all traces and logs. Raises `SourceError` when the file holds neither."""
        log = DocumentLog(path, stats, problems)
        assembly, unknown = CallAssembly(read_file=read_body_file), 0
        for item in _items(path, log):
            stats.messages += 1
            stats.content_chars += _length(item)
            assembly.add(item, 0.0)
        sorter, keys, compactions = ExchangeSorter(AGENT, stats), SessionKeys(), InferredCompactions()
        for assembled in assembly.due(0.0, everything=True):
            if isinstance(assembled, AssembledCompaction):
                yield from sorter.add_compaction(assembled.conversation, _compacted(assembled))
                stats.compactions += 1
                continue
            compaction = compactions.before(assembled)
            if compaction is not None:
                yield from sorter.add_compaction(compaction.conversation, _compacted(compaction))
                stats.compactions += 1
            exchange = _exchange(assembled, keys)
            _count(assembled, stats)
            unknown += assembled.call.usage is None and exchange.reply is not None
            yield from sorter.add(exchange)
        yield from sorter.finish()
        if not stats.api_calls:
            log.unusual("", "no span and no event in it reports a model call")
        if unknown:
            log.unstated(f"the usage of {unknown} calls")


def _items(path: Path, log: DocumentLog) -> Iterator[Span | LogRecord]:
    spans: list[Any] = []
    for number, document in enumerate(_documents(path, log)):
        if not isinstance(document, dict):
            log.bad(f"[{number}]", f"expected an object, got {type(document).__name__}")
        elif document.keys() & REQUESTS:
            yield from _request_items(document, number, log)
        else:
            spans.append(document)
    yield from _readable(sdk_spans_of(spans), log)


def _documents(path: Path, log: DocumentLog) -> Iterator[Any]:
    """Yield the objects of a dump; those of a page of an answer of Phoenix one by one."""
    for document in entries_of(path, log, several=True):
        listed = document.get("data") if isinstance(document, dict) else None
        if isinstance(listed, list) and not document.keys() & REQUESTS:
            yield from listed
        else:
            yield document


def _request_items(document: dict[str, Any], number: int, log: DocumentLog) -> Iterator[Span | LogRecord]:
    for read in (traces_of, logs_of):
        try:
            yield from _readable(read(document), log)
        except UnreadableBodyError as error:
            log.bad(f"[{number}]", str(error))


def _readable(telemetry: Telemetry, log: DocumentLog) -> Iterator[Span | LogRecord]:
    if telemetry.rejected:
        log.bad("", f"{telemetry.rejected} of {telemetry.items} could not be read: {telemetry.problem}")
    yield from telemetry.spans
    yield from telemetry.logs


def _exchange(assembled: AssembledCall, keys: SessionKeys) -> Exchange:
    call = assembled.call
    key, parent_key = keys.of(assembled)
    reply = assembled.reply()
    return Exchange(
        assembled.api_call(otherwise_continues=f"{AGENT} {key}"),
        assembled.trace_id or assembled.span_id,
        None if reply is None else cleaned(reply),
        call.error if reply is None else "",
        assembled.started_at,
        assembled.ended_at,
        key,
        parent_key,
        assembled.agent,
        call.window_tokens,
    )


def _compacted(assembled: AssembledCompaction) -> Compacted:
    stated = assembled.compaction
    return Compacted(
        stated.trigger, stated.tokens_before, stated.tokens_after, duration_seconds=stated.duration_seconds,
        at=assembled.started_at,
    )  # fmt: skip


def _count(assembled: AssembledCall, stats: FileStats) -> None:
    stats.api_calls += 1
    call = assembled.call
    stats.tool_calls += sum(part.kind == "tool_call" for part in call.reply or ())
    if call.usage is not None:
        stats.peak_context = max(stats.peak_context, call.usage.input_total)
        stats.add_usage(input=call.usage.input_total, output=call.usage.output_tokens)


def _length(item: Span | LogRecord) -> int:
    """Return the characters of the attributes, those of a text and of the JSON of any other value."""
    values = item.attributes.values() if isinstance(item.attributes, Mapping) else ()
    return sum(len(value) if isinstance(value, str) else len(json.dumps(value)) for value in values)
