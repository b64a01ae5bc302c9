"""Exports of Langfuse: traces with their observations, as one object, a list, an answer of its API, or lines.

A generation is a model call, unless another generation is within it: frameworks trace the same call at several
levels. The calls of one `sessionId`, else of one trace, are one session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.models.wire.calls import ApiCall
from windowpane.models.wire.replies import Reply
from windowpane.models.wire.traced import messages_of, reply_parts_of
from windowpane.models.wire.usage import LANGFUSE
from windowpane.sources.transcripts.formats.exchanges.bodies import cleaned
from windowpane.sources.transcripts.formats.exchanges.entries import entries_of
from windowpane.sources.transcripts.formats.exchanges.exchange import (
    Exchange,
    ExchangeSorter,
    is_nested_too_deeply,
)
from windowpane.sources.transcripts.formats.exchanges.tables import CSV, columns_of, table_rows
from windowpane.sources.transcripts.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
    JsonObject,
    parse_embedded,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import count, head_rows, instant, mapping, sequence, text
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record, SessionDescribed

AGENT: Final = "langfuse"
_OBSERVATION: Final = frozenset({"traceId", "type", "startTime"})
_OBSERVATION_COLUMNS: Final = frozenset({"trace_id", "type", "start_time"})
_TRACE: Final = frozenset({"projectId", "observations", "timestamp"})
_EARLIER_COUNTS: Final = {"input": "promptTokens", "output": "completionTokens", "total": "totalTokens"}
"""Names of the counts in releases of 2023 and 2024."""
MAXIMUM_LEVELS: Final = 1_000
"""Observations within observations."""


class LangfuseReader:
    """Reads traces and observations."""

    format: ClassVar[str] = "langfuse"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file holds a trace with observations, or observations alone."""
        if path.suffix.lower() == CSV:
            return _is_observation(dict.fromkeys(columns_of(head)))
        paths = shape_of(head)
        for prefix in ("", "trace.", "[].", "data[].", "observations[].", "[].observations[].", "[].trace."):
            fields = {name.removeprefix(prefix) for name in paths if name.startswith(prefix)}
            if fields >= _OBSERVATION and ("projectId" in fields or "parentObservationId" in fields):
                return True
            if fields >= _TRACE:
                return True
        rows = head_rows(head)
        return bool(rows) and _is_observation(rows[0])

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the calls of all traces. Raises `SourceError` when the file holds no observations."""
        log = DocumentLog(path, stats, problems)
        entries = list(table_rows(path, log) if path.suffix.lower() == CSV else entries_of(path, log))
        traces: dict[str, dict[str, Any]] = {}
        observations = [*_observations(entries, traces, log)]
        if not observations:
            log.fail("expected observations, or traces that hold them")
        calls = sorted(_calls(observations), key=lambda one: instant(_of(one.value, "startTime")) or 0.0)
        sorter = ExchangeSorter(AGENT, stats)
        unknown = 0
        for observation in calls:
            exchange = _exchange(observation, traces)
            if exchange is None:
                continue
            _count(exchange, stats)
            unknown += exchange.reply is not None and exchange.reply.usage is None
            yield from sorter.add(exchange)
        yield from sorter.finish()
        for observation in observations:
            stats.messages += 1
            stats.content_chars += _length(observation.value)
        if unknown:
            log.unstated(f"the usage of {unknown} calls")


def _is_observation(value: dict[str, Any]) -> bool:
    return value.keys() >= _OBSERVATION or value.keys() >= _OBSERVATION_COLUMNS


def _observations(
    entries: Iterable[Any], traces: dict[str, dict[str, Any]], log: DocumentLog
) -> Iterator[JsonObject]:
    """Yield every observation once; *traces* receives the traces among *entries*."""
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        holder = mapping(entry)
        if _is_observation(holder):
            yield JsonObject(holder, f"[{number}]", log)
            continue
        trace = mapping(holder.get("trace")) or holder
        if text(trace.get("id")):
            traces[text(trace.get("id"))] = trace
        listed = (
            sequence(holder.get("observations"))
            or sequence(holder.get("data"))
            or sequence(trace.get("observations"))
        )
        for position, value in enumerate(listed):
            observation = mapping(value)
            if not _is_observation(observation):
                continue
            name = text(observation.get("id")) or f"{number}-{position}"
            if name not in seen:
                seen.add(name)
                yield JsonObject(observation, f"observations[{position}]", log)


def _of(value: dict[str, Any], name: str) -> Any:
    """Return a field by its name in the API, or by that of its column."""
    if name in value:
        return value[name]
    return value.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name))


def _calls(observations: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the generations that no other generation is within."""
    parents = {text(one.value.get("id")): text(_of(one.value, "parentObservationId")) for one in observations}
    wrappers: set[str] = set()
    for observation in observations:
        if observation.value.get("type") != "GENERATION":
            continue
        outer = parents.get(text(observation.value.get("id")), "")
        for _ in range(MAXIMUM_LEVELS):
            if not outer or outer in wrappers:
                break
            wrappers.add(outer)
            outer = parents.get(outer, "")
    for observation in observations:
        if observation.value.get("type") == "GENERATION" and text(observation.value.get("id")) not in wrappers:
            yield observation


def _exchange(observation: JsonObject, traces: dict[str, dict[str, Any]]) -> Exchange | None:
    value = observation.value
    sent = _parsed(value.get("input"))
    tools = _tools(value, sent)
    if is_nested_too_deeply([sent, _parsed(value.get("output")), tools]):
        observation.log.bad(observation.at("input"), "nested too deeply")
        return None
    trace_id = text(_of(value, "traceId"))[:MAXIMUM_NAME_CHARS]
    trace = traces.get(trace_id, {})
    model = text(value.get("model") or _of(value, "providedModelName"))[:MAXIMUM_NAME_CHARS]
    call = ApiCall("chat", model, messages_of(sent) or [], None, tools)
    reply: Reply | None = cleaned(
        Reply(
            reply_parts_of(_parsed(value.get("output"))),
            LANGFUSE.read(_stated_usage(value)),
            model,
            cost_dollars=_cost(value),
            latency_seconds=_latency(value),
        )
    )
    failed = value.get("level") == "ERROR" and (reply is None or (not reply.parts and reply.usage is None))
    session = text(trace.get("sessionId") or _of(value, "sessionId")) or trace_id
    return Exchange(
        call,
        text(value.get("id"))[:MAXIMUM_NAME_CHARS] or record_digest(value),
        None if failed else reply,
        text(_of(value, "statusMessage")) if failed else "",
        instant(_of(value, "startTime")),
        instant(_of(value, "endTime")),
        session[:MAXIMUM_NAME_CHARS],
        description=SessionDescribed(label=text(trace.get("name") or _of(value, "traceName"))),
    )


def _parsed(value: object) -> object:
    parsed = parse_embedded(value) if isinstance(value, str) and value[:1] in ("{", "[", '"') else None
    return value if parsed is None else parsed


def _tools(value: dict[str, Any], sent: object) -> list[Any] | None:
    metadata = mapping(_parsed(value.get("metadata")))
    for holder in (mapping(sent), metadata, mapping(metadata.get("attributes"))):
        listed = _parsed(holder.get("tools"))
        if isinstance(listed, list) and listed:
            return [_parsed(tool) for tool in listed]
    return None


def _stated_usage(value: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of an observation: `usageDetails`, earlier `usage`, or fields beside them."""
    for stated in (_of(value, "usageDetails"), value.get("usage")):
        details = mapping(_parsed(stated))
        if any(count(details.get(name)) for name in _EARLIER_COUNTS):
            return details
    for holder in (mapping(value.get("usage")), value):
        counts = {name: _of(holder, earlier) for name, earlier in _EARLIER_COUNTS.items()}
        if any(map(count, counts.values())):
            return counts
    return {}


def _cost(value: dict[str, Any]) -> float | None:
    for name in ("totalCost", "calculatedTotalCost"):
        cost = _of(value, name)
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < 1e6:
            return float(cost)
    return None


def _latency(value: dict[str, Any]) -> float | None:
    started, ended = instant(_of(value, "startTime")), instant(_of(value, "endTime"))
    return None if started is None or ended is None or ended < started else ended - started


def _length(value: dict[str, Any]) -> int:
    return sum(len(part) for name in ("input", "output") if isinstance(part := value.get(name), str))


def _count(exchange: Exchange, stats: FileStats) -> None:
    stats.api_calls += 1
    if exchange.reply is None:
        return
    stats.tool_calls += sum(part.kind == "tool_call" for part in exchange.reply.parts)
    usage = exchange.reply.usage
    if usage is not None:
        stats.peak_context = max(stats.peak_context, usage.input_total)
        sent = usage.input_total
        stats.add_usage(input=sent, output=usage.output_tokens, total=sent + usage.output_tokens)
