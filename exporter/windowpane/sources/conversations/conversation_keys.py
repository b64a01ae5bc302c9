"""The parts of a call by which its conversation is recognized: its opening, and what a model generated in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from windowpane.core.same_session import UNIQUE_ID_CHARACTERS
from windowpane.models.wire.calls import MESSAGE_READERS, ApiCall, is_system, message_blocks
from windowpane.models.wire.messages import BlockSpec, Key, field_of
from windowpane.models.wire.responses import COMPACTIONS

SEARCHED_MESSAGES: Final = 64
"""Messages, from the last, that are searched for generated pieces."""
UNIQUE_TEXT_CHARACTERS: Final = 80
"""A reply of at least this length is unique enough, beside a message in common."""
START_CHARACTERS: Final = 32
"""Characters of the first message by which conversations are indexed: it may grow at its end."""

REPLY_MESSAGES: Final = 4
"""Messages after those of the last call in which its reply is looked for first."""
COMPARED_CHARACTERS: Final = 10_000
"""Characters of a system prompt that are compared with another one."""

MODEL_ROLES: Final = ("assistant", "model")


def is_text(key: object) -> bool:
    """Return whether a generated piece is text; everything else is an id, such as a summary of the provider."""
    return isinstance(key, Key) and key.content_type not in ("tool_call", "summary")


def is_unique(key: object) -> bool:
    """Return whether a generated piece is long enough to identify its conversation."""
    if not isinstance(key, Key):
        return True
    return len(key.name) >= (UNIQUE_TEXT_CHARACTERS if is_text(key) else UNIQUE_ID_CHARACTERS)


def generated_keys(call: ApiCall) -> Iterator[object]:
    """Yield the keys of content in *call* that its conversation may have generated, latest first."""
    for message in islice(reversed(call.messages), SEARCHED_MESSAGES):
        kind = field_of(message, "type")
        if (
            field_of(message, "role") in MODEL_ROLES
            or (kind is not None and str(kind).endswith("_call"))
            or kind in COMPACTIONS
        ):
            for spec in message_blocks(call.shape, message):
                yield spec.key
        elif field_of(message, "tool_call_id") or str(kind).endswith("_output"):
            call_id = field_of(message, "tool_call_id") or field_of(message, "call_id")
            yield Key("tool_call", str(call_id))


class MessageBlocks:
    """The content of a call's messages, each of which is read once at most."""

    def __init__(self, call: ApiCall) -> None:
        self._call = call
        self._blocks: dict[int, list[BlockSpec]] = {}

    def start(self) -> object:
        """Return the start of the first message after the system prompt, hashable."""
        call = self._call
        first = first_message(call.messages)
        specs = self.between(first, first + 1)[0] if first < len(call.messages) else []
        return (call.shape, specs[0].content_type, specs[0].key.name[:START_CHARACTERS]) if specs else call.shape

    def between(self, start: int, stop: int) -> list[list[BlockSpec]]:
        """Return the blocks of the messages from position *start* up to before *stop*."""
        call, blocks = self._call, self._blocks
        read = MESSAGE_READERS[call.shape]
        positions = range(start, min(stop, len(call.messages)))
        for position in positions:
            if position not in blocks:
                blocks[position] = list(read(call.messages[position]))
        return [blocks[position] for position in positions]

    def hold_any(self, keys: frozenset[object], *, after: int) -> bool:
        """Return whether one of the first messages *after* so many holds content of these *keys*."""
        if not keys:
            return False
        messages = self.between(after, after + REPLY_MESSAGES)
        return any(spec.key in keys for message in messages for spec in message)


def first_message(messages: Sequence[Any]) -> int:
    """Return the position of the first message after the system prompt; the number of messages without one."""
    return next((index for index, message in enumerate(messages) if not is_system(message)), len(messages))


def opening(call: ApiCall) -> int:
    """Return the number of messages up to the first one after the system prompt."""
    first = first_message(call.messages)
    return first + 1 if first < len(call.messages) else 1


def system_prompt(call: ApiCall) -> object:
    """Return the system prompt, sent beside the messages or as the first of them."""
    if call.system is not None:
        return call.system
    first = call.messages[0] if call.messages else None
    return field_of(first, "content") if is_system(first) else None


def is_similar(one: object, other: object) -> bool:
    """Return whether two system prompts differ in one part only, at most half of the shorter: a time, a list."""
    texts = [str(prompt)[:COMPARED_CHARACTERS] for prompt in (one, other)]
    start = _common_characters(*texts)
    end = _common_characters(*(text[start:][::-1] for text in texts))
    return 2 * (start + end) >= min(map(len, texts))


def _common_characters(one: str, other: str) -> int:
    """Return the number of leading characters that two texts share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (first, second) in pairs if first != second), min(len(one), len(other)))
