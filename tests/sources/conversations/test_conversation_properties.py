"""Interleaved conversations with unique starts stay apart, and no eviction names what is still sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sources.conversations.test_conversations import SYSTEM, Desk, reply, user

from windowpane.core.events import BlocksEvicted

REPLIES = (
    "OK",
    "I have looked at the file that you named and have found nothing in it that would have to be changed today.",
    "The second answer, which is long enough to identify a conversation by what the model wrote in it, is no.",
)
STEPS = st.tuples(
    st.integers(0, 5),  # the conversation
    st.integers(0, len(REPLIES) - 1),
    st.sampled_from(["as it was", "blanks", "parts", "other words", "with more", "left out"]),
    st.sampled_from(["append", "append", "append", "clear a result", "swap", "merge", "repeat"]),
)


def rendered(text: str, how: str) -> list[dict[str, Any]]:
    """Return the messages in which an agent sends a reply back."""
    written: dict[str, Any] = {
        "as it was": text,
        "blanks": f"{text}\n",
        "parts": [{"type": "text", "text": text}],
        "other words": f"Thought {len(text)}",
        "with more": f"{text}\nObservation: none",
    }
    return [reply(written[how])] if how in written else []


def edit(messages: list[dict[str, Any]], how: str) -> None:
    """Edit the messages after the first two, as agents do."""
    last = len(messages) - 1
    if how == "clear a result" and last > 3:
        messages[last - 1] = messages[last - 1] | {"content": "[cleared]"}
    elif how == "swap" and last > 4:
        messages[last - 1], messages[last - 2] = messages[last - 2], messages[last - 1]
    elif how == "merge" and last > 4:
        second = messages.pop()
        messages[-1] = user(f"{text_of(messages[-1])}\n\n{text_of(second)}")


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=1, max_size=60))
def test_interleaved_conversations_stay_apart(
    agent_of: Callable[..., Any], steps: list[tuple[int, int, str, str]]
) -> None:
    desk = Desk(agent_of)
    chats = [[SYSTEM, user(f"Conversation {number} is about topic {number}")] for number in range(6)]
    sessions: list[set[str]] = [set() for _ in chats]
    for number, which, how, _ in steps:
        messages = chats[number]
        seen = {conversation.session_id: evictions(desk, conversation) for conversation in desk.opened}
        session_id = desk.send(messages, REPLIES[which])
        sessions[number].add(session_id)
        assert_not_sent(desk, session_id, seen, messages)
        messages += [*rendered(REPLIES[which], how), user(f"go on {len(messages)}")]

    opened = [one for one in sessions if one]
    assert all(len(one) == 1 for one in opened)
    assert len(set().union(*opened)) == len(opened)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=1, max_size=40))
def test_no_eviction_names_what_is_still_sent(
    agent_of: Callable[..., Any], steps: list[tuple[int, int, str, str]]
) -> None:
    desk = Desk(agent_of)
    messages = [SYSTEM, user("Task")]
    for number, (_, which, how, edited) in enumerate(steps):
        told = f"{number}: {REPLIES[which]}"
        seen = {conversation.session_id: evictions(desk, conversation) for conversation in desk.opened}
        session_id = desk.send(messages, told)
        assert_not_sent(desk, session_id, seen, messages)
        if edited != "repeat":
            messages = [
                *messages,
                *rendered(told, how),
                user(f"Remark {len(messages)} on the last file"),
            ]
            edit(messages, edited)


def evictions(desk: Desk, conversation: Any) -> int:
    return len(desk.events(conversation, BlocksEvicted))


def assert_not_sent(desk: Desk, session_id: str, seen: dict[str, int], messages: list[dict[str, Any]]) -> None:
    """No eviction that this call caused names a text that the call sends, in a message or as part of one."""
    [conversation] = [one for one in desk.opened if one.session_id == session_id]
    texts = {block.id: block.text for block in desk.added(conversation)}
    sent = [text_of(message) for message in messages]
    for evicted in desk.events(conversation, BlocksEvicted)[seen.get(session_id, 0) :]:
        for block in evicted.blocks:
            assert texts[block.block_id] not in sent
