"""One session of a Claude Code transcript, whose rows it orders as they entered the window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from windowpane.core.agents import CLAUDE_CODE, CLAUDE_CODE_AGENT
from windowpane.models.wire.usage import ANTHROPIC, read_iterations
from windowpane.sources.transcripts.formats.claude_code.branches import MAXIMUM_PROMPTS, LivePrompts, RowParents
from windowpane.sources.transcripts.formats.claude_code.compaction import Compaction, RecentKeys
from windowpane.sources.transcripts.formats.claude_code.prompt import SentPrompt
from windowpane.sources.transcripts.json_lines import count
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import (
    Cleared,
    ContentAdded,
    ModelCalled,
    NextCall,
    Record,
    Rewound,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import latency_seconds

MAXIMUM_DEFERRED: Final = 1_000
"""Records deferred at most while a call or a compaction is open."""
MAXIMUM_CLOSED_CALLS: Final = 64
"""Closed calls that later lines are compared with."""
USAGE_NAMES: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
HOUR_WRITES: Final = "ephemeral_1h_input_tokens"
"""Part of the cache writes, in a usage's `cache_creation`."""
_START: Final = ("", 0)
"""The key and version before the first content."""
LINES_TOTAL: Final = "all_lines_total"
"""Sum of all four over every line, as counted by a reader that ignores repetition."""


WHOLE_MESSAGES_SINCE: Final = (2, 1, 332)
"""Release that was measured to write all lines of a message after its end, with its final usage."""


def writes_whole_messages(version: str) -> bool:
    """Return whether a release of Claude Code writes no line of a message before its end."""
    numbers = version.partition("-")[0].split(".")
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= WHOLE_MESSAGES_SINCE


@dataclass(slots=True)
class CallLines:
    """One model call, from the lines read so far."""

    id: str
    model: str
    input_at: float | None
    """Time of the last input before it."""
    repeated: bool = False
    """A call of this id was closed before: its usage is counted already."""
    usage: dict[str, int] = field(default_factory=dict)
    output_details: object = None
    """The reasoning within the output, where the provider states it."""
    iterations: object = None
    """The runs of the model within the call, which its usage sums up."""
    reported: bool = False
    stop_reason: str | None = None
    at: float | None = None
    lines_total: int = 0
    is_whole: bool = False
    """No line of it follows: a release that writes a message after its end wrote the last block."""
    outputs: set[int] = field(default_factory=set)
    """The distinct outputs of the lines."""

    def add_usage(self, usage: dict[str, Any]) -> None:
        """Add a line's usage. The largest value of each count is final: earlier ones may be placeholders."""
        self.reported = True
        self.outputs.add(count(usage.get("output_tokens")))
        for name in USAGE_NAMES:
            value = count(usage.get(name))
            self.lines_total += value
            if value > self.usage.get(name, -1):
                self.usage[name] = value
        writes = usage.get("cache_creation")
        if isinstance(writes, dict):
            self.usage[HOUR_WRITES] = max(self.usage.get(HOUR_WRITES, 0), count(writes.get(HOUR_WRITES)))
        self.output_details = usage.get("output_tokens_details") or self.output_details
        self.iterations = usage.get("iterations") or self.iterations

    def add_end(self, stop_reason: str | None, at: float | None) -> None:
        """Add the latest line's stop reason and time."""
        self.stop_reason = stop_reason or self.stop_reason
        if at is not None:
            self.at = at

    @property
    def is_start(self) -> bool:
        """True while no line shows that the usage is final: no stop reason, and one output on all lines."""
        return self.stop_reason is None and len(self.outputs) == 1

    def record(self, next_call: NextCall | None) -> ModelCalled:
        """Return the call as one record."""
        stated = {**self.usage, "cache_creation": self.usage, "output_tokens_details": self.output_details}
        usage = ANTHROPIC.read_sent(stated)
        is_counted = self.reported and not self.repeated
        runs = read_iterations({"iterations": self.iterations})
        return ModelCalled(
            usage if is_counted else None,
            self.model,
            latency_seconds=latency_seconds(self.input_at, self.at),
            stop_reason=self.stop_reason,
            at=self.at,
            response_id=self.id,
            is_start=is_counted and self.is_start,
            next_call=next_call,
            window_tokens=runs.window_tokens,
            advisors=runs.advisors if is_counted else (),
        )


class ClaudeSession:
    """Orders one session's content: a call's lines, its end, then the content that came in during the call."""

    def __init__(
        self,
        key: str,
        root_key: str,
        out: list[Record],
        stats: FileStats,
        *,
        at: float | None,
        version: str = "",
        folder: str = "",
    ) -> None:
        self.key = key
        self.root_key = root_key
        self.used = False
        """The window is not empty."""
        self.called = False
        """The window was sent with a call."""
        self.is_linked = False
        """A row named the row before it."""
        self.window_tokens: int | None = None
        """Size that a row states; None for a model whose name has no size."""
        self._out = out
        self._stats = stats
        self.model = ""
        """Of the latest call; empty before the first."""
        self.version = version
        """Release of Claude Code that wrote the latest row."""
        self._started_at = at
        self._started_in = folder
        self._call: CallLines | None = None
        self._deferred: list[ContentAdded] = []
        """Content that came in during the open call."""
        self._prompt = SentPrompt()
        self._holds_reply = False
        """The tools of the open call are still to be stated, and are put before its reply."""
        self._reply: list[ContentAdded] = []
        """The reply that is held for them."""
        self._compaction: Compaction | None = None
        self._last_input_at: float | None = None
        self._keys = RecentKeys()
        self._closed: dict[str, None] = {}
        self._prompts = LivePrompts()
        self._latest_key = ""
        """Key of the content that was added last."""
        self._before: dict[str, tuple[str, int]] = {}
        """By the key of a prompt, that of the content before it, and the version of what calls send first."""
        self._description: SessionDescribed | None = None

    def enter(self) -> None:
        """Add the record that assigns the following ones to this session."""
        child = self.key != self.root_key
        self._out.append(
            SessionOpened(
                self.key,
                CLAUDE_CODE_AGENT if child else CLAUDE_CODE,
                self.model,
                parent_key=self.root_key if child else None,
                at=self._started_at,
                agent_version=self.version,
                folder=self._started_in,
            )
        )

    def emit(self, record: Record) -> None:
        """Add a record other than content or a call."""
        self._out.append(record)

    def clear(self, at: float | None) -> None:
        """Continue with an empty window; before the first call of a window it is empty already."""
        if not self.called:
            return
        self.end_call()
        self._close_compaction(None)
        self._out.append(Cleared(at=at))
        self._prompt = SentPrompt()
        self.used = self.called = False
        self._prompts.clear()

    def describe(self, *, folder: str, branch: str, at: float | None) -> None:
        """Add the folder that the session started in, and the branch where it is another than before."""
        before = self._description
        if before is None:
            stated = SessionDescribed(folder=folder, branch=branch, at=at)
        elif branch and branch != before.branch:
            stated = replace(before, branch=branch, at=at)
        else:
            return
        self._description = stated
        self._out.append(stated)

    def add_prompt(self, row_id: str, parents: RowParents, at: float | None) -> None:
        """Add the row of a prompt; the prompts that it does not follow are abandoned, with all after them."""
        abandoned = self._prompts.add(row_id, parents)
        if abandoned is not None:
            self.end_call()
            self._close_compaction(None)
            before, version = self._before.get(abandoned.first_prompt, _START)
            self._out.append(Rewound(before or None, at, abandoned.compactions))
            if before:
                self._prompt.rewind(version)
        self._before[row_id] = _START
        if len(self._before) > MAXIMUM_PROMPTS:
            del self._before[next(iter(self._before))]

    # -- content ----------------------------------------------------------------------------------------------

    def receive(self, contents: Iterable[ContentAdded]) -> None:
        """Add content other than the model's; it is deferred while a call or a compaction is open."""
        for content in contents:
            self.used = True
            self._last_input_at = content.at if content.at is not None else self._last_input_at
            if self._compaction is not None:
                self._compaction.deferred.append(content)
                if len(self._compaction.deferred) > MAXIMUM_DEFERRED:
                    self._close_compaction(None)
            elif self._call is not None:
                self._deferred.append(content)
                if len(self._deferred) > MAXIMUM_DEFERRED:
                    self.end_call()
            else:
                self._put(content)

    def reply(self, contents: Iterable[ContentAdded]) -> None:
        """Add content of the open call."""
        self.used = self.called = True
        if self._holds_reply:
            self._reply.extend(contents)
            if len(self._reply) > MAXIMUM_DEFERRED:
                self._put_reply()
            return
        for content in contents:
            self._put(content)

    def read_prompt(self, attachment: dict[str, Any]) -> None:
        """Read what calls send before their messages: from the next call on, or by the open one."""
        self._prompt.read(attachment)
        if self._holds_reply and not self._prompt.is_partial:
            self._put_reply()

    def _put_reply(self) -> None:
        """Add the held reply after the system prompt and tools that its call sent."""
        self._holds_reply = self._prompt.is_partial = False
        self._out.extend(self._prompt.changes())
        reply, self._reply = self._reply, []
        for content in reply:
            self._put(content)

    def call_of(self, call_id: str, model: str, usage: dict[str, Any]) -> CallLines:
        """Return the open call, or open a new one for another id; *usage* is that of its first line."""
        call = self._call
        if call is not None and call.id == call_id:
            return call
        total = sum(count(usage.get(name)) for name in USAGE_NAMES[:3])
        self.end_call(next_total=total if model == self.model else 0)
        if self._compaction is not None:
            self._close_compaction(total or None)
        if model and model != self.model:
            self.model = model
            self.enter()
        call = CallLines(call_id, model or self.model, self._last_input_at, repeated=call_id in self._closed)
        self._call = call
        self._holds_reply = self._prompt.is_partial
        if not self._holds_reply:
            self._out.extend(self._prompt.changes())
        return call

    def end_call(self, *, next_total: int = 0) -> None:
        """End the open call: add its record, then the content deferred for it.

        *next_total* is the input of the call that follows, 0 where none does or where it does not compare.
        """
        call, self._call = self._call, None
        if call is not None:
            if self._holds_reply:
                self._put_reply()
            self._count(call)
            deferred, self._deferred = self._deferred, []
            next_call = None
            if next_total and call.is_start and all(one.content_type != "user_message" for one in deferred):
                next_call = NextCall(next_total, tuple(deferred))
            self._out.append(call.record(next_call))
            for content in deferred:
                self._put(content)

    def _put(self, content: ContentAdded) -> None:
        if content.key:
            self._keys.add(content.key)
            if content.key != self._latest_key:
                if content.key in self._before:
                    self._before[content.key] = self._latest_key, self._prompt.version
                self._latest_key = content.key
        self._out.append(content)

    def _count(self, call: CallLines) -> None:
        stats = self._stats
        if not call.reported:
            return
        stats.add_usage(**{LINES_TOTAL: call.lines_total})
        if call.repeated:
            return
        self._closed[call.id] = None
        if len(self._closed) > MAXIMUM_CLOSED_CALLS:
            del self._closed[next(iter(self._closed))]
        stats.api_calls += 1
        stats.add_usage(**{name: call.usage.get(name, 0) for name in USAGE_NAMES})
        window = read_iterations({"iterations": call.iterations}).window_tokens
        total = sum(call.usage.get(name, 0) for name in USAGE_NAMES[:3]) if window is None else window
        stats.peak_context = max(stats.peak_context, total)

    def end_copy(self) -> None:
        """End the call and the compaction that are open where the rows of another session end."""
        self.end_call()
        self._close_compaction(None)

    # -- compaction -------------------------------------------------------------------------------------------

    def compact(self, compaction: Compaction) -> None:
        """Open *compaction*; its summary and the next call complete it."""
        self.end_call()
        if self._compaction is not None:
            self._close_compaction(None)
        self._compaction = compaction
        self._prompts.compact(keeps_rows=bool(compaction.kept_keys or compaction.first_kept))

    def add_summary(self, summary: str, at: float | None) -> bool:
        """Add the summary of a compaction; returns False where it replaces nothing that was recorded."""
        if self._compaction is None:
            if not self.used:
                return False
            self._stats.compactions += 1
            self.compact(Compaction(at))
        assert self._compaction is not None
        self._compaction.summary = summary or None
        return True

    def _close_compaction(self, next_input_tokens: int | None) -> None:
        compaction, self._compaction = self._compaction, None
        if compaction is None:
            return
        self._out.append(compaction.record(self._keys, next_input_tokens=next_input_tokens))
        for content in compaction.deferred:
            self._put(content)

    # -- the end ----------------------------------------------------------------------------------------------

    def finish(self, *, complete: bool) -> bool:
        """Close what is over at the end of the file; returns False where the rest is deferred.

        Of earlier releases neither a stop reason (they write it on every line of a call) nor a tool result (it
        may stand between two lines of its call) shows that a call is whole; only content that cannot come before
        its end does.
        """
        call = self._call
        over = complete or any(content.content_type == "user_message" for content in self._deferred)
        if call is not None and not self._holds_reply and writes_whole_messages(self.version):
            over = over or call.is_whole or bool(self._deferred)
        if call is not None and not over:
            self._count(call)
        elif call is not None or (self._compaction is not None and complete):
            self.enter()
            self.end_call()
            if complete:
                self._close_compaction(None)
        return (call is None or over) and self._compaction is None
