"""Observability for the context windows of LLM agents.

`start()` sets up the outputs of a process; `observe()` watches a client's calls; `ContextWindowManager` keeps one
session's window healthy and reports everything that happens to it. Names are loaded when they are first used, so
importing the package takes almost no time.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing itself takes as long to load as the interpreter
if TYPE_CHECKING:
    from typing import Any, Final

    from windowpane.agents.frameworks.langchain import langchain_middleware
    from windowpane.agents.frameworks.openai_agents import agents_input_filter
    from windowpane.agents.frameworks.pydantic_ai import pydantic_ai_processor
    from windowpane.agents.frameworks.strands import strands_conversation_manager
    from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager, default_dependencies
    from windowpane.agents.spans import WindowSpanProcessor
    from windowpane.core.events import Event
    from windowpane.core.limits import Thresholds
    from windowpane.effects.commands import CompactionProposal
    from windowpane.evaluation.suite.judges import string_match
    from windowpane.exceptions import ConfigurationError, IrreducibleContextError, WindowpaneError
    from windowpane.fidelity.judge.sampling import JudgeSampling, SampledJudge
    from windowpane.manager.budget import Ruling
    from windowpane.manager.dependencies import Dependencies
    from windowpane.manager.messages import AnthropicMessages
    from windowpane.manager.plans.policies import Policy
    from windowpane.manager.plans.subagent_delegation import SubagentResult, Subtask
    from windowpane.manager.presets.ai_sdk_go import Custom, DropOldest, SlidingWindow, Summarize, ai_sdk_go
    from windowpane.manager.presets.baseagent import baseagent
    from windowpane.manager.presets.picoclaw import picoclaw
    from windowpane.manager.presets.registry import Preset
    from windowpane.manager.settings import EngineSettings
    from windowpane.manager.status import Decision, Status
    from windowpane.manager.step import Step
    from windowpane.manager.steps.completion import Completion
    from windowpane.models.language_models import AnyLanguageModel, anthropic_model, openai_model
    from windowpane.outputs.runtime.start import Runtime, start, stop
    from windowpane.sources.clients.api import litellm_callback, observe, observe_everything, session
    from windowpane.sources.clients.claude_agent_sdk import claude_agent_hooks
    from windowpane.sources.clients.crewai import crewai_hooks
    from windowpane.sources.clients.google_adk import adk_plugin
    from windowpane.sources.clients.openai_agents import agents_trace_processor

    __version__: str

__all__ = [
    "AnthropicMessages",
    "AnyLanguageModel",
    "AsyncContextWindowManager",
    "CompactionProposal",
    "Completion",
    "ConfigurationError",
    "ContextWindowManager",
    "Custom",
    "Decision",
    "Dependencies",
    "DropOldest",
    "EngineSettings",
    "Event",
    "IrreducibleContextError",
    "JudgeSampling",
    "Policy",
    "Preset",
    "Ruling",
    "Runtime",
    "SampledJudge",
    "SlidingWindow",
    "Status",
    "Step",
    "SubagentResult",
    "Subtask",
    "Summarize",
    "Thresholds",
    "WindowSpanProcessor",
    "WindowpaneError",
    "__version__",
    "adk_plugin",
    "agents_input_filter",
    "agents_trace_processor",
    "ai_sdk_go",
    "anthropic_model",
    "baseagent",
    "claude_agent_hooks",
    "crewai_hooks",
    "default_dependencies",
    "langchain_middleware",
    "litellm_callback",
    "observe",
    "observe_everything",
    "openai_model",
    "picoclaw",
    "pydantic_ai_processor",
    "session",
    "start",
    "stop",
    "strands_conversation_manager",
    "string_match",
]

_HOMES: Final = {
    "AnthropicMessages": "windowpane.manager.messages",
    "AnyLanguageModel": "windowpane.models.language_models",
    "AsyncContextWindowManager": "windowpane.agents.managers",
    "CompactionProposal": "windowpane.effects.commands",
    "Completion": "windowpane.manager.steps.completion",
    "ConfigurationError": "windowpane.exceptions",
    "ContextWindowManager": "windowpane.agents.managers",
    "Custom": "windowpane.manager.presets.ai_sdk_go",
    "Decision": "windowpane.manager.status",
    "Dependencies": "windowpane.manager.dependencies",
    "DropOldest": "windowpane.manager.presets.ai_sdk_go",
    "EngineSettings": "windowpane.manager.settings",
    "Event": "windowpane.core.events",
    "IrreducibleContextError": "windowpane.exceptions",
    "JudgeSampling": "windowpane.fidelity.judge.sampling",
    "Policy": "windowpane.manager.plans.policies",
    "Preset": "windowpane.manager.presets.registry",
    "Ruling": "windowpane.manager.budget",
    "Runtime": "windowpane.outputs.runtime.start",
    "SampledJudge": "windowpane.fidelity.judge.sampling",
    "SlidingWindow": "windowpane.manager.presets.ai_sdk_go",
    "Status": "windowpane.manager.status",
    "Step": "windowpane.manager.step",
    "SubagentResult": "windowpane.manager.plans.subagent_delegation",
    "Subtask": "windowpane.manager.plans.subagent_delegation",
    "Summarize": "windowpane.manager.presets.ai_sdk_go",
    "Thresholds": "windowpane.core.limits",
    "WindowSpanProcessor": "windowpane.agents.spans",
    "WindowpaneError": "windowpane.exceptions",
    "adk_plugin": "windowpane.sources.clients.google_adk",
    "agents_input_filter": "windowpane.agents.frameworks.openai_agents",
    "agents_trace_processor": "windowpane.sources.clients.openai_agents",
    "ai_sdk_go": "windowpane.manager.presets.ai_sdk_go",
    "anthropic_model": "windowpane.models.language_models",
    "baseagent": "windowpane.manager.presets.baseagent",
    "claude_agent_hooks": "windowpane.sources.clients.claude_agent_sdk",
    "crewai_hooks": "windowpane.sources.clients.crewai",
    "default_dependencies": "windowpane.agents.managers",
    "langchain_middleware": "windowpane.agents.frameworks.langchain",
    "litellm_callback": "windowpane.sources.clients.api",
    "observe": "windowpane.sources.clients.api",
    "observe_everything": "windowpane.sources.clients.api",
    "openai_model": "windowpane.models.language_models",
    "picoclaw": "windowpane.manager.presets.picoclaw",
    "pydantic_ai_processor": "windowpane.agents.frameworks.pydantic_ai",
    "session": "windowpane.sources.clients.api",
    "start": "windowpane.outputs.runtime.start",
    "stop": "windowpane.outputs.runtime.start",
    "strands_conversation_manager": "windowpane.agents.frameworks.strands",
    "string_match": "windowpane.evaluation.suite.judges",
}
"""Public name to the module that defines it."""


def __getattr__(name: str) -> Any:
    """Return a public name from its module, or the version of the installed package."""
    if name == "__version__":
        from windowpane.core.version import package_version

        return package_version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
