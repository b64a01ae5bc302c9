"""Logs of single model calls made with LiteLLM.

The SDK of OpenHands writes one file per call (`log_completions`), whose consecutive files hold one growing
conversation; a folder of them is one recording. LiteLLM's proxy exports the payloads of its loggers
(`standard_logging_object`) and the rows of its spend log, as a list, as JSON Lines, or one per file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.core.events import Usage
from windowpane.exceptions import SourceError
from windowpane.models.wire.calls import ApiCall
from windowpane.models.wire.replies import FailedReplyError, Reply
from windowpane.models.wire.usage import CHAT
from windowpane.sources.transcripts.folders import in_number_order, names_in
from windowpane.sources.transcripts.formats.exchanges.bodies import (
    UnreadableBodyError,
    api_of,
    read_call,
    read_response,
)
from windowpane.sources.transcripts.formats.exchanges.entries import line_objects
from windowpane.sources.transcripts.formats.exchanges.exchange import Exchange, ExchangeSorter
from windowpane.sources.transcripts.formats.openai_chat import Chat, text_of
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    items_of,
    kind_of,
    load_document,
    parse_embedded,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import head_rows, is_lines, mapping
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record

AGENT: Final = "litellm"
_CALL_FILE: Final = re.compile(r"-\d{9,11}\.\d{1,9}(-[0-9a-f]{4,32})?\.json")
"""End of the name of a call's file: the time it was written."""
_CALL_FIELDS: Final = ({"messages", "response"}, {"input", "response"})
_CALL_MARKS: Final = frozenset({"cost", "latency_sec", "kwargs", "context_window", "fncall_messages"})
_PAYLOAD: Final = frozenset({"startTime", "endTime", "prompt_tokens", "completion_tokens", "call_type"})


class LiteLLMReader:
    """Reads logs of model calls, one call per file or many."""

    format: ClassVar[str] = "litellm_logs"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file holds a request with its response and cost, or rows of the proxy's log."""
        del path
        paths = shape_of(head)
        if any(fields <= paths for fields in _CALL_FIELDS) and paths & _CALL_MARKS:
            return True
        if _is_payload(paths) or _is_payload({name.removeprefix("[].") for name in paths}):
            return True
        rows = head_rows(head)
        return bool(rows) and _is_payload(_payload(rows[0]))

    @staticmethod
    def parts(folder: Path, files: Sequence[str]) -> list[str]:
        """Return the files that are named by the time of a call."""
        del folder
        return in_number_order([name for name in files if _CALL_FILE.search(name)])

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the calls of all conversations. Raises `SourceError` when the file holds none."""
        calls = _Calls(stats)
        if path.is_dir():
            for name in sorted(self.parts(path, names_in(path)), key=_time_in_name):
                log = DocumentLog(path / name, stats, problems)
                try:
                    document = load_document(path / name, log)
                except SourceError:
                    continue
                if isinstance(document, dict):
                    yield from calls.read(JsonObject(document, "", log))
                else:
                    log.bad("", f"expected one call, got {kind_of(document)}")
        else:
            for entry in _entries(path, DocumentLog(path, stats, problems)):
                yield from calls.read(entry)
        yield from calls.finish()


def _time_in_name(name: str) -> tuple[float, str]:
    time = _CALL_FILE.search(name)
    digits = re.search(r"\d{9,11}\.\d{1,9}", time.group()) if time else None
    return (float(digits.group()) if digits else 0.0, name)


def _entries(path: Path, log: DocumentLog) -> Iterator[JsonObject]:
    if is_lines(path):
        yield from line_objects(path, log)
        return
    document = load_document(path, log)
    if isinstance(document, list):
        yield from items_of(document, "", log)
    elif isinstance(document, dict):
        yield JsonObject(document, "", log)
    else:
        log.fail(f"expected a logged call or a list of them, got {kind_of(document)}")


def _is_payload(names: Iterable[str]) -> bool:
    return _PAYLOAD.issubset(names)


def _payload(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of a row of a logger, which may hold it beside other fields."""
    nested = row.get("standard_logging_object") or mapping(row.get("kwargs")).get("standard_logging_object")
    return nested if isinstance(nested, dict) else dict(row)


class _Calls:
    """Reads the logged calls of one recording."""

    def __init__(self, stats: FileStats) -> None:
        self._stats = stats
        self._sorter = ExchangeSorter(AGENT, stats)
        self._has_contents = True
        self._is_proxy_log = False

    def read(self, entry: JsonObject) -> Iterator[Record]:
        """Yield the records of one logged call."""
        entry = replace(entry, value=_payload(entry.value))
        exchange = self._payload_call(entry) if _is_payload(entry.value) else self._sdk_call(entry)
        if exchange is not None:
            yield from self._sorter.add(exchange)

    def finish(self) -> Iterator[Record]:
        """Yield the records that are due at the end."""
        yield from self._sorter.finish()

    def _sdk_call(self, entry: JsonObject) -> Exchange | None:
        """Read a call that the SDK of OpenHands logged."""
        response = entry.value.get("response")
        call = self._call(entry, response)
        if call is None:
            return None
        reply, error = _reply(entry, response)
        ended_at, latency = entry.time("timestamp"), entry.amount("latency_sec")
        if reply is not None:
            reply = replace(reply, cost_dollars=entry.amount("cost"), latency_seconds=latency)
            self._count_usage(reply.usage)
            call = replace(call, model=call.model or reply.model)
        session = mapping(mapping(mapping(entry.value.get("kwargs")).get("extra_body")).get("metadata"))
        return Exchange(
            call,
            _key(reply, entry),
            reply,
            error,
            None if ended_at is None else ended_at - (latency or 0.0),
            ended_at,
            _text(session.get("session_id")),
            limit_tokens=entry.count("context_window") or None,
        )

    def _payload_call(self, entry: JsonObject) -> Exchange | None:
        """Read a call that LiteLLM's proxy logged."""
        if not self._is_proxy_log:
            self._is_proxy_log = True
            entry.log.experimental("a log of LiteLLM's proxy")
        request = _parsed(entry.value.get("messages"))
        if not isinstance(request, list) or not request:
            request = mapping(_parsed(entry.value.get("proxy_server_request"))).get("messages")
        if not isinstance(request, list):
            if self._has_contents:
                entry.log.unusual(
                    entry.at("messages"), "calls without their messages are skipped: the proxy stores them only "
                    "with `store_prompts_in_spend_logs`"
                )  # fmt: skip
            self._has_contents = False
            return None
        response = _parsed(entry.value.get("response"))
        tools = mapping(entry.value.get("model_parameters")).get("tools")
        body = {"messages": request, "model": entry.name("model") or "", "tools": tools}
        call = self._call(replace(entry, value=body), response)
        if call is None:
            return None
        started, ended = entry.time("startTime"), entry.time("endTime")
        if entry.value.get("status") == "failure" or entry.has("error_str"):
            return Exchange(call, _key(None, entry), None, entry.text("error_str") or "failure", started, ended)
        reply, error = _reply(entry, response)
        if reply is not None:
            usage = reply.usage or _stated_usage(entry)
            latency = None if started is None or ended is None or ended < started else ended - started
            cost = entry.amount("response_cost" if entry.has("response_cost") else "spend")
            reply = replace(reply, usage=usage, cost_dollars=cost, latency_seconds=latency)
            self._count_usage(usage)
        session = entry.name("session_id") or _text(mapping(entry.value.get("metadata")).get("session_id"))
        return Exchange(call, _key(reply, entry), reply, error, started, ended, session or "")

    def _call(self, entry: JsonObject, response: object) -> ApiCall | None:
        api = api_of("", entry.value, response)
        if api is None:
            entry.log.bad(entry.at("messages"), "expected the messages of a call")
            return None
        try:
            call = read_call(api, entry.value)
        except UnreadableBodyError as error:
            entry.log.bad(entry.at("messages"), str(error))
            return None
        self._count(call, entry)
        return call

    def _count(self, call: ApiCall, entry: JsonObject) -> None:
        stats = self._stats
        chat = Chat(stats, calls_are_content=True)
        for message in call.messages:
            holder = JsonObject(message, entry.at("messages"), entry.log)
            chat.count(holder)
            stats.user_turns += message.get("role") == "user"
            if message.get("role") == "tool":
                size = len(text_of(holder, quiet=True))
                stats.max_tool_output_chars = max(stats.max_tool_output_chars, size)

    def _count_usage(self, usage: Usage | None) -> None:
        stats = self._stats
        stats.api_calls += 1
        if usage is not None:
            stats.peak_context = max(stats.peak_context, usage.input_total)
            stats.add_usage(
                prompt_tokens=usage.input_total,
                completion_tokens=usage.output_tokens,
                cache_creation_input_tokens=usage.cache_write_tokens,
                cache_read_input_tokens=usage.cache_read_tokens,
            )


def _reply(entry: JsonObject, response: object) -> tuple[Reply | None, str]:
    """Return the reply, or None and the provider's error."""
    if isinstance(response, str):
        return Reply(), ""  # the text of a response that the proxy was set not to store
    api = api_of("", entry.value, response) or "chat"
    try:
        return read_response(api if api != "gemini" else "chat", response), ""
    except FailedReplyError as error:
        return None, str(error)
    except UnreadableBodyError as error:
        entry.log.bad(entry.at("response"), str(error))
        return Reply(), ""


def _stated_usage(entry: JsonObject) -> Usage | None:
    return CHAT.read_sent(entry, count=JsonObject.count_at)


def _key(reply: Reply | None, entry: JsonObject) -> str:
    stated = reply.response_id if reply is not None else ""
    return stated or entry.name("request_id") or entry.name("id") or record_digest(entry.value)


def _parsed(value: object) -> object:
    return parse_embedded(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _text(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""
