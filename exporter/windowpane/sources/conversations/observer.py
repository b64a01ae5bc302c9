"""One conversation as it is sent: consecutive message lists, diffed and recorded by a session tracker.

Pure: no clock, no I/O. The messages of the last call are held as copies of their structure that share the texts,
so comparing the common prefix compares references, and only new content is read, counted and hashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from windowpane.core.events import OverflowDetected, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.models.overflow_errors import classify_error
from windowpane.models.wire.calls import ApiCall, Shape, head_blocks, is_system, message_blocks
from windowpane.models.wire.messages import BlockSpec, copy_structure, same_content
from windowpane.models.wire.replies import Compaction, Reply, made_summary, reply_blocks
from windowpane.models.wire.usage import advised_cost
from windowpane.sources.conversations.alignment import TrackedBlock
from windowpane.sources.conversations.conversation_keys import first_message
from windowpane.sources.conversations.diff import ChangeRecorder, ModelProfiles

UNMISTAKABLE_CHARACTERS: Final = 80
"""A message of at least this length that starts another one has grown into it."""
UNMISTAKABLE_MESSAGES: Final = 4
"""So many messages in a row that come again are of the same conversation, however short."""


class WindowObserver:
    """Feeds one session's tracker with the calls and replies of its agent. Its owner serializes calls."""

    def __init__(self, tracker: SessionTracker, profiles: ModelProfiles, *, digest: Digester) -> None:
        self.tracker = tracker
        self._profiles = profiles
        self._model = tracker.info.model
        self._changes = ChangeRecorder(tracker, profiles(self._model), digest=digest)
        self._head: tuple[Any, Any] = (None, None)
        """System prompt and tools of the last call."""
        self._head_blocks: list[TrackedBlock] = []
        self._sent: list[Any] = []
        """Copies of the messages of the last call."""
        self._sent_specs: list[list[BlockSpec]] = []
        """The content of each of them."""
        self._sent_blocks: list[list[TrackedBlock]] = []
        """The blocks of each of them."""
        self._reply_blocks: list[TrackedBlock] = []
        """The reply to the last call, not sent back yet."""
        self.in_call = False
        """A call was sent and has neither come back nor failed."""
        self.answered = False
        """The last call came back."""

    @property
    def sent_count(self) -> int:
        """The number of messages of the last call."""
        return len(self._sent)

    @property
    def reply(self) -> list[BlockSpec]:
        """The reply to the last call, as far as it was not sent back yet."""
        return [tracked.spec for tracked in self._reply_blocks]

    def common_messages(self, call: ApiCall) -> int:
        """Return the number of leading messages of *call* that hold the same as those of the call before."""
        sent_count = len(self._sent)
        if list(call.messages[:sent_count]) == self._sent:  # the usual case, in one comparison
            return sent_count
        count = 0
        for sent, message in zip(self._sent, call.messages, strict=False):
            if sent != message:
                if not same_content(self._sent_specs[count], message_blocks(call.shape, message)):
                    break
                self._sent[count] = copy_structure(message)
            count += 1
        return count

    def grew_into(self, call: ApiCall, common: int) -> bool:
        """Return whether *call* is the list before with more text at the end of its last message.

        *common* is the result of `common_messages`. A short text starts many messages: it counts only if the
        reply follows it.
        """
        if common != len(self._sent) - 1 or common >= len(call.messages):
            return False
        before, after = (
            "".join(spec.text or "" for spec in specs)
            for specs in (self._sent_specs[common], message_blocks(call.shape, call.messages[common]))
        )
        if not before or not after.startswith(before):
            return False
        return len(before) >= UNMISTAKABLE_CHARACTERS or any(
            spec.text and spec.text in after[len(before) :] for spec in self.reply
        )

    def repeated_messages(self, call: ApiCall) -> range:
        """Return where *call* holds, right after its system prompt, the last messages of the call before.

        All of them where only the system prompt changed, fewer where the agent dropped the oldest; empty where
        the messages are others, or short enough to occur in any conversation.
        """
        sent = self._sent_specs[first_message(self._sent) :]
        first = first_message(call.messages)
        specs = [message_blocks(call.shape, message) for message in call.messages[first : first + len(sent)]]
        ends = (count for count in range(len(specs), 0, -1) if same_content(specs[count - 1], sent[-1]))
        repeated = next((count for count in ends if all(map(same_content, specs[:count], sent[-count:]))), 0)
        characters = sum(len(spec.text or "") for message in specs[:repeated] for spec in message)
        if repeated < len(sent) and repeated < UNMISTAKABLE_MESSAGES and characters < UNMISTAKABLE_CHARACTERS:
            repeated = 0
        return range(first, first + repeated)

    def last_sent_in(self, call: ApiCall) -> bool:
        """Return whether *call* still holds the last message of the call before."""
        return bool(self._sent) and not is_system(self._sent[-1]) and self._sent[-1] in call.messages

    def record_call(
        self,
        call: ApiCall,
        at: float | None = None,
        *,
        common: int | None = None,
        content: list[list[BlockSpec]] | None = None,
    ) -> None:
        """Record a call that is about to be sent.

        *common* is the result of `common_messages`, and *content* that of the messages after these, where the
        caller has them already.
        """
        if self.in_call:  # its end was never seen
            self.tracker.end_turn(None, at=at)
        self._use_model(call.model, at)
        self.tracker.start_call(at)
        self.in_call, self.answered = True, False
        if (call.system, call.tools) != self._head:
            head = self._changes.apply(self._head_blocks, head_blocks(call), at)
            before, self._head_blocks = self._head_blocks, [block for group in head for block in group]
            self._record_longer_head(before)
            self._head = (copy_structure(call.system), copy_structure(call.tools))
        if call.continues is None:
            common = self.common_messages(call) if common is None else common
            if any(
                tracked.spec.content_type == "summary" for tracked in self._reply_blocks
            ) and not _holds_summary(call, common):
                common, content = 0, None  # without the summary the provider reads the whole list again
            messages = call.messages[common:]
            self._diff(
                call.shape, messages, _content(call.shape, messages) if content is None else content, common, at
            )
        else:
            self._add_all(_content(call.shape, call.messages) if content is None else content, at)
        self.tracker.measure("before", at)

    def record_reply(self, reply: Reply, at: float | None = None) -> list[BlockSpec]:
        """Record that the call came back: the reply enters the window, and its usage replaces the estimate.

        Returns the content of the reply.
        """
        content = reply_blocks(reply)
        if not self.in_call:
            return content
        self.in_call, self.answered = False, True
        self._changes.apply_provider_edits(reply.edits, at)
        compaction = reply.compaction
        if compaction is not None and compaction.usage is not None:
            # The provider made the summary by a separate run, then the reply in the window that it left.
            cost = None if reply.cost_dollars is None else 0.0  # the stated cost is that of both
            self._end_turn(Reply((), compaction.usage, cost_dollars=cost, window_tokens=0), at)
            self._compact(compaction, at)
            self.tracker.start_call(at)
            self.tracker.measure("before", at)
        added = [self._changes.add(spec, at, replied=True) for spec in content]
        self._reply_blocks += added
        self._end_turn(reply, at)
        if compaction is not None:
            if compaction.usage is None:
                self._compact(compaction, at, except_blocks=[tracked.block_id for tracked in added])
                self.tracker.flush()
            content = [*content, *filter(None, [compaction.summary])]
        return content

    def _end_turn(self, reply: Reply, at: float | None) -> None:
        cost = reply.cost_dollars
        cost_of = self._changes.profile.cost_of
        if cost is None and reply.usage is not None and cost_of is not None:
            cost = advised_cost(cost_of(reply.usage), reply.advisors, self._price)
        self.tracker.end_turn(
            reply.usage,
            window_tokens=reply.window_tokens,
            cost_dollars=cost,
            cost_of=cost_of,
            latency_seconds=reply.latency_seconds,
            stop_reason=reply.stop_reason,
            response_id=reply.response_id or None,
            at=at,
        )

    def _price(self, model: str, usage: Usage) -> float | None:
        cost_of = self._profiles(model).cost_of
        return None if cost_of is None else cost_of(usage)

    def _compact(self, compaction: Compaction, at: float | None, *, except_blocks: Sequence[str] = ()) -> None:
        """Record a compaction of the provider; what it replaced is not in the window, although it may be sent."""
        summary = self._changes.compact_by_provider(compaction, at, except_blocks=except_blocks)
        if summary is not None:
            window = self.tracker.window
            for blocks in (*self._sent_blocks, self._reply_blocks):
                blocks[:] = [tracked for tracked in blocks if tracked.block_id in window]
            self._reply_blocks.insert(0, summary)

    def record_failure(self, error: object, at: float | None = None) -> None:
        """Record that the provider refused the call, or that it never came back; a retry is in the same turn."""
        self.in_call = False
        failure = classify_error(error)
        if failure.kind != "overflow":
            return
        tracker = self.tracker
        if failure.limit_tokens and (
            tracker.limits is None or failure.limit_tokens < tracker.limits.limit_tokens
        ):
            tracker.set_limits(WindowLimits.of(failure.limit_tokens, "provider"), at)
        used = max(tracker.gauge.account.used(tracker.window.tokens), failure.requested_tokens or 0)
        limit = None if tracker.limits is None else tracker.limits.limit_tokens
        tracker.record(OverflowDetected("provider", "rejected", used, limit), at)
        tracker.flush()

    def end(self, reason: str, at: float | None = None) -> None:
        """End the session."""
        self.tracker.end(reason, at)

    # -- inside -----------------------------------------------------------------------------------------------

    def _record_longer_head(self, before: list[TrackedBlock]) -> None:
        """Record tools and instructions that were added in front of the messages that were sent already."""
        existing = {tracked.block_id for tracked in before}
        new = next((tracked for tracked in self._head_blocks if tracked.block_id not in existing), None)
        first_sent = next((message[0] for message in self._sent_blocks if message), None)
        if new is not None and first_sent is not None:
            self.tracker.record_change("added", (first_sent.block_id,), new.block_id)

    def _diff(
        self, shape: Shape, messages: Sequence[Any], specs: list[list[BlockSpec]], common: int, at: float | None
    ) -> None:
        """Record the *messages* after the first *common* as changes of those that stood there before."""
        read = self._read_by_provider(shape, specs, at)
        before = [block for message in self._sent_blocks[common:] for block in message] + self._reply_blocks
        blocks = iter(self._changes.apply(before, [spec for message in read for spec in message], at))
        del self._sent[common:], self._sent_specs[common:], self._sent_blocks[common:]
        self._reply_blocks = []
        self._sent += map(copy_structure, messages)
        self._sent_specs += specs
        self._sent_blocks += [[block for _ in message for block in next(blocks)] for message in read]

    def _read_by_provider(
        self, shape: Shape, specs: list[list[BlockSpec]], at: float | None
    ) -> list[list[BlockSpec]]:
        """Return the content of messages without what the provider skips: all before its last summary.

        OpenAI returns the messages of the user in front of a summary that was requested, and reads them again.
        """
        last = next((index for index in reversed(range(len(specs))) if made_summary(specs[index])), None)
        if last is None:
            return specs
        summary = made_summary(specs[last])
        earlier = [spec for message in specs[:last] for spec in message]
        is_returned = shape == "responses" and all(spec.content_type in _RETURNED for spec in earlier)
        tracked_keys = {tracked.spec.key for tracked in self._tracked()}
        if summary is not None and summary.key not in tracked_keys:  # made where it was not observed
            self._compact(Compaction(summary, retained=tuple(earlier if is_returned else ())), at)
        tracked_keys = {tracked.spec.key for tracked in self._tracked()}
        start = next(index for index, spec in enumerate(specs[last]) if spec is summary)
        return [
            *(
                [
                    spec
                    for spec in message
                    if is_returned or spec.key in tracked_keys or spec.content_type in STATIC_TYPES
                ]
                for message in specs[:last]
            ),
            specs[last][start:],
            *specs[last + 1 :],
        ]

    def _tracked(self) -> Iterator[TrackedBlock]:
        """Yield the blocks of the last call's messages and of its reply."""
        for message in (*self._sent_blocks, self._reply_blocks):
            yield from message

    def _add_all(self, specs: list[list[BlockSpec]], at: float | None) -> None:
        """Record all messages as new: the provider stores those sent before, unchanged."""
        for message in specs:
            for spec in message:
                self._changes.add(spec, at)
        self._sent, self._sent_specs, self._sent_blocks, self._reply_blocks = [], [], [], []

    def _use_model(self, model: str, at: float | None) -> None:
        if model and model != self._model:
            self._model = model
            self._changes.profile = profile = self._profiles(model)
            self.tracker.set_model(model, profile.limits, at)


_RETURNED: Final = frozenset({"user_message", "media", "system_prompt", "tool_definition"})


def _holds_summary(call: ApiCall, common: int) -> bool:
    return any(made_summary(message_blocks(call.shape, message)) for message in call.messages[common:])


def _content(shape: Shape, messages: Sequence[Any]) -> list[list[BlockSpec]]:
    return [message_blocks(shape, message) for message in messages]
