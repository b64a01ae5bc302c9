"""Replies of Gemini's `generateContent` in the form of all providers, whole or as the chunks of a stream.

The clients of Google write names in camel case, their Python objects in snake case: both are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.models.replies import Reply, ReplyPart

_CAPITAL: Final = re.compile(r"[A-Z]")


def member_of(value: object, name: str) -> Any:
    """Return a field by its name in camel case, or in snake case where it is written so."""
    for spelling in (name, _snake(name)):
        field = value.get(spelling) if isinstance(value, Mapping) else getattr(value, spelling, None)
        if field is not None:
            return field
    return None


@cache
def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


def read_gemini_reply(reply: object) -> Reply:
    """Return the first candidate of a reply."""
    return read_gemini_chunks([reply])


def read_gemini_chunks(chunks: Iterable[object]) -> Reply:
    """Return the reply that *chunks* make up; each reports the usage so far."""
    parts: list[Any] = []
    usage: Usage | None = None
    model = stop_reason = response_id = ""
    for chunk in chunks:
        candidate = next(iter(member_of(chunk, "candidates") or ()), None)
        parts += member_of(member_of(candidate, "content"), "parts") or ()
        usage = read_gemini_usage(member_of(chunk, "usageMetadata")) or usage
        model = str(member_of(chunk, "modelVersion") or model)
        response_id = str(member_of(chunk, "responseId") or response_id)
        stop_reason = _text_of(member_of(candidate, "finishReason")) or stop_reason
    read = [_part(part) for part in joined_texts(parts)]
    return Reply(
        tuple(part for part in read if part is not None),
        usage,
        model,
        stop_reason or None,
        unread=tuple(
            sorted({_kind(part) for part, one in zip(joined_texts(parts), read, strict=True) if not one})
        ),
        response_id=response_id,
    )


def read_gemini_usage(usage: object) -> Usage | None:
    """Convert the usage of a reply; None where it states neither what was sent nor what came back.

    The prompt includes what was read from the cache but no results of the provider's own tools, the output no
    thoughts.
    """
    if all(member_of(usage, name) is None for name in ("promptTokenCount", "candidatesTokenCount")):
        return None
    thoughts = _count(usage, "thoughtsTokenCount")
    prompt = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
    return Usage.of_prompt(
        min(prompt, MAXIMUM_TOKENS),
        min(_count(usage, "candidatesTokenCount") + thoughts, MAXIMUM_TOKENS),
        cached=_count(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
    )


def joined_texts(parts: Iterable[Any]) -> list[Any]:
    """Return *parts* with adjacent texts joined: a stream breaks a text into one part per chunk."""
    joined: list[Any] = []
    for part in parts:
        text, last = member_of(part, "text"), joined[-1] if joined else None
        before = member_of(last, "text")
        same_kind = bool(member_of(part, "thought")) == bool(member_of(last, "thought"))
        if isinstance(text, str) and isinstance(before, str) and same_kind:
            joined[-1] = {"text": before + text, "thought": bool(member_of(part, "thought"))}
        else:
            joined.append(part)
    return joined


def _part(part: object) -> ReplyPart | None:
    text, call = member_of(part, "text"), member_of(part, "functionCall")
    if isinstance(text, str):
        return ReplyPart("thinking" if member_of(part, "thought") else "assistant_response", text)
    if call is None:
        return None
    arguments = json.dumps(member_of(call, "args") or {}, ensure_ascii=False)
    call_id = member_of(call, "id")
    return ReplyPart(
        "tool_call", arguments, None if call_id is None else str(call_id), str(member_of(call, "name") or "")
    )


def _kind(part: object) -> str:
    return next((str(name) for name in part), "part") if isinstance(part, Mapping) else type(part).__name__


def _count(usage: object, name: str) -> int:
    count = member_of(usage, name)
    return count if isinstance(count, int) and 0 < count <= MAXIMUM_TOKENS else 0


def _text_of(value: object) -> str:
    """Return an enumerated value as it is on the wire; the client has an object for it."""
    return str(getattr(value, "value", value) or "")
