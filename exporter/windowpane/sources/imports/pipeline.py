"""The import pipeline: readers, tracker, alert engine and store, composed once.

`sources` does not know of alerts, nor the store of recordings. Here a recorded session gets the same as a live
one: exact or estimated counts, a window size and prices, a fidelity probe for every compression, and the alerts
it would have fired, which are stored and never delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from windowpane.alerts.engine import AlertEngine
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.core.version import package_version
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.rule_survival import RuleFollower
from windowpane.models.catalog import packaged_catalog
from windowpane.models.tokens import counter_for, image_tokens
from windowpane.sources.transcripts.playback_settings import PlaybackSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.alerts.rules import Rule
    from windowpane.config.schema import Config
    from windowpane.core.events import Event, FidelityEvaluated
    from windowpane.core.protocols import Digester
    from windowpane.core.window.blocks import Block
    from windowpane.sources.transcripts.playback_settings import AgentSettings, SessionHistory, StoredProjects
    from windowpane.store.records import ImportOutcome
    from windowpane.store.store import Store


def playback_settings(
    digest: Digester,
    *,
    limit_tokens: int | None = None,
    agent: str | None = None,
    model: str = "",
    with_fidelity: bool = True,
    config: Config | None = None,
    history: SessionHistory | None = None,
    stored_projects: StoredProjects | None = None,
    agent_settings: AgentSettings | None = None,
) -> PlaybackSettings:
    """Return settings with the packaged vocabularies and catalog, under which events are deterministic.

    *config* holds the thresholds of zones, the settings of the tracker and whether a session is titled by its
    first message and which project it belongs to; None for the defaults.
    *history* is the store's record of the agents' earlier sessions, *stored_projects* that of their projects.
    *agent_settings* reads the settings of the agents on this machine, for live sessions.
    """
    if limit_tokens is not None and limit_tokens > MAXIMUM_TOKENS:
        raise ConfigurationError(
            "limit", f"{limit_tokens} is not a window size", expected=f"at most {MAXIMUM_TOKENS}"
        )
    return PlaybackSettings(
        digest=digest,
        counter_for=partial(counter_for, wait=True),
        catalog=packaged_catalog(),
        limit_tokens=limit_tokens,
        agent=agent,
        model=model,
        settings=None if config is None else config.tracker_settings(),
        thresholds=None if config is None else config.thresholds(),
        evaluate=_probe if with_fidelity else None,
        follow_rules=RuleFollower if with_fidelity else None,
        media_tokens=image_tokens,
        history=history,
        first_message_titles=config is None or config.store.first_message_titles,
        project="" if config is None else config.project,
        release=package_version(),
        stored_projects=stored_projects,
        agent_settings=agent_settings,
    )


def _probe(
    removed: Sequence[Block], visible: Sequence[Block], *, digest: Digester, of: str | None = None
) -> FidelityEvaluated:
    from windowpane.fidelity.probe import evaluate  # most recordings hold no compression

    return evaluate(removed, visible, digest=digest, of=of)


class AlertingStore:
    """A store for the importer that stores each recorded session with the alerts it would have fired.

    *rules* are those of the configuration; None for the defaults.
    """

    def __init__(self, store: Store, *, rules: Sequence[Rule] | None = None) -> None:
        self._store = store
        self._rules = rules

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Store a recorded session and its alerts; the same recording gives the same bytes."""
        return self._store.import_session(lambda: AlertEngine(self._rules).interleave(events()))
