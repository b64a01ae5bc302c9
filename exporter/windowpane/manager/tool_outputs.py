"""What a tool gave back: its text, and the images and documents in it, which are never counted as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
MEDIA_PARTS: Final = frozenset(
    {"image", "image_url", "input_image", "document", "file", "input_file", "audio", "input_audio"}
)


@dataclass(frozen=True, slots=True)
class Output:
    """An output as it enters the window."""

    text: str
    media: tuple[Mapping[str, Any], ...] = ()
    """Content parts as they came; the text says that they are there."""
    is_error: bool = False
    """Whether the tool failed."""


def read_output(output: object) -> Output:
    """The output of a tool: a text, content parts, what it raised, or anything else as JSON."""
    if isinstance(output, str):
        return Output(output)
    if output is None:
        return Output("")
    if isinstance(output, bytes | bytearray):
        return Output(output.decode("utf-8", "replace"))
    if isinstance(output, BaseException):
        return Output(f"{type(output).__name__}: {output}", is_error=True)
    if not isinstance(output, list | tuple) or not any(_kind(part) in MEDIA_PARTS for part in output):
        texts = _texts(output)
        return Output(_json(output) if texts is None else texts)
    media = tuple(part for part in output if _kind(part) in MEDIA_PARTS)
    rest = [part for part in output if _kind(part) not in MEDIA_PARTS]
    said = [part["text"] if _is_text(part) else _json(part) for part in rest]
    kinds = [str(part["type"]).removeprefix("input_").removesuffix("_url") for part in media]
    return Output("\n".join([*said, *(f"[{kind}]" for kind in kinds)]), media)


def _texts(output: object) -> str | None:
    """Text parts as one text; None for anything else."""
    if isinstance(output, list | tuple) and output and all(_is_text(part) for part in output):
        return "\n".join(part["text"] for part in output)
    return None


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str)


def _kind(part: object) -> object:
    return part.get("type") if isinstance(part, Mapping) else None


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or a value that holds itself
        return str(value)
