"""Names the agents of Google's ADK by the callbacks of a plugin."""

from __future__ import annotations

from collections import OrderedDict
from functools import wraps
from types import ModuleType, new_class
from typing import Any, Final

from windowpane.sources.clients.agent_scopes import enter_agent, enter_tool, exit_agent, exit_tool
from windowpane.sources.clients.calls import WatchedClient, boundary
from windowpane.sources.clients.methods import Restore

BASE_MODULE: Final = "google.adk.plugins.plugin_manager"
"""The module of the class that holds the plugins of a runner."""
NAME: Final = "windowpane"
MAXIMUM_AGENTS: Final = 10_000


def adk_plugin() -> Any:
    """Return a plugin by which observed calls are in sessions with the names of their agents.

    Use it in `Runner(..., plugins=[windowpane.adk_plugin()])` with an observed client; `observe_everything()`
    adds it to every runner that is made later. A sub-agent has a child session, and so has the agent of an
    `AgentTool`.
    """
    from google.adk.plugins.base_plugin import BasePlugin

    return new_class("WindowpanePlugin", (PluginMethods, BasePlugin))(name=NAME)


def watch_all_google_adk(module: ModuleType, _watched: WatchedClient) -> list[Restore]:
    """Add the plugin to the runners that are made from now on, unless they have it."""
    manager: Any = module.PluginManager
    made = manager.__init__

    @wraps(made)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        with boundary.contain("naming the agents of ADK"):
            if self.get_plugin(NAME) is None:
                self.register_plugin(adk_plugin())

    manager.__init__ = make
    return [lambda: setattr(manager, "__init__", made)]


class PluginMethods:
    """The methods of the plugin. Each returns None, which changes nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)  # type: ignore[call-arg]  # of the plugin's class
        self._parents: OrderedDict[str, str] = OrderedDict()
        """Runs of agents, and the run of the agent above each."""

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Note the agent above one that starts."""
        with boundary.contain("reading an agent of ADK"):
            above = getattr(agent, "parent_agent", None)
            if above is not None:
                self._parents[_run(callback_context, agent.name)] = _run(callback_context, above.name)
                if len(self._parents) > MAXIMUM_AGENTS:
                    self._parents.popitem(last=False)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Assign the call to its agent."""
        del llm_request
        with boundary.contain("reading a call of ADK"):
            name = callback_context.agent_name
            run = _run(callback_context, name)
            enter_agent(name, run, self._parents.get(run, ""))

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """End the assignment."""
        del callback_context, llm_response
        exit_agent()

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        """End the assignment."""
        del callback_context, llm_request, error
        exit_agent()

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Note the agent whose tool starts: the tool may be another agent."""
        del tool, tool_args
        with boundary.contain("reading a tool of ADK"):
            enter_tool(_run(tool_context, tool_context.agent_name))

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        """Note that it has ended."""
        del tool, tool_args, result
        with boundary.contain("reading a tool of ADK"):
            exit_tool(_run(tool_context, tool_context.agent_name))

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception
    ) -> None:
        """Note that it has failed."""
        await self.after_tool_callback(tool=tool, tool_args=tool_args, tool_context=tool_context, result=error)


def _run(context: Any, agent: str) -> str:
    return f"{context.session.id} {agent}"
