"""A store that is opened on another thread: an agent does not wait for a server that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windowpane.store.store import Store


class StoreOpening:
    """One attempt to open a store, which starts at once and continues until it succeeds or fails."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._lock = threading.Lock()  # guards the three below
        self._store: Store | None = None
        self._error: BaseException | None = None
        self._is_discarded = False
        self._thread = threading.Thread(target=self._open, name="windowpane-opening", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> Store | None:
        """Return the store, or None if it is not open within *seconds*. Raises what the attempt raised."""
        self._thread.join(seconds)
        with self._lock:
            if self._error is not None:
                raise self._error
            return self._store

    def discard(self) -> None:
        """Have the store closed, now or as soon as it is open."""
        with self._lock:
            self._is_discarded = True
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _open(self) -> None:
        try:
            store = self._open_store()
        except BaseException as error:  # noqa: BLE001  # raised where the result is awaited
            with self._lock:
                self._error = error
            return
        with self._lock:
            if not self._is_discarded:
                self._store = store
                return
        store.close()
