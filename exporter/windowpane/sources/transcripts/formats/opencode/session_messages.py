"""Messages of the newest and the first releases of opencode, in the exported form.

The newest keep them in the table `session_message`: a row has a type and its data, one message or one step of a
reply with everything in it. In the first ones a message's file holds its parts. Built from opencode's source, as
the tables and folders beside them; no recorded ones were available.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from windowpane.sources.transcripts.formats.opencode.session import Message
from windowpane.sources.transcripts.json_document import DocumentLog, JsonObject
from windowpane.sources.transcripts.json_lines import mapping, sequence, text

Json = dict[str, Any]

_INJECTED: Final = frozenset({"synthetic", "system", "shell"})
"""Texts that opencode adds to the conversation."""
_BOOKKEEPING: Final = frozenset({"agent-switched", "idle", "model-switched"})


class SessionMessages:
    """Converts the rows of one session."""

    def __init__(self, log: DocumentLog) -> None:
        self._log = log
        self._unknown: set[str] = set()

    def message(self, row_id: str, kind: str, data: Json) -> Iterator[Message]:
        """Yield the message of a row; nothing where it holds none."""
        time = mapping(data.get("time"))
        if kind == "user":
            attached = map(mapping, sequence(data.get("files")))
            files = [{"type": "file", "mime": text(file.get("mime"))} for file in attached]
            yield self._made(row_id, {"role": "user", "time": time}, [_text(data.get("text")), *files])
        elif kind in _INJECTED:
            written = text(data.get("text")) or "\n".join((text(data.get("command")), text(data.get("output"))))
            yield self._made(row_id, {"role": "user", "time": time}, [_text(written) | {"synthetic": True}])
        elif kind == "assistant":
            yield self._made(row_id, _reply(data), list(_parts(data)))
        elif kind == "compaction":
            summary = "\n\n".join(part for name in ("summary", "recent") if (part := text(data.get(name))))
            info = {"role": "assistant", "summary": True, "time": time, "reason": data.get("reason")}
            yield self._made(row_id, info, [_text(summary)])
        elif kind not in _BOOKKEEPING and kind not in self._unknown:
            self._unknown.add(kind)
            self._log.unusual(f"session_message {row_id}", f"rows of the unknown type {kind[:64]!r} are skipped")

    def _made(self, row_id: str, info: Json, parts: list[Json]) -> Message:
        path = f"session_message {row_id}"
        objects = [JsonObject(part, f"{path}.content[{n}]", self._log) for n, part in enumerate(parts)]
        return Message(JsonObject({"id": row_id} | info, path, self._log), objects)


def _text(written: object) -> Json:
    return {"type": "text", "text": text(written)}


def _reply(data: Json) -> Json:
    model, error = mapping(data.get("model")), data.get("error")
    stated: Json = {
        "role": "assistant",
        "time": mapping(data.get("time")),
        "modelID": text(model.get("id")),
        "tokens": mapping(data.get("tokens")),
    }
    if isinstance(error, dict):
        stated["error"] = {"name": text(error.get("type")) or text(error.get("name")) or "error"}
    return stated


def _parts(data: Json) -> Iterator[Json]:
    """Yield the content of a step, and the usage of its call where it is stated."""
    yield {"type": "step-start"}
    for content in map(mapping, sequence(data.get("content"))):
        yield _tool(content) if content.get("type") == "tool" else content
    if isinstance(data.get("tokens"), dict):
        finished = {"tokens": data["tokens"], "cost": data.get("cost"), "reason": text(data.get("finish"))}
        yield {"type": "step-finish"} | finished


def _tool(content: Json) -> Json:
    state, time = mapping(content.get("state")), mapping(content.get("time"))
    written = [mapping(part) for part in sequence(state.get("content"))]
    times = {"start": time.get("ran", time.get("created")), "end": time.get("completed")}
    if "pruned" in time:
        times["compacted"] = time["pruned"]
    return {
        "type": "tool",
        "callID": content.get("id"),
        "tool": content.get("name"),
        "state": {
            "status": state.get("status"),
            "input": state.get("input"),
            "output": "\n".join(text(part.get("text")) for part in written if "text" in part),
            "error": text(mapping(state.get("error")).get("message")),
            "metadata": mapping(state.get("structured")),
            "attachments": [{"mime": text(part.get("mime"))} for part in written if "mime" in part],
            "time": times,
        },
    }


def first_message(stated: Json) -> tuple[Json, list[Json]]:
    """Return the exported form of a message of the first releases, and of its parts."""
    metadata = mapping(stated.get("metadata"))
    info = {"id": stated.get("id"), "role": stated.get("role"), "time": mapping(metadata.get("time"))}
    info |= {name: value for name, value in mapping(metadata.get("assistant")).items() if name != "system"}
    if isinstance(metadata.get("error"), dict):
        info["error"] = metadata["error"]
    parts = [mapping(part) for part in sequence(stated.get("parts"))]
    return info, [_invoked(part) if part.get("type") == "tool-invocation" else part for part in parts]


def _invoked(part: Json) -> Json:
    call = mapping(part.get("toolInvocation"))
    status = "completed" if call.get("state") == "result" else "running"
    state: Json = {"status": status, "input": call.get("args"), "output": call.get("result"), "time": {}}
    return {"type": "tool", "callID": call.get("toolCallId"), "tool": call.get("toolName"), "state": state}
