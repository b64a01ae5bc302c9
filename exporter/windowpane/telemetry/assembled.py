"""The results of an assembly: calls and compactions, with the statements of the spans around them."""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.telemetry.reported_call import ReportedCall, ReportedCompaction


@dataclass(slots=True)
class AssembledCall:
    """One model call, with everything that was reported of it."""

    call: ReportedCall
    trace_id: str
    span_id: str
    started_at: float
    ended_at: float
    service: str = ""
    """The name of the process that made it."""
    enclosing_name: str = ""
    """The agent that the nearest span around the call names."""
    enclosing_agent: str = ""
    """The id of that span; empty without one."""
    outer_agent: str = ""
    """The id of the span around that which names another agent, whose sub-agent it then is."""

    @property
    def agent(self) -> str:
        """The agent that made the call, else the process; empty where neither has a name."""
        return self.call.agent or self.enclosing_name or self.service


@dataclass(slots=True)
class AssembledCompaction:
    """A compaction that an agent reports."""

    compaction: ReportedCompaction
    conversation: str
    agent: str
    started_at: float


Assembled = AssembledCall | AssembledCompaction
