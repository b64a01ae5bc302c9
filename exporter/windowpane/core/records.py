"""Immutable records that are cheap to make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A slotted dataclass that is frozen for the type checker, and not checked again at run time.

    A dataclass with `frozen=True` writes every field through `object.__setattr__`, which makes construction about
    four times as slow. Records made on the agent's own thread use this instead; everything else is really frozen.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
