"""Content in the shape of Google's GenAI API: parts of text, thoughts, calls, responses and media."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from windowpane.models.wire.gemini import result_text
from windowpane.sources.transcripts.json_lines import as_json, mapping, sequence, text


class Part(NamedTuple):
    """One part of a message."""

    kind: str
    """`text`, `thought`, `call`, `response`, `media`, or the name of a field that is not known."""
    text: str = ""
    call_id: str | None = None
    name: str | None = None


def parts_of(content: object) -> Iterator[Part]:
    """Yield the parts of a message's content, which is a text, a part, or a list of both."""
    for value in content if isinstance(content, list) else [content]:
        if isinstance(value, str):
            yield Part("text", value)
        elif isinstance(value, dict) and value:
            yield _part(value)


def _part(value: dict[str, Any]) -> Part:
    if isinstance(value.get("text"), str):
        return Part("thought" if value.get("thought") is True else "text", value["text"])
    if "functionCall" in value:
        call = mapping(value["functionCall"])
        arguments = as_json(call.get("args"))
        return Part("call", arguments, text(call.get("id")) or None, text(call.get("name")) or None)
    if "functionResponse" in value:
        answer = mapping(value["functionResponse"])
        written = response_text(answer.get("response"))
        return Part("response", written, text(answer.get("id")) or None, text(answer.get("name")) or None)
    if "inlineData" in value or "fileData" in value:
        return Part("media")
    return Part(str(next(iter(value)))[:64])


def response_text(response: object) -> str:
    """Return the text of a tool's response."""
    if response is None or isinstance(response, str):
        return response or ""
    return result_text(response)


def written_text(contents: object) -> str:
    """Return all text of a list of messages in the API's shape, as a replacement of a history."""
    return "\n".join(
        part.text
        for content in sequence(contents)
        for part in parts_of(mapping(content).get("parts") or mapping(content).get("content"))
        if part.text
    )
