"""Bare OpenAI-style message lists, and the tau-bench results that hold one such list a task.

Neither records times or usage (a message's own `usage` is taken where somebody kept it), so a session read from
them is estimated throughout. Neither has ids: a session is keyed by a digest of how it, or its dump, begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from windowpane.sources.base import Content, FileStats, ModelCalled, Problem, Record, SessionClosed, SessionOpened
from windowpane.sources.chat import Chat, opening, usage_of
from windowpane.sources.documents import (
    MAXIMUM_NAME_CHARS,
    Item,
    Notes,
    compact,
    document_key,
    items_of,
    kind_of,
    load_document,
    load_list,
    record_digest,
)
from windowpane.sources.shapes import shape_of

_TRAJECTORY_SUFFIXES: Final = (".traj", ".traj.json")
_ROLE_PATHS: Final = frozenset({"[].role", "messages[].role"})
_BODY_PATHS: Final = frozenset({"[].content", "[].tool_calls", "messages[].content", "messages[].tool_calls"})
_FOREIGN_PATHS: Final = frozenset(
    {"info", "response", "trajectory_format", "[].turn_idx", "[].termination_reason"}
)
"""Fields of other formats that also hold messages: agents' trajectories, exports, logs of single calls."""


def conversation(messages: Iterator[Item], chat: Chat, stats: FileStats) -> Iterator[Record]:
    """The records of messages in OpenAI's shape; every assistant message is one model call."""
    for message in messages:
        role = chat.role(message)
        if role is None:
            continue
        chat.count(message)
        at = message.time("timestamp") if "timestamp" in message.value else None
        if role == "user":
            stats.user_turns += 1
        yield from chat.contents(message, role, at)
        if role == "assistant":
            stats.api_calls += 1
            usage = usage_of(message)
            if usage is not None:
                stats.peak_context = max(stats.peak_context, usage.input_total)
                _sum(stats, "prompt_tokens", usage.input_total)
                _sum(stats, "completion_tokens", usage.output_tokens)
            yield ModelCalled(usage, at=at)


def _sum(stats: FileStats, name: str, tokens: int) -> None:
    stats.usage[name] = stats.usage.get(name, 0) + tokens


class OpenAIChatReader:
    """One conversation: a list of messages, or an object with `messages` and perhaps `model` and `tools`."""

    format: ClassVar[str] = "openai_chat"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """A list of messages with roles that no other format claims."""
        if path.name.endswith(_TRAJECTORY_SUFFIXES):
            return False
        paths = shape_of(head)
        return bool(paths & _ROLE_PATHS and paths & _BODY_PATHS) and not paths & _FOREIGN_PATHS

    @staticmethod
    def default_paths() -> tuple[Path, ...]:
        """Nowhere in particular."""
        return ()

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Records of the one conversation. Raises `SourceError` when the file is no list of messages."""
        notes = Notes(path, stats, problems)
        holder = load_list(path, notes, of="messages")
        stats.sessions += 1
        key = record_digest(opening(holder.value["messages"]))
        yield SessionOpened(key, "openai-chat", holder.name("model") or "")
        for tool in holder.items("tools"):
            yield Content("tool_definition", compact(tool.value))
        yield from conversation(holder.items("messages"), Chat(stats, calls_are_content=True), stats)


class TauBenchReader:
    """tau-bench: a list of results, each with the trajectory of one trial of one task."""

    format: ClassVar[str] = "tau_bench"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """A list of objects with a task and a trajectory."""
        del path
        paths = shape_of(head)
        return "[].task_id" in paths and ("[].traj" in paths or {"[].reward", "[].info"} <= paths)

    @staticmethod
    def default_paths() -> tuple[Path, ...]:
        """Nowhere in particular."""
        return ()

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """One session a result. Raises `SourceError` when the file is no list."""
        notes = Notes(path, stats, problems)
        document = load_document(path, notes)
        if not isinstance(document, list):
            notes.fail(f"expected a list of results, got {kind_of(document)}")
        if not document:
            notes.odd("", "the list of results is empty")
        dump = record_digest(document[0]) if document else ""
        seen: dict[str, int] = {}
        for result in items_of(document, "", notes):
            if not isinstance(result.value.get("traj"), list):
                result.wrong("traj", "a list of messages", result.value.get("traj"))
                continue
            stats.sessions += 1
            trial = result.name("trial") or "0"
            key = unique_key(document_key(result.name("task_id"), trial=trial, digest=dump), seen, result)
            yield SessionOpened(key, "tau-bench")
            chat = Chat(stats, calls_are_content=True)
            yield from conversation(result.items("traj"), chat, stats)
            failed = result.item("info").has("error")
            yield SessionClosed("error: other" if failed else "completed")


def unique_key(key: str, seen: dict[str, int], item: Item) -> str:
    """*key*, numbered from its second use on in a document, which is noted."""
    seen[key] = seen.get(key, 0) + 1
    if seen[key] == 1:
        return key
    item.notes.odd(item.where, f"its session has the same id as another of the document, number {seen[key]}")
    return f"{key[: MAXIMUM_NAME_CHARS - 10]}-{seen[key]}"
