"""Names the agents of CrewAI by its hooks around the calls of models and tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windowpane.sources.clients.agent_scopes import enter_agent, enter_tool, exit_agent, exit_tool
from windowpane.sources.clients.calls import boundary


def crewai_hooks() -> Callable[[], None]:
    """Register hooks by which observed calls are in sessions with the roles of their agents.

    Use it once, before the crews are made, beside `observe_everything()`. A coworker to whom an agent delegates
    has a child session. Returns a function that removes the hooks.
    """
    from crewai import hooks

    registered = {
        "before_llm_call": _before_call,
        "after_llm_call": _after_call,
        "before_tool_call": _before_tool,
        "after_tool_call": _after_tool,
    }
    for name, hook in registered.items():
        getattr(hooks, f"register_{name}_hook")(hook)

    def remove() -> None:
        for name, hook in registered.items():
            getattr(hooks, f"unregister_{name}_hook")(hook)

    return remove


def _before_call(context: Any) -> None:
    """Assign the call to its agent; without one it stays where it is."""
    with boundary.contain("reading a call of CrewAI"):
        if context.agent is not None:
            enter_agent(str(context.agent.role).strip(), _run(context))


def _after_call(context: Any) -> None:
    """End the assignment."""
    del context
    exit_agent()


def _before_tool(context: Any) -> None:
    """Note the agent whose tool starts: the tool may delegate to another one."""
    with boundary.contain("reading a tool of CrewAI"):
        if context.agent is not None:
            enter_tool(_run(context))


def _after_tool(context: Any) -> None:
    """Note that it has ended."""
    with boundary.contain("reading a tool of CrewAI"):
        if context.agent is not None:
            exit_tool(_run(context))


def _run(context: Any) -> str:
    return f"crewai {id(context.agent)}"
