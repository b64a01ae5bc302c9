"""One conversation as it is sent: consecutive message lists diffed into facts for a session tracker.

Pure: no clock, no I/O. What was sent is remembered as a copy of its structure that shares the texts, so comparing
the common prefix compares references, and only what is new is read, counted and hashed.
"""

from __future__ import annotations

from typing import Any

from windowpane.core.events import OverflowDetected
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester
from windowpane.core.tracking import SessionTracker
from windowpane.models.overflow_errors import classify_error
from windowpane.models.replies import Reply
from windowpane.observer.diff import Facts, Held, ModelViews
from windowpane.observer.messages import Call, copied, head_of, specs_of, specs_of_reply


class WindowObserver:
    """Feeds one session's tracker from what its agent sends and gets. Its owner serialises calls."""

    def __init__(self, tracker: SessionTracker, models: ModelViews, *, digest: Digester) -> None:
        self.tracker = tracker
        self._models = models
        self._model = tracker.info.model
        self._facts = Facts(tracker, models(self._model), digest=digest)
        self._head: tuple[Any, Any] = (None, None)
        self._standing: list[Held] = []
        self._sent: list[Any] = []
        """Copies of the messages of the last call."""
        self._held: list[list[Held]] = []
        """The blocks of each of them."""
        self._reply: list[Held] = []
        """What the model answered since, not sent back yet."""
        self.in_call = False
        """A call was sent and has neither come back nor failed."""
        self.answered = False
        """The last call came back."""

    @property
    def sent(self) -> int:
        """Messages of the last call."""
        return len(self._sent)

    def common(self, call: Call) -> int:
        """How many messages of *call*, from the first, are as they were sent before."""
        known_count = len(self._sent)
        if list(call.messages[:known_count]) == self._sent:  # the usual case, in one comparison
            return known_count
        count = 0
        for known, message in zip(self._sent, call.messages, strict=False):
            if known != message:
                break
            count += 1
        return count

    def called(self, call: Call, at: float | None = None, *, common: int | None = None) -> None:
        """A call is about to be sent. *common* is what `common` said, where the caller has asked already."""
        if self.in_call:  # its end was never seen
            self.tracker.end_turn(None, at=at)
        self._use_model(call.model, at)
        self.tracker.begin_call(at)
        self.in_call, self.answered = True, False
        if (call.system, call.tools) != self._head:
            taken = self._facts.take(self._standing, head_of(call), at)
            self._standing = [held for place in taken for held in place]
            self._head = (copied(call.system), copied(call.tools))
        if call.continues is None:
            self._diff(call, self.common(call) if common is None else common, at)
        else:
            self._continue(call, at)
        self.tracker.measure("before", at)

    def replied(self, reply: Reply, at: float | None = None) -> None:
        """The call came back: its content enters the window and its usage is the truth."""
        if not self.in_call:
            return
        self.in_call, self.answered = False, True
        self._reply += [self._facts.add(spec, at, replied=True) for spec in specs_of_reply(reply)]
        cost = reply.cost_dollars
        cost_of = self._facts.view.cost_of
        if cost is None and reply.usage is not None and cost_of is not None:
            cost = cost_of(reply.usage)
        self.tracker.end_turn(
            reply.usage,
            cost_dollars=cost,
            latency_seconds=reply.latency_seconds,
            stop_reason=reply.stop_reason,
            at=at,
        )

    def failed(self, error: object, at: float | None = None) -> None:
        """The provider refused the call, or it never came back; a retry goes on in the same turn."""
        self.in_call = False
        found = classify_error(error)
        if found.kind != "overflow":
            return
        tracker = self.tracker
        if found.limit_tokens and (tracker.limits is None or found.limit_tokens < tracker.limits.limit_tokens):
            tracker.set_limits(WindowLimits.of(found.limit_tokens, "provider"), at)
        used = max(tracker.gauge.account.used(tracker.window.tokens), found.requested_tokens or 0)
        limit = None if tracker.limits is None else tracker.limits.limit_tokens
        tracker.record(OverflowDetected("provider", "rejected", used, limit), at)
        tracker.flush()

    def end(self, reason: str, at: float | None = None) -> None:
        """The conversation is over."""
        self.tracker.end(reason, at)

    # -- inside -----------------------------------------------------------------------------------------------

    def _diff(self, call: Call, common: int, at: float | None) -> None:
        """Take in the messages after the first *common*."""
        fresh = call.messages[common:]
        specs = [specs_of(call.shape, message) for message in fresh]
        old = [held for message in self._held[common:] for held in message] + self._reply
        taken = iter(self._facts.take(old, [spec for message in specs for spec in message], at))
        del self._sent[common:], self._held[common:]
        self._reply = []
        for message, read in zip(fresh, specs, strict=True):
            self._sent.append(copied(message))
            self._held.append([held for _ in read for held in next(taken)])

    def _continue(self, call: Call, at: float | None) -> None:
        """The provider keeps what was sent before: all of this is new, and nothing else has changed."""
        for message in call.messages:
            for spec in specs_of(call.shape, message):
                self._facts.add(spec, at)
        self._sent, self._held, self._reply = [], [], []

    def _use_model(self, model: str, at: float | None) -> None:
        if model and model != self._model:
            self._model = model
            self._facts.view = view = self._models(model)
            self.tracker.set_model(model, view.limits, at)
