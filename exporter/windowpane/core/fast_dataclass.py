"""A dataclass decorator for immutable values made on the agent's thread, or for every line of a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def fast_dataclass(cls: type[T]) -> type[T]:
    """Make *cls* a slotted dataclass that is frozen for the type checker, and not checked again at run time.

    A dataclass with `frozen=True` writes every field through `object.__setattr__`, which makes construction about
    four times as slow. Only values made on the agent's thread, or for every line of a recording, use this
    decorator; all others are frozen.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
