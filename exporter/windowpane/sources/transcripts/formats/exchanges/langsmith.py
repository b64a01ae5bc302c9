"""Exports of LangSmith: runs as a list, as the `runs` of an answer of its API, nested, or as lines.

A run of type `llm` is a model call. The calls of one thread (`thread_id`, `session_id` or `conversation_id` of
the metadata), else of one trace, are one session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.core.events import Usage
from windowpane.models.wire.calls import ApiCall
from windowpane.models.wire.replies import Reply
from windowpane.models.wire.traced import messages_of, reply_parts_of
from windowpane.models.wire.usage import CHAT, LANGCHAIN, read_usage
from windowpane.sources.transcripts.formats.exchanges.bodies import cleaned
from windowpane.sources.transcripts.formats.exchanges.entries import line_objects
from windowpane.sources.transcripts.formats.exchanges.exchange import (
    Exchange,
    ExchangeSorter,
    is_nested_too_deeply,
)
from windowpane.sources.transcripts.json_document import (
    MAXIMUM_NAME_CHARS,
    DocumentLog,
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
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record, SessionDescribed

AGENT: Final = "langsmith"
_RUN: Final = frozenset({"run_type", "inputs"})
_THREAD: Final = ("thread_id", "session_id", "conversation_id")
MAXIMUM_RUNS: Final = 200_000


class LangSmithReader:
    """Reads runs."""

    format: ClassVar[str] = "langsmith"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file holds runs."""
        del path
        paths = shape_of(head)
        for prefix in ("", "[].", "runs[].", "[].child_runs[]."):
            fields = {name.removeprefix(prefix) for name in paths if name.startswith(prefix)}
            if fields >= _RUN:
                return True
        rows = head_rows(head)
        return bool(rows) and rows[0].keys() >= _RUN

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the calls of all traces. Raises `SourceError` when the file holds no runs."""
        log = DocumentLog(path, stats, problems)
        if is_lines(path):
            entries: list[Any] = [one.value for one in line_objects(path, log)]
        else:
            document = load_document(path, log)
            entries = sequence(mapping(document).get("runs")) or (
                document if isinstance(document, list) else [document]
            )
        runs = [*_runs(entries)]
        if not runs:
            log.fail("expected runs with a run_type")
        threads = _threads(runs)
        calls = [run for run in runs if run.get("run_type") == "llm"]
        calls.sort(key=lambda run: (instant(run.get("start_time")) or 0.0, text(run.get("dotted_order"))))
        sorter = ExchangeSorter(AGENT, stats)
        unknown = 0
        for run in calls:
            stats.api_calls += 1
            if is_nested_too_deeply([run.get("inputs"), run.get("outputs"), run.get("extra")]):
                log.bad(f"run {text(run.get('id'))[:40]}", "nested too deeply")
                continue
            exchange = _exchange(run, threads)
            _count(exchange, stats)
            unknown += exchange.reply is not None and exchange.reply.usage is None
            yield from sorter.add(exchange)
        yield from sorter.finish()
        if unknown:
            log.unstated(f"the usage of {unknown} calls")


def _runs(entries: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield every run once, with those nested within it."""
    seen: set[str] = set()
    waiting = [mapping(entry) for entry in reversed(list(entries))]
    while waiting and len(seen) < MAXIMUM_RUNS:
        run = waiting.pop()
        waiting += [mapping(child) for child in reversed(sequence(run.get("child_runs")))]
        run_id = text(run.get("id")) or record_digest(run)
        if run.keys() >= _RUN and run_id not in seen:
            seen.add(run_id)
            yield run


def _threads(runs: list[dict[str, Any]]) -> dict[str, str]:
    """Return the threads of traces, which seldom every run names."""
    threads: dict[str, str] = {}
    for run in runs:
        metadata = mapping(mapping(run.get("extra")).get("metadata"))
        thread = next((text(metadata.get(name)) for name in _THREAD if text(metadata.get(name))), "")
        if thread:
            threads.setdefault(text(run.get("trace_id")) or text(run.get("id")), thread[:MAXIMUM_NAME_CHARS])
    return threads


def _exchange(run: dict[str, Any], threads: dict[str, str]) -> Exchange:
    extra = mapping(run.get("extra"))
    parameters, metadata = mapping(extra.get("invocation_params")), mapping(extra.get("metadata"))
    inputs, outputs = mapping(run.get("inputs")), mapping(run.get("outputs"))
    answered = _answer(outputs)
    stated = (
        metadata.get("ls_model_name"),
        parameters.get("model"),
        parameters.get("model_name"),
        outputs.get("model"),
    )
    model = next((name for name in map(text, stated) if name), "")[:MAXIMUM_NAME_CHARS]
    sent = next((inputs[name] for name in ("messages", "prompts", "prompt", "input") if inputs.get(name)), inputs)
    system = inputs.get("system") if isinstance(inputs.get("system"), str | list) else None
    tools = sequence(parameters.get("tools")) or sequence(inputs.get("tools"))
    started, ended = instant(run.get("start_time")), instant(run.get("end_time"))
    latency = None if started is None or ended is None or ended < started else ended - started
    reply = cleaned(
        Reply(
            reply_parts_of(answered),
            _usage(run, outputs, answered),
            model,
            cost_dollars=_cost(run),
            latency_seconds=latency,
        )
    )
    trace = text(run.get("trace_id")) or text(run.get("id"))
    failed = bool(run.get("error")) and not reply.parts and reply.usage is None
    return Exchange(
        ApiCall("chat", model, messages_of(sent) or [], system, tools or None),
        text(run.get("id"))[:MAXIMUM_NAME_CHARS] or record_digest(run),
        None if failed else reply,
        text(run.get("error")) if failed else "",
        started,
        ended,
        threads.get(trace, trace)[:MAXIMUM_NAME_CHARS],
        description=SessionDescribed(label=text(run.get("session_name"))),
    )


def _answer(outputs: dict[str, Any]) -> Any:
    """Return the messages of a run's outputs, in LangChain's form or in that of the provider's client."""
    for entry in sequence(outputs.get("generations")):
        generation = mapping(next(iter(entry), None) if isinstance(entry, list) else entry)
        return generation.get("message") or generation.get("text")
    for entry in sequence(outputs.get("choices")):
        return mapping(entry).get("message")
    return next(
        (outputs[name] for name in ("messages", "message", "output") if outputs.get(name)), outputs or None
    )


def _usage(run: dict[str, Any], outputs: dict[str, Any], answered: object) -> Usage | None:
    """Return the usage of a call, where the run states it in any of its places."""
    message = mapping(answered)
    message = mapping(message.get("kwargs")) or message
    stated = mapping(message.get("usage_metadata")) or mapping(outputs.get("usage_metadata"))
    if stated:
        return LANGCHAIN.read(stated)
    listed = mapping(outputs.get("usage")) or mapping(mapping(outputs.get("llm_output")).get("token_usage"))
    if listed:
        return read_usage(listed)
    return CHAT.read_sent(run)


def _cost(run: dict[str, Any]) -> float | None:
    cost = run.get("total_cost")
    if isinstance(cost, str):
        try:
            cost = float(cost[:40])
        except ValueError:
            return None
    return dollars(cost) or None


def _count(exchange: Exchange, stats: FileStats) -> None:
    stats.messages += len(exchange.call.messages)
    if exchange.reply is None:
        return
    stats.tool_calls += sum(part.kind == "tool_call" for part in exchange.reply.parts)
    usage = exchange.reply.usage
    if usage is not None:
        stats.peak_context = max(stats.peak_context, usage.input_total)
        stats.add_usage(prompt_tokens=usage.input_total, completion_tokens=usage.output_tokens)
