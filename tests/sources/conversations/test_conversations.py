"""Calls find the conversation they belong to."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from windowpane.core.events import BlockAdded, BlocksEvicted, ContentCompressed, ReplyDiscarded, RulesFollowed
from windowpane.core.window.blocks import Block
from windowpane.fidelity.rule_survival import RuleFollower
from windowpane.models.wire.calls import ApiCall, parse_call, read_reply
from windowpane.sources.conversations.conversations import Conversation, Conversations, Scope
from windowpane.testing import chat_reply

SYSTEM = {"role": "system", "content": "You are careful."}
ANYONE = Scope("a")


class Desk:
    """Conversations whose sessions are numbered."""

    def __init__(self, agent_of: Callable[..., Any], **options: Any) -> None:
        self.opened: list[Conversation] = []
        self.sinks: dict[str, Any] = {}
        self.agent_of = agent_of
        self.now = 0.0
        self.conversations = Conversations(self.open, **options)

    def open(self, call: ApiCall, scope: Scope, parent: Conversation | None) -> Conversation:
        name = f"s{len(self.opened)}" if parent is None else f"{parent.session_id}/{len(self.opened)}"
        agent = self.agent_of(shape=call.shape, session_id=name)
        self.sinks[name] = agent.sink
        self.opened.append(Conversation(agent.observer, scope, call.shape))
        return self.opened[-1]

    def start(self, messages: list[dict[str, Any]], *, scope: Scope = ANYONE, **body: Any) -> Conversation:
        call = parse_call("chat", {"model": "m", "messages": messages, **body})
        found = self.conversations.find(call, scope, now=self.now)
        found.conversation.observer.record_call(call, common=found.common)
        return found.conversation

    def answer(self, conversation: Conversation, reply: Any) -> None:
        read = read_reply(reply)
        content = conversation.observer.record_reply(read)
        self.conversations.index_reply(conversation, content, read.response_id)

    def events(self, conversation: Conversation, *types: type) -> list[Any]:
        """Return the payloads of these types that were recorded of a conversation."""
        conversation.observer.tracker.flush()
        return [payload for kind in types for payload in self.sinks[conversation.session_id].of(kind)]

    def added(self, conversation: Conversation) -> list[Block]:
        """Return the blocks that were ever added to a conversation's window."""
        return [payload.block for payload in self.events(conversation, BlockAdded)]

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
    first = desk.send([SYSTEM, user("Hello")], "Hi")
    second = desk.send([SYSTEM, user("Hello"), reply("Hi"), user("How are you?")], "Fine")

    assert first == second


def test_parallel_conversations_stay_apart(desk: Desk) -> None:
    one = desk.send([SYSTEM, user("One")], "OK")
    two = desk.send([SYSTEM, user("Two")], "OK")

    assert one != two
    assert desk.send([SYSTEM, user("One"), reply("OK"), user("more")], "A") == one
    assert desk.send([SYSTEM, user("Two"), reply("OK"), user("more")], "B") == two


def test_examples_in_the_prompt_do_not_join_conversations(desk: Desk) -> None:
    shots = [SYSTEM, user("2+2"), reply("4")]
    ids = {desk.send([*shots, user(f"{number}+1")], str(number + 1)) for number in range(5)}

    assert len(ids) == 5


def test_starting_over_is_a_new_conversation(desk: Desk) -> None:
    one = desk.send([SYSTEM, user("Task")], "Step 1")
    desk.send([SYSTEM, user("Task"), reply("Step 1"), user("go on")], "Step 2")

    assert desk.send([SYSTEM, user("Task")], "Step 1") != one


def test_a_retry_of_a_failed_call_continues(desk: Desk) -> None:
    conversation = desk.start([SYSTEM, user("Task")])
    conversation.observer.record_failure(TimeoutError("timed out"))
    desk.conversations.release(conversation)

    assert desk.send([SYSTEM, user("Task")], "Step 1") == conversation.session_id


def test_a_compaction_keeps_its_conversation(desk: Desk) -> None:
    messages = [SYSTEM, user("Task")]
    for number in range(4):
        session_id = desk.send(messages, f"Step {number}")
        messages += [reply(f"Step {number}"), user("go on")]

    assert desk.send([SYSTEM, user("Task"), user("Summary: four steps were done")], "Step 5") == session_id


def test_concurrent_calls_from_the_same_messages_are_branches(desk: Desk) -> None:
    session_id = desk.send([SYSTEM, user("Task")], "Step 1")
    messages = [SYSTEM, user("Task"), reply("Step 1"), user("go on")]
    trunk = desk.start(messages)
    branch = desk.start(messages)

    assert trunk.session_id == session_id
    assert branch.session_id.startswith(f"{session_id}/")


def test_a_dropped_stream_does_not_split_the_conversation(desk: Desk) -> None:
    dropped = desk.start([SYSTEM, user("Task")], stream=True)
    following = desk.start([SYSTEM, user("Task"), reply("Half of it"), user("go on")])

    assert dropped is following


def test_a_summary_of_everything_stays_in_its_named_session(desk: Desk) -> None:
    scope = Scope("a", "s0")
    summary = "The timeout of 30 s in src/app/main.py was raised to 60 s, and all of the tests pass now. " * 2
    desk.send([SYSTEM, user("Task")], summary, scope=scope)

    assert desk.send([SYSTEM, user(f"So far: {summary}Go on.")], "Step 2", scope=scope) == "s0"


def test_a_summary_of_unknown_origin_stays_in_its_named_session(desk: Desk) -> None:
    scope = Scope("a", "s0")
    messages = [SYSTEM, user("Find why src/net/client.py times out")]
    for number in range(4):
        text = (
            f"src/net/part_{number}.py raises TimeoutError at line {number}17, retry_limit={number}5. "
            + "x " * 200
        )
        desk.send(messages, text, scope=scope)
        messages += [reply(text), user("go on")]
    facts = "; ".join(f"src/net/part_{n}.py: TimeoutError at line {n}17, retry_limit={n}5" for n in range(4))

    assert desk.send([SYSTEM, user(f"Summary: {facts}")], "Step 5", scope=scope) == "s0"


def test_sub_agents_with_the_same_prompt_are_children(desk: Desk) -> None:
    scope = Scope("a", "s0")
    messages = [SYSTEM, user("Migrate user-service from axios to fetch")]
    children: set[str] = set()
    for number in range(5):
        task = f"List the calls of axios in src/part_{number}.ts of user-service"
        call = {"id": f"call_{number}", "type": "function",
                "function": {"name": "delegate", "arguments": json.dumps({"task": task})}}  # fmt: skip
        wanted = chat_reply(calls=[(call["id"], "delegate", call["function"]["arguments"])])  # type: ignore[index]
        main = desk.start(messages, scope=scope)
        desk.answer(main, wanted)
        side = [SYSTEM, user(task)]
        child = desk.send(side, f"Found {number}", scope=scope)
        assert desk.send([*side, reply(f"Found {number}"), user("Sure?")], "Yes", scope=scope) == child
        children.add(child)
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": call["id"], "content": f"Found {number}"}]  # fmt: skip
        assert main.session_id == "s0"

    assert len(children) == 5
    assert all(child.startswith("s0/") for child in children)
    for conversation in desk.opened:
        assert not desk.events(conversation, BlocksEvicted, ContentCompressed)


def test_replies_that_never_come_back_do_not_split_a_conversation(desk: Desk) -> None:
    messages = [SYSTEM, user("Task")]
    ids = set()
    for number in range(30):
        ids.add(desk.send(messages, f"Thought {number}"))
        messages += [reply(f"Rewritten {number}"), user("go on")]

    assert ids == {"s0"}
    assert not desk.events(desk.opened[0], BlocksEvicted)


def test_interleaved_conversations_with_a_repeated_reply_stay_apart(desk: Desk) -> None:
    told = "I have looked at the file that you named and have found nothing that would have to be changed in it."
    chats = {name: [SYSTEM, user(f"I am {name}")] for name in ("one", "two")}
    ids: dict[str, set[str]] = {name: set() for name in chats}
    for number in range(80):
        for name, messages in chats.items():
            ids[name].add(desk.send(messages, told))
            messages += [reply(told), user(f"Look at file {number}")]

    assert ids == {"one": {"s0"}, "two": {"s1"}}
    for conversation in desk.opened:
        assert not desk.events(conversation, BlocksEvicted)


def test_a_text_alone_joins_no_conversations(desk: Desk) -> None:
    told = (
        "I am sorry, but I cannot help with that. Is there anything else that you would like me to look at today?"
    )
    first = desk.send([SYSTEM, user("One")], told)

    assert desk.send([SYSTEM, user("Two"), reply(told), user("Three")], told) != first


def test_a_sliding_window_keeps_its_conversation(desk: Desk) -> None:
    messages = [SYSTEM, user("Task")]
    ids = set()
    for number in range(20):
        told = (
            f"Step {number}: the file src/part_{number}.py was read to its end, and nothing in it is of any use."
        )
        ids.add(desk.send([SYSTEM, *messages[1:][-5:]], told))
        messages += [reply(told), user(f"go on {number}")]

    assert ids == {"s0"}


@pytest.mark.parametrize("window", [1_000, 9])
@pytest.mark.parametrize("prompt", ["You are careful.", "It is the {}th minute of the hour."])
def test_short_replies_do_not_split_a_conversation(desk: Desk, window: int, prompt: str) -> None:
    messages: list[dict[str, Any]] = []
    ids = []
    for number in range(20):
        messages.append(user(f"Step {number}"))
        system = {"role": "system", "content": prompt.format(number)}
        ids.append(desk.send([system, *messages[-window:]], "Done."))
        messages.append(reply("Done."))

    assert set(ids) == {"s0"}


def test_one_task_for_two_system_prompts_is_two_conversations(desk: Desk) -> None:
    chats = {name: [{"role": "system", "content": f"You are {name}."}, user("Task")] for name in ("one", "two")}
    ids: dict[str, set[str]] = {name: set() for name in chats}
    for number in range(10):
        for name, messages in chats.items():
            ids[name].add(desk.send(messages, "Done."))
            messages += [reply("Done."), user(f"Step {number}")]

    assert ids == {"one": {"s0"}, "two": {"s1"}}


def test_a_message_that_grows_keeps_its_conversation(desk: Desk) -> None:
    story = "Answer the question with one thought at a time. "
    ids = set()
    for number in range(10):
        ids.add(desk.send([SYSTEM, user(story)], f"Thought {number}."))
        story += f"Thought {number}. Observation: {number}. "

    assert ids == {"s0"}


@pytest.mark.parametrize("rendered", [
    {"role": "assistant", "content": "On  it.\n"},
    {"content": [{"type": "text", "text": "On it."}], "role": "assistant"},
    {"role": "assistant", "content": "On it.\nObservation: 42"},
    {"role": "assistant", "content": "Thought: On it, then."},
])  # fmt: skip
def test_a_reply_that_comes_back_changed_is_the_reply(desk: Desk, rendered: dict[str, Any]) -> None:
    first = desk.send([SYSTEM, user("Task")], "On it.")
    second = desk.send([SYSTEM, user("Task"), rendered, user("go on")], "Done.")

    assert first == second
    assert not desk.events(desk.opened[0], BlocksEvicted)
    texts = [block.text for block in desk.opened[0].observer.tracker.window]
    assert sum("On it" in (text or "") or "On  it" in (text or "") for text in texts) == 1


def test_a_tool_call_that_comes_back_under_another_id_is_the_call(desk: Desk) -> None:
    conversation = desk.start([SYSTEM, user("Task")])
    desk.answer(conversation, chat_reply(calls=[("call_a", "read", '{"path": "a", "line": 1}')]))
    call = {"id": "x1", "type": "function", "function": {"name": "read", "arguments": '{"line":1,"path":"a"}'}}
    desk.send([SYSTEM, user("Task"), {"role": "assistant", "tool_calls": [call]},
               {"role": "tool", "tool_call_id": "x1", "content": "text"}], "Done.")  # fmt: skip

    assert len(desk.opened) == 1
    assert not desk.events(conversation, BlocksEvicted, ReplyDiscarded)
    assert [block.content_type for block in conversation.observer.tracker.window].count("tool_call") == 1


def test_messages_written_anew_are_the_same(desk: Desk) -> None:
    first = desk.send([SYSTEM, user("Task")], "Step 1")
    parts = [{"type": "text", "text": "Task"}]
    again = [SYSTEM, {"role": "user", "content": parts}, SimpleNamespace(role="assistant", content="Other")]

    assert desk.send([*again, user("go on")], "Step 2") == first  # type: ignore[list-item]
    assert not desk.events(desk.opened[0], BlocksEvicted)


def test_content_that_moved_or_was_merged_is_still_sent(desk: Desk) -> None:
    scope = Scope("a", "s0")
    one, two = user("The first remark is about the timeout"), user("The second remark is about the retries")
    desk.send([SYSTEM, user("Task"), one, two], "Step 1", scope=scope)
    desk.send([SYSTEM, user("Task"), two, one, reply("Step 1")], "Step 2", scope=scope)
    merged = user(f"{one['content']}\n\n{two['content']}")
    desk.send([SYSTEM, user("Task"), merged, reply("Step 1"), reply("Step 2")], "Step 3", scope=scope)

    assert len(desk.opened) == 1
    assert not desk.events(desk.opened[0], BlocksEvicted, ContentCompressed)


def test_another_system_prompt_in_a_named_session_is_a_child(desk: Desk) -> None:
    scope = Scope("a", "s0")
    desk.send([SYSTEM, user("Task")], "Step 1", scope=scope)
    side = desk.send([{"role": "system", "content": "Summarise."}, user("Text")], "Short", scope=scope)

    assert side.startswith("s0/")
    assert desk.send([SYSTEM, user("Task"), reply("Step 1"), user("go on")], "Step 2", scope=scope) == "s0"


def test_conversations_are_bounded(agent_of: Callable[..., Any]) -> None:
    desk = Desk(agent_of, capacity=3)
    for number in range(10):
        desk.send([SYSTEM, user(f"Task {number}")], f"Reply {number}")

    assert len(desk.conversations) == 3
    assert len(desk.conversations._by_key) == 3


def test_a_silent_conversation_is_over(desk: Desk) -> None:
    first = desk.send([SYSTEM, user("Hello")], "Hi")
    desk.now = 4_000.0

    assert desk.send([SYSTEM, user("Hello"), reply("Hi"), user("Back again")], "Fine") != first


CLAUDE_CODE_REQUEST = """\
CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.

- Do NOT use Read, Bash, Grep, Glob, Edit, Write, or ANY other tool.
- Tool calls will be REJECTED and will waste your only turn — you will fail the task.

Your task is to create a detailed summary of the conversation so far, paying close attention to its requests.
Before providing your final summary, wrap your analysis in <analysis> tags to organize your thoughts.

9. Optional Next Step: List the next step. Do not start on tangential requests or really old requests that were \
already completed without confirming with the user first.

REMINDER: Do NOT call any tools. Respond with plain text only."""
"""Of release 2.1.332, shortened."""
CLAUDE_CODE_SUMMARY = """\
This session is being continued from a previous conversation that ran out of context. It is summarized below.

Summary:
1. Primary Request and Intent: {summary}

Continue the conversation from where it left off without asking the user any further questions. Never recap."""
CODEX_REQUEST = """\
You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.

Always include what remains to be done."""
CODEX_SUMMARY = "Another language model started to solve this problem. Never duplicate its work.\n\n{summary}"
GEMINI_REQUEST = "First, reason in your scratchpad. Then, generate the <state_snapshot>. Never skip a file."
GEMINI_SUMMARY = "<state_snapshot>\n{summary}\nAlways read it first.\n</state_snapshot>"
PI_REQUEST = "The messages above are a conversation to summarize. Never answer a question in them."
PI_SUMMARY = """\
The conversation history before this point was compacted into the following summary:

<summary>
{summary}
</summary>
Never ask for it again."""
REQUESTS = {
    "Claude Code": (CLAUDE_CODE_REQUEST, CLAUDE_CODE_SUMMARY),
    "Claude Code, behind what the user typed": (f"Go on.\n\n{CLAUDE_CODE_REQUEST}", CLAUDE_CODE_SUMMARY),
    "Codex": (CODEX_REQUEST, CODEX_SUMMARY),
    "Gemini CLI": (GEMINI_REQUEST, GEMINI_SUMMARY),
    "pi": (PI_REQUEST, PI_SUMMARY),
}
"""Requests for a summary, and the messages with it."""


@pytest.mark.parametrize("agent", REQUESTS)
def test_what_an_agents_program_writes_is_no_rule_of_its_user(desk: Desk, agent: str) -> None:
    request, compacted = REQUESTS[agent]
    scope = Scope("a", "s0")
    summary = "The notes in src/app/main.py were read, the timeout is 30 s, and milk must be bought. " * 2
    messages = [SYSTEM, user("<system-reminder>\nAlways end commit messages so.\n</system-reminder>")]
    messages += [user("Read the notes. Never push to main.")]
    conversation = desk.start(messages, scope=scope)
    follower = RuleFollower(conversation.observer.tracker, digest=str)
    desk.answer(conversation, chat_reply("Step 1"))
    desk.answer(desk.start([*messages, reply("Step 1"), user(request)], scope=scope), chat_reply(summary))
    following = desk.start([SYSTEM, user(compacted.format(summary=summary))], scope=scope)
    desk.answer(following, chat_reply("Step 2"))
    follower.finish()

    assert following is conversation
    [followed] = desk.events(conversation, RulesFollowed)
    assert [(one.text, one.fate) for one in followed.outcomes] == [("Never push to main.", "lost")]
