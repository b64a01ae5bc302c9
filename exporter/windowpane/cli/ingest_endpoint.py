"""The parts of `windowpane serve --ingest`: from requests of agents on other hosts to events in the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from windowpane.remote.access import IngestAccess
from windowpane.remote.endpoint import IngestEndpoint
from windowpane.remote.group_commit import GroupCommit
from windowpane.serve.routes import Health

if TYPE_CHECKING:
    from windowpane.serve.routes import Routes
    from windowpane.serve.store_exporter import StoreExporter
    from windowpane.store.store import Store

INGEST_CONNECTIONS: Final = 256
"""Connections open at once: a sender keeps one while its events are being stored."""


@contextmanager
def ingesting(store: Store, serving: StoreExporter, routes: Routes, access: IngestAccess) -> Iterator[Routes]:
    """Yield *routes* with the endpoint that receives events, until the block ends and everything is stored."""

    def on_stored(seconds: float) -> None:
        serving.internal.record_store_write(seconds)
        serving.wake()

    def health() -> Health:
        served = routes.health()
        details = {**served.details, "waiting_events": commits.waiting_events}
        if commits.problem:
            details["store_problem"] = commits.problem
        return replace(served, degraded=served.degraded or bool(commits.problem), details=details)

    commits = GroupCommit(store, on_stored=on_stored)
    endpoint = IngestEndpoint(commits, project_of=access.project)
    commits.start()
    try:
        yield replace(
            routes,
            posts={**routes.posts, **endpoint.posts},
            authorized=dict.fromkeys(endpoint.posts, access.accepts) if access.needs_token else {},
            health=health,
        )
    finally:
        commits.close()
