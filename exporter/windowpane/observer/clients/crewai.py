"""Names the agents of CrewAI by its hooks around the calls of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windowpane.observer.clients.agent_scopes import enter_agent, exit_agent
from windowpane.observer.clients.calls import boundary


def crewai_hooks() -> Callable[[], None]:
    """Register hooks by which observed calls are in sessions with the roles of their agents.

    Use it once, before the crews are made, beside `observe_everything()`. Returns a function that removes the
    hooks.
    """
    from crewai.hooks import (
        register_after_llm_call_hook,
        register_before_llm_call_hook,
        unregister_after_llm_call_hook,
        unregister_before_llm_call_hook,
    )

    register_before_llm_call_hook(_before)
    register_after_llm_call_hook(_after)

    def remove() -> None:
        unregister_before_llm_call_hook(_before)
        unregister_after_llm_call_hook(_after)

    return remove


def _before(context: Any) -> None:
    """Assign the call to its agent; without one it stays where it is."""
    with boundary.contain("reading a call of CrewAI"):
        agent = context.agent
        if agent is not None:
            enter_agent(str(agent.role).strip(), f"crewai {id(agent)}")


def _after(context: Any) -> None:
    """End the assignment."""
    del context
    exit_agent()
