"""Memory and turns that projects share, so that none waits for the many or large requests of another."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedCapacity:
    """An amount of which each project may use at most what then remains free for the others.

    One project alone may use half of it, the second one half of the rest.
    """

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._used = Counter[str]()

    @property
    def used(self) -> int:
        """The used amount of all projects."""
        return self._used.total()

    def take(self, project: str, amount: int) -> bool:
        """Take an amount; return False if too little is free."""
        used = self._used[project] + amount
        if used > self._amount - self.used - amount:
            return False
        self._used[project] = used
        return True

    def take_first(self, project: str, amount: int) -> bool:
        """Take an amount for a project that uses nothing, whatever is free; return False if it uses any."""
        if self._used[project]:
            return False
        self._used[project] = amount
        return True

    def give_back(self, project: str, amount: int) -> None:
        """Free an amount."""
        self._used[project] -= amount
        if not self._used[project]:
            del self._used[project]


class RoundRobin(Generic[T]):
    """Queues of projects; the next item is of the project that was served longest ago."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}
        """The items that wait, by project; none is empty."""
        self._served: dict[str, int] = {}
        """The turn in which each project was served last."""

    def __bool__(self) -> bool:
        """Return whether an item waits."""
        return bool(self._queues)

    def put(self, project: str, item: T) -> None:
        """Add an item behind the others of its project."""
        self._queues.setdefault(project, deque()).append(item)

    @property
    def next(self) -> T:
        """The item that `take` removes, where one waits."""
        return self._queues[self._next_project()][0]

    def take(self) -> T:
        """Remove and return the next item, where one waits."""
        project = self._next_project()
        self._served[project] = max(self._served.values(), default=0) + 1
        queue = self._queues[project]
        item = queue.popleft()
        if not queue:
            del self._queues[project]
        return item

    def _next_project(self) -> str:
        return min(self._queues, key=lambda project: self._served.get(project, 0))


class Turns:
    """A number of slots that waiting projects get in turn; used on one event loop only."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting = RoundRobin[asyncio.Future[None]]()

    @asynccontextmanager
    async def slot(self, project: str) -> AsyncIterator[None]:
        """Hold a slot until the block ends."""
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(project, slot)
        self._give_slots()
        try:
            await slot
            yield
        finally:
            if not slot.cancelled():  # it was given before the request ended
                self._free += 1
                self._give_slots()

    def _give_slots(self) -> None:
        while self._free and self._waiting:
            slot = self._waiting.take()
            if not slot.done():  # its request still waits
                self._free -= 1
                slot.set_result(None)
