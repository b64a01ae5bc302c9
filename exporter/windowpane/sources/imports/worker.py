"""A process that reads and plays files for the one that stores them; see `workers`.

It imports nothing from the folder in which it is started, and holds no connection to the store. What playing a
session needs of the store it asks for: the evidence of earlier sessions.
"""

from __future__ import annotations

import logging
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from windowpane.alerts.engine import AlertEngine
from windowpane.core.agents import EarlierSessions, EvidentWindow, SessionEvidence
from windowpane.core.digests import keyed_digester
from windowpane.core.events import (
    ANNOTATIONS,
    BlockAdded,
    Event,
    FidelityEvaluated,
    LimitChanged,
    PressureMeasured,
    SessionDescribed,
    SessionStarted,
    TurnEnded,
)
from windowpane.core.stored_payloads import stored_payload
from windowpane.core.vocabulary import EVIDENT_SOURCES, LimitSource
from windowpane.effects.processes import rare_collection
from windowpane.sources.imports.importer import import_file, problem_of
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.records import ImportOutcome

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from windowpane.alerts.rules import Rule
    from windowpane.core.limits import Thresholds, TrackerSettings
    from windowpane.core.protocols import Digester
    from windowpane.core.window.blocks import Block
    from windowpane.sources.imports.file_report import FileReport
    from windowpane.sources.transcripts.playback_settings import FidelityProbe, PlaybackSettings

_log: Final = logging.getLogger(__name__)

BATCH_EVENTS: Final = 500
HELD_EVENTS: Final = 20_000
HELD_CHARACTERS: Final = 32_000_000
"""Played events of a file, and their texts, that are held at most until the whole file is played."""


class WorkerSetup(NamedTuple):
    """All that a worker needs to play files as the storing process would."""

    digest_key: bytes
    limit_tokens: int | None
    agent: str | None
    model: str
    with_fidelity: bool
    first_message_titles: bool
    project: str
    settings: TrackerSettings | None
    thresholds: Thresholds | None
    rules: Sequence[Rule] | None
    captures: bool
    """Texts are stored."""

    @classmethod
    def of(
        cls, playback: PlaybackSettings, digest_key: bytes, rules: Sequence[Rule] | None, *, captures: bool
    ) -> WorkerSetup:
        """Return the setup of a worker that plays as *playback* does."""
        return cls(
            digest_key, playback.limit_tokens, playback.agent, playback.model, playback.evaluate is not None,
            playback.first_message_titles, playback.project, playback.settings, playback.thresholds, rules,
            captures,
        )  # fmt: skip


class Question(NamedTuple):
    """The arguments of `earlier_sessions`."""

    session_id: str
    agent: str
    model: str
    started_at: float | None
    project: str
    folder: str


class ProjectQuestion(NamedTuple):
    """The argument of `stored_project`."""

    session_id: str


class Ready(NamedTuple):
    """The worker can read files."""


class FilePlayed(NamedTuple):
    """No session of the file will add evidence."""


class SessionSent(NamedTuple):
    """The start of a session; its batches follow."""

    session_id: str
    """Empty for a session without events."""


class Batch(NamedTuple):
    """Events of the session, pickled."""

    events: bytes


class SessionEnd(NamedTuple):
    """The end of a session; with an error it cannot be stored."""

    error: str = ""


class FileRead(NamedTuple):
    """The end of a file, with its report without outcomes."""

    report: FileReport


Message = (
    Ready
    | Question
    | ProjectQuestion
    | SessionEvidence
    | FilePlayed
    | SessionSent
    | Batch
    | SessionEnd
    | FileRead
)


def work(connection: Connection, setup: WorkerSetup) -> None:
    """Read the files whose paths arrive, until None does or the other process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the storing process stops its workers
    with rare_collection(), suppress(EOFError, ConnectionError, BrokenPipeError):
        playback, readers = _playback(connection, setup), all_readers()
        connection.send(Ready())
        while (path := connection.recv()) is not None:
            sessions = _SentSessions(connection, setup)
            report = import_file(path, sessions, playback=playback, readers=readers)
            sessions.finish()
            connection.send(FileRead(report))


def _playback(connection: Connection, setup: WorkerSetup) -> PlaybackSettings:
    def history(
        session_id: str, *, agent: str, model: str, started_at: float | None, project: str, folder: str
    ) -> EarlierSessions:
        question = Question(session_id, agent, model, started_at, project, folder)
        earlier: EarlierSessions = _answer(connection, question)
        return earlier

    def stored_project(session_id: str) -> str | None:
        project: str | None = _answer(connection, ProjectQuestion(session_id))
        return project

    playback = playback_settings(
        keyed_digester(setup.digest_key),
        limit_tokens=setup.limit_tokens,
        agent=setup.agent,
        model=setup.model,
        with_fidelity=setup.with_fidelity,
        history=history,
        stored_projects=stored_project,
    )
    return replace(
        playback,
        settings=setup.settings,
        thresholds=setup.thresholds,
        first_message_titles=setup.first_message_titles,
        project=setup.project,
        evaluate=None if playback.evaluate is None else _deferring(playback.evaluate),
    )


def _answer(connection: Connection, question: Question | ProjectQuestion) -> Any:
    connection.send(question)
    try:
        return connection.recv()
    except EOFError as error:
        raise ConnectionError("the storing process has ended") from error


# -- fidelity -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Deferred(FidelityEvaluated):
    """The evaluation of a compression that is made after the session was played: no other event depends on it."""

    evaluate: Callable[[], FidelityEvaluated | None] = lambda: None

    def result(self) -> FidelityEvaluated:
        """Return the evaluation, as it may be stored."""
        evaluated = self.evaluate()
        assert evaluated is not None, "the probe always has a result"
        return stored_payload(evaluated)


def _deferring(evaluate: FidelityProbe) -> FidelityProbe:
    def defer(
        removed: Sequence[Block], visible: Sequence[Block], /, *, digest: Digester, of: str | None
    ) -> FidelityEvaluated | None:
        removed, visible = tuple(removed), tuple(visible)
        return _Deferred("probe", None, 0.0, evaluate=lambda: evaluate(removed, visible, digest=digest, of=of))

    return defer


def _evaluated(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        yield event._replace(data=event.data.result()) if isinstance(event.data, _Deferred) else event


# -- sessions -------------------------------------------------------------------------------------------------


class _SentSessions:
    """The store of a worker's importer: sends the sessions of one file to the process that stores them.

    Sessions are held until the whole file is played, since later files wait for its evidence, and only then are
    evaluated and sent; larger ones are sent while they are played.
    """

    def __init__(self, connection: Connection, setup: WorkerSetup) -> None:
        self._connection = connection
        self._setup = setup
        self._held: list[list[Event]] = []
        self._events = self._characters = 0

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Play a session, and hold it or send it."""
        evidence, playing = _EvidenceFold(), iter(events())
        held: list[Event] = []
        for event in playing:
            held.append(event)
            evidence.add(event)
            self._count(event)
            if self._events > HELD_EVENTS or self._characters > HELD_CHARACTERS:
                self._flush()
                self._send(chain(held, evidence.added(playing)))
                self._send_evidence(evidence)
                break
        else:
            self._held.append(held)
            self._send_evidence(evidence)
        return ImportOutcome("", 0, 0, 0, revised=False)

    def finish(self) -> None:
        """Send what is held; the file is played."""
        self._connection.send(FilePlayed())
        self._flush()

    def _flush(self) -> None:
        held, self._held, self._events, self._characters = self._held, [], 0, 0
        for events in held:
            try:
                self._send(iter(events))
            except ConnectionError:
                raise
            except Exception:  # noqa: BLE001  # reported with the file; the other sessions are sent
                _log.exception("importing a session failed")

    def _send_evidence(self, evidence: _EvidenceFold) -> None:
        if evidence.last is not None:
            self._connection.send(evidence.result())

    def _send(self, events: Iterator[Event]) -> None:
        first = list(islice(events, 1))
        self._connection.send(SessionSent(first[0].context.session_id if first else ""))
        alerted = AlertEngine(self._setup.rules).interleave(_evaluated(chain(first, events)))
        try:
            while batch := list(islice(alerted, BATCH_EVENTS)):
                if not self._setup.captures:
                    batch = list(map(_without_text, batch))
                self._connection.send(Batch(pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)))
        except Exception as error:
            self._connection.send(SessionEnd(problem_of(error)))
            raise
        self._connection.send(SessionEnd())

    def _count(self, event: Event) -> None:
        self._events += 1
        if isinstance(event.data, BlockAdded) and event.data.block.text:
            self._characters += len(event.data.block.text)


def _without_text(event: Event) -> Event:
    data = event.data
    if not isinstance(data, BlockAdded) or data.block.text is None:
        return event
    return event._replace(data=BlockAdded(msgspec.structs.replace(data.block, text=None)))


class _EvidenceFold:
    """The evidence of one session, from its events as the store's rows have it."""

    def __init__(self) -> None:
        self.last: Event | None = None
        self._model = self._project = self._folder = self._version = ""
        self._last_at: float | None = None
        self._first_call_at: float | None = None
        self._base: int | None = None
        self._is_reported = False
        self._compaction: int | None = None
        self._limit: tuple[int | None, LimitSource | None] = (None, None)

    def added(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield *events*, each added."""
        for event in events:
            self.add(event)
            yield event

    def add(self, event: Event) -> None:
        """Add the next event."""
        self.last = event
        context, _n, at, data = event
        self._model = context.model or self._model
        if at is not None and (self._last_at is None or at > self._last_at) and data.type not in ANNOTATIONS:
            self._last_at = at
        if context.turn == 1 and self._first_call_at is None:
            self._first_call_at = at
        if isinstance(data, SessionStarted | LimitChanged | PressureMeasured):
            self._limit = data.limit_tokens, data.limit_source
        if isinstance(data, PressureMeasured):
            self._compaction = data.compaction_tokens if data.compaction_evidence == "recorded" else None
            if context.turn == 1 and data.phase != "next":
                self._base = data.used_by_component.get("unattributed", 0)
        elif isinstance(data, TurnEnded):
            self._is_reported |= context.turn == 1 and data.usage is not None
        elif isinstance(data, SessionDescribed):
            self._project = data.project or self._project
            self._folder = data.folder or self._folder
            self._version = data.agent_version or self._version

    def result(self) -> SessionEvidence:
        """Return the evidence of the events so far."""
        assert self.last is not None
        context = self.last.context
        return SessionEvidence(
            context.session_id, context.agent, self._model, self._project, self._last_at, self._first_call_at,
            self._base if self._is_reported else None, self._compaction, self._folder, self._window(),
        )  # fmt: skip

    def _window(self) -> EvidentWindow | None:
        tokens, source = self._limit
        return EvidentWindow(tokens, version=self._version) if tokens and source in EVIDENT_SOURCES else None
