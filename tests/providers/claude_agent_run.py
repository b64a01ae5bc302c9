"""Runs the Claude Agent SDK, with its own Claude Code, against the scripted provider.

Usage: python -m tests.providers.claude_agent_run STORE FOLDER

The session `bare` holds the requests of its main agent, sent by a bare client without what the SDK does not hand
over: the system prompt, the tools, and the reminders that Claude Code adds to messages and results.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.providers.agent_runs import bare_client
from tests.providers.documented import execute
from tests.providers.formats import DOCUMENTS, Call, Reply
from tests.providers.loopback import LoopbackProvider, Request, input_tokens, loopback_provider

import windowpane
from windowpane.models.tokens import counter_for
from windowpane.sources.clients.claude_agent_sdk import imports

IMPORT_SECONDS = 60.0
QUESTION = "Say hello."


async def converse(url: str, folder: Path) -> None:
    from claude_agent_sdk import ClaudeAgentOptions, query

    hooks = execute(
        "docs/observing.md", "ClaudeAgentOptions(", windowpane=windowpane, ClaudeAgentOptions=ClaudeAgentOptions
    )
    options = replace(
        hooks["options"], model="claude-sonnet-4-5", allowed_tools=["Bash", "Agent"], max_turns=6, cwd=folder,
        env={
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k", "HOME": str(folder), "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )  # fmt: skip
    async for message in query(prompt=QUESTION, options=options):
        if type(message).__name__ == "ResultMessage":
            print(message.session_id)


def send_visible(exchanges: Sequence[tuple[Request, Reply]], provider: LoopbackProvider) -> None:
    """Send what the SDK hands over of each request; the reply reports the input of the whole request."""
    client = bare_client("anthropic", provider)
    for request, reply in exchanges:
        whole = request.body
        provider.document = DOCUMENTS["messages"](replace(reply, input_tokens=input_tokens(whole)))
        messages = [{**one, "content": visible_parts(one["content"])} for one in whole["messages"]]
        client.messages.create(model=whole["model"], max_tokens=whole["max_tokens"], messages=messages)


def visible_parts(content: str | list[Any]) -> list[Any]:
    """Return the parts of a message without the reminders in them."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [visible for part in parts if (visible := visible_part(part)) is not None]


def visible_part(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a part without reminders and marks for the cache; None where nothing else is in it."""
    part = {name: value for name, value in part.items() if name != "cache_control"}
    if part["type"] == "tool_result":
        content = part["content"]
        return {**part, "content": visible_text(content) if isinstance(content, str) else visible_parts(content)}
    if part["type"] != "text":
        return part
    text = visible_text(part["text"])
    return {**part, "text": text} if text else None


def visible_text(text: str) -> str:
    """Return a text without reminders, except for the notification of a task, which the transcript has."""
    notification = re.search("<task-notification>.*</task-notification>", text, flags=re.DOTALL)
    if notification is not None:
        return notification[0]
    return re.sub("<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL).strip()


def main() -> None:
    store, folder = map(Path, sys.argv[1:])
    windowpane.start(port=0, store=store, notify=[])
    counter_for("claude-sonnet-4-5", wait=True)
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
        replies = list(provider.script)
        asyncio.run(converse(provider.url, folder))
        imports.flush(IMPORT_SECONDS)
        exchanges = list(zip(provider.requests, replies, strict=False))
        main_agent = [one for one in exchanges if QUESTION in json.dumps(one[0].body["messages"])]
        with windowpane.session(session_id="bare"):
            send_visible(main_agent, provider)
    windowpane.stop()


if __name__ == "__main__":
    main()
