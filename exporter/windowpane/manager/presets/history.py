"""The conversation of a snapshot as a list of messages, the form in which the other systems see a window.

System prompt, tool definitions, memory and summaries are not messages. A reply is one message whatever its parts,
and each tool result is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from windowpane.core.vocabulary import REPLY_TYPES
from windowpane.core.window.boundaries import Message
from windowpane.manager.plans.eviction import EvictionPlan, Removal
from windowpane.manager.snapshot import Group, Snapshot

Role = Literal["user", "assistant", "tool"]


class HistoryMessage(NamedTuple):
    """A message and the group it belongs to."""

    role: Role
    group: str


def messages_of(groups: Sequence[Group]) -> list[HistoryMessage]:
    """Return the messages in order."""
    messages: list[HistoryMessage] = []
    for group in groups:
        replied = False
        for item in group.items:
            kind = item.block.content_type
            if kind == "user_message":
                messages.append(HistoryMessage("user", group.id))
            elif kind in REPLY_TYPES:
                if not replied:
                    messages.append(HistoryMessage("assistant", group.id))
                replied = True
            elif kind in ("tool_result", "placeholder"):
                messages.append(HistoryMessage("tool", group.id))
    return messages


def as_roles(messages: Iterable[HistoryMessage]) -> list[Message]:
    """Return the messages as far as the functions over boundaries read them: their roles."""
    return [{"role": message.role} for message in messages]


def groups_from(messages: Sequence[HistoryMessage], first: int) -> set[str]:
    """Return the ids of the groups that hold a message from index *first* on."""
    return {message.group for message in messages[first:]}


def plan_drop(snapshot: Snapshot, removed: Iterable[Group], *, policy: str, reason: str) -> EvictionPlan:
    """Return a plan that drops these groups whole, oldest first."""
    removals = [
        Removal("drop", tuple(item.block for item in group.items), 0.0, {}, reason)
        for group in sorted(removed, key=lambda group: group.position)
    ]
    return EvictionPlan.of(snapshot, removals, policy=policy)
