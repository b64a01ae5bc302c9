"""Calls that two sources report: each counts once, whichever is folded first."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from windowpane.core.digests import call_number
from windowpane.core.events import BlockAdded, EventContext, TurnEnded

MAXIMUM_CALLS: Final = 20_000
"""Calls that are remembered, the latest."""
MAXIMUM_OPEN_TURNS: Final = 1_000


class RepeatedCalls:
    """Remembers the calls that were counted, by the ids of their replies and tool calls."""

    def __init__(self) -> None:
        self._counted: OrderedDict[int, str] = OrderedDict()
        """The source that reported a call first."""
        self._open: OrderedDict[str, list[int]] = OrderedDict()
        """The tool calls of a session's turn under way."""

    def is_repeated(self, context: EventContext, data: BlockAdded | TurnEnded) -> bool:
        """Return whether *data* ends a turn whose call another source reported before."""
        if isinstance(data, BlockAdded):
            self._add_tool_call(context, data)
            return False
        numbers = self._open.pop(context.session_id, [])
        replied = call_number(data.response_id)
        if replied is not None:
            numbers.append(replied)
        source = context.source
        repeated = any(self._counted.get(number, source) != source for number in numbers)
        for number in numbers:
            self._counted.setdefault(number, source)
        while len(self._counted) > MAXIMUM_CALLS:
            self._counted.popitem(last=False)
        return repeated

    def _add_tool_call(self, context: EventContext, data: BlockAdded) -> None:
        number = call_number(data.block.tool_call_id) if data.block.content_type == "tool_call" else None
        if number is not None:
            self._open.setdefault(context.session_id, []).append(number)
            if len(self._open) > MAXIMUM_OPEN_TURNS:
                self._open.popitem(last=False)
