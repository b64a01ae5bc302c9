"""The scopes of a framework's agents: each agent's calls are in sessions with its name.

A framework calls its callbacks on the thread or in the task of the model call that follows, so the scope is set
for that call and given back after it. The calls themselves are seen by the observed clients.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from windowpane.core.names import check_name
from windowpane.sources.clients.calls import current_scope
from windowpane.sources.conversations.conversations import Scope

_given: Final[ContextVar[Scope | None]] = ContextVar("windowpane_given_session", default=None)
"""The scope that the user set by `session(...)`, outside of the agents' own."""
_tools_of: Final[ContextVar[tuple[str, ...]]] = ContextVar("windowpane_tools_of", default=())
"""The runs of agents whose tools are under way, one in the other: an agent that a tool runs is below the last."""


def enter_agent(agent: str, run: str, parent_run: str = "") -> None:
    """Assign the next calls to sessions of *agent*.

    *run* is one run of it, and *parent_run* the run that started it or handed the conversation over, by default
    the one whose tool is under way. Within a named session the first agent's calls belong to that session, and
    those of the others to sessions below it.
    """
    exit_tool(run)
    parent_run = parent_run or next(reversed(_tools_of.get()), "")
    scope = current_scope.get()
    if scope is None or not scope.run:
        _given.set(scope)
    given = _given.get()
    check_name("agent", agent)
    if given is None or given.session_id is None:
        current_scope.set(Scope(agent, run=run, parent_run=parent_run))
    elif parent_run:
        child = Scope(
            agent,
            None,
            given.limit_tokens,
            given.session_id,
            project=given.project,
            run=run,
            parent_run=parent_run,
        )
        current_scope.set(child)
    else:
        current_scope.set(given)


def enter_tool(run: str) -> None:
    """Note that a tool of an agent starts, which may run other agents."""
    exit_tool(run)
    _tools_of.set((*_tools_of.get(), run))


def exit_tool(run: str) -> None:
    """Note that a tool of an agent has ended, and with it every tool inside it."""
    runs = _tools_of.get()
    if run in runs:
        _tools_of.set(runs[: runs.index(run)])


def exit_agent() -> None:
    """Give the scope back that was set before `enter_agent`."""
    scope = current_scope.get()
    if scope is not None and scope.run:
        current_scope.set(_given.get())
