"""The long recording managed again in a small window, so that policies act and alerts fire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from windowpane.core.events import Event, SessionEnded
from windowpane.models.tokens import counter_for
from windowpane.replay.managed import RerunOptions, managed_events
from windowpane.sources.base import ModelCalled, SessionOpened

if TYPE_CHECKING:
    from windowpane.core.protocols import Digester
    from windowpane.demo.recordings import Recorded


def rerun_events(recorded: Recorded, *, limit_tokens: int, digest: Digester) -> Iterator[Event]:
    """The events of *recorded* managed in a window of *limit_tokens*; it is left running, as the others are."""
    size = f"{limit_tokens // 1_024}k"
    rerun = RerunOptions(
        session_id=f"{recorded.source}-managed-{size}",
        limit_tokens=limit_tokens,
        counter=counter_for(_model_of(recorded), wait=True),
        digest=digest,
        agent=f"{recorded.source}-managed-{size}",
    )
    for event in managed_events(recorded.records, key=recorded.key, rerun=rerun):
        if not isinstance(event.data, SessionEnded):
            yield event


def _model_of(recorded: Recorded) -> str:
    """The model most of the recording's calls went to; the one it opens with where none is named."""
    models = [record.model for record in recorded.records if isinstance(record, ModelCalled) and record.model]
    models = models or [record.model for record in recorded.records if isinstance(record, SessionOpened)]
    return max(set(models), key=models.count, default="")
