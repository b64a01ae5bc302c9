"""Plays the records of a recording into session trackers, with the same events every time.

The content of an event, its number and its id depend only on the records before it, so a longer recording of a
session continues the events of a shorter one. Nothing here reads a clock or a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from windowpane.core import events
from windowpane.core.characters import encodable
from windowpane.core.events import (
    BlocksEvicted,
    Event,
    EvictedBlock,
    FidelityEvaluated,
    SessionIncomplete,
    SubagentReturned,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.names import Description, SessionDescriptions, without_wrappers
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.vocabulary import STATIC_TYPES, UNKNOWN_CAUSE, CountSource
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import INDEXED_TYPES, REFERRING_TYPES, ReferenceIndex
from windowpane.models.wire.usage import advised_cost
from windowpane.sources.transcripts.branches import BlockKeys, RemovedContent, move, up_to
from windowpane.sources.transcripts.compaction import RecordedCompaction, evict, recorded_compaction
from windowpane.sources.transcripts.output_estimate import estimated_output, is_start, visible_output
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.records import (
    Broken,
    CallFailed,
    CallSent,
    Cleared,
    Compacted,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    ModelCalled,
    QuotaStated,
    Record,
    ReplyReceived,
    Rewound,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
    TotalsStated,
)

if TYPE_CHECKING:
    from windowpane.sources.conversations.diff import ModelProfile
    from windowpane.sources.conversations.observer import WindowObserver

MAXIMUM_DEFERRED: Final = 2_000
"""Records deferred at most until the session's model is known."""
MAXIMUM_BLOCKS: Final = 50_000
"""Blocks in a window from which on it is compared with what the model's window can hold."""
HELD_WINDOWS: Final = 2
"""Our counts are at most twice the provider's (`pressure.CALIBRATION_RANGE`)."""
LARGEST_WINDOW: Final = 10_000_000
"""Tokens of a window of unknown size; none that is sold is larger."""
REMOVED_BLOCKS: Final = 500
"""Blocks that one event names as removed."""
BEYOND: Final = "the window cannot hold all that was counted"
MAXIMUM_TEXT_CHARACTERS: Final = 16_000_000
"""Texts of a window that are held at most: more than any model's window has. Of more, the latest half is."""
MEDIA_TOKENS: Final = 1_000
"""Flat cost of one image without `PlaybackSettings.media_tokens`."""
LIST_COST_RATIO: Final = 0.01
"""Part by which a recorded cost differs from the published prices at least, if both are recorded."""
MAXIMUM_REASON: Final = 200
MAXIMUM_ID_CHARACTERS: Final = 200
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def session_keys(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the keys of a recording's sessions, in the order of their first records."""
    keys: dict[str, None] = {}
    for record in records:
        if isinstance(record, SessionOpened):
            keys[record.session_key] = None
    return tuple(keys)


def session_events(
    records: Iterable[Record], *, key: str, source: str, playback: PlaybackSettings
) -> Iterator[Event]:
    """Yield all events of one session of a recording; records of other sessions are skipped."""
    emitted: list[Event] = []
    player = DeferredPlayer(key, source, playback, emitted)
    for record in records:
        player.play(record)
        if emitted:
            yield from emitted
            emitted.clear()
    player.finish()
    yield from emitted


class DeferredPlayer:
    """Plays one session, whose first records are deferred until its model and limit are known."""

    def __init__(self, key: str, source: str, playback: PlaybackSettings, emitted: list[Event]) -> None:
        self._key = key
        self._source = source
        self._playback = playback
        self._emitted = emitted
        self._inside = False
        """The latest record belongs to this session."""
        self._opened: SessionOpened | None = None
        self._deferred: list[Record] = []
        self._player: SessionPlayer | None = None

    def play(self, record: Record) -> None:
        """Play one record of the recording, or skip it if it belongs to another session."""
        if isinstance(record, SessionOpened):
            self._inside = record.session_key == self._key
            if self._inside and self._opened is None:
                self._opened = record
        if not self._inside:
            return
        if self._player is not None:
            self._player.play(record)
            return
        self._deferred.append(record)
        if _settles(record) or len(self._deferred) >= MAXIMUM_DEFERRED:
            self._start()

    def flush(self) -> None:
        """Emit the events of all records so far; more may follow."""
        if self._player is not None:
            self._player.flush()

    def finish(self) -> None:
        """Play the deferred records and emit all events; no more records follow."""
        if self._player is None and self._opened is not None:
            self._start()
        self.flush()

    def _start(self) -> None:
        opened, id_of = self._opened, self._playback.distinct_id
        assert opened is not None
        model = next((_model_of(record) for record in self._deferred if _model_of(record)), self._playback.model)
        limit = next((_limit_of(record) for record in self._deferred if _limit_of(record)), None)
        parent = opened.parent_key
        self._player = SessionPlayer(
            opened,
            session_id=id_of(session_id_of(self._source, opened.session_key)),
            parent_session_id=None if parent is None else id_of(session_id_of(self._source, parent)),
            source=self._source,
            model=model,
            stated_limit=limit,
            playback=self._playback,
            emit=self._emitted.extend,
        )
        deferred, self._deferred = self._deferred, []
        for record in deferred:
            self._player.play(record)


def _settles(record: Record) -> bool:
    return bool(_model_of(record)) or isinstance(record, ModelCalled | SessionClosed)


def _model_of(record: Record) -> str:
    return record.model if isinstance(record, SessionOpened | ModelCalled) else ""


def _limit_of(record: Record) -> int | None:
    return record.limit_tokens if isinstance(record, SessionOpened | LimitStated) else None


def session_id_of(source: str, key: str) -> str:
    """Return the session id of a recording's key: the key itself where it is a UUID, else with its format."""
    key = encodable(key)[:MAXIMUM_ID_CHARACTERS]
    return key if _UUID.match(key) else f"{source}:{key}"


def cost_of_call(
    record: ModelCalled, listed: float | None, price: Callable[[str, Usage], float | None]
) -> float | None:
    """Return the stated cost of a call, else the *listed* one with that of the models that it consulted."""
    stated = record.cost_dollars  # zero is of a recorder that knew no price
    return stated or advised_cost(listed, record.advisors, price)


class SessionPlayer:
    """Plays the records of one session into its tracker, and maps the recording's keys to blocks."""

    def __init__(
        self,
        opened: SessionOpened,
        *,
        session_id: str,
        parent_session_id: str | None,
        source: str,
        model: str,
        stated_limit: int | None,
        playback: PlaybackSettings,
        emit: Callable[[list[Event]], None],
    ) -> None:
        self._playback = playback
        self._model = model
        self._stated = stated_limit
        self._counter = playback.counter_for(model)
        self._references = ReferenceIndex()
        self._observer: WindowObserver | None = None
        """Compares the calls of a recording that holds everything they sent."""
        self._keys = BlockKeys()
        self._removed = RemovedContent()
        self._characters = 0
        """Of the texts in the window, at most."""
        self._at = opened.at
        self._descriptions = SessionDescriptions()
        info = SessionInfo(
            session_id,
            playback.agent or opened.agent,
            model,
            source,
            f"{source}:{session_id}",
            parent_session_id,
        )
        self._agent, self._version = opened.agent, opened.agent_version
        earlier = playback.earlier_sessions(info, opened)
        self._evident = playback.evident_window(info, opened, earlier), model
        limits = self._limits()
        self.tracker = SessionTracker(
            info,
            emit=emit,
            digest=playback.digest,
            limits=limits,
            settings=playback.settings,
            next_limit=lambda above: playback.next_limit(self._model, above),
            smaller_limit=lambda used: playback.smaller_limit(self._model, used),
            program=playback.program(info, opened, limits, earlier),
        )
        watch = playback.follow_rules
        self._rules = None if watch is None else watch(self.tracker, digest=playback.digest)
        self.tracker.start(opened.at, derived_by=playback.release)
        self._describe(agent_version=opened.agent_version, project=playback.project_of(session_id))

    def play(self, record: Record) -> None:
        """Feed one record to the tracker."""
        at = record.at if not isinstance(record, Broken) else None
        if at is not None:
            self._at = at
        _METHODS[type(record)](self, record)

    def flush(self) -> None:
        """Emit the events that the tracker holds."""
        self.tracker.flush()

    # -- records ----------------------------------------------------------------------------------------------

    def _opened(self, record: SessionOpened) -> None:
        self._use_model(record.model)
        if record.limit_tokens:
            self._state_limit(record.limit_tokens)
        self._use_version(record.agent_version)

    def _content_added(self, record: ContentAdded) -> None:
        tokens, source = self._count(record)
        digest = ""
        if record.content_type == "tool_call" and record.text is not None:
            digest = self._playback.digest(f"{record.tool_name}\0{record.text}")
        block = self.tracker.add(
            record.content_type,
            record.text,
            tokens,
            count_source=source,
            digest=digest,
            tool_call_id=record.tool_call_id,
            tool_name=record.tool_name,
            memory_file=record.memory_file,
            at=self._at,
        )
        if record.content_type == "user_message" and record.text:
            self._derive_title(record.text)
        self._characters += block.chars
        if self._characters > MAXIMUM_TEXT_CHARACTERS:
            self._discard_texts()
        if self.tracker.window.blocks > MAXIMUM_BLOCKS:
            self._remove_oldest()
        if record.key:
            self._keys.add(record.key, block.id)
        if record.tool_call_id and record.content_type == "tool_result":
            self._keys.add(record.tool_call_id, block.id)
        if record.child_key is not None and record.content_type == "tool_result":
            child = self._playback.distinct_id(session_id_of(self.tracker.info.source, record.child_key))
            self.tracker.record(SubagentReturned(child, tokens), self._at)
        if not record.text:
            return
        if record.content_type in REFERRING_TYPES:
            self.tracker.mark_referenced(self._references.referenced(record.text), block.id, self._at)
        elif record.content_type in INDEXED_TYPES:
            self._references.add(block.id, record.text)

    def _model_called(self, record: ModelCalled) -> None:
        self._use_model(record.model)
        output, cost, listed = self._estimated_output(record), record.cost_dollars, None
        if record.usage is not None:
            usage = record.usage if output is None else replace(record.usage, output_tokens=output)
            listed = self._cost_of(usage)
            cost = cost_of_call(record, listed, self._price)
        differs = cost and listed is not None and abs(cost - listed) > LIST_COST_RATIO * cost
        self.tracker.end_turn(
            record.usage,
            output_tokens=output,
            window_tokens=record.window_tokens,
            cost_dollars=cost,
            list_cost_dollars=listed if differs else None,
            cost_of=self._cost_of,
            latency_seconds=record.latency_seconds,
            stop_reason=record.stop_reason,
            response_id=record.response_id,
            at=self._at,
        )

    def _call_sent(self, record: CallSent) -> None:
        if self._observer is None:
            from windowpane.sources.conversations.observer import WindowObserver  # for whole calls only

            self._observer = WindowObserver(self.tracker, self._profile, digest=self._playback.digest)
        self._observer.record_call(record.call, self._at)

    def _reply_received(self, record: ReplyReceived) -> None:
        if self._observer is not None:
            self._observer.record_reply(record.reply, self._at)

    def _call_failed(self, record: CallFailed) -> None:
        if self._observer is not None:
            self._observer.record_failure(record.error, self._at)

    def _content_removed(self, record: ContentRemoved) -> None:
        eviction = evict(record, self.tracker, self._keys, self._at)
        for removed in eviction.evicted:
            self._references.discard(removed.block_id)
        self._keys.retain(self.tracker.window, eviction.renamed)

    def _compacted(self, record: Compacted) -> None:
        tracker = self.tracker
        self._removed.compact(tracker.window, self._keys)
        compaction = recorded_compaction(record, tracker, retained=self._retained(record), counter=self._counter)
        event = tracker.compress(
            compaction.event,
            compaction.results,
            self._at,
            window_tokens=record.tokens_after,
            window_tokens_before=record.tokens_before,
        )
        for block in compaction.removed:
            self._references.discard(block.id)
        self._keys.retain(tracker.window)
        for block in compaction.results if record.key else ():
            self._keys.add(record.key, block.id)
        self._evaluate(record, compaction, event)

    def _cleared(self, _record: Cleared) -> None:
        self.tracker.roll("clear", self._at)
        self._references.clear()
        self._keys.clear()
        self._removed.clear()

    def _limit_stated(self, record: LimitStated) -> None:
        self._state_limit(record.limit_tokens)

    def _totals_stated(self, record: TotalsStated) -> None:
        totals = record.input_tokens, record.output_tokens, record.cost_dollars
        if any(totals):  # a recorder that knows nothing states zeros
            self.tracker.record(events.TotalsStated(*totals), self._at)

    def _quota_stated(self, record: QuotaStated) -> None:
        self.tracker.record(record.quota, self._at)

    def _described(self, record: SessionDescribed) -> None:
        self._describe(**record.description())

    def _rewound(self, record: Rewound) -> None:
        change = move(self.tracker.window, self._rewound_to(record))
        for block in change.abandoned:
            self._references.discard(block.id)
        self._removed.remember(change.abandoned, self._keys.discard([block.id for block in change.abandoned]))
        returned = self.tracker.rewind(
            [block.id for block in change.abandoned],
            last_kept=change.last_kept,
            restored=change.returning,
            at=self._at,
        )
        for block in returned:
            for key in self._removed.keys_of(block.replaces or ""):
                self._keys.add(key, block.id)

    def _rewound_to(self, record: Rewound) -> list[Block]:
        """Return the content that is in the window after a rewind."""
        window, key = list(self.tracker.window), record.last_kept_key
        if record.content_keys is not None:
            return self._removed.content(record.content_keys, self._present)
        if record.compactions:
            undone = self._removed.undo(record.compactions, key)
            if undone is not None:
                return undone
        return up_to(window, frozenset(self._keys.get(key, ()) if key is not None else ()))

    def _present(self, key: str) -> list[Block]:
        window = self.tracker.window
        return [window.slot(block_id).block for block_id in self._keys.get(key, ()) if block_id in window]

    def _closed(self, record: SessionClosed) -> None:
        if self._rules is not None:
            self._rules.finish(self._at)
        self.tracker.end(record.reason[:MAXIMUM_REASON], self._at)

    def _broken(self, record: Broken) -> None:
        self.tracker.record(SessionIncomplete(record.reason[:MAXIMUM_REASON], record.line), self._at)

    # -- inside -----------------------------------------------------------------------------------------------

    def _estimated_output(self, record: ModelCalled) -> int | None:
        """Return an estimate of the output; None where the usage states it, or nothing is visible of it."""
        usage, gauge, following = record.usage, self.tracker.gauge, record.next_call
        if usage is None or not record.is_start:
            return None
        visible = visible_output(gauge.reply_tokens, gauge.reply_tool_calls)
        if not is_start(usage.output_tokens, visible):
            return None
        if following is None:
            return estimated_output(visible)
        return estimated_output(
            visible,
            growth=following.input_tokens - (record.window_tokens or usage.input_total),
            added_tokens=sum(self._count(content)[0] for content in following.added),
        )

    def _count(self, record: ContentAdded) -> tuple[int, CountSource]:
        if record.tokens is not None:
            return record.tokens, "usage"
        source = self._counter.source  # before the count: a vocabulary may be loaded meanwhile
        tokens = self._counter.count(record.text) if record.text else 0
        if record.content_type == "tool_call" and record.tool_name:
            tokens += self._counter.count(record.tool_name)
        if not record.media:
            return tokens, source
        return tokens + record.media * self._media_tokens(), "estimate"

    def _discard_texts(self) -> None:
        """Discard the oldest texts of a recording that states no compaction, however long it becomes."""
        blocks = [block for block in self.tracker.window if block.text and block.content_type not in STATIC_TYPES]
        self._characters = sum(block.chars for block in blocks)
        for block in blocks if self._characters > MAXIMUM_TEXT_CHARACTERS // 2 else ():
            self.tracker.discard_text(block.id)
            self._references.discard(block.id)
            self._characters -= block.chars
            if self._characters <= MAXIMUM_TEXT_CHARACTERS // 2:
                break

    def _remove_oldest(self) -> None:
        """Record the oldest content as removed where the window cannot hold what was counted, by far."""
        tracker = self.tracker
        window, limits = tracker.window, tracker.limits
        limit = LARGEST_WINDOW if limits is None else limits.limit_tokens
        excess = window.tokens - HELD_WINDOWS * limit
        if excess <= limit:
            return
        oldest: list[Block] = []
        for block in window:
            if excess <= 0:
                break
            if block.content_type not in STATIC_TYPES:
                oldest.append(block)
                excess -= block.tokens
        for first in range(0, len(oldest), REMOVED_BLOCKS):
            self._record_removed(oldest[first : first + REMOVED_BLOCKS])
        self._keys.discard(block.id for block in oldest)

    def _record_removed(self, blocks: Sequence[Block]) -> None:
        """Record content as removed without a record; the size of the window is that of before."""
        tracker, account = self.tracker, self.tracker.gauge.account
        tokens = sum(block.tokens for block in blocks)
        evicted = tuple(
            EvictedBlock(block.id, block.content_type, block.tokens, "drop", BEYOND, turn_added=block.turn)
            for block in blocks
        )
        after = account.used(tracker.window.tokens) if account.anchored else None
        tracker.evict(BlocksEvicted(UNKNOWN_CAUSE, evicted, tokens, tokens), at=self._at, window_tokens=after)
        for block in blocks:
            self._references.discard(block.id)

    def _media_tokens(self) -> int:
        flat = self._playback.media_tokens
        return MEDIA_TOKENS if flat is None else flat(self._model)

    def _profile(self, model: str) -> ModelProfile:
        """Return what the observer of whole calls needs to know of *model*, which becomes the session's."""
        if model and model != self._model:
            self._model = model
            self._counter = self._playback.counter_for(model)
        from windowpane.sources.conversations.diff import ModelProfile

        return ModelProfile(self._counter, self._limits(), self._media_tokens(), self._cost_of)

    def _price(self, model: str, usage: Usage) -> float | None:
        catalog = self._playback.catalog
        return None if catalog is None else catalog.cost_dollars(model, usage, self._at)

    def _cost_of(self, usage: Usage) -> float | None:
        return self._price(self._model, usage)

    def _retained(self, record: Compacted) -> frozenset[str]:
        """Return the ids of the blocks that a compaction did not replace."""
        retained = {block_id for key in record.kept_keys for block_id in self._keys.get(key, ())}
        if record.keep_last:
            content = [block.id for block in self.tracker.window if block.content_type not in STATIC_TYPES]
            retained.update(content[-record.keep_last :])
        return frozenset(retained)

    def _evaluate(self, record: Compacted, compaction: RecordedCompaction, event: Event) -> None:
        if self._playback.evaluate is None:
            return
        if not record.summary:
            reason = "the text of the summary was not recorded"
            coverage = compaction.seen_ratio
            unknown = FidelityEvaluated("probe", None, coverage, of=event.event_id, reason=reason)
            self.tracker.record(unknown, self._at)
            return
        judged = self._playback.evaluate(
            compaction.judged, list(self.tracker.window), digest=self._playback.digest, of=event.event_id
        )
        if judged is not None:
            self.tracker.record(judged, self._at)

    def _describe(self, **stated: Unpack[Description]) -> None:
        event = self._descriptions.state(**stated)
        if event is not None:
            self.tracker.record(event, self._at)

    def _derive_title(self, message: str) -> None:
        """Use a user message as the title until there is one."""
        if self._playback.first_message_titles and not self._descriptions.has_title:
            self._describe(title=without_wrappers(message), title_source="first_message")

    def _use_model(self, model: str) -> None:
        if model and model != self._model:
            self._model = model
            self._counter = self._playback.counter_for(model)
            self.tracker.set_model(model, self._limits(), self._at)

    def _use_version(self, version: str) -> None:
        if version and version != self.tracker.program.version:
            self.tracker.set_version(version)
            self._describe(agent_version=version)
            self._version = version
            limits = self.tracker.limits
            if limits is not None and limits.source == "assumed":
                self._use_limits()

    def _state_limit(self, limit_tokens: int | None) -> None:
        if (limit_tokens is not None and limit_tokens < 1) or self._stated == limit_tokens:
            return
        self._stated = limit_tokens
        self._use_limits()

    def _use_limits(self) -> None:
        limits = self._limits()
        if limits != self.tracker.limits:
            self.tracker.set_limits(limits, self._at)

    def _limits(self) -> WindowLimits | None:
        """Return the limits by what is known of the window so far; what it started with is for one model."""
        window, model = self._evident
        return self._playback.limits(
            self._model,
            self._stated,
            agent=self._agent,
            version=self._version,
            evident=window if model == self._model else None,
        )


_METHODS: Final[Mapping[type, Callable[[SessionPlayer, Any], None]]] = {
    SessionOpened: SessionPlayer._opened,
    ContentAdded: SessionPlayer._content_added,
    ModelCalled: SessionPlayer._model_called,
    CallSent: SessionPlayer._call_sent,
    ReplyReceived: SessionPlayer._reply_received,
    CallFailed: SessionPlayer._call_failed,
    ContentRemoved: SessionPlayer._content_removed,
    Compacted: SessionPlayer._compacted,
    Cleared: SessionPlayer._cleared,
    LimitStated: SessionPlayer._limit_stated,
    QuotaStated: SessionPlayer._quota_stated,
    SessionDescribed: SessionPlayer._described,
    Rewound: SessionPlayer._rewound,
    TotalsStated: SessionPlayer._totals_stated,
    SessionClosed: SessionPlayer._closed,
    Broken: SessionPlayer._broken,
}
