"""The compactions that only a flag and a smaller total of a call show, of calls without messages."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from windowpane.core.tracking.provider_totals import DROP_RATIO, DROP_TOKENS
from windowpane.sources.telemetry.reported_call import AssembledCall, AssembledCompaction, ReportedCompaction

MAXIMUM_CONVERSATIONS: Final = 20_000
TRIGGER: Final = "unknown"


class FlaggedCompactions:
    """Compares each call with the one before it in its conversation.

    `gen_ai.conversation.compacted` marks every call that sends a compacted conversation, not only the first.
    """

    def __init__(self) -> None:
        self._totals: OrderedDict[str, int] = OrderedDict()

    def before(self, assembled: AssembledCall) -> AssembledCompaction | None:
        """Return the compaction between the last call of the conversation and this one."""
        call = assembled.call
        if not call.conversation or call.part or call.messages is not None or call.usage is None:
            return None
        total, last = call.usage.input_total, self._totals.get(call.conversation, 0)
        self._totals[call.conversation] = total
        self._totals.move_to_end(call.conversation)
        if len(self._totals) > MAXIMUM_CONVERSATIONS:
            self._totals.popitem(last=False)
        if not call.is_compacted or last - total <= max(DROP_TOKENS, DROP_RATIO * last):
            return None
        stated = ReportedCompaction(TRIGGER, last, total)
        return AssembledCompaction(stated, call.conversation, assembled.agent, assembled.started_at)
