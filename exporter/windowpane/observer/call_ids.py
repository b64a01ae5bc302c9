"""Ids of tool calls for providers that give none, such as Gemini, so that results are linked to their calls."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

from windowpane.observer.block_specs import BlockSpec


class CallIds:
    """Gives ids to the calls of one session that have none, and finds the calls that results without one answer.

    Ids are given when content enters the window and do not depend on its position there. Calls are answered in
    order: a result answers the earliest open call of its tool since the last user message.
    """

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()
        self._open: defaultdict[str, deque[str]] = defaultdict(deque)

    def id_of(self, spec: BlockSpec) -> str | None:
        """Return the id of a call or of the call that a result answers; None for other content."""
        if spec.content_type == "user_message":
            self._open.clear()
        if spec.tool_call_id is not None or not spec.tool_name:
            return spec.tool_call_id
        if spec.content_type == "tool_call":
            self._given[spec.tool_name] += 1
            call_id = f"{spec.tool_name}-{self._given[spec.tool_name]}"
            self._open[spec.tool_name].append(call_id)
            return call_id
        waiting = self._open.get(spec.tool_name) if spec.content_type == "tool_result" else None
        return waiting.popleft() if waiting else None
