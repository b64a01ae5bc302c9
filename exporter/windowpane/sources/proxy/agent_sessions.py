"""The session that a known agent states with each of its requests, by the id that its own recording has.

Agents state it for caches and limits of the provider: in a header, in the request's metadata, or as the key of
the prompt cache. Some name in a header the sub-agent that makes the call, or the session that started it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from windowpane.sources.transcripts.json_document import parse_embedded
from windowpane.sources.transcripts.json_lines import mapping, text
from windowpane.sources.transcripts.playback import MAXIMUM_ID_CHARACTERS, session_id_of

_CLAUDE_USER: Final = re.compile(r"_session_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")


def _claude_session(request: Mapping[str, Any]) -> str:
    """Return the session of Claude Code's metadata: a part of the user id, or a field of the JSON that it is."""
    user = text(mapping(request.get("metadata")).get("user_id"))
    match = _CLAUDE_USER.search(user)
    return match[1] if match else text(mapping(parse_embedded(user)).get("session_id"))


def _cache_key(request: Mapping[str, Any]) -> str:
    return text(request.get("prompt_cache_key"))


def _qwen_session(request: Mapping[str, Any]) -> str:
    return text(mapping(request.get("metadata")).get("sessionId"))


@dataclass(frozen=True, slots=True)
class _Program:
    """Headers and body fields in which one program states its session."""

    source: str
    """Format of its recordings."""
    headers: tuple[bytes, ...]
    """In lower case, the most exact first."""
    in_body: Callable[[Mapping[str, Any]], str]
    parents: tuple[bytes, ...] = ()
    """Headers with the session that started this one, likewise; the session itself has none."""
    subagent: bytes = b""
    """Header with the sub-agent of the session that makes the call."""


_PROGRAMS: Final[Mapping[str, _Program]] = {
    "claude-code": _Program(
        "claude_code", (b"x-claude-code-session-id",), _claude_session, subagent=b"x-claude-code-agent-id"
    ),
    "codex": _Program(
        "codex",
        (b"thread-id", b"conversation_id", b"session_id", b"session-id"),
        _cache_key,
        parents=(b"x-codex-parent-thread-id",),
    ),
    "opencode": _Program(
        "opencode",
        (b"x-opencode-session", b"x-session-affinity", b"x-session-id"),
        _cache_key,
        parents=(b"x-parent-session-id",),
    ),
    "qwen-code": _Program("qwen_code", (), _qwen_session),
}


class StatedSession(NamedTuple):
    """The session in the headers of a request, by the agent's own names; empty where they state none."""

    key: str = ""
    parent_key: str = ""
    """The session that started it."""


def session_in_headers(program: str | None, headers: Sequence[tuple[bytes, bytes]]) -> StatedSession:
    """Return the session that the headers of a request state, and the one that started it."""
    stating = _PROGRAMS.get(program or "")
    if stating is None:
        return StatedSession()
    names = {*stating.headers, *stating.parents, stating.subagent}
    values = {lower: value for name, value in headers if (lower := name.lower()) in names}
    key, parent = _first(values, stating.headers), _first(values, stating.parents)
    subagent = _first(values, (stating.subagent,))
    if key and subagent:
        key, parent = f"{key}/agent-{subagent}"[:MAXIMUM_ID_CHARACTERS], key
    return StatedSession(key, parent if parent != key else "")


def _first(values: Mapping[bytes, bytes], names: Sequence[bytes]) -> str:
    stated = next((values[name] for name in names if name in values), b"")
    return stated.decode("ascii", "replace")[:MAXIMUM_ID_CHARACTERS]


def recorded_session(program: str | None, stated: str, request: Mapping[str, Any]) -> str:
    """Return the id that the session has in the agent's own recording; empty where it is not stated.

    *stated* is what the headers state.
    """
    stating = _PROGRAMS.get(program or "")
    if stating is None:
        return ""
    key = stated or stating.in_body(request)
    return session_id_of(stating.source, key) if key else ""
