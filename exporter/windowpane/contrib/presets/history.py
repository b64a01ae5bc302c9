"""The conversation of a snapshot as a list of messages, which is how the other systems see a window.

System prompt, tool definitions, memory and summaries are no messages of it. A reply is one message whatever it
consists of, and each of its results is another.
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
    """One message, and the group it belongs to."""

    role: Role
    group: str


def messages_of(groups: Sequence[Group]) -> list[HistoryMessage]:
    """The messages in order."""
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
    """The messages as far as the pure functions over boundaries look at them."""
    return [{"role": message.role} for message in messages]


def groups_from(messages: Sequence[HistoryMessage], first: int) -> set[str]:
    """The groups that hold a message from index *first* on."""
    return {message.group for message in messages[first:]}


def plan_drop(snapshot: Snapshot, gone: Iterable[Group], *, policy: str, reason: str) -> EvictionPlan:
    """A plan that drops these groups whole, oldest first."""
    removals = [
        Removal("drop", tuple(item.block for item in group.items), 0.0, {}, reason)
        for group in sorted(gone, key=lambda group: group.position)
    ]
    return EvictionPlan.of(snapshot, removals, policy=policy)
