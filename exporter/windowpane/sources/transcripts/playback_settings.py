"""Settings for playing a recording: its dependencies, and what overrides the recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from windowpane.core.agents import (
    NO_EARLIER_SESSIONS,
    AgentProgram,
    EarlierSessions,
    EvidentWindow,
    window_of,
)
from windowpane.core.events import FidelityEvaluated
from windowpane.core.limits import Thresholds, TrackerSettings, WindowLimits
from windowpane.core.names import NAME_CHARACTERS, described_line
from windowpane.core.protocols import Digester, ModelCatalog, TokenCounter
from windowpane.core.redaction import stored_id
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.vocabulary import LimitSource
from windowpane.core.window.blocks import Block
from windowpane.sources.transcripts.records import SessionOpened


class FidelityProbe(Protocol):
    """A function that estimates the information that a compression lost."""

    def __call__(
        self, removed: Sequence[Block], visible: Sequence[Block], /, *, digest: Digester, of: str | None
    ) -> FidelityEvaluated | None:
        """Return the share of *removed* that *visible* still holds; *of* is the compression's event id."""
        ...


class RuleWatch(Protocol):
    """A function that has the rules of a session followed through its compactions."""

    def __call__(self, tracker: SessionTracker, /, *, digest: Digester) -> Follower:
        """Listen to *tracker* from now on."""
        ...


class Follower(Protocol):
    """A listener that follows the rules of one session."""

    def finish(self, at: float | None = None, /) -> None:
        """Measure a compaction that no call follows."""
        ...


class SessionHistory(Protocol):
    """A function that returns what earlier sessions of an agent and model in a project are evidence for."""

    def __call__(
        self, session_id: str, *, agent: str, model: str, started_at: float | None, project: str, folder: str
    ) -> EarlierSessions:
        """Return the evidence at *started_at*, the same for every reading of *session_id*."""
        ...


class AgentSettings(Protocol):
    """The level and the window that an agent on this machine states in its settings or status line."""

    def level(self, agent: str, *, limit_tokens: int | None, started_at: float | None, folder: str) -> int | None:
        """Return the used tokens at which it compacts, 0 if never by itself; None if it does not state them."""
        ...

    def window(
        self, agent: str, model: str, *, session_id: str, started_at: float | None, folder: str
    ) -> EvidentWindow | None:
        """Return the window in which it runs *model*; None if it does not state the size."""
        ...


class StoredProjects(Protocol):
    """A function that returns the project with which a stored session was read before."""

    def __call__(self, session_id: str) -> str | None:
        """Return the project, empty for a session without one; None for a session that is not stored."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackSettings:
    """Dependencies and overrides for playing a recording."""

    digest: Digester
    counter_for: Callable[[str], TokenCounter]
    """A counter for a model's name; the same text must have the same count on every run."""
    catalog: ModelCatalog | None = None
    limit_tokens: int | None = None
    """The window's size given by the user, before the recording's and the catalog's."""
    agent: str | None = None
    """Name of the agent instead of the tool's."""
    model: str = ""
    """Model of recordings that do not name one."""
    settings: TrackerSettings | None = None
    thresholds: Thresholds | None = None
    """Thresholds of the zones; None for those of the window's size."""
    evaluate: FidelityProbe | None = None
    follow_rules: RuleWatch | None = None
    media_tokens: Callable[[str], int] | None = None
    """Flat cost of one image for a model."""
    history: SessionHistory | None = None
    """The record of earlier sessions; None without a store."""
    agent_settings: AgentSettings | None = None
    """The settings of the agents on this machine, for live sessions; None for recordings of any machine."""
    first_message_titles: bool = True
    """Use the start of the first user message as the title where the recording states none."""
    project: str = ""
    """The project of sessions that are not stored yet."""
    release: str | None = None
    """Release of Windowpane that the events state."""
    stored_projects: StoredProjects | None = None
    """The projects of stored sessions; None without a store."""
    distinct_ids: Mapping[str, str] = field(default_factory=dict)
    """Ids of the recording's sessions by those that it states, where the store has other sessions of these."""

    def distinct_id(self, session_id: str) -> str:
        """Return the id of a session, or of one below it, which the recording states as *session_id*."""
        if self.distinct_ids:
            session_id = stored_id(session_id)  # as the store has it
        for stated, distinct in self.distinct_ids.items():
            if session_id == stated or session_id.startswith(f"{stated}/"):
                session_id = distinct + session_id.removeprefix(stated)
        return session_id

    def limits(
        self,
        model: str,
        stated_tokens: int | None,
        *,
        agent: str = "",
        version: str = "",
        evident: EvidentWindow | None = None,
    ) -> WindowLimits | None:
        """Return the limits given by the user, else by the recording, *evident*, or of the catalog's model."""
        if self.limit_tokens is not None:
            return WindowLimits.of(self.limit_tokens, "given", thresholds=self.thresholds)
        if stated_tokens:
            return WindowLimits.of(stated_tokens, "provider", thresholds=self.thresholds)
        window = self._default_window(model, agent, version)
        if evident is not None:
            window = evident.tokens, evident.source
        return None if window is None else WindowLimits.of(*window, thresholds=self.thresholds)

    def _default_window(self, model: str, agent: str, version: str) -> tuple[int, LimitSource] | None:
        return None if self.catalog is None or not model else window_of(self.catalog, model, agent, version)

    def next_limit(self, model: str, above: int) -> int | None:
        """Return the smallest window of *model*'s provider with at least *above* tokens, by the catalog."""
        return None if self.catalog is None else self.catalog.next_limit(model, above)

    def smaller_limit(self, model: str, used: int) -> int | None:
        """Return the smaller of two windows of *model*, if *used* tokens fit it, by the catalog."""
        return None if self.catalog is None else self.catalog.smaller_limit(model, used)

    def project_of(self, session_id: str) -> str:
        """Return a session's project: a stored one keeps its own, so reading it again gives the same events."""
        stored = None if self.stored_projects is None else self.stored_projects(session_id)
        return self.project if stored is None else stored

    def earlier_sessions(self, info: SessionInfo, opened: SessionOpened) -> EarlierSessions:
        """Return what earlier sessions of the agent and model are evidence for."""
        if self.history is None:
            return NO_EARLIER_SESSIONS
        return self.history(
            info.session_id,
            agent=info.agent,
            model=info.model,
            started_at=opened.at,
            project=self.project_of(info.session_id),
            folder=described_line(opened.folder, NAME_CHARACTERS),
        )

    def evident_window(
        self, info: SessionInfo, opened: SessionOpened, earlier: EarlierSessions
    ) -> EvidentWindow | None:
        """Return the window in which a session starts by what its recording does not hold.

        The agent's settings and status line come before earlier sessions, which only count where their release
        of the agent ran the model in the same window by default.
        """
        if self.agent_settings is not None and not earlier.is_stored:
            stated = self.agent_settings.window(
                opened.agent, info.model, session_id=info.session_id, started_at=opened.at, folder=opened.folder
            )
            if stated is not None:
                return stated
        window = earlier.window
        if window is None or earlier.is_stored:
            return window
        defaults = (
            self._default_window(info.model, opened.agent, version)
            for version in (window.version, opened.agent_version)
        )
        return window if next(defaults) == next(defaults) else None

    def program(
        self, info: SessionInfo, opened: SessionOpened, limits: WindowLimits | None, earlier: EarlierSessions
    ) -> AgentProgram:
        """Return what is known of a session's agent: its release, settings and earlier sessions."""
        stated = earlier.stated_tokens
        if self.agent_settings is not None and not earlier.is_stored:
            limit = None if limits is None else limits.limit_tokens
            stated = self.agent_settings.level(
                opened.agent, limit_tokens=limit, started_at=opened.at, folder=opened.folder
            )
        return AgentProgram(opened.agent, opened.agent_version, stated, earlier, info.model)
