"""The conversations that one adapter manages, each in a separate window.

A framework passes the whole conversation with every call. What it passes beyond the messages of the call before,
as they were passed or as they were managed, is new and is added to the window.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from windowpane.agents.frameworks.messages import Build, FrameworkMessage, Message, message_key, restore
from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import Usage
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import ConfigurationError

boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))
MAXIMUM_CONVERSATIONS: Final = 256
"""Open at once; beyond it the session of the one that was used least recently is closed."""


class ManagedCall(NamedTuple):
    """The content to send with a call."""

    conversation: Conversation
    system: str
    """Text that the manager adds to the system prompt; usually empty."""
    messages: list[Any]
    """The messages in the framework's types."""


@dataclass(slots=True)
class Conversation:
    """One conversation and its window."""

    window: ContextWindowManager
    scope: str
    """The framework's name of the conversation or of its agent."""
    system: str
    """The system prompt in the window: the first one."""
    sent: list[bytes] = field(default_factory=list)
    """Keys of the messages as the framework has passed them."""
    managed: list[bytes] = field(default_factory=list)
    """Keys of the messages as they were last returned; a framework may store these instead."""
    in_turn: bool = False
    """A call was prepared and its reply was not added yet."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def new_from(self, keys: Sequence[bytes]) -> int | None:
        """Return where in *keys* the new messages start; None if this is another conversation."""
        for seen in (self.sent, self.managed):
            if seen and list(keys[: len(seen)]) == seen:
                return len(seen)
        return None

    def end_turn(self, reply: Message, usage: Usage | None) -> None:
        """Add the reply of the call under way; the framework passes it with the next call."""
        with self.lock:
            self.window.on_turn_end({**reply, "usage": usage})
            self.in_turn = False
            for seen in (self.sent, self.managed):
                seen.append(message_key(reply))

    def add(self, messages: Iterable[FrameworkMessage]) -> None:
        """Add messages that were not passed before."""
        for message in messages:
            chat = message.chat
            match chat["role"]:
                case "assistant" if self.in_turn:
                    self.window.on_turn_end({**chat, "usage": message.usage})
                    self.in_turn = False
                case "assistant":
                    self.window.add_assistant(chat["content"], tool_calls=chat.get("tool_calls"))
                case "tool":
                    self.window.on_tool_result(
                        chat["name"], chat["content"], chat["tool_call_id"], is_error=chat["is_error"]
                    )
                case "system":
                    self.window.add_system(chat["content"])
                case _:
                    self.window.add_user(chat["content"])

    def manage(self, build: Build, passed: Sequence[FrameworkMessage]) -> ManagedCall:
        """Make room for the call under way and return what to send."""
        self.window.on_turn_start()
        self.in_turn = True
        return self.messages_for(build, passed)

    def messages_for(self, build: Build, passed: Sequence[FrameworkMessage]) -> ManagedCall:
        """Return what to send, as the window is now."""
        in_list = {message_key(one.chat) for one in passed if one.chat["role"] == "system"}
        messages, added = [], []
        for message in self.window.messages():
            if message["role"] != "system" or message_key(message) in in_list:
                messages.append(message)
            elif message["content"] != self.system:
                added.append(message["content"])
        self.managed = [message_key(message) for message in messages]
        return ManagedCall(self, "\n\n".join(added), restore(messages, passed, build))


class Conversations:
    """The conversations of one adapter. Its *options* are the manager's."""

    def __init__(self, *, agent: str, model: str, **options: Any) -> None:
        if "session_id" in options:
            raise ConfigurationError(
                "session_id", "given for all conversations", expected="no id: each conversation has its own"
            )
        self._options: dict[str, Any] = {"agent": agent, "model": model, **options}
        self._open: OrderedDict[int, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def prepare(
        self,
        passed: Sequence[FrameworkMessage],
        *,
        build: Build,
        system: str = "",
        tools: Iterable[Mapping[str, Any]] = (),
        scope: str = "",
        agent: str = "",
        parent: Conversation | None = None,
    ) -> ManagedCall:
        """Add what is new in a call to the window of its conversation and return what to send instead.

        A conversation stays within its *scope*. The session of one that starts is named after the *agent*, if the
        framework names it, and belongs to the session of its *parent*.
        """
        keys = [message_key(message.chat) for message in passed]
        conversation = self._find(keys, scope) or self._start(scope, system, tools, agent, parent)
        with conversation.lock:
            start = conversation.new_from(keys) or 0
            conversation.sent = keys
            conversation.add(passed[start:])
            return conversation.manage(build, passed)

    def close(self) -> None:
        """End the sessions of all conversations."""
        with self._lock:
            ended = list(self._open.values())
            self._open.clear()
        for conversation in ended:
            conversation.window.close()

    def _find(self, keys: Sequence[bytes], scope: str) -> Conversation | None:
        """Return the conversation that a call continues: of several, the one with most of its messages."""
        with self._lock:
            matches = [
                (start, number)
                for number, one in self._open.items()
                if one.scope == scope and (start := one.new_from(keys)) is not None
            ]
            if not matches:
                return None
            _, number = max(matches)
            self._open.move_to_end(number)
            return self._open[number]

    def _start(
        self,
        scope: str,
        system: str,
        tools: Iterable[Mapping[str, Any]],
        agent: str,
        parent: Conversation | None,
    ) -> Conversation:
        name = {"agent": agent} if agent else {}
        child = {"parent_session_id": parent.window.session_id} if parent else {}
        window = ContextWindowManager(**{**self._options, **name, **child})
        if system:
            window.add_system(system)
        window.add_tool_definitions(tools)
        conversation = Conversation(window, scope, system)
        with self._lock:
            self._open[id(conversation)] = conversation
            excess = self._open.popitem(last=False)[1] if len(self._open) > MAXIMUM_CONVERSATIONS else None
        if excess is not None:
            excess.window.close()
        return conversation
