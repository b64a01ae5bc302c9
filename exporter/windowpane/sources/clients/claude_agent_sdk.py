"""Records the sessions of the Claude Agent SDK from their transcripts, which its hooks name.

The SDK runs Claude Code as another process, which makes the calls itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from windowpane.core.store_names import full_name
from windowpane.outputs.runtime.current import running_outputs
from windowpane.outputs.runtime.task_queue import TaskQueue
from windowpane.sources.clients.calls import boundary
from windowpane.sources.hooks.input import configured_store
from windowpane.sources.hooks.transcript import start_import, store_problem

EVENTS: Final = ("Stop", "SubagentStop", "PreCompact")
"""Hooks after which the transcript holds a whole reply, or the window before a compaction."""
IMPORT_SECONDS: Final = 300.0

imports: Final = TaskQueue("transcripts", linger_seconds=0)


def claude_agent_hooks(store: str | Path | None = None) -> dict[Any, list[Any]]:
    """Return hooks that import the transcript of each session, with its sub-agents, into *store*.

    Use it in `ClaudeAgentOptions(hooks=windowpane.claude_agent_hooks())`. Without *store* it is that of
    `windowpane.start()`, else the configured one. The agent does not wait for an import.
    """
    from claude_agent_sdk import HookMatcher

    async def import_transcript(hook: Any, _tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        """Import the transcript in a separate process."""
        with boundary.contain("importing a transcript of the Claude Agent SDK"):
            transcript, name = str(hook["transcript_path"]), _store_name(store)
            imports.put("importing a transcript", lambda: _import(transcript, name))
        return {}

    return {event: [HookMatcher(hooks=[import_transcript])] for event in EVENTS}


def _store_name(store: str | Path | None) -> str | None:
    outputs = running_outputs()
    if store is not None or outputs is None:
        return None if store is None else str(store)
    return full_name(outputs.config.store.path)


def _import(transcript: str, store: str | None) -> None:
    """Import one transcript, one after the other: two imports of one session would wait for each other."""
    if problem := store_problem(configured_store(store)):
        boundary.warn("store", "sessions of the Claude Agent SDK are not recorded: %s", problem)
    elif Path(transcript).is_file():
        start_import(transcript, store).wait(IMPORT_SECONDS)
