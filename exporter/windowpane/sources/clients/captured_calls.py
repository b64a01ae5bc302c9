"""Calls as references to the arguments of a client, taken on the agent's thread and read later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from windowpane.models.wire.calls import MESSAGES_FIELD, ApiCall, Shape, parse_call, sent_messages
from windowpane.models.wire.messages import copy_structure

SENDS_OWN_MESSAGES: Final[frozenset[Shape]] = frozenset({"anthropic", "converse"})
"""Shapes whose client sends the agent's own dictionaries. The client of the others sends copies of them."""
JSON_CHARACTERS_PER_MESSAGE: Final = 500


class CapturedCall:
    """References to a call's arguments, taken on the agent's thread; what they refer to is not read there."""

    __slots__ = ("_body", "_read", "message_count", "shape")

    def __init__(self, shape: Shape, body: dict[str, Any]) -> None:
        self.shape: Shape = shape
        messages = body.get(MESSAGES_FIELD[shape]) or ()
        self.message_count = 1 if isinstance(messages, str) else len(messages)
        """The number of its messages."""
        self._body = body
        self._read = False

    def before_return(self) -> None:
        """Copy the messages if the agent is about to get them back unread, and could edit them in place."""
        if not self._read and self.shape in SENDS_OWN_MESSAGES:
            self._body = copy_structure(self._body)

    def read(self) -> ApiCall:
        """Return the call, which shares the agent's messages until `release`."""
        return parse_call(self.shape, self._body)

    def release(self) -> None:
        """Drop the references: what is needed of them was copied."""
        self._read = True
        self._body = {MESSAGES_FIELD[self.shape]: ()}


class CapturedJson(CapturedCall):
    """A call whose body was sent as JSON: the agent cannot edit it, and it is parsed where it is read."""

    __slots__ = ("_json", "_model")

    def __init__(self, shape: Shape, body: str | bytes, model: str) -> None:
        super().__init__(shape, {})
        self.message_count = len(body) // JSON_CHARACTERS_PER_MESSAGE
        self._json: str | bytes | None = body
        self._model = model

    def before_return(self) -> None:
        """Copy nothing."""

    def read(self) -> ApiCall:
        """Return the call."""
        return parse_call(self.shape, {"model": self._model, **json.loads(self._json or "{}")})

    def release(self) -> None:
        """Drop the body."""
        self._json = None


def capture_call(shape: Shape, body: Mapping[str, Any]) -> CapturedCall | None:
    """Return references to the call that *body* requests; None where reading its messages would consume them."""
    field = MESSAGES_FIELD[shape]
    messages = sent_messages(shape, body)
    if not isinstance(messages, list | tuple | str):
        return None
    captured = dict(body)
    if not isinstance(messages, str):
        captured[field] = list(messages)
    return CapturedCall(shape, captured)
