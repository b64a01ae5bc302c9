"""Calls find the conversation they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from windowpane.models.replies import read_reply
from windowpane.observer.conversations import Conversation, Conversations, Scope
from windowpane.observer.messages import ApiCall, parse_call
from windowpane.testing import chat_reply

SYSTEM = {"role": "system", "content": "You are careful."}
ANYONE = Scope("a")


class Desk:
    """Conversations whose sessions are numbered."""

    def __init__(self, agent_of: Callable[..., Any], **options: Any) -> None:
        self.opened: list[Conversation] = []
        self.agent_of = agent_of
        self.now = 0.0
        self.conversations = Conversations(self.open, **options)

    def open(self, call: ApiCall, scope: Scope, parent: Conversation | None) -> Conversation:
        name = f"s{len(self.opened)}" if parent is None else f"{parent.session_id}/{len(self.opened)}"
        agent = self.agent_of(shape=call.shape, session_id=name)
        self.opened.append(Conversation(agent.observer, scope, call.shape))
        return self.opened[-1]

    def start(self, messages: list[dict[str, Any]], *, scope: Scope = ANYONE, **body: Any) -> Conversation:
        call = parse_call("chat", {"model": "m", "messages": messages, **body})
        found = self.conversations.find(call, scope, now=self.now)
        found.conversation.observer.record_call(call, common=found.common)
        return found.conversation

    def answer(self, conversation: Conversation, reply: Any) -> None:
        read = read_reply(reply)
        conversation.observer.record_reply(read)
        self.conversations.index_reply(conversation, read)

    def send(self, messages: list[dict[str, Any]], reply: str, *, scope: Scope = ANYONE) -> str:
        conversation = self.start(messages, scope=scope)
        self.answer(conversation, chat_reply(reply))
        return conversation.session_id


@pytest.fixture
def desk(agent_of: Callable[..., Any]) -> Desk:
    return Desk(agent_of)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_a_longer_list_continues(desk: Desk) -> None:
    """Messages with a sent-back reply belong to the conversation it was generated in."""
    first = desk.send([SYSTEM, user("Hello")], "Hi")
    second = desk.send([SYSTEM, user("Hello"), reply("Hi"), user("How are you?")], "Fine")

    assert first == second


def test_parallel_conversations_stay_apart(desk: Desk) -> None:
    """Two conversations with one system prompt and equal replies are distinguished by their first messages."""
    one = desk.send([SYSTEM, user("One")], "OK")
    two = desk.send([SYSTEM, user("Two")], "OK")

    assert one != two
    assert desk.send([SYSTEM, user("One"), reply("OK"), user("more")], "A") == one
    assert desk.send([SYSTEM, user("Two"), reply("OK"), user("more")], "B") == two


def test_examples_in_the_prompt_do_not_join_conversations(desk: Desk) -> None:
    """Calls that share few-shot examples, which no model generated here, are separate conversations."""
    shots = [SYSTEM, user("2+2"), reply("4")]
    ids = {desk.send([*shots, user(f"{number}+1")], str(number + 1)) for number in range(5)}

    assert len(ids) == 5


def test_starting_over_is_a_new_conversation(desk: Desk) -> None:
    """The same first messages again, with nothing generated in them, start a new conversation."""
    one = desk.send([SYSTEM, user("Task")], "Step 1")
    desk.send([SYSTEM, user("Task"), reply("Step 1"), user("go on")], "Step 2")

    assert desk.send([SYSTEM, user("Task")], "Step 1") != one


def test_a_retry_of_a_failed_call_continues(desk: Desk) -> None:
    """A call that repeats one which was never answered is the same conversation."""
    conversation = desk.start([SYSTEM, user("Task")])
    conversation.observer.record_failure(TimeoutError("timed out"))
    desk.conversations.release(conversation)

    assert desk.send([SYSTEM, user("Task")], "Step 1") == conversation.session_id


def test_a_compaction_keeps_its_conversation(desk: Desk) -> None:
    """An agent that replaces all but the first message after some turns has compacted, not started anew."""
    messages = [SYSTEM, user("Task")]
    for number in range(4):
        session_id = desk.send(messages, f"Step {number}")
        messages += [reply(f"Step {number}"), user("go on")]

    assert desk.send([SYSTEM, user("Task"), user("Summary: four steps were done")], "Step 5") == session_id


def test_concurrent_calls_from_the_same_messages_are_branches(desk: Desk) -> None:
    """A second call from the same history, while the first is under way, is a child of the conversation."""
    session_id = desk.send([SYSTEM, user("Task")], "Step 1")
    messages = [SYSTEM, user("Task"), reply("Step 1"), user("go on")]
    trunk = desk.start(messages)
    branch = desk.start(messages)

    assert trunk.session_id == session_id
    assert branch.session_id.startswith(f"{session_id}/")


def test_a_dropped_stream_does_not_split_the_conversation(desk: Desk) -> None:
    """An unfinished stream may be followed by the next call of the same conversation."""
    dropped = desk.start([SYSTEM, user("Task")], stream=True)
    following = desk.start([SYSTEM, user("Task"), reply("Half of it"), user("go on")])

    assert dropped is following


def test_a_named_session_accepts_all_messages(desk: Desk) -> None:
    """In a named session, a list that shares nothing but the system prompt is the same conversation."""
    scope = Scope("a", "s0")
    desk.send([SYSTEM, user("Task")], "Step 1", scope=scope)

    assert desk.send([SYSTEM, user("Summary of everything")], "Step 2", scope=scope) == "s0"


def test_another_system_prompt_in_a_named_session_is_a_child(desk: Desk) -> None:
    """A summarizer called within the session does not disturb its window."""
    scope = Scope("a", "s0")
    desk.send([SYSTEM, user("Task")], "Step 1", scope=scope)
    side = desk.send([{"role": "system", "content": "Summarise."}, user("Text")], "Short", scope=scope)

    assert side.startswith("s0/")
    assert desk.send([SYSTEM, user("Task"), reply("Step 1"), user("go on")], "Step 2", scope=scope) == "s0"


def test_conversations_are_bounded(agent_of: Callable[..., Any]) -> None:
    """The longest silent conversation is ended and forgotten, with all that it was known by."""
    desk = Desk(agent_of, capacity=3)
    for number in range(10):
        desk.send([SYSTEM, user(f"Task {number}")], f"Reply {number}")

    assert len(desk.conversations) == 3
    assert len(desk.conversations._by_key) == 3


def test_a_silent_conversation_is_over(desk: Desk) -> None:
    """After an hour of silence the session has ended, and the same messages start another."""
    first = desk.send([SYSTEM, user("Hello")], "Hi")
    desk.now = 4_000.0

    assert desk.send([SYSTEM, user("Hello"), reply("Hi"), user("Back again")], "Fine") != first
