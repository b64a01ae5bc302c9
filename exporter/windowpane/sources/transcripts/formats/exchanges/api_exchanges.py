"""Recorded HTTP exchanges with a provider: request and response bodies, as proxies and test recorders save them.

Read are a list or JSON Lines of `{request, response}`, the `interactions` of a VCR cassette in JSON, and the
`entries` of an HTTP archive (HAR). A body is an object, its text, or the text of a stream of events.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.models.wire.replies import FailedReplyError, Reply
from windowpane.sources.transcripts.formats.exchanges.bodies import (
    Api,
    UnreadableBodyError,
    api_of,
    as_text,
    read_call,
    read_response,
)
from windowpane.sources.transcripts.formats.exchanges.entries import line_objects
from windowpane.sources.transcripts.formats.exchanges.exchange import Exchange, ExchangeSorter
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    items_of,
    load_document,
    parse_embedded,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import head_rows, is_lines, mapping, sequence
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record

AGENT: Final = "api"
_PAIRS: Final = ({"request", "response"}, {"[].request", "[].response"})
_LISTS: Final = ("interactions", "entries")
GEMINI_PATH: Final = "generatecontent"
OK_STATUS: Final = range(200, 300)


class ApiExchangesReader:
    """Reads pairs of requests and responses."""

    format: ClassVar[str] = "api_exchanges"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file holds a request with a body beside a response."""
        del path
        paths = shape_of(head)
        if "log.entries" in paths or ("interactions" in paths and "[].id" not in paths):
            return any(name.endswith(("[].request", "[].response")) for name in paths) or b'"request"' in head
        if any(pair <= paths for pair in _PAIRS):
            return any(name.endswith(("request.body", "request.messages", "request.uri")) for name in paths)
        rows = head_rows(head)
        return bool(rows) and {"request", "response"} <= rows[0].keys() and isinstance(rows[0]["request"], dict)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the calls of all conversations. Raises `SourceError` when the file holds no exchanges."""
        log = DocumentLog(path, stats, problems)
        pairs = line_objects(path, log) if is_lines(path) else _pairs(load_document(path, log), log)
        sorter = ExchangeSorter(AGENT, stats)
        has_times = is_gemini = False
        for pair in pairs:
            exchange = read_exchange(pair, stats)
            if exchange is not None:
                has_times = has_times or exchange.sent_at is not None
                is_gemini = is_gemini or GEMINI_PATH in (pair.item("request").text("uri") or "").lower()
                yield from sorter.add(exchange)
        yield from sorter.finish()
        if is_gemini:
            log.experimental("Gemini's generateContent")
        if not has_times:
            log.unstated("times")


def _pairs(document: Any, log: DocumentLog) -> Iterator[JsonObject]:
    archive = mapping(mapping(document).get("log"))
    for holder in (mapping(document), archive):
        for name in _LISTS:
            if isinstance(holder.get(name), list):
                return items_of(holder[name], f"log.{name}" if holder is archive else name, log)
    if isinstance(document, list):
        return items_of(document, "", log)
    if not {"request", "response"} <= mapping(document).keys():
        log.fail("expected a list of requests with their responses")
    return iter((JsonObject(document, "", log),))


def read_exchange(pair: JsonObject, stats: FileStats) -> Exchange | None:
    """Return one exchange; None where the request is not a model call or is damaged, which is reported."""
    request, response = pair.item("request"), pair.item("response")
    uri = request.text("uri") or request.text("url") or ""
    body, answer = _body(request), _body(response)
    if not isinstance(body, dict):
        pair.log.bad(request.at("body"), "expected the JSON body of a request")
        return None
    api = api_of(uri, body, answer)
    if api is None:
        pair.log.unusual(request.at("body"), "not a model call of a known interface, skipped")
        return None
    try:
        call = read_call(api, body, uri=uri)
    except UnreadableBodyError as error:
        pair.log.bad(request.at("body"), str(error))
        return None
    stats.messages += len(call.messages)
    stats.content_chars += len(as_text(body)) + len(as_text(answer))
    reply, failure = _reply(api, response, answer)
    if reply is not None:
        _count(reply, stats)
    sent_at = pair.time("timestamp") or pair.time("startedDateTime") or pair.time("recorded_at")
    return Exchange(
        call,
        (reply.response_id if reply is not None else "") or record_digest(body),
        reply,
        failure,
        sent_at if sent_at is not None else _created(answer),
    )


def _body(message: JsonObject) -> Any:
    """Return a body as it was sent, parsed where it is text of JSON."""
    for name in ("body", "json", "content", "postData"):
        body = message.value.get(name)
        if body is None:
            continue
        if isinstance(body, dict) and name in ("content", "postData", "body"):
            inner = [body[key] for key in ("text", "string") if isinstance(body.get(key), str)]
            body = inner[0] if inner else body
        if isinstance(body, str):
            value = parse_embedded(body)
            return body if value is None else value
        return body
    return None


def _reply(api: Api, response: JsonObject, answer: object) -> tuple[Reply | None, str]:
    """Return the reply, or None and the provider's error."""
    status = response.value.get("status")
    code = status.get("code") if isinstance(status, dict) else status
    if isinstance(code, int) and code not in OK_STATUS:
        return None, f"{code}: {as_text(answer)}"
    if answer is None:
        return None, "no response was recorded"
    try:
        return read_response(api, answer), ""
    except FailedReplyError as error:
        return None, str(error)
    except UnreadableBodyError as error:
        response.log.bad(response.at("body"), str(error))
        return Reply(), ""


def _count(reply: Reply, stats: FileStats) -> None:
    stats.api_calls += 1
    stats.tool_calls += sum(part.kind == "tool_call" for part in reply.parts)
    usage = reply.usage
    if usage is not None:
        stats.peak_context = max(stats.peak_context, usage.input_total)
        stats.add_usage(
            input_tokens=usage.input_tokens,
            cache_creation_input_tokens=usage.cache_write_tokens,
            cache_read_input_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
        )


def _created(answer: object) -> float | None:
    """Return the time that a reply of OpenAI's states."""
    for value in (answer, *sequence(answer)[:1]):
        for name in ("created", "created_at"):
            created = mapping(value).get(name)
            if isinstance(created, int | float) and not isinstance(created, bool) and 0 < created < 4_102_444_800:
                return float(created)
    return None
