"""An agent loop that keeps its own context window healthy, against a model that follows a script.

Run it with `python examples/agent_loop.py`. With a real model, replace `ScriptedProvider`: pass
`messages=window.messages()` and the tools to the client, and its reply to `on_turn_end`. With `--outputs` metrics
are served and events stored while it runs.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import windowpane

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file of the project.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]


class ContextLengthExceededError(Exception):
    """Raised for a request that is too large; real clients raise a `BadRequestError`."""


class ScriptedProvider:
    """Answers like a chat completions client: reads one file after the other, then the first again, and is done.

    It reads the first one again by the handle in the line that replaced it.
    """

    def __init__(self, files: int, *, maximum_tokens: int | None = None) -> None:
        self._files = files
        self._maximum_tokens = maximum_tokens
        self._turn = 0

    def create(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the next reply, with the usage a provider would report."""
        sent = len(json.dumps([messages, tools])) // 4
        if self._maximum_tokens is not None and sent > self._maximum_tokens:
            raise ContextLengthExceededError(
                f"This model's maximum context length is {self._maximum_tokens} tokens. "
                f"However, your messages resulted in {sent} tokens."
            )
        self._turn += 1
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if self._turn <= self._files:
            arguments = json.dumps({"path": f"src/module_{self._turn}.py"})
            message["content"] = f"Decided to keep module_{self._turn} as it is, because its callers rely on it."
            function = {"name": "read_file", "arguments": arguments}
            message["tool_calls"] = [{"id": f"call_{self._turn}", "type": "function", "function": function}]
        elif self._turn == self._files + 1 and (
            original := re.search(r"Original: ([\w:]+)", json.dumps(messages))
        ):
            function = {"name": "read_block", "arguments": json.dumps({"id": original[1]})}
            message["tool_calls"] = [{"id": f"call_{self._turn}", "type": "function", "function": function}]
        else:
            message["content"] = "All modules are reviewed."
        return {
            "object": "chat.completion",
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": sent, "completion_tokens": 40},
        }


def read_file(path: str) -> str:
    """Return a large output, as tools do."""
    lines = [f"def function_{n}():  # {path}, line {n}\n    return {n}" for n in range(60)]
    return f"{len(lines)} functions in {path}\n" + "\n".join(lines)


def review(
    files: int,
    *,
    limit_tokens: int,
    provider_tokens: int | None = None,
    report: Callable[[str], None] = print,
) -> windowpane.ContextWindowManager:
    """Review *files* modules in a window of *limit_tokens*; returns the closed manager.

    The provider refuses calls of more than *provider_tokens*, as one does that counts differently.
    """
    provider = ScriptedProvider(files, maximum_tokens=provider_tokens)
    with windowpane.ContextWindowManager(
        agent="reviewer",
        model="scripted",
        limit_tokens=limit_tokens,
        task_goal="Review every module under src and report what must change.",
        constraints=["Never change a public name."],
    ) as window:
        window.add_system("You review Python code.")
        tools = [*TOOLS, *window.tools()]  # by which the model reads back what was removed
        window.add_tool_definitions(tools)
        window.add_user("Review src, one module after the other.")
        while True:
            decision = window.on_turn_start()
            for line in decision.done:
                report(f"turn {decision.status.turn}: {line}")
            try:
                reply = provider.create(window.messages(), tools)
            except ContextLengthExceededError as error:
                decision = window.on_overflow(error)
                if not decision.retry:
                    raise
                report(
                    f"turn {decision.status.turn}: refused as too large, {decision.freed_tokens:,} tokens freed"
                )
                reply = provider.create(window.messages(), tools)
            window.on_turn_end(reply)
            calls = reply["choices"][0]["message"].get("tool_calls")
            if not calls:
                break
            for call in calls:
                name, arguments = call["function"]["name"], call["function"]["arguments"]
                output = window.call_tool(name, arguments)  # None unless it is one of window.tools()
                if output is None:
                    output = read_file(**json.loads(arguments))
                else:
                    report(f"turn {window.status().turn}: the model reads {arguments}")
                window.on_tool_result(name, output, call["id"])
        report(str(window.status()))
    return window


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=36, help="modules to review")
    parser.add_argument("--limit", type=int, default=16_384, help="size of the context window in tokens")
    parser.add_argument("--provider-limit", type=int, help="tokens above which the provider refuses a call")
    parser.add_argument("--outputs", action="store_true", help="serve metrics and store events while it runs")
    arguments = parser.parse_args()
    if arguments.outputs:
        with windowpane.start() as outputs:
            print(f"metrics at {outputs.url}")
            review(arguments.files, limit_tokens=arguments.limit, provider_tokens=arguments.provider_limit)
            input("Enter ends it. ")
    else:
        review(arguments.files, limit_tokens=arguments.limit, provider_tokens=arguments.provider_limit)


if __name__ == "__main__":
    main()
