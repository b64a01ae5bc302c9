"""Calls that two sources report at the same time: each counts once, whichever is folded first.

A session that replays a recording has the ids of its calls as well, but not their times, or is of the same rank
(`core.completeness`): its calls count.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from windowpane.core.events import BlockAdded, EventContext, TurnEnded
from windowpane.core.same_session import CLOCK_SECONDS, number_in, rank

MAXIMUM_CALLS: Final = 20_000
"""Calls that are remembered, the latest."""
MAXIMUM_OPEN_TURNS: Final = 1_000


class _Report(NamedTuple):
    """The source that reported a call first, and the time of the call."""

    source: str
    at: float | None

    def is_of_same_call(self, source: str, at: float | None) -> bool:
        """Return whether another report with the same id, by *source*, is of this call."""
        at_once = self.at is None or at is None or abs(at - self.at) <= CLOCK_SECONDS
        return at_once and rank(self.source) != rank(source)


class RepeatedCalls:
    """Remembers the calls that were counted, by the ids of their replies and tool calls."""

    def __init__(self) -> None:
        self._counted: OrderedDict[int, _Report] = OrderedDict()
        self._open: OrderedDict[str, list[int]] = OrderedDict()
        """The tool calls of a session's turn under way."""

    def is_repeated(self, context: EventContext, at: float | None, data: BlockAdded | TurnEnded) -> bool:
        """Return whether *data*, of the time *at*, ends a turn whose call another source reported before."""
        number = number_in(data)
        if isinstance(data, BlockAdded):
            if number is not None:
                self._add_tool_call(context, number)
            return False
        numbers = self._open.pop(context.session_id, [])
        if number is not None:
            numbers.append(number)
        report = _Report(context.source, at)
        earlier = [self._counted.setdefault(number, report) for number in numbers]
        repeated = any(one.is_of_same_call(context.source, at) for one in earlier)
        while len(self._counted) > MAXIMUM_CALLS:
            self._counted.popitem(last=False)
        return repeated

    def _add_tool_call(self, context: EventContext, number: int) -> None:
        self._open.setdefault(context.session_id, []).append(number)
        if len(self._open) > MAXIMUM_OPEN_TURNS:
            self._open.popitem(last=False)
