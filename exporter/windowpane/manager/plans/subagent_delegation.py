"""Sub-agent delegation: a subtask runs in a separate window, and only a bounded result returns.

The strategy decides whether a subtask is worth it, words the assignment, and bounds what returns. Running the
sub-agent is the caller's: any agent that takes a text and gives one back, observed as a child session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.events import ContentCompressed, SubagentDelegated, SubagentReturned
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.fidelity.facts import blocks_of, extract_facts
from windowpane.manager.plans.findings import failures_in
from windowpane.manager.plans.summary import summarize
from windowpane.manager.plans.truncation import middle_out

RESULT_TOKENS: Final = 2_000
"""Maximum size of a sub-agent's result."""
EXPECTED_CALLS: Final = 10
"""Tool calls from which a subtask is delegated."""
EXPECTED_TOKENS: Final = 50_000
"""Tokens of exploration from which a subtask is delegated."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """Work that could be delegated."""

    task: str
    """Complete in itself: the sub-agent sees nothing else of the conversation."""
    constraints: Sequence[str] = ()
    """Rules of the task that hold for the sub-agent as well, word for word."""
    expected_tool_calls: int = 0
    expected_tokens: int = 0
    """Exploration that would otherwise enter the window."""
    needs_history: bool = False
    """True if the subtask makes sense only with the conversation."""


@dataclass(frozen=True, slots=True)
class DelegationPlan:
    """A subtask that is worth delegating."""

    child_session_id: str
    assignment: str
    """The whole prompt of the sub-agent."""
    max_tokens: int
    delegated: SubagentDelegated
    """To be recorded when the sub-agent starts."""


@dataclass(frozen=True, slots=True)
class SubagentResult:
    """The text that returns into the parent's window."""

    text: str
    """Empty if the sub-agent failed or returned no text."""
    tokens: int
    event: SubagentReturned
    compressed: ContentCompressed | None
    """Set if the result was truncated, or the child's window is known to have been larger."""


def plan_delegation(
    subtask: Subtask, *, child_session_id: str, digest: Digester, max_tokens: int = RESULT_TOKENS
) -> DelegationPlan | None:
    """Return the plan to delegate *subtask*; None if it costs less in place or needs the conversation."""
    worthwhile = subtask.expected_tool_calls >= EXPECTED_CALLS or subtask.expected_tokens >= EXPECTED_TOKENS
    if subtask.needs_history or not worthwhile or not subtask.task.strip():
        return None
    rules = "".join(f"\n- {constraint}" for constraint in subtask.constraints)
    assignment = (
        f"{subtask.task.strip()}\n"
        + (f"\nFollow these rules:{rules}\n" if rules else "")
        + f"\nReport your findings in at most {max_tokens:,} tokens. Start with the conclusion. Copy "
        "names, paths, numbers and error messages verbatim. End with what is still open. Omit your steps."
    )
    return DelegationPlan(
        child_session_id, assignment, max_tokens, SubagentDelegated(child_session_id, digest(subtask.task))
    )


def bounded_result(
    plan: DelegationPlan,
    result: str | None,
    *,
    counter: TokenCounter,
    failed: str = "",
    child_tokens: int | None = None,
) -> SubagentResult:
    """Return the bounded result: a longer one is reduced to its facts, or truncated if that retains more.

    *failed* is the reason for a missing result: an error's text never becomes content. *child_tokens* is the
    size of the child's window if known; then the reduction is reported as a compression.
    """
    text = "" if failed else (result or "").strip()
    if not text:
        outcome = "failed" if failed else "empty"
        return SubagentResult("", 0, SubagentReturned(plan.child_session_id, 0, outcome), None)
    before = counter.count(text)
    outcome = "completed"
    method = "agent"
    if before > plan.max_tokens:
        text, method, outcome = _bounded(text, plan.max_tokens, counter), "extractive", "truncated"
    tokens = counter.count(text)
    source = before if child_tokens is None else max(before, child_tokens)
    compressed = None
    if source > tokens:
        compressed = ContentCompressed(
            strategy="subagent_delegation",
            trigger="delegation",
            outcome="accepted",
            tokens_before=source,
            tokens_after=tokens,
            method=method,
        )
    return SubagentResult(text, tokens, SubagentReturned(plan.child_session_id, tokens, outcome), compressed)


def _bounded(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """Half of the room for the text's own beginning and end, half for the facts between."""
    ends = middle_out(text, max_tokens // 2, counter)
    blocks = blocks_of(text)
    facts = summarize(
        extract_facts(blocks), goal="", failures=failures_in(blocks), max_tokens=max_tokens // 2 - 8,
        counter=counter,
    )  # fmt: skip
    both = f"{ends}\n\n{facts}"
    return both if counter.count(both) <= max_tokens else middle_out(text, max_tokens, counter)
