"""One opencode session, its messages and their parts, as records, in whichever way it was stored.

A reply is an assistant message of one or more steps; each step is one model call. A pruned tool output keeps its
text and gets a time (`state.time.compacted`): it left the window before the first message after that time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import OPENCODE
from windowpane.sources.transcripts.json_document import JsonObject, document_key, record_digest
from windowpane.sources.transcripts.json_lines import as_json, count, mapping, milliseconds
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    Record,
    Rewound,
    SessionDescribed,
    SessionOpened,
)

AGENT: Final = "opencode"
REDACTED: Final = "REDACTED"
"""The text that exporters with a redactor write in place of identifiers."""
PRUNED: Final = "prune"
INTERRUPTED: Final = "[Tool execution was interrupted]"
SUBTASK: Final = "The following tool was executed by the user"
COMPACTION_QUESTION: Final = "What did we do so far?"
"""Texts that opencode itself sends to the model in place of such parts."""
_TEXT_FILES: Final = frozenset({"text/plain", "application/x-directory"})
"""Attached files whose text is another part."""
_BOOKKEEPING: Final = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry"})
_ABORTED: Final = "MessageAbortedError"
_UNTITLED: Final = re.compile(r"(New|Child) session - \d{4}-")
_MAXIMUM_REASON: Final = 64


class Message(NamedTuple):
    """One message and its parts."""

    info: JsonObject
    parts: list[JsonObject]
    is_copy: bool = False
    """The message is another session's, from which this one was forked; its calls are that session's."""


def session_key(info: JsonObject, first: JsonObject | None) -> str:
    """Return the session's id, or one made of its content where it has none or it was redacted."""
    key = info.name("id")
    if key and key != REDACTED:
        return key
    created = [None if holder is None else _created(holder) for holder in (info, first)]
    return document_key("unnamed", digest=record_digest([*created, info.value.get("directory")]))


class OpencodeSession:
    """Reads one session; with *complete* the reply in progress at its end is read as well."""

    def __init__(self, stats: FileStats, *, complete: bool) -> None:
        self._stats = stats
        self._complete = complete
        self._pruned: list[tuple[float, str]] = []
        """Time and key of outputs that were pruned and are still in the window."""
        self._call_ids: dict[str, int] = {}
        self._unknown: set[str] = set()
        self._number = -1
        self._results: list[ContentAdded] = []
        """Results of the step that is read, which enter the window after its call."""
        self._message_keys: dict[str, list[str]] = {}
        """Keys of the content of each message."""
        self._compaction: JsonObject | None = None
        """The part that asked for a compaction which has not come."""
        self.deferred = False
        """The last reply is in progress, or the model is not known yet; it was not read."""

    def read(self, info: JsonObject, messages: Iterable[Message]) -> Iterator[Record]:
        """Yield the records of the session, of which *messages* are all messages in order."""
        self._stats.sessions += 1
        upcoming = iter(messages)
        message = next(upcoming, None)
        first = None if message is None else message.info
        if not self._complete and (first is None or not _model_of(first)):
            following = next(upcoming, None)
            if following is None or not _model_of(following.info):
                self.deferred = True
                return
            upcoming = chain((following,), upcoming)
        yield self._opened(info, first)
        yield self._described(info)
        if message is not None and not message.is_copy and is_earlier(message.info, info):
            info.log.odd(None, info.at("time"), "messages of another session, whose calls are counted here too")
        while message is not None:
            following = next(upcoming, None)
            self._number += 1
            yield from self._prune(_created(message.info))
            yield from self._message(message, is_last=following is None)
            message = following
        yield from self._prune(None)
        yield from self._reverted(info)

    def _opened(self, info: JsonObject, first: JsonObject | None) -> SessionOpened:
        parent = info.name("parentID")
        if parent == REDACTED:
            info.log.odd(None, info.at("parentID"), "the parent's id was redacted; its session is unknown")
            parent = None
        model = "" if first is None else _model_of(first)
        at = milliseconds(info.item("time").value.get("created"))
        version = info.name("version") or ""
        return SessionOpened(
            session_key(info, first), AGENT, model, parent, at=at, agent_version=version,
            folder=info.text("directory") or "",
        )  # fmt: skip

    def _described(self, info: JsonObject) -> SessionDescribed:
        title = info.text("title") or ""
        return SessionDescribed(
            title="" if _UNTITLED.match(title) else title,
            folder=info.text("directory") or "",
            agent_version=info.name("version") or "",
        )

    def _message(self, message: Message, *, is_last: bool) -> Iterator[Record]:
        info = message.info
        role = info.text("role")
        if role == "user":
            self._stats.messages += 1
            self._stats.user_turns += 1
            yield from self._request(message)
        elif role == "assistant":
            self._stats.messages += 1
            self._count(message)
            if message.is_copy:
                yield from (one for one in self._reply(message) if not isinstance(one, ModelCalled))
                return
            self._stats.api_calls += 1
            self._add_usage(info)
            ended = info.item("time").has("completed") or info.has("error")
            if is_last and not ended and not self._complete:
                self.deferred = True
                return
            yield from self._reply(message)
        else:
            info.log.bad(info.at("role"), "expected user or assistant, got another")

    def _prune(self, until: float | None) -> Iterator[ContentRemoved]:
        """Yield the removal of the outputs that were pruned *until* then; None for all of them."""
        due = [pruned for pruned in self._pruned if until is None or pruned[0] <= until]
        if due:
            self._pruned = [pruned for pruned in self._pruned if pruned not in due]
            yield ContentRemoved(tuple(key for _, key in due), PRUNED, at=max(at for at, _ in due))

    def _reverted(self, info: JsonObject) -> Iterator[Rewound]:
        """Yield the rewind of a session whose last messages the user took back, which opencode deletes later."""
        revert = info.item("revert")
        target = revert.name("messageID")
        if target is None or target not in self._message_keys:
            return
        last_key = None
        for message_id, keys in self._message_keys.items():
            if message_id == target:
                break
            last_key = keys[-1] if keys else last_key
        yield Rewound(last_key)

    # -- requests ---------------------------------------------------------------------------------------------

    def _request(self, message: Message) -> Iterator[Record]:
        self._count(message)
        at = _created(message.info)
        keys = self._keys_of(message.info)
        for index, part in enumerate(message.parts):
            content = self._requested(part)
            if content is None:
                continue
            content_type, text, media = content
            key = f"m{self._number}.p{index}"
            keys.append(key)
            yield ContentAdded(content_type, text, media=media, key=key, at=at)

    def _requested(self, part: JsonObject) -> tuple[ContentType, str | None, int] | None:
        """Return type, text and number of media of a part of a user message; None where nothing is sent."""
        kind = part.text("type")
        if kind == "text":
            text = "" if part.value.get("ignored") is True else part.text("text") or ""
            synthetic = part.value.get("synthetic") is True
            return ("memory_injection" if synthetic else "user_message", text, 0) if text else None
        if kind == "file":
            return None if part.text("mime") in _TEXT_FILES else ("media", None, 1)
        if kind == "subtask":
            return "user_message", SUBTASK, 0
        if kind == "compaction":
            self._compaction = part
            return "memory_injection", COMPACTION_QUESTION, 0
        self._report_unknown(part, kind)
        return None

    # -- replies ----------------------------------------------------------------------------------------------

    def _reply(self, message: Message) -> Iterator[Record]:
        info = message.info
        if info.value.get("summary") is True:
            yield from self._summary(message)
            return
        error = info.item("error").name("name") or ""
        is_sent = not error or error == _ABORTED
        open_call = False
        for index, part in enumerate(message.parts):
            kind = part.text("type")
            if kind == "step-finish":
                open_call = False
                yield self._called(info, part)
                yield from self._take_results()
                continue
            open_call = open_call or kind in ("step-start", "text", "reasoning")
            if is_sent:
                yield from self._replied(part, kind, f"m{self._number}.p{index}", info)
        steps = any(part.value.get("type") == "step-finish" for part in message.parts)
        if open_call or error or (not steps and _usage(info) is not None):
            yield self._called(info, None if steps else info, error=error)
        yield from self._take_results()

    def _replied(self, part: JsonObject, kind: str | None, key: str, info: JsonObject) -> Iterator[Record]:
        at = milliseconds(part.item("time").value.get("end")) if part.has("time") else None
        content_type: ContentType = "thinking" if kind == "reasoning" else "assistant_response"
        if kind in ("text", "reasoning"):
            text = part.text("text")
            if text:
                self._keys_of(info).append(key)
                yield ContentAdded(content_type, text, key=key, at=at)
        elif kind == "tool":
            self._keys_of(info).extend((_call_key(key), key))
            yield from self._tool(part, key)
        elif kind == "file":
            yield ContentAdded("media", None, media=1, key=key, at=at)
        else:
            self._report_unknown(part, kind)

    def _tool(self, part: JsonObject, key: str) -> Iterator[Record]:
        state = part.item("state")
        name = part.name("tool")
        call_id = self._call_id(part)
        started = milliseconds(state.item("time").value.get("start"))
        arguments = as_json(state.value.get("input"))
        yield ContentAdded("tool_call", arguments, call_id, name, key=_call_key(key), at=started)
        status = state.text("status")
        output = state.text("output") if status == "completed" else _failure(state, status)
        media = sum(file.text("mime") not in _TEXT_FILES for file in state.items("attachments"))
        ended = milliseconds(state.item("time").value.get("end"))
        child = state.item("metadata").name("sessionId") if name == "task" else None
        self._results.append(
            ContentAdded(
                "tool_result", output, call_id, name, media, key=key, at=ended,
                child_key=None if child == REDACTED else child,
            )
        )  # fmt: skip
        pruned = milliseconds(state.item("time").value.get("compacted"))
        if state.item("time").has("compacted"):
            self._stats.evictions += 1
            self._pruned.append((pruned or 0.0, key))

    def _call_id(self, part: JsonObject) -> str:
        """Return the call's id; a number is added where the session had it before, as redacted ones do."""
        call_id = part.name("callID") or "call"
        seen = self._call_ids[call_id] = self._call_ids.get(call_id, 0) + 1
        return call_id if seen == 1 and call_id != REDACTED else f"{call_id}-{seen}"

    def _take_results(self) -> Iterator[ContentAdded]:
        yield from self._results
        self._results = []

    def _called(self, info: JsonObject, counted: JsonObject | None, *, error: str = "") -> ModelCalled:
        """Return the call of a step, or of a whole message; *counted* states its usage, None for unknown."""
        usage = None if counted is None else _usage(counted)
        reason = "" if counted is None else counted.text("reason") or counted.text("finish") or ""
        if usage is not None:
            self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        return ModelCalled(
            usage,
            _model_of(info),
            None if usage is None or counted is None else counted.amount("cost"),
            stop_reason=(error or reason)[:_MAXIMUM_REASON] or None,
            at=milliseconds(info.item("time").value.get("completed")),
        )

    def _summary(self, message: Message) -> Iterator[Record]:
        """Yield the call that wrote a summary, and the compaction where it succeeded."""
        info = message.info
        compaction, self._compaction = self._compaction, None
        yield self._called(info, info, error=info.item("error").name("name") or "")
        text = "\n".join(part.text("text") or "" for part in message.parts if part.text("type") == "text")
        if info.has("error") or not text:
            return
        self._stats.compactions += 1
        retained = () if compaction is None else self._keys_from(compaction.name("tail_start_id"))
        if compaction is None:
            stated = info.text("reason")
            trigger = stated if stated in ("auto", "manual") else "unknown"
        else:
            trigger = "auto" if compaction.value.get("auto") is True else "manual"
        at = milliseconds(info.item("time").value.get("completed"))
        yield Compacted(trigger, summary=text, kept_keys=retained, at=at)
        self._pruned = [pruned for pruned in self._pruned if pruned[1] in retained]

    def _keys_from(self, first: str | None) -> tuple[str, ...]:
        """Return the keys of all content from the message *first* on."""
        messages = list(self._message_keys)
        if first is None or first not in self._message_keys:
            return ()
        return tuple(key for name in messages[messages.index(first) :] for key in self._message_keys[name])

    # -- inside -----------------------------------------------------------------------------------------------

    def _keys_of(self, info: JsonObject) -> list[str]:
        message_id = info.name("id")
        if message_id is None or message_id == REDACTED:
            message_id = f"m{self._number}"
        return self._message_keys.setdefault(message_id, [])

    def _count(self, message: Message) -> None:
        """Count texts, tool inputs and tool outputs in the statistics, as the recording holds them."""
        stats = self._stats
        for part in message.parts:
            kind = part.value.get("type")
            if kind in ("text", "reasoning"):
                text = part.value.get("text")
                stats.content_chars += len(text) if isinstance(text, str) else 0
            elif kind == "tool":
                state = part.item("state")
                output = state.value.get("output")
                output_chars = len(output) if isinstance(output, str) else 0
                stats.tool_calls += 1
                stats.content_chars += len(as_json(state.value.get("input"))) + output_chars
                stats.max_tool_output_chars = max(stats.max_tool_output_chars, output_chars)

    def _add_usage(self, info: JsonObject) -> None:
        tokens = mapping(info.value.get("tokens"))
        cache = mapping(tokens.get("cache"))
        self._stats.add_usage(
            input=count(tokens.get("input")),
            output=count(tokens.get("output")),
            reasoning=count(tokens.get("reasoning")),
            cache_read=count(cache.get("read")),
            cache_write=count(cache.get("write")),
        )

    def _report_unknown(self, part: JsonObject, kind: str | None) -> None:
        if kind not in _BOOKKEEPING and str(kind) not in self._unknown:
            self._unknown.add(str(kind))
            part.log.unusual(part.at("type"), f"parts of the unknown type {str(kind)[:64]!r} are skipped")


def _call_key(key: str) -> str:
    """Return the key of a tool's call, whose result has *key*."""
    return f"{key}.call"


def _failure(state: JsonObject, status: str | None) -> str:
    """Return what the model is sent for a tool that failed, or that was stopped."""
    if status != "error":
        return INTERRUPTED
    metadata = state.item("metadata")
    if metadata.value.get("interrupted") is True and isinstance(metadata.value.get("output"), str):
        return str(metadata.value["output"])
    return state.text("error") or ""


def _created(info: JsonObject) -> float | None:
    return milliseconds(info.item("time").value.get("created"))


def is_earlier(message: JsonObject, session: JsonObject) -> bool:
    """Return whether a message was written before its session was started, as the copies in a fork were."""
    written, started = _created(message), _created(session)
    return written is not None and started is not None and written < started


def _model_of(info: JsonObject) -> str:
    return info.name("modelID") or info.item("model").name("modelID") or ""


def _usage(holder: JsonObject) -> Usage | None:
    return OPENCODE.read_sent(holder.item("tokens"), count=JsonObject.count_at)
