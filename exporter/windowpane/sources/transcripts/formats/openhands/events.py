"""The state that both generations of OpenHands' events share: the session, the call under way, its usage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import FLAT
from windowpane.sources.transcripts.json_document import MAXIMUM_NAME_CHARS
from windowpane.sources.transcripts.json_lines import count, dollars, mapping, sequence, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    LimitStated,
    ModelCalled,
    Record,
    SessionDescribed,
    SessionOpened,
)

AGENT: Final = "openhands"
USAGE_NAMES: Final = (
    "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip
MAXIMUM_CONTENT_KEYS: Final = 20_000
"""Content that a condensation may retain."""


@dataclass(frozen=True, slots=True)
class CallCost:
    """Usage, price and duration of one model call, as far as the recording states them."""

    usage: Usage | None = None
    model: str = ""
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None


class Totals:
    """Turns usage that accumulates over a session into the usage of single calls."""

    def __init__(self) -> None:
        self._tokens = dict.fromkeys(USAGE_NAMES, 0)
        self._dollars = 0.0

    def next_call(self, totals: Mapping[str, Any], accumulated_cost: object) -> CallCost | None:
        """Return the cost of the one call since the totals before; None where there was none.

        Its usage is None where several calls may have passed: `per_turn_token` is the last one's sum.
        """
        tokens = {name: count(totals.get(name)) for name in USAGE_NAMES}
        spent = dollars(accumulated_cost) or 0.0
        more = {name: tokens[name] - self._tokens[name] for name in USAGE_NAMES}
        cost, started = spent - self._dollars, any(self._tokens.values())
        if not any(more.values()):
            return None
        self._tokens, self._dollars = tokens, spent
        if any(change < 0 for change in more.values()):  # another session's totals, or a new count
            return CallCost()
        last = count(totals.get("per_turn_token"))
        one_call = last == more["prompt_tokens"] + more["completion_tokens"] if last else not started
        if not one_call:
            return CallCost(model=text(totals.get("model"))[:MAXIMUM_NAME_CHARS])
        return CallCost(
            FLAT.read(more), text(totals.get("model"))[:MAXIMUM_NAME_CHARS], cost if spent and cost > 0 else None
        )

    @property
    def tokens(self) -> dict[str, int]:
        """The last totals; empty where the recording has none."""
        return self._tokens if any(self._tokens.values()) else {}


def costs_by_response(metrics: Mapping[str, Any]) -> dict[str, CallCost]:
    """Return the costs of single calls by the id of their response, as a session's metrics list them."""
    latencies = {
        text(entry.get("response_id")): dollars(entry.get("latency"))
        for entry in map(mapping, sequence(metrics.get("response_latencies")))
    }
    usages = [mapping(entry) for entry in sequence(metrics.get("token_usages"))]
    prices = [dollars(mapping(entry).get("cost")) for entry in sequence(metrics.get("costs"))]
    if len(prices) != len(usages):
        prices = [None] * len(usages)
    return {
        response_id: CallCost(
            FLAT.read(entry), text(entry.get("model"))[:MAXIMUM_NAME_CHARS], price, latencies.get(response_id)
        )
        for entry, price in zip(usages, prices, strict=True)
        if (response_id := text(entry.get("response_id")))
    }


class EventLog(ABC):
    """Adds the records of one session's events to `out`; the generations of the format read the events."""

    def __init__(self, log: ProblemLog, key: str, *, costs: Mapping[str, CallCost] | None = None) -> None:
        self.log = log
        self.stats = log.stats
        self.out: list[Record] = []
        self.totals = Totals()
        self.has_usage = False
        self._key = key
        self._costs = costs or {}
        self._opened = False
        self._response = ""
        """The response whose content is being added."""
        self._call: CallCost | None = None
        """The call under way; None between calls."""
        self._waiting: CallCost | None = None
        """The cost of a call whose content comes next."""
        self._at: float | None = None
        self._live: dict[str, None] = {}
        """Keys of the content that was added, oldest first."""
        self._limit = 0
        self._sums: Counter[str] = Counter()

    @abstractmethod
    def read(self, event: dict[str, Any], number: int) -> None:
        """Add the records of one event, the *number* of which is that of its row or file."""

    def open(self, at: float | None, **stated: Any) -> None:
        """Open the session with the first event."""
        if not self._opened:
            self._opened = True
            self.stats.sessions += 1
            self.out.append(SessionOpened(self._key, AGENT, at=at, **stated))

    def describe(self, described: SessionDescribed) -> None:
        """Name the session, where the recording states any of its names."""
        if described != SessionDescribed():
            self.out.append(described)

    def add(
        self,
        content_type: ContentType,
        written: str,
        key: str,
        at: float | None,
        *,
        call_id: str | None = None,
        name: str | None = None,
        media: int = 0,
        child_key: str | None = None,
    ) -> None:
        """Add one piece of content."""
        self._at = at if at is not None else self._at
        if content_type == "tool_result":
            self.stats.max_tool_output_chars = max(self.stats.max_tool_output_chars, len(written))
        elif not written and not media and content_type != "tool_call":
            return
        if key and len(self._live) < MAXIMUM_CONTENT_KEYS:
            self._live[key] = None
        self.out.append(
            ContentAdded(content_type, written, call_id, name, media, key=key, at=at, child_key=child_key)
        )

    # -- calls ------------------------------------------------------------------------------------------------

    def start_call(self, response: str, cost: CallCost | None = None) -> bool:
        """Start the content of a model's reply; returns whether it is another reply than the one before."""
        if response and response == self._response:
            return False
        self.end_call()
        self._response = response
        self._call = cost or self._costs.get(response) or self._waiting or CallCost()
        self._waiting = None
        return True

    def set_cost(self, cost: CallCost) -> None:
        """Assign the cost of one call: to the reply under way where it has none, else to the next one."""
        if self._call is not None and self._call == CallCost():
            self._call = cost
            return
        self.end_call()
        self._end_waiting()
        self._waiting = cost

    def end_call(self) -> None:
        """Add the call under way."""
        if self._call is not None:
            self._called(self._call)
            self._call = None

    def finish(self, *, complete: bool) -> None:
        """Add what is due at the end; the call under way only where no more of it can follow."""
        if complete:
            self.end_call()
            self._end_waiting()
        self.stats.add_usage(**(self.totals.tokens or self._sums))

    def _end_waiting(self) -> None:
        """Add a call whose reply is not among the events."""
        if self._waiting is not None:
            self._called(self._waiting)
            self._waiting = None

    def interrupt(self) -> None:
        """End the call under way, since content of another author follows."""
        self.end_call()
        self._end_waiting()

    def _called(self, cost: CallCost) -> None:
        stats = self.stats
        stats.api_calls += 1
        if cost.usage is not None:
            self.has_usage = True
            self._sums["prompt_tokens"] += cost.usage.input_total
            self._sums["completion_tokens"] += cost.usage.output_tokens
            self._sums["cache_read_tokens"] += cost.usage.cache_read_tokens
            self._sums["cache_write_tokens"] += cost.usage.cache_write_tokens
            stats.peak_context = max(stats.peak_context, cost.usage.input_total)
        self.out.append(
            ModelCalled(
                cost.usage,
                cost.model,
                cost.cost_dollars,
                cost.latency_seconds,
                cost.stop_reason,
                self._at,
                self._response or None,
            )
        )

    # -- changes of the window --------------------------------------------------------------------------------

    def condense(
        self, forgotten: Iterable[str], summary: str, at: float | None, *, trigger: str = "auto"
    ) -> None:
        """Replace the content of events by a summary, which may be empty."""
        self.interrupt()
        self.stats.compactions += 1
        for key in forgotten:
            self._live.pop(key, None)
        self.out.append(Compacted(trigger, summary=summary or None, kept_keys=tuple(self._live), at=at))

    def state_limit(self, tokens: int, at: float | None) -> None:
        """State the window's size, where it is known and new."""
        if tokens and tokens != self._limit:
            self._limit = tokens
            self.out.append(LimitStated(tokens, at))
