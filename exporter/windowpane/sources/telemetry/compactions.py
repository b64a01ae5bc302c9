"""The compactions that only a smaller total of a call shows, of calls without messages."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Final

from windowpane.core.agents import AgentProgram, documented_compaction_tokens, window_of
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.provider_totals import DROP_RATIO, DROP_TOKENS
from windowpane.models.catalog import packaged_catalog
from windowpane.sources.telemetry.reported_call import (
    AssembledCall,
    AssembledCompaction,
    ReportedCall,
    ReportedCompaction,
)

MAXIMUM_CONVERSATIONS: Final = 20_000
FLAGGED: Final = "unknown"
"""Trigger of a compaction that a flag shows."""
AT_LEVEL: Final = "auto"
"""Trigger of one that followed a call at the level of the agent."""
UNREPORTED: Final = frozenset({"codex"})
"""Conventions of agents that compact by themselves and have no event for it."""


class InferredCompactions:
    """Compares each call with the one before it in its conversation.

    `gen_ai.conversation.compacted` marks every call that sends a compacted conversation, not only the first.
    Codex marks none: its total is lower after a call that reached the level at which it compacts.
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
        at_level = call.convention in UNREPORTED and last >= _level_tokens(call)
        if not (call.is_compacted or at_level) or last - total <= max(DROP_TOKENS, DROP_RATIO * last):
            return None
        stated = ReportedCompaction(FLAGGED if call.is_compacted else AT_LEVEL, last, total)
        return AssembledCompaction(stated, call.conversation, assembled.agent, assembled.started_at)


def _level_tokens(call: ReportedCall) -> float:
    """Return the used tokens at which the agent compacts, as it states or documents them; else infinite."""
    if call.compaction_tokens is not None:
        return call.compaction_tokens
    window = window_of(packaged_catalog(), call.model, call.agent)
    if window is None:
        return math.inf
    limits = WindowLimits.of(*window)
    return documented_compaction_tokens(AgentProgram(call.agent), limits) or math.inf
