"""Managed reruns: a recorded session played through a manager in a window of another size.

The messages of people, tools and the model are taken from the recording; the size of the window and everything
that happens in it are simulated. So token counts are estimates, the recorded usage is not used, and tokens that
the recording's provider counted beyond the visible content are omitted. The model's replies do not change with
the simulated window: a rerun shows what a policy does to a window, not what an agent does under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from windowpane.core.events import Event
from windowpane.core.limits import Thresholds, TrackerSettings, WindowLimits
from windowpane.core.protocols import Archive, Digester, TokenCounter
from windowpane.core.tracking import SessionInfo
from windowpane.core.vocabulary import REPLY_TYPES
from windowpane.exceptions import IrreducibleContextError
from windowpane.manager.dependencies import Dependencies, Task
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.plans.checkpoint import StoredCheckpoint
from windowpane.manager.plans.policies import POLICIES, Policy
from windowpane.manager.session import ManagedSession
from windowpane.manager.settings import EngineSettings
from windowpane.models.wire.replies import Reply, ReplyPart
from windowpane.sources.transcripts.records import (
    Broken,
    Cleared,
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionOpened,
)

CallWatcher = Callable[[BlockingWindow], object]
"""Receives the window at every call, after the manager has made room for it and before the reply is added."""


@dataclass(frozen=True, slots=True)
class RerunOptions:
    """Options of a managed rerun."""

    session_id: str
    limit_tokens: int
    counter: TokenCounter
    """Counter of the recording's model, with its vocabulary loaded, so a rerun always gives the same events."""
    digest: Digester
    agent: str | None = None
    """Agent name; None for the recording's."""
    policy: Policy | None = field(default=POLICIES["hybrid"])
    source: str = "demo"
    archive: Archive | None = None
    """Without an archive, placeholders offer no original."""
    settings: EngineSettings = field(default_factory=EngineSettings)
    """Settings of the manager; *policy* replaces the policy in them."""
    tracking: TrackerSettings | None = None
    thresholds: Thresholds | None = None
    """Zone thresholds; None for those that follow from the window's size."""
    watch: CallWatcher | None = None

    @property
    def limits(self) -> WindowLimits:
        """The simulated window."""
        limits = self.settings.limits_of(self.limit_tokens, "given")
        return limits if self.thresholds is None else replace(limits, thresholds=self.thresholds)


def managed_events(records: Iterable[Record], *, key: str, options: RerunOptions) -> Iterator[Event]:
    """Yield the events of the session *key* of a recording, managed again, record by record.

    The agent's own evictions and compactions are omitted. A call that could not have been made because pinned
    content does not fit is reported by the manager's `overflow.detected` and played all the same.
    """
    emitted: list[Event] = []
    player: _Player | None = None
    inside = False
    for record in records:
        if isinstance(record, SessionOpened):
            inside = record.session_key == key
            if inside and player is None:
                player = _Player(record, options, emitted)
        if player is None or not inside:
            continue
        player.play(record)
        if emitted:
            yield from emitted
            emitted.clear()
    if player is not None:
        player.finish("end of the recording")
    yield from emitted


class _Player:
    """Plays records as calls of the manager's hooks."""

    def __init__(self, opened: SessionOpened, options: RerunOptions, emitted: list[Event]) -> None:
        self._now = opened.at
        self._parts: list[ReplyPart] = []
        self._replying = False
        self._waiting: list[str] = []
        self._calls = 0
        self._ended = False
        self.manager = BlockingWindow(
            ManagedSession(
                SessionInfo(
                    options.session_id,
                    options.agent or opened.agent,
                    opened.model,
                    options.source,
                    f"{options.source}:{options.session_id}",
                ),
                dependencies=Dependencies(
                    counter=options.counter,
                    digest=options.digest,
                    emit=emitted.extend,
                    clock=None if opened.at is None else self._clock,
                    timer=_no_time,
                    archive=options.archive,
                    checkpoints=_DiscardedCheckpoints(),
                ),
                task=Task(),
                limits=options.limits,
                # Work after a turn runs at once, so every run gives the same events.
                settings=replace(options.settings, policy=options.policy, background=False),
                tracking=options.tracking,
            )
        )
        self._watch = options.watch

    def play(self, record: Record) -> None:
        """Play one record."""
        at = None if isinstance(record, Broken) else record.at
        if at is not None:
            self._now = at
        if isinstance(record, ContentAdded):
            self._content(record)
        elif isinstance(record, ModelCalled):
            self._called(record)
        elif isinstance(record, Cleared):
            self._finish_reply()
            self.manager.clear()
        elif isinstance(record, SessionClosed):
            self.finish(record.reason)

    def finish(self, reason: str) -> None:
        """End the session, once."""
        if not self._ended:
            self._ended = True
            self._finish_reply()
            self.manager.close(reason)

    def _content(self, record: ContentAdded) -> None:
        text = record.text or ""
        if record.content_type in REPLY_TYPES:
            self._start_reply()
            self._reply(record, text)
            return
        self._finish_reply()
        if record.content_type == "tool_result":
            call_id = record.tool_call_id or (self._waiting.pop(0) if self._waiting else None)
            self.manager.on_tool_result(record.tool_name or "", text, call_id)
        elif not text and not record.media:
            return
        elif record.content_type == "system_prompt":
            self.manager.add_system(text)
        elif record.content_type == "tool_definition":
            self.manager.add_tool_definitions(text)
        elif record.content_type in ("user_message", "media"):
            image = {"type": "image", "source": {"type": "text", "data": "recorded elsewhere"}}
            parts = [{"type": "text", "text": text}] if text else []
            self.manager.add_user([*parts, *([image] * record.media)])
        else:
            self.manager.add_memory(text)

    def _reply(self, record: ContentAdded, text: str) -> None:
        if record.content_type == "tool_call":
            self._calls += 1
            call_id = record.tool_call_id
            if call_id is None:
                call_id = f"recorded-{self._calls}"
                self._waiting.append(call_id)
            arguments = text
            self._parts.append(ReplyPart("tool_call", arguments, call_id, record.tool_name))
        elif text:
            thinking = record.content_type == "thinking"
            self._parts.append(ReplyPart("thinking" if thinking else "assistant_response", text))

    def _called(self, record: ModelCalled) -> None:
        self._start_reply()
        reply = Reply(tuple(self._parts), stop_reason=record.stop_reason, latency_seconds=record.latency_seconds)
        self._parts, self._replying = [], False
        self.manager.on_turn_end(reply)

    def _start_reply(self) -> None:
        """Let the manager act before the call that this reply belongs to."""
        if self._replying:
            return
        self._replying = True
        self._waiting.clear()
        # The recording continues in any case; `overflow.detected` reports that the call did not fit.
        with suppress(IrreducibleContextError):
            self.manager.on_turn_start()
        if self._watch is not None:
            self._watch(self.manager)

    def _finish_reply(self) -> None:
        """End a reply whose call was not recorded."""
        if self._replying:
            self._called(ModelCalled(None))

    def _clock(self) -> float:
        return self._now or 0.0


def _no_time() -> float:
    """Return 0: measured durations would differ from run to run."""
    return 0.0


class _DiscardedCheckpoints:
    """A checkpoint store that keeps nothing: a rerun makes checkpoints only for their events."""

    def save(self, document: dict[str, object], markdown: str) -> None:
        """Discard the checkpoint."""
        del document, markdown

    def load(self, task_id: str) -> StoredCheckpoint:
        """Return no checkpoint."""
        del task_id
        return StoredCheckpoint(None)

    def archive(self, task_id: str) -> None:
        """Do nothing."""
        del task_id
