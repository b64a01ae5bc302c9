"""One session of Gemini CLI, written as rows: a header, messages, changes of the header, and rewinds.

The rows are those of the JSON Lines format; a session in the older format is one document with the same header
and messages. A message is written again when it grows (tool calls, counts), so the last one is deferred until
another follows. `$set.messages` replaces the history: after a compression, a rollback, or masking of old results.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from windowpane.core.names import mcp_tool_name
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import GEMINI_CLI
from windowpane.sources.transcripts.formats.gemini.parts import Part, parts_of, response_text, written_text
from windowpane.sources.transcripts.json_lines import as_json, count, instant, mapping, sequence, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ContentRemoved,
    ModelCalled,
    Rewound,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import Transcript, unnamed_key

AGENT: Final = "gemini-cli"
MASKED: Final = "mask"
REPLACED: Final = "history_replaced"
SNAPSHOT: Final = "<state_snapshot>"
"""The element in which Gemini CLI has a summary written."""
USAGE_NAMES: Final = ("input", "output", "cached", "thoughts", "tool", "total")
PROJECT_FILE: Final = ".project_root"
MAXIMUM_PATH_BYTES: Final = 4_096
MAXIMUM_DEPTH: Final = 3
"""Folders above a recording, of which one is `chats`: those of sub-agents are in a folder within it."""
_MCP_TOOL: Final = re.compile(r"(?P<tool>\S{1,120}) \((?P<server>.{1,120}) MCP Server\)")
_SHOWN_ONLY: Final = frozenset({"info", "warning", "error"})
"""Messages to the user; media that was read for the model is recorded as `info` as well."""


class GeminiSession(Transcript):
    """Reads the rows of one session."""

    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None) -> None:
        super().__init__(path, log, complete=complete)
        self.location = ""
        """Path of the row in its document, for problems."""
        self._session: SessionOpened | None = None
        self._is_child = False
        """It is a sub-agent's."""
        self._pending: dict[str, Any] | None = None
        """The last message, which may be written again."""
        self._keys: dict[str, list[str]] = {}
        """Keys of the content of each message in the history."""
        self._results: dict[str, bytes] = {}
        """Digest of each tool result, by the call's id."""
        self._calls: set[str] = set()
        """Ids of the tool calls that were added."""
        self._messages = 0
        self._folder = project_folder(path)

    @property
    def opened(self) -> bool:
        """Return whether a header was read."""
        return self._session is not None

    def names_session(self, row: dict[str, Any]) -> bool:
        """Return whether *row* is the header."""
        return bool(text(row.get("sessionId")))

    def read_row(self, row: dict[str, Any]) -> None:
        """Add the records of one row to `out`."""
        if "$rewindTo" in row:
            self._end_message()
            self._rewind(text(row["$rewindTo"]))
        elif isinstance(row.get("$set"), dict):
            self._change(row["$set"])
        elif isinstance(row.get("id"), str) and "type" in row:
            if self._pending is not None and self._pending["id"] != row["id"]:
                self._end_message()
            self._pending = row
        elif isinstance(row.get("sessionId"), str):
            self._open(row)
        elif text(row.get("type")):
            self.report_unknown(text(row.get("type")))
        else:
            self.log.odd_line(self.line or None, self.location, "expected a header, a message or a change")

    def finish(self) -> None:
        """Read the last message where the file is finished, or where it cannot be written again."""
        if self.complete or (self._pending is not None and self._pending.get("type") != "gemini"):
            self._end_message()
        elif self._pending is not None:
            self.report_deferred("the last message, which may be written again, is")

    # -- rows -------------------------------------------------------------------------------------------------

    def _open(self, header: dict[str, Any]) -> None:
        if self._session is not None:
            self._describe(header)
            return
        is_child = self._is_child = header.get("kind") == "subagent"
        self._session = SessionOpened(
            text(header.get("sessionId")) or unnamed_key(header),
            AGENT,
            parent_key=self.path.parent.name if is_child and self.path.parent.name != "chats" else None,
            at=instant(header.get("startTime")),
            folder=self._folder,
        )
        self.stats.sessions += 1
        self.out.append(self._session)
        self._describe(header)

    def _describe(self, fields: dict[str, Any]) -> None:
        title = text(fields.get("summary"))
        if title or self._folder:
            self.out.append(SessionDescribed(title=title, folder=self._folder))

    def _change(self, fields: dict[str, Any]) -> None:
        if self._is_child and fields.get("summary"):  # its result: it has ended
            self._end_message()
        if "messages" in fields:
            self._end_message()
            self._replace([mapping(message) for message in sequence(fields["messages"])])
        self._describe(fields)

    def _rewind(self, message_id: str) -> None:
        """Remove the message and all after it; all messages where it is not known, as Gemini CLI does."""
        retained = dict(self._keys)
        if message_id in retained:
            names = list(retained)
            retained = {name: retained[name] for name in names[: names.index(message_id)]}
        else:
            retained = {}
        self._keys = retained
        self.out.append(Rewound(_last_key(retained)))

    def _replace(self, messages: list[dict[str, Any]]) -> None:
        """Bring the window to the history that *messages* state."""
        names = [text(message.get("id")) for message in messages]
        before, self._keys = self._keys, {}
        added = [message for message, name in zip(messages, names, strict=True) if name not in before]
        retained = {name: before[name] for name in names if name in before}
        removed = tuple(key for name, keys in before.items() if name not in retained for key in keys)
        if removed and SNAPSHOT in written_text(added):
            self.stats.compactions += 1
            retained_keys = tuple(key for keys in retained.values() for key in keys)
            self.out.append(Compacted("unknown", summary=written_text(added), kept_keys=retained_keys))
            self._keys = {name: retained.get(name, []) for name in names}
            return
        if removed and not added and list(retained) == list(before)[: len(retained)]:
            self.out.append(Rewound(_last_key(retained)))
        elif removed:
            self.out.append(ContentRemoved(removed, REPLACED))
        for message, name in zip(messages, names, strict=True):
            if name in retained:
                self._keys[name] = retained[name]
                self._mask(message)
            else:
                self._add_message(message, injected=True)

    def _mask(self, message: dict[str, Any]) -> None:
        """Remove the results of *message* that were replaced since they were recorded."""
        changed = []
        for call in map(mapping, sequence(message.get("toolCalls"))):
            call_id, digest = text(call.get("id")), _digest(call.get("result"))
            if self._results.get(call_id, digest) != digest:
                self._results[call_id] = digest
                changed.append(call_id)
        if changed:
            self.stats.evictions += len(changed)
            self.out.append(ContentRemoved(tuple(changed), MASKED, at=instant(message.get("timestamp"))))

    # -- messages ---------------------------------------------------------------------------------------------

    def _end_message(self) -> None:
        message, self._pending = self._pending, None
        if message is None:
            return
        if message["id"] in self._keys:
            self._grow(message, self._keys[message["id"]])
            return
        self._count(message)
        self._add_message(message)

    def _grow(self, message: dict[str, Any], keys: list[str]) -> None:
        """Add the tool calls of a message that was written again after another one had followed."""
        self._mask(message)
        calls = [mapping(call) for call in sequence(message.get("toolCalls"))]
        added = [call for call in calls if text(call.get("id")) not in self._calls]
        for call in added:
            self._count_call(call)
            self._call(call, keys, instant(message.get("timestamp")))
        for call in calls:
            if text(call.get("id")) not in self._results:
                self._result(call, keys)

    def _add_message(self, message: dict[str, Any], *, injected: bool = False) -> None:
        if self._session is None:
            self.log.odd(self.line or None, "sessionId", "no header; the session is named by its content")
            self._open({"sessionId": unnamed_key(message)})
        self._messages += 1
        name = text(message.get("id")) or f"m{self._messages}"
        keys = self._keys.setdefault(name, [])
        kind = text(message.get("type"))
        at = self.at(instant(message.get("timestamp")))
        if kind == "gemini":
            self._reply(message, keys, at, replayed=injected)
        elif kind == "user" or kind in _SHOWN_ONLY:
            self._request(message, kind, keys, at, injected=injected)
        else:
            self.report_unknown(kind, "messages", f"{self.location}type")

    def _request(
        self, message: dict[str, Any], kind: str, keys: list[str], at: float | None, *, injected: bool
    ) -> None:
        for part in parts_of(message.get("content")):
            if part.kind == "media":
                self._add("media", None, keys, at, media=1)
            elif kind in _SHOWN_ONLY:
                continue
            elif part.kind == "response":
                if (part.call_id or "") not in self._results:
                    self._add("tool_result", part.text, keys, at, part=part)
            elif part.kind == "text":
                if part.text:
                    self._add("memory_injection" if injected else "user_message", part.text, keys, at)
            else:
                self.report_unknown(part.kind, "parts", f"{self.location}content")

    def _reply(self, message: dict[str, Any], keys: list[str], at: float | None, *, replayed: bool) -> None:
        for thought in map(mapping, sequence(message.get("thoughts"))):
            written = "\n".join(filter(None, (text(thought.get("subject")), text(thought.get("description")))))
            if written:
                self._add("thinking", written, keys, at)
        calls = [mapping(call) for call in sequence(message.get("toolCalls"))]
        recorded = {text(call.get("id")) for call in calls}
        for part in parts_of(message.get("content")):
            if part.kind == "call" and (part.call_id or "") not in recorded:
                self._add("tool_call", part.text, keys, at, part=part)
            elif part.kind in ("text", "thought") and part.text:
                self._add("thinking" if part.kind == "thought" else "assistant_response", part.text, keys, at)
            elif part.kind not in ("call", "text", "thought"):
                self.report_unknown(part.kind, "parts", f"{self.location}content")
        for call in calls:
            self._call(call, keys, at)
        if not replayed:
            self._called(message, at)
        for call in calls:
            self._result(call, keys)

    def _call(self, call: dict[str, Any], keys: list[str], at: float | None) -> None:
        call_id, name = text(call.get("id")), _tool_name(call)
        self._calls.add(call_id)
        part = Part("call", "", call_id or None, name or None)
        self._add("tool_call", as_json(call.get("args")), keys, at, part=part)

    def _result(self, call: dict[str, Any], keys: list[str]) -> None:
        call_id, name = text(call.get("id")), _tool_name(call)
        if call.get("result") is None:
            return
        self._results[call_id] = _digest(call.get("result"))
        parts = list(parts_of(call["result"]))
        output = "\n".join(part.text for part in parts if part.kind in ("response", "text"))
        at = instant(call.get("timestamp"))
        media = sum(part.kind == "media" for part in parts)
        part = Part("response", "", call_id or None, name or None)
        child = text(call.get("agentId")) or None
        written = output or ("" if parts else response_text(call["result"]))
        self._add("tool_result", written, keys, at, part=part, media=media, child=child)

    def _called(self, message: dict[str, Any], at: float | None) -> None:
        model = text(message.get("model"))
        tokens = mapping(message.get("tokens"))
        usage = GEMINI_CLI.read_sent(tokens)
        if usage is not None:
            self.stats.peak_context = max(self.stats.peak_context, usage.input_total)
        self._model = model or self._model
        self.out.append(ModelCalled(usage, model, at=at))

    # -- inside -----------------------------------------------------------------------------------------------

    def _add(
        self,
        content_type: ContentType,
        written: str | None,
        keys: list[str],
        at: float | None,
        *,
        part: Part | None = None,
        media: int = 0,
        child: str | None = None,
    ) -> None:
        key = f"m{self._messages}.{len(keys)}"
        keys.append(key)
        call_id, name = (part.call_id, part.name) if part is not None else (None, None)
        self.out.append(
            ContentAdded(content_type, written, call_id, name, media, key=key, at=at, child_key=child)
        )

    def _count(self, message: dict[str, Any]) -> None:
        """Count the message in the statistics, as the recording holds it."""
        stats = self.stats
        stats.messages += 1
        content = message.get("content")
        stats.content_chars += len(content) if isinstance(content, str) else len(as_json(content or ""))
        if message.get("type") == "user":
            stats.user_turns += any(part.kind != "response" for part in parts_of(content))
        if message.get("type") != "gemini":
            return
        stats.api_calls += 1
        tokens = mapping(message.get("tokens"))
        stats.add_usage(**{name: count(tokens.get(name)) for name in USAGE_NAMES})
        for call in map(mapping, sequence(message.get("toolCalls"))):
            self._count_call(call)

    def _count_call(self, call: dict[str, Any]) -> None:
        size = len(as_json(call["result"])) if call.get("result") is not None else 0
        self.stats.tool_calls += 1
        self.stats.content_chars += size
        self.stats.max_tool_output_chars = max(self.stats.max_tool_output_chars, size)


def project_folder(recording: Path) -> str:
    """Return the folder of the project, which a file beside the folder `chats` names."""
    for above in recording.absolute().parents[:MAXIMUM_DEPTH]:
        if above.name == "chats":
            with suppress(OSError), (above.parent / PROJECT_FILE).open("rb") as file:
                return file.read(MAXIMUM_PATH_BYTES).decode(errors="replace").strip()
    return ""


def _last_key(messages: dict[str, list[str]]) -> str | None:
    return next((keys[-1] for keys in reversed(messages.values()) if keys), None)


def _tool_name(call: dict[str, Any]) -> str:
    """Return the name of a tool; that of an MCP server's tool is made of the two in its displayed name."""
    displayed = _MCP_TOOL.fullmatch(text(call.get("displayName")))
    return text(call.get("name")) if displayed is None else mcp_tool_name(displayed["server"], displayed["tool"])


def _digest(result: object) -> bytes:
    return blake2b(as_json(result).encode(errors="replace"), digest_size=8).digest()
