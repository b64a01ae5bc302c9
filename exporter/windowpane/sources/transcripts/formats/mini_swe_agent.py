"""mini-swe-agent trajectories: `.traj.json`, an object since v1.1 and a bare list of messages before.

The window is the messages as they were sent: a tool message's `content` is cut at the source, and its full text
(`extra.raw_output`) never entered. Agents without native tool calls write their command in the reply's text;
the text is split there, so that the observation which comes back as a user message can be linked to it. The
closing message of role `exit` is the result of the run, not content. A call that failed left no message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from windowpane.sources.transcripts.formats.openai_chat import (
    Chat,
    excludes_cache,
    opening,
    stop_reason_of,
    text_of,
    usage_of,
)
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    document_key,
    load_list,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import mapping, sequence
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import (
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    ending,
)

FINISHED: Final = frozenset({"Submitted", "LimitsExceeded", "TimeExceeded"})
_SUFFIX: Final = ".traj.json"
_COMMAND: Final = re.compile(r"```(?:mswea_bash_command|bash)[ \t]*\n")
_OWN_PATHS: Final = frozenset({"trajectory_format", "info.mini_version"})


class MiniSweAgentReader:
    """One run of one instance."""

    format: ClassVar[str] = "mini_swe_agent"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file has the format's suffix and a list of messages, or its own fields."""
        paths = shape_of(head)
        if paths & _OWN_PATHS:
            return True
        return path.name.endswith(_SUFFIX) and bool(paths & {"[].role", "info"})

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the run. Raises `SourceError` when the file holds no list of messages."""
        log = DocumentLog(path, stats, problems)
        run = load_list(path, log, of="messages")
        info = run.item("info")
        model = info.item("config").item("model").name("model_name") or ""
        instance = run.name("instance_id") or path.name.removesuffix(_SUFFIX)
        stats.sessions += 1
        key = document_key(instance, digest=record_digest(opening(run.value["messages"])))
        yield SessionOpened(key, "mini-swe-agent", model)
        yield SessionDescribed(label=instance, agent_version=info.name("mini_version") or "")
        yield from _MiniSweAgentRun(stats, model).read(run)
        yield from _close(info)


def _close(info: JsonObject) -> Iterator[Record]:
    status = info.text("exit_status")
    if status:
        yield SessionClosed(ending(status, finished=FINISHED))


class _MiniSweAgentRun:
    """Reads the messages of one run."""

    def __init__(self, stats: FileStats, model: str) -> None:
        self._stats = stats
        self._model = model
        self._exclusive = False
        self._chat = Chat(stats)

    def read(self, run: JsonObject) -> Iterator[Record]:
        """Yield the records of all messages."""
        self._exclusive = any(excludes_cache(usage) for usage in _stated_usage(run))
        for message in run.items("messages"):
            if message.value.get("role") == "exit":
                self._chat.count(message)
                continue
            role = self._chat.role(message)
            if role is None:
                continue
            self._chat.count(message)
            extra = message.item("extra")
            at = extra.time("timestamp")
            if role == "assistant":
                yield from self._reply(message, at)
                yield self._called(extra, at)
            elif role == "user" and self._chat.pending is not None:
                yield from self._chat.result(message, None, at)
            else:
                yield from self._chat.contents(message, role, at)

    def _reply(self, message: JsonObject, at: float | None) -> Iterator[Record]:
        if message.value.get("tool_calls"):
            yield from self._chat.contents(message, "assistant", at)
            return
        yield from self._chat.thinking(message, at)
        text = text_of(message)
        command = _COMMAND.search(text)
        response = text if command is None else text[: command.start()]
        if response:
            yield ContentAdded("assistant_response", response, at=at)
        self._chat.pending = None
        if command is not None:
            self._stats.tool_calls += 1
            yield self._chat.step("bash", text[command.start() :], at)

    def _called(self, extra: JsonObject, at: float | None) -> ModelCalled:
        stats = self._stats
        stats.user_turns += 1
        stats.api_calls += 1
        response = extra.item("response")
        usage = usage_of(response, exclusive=self._exclusive)
        if usage is not None:
            stats.peak_context = max(stats.peak_context, usage.input_total)
            stats.add_usage(
                prompt=usage.input_total, completion=usage.output_tokens, cached=usage.cache_read_tokens
            )
        choice = next(response.items("choices"), None)
        served = response.name("model") or ""
        return ModelCalled(
            usage,
            model="" if self._model.endswith(served) else served,
            cost_dollars=extra.amount("cost"),
            stop_reason=None if choice is None else stop_reason_of(choice),
            at=at,
            response_id=response.name("id") or None,
        )


def _stated_usage(run: JsonObject) -> Iterator[object]:
    """Yield the usage of the calls as the responses state it, in any form."""
    for message in sequence(run.value.get("messages")):
        yield mapping(mapping(mapping(message).get("extra")).get("response")).get("usage")
