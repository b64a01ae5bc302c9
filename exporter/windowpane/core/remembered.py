"""Values of a function that are remembered: texts repeat their words, so each is only read the first time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=str | bytes)
V = TypeVar("V")

MAXIMUM_REMEMBERED: Final = 50_000
"""Arguments whose values are remembered by default; one more starts anew."""
MAXIMUM_LENGTH: Final = 200
"""The value of a longer argument is computed each time."""


class Remembered(dict[K, V], Generic[K, V]):
    """The values of a function by its arguments; faster than a call where most are remembered."""

    def __init__(self, function: Callable[[K], V], *, maximum: int = MAXIMUM_REMEMBERED) -> None:
        super().__init__()
        self._function = function
        self._maximum = maximum

    def __missing__(self, argument: K) -> V:
        value = self._function(argument)
        if len(argument) <= MAXIMUM_LENGTH:
            if len(self) >= self._maximum:
                self.clear()
            self[argument] = value
        return value
