"""Manages the windows of Strands' agents, as a conversation manager."""

from __future__ import annotations

import asyncio
from types import new_class
from typing import Any
from weakref import WeakKeyDictionary

from windowpane.agents.frameworks.conversations import Conversations, ManagedCall, boundary
from windowpane.agents.frameworks.strands_messages import (
    Part,
    build_messages,
    joined_messages,
    read_messages,
    read_tool,
)


def strands_conversation_manager(*, agent: str, model: str, **options: Any) -> Any:
    """Return a conversation manager that manages the window of each agent; the arguments are the manager's.

    Use it in `Agent(..., conversation_manager=...)`. As with Strands' own managers the agent's messages become
    those of the managed window.
    """
    from strands.agent.conversation_manager import ConversationManager

    made = new_class("WindowpaneConversationManager", (ManagerMethods, ConversationManager))
    return made(Conversations(agent=agent, model=model, **options))


class ManagerMethods:
    """The methods of the conversation manager."""

    def __init__(self, conversations: Conversations) -> None:
        super().__init__()
        self.removed_message_count = 0
        self._conversations = conversations
        self._calls: WeakKeyDictionary[Any, ManagedCall] = WeakKeyDictionary()
        """The latest call of each agent."""

    def close(self) -> None:
        """End the sessions of all conversations."""
        self._conversations.close()

    def register_hooks(self, registry: Any, **_: Any) -> None:
        """Register the callbacks around the calls of the model."""
        from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent

        registry.add_callback(BeforeModelCallEvent, self._before_call)
        registry.add_callback(AfterModelCallEvent, self._after_call)

    def apply_management(self, agent: Any, **_: Any) -> None:
        """Do nothing at the end of a run: each call is managed before it is sent."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **_: Any) -> None:
        """Remove content after the provider rejected a call as too large; raises its error if nothing can be."""
        call = self._calls.get(agent)
        if e is None:
            return
        if call is None or not call.conversation.window.on_overflow(e).retry:
            raise e
        self._replace(agent, call.conversation.messages_for(build_messages, read_messages(agent.messages)))

    async def _before_call(self, event: Any) -> None:
        """Put the managed messages in place of the agent's."""
        try:
            call = await asyncio.to_thread(self._prepare, event.agent)
        except Exception as error:  # noqa: BLE001  # the agent then sends its own messages
            self._calls.pop(event.agent, None)
            boundary.log_failure("managing a call of Strands", error)
            return
        self._calls[event.agent] = call
        self._replace(event.agent, call)

    async def _after_call(self, event: Any) -> None:
        """Add the reply with the provider's counts."""
        call = self._calls.get(event.agent)
        if call is not None and event.stop_response is not None:
            with boundary.contain("adding a reply of Strands"):
                (reply,) = read_messages([event.stop_response.message])
                await asyncio.to_thread(call.conversation.end_turn, reply.chat, reply.usage)

    def _prepare(self, agent: Any) -> ManagedCall:
        specs = agent.tool_registry.get_all_tool_specs()
        return self._conversations.prepare(
            read_messages(agent.messages),
            build=build_messages,
            system=agent.system_prompt or "",
            tools=[read_tool(spec) for spec in specs],
            scope=agent.agent_id,
        )

    def _replace(self, agent: Any, call: ManagedCall) -> None:
        added = [Part({"text": call.system}, None)] if call.system else []
        messages = list(joined_messages([*added, *call.messages]))
        self.removed_message_count += max(0, len(agent.messages) - len(messages))
        agent.messages[:] = messages
