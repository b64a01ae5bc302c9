"""Simulation of one recorded session under one setup: a managed window, or a baseline without a manager."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from windowpane.core.digests import keyed_digester
from windowpane.core.events import BlocksEvicted, ContentCompressed, Event, FidelityEvaluated, Usage
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block
from windowpane.evaluation.replay.history import CallNeeds, RecordedHistory, find_needs, history_of
from windowpane.evaluation.replay.meter import Measures, Meter, Price, WindowSizes
from windowpane.evaluation.replay.recordings import Recording
from windowpane.evaluation.replay.rerun import CallWatcher, RerunOptions, managed_events
from windowpane.evaluation.replay.setups import ReplaySetup
from windowpane.manager.drivers import BlockingWindow
from windowpane.models.catalog import packaged_catalog
from windowpane.text.formats import percent

DIGEST: Final[Digester] = keyed_digester(b"replay")
"""Digests of replays are never stored, so the key is not secret; it is the same in every process."""
ANTHROPIC: Final = "anthropic"


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The result of one session under one setup."""

    session: str
    setup: ReplaySetup
    measures: Measures
    timeline: tuple[int, ...]
    """Tokens of each call."""
    note: str = ""
    """Limits of the result, such as missing content."""


class PreparedRecording:
    """A recording with the parts that its replays share: the whole conversation and the agent's needs."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.counter = recording.counter()
        self.history: RecordedHistory = history_of(recording, self.counter, DIGEST)
        self.needs: list[CallNeeds] = find_needs(self.history)
        self.price = _price_of(recording.model)

    @property
    def static_tokens(self) -> int:
        """The most tokens of system prompt and tool definitions in a call; no policy can reduce them."""
        return max(
            (
                sum(block.tokens for block in span.blocks if block.content_type in STATIC_TYPES)
                for span in {id(call.span): call.span for call in self.history.calls}.values()
            ),
            default=0,
        )

    def meter(self, setup: ReplaySetup, *, probe: bool = True) -> Meter:
        """Return a meter for one replay; without *probe* it measures no fidelity."""
        return Meter(
            self.history,
            self.needs,
            WindowSizes(setup.limit_tokens, setup.fitting_tokens, setup.limits.overflow_tokens),
            digest=DIGEST,
            price=self.price,
            probe=probe and self.recording.has_content,
        )


def simulate(
    prepared: PreparedRecording, setup: ReplaySetup, *, watch: CallWatcher | None = None, probe: bool = True
) -> ReplayRun:
    """Replay the session; the same recording under the same setup always gives the same run.

    *watch* receives the managed window at every call, after it was measured. Without *probe*, which takes about
    half of the time, no fidelity is measured.
    """
    meter = prepared.meter(setup, probe=probe)
    managed = setup.kind in ("managed", "compact")
    measures = _managed(prepared, setup, meter, watch, probe=probe) if managed else _baseline(setup, meter)
    return ReplayRun(prepared.recording.name, setup, measures, tuple(meter.timeline), _note(prepared.recording))


def _managed(
    prepared: PreparedRecording, setup: ReplaySetup, meter: Meter, watch: CallWatcher | None, *, probe: bool
) -> Measures:
    recording = prepared.recording
    management = setup.management()
    recount = _Recount(prepared, management.counter)

    def measure_call(manager: BlockingWindow) -> None:
        meter.sent(recount.blocks(manager))
        if watch is not None:
            watch(manager)

    # Without texts no reference can be found: the term is omitted from every score.
    settings = replace(management.settings, references=recording.has_content)
    if not probe:
        settings = replace(settings, evaluate=None)
    options = RerunOptions(
        recording.key,
        setup.limit_tokens,
        management.counter or prepared.counter,
        DIGEST,
        policy=settings.policy,
        source="replay",
        archive=_DiscardingArchive(),
        settings=settings,
        tracking=management.tracking,
        thresholds=setup.thresholds,
        watch=measure_call,
    )
    counts = _EventCounts()
    for event in managed_events(recording.records, key=recording.key, options=options):
        counts.add(event)
    scores = counts.scores
    return meter.measures(
        evicted=counts.evicted,
        compressions=counts.compressions,
        compression_fidelity=math.fsum(scores) / len(scores) if scores else None,
    )


def _baseline(setup: ReplaySetup, meter: Meter) -> Measures:
    max_tokens = int(setup.limits.overflow_tokens * setup.truncate_ratio)
    evicted = 0
    sent_before: set[str] = set()
    while (call := meter.next_call) is not None:
        history = call.history
        blocks: Sequence[Block] = (
            truncate(history, max_tokens) if setup.kind == "truncate" else keep_last(history, setup.keep_groups)
        )
        ids = {block.id for block in blocks}
        arrived = {block.id for block in call.arrived}
        evicted += len((arrived | (sent_before if call.start else set())) - ids)
        sent_before = ids
        meter.sent(blocks)
    return meter.measures(evicted=evicted, compressions=0, compression_fidelity=None)


# -- baselines ------------------------------------------------------------------------------------------------
# An agent without a manager and a full window. Both keep system prompt, tool definitions and whole groups, so the
# calls they send are always valid, and add neither placeholders nor summaries.


def truncate(blocks: Sequence[Block], max_tokens: int) -> list[Block]:
    """Drop the oldest groups until the rest fits; the newest group is kept, whatever its size."""
    sizes = _group_sizes(blocks)
    total = sum(block.tokens for block in blocks)
    dropped: set[str] = set()
    for group in list(sizes)[:-1]:
        if total <= max_tokens:
            break
        dropped.add(group)
        total -= sizes[group]
    return [block for block in blocks if block.content_type in STATIC_TYPES or block.group not in dropped]


def keep_last(blocks: Sequence[Block], groups: int) -> list[Block]:
    """Keep the last *groups* groups, whatever their size."""
    retained = set(list(_group_sizes(blocks))[-groups:])
    return [block for block in blocks if block.content_type in STATIC_TYPES or block.group in retained]


def _group_sizes(blocks: Sequence[Block]) -> dict[str, int]:
    """Return the tokens of each removable group, in the order of their first blocks."""
    sizes: dict[str, int] = {}
    for block in blocks:
        if block.content_type not in STATIC_TYPES:
            sizes[block.group] = sizes.get(block.group, 0) + block.tokens
    return sizes


# -- managed windows ------------------------------------------------------------------------------------------


class _Recount:
    """Counts a window's blocks by the model's tokenizer, also if a preset has its own counter."""

    def __init__(self, prepared: PreparedRecording, own: TokenCounter | None) -> None:
        self._counter = prepared.counter
        self._needed = own is not None
        self._recounted: dict[str, Block] = {}

    def blocks(self, manager: BlockingWindow) -> Sequence[Block]:
        """Return the blocks of the next call."""
        blocks = manager.blocks()
        return [self._block(block) for block in blocks] if self._needed else blocks

    def _block(self, block: Block) -> Block:
        recounted = self._recounted.get(block.id)
        if recounted is None:
            tokens = block.tokens if block.text is None else self._counter.count(block.text)
            if block.content_type == "tool_call":
                tokens += self._counter.count(block.tool_name or "")
            recounted = self._recounted[block.id] = replace(block, tokens=tokens)
        return recounted


class _EventCounts:
    """Counts and scores from the manager's events that its windows do not show."""

    def __init__(self) -> None:
        self.evicted = 0
        self.compressions = 0
        self.scores: list[float] = []

    def add(self, event: Event) -> None:
        data = event.data
        if isinstance(data, BlocksEvicted):
            self.evicted += len(data.blocks)
        elif isinstance(data, ContentCompressed):
            self.compressions += data.outcome == "accepted"
        elif isinstance(data, FidelityEvaluated) and data.score is not None:
            self.scores.append(data.score)


class _DiscardingArchive:
    """An archive that keeps nothing: placeholders offer their originals as in a live window."""

    def put(self, session_id: str, handle: str, text: str) -> None:
        """Discard the text."""
        del session_id, handle, text

    def get(self, session_id: str, handle: str) -> str | None:
        """Return None."""
        del session_id, handle
        return None


def _price_of(model: str) -> Price | None:
    """Return a model's price function; uncached tokens are cache writes if the provider charges for them."""
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
        share = percent(recording.missing_share)
        return f"{share} of the tokens have no captured text" if recording.replacements else ""
    return (
        "content was not captured: no fidelity, needs known by digest and call only, "
        "sizes of summaries and cut content are guesses"
    )
