"""The providers' published message rules as validators; each returns what is wrong, empty when nothing is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def openai_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Chat completions: roles, non-empty content, every call answered once and directly after it."""
    faults: list[str] = []
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id in waiting:
                waiting.remove(str(call_id))
            else:
                faults.append(f"{at}: result {call_id!r} without an open call")
            if not isinstance(message.get("content"), str):
                faults.append(f"{at}: result without text")
            continue
        if waiting:
            faults.append(f"{at}: calls without result: {waiting}")
            waiting = []
        if role not in ("system", "user", "assistant"):
            faults.append(f"{at}: role {role!r}")
        calls = message.get("tool_calls") or []
        if role == "assistant":
            if not calls and not isinstance(message.get("content"), str):
                faults.append(f"{at}: assistant without content or calls")
            ids = [call["id"] for call in calls]
            if len(set(ids)) != len(ids) or not all(ids):
                faults.append(f"{at}: call ids {ids}")
            faults += [f"{at}: arguments" for call in calls if not isinstance(call["function"]["arguments"], str)]
            waiting = list(ids)
        elif not message.get("content"):
            faults.append(f"{at}: {role} without content")
    if waiting:
        faults.append(f"end: calls without result: {waiting}")
    return faults


def anthropic_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Messages API: user first, roles alternate, results open the message after their calls, ids unique."""
    faults: list[str] = []
    seen: set[str] = set()
    if messages and messages[0]["role"] != "user":
        faults.append("the first message is not the user's")
    previous: Mapping[str, Any] | None = None
    for at, message in enumerate(messages):
        if previous is not None and previous["role"] == message["role"]:
            faults.append(f"{at}: two {message['role']} messages in a row")
        content = message["content"]
        if not content:
            faults.append(f"{at}: empty")
        called = [] if previous is None else _ids(previous, "tool_use", "id")
        answered = _ids(message, "tool_result", "tool_use_id")
        if sorted(called) != sorted(answered):
            faults.append(f"{at}: calls {called} but results {answered}")
        kinds = [part["type"] for part in content]
        if "tool_result" in kinds and kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
            faults.append(f"{at}: results are not first")
        for part in content:
            if part["type"] == "text" and not part["text"].strip():
                faults.append(f"{at}: blank text")
            if part["type"] == "tool_use":
                if part["id"] in seen:
                    faults.append(f"{at}: id {part['id']} twice")
                seen.add(part["id"])
                json.dumps(part["input"])
                if not isinstance(part["input"], Mapping):
                    faults.append(f"{at}: input is no object")
        previous = message
    if previous is not None and _ids(previous, "tool_use", "id"):
        faults.append("end: calls without results")
    return faults


def _ids(message: Mapping[str, Any], kind: str, key: str) -> list[str]:
    return [part[key] for part in message["content"] if part["type"] == kind]
