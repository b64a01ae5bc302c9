"""The messages of Strands beside their form in OpenAI's chat API, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from windowpane.agents.frameworks.messages import FrameworkMessage, Message, assistant_message, tool_message
from windowpane.models.wire.usage import STRANDS


class Part(NamedTuple):
    """A part of a user message, which may be sent in another one."""

    block: dict[str, Any]
    message: Any
    """The message that it was in; None for a part that was made."""


def read_messages(messages: Sequence[Mapping[str, Any]]) -> list[FrameworkMessage]:
    """Return the messages; each part of a user message is one, since parts are removed one by one."""
    read: list[FrameworkMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            calls = [block["toolUse"] for block in blocks if "toolUse" in block]
            names.update((call["toolUseId"], call["name"]) for call in calls)
            text = "\n".join(block["text"] for block in blocks if "text" in block)
            chat = assistant_message(text, [(call["toolUseId"], call["name"], call["input"]) for call in calls])
            usage = STRANDS.read(message.get("metadata", {}).get("usage"))
            read.append(FrameworkMessage(chat, (message,), usage))
        else:
            read += [FrameworkMessage(_chat(block, names), (Part(block, message),)) for block in blocks]
    return read


def _chat(block: Mapping[str, Any], names: Mapping[str, str]) -> Message:
    result = block.get("toolResult")
    if result is None:
        return {"role": "user", "content": block["text"] if "text" in block else [dict(block)]}
    parts = [part.get("text") or str(part.get("json", part)) for part in result["content"]]
    name, failed = names.get(result["toolUseId"], ""), result.get("status") == "error"
    return tool_message(result["toolUseId"], name, "\n".join(parts), is_error=failed)


def read_tool(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool."""
    schema = spec["inputSchema"].get("json", spec["inputSchema"])
    return {"name": spec["name"], "description": spec["description"], "parameters": schema}


def build_messages(chat: Message) -> list[Any]:
    """Return a message that the manager wrote or changed."""
    if chat["role"] == "tool":
        status = "error" if chat.get("is_error") else "success"
        content = [{"text": chat["content"]}]
        return [
            Part({"toolResult": {"toolUseId": chat["tool_call_id"], "status": status, "content": content}}, None)
        ]
    text = chat.get("content") or ""
    if chat["role"] != "assistant":
        return [Part(block, None) for block in ([{"text": text}] if isinstance(text, str) else text)]
    calls = [(call["id"], call["function"]) for call in chat.get("tool_calls") or ()]
    uses = [
        {"toolUse": {"toolUseId": call_id, "name": function["name"], "input": json.loads(function["arguments"])}}
        for call_id, function in calls
    ]
    return [{"role": "assistant", "content": [*([{"text": text}] if text else []), *uses]}]


def joined_messages(pieces: Iterable[Any]) -> Iterator[Any]:
    """Yield messages of alternating roles: neighboring parts of the user are one, unchanged where they were."""
    for is_part, group in groupby(pieces, lambda piece: isinstance(piece, Part)):
        parts = list(group)
        if not is_part:
            yield from parts
            continue
        original = parts[0].message
        whole = [part.block for part in parts]
        yield original if original and original["content"] == whole else {"role": "user", "content": whole}
