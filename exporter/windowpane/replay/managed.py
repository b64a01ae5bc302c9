"""Managed reruns: a recorded session played through a manager in a window of another size.

What people and tools said, and what the model replied, is taken from the recording; how large the window is and
what happens in it is simulated. So token counts are estimates, the recorded usage is not used, and what the
recording's provider counted beyond the visible content is left out. The model's replies do not change with what
it would have seen: a rerun shows what a policy does to a window, not what an agent does under it.
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
from windowpane.manager.plans.checkpoint import Found
from windowpane.manager.plans.policies import POLICIES, Policy
from windowpane.manager.session import ManagedSession
from windowpane.manager.settings import EngineSettings
from windowpane.models.replies import Reply, ReplyPart
from windowpane.sources.records import (
    Broken,
    Cleared,
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionOpened,
)

CallWatcher = Callable[[BlockingWindow], object]
"""Told of every call when the manager has made room for it, before its reply comes in."""


@dataclass(frozen=True, slots=True)
class RerunOptions:
    """How a recorded session is managed again."""

    session_id: str
    limit_tokens: int
    counter: TokenCounter
    """Of the recording's model, with its vocabulary loaded, so that a rerun always gives the same events."""
    digest: Digester
    agent: str | None = None
    """Name instead of the recording's."""
    policy: Policy | None = field(default=POLICIES["hybrid"])
    source: str = "demo"
    archive: Archive | None = None
    """Without one, placeholders promise no original."""
    settings: EngineSettings = field(default_factory=EngineSettings)
    """Of the manager; its policy gives way to *policy*."""
    tracking: TrackerSettings | None = None
    thresholds: Thresholds | None = None
    """Where zones begin; None lets the window's size decide."""
    watch: CallWatcher | None = None

    @property
    def limits(self) -> WindowLimits:
        """The simulated window."""
        limits = self.settings.limits_of(self.limit_tokens, "given")
        return limits if self.thresholds is None else replace(limits, thresholds=self.thresholds)


def managed_events(records: Iterable[Record], *, key: str, rerun: RerunOptions) -> Iterator[Event]:
    """The events of the session *key* of a recording, managed as *rerun* says, a record at a time.

    The agent's own evictions and compactions are left out. A call that could not have been made because what must
    stay does not fit is reported by the manager's `overflow.detected` and played all the same.
    """
    emitted: list[Event] = []
    player: _Player | None = None
    on = False
    for record in records:
        if isinstance(record, SessionOpened):
            on = record.session_key == key
            if on and player is None:
                player = _Player(record, rerun, emitted)
        if player is None or not on:
            continue
        player.play(record)
        if emitted:
            yield from emitted
            emitted.clear()
    if player is not None:
        player.finish("end of the recording")
    yield from emitted


class _Player:
    """Turns records into calls of the manager's hooks."""

    def __init__(self, opened: SessionOpened, rerun: RerunOptions, emitted: list[Event]) -> None:
        self._now = opened.at
        self._parts: list[ReplyPart] = []
        self._replying = False
        self._waiting: list[str] = []
        self._calls = 0
        self._ended = False
        self.manager = BlockingWindow(
            ManagedSession(
                SessionInfo(
                    rerun.session_id,
                    rerun.agent or opened.agent,
                    opened.model,
                    rerun.source,
                    f"{rerun.source}:{rerun.session_id}",
                ),
                dependencies=Dependencies(
                    counter=rerun.counter,
                    digest=rerun.digest,
                    emit=emitted.extend,
                    clock=None if opened.at is None else self._clock,
                    timer=_still,
                    archive=rerun.archive,
                    checkpoints=_Unwritten(),
                ),
                task=Task(),
                limits=rerun.limits,
                # What is done after a turn is done at once: the same events on every run.
                settings=replace(rerun.settings, policy=rerun.policy, background=False),
                tracking=rerun.tracking,
            )
        )
        self._watch = rerun.watch

    def play(self, record: Record) -> None:
        """What one record says happened."""
        at = None if isinstance(record, Broken) else record.at
        if at is not None:
            self._now = at
        if isinstance(record, ContentAdded):
            self._content(record)
        elif isinstance(record, ModelCalled):
            self._called(record)
        elif isinstance(record, Cleared):
            self._settle()
            self.manager.clear()
        elif isinstance(record, SessionClosed):
            self.finish(record.reason)

    def finish(self, reason: str) -> None:
        """No more records."""
        if not self._ended:
            self._ended = True
            self._settle()
            self.manager.close(reason)

    def _content(self, record: ContentAdded) -> None:
        text = record.text or ""
        if record.content_type in REPLY_TYPES:
            self._begin_reply()
            self._reply(record, text)
            return
        self._settle()
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
            arguments = text.removeprefix(f"{record.tool_name} ") if record.tool_name else text
            self._parts.append(ReplyPart("tool_call", arguments, call_id, record.tool_name))
        elif text:
            thinking = record.content_type == "thinking"
            self._parts.append(ReplyPart("thinking" if thinking else "assistant_response", text))

    def _called(self, record: ModelCalled) -> None:
        self._begin_reply()
        reply = Reply(tuple(self._parts), stop_reason=record.stop_reason, latency_seconds=record.latency_seconds)
        self._parts, self._replying = [], False
        self.manager.on_turn_end(reply)

    def _begin_reply(self) -> None:
        """A call was made here: the manager acts before it."""
        if self._replying:
            return
        self._replying = True
        self._waiting.clear()
        # The recording goes on whatever the manager says; the event tells that the call did not fit.
        with suppress(IrreducibleContextError):
            self.manager.on_turn_start()
        if self._watch is not None:
            self._watch(self.manager)

    def _settle(self) -> None:
        """A reply without the record of its call ends here."""
        if self._replying:
            self._called(ModelCalled(None))

    def _clock(self) -> float:
        return self._now or 0.0


def _still() -> float:
    """A rerun takes no time: durations would be this machine's, and differ from run to run."""
    return 0.0


class _Unwritten:
    """Checkpoints of a rerun are made, so that their events are there, and not kept."""

    def save(self, document: dict[str, object], markdown: str) -> None:
        """Keep nothing."""
        del document, markdown

    def load(self, task_id: str) -> Found:
        """There is nothing to resume from."""
        del task_id
        return Found(None)

    def archive(self, task_id: str) -> None:
        """There is nothing to put aside."""
        del task_id
