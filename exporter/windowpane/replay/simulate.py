"""One recorded session under one setup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from windowpane.core.digests import keyed_digester
from windowpane.core.events import BlocksEvicted, ContentCompressed, Event, FidelityEvaluated, Usage
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.vocabulary import STANDING_TYPES
from windowpane.core.window.blocks import Block
from windowpane.manager.drivers import BlockingWindow
from windowpane.models.catalog import packaged_catalog
from windowpane.replay.baselines import keep_last, truncate
from windowpane.replay.history import RecordedHistory, history_of
from windowpane.replay.managed import CallWatcher, RerunOptions, managed_events
from windowpane.replay.meter import Measures, Meter, Price
from windowpane.replay.needs import CallNeeds, needs_of
from windowpane.replay.recordings import Recording
from windowpane.replay.setups import ReplaySetup

DIGEST: Final[Digester] = keyed_digester(b"replay")
"""Never stored, so it needs no secret; the same in every process."""
ANTHROPIC: Final = "anthropic"


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """What came of one session under one setup."""

    session: str
    setup: ReplaySetup
    measures: Measures
    timeline: tuple[int, ...]
    """Tokens that each call sent."""
    note: str = ""
    """What limits the result."""


class PreparedRecording:
    """A recording with what all its replays share: the whole conversation and the agent's needs."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.counter = recording.counter()
        self.history: RecordedHistory = history_of(recording, self.counter, DIGEST)
        self.needs: list[CallNeeds] = needs_of(self.history)
        self.price = _price_of(recording.model)

    @property
    def standing_tokens(self) -> int:
        """The most that system prompt and tool definitions take of a call; no policy can reduce it."""
        return max(
            (
                sum(block.tokens for block in span.blocks if block.content_type in STANDING_TYPES)
                for span in {id(call.span): call.span for call in self.history.calls}.values()
            ),
            default=0,
        )

    def meter(self, setup: ReplaySetup) -> Meter:
        """A meter for one replay."""
        has_content = self.recording.has_content
        return Meter(
            self.history,
            self.needs,
            setup.limit_tokens,
            setup.fitting_tokens,
            largest_tokens=setup.limits.overflow_tokens,
            digest=DIGEST,
            price=self.price,
            probe=has_content,
        )


def simulate(prepared: PreparedRecording, setup: ReplaySetup, *, watch: CallWatcher | None = None) -> ReplayRun:
    """Replay the session; the same recording under the same setup always gives the same run.

    *watch* is told of every call of a managed window, after it was measured.
    """
    meter = prepared.meter(setup)
    managed = setup.kind == "managed"
    measures = _managed(prepared, setup, meter, watch) if managed else _baseline(setup, meter)
    return ReplayRun(prepared.recording.name, setup, measures, tuple(meter.timeline), _note(prepared.recording))


def _managed(
    prepared: PreparedRecording, setup: ReplaySetup, meter: Meter, watch: CallWatcher | None
) -> Measures:
    recording = prepared.recording

    management = setup.management()
    recount = _Recount(prepared, management.counter)

    def sent(manager: BlockingWindow) -> None:
        meter.sent(recount.blocks(manager))
        if watch is not None:
            watch(manager)

    # Without texts nothing can be seen to refer to anything: the term is left out of every score.
    control = replace(management.settings, references=recording.has_content)
    rerun = RerunOptions(
        recording.key,
        setup.limit_tokens,
        management.counter or prepared.counter,
        DIGEST,
        policy=control.policy,
        source="replay",
        archive=_Forgetting(),
        settings=control,
        tracking=management.tracking,
        thresholds=setup.thresholds,
        watch=sent,
    )
    tally = _Tally()
    for event in managed_events(recording.records, key=recording.key, rerun=rerun):
        tally.take(event)
    scores = tally.scores
    return meter.measures(
        evicted=tally.evicted,
        compressions=tally.compressions,
        compression_fidelity=sum(scores) / len(scores) if scores else None,
    )


def _baseline(setup: ReplaySetup, meter: Meter) -> Measures:
    fits = int(setup.limits.overflow_tokens * setup.truncate_ratio)
    evicted = 0
    shown: set[str] = set()
    while (call := meter.next_call) is not None:
        history = call.history
        kept: Sequence[Block] = (
            truncate(history, fits) if setup.kind == "truncate" else keep_last(history, setup.keep_groups)
        )
        ids = {block.id for block in kept}
        came = {block.id for block in call.arrived}
        evicted += len((came | (shown if call.start else set())) - ids)
        shown = ids
        meter.sent(kept)
    return meter.measures(evicted=evicted, compressions=0, compression_fidelity=None)


class _Recount:
    """A window's blocks by the model's tokenizer, also where a preset counts in its own way."""

    def __init__(self, prepared: PreparedRecording, own: TokenCounter | None) -> None:
        self._counter = prepared.counter
        self._needed = own is not None
        self._counted: dict[str, Block] = {}

    def blocks(self, manager: BlockingWindow) -> Sequence[Block]:
        """What the next call sends."""
        blocks = manager.blocks()
        return [self._block(block) for block in blocks] if self._needed else blocks

    def _block(self, block: Block) -> Block:
        known = self._counted.get(block.id)
        if known is None:
            tokens = block.tokens if block.text is None else self._counter.count(block.text)
            if block.content_type == "tool_call":
                tokens += self._counter.count(block.tool_name or "")
            known = self._counted[block.id] = replace(block, tokens=tokens)
        return known


class _Tally:
    """What the manager's events say that its windows do not."""

    def __init__(self) -> None:
        self.evicted = 0
        self.compressions = 0
        self.scores: list[float] = []

    def take(self, event: Event) -> None:
        data = event.data
        if isinstance(data, BlocksEvicted):
            self.evicted += len(data.blocks)
        elif isinstance(data, ContentCompressed):
            self.compressions += data.outcome == "accepted"
        elif isinstance(data, FidelityEvaluated) and data.score is not None:
            self.scores.append(data.score)


class _Forgetting:
    """An archive for simulated windows: placeholders promise their originals as in a live one."""

    def put(self, session_id: str, handle: str, text: str) -> None:
        """Keep nothing."""
        del session_id, handle, text

    def get(self, session_id: str, handle: str) -> str | None:
        """Nothing is kept."""
        del session_id, handle
        return None


def _price_of(model: str) -> Price | None:
    """Dollars of a call; what is not read from the cache is written to it where the provider charges for that."""
    info = packaged_catalog().lookup(model)
    if info is None or packaged_catalog().cost_dollars(model, Usage(input_tokens=1), None) is None:
        return None
    return partial(_dollars, model, writes=ANTHROPIC in (info.provider, model.partition("/")[0]))


def _dollars(model: str, usage: Usage, *, writes: bool) -> float | None:
    if writes:
        usage = Usage(cache_read_tokens=usage.cache_read_tokens, cache_write_tokens=usage.input_tokens)
    return packaged_catalog().cost_dollars(model, usage, None)


def _note(recording: Recording) -> str:
    if recording.has_content:
        return ""
    return (
        "content was not captured: no fidelity, needs known by digest and call only, "
        "sizes of summaries and cut content are guesses"
    )
