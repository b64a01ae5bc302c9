"""One session of a Claude Code transcript: puts its rows into the order in which they entered the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.sources.json_lines import count, mapping, text, texts
from windowpane.sources.reader import FileStats
from windowpane.sources.records import Compacted, ContentAdded, ModelCalled, Record, SessionOpened

AGENT: Final = "claude-code"
SIDE_AGENT: Final = "claude-code-agent"
MAXIMUM_WAITING: Final = 1_000
"""Records held back at most while a call or a compaction is open."""
REMEMBERED_KEYS: Final = 128
"""Rows back that a compaction may keep where it names only the first and the last of them."""
REMEMBERED_CALLS: Final = 64
"""Closed calls looked back at for lines that come late."""
MAXIMUM_LATENCY_SECONDS: Final = 3_600.0
USAGE_NAMES: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
LINES_TOTAL: Final = "all_lines_total"
"""Sum of all four over every line, as a reader that does not know of repeated lines would count."""


@dataclass(slots=True)
class Call:
    """One model call whose lines are being read."""

    id: str
    model: str
    began_at: float | None
    """When what it answers came in."""
    repeated: bool = False
    """The id was closed before: this is more of an old call and its usage is counted already."""
    usage: dict[str, int] = field(default_factory=dict)
    reported: bool = False
    stop_reason: str | None = None
    at: float | None = None
    lines_total: int = 0

    def report(self, usage: dict[str, Any]) -> None:
        """A line's usage: the largest of each figure is the final one, earlier lines may be placeholders."""
        self.reported = True
        for name in USAGE_NAMES:
            value = count(usage.get(name))
            self.lines_total += value
            if value > self.usage.get(name, -1):
                self.usage[name] = value

    def finish(self, stop_reason: str | None, at: float | None) -> None:
        """What the call's latest line says of its end."""
        self.stop_reason = stop_reason or self.stop_reason
        if at is not None:
            self.at = at

    def record(self) -> ModelCalled:
        """The call as one record."""
        latency = None
        if (
            self.at is not None
            and self.began_at is not None
            and 0 <= self.at - self.began_at <= MAXIMUM_LATENCY_SECONDS
        ):
            latency = self.at - self.began_at
        sums = self.usage
        usage = Usage(
            input_tokens=sums.get("input_tokens", 0),
            output_tokens=sums.get("output_tokens", 0),
            cache_read_tokens=sums.get("cache_read_input_tokens", 0),
            cache_write_tokens=sums.get("cache_creation_input_tokens", 0),
        )
        known = self.reported and not self.repeated and usage.input_total > 0
        return ModelCalled(
            usage if known else None,
            self.model,
            latency_seconds=latency,
            stop_reason=self.stop_reason,
            at=self.at,
        )


@dataclass(slots=True)
class Compaction:
    """A compaction whose summary and outcome are still to come."""

    trigger: str
    tokens_before: int | None
    tokens_after: int | None
    duration_seconds: float | None
    kept_keys: tuple[str, ...]
    first_kept: str
    last_kept: str
    at: float | None
    summary: str | None = None
    held: list[ContentAdded] = field(default_factory=list)

    @classmethod
    def of(cls, details: dict[str, Any], at: float | None) -> Compaction:
        """From `compactMetadata`."""
        preserved = mapping(details.get("preservedMessages"))
        segment = mapping(details.get("preservedSegment"))
        duration = count(details.get("durationMs"))
        return cls(
            trigger=text(details.get("trigger"))[:32] or "unknown",
            tokens_before=count(details.get("preTokens")) or None,
            tokens_after=count(details.get("postTokens")) or None,
            duration_seconds=duration / 1000 if duration else None,
            kept_keys=texts(preserved.get("allUuids")) or texts(preserved.get("uuids")),
            first_kept=text(segment.get("headUuid")),
            last_kept=text(segment.get("tailUuid")),
            at=at,
        )


class Session:
    """Orders one session's content: a call's lines, its end, then what came in while it ran."""

    def __init__(self, key: str, root_key: str, out: list[Record], stats: FileStats, *, at: float | None) -> None:
        self.key = key
        self.root_key = root_key
        self.used = False
        """Whether anything is in the window."""
        self._out = out
        self._stats = stats
        self.model = ""
        """Of the latest call; empty before the first."""
        self._started_at = at
        self._call: Call | None = None
        self._waiting: list[ContentAdded] = []
        self._compaction: Compaction | None = None
        self._last_input_at: float | None = None
        self._keys: deque[str] = deque(maxlen=REMEMBERED_KEYS)
        self._closed: dict[str, None] = {}

    def enter(self) -> None:
        """The records that follow are this session's."""
        child = self.key != self.root_key
        self._out.append(
            SessionOpened(
                self.key,
                SIDE_AGENT if child else AGENT,
                self.model,
                parent_key=self.root_key if child else None,
                at=self._started_at,
            )
        )

    def emit(self, record: Record) -> None:
        """A record that is neither content nor a call."""
        self._out.append(record)

    # -- content ----------------------------------------------------------------------------------------------

    def receive(self, contents: Iterable[ContentAdded]) -> None:
        """Content that is not the model's."""
        for content in contents:
            self.used = True
            self._last_input_at = content.at if content.at is not None else self._last_input_at
            if self._compaction is not None:
                self._compaction.held.append(content)
                if len(self._compaction.held) > MAXIMUM_WAITING:
                    self._release(None)
            elif self._call is not None:
                self._waiting.append(content)
                if len(self._waiting) > MAXIMUM_WAITING:
                    self.interrupt()
            else:
                self._put(content)

    def reply(self, contents: Iterable[ContentAdded]) -> None:
        """Content of the open call."""
        self.used = True
        for content in contents:
            self._put(content)

    def call_of(self, call_id: str, model: str, usage: dict[str, Any]) -> Call:
        """The open call, or a new one where the id is another; *usage* is what its first line reports."""
        call = self._call
        if call is not None and call.id == call_id:
            return call
        self.interrupt()
        if self._compaction is not None:
            total = sum(count(usage.get(name)) for name in USAGE_NAMES[:3])
            self._release(total or None)
        if model and model != self.model:
            self.model = model
            self.enter()
        call = Call(call_id, model or self.model, self._last_input_at, repeated=call_id in self._closed)
        self._call = call
        return call

    def interrupt(self) -> None:
        """The open call is over: its end, then what waited for it."""
        call, self._call = self._call, None
        if call is not None:
            self._account(call)
            self._out.append(call.record())
            waiting, self._waiting = self._waiting, []
            for content in waiting:
                self._put(content)

    def _put(self, content: ContentAdded) -> None:
        if content.key:
            self._keys.append(content.key)
        self._out.append(content)

    def _account(self, call: Call) -> None:
        stats = self._stats
        if not call.reported:
            return
        stats.usage[LINES_TOTAL] = stats.usage.get(LINES_TOTAL, 0) + call.lines_total
        if call.repeated:
            return
        self._closed[call.id] = None
        if len(self._closed) > REMEMBERED_CALLS:
            del self._closed[next(iter(self._closed))]
        stats.api_calls += 1
        for name in USAGE_NAMES:
            stats.usage[name] = stats.usage.get(name, 0) + call.usage.get(name, 0)
        stats.peak_context = max(stats.peak_context, sum(call.usage.get(name, 0) for name in USAGE_NAMES[:3]))

    # -- compaction -------------------------------------------------------------------------------------------

    def compact(self, compaction: Compaction) -> None:
        """The conversation was replaced; its summary and the next call say by what."""
        self.interrupt()
        if self._compaction is not None:
            self._release(None)
        self._compaction = compaction

    def summarise(self, summary: str, at: float | None) -> bool:
        """Take the summary of a compaction; False where it replaces nothing that was recorded."""
        if self._compaction is None:
            if not self.used:
                return False
            self._stats.compactions += 1
            self.compact(Compaction("unknown", None, None, None, (), "", "", at))
        assert self._compaction is not None
        self._compaction.summary = summary or None
        return True

    def _release(self, next_total: int | None) -> None:
        """Tell the compaction. Where nothing else came in since, the next call's total is what it left."""
        compaction, self._compaction = self._compaction, None
        if compaction is None:
            return
        after = compaction.tokens_after
        if after is None and not any(content.content_type == "user_message" for content in compaction.held):
            after = next_total
        self._out.append(
            Compacted(
                compaction.trigger,
                compaction.tokens_before,
                after,
                compaction.summary,
                compaction.kept_keys or self._segment(compaction.first_kept, compaction.last_kept),
                duration_seconds=compaction.duration_seconds,
                at=compaction.at,
            )
        )
        for content in compaction.held:
            self._put(content)

    def _segment(self, first: str, last: str) -> tuple[str, ...]:
        """Keys from *first* to *last*, both included; empty where the file does not hold the first."""
        keys = list(self._keys)
        if not first or first not in keys:
            return ()
        start = keys.index(first)
        end = len(keys) - 1 - keys[::-1].index(last) if last in keys else len(keys) - 1
        return tuple(dict.fromkeys(keys[start : end + 1]))

    # -- the end ----------------------------------------------------------------------------------------------

    def finish(self, *, complete: bool) -> bool:
        """The file has ended: close what is over, hold back what may go on; False where something was held back.

        Neither a stop reason (current releases write it on every line of a call) nor a tool result (it may stand
        between two lines of its call) shows that a call is whole; only what cannot come before its end does.
        """
        call = self._call
        over = complete or any(content.content_type == "user_message" for content in self._waiting)
        if call is not None and not over:
            self._account(call)
        elif call is not None or (self._compaction is not None and complete):
            self.enter()
            self.interrupt()
            if complete:
                self._release(None)
        return (call is None or over) and self._compaction is None
