"""Runs the Claude Agent SDK, with its own Claude Code, against the scripted provider.

Usage: python -m tests.providers.claude_agent_run STORE FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.providers.formats import Call, Reply
from tests.providers.loopback import loopback_provider

import windowpane
from windowpane.observer.clients.claude_agent_sdk import imports

IMPORT_SECONDS = 60.0


async def converse(url: str, folder: Path) -> None:
    from claude_agent_sdk import ClaudeAgentOptions, query

    options = ClaudeAgentOptions(
        model="claude-sonnet-4-5", allowed_tools=["Bash", "Agent"], max_turns=6, cwd=folder,
        hooks=windowpane.claude_agent_hooks(),
        env={
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k", "HOME": str(folder), "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )  # fmt: skip
    async for message in query(prompt="Say hello.", options=options):
        if type(message).__name__ == "ResultMessage":
            print(message.session_id)


def main() -> None:
    store, folder = map(Path, sys.argv[1:])
    windowpane.start(port=0, store=store, notify=[])
    hello = Call("Bash", {"command": "echo hello", "description": "Say hello"}, f"toolu_{'0' * 20}")
    look = Call(
        "Agent",
        {"description": "Look", "prompt": "What is hello?", "subagent_type": "general-purpose"},
        f"toolu_{'1' * 20}",
    )
    with loopback_provider() as provider:
        provider.script = [
            Reply(text="", calls=(hello,), number=1), Reply(text="", calls=(look,), number=2),
            *(Reply(text="Done.", number=number) for number in (3, 4, 5)),
        ]  # fmt: skip
        asyncio.run(converse(provider.url, folder))
    imports.flush(IMPORT_SECONDS)
    windowpane.stop()


if __name__ == "__main__":
    main()
