"""Compressions of a session: both sides, the fate of each fact, and a line-by-line difference of the texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import pandas as pd

from windowpane.core.events import CompactionMeasured, ContentCompressed, FidelityEvaluated, RulesFollowed
from windowpane.core.vocabulary import FATES, Fate, severity
from windowpane.store.filters import EventFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import BlockRow, StoredEvent, intact_events
from windowpane.text.formats import count, tokens
from windowpane.text.losses import kind_label
from windowpane_dashboard.queries.window import REMOVED_ROWS

COMPRESSIONS: Final = 500
"""Compressions of one session offered at most."""
LINES: Final = 400
"""Lines of one side that are shown at once."""
LINE_LENGTH: Final = 400
"""Characters of one line that are shown at first; the middle of a longer one is omitted."""
WHOLE_LINE: Final = 10_000
"""Characters of one line that are shown where the whole is read; of a longer one, the block can be read."""
SCANNED: Final = 2_000_000
"""Characters of one side that are compared."""
FACTS: Final = 500
MINIMUM_FACT: Final = 3
"""Shorter facts would match everywhere."""

State = Literal["same", "removed", "new"]


@dataclass(frozen=True, slots=True)
class EvaluatedCompression:
    """One compression, with its evaluation and the window's totals around it where there were any."""

    seq: int
    turn: int
    data: ContentCompressed
    fidelity: FidelityEvaluated | None
    window: CompactionMeasured | None = None
    rules: RulesFollowed | None = None

    @property
    def damage(self) -> tuple[int, int]:
        """The facts that are contradicted, and the facts and rules that were lost."""
        facts, rules = self.fidelity, 0 if self.rules is None else self.rules.lost
        return (0, rules) if facts is None else (facts.facts_contradicted, facts.facts_lost + rules)

    @property
    def is_unknown(self) -> bool:
        """True where no damage is known, and no fact was looked up."""
        return not any(self.damage) and (self.fidelity is None or not self.fidelity.facts_total)

    @property
    def change(self) -> str:
        """The reduction in tokens: `the window was compacted from 155,104 to 52,979 tokens`."""
        sizes = self.window or self.data
        before, after = tokens(sizes.tokens_before), tokens(sizes.tokens_after)
        if self.window is None and self.data.scope == "content":
            return f"{before} tokens were reduced to {after}"
        return f"the window was compacted from {before} to {after} tokens"


@dataclass(frozen=True, slots=True)
class ContentSide:
    """One side of a compression: its blocks and their captured content."""

    blocks: tuple[BlockRow, ...]
    texts: tuple[str | None, ...]

    @property
    def captured(self) -> bool:
        """True where any text was captured."""
        return any(text is not None for text in self.texts)


def read_compressions(reader: EventReader, session_id: str) -> tuple[EvaluatedCompression, ...]:
    """Return every compression of a session, oldest first."""
    record = reader.events_or_damage(
        EventFilter(
            session_id=session_id,
            types=("content.compressed", "compaction.measured", "fidelity.evaluated", "rules.followed"),
            limit=4 * COMPRESSIONS,
        )
    )
    return pair_compressions(intact_events(record))


def pair_compressions(stored: Sequence[StoredEvent]) -> tuple[EvaluatedCompression, ...]:
    """Return compressions with their evaluation: the one that refers to it, else the next within the turn.

    A reference to an unknown compression is ignored: ids change where a recording is played with other times.
    """
    seq_of = {one.event.event_id: one.seq for one in stored if isinstance(one.event.data, ContentCompressed)}
    evaluated: dict[int, FidelityEvaluated] = {}
    measured: dict[str, CompactionMeasured] = {}
    followed: dict[str, RulesFollowed] = {}
    latest: dict[int, int] = {}
    for one in stored:
        data, turn = one.event.data, one.event.context.turn
        if isinstance(data, ContentCompressed):
            latest[turn] = one.seq
        elif isinstance(data, CompactionMeasured):
            measured[data.of] = data
        elif isinstance(data, RulesFollowed):
            followed[data.of] = data
        elif isinstance(data, FidelityEvaluated):
            seq = seq_of.get(data.of or "", latest.get(turn))
            if seq is not None:
                evaluated.setdefault(seq, data)
    return tuple(
        EvaluatedCompression(
            one.seq,
            one.event.context.turn,
            data,
            evaluated.get(one.seq),
            measured.get(one.event.event_id),
            followed.get(one.event.event_id),
        )
        for one in stored
        if isinstance(data := one.event.data, ContentCompressed)
    )


def first_to_read(recorded: Sequence[EvaluatedCompression], turn: int, *, is_turn_chosen: bool) -> int:
    """Return the position of the worst, or, where *turn* was chosen or none did damage, of the last up to it."""
    worst = worst_first(recorded)[0]
    last = max((at for at, one in enumerate(recorded) if one.turn <= turn), default=0)
    return last if is_turn_chosen or not any(recorded[worst].damage) else worst


def worst_first(recorded: Sequence[EvaluatedCompression]) -> list[int]:
    """Return the positions in the order of damage, the contradicting ones first; else in that of turns."""
    return sorted(range(len(recorded)), key=lambda at: recorded[at].damage, reverse=True)


def damage_summary(recorded: Sequence[EvaluatedCompression]) -> str:
    """Return how many compactions did damage, and of how many that is unknown."""
    done = [one for one in recorded if one.data.outcome == "accepted"]
    damaged, unknown = sum(any(one.damage) for one in done), sum(one.is_unknown for one in done)
    rest = f"; of {unknown:,} more it is unknown" if unknown else ""
    return f"{damaged:,} of {count(len(done) - unknown, 'compaction')} lost or contradicted something{rest}."


def compression_label(compression: EvaluatedCompression) -> str:
    """Return the label of a compression: `turn 37: contradicted 1, lost 2`, `turn 40: rejected`."""
    data, counts = compression.data, zip(("contradicted", "lost"), compression.damage, strict=True)
    damage = ", ".join(f"{name} {number:,}" for name, number in counts if number)
    if data.outcome != "accepted":
        damage = data.outcome
    elif not damage:
        damage = "loss unknown" if compression.is_unknown else "nothing lost"
    return f"turn {compression.turn}: {damage}"


def sides(
    reader: EventReader, session_id: str, compression: EvaluatedCompression
) -> tuple[ContentSide, ContentSide]:
    """Return the blocks before and after a compression with their captured content."""
    removed, results = set(compression.data.removed), set(compression.data.results)
    removed_rows = reader.removed_blocks(
        session_id, compression.turn + 1, limit=len(removed | results) + REMOVED_ROWS
    )
    before = tuple(sorted((row for row in removed_rows if row.block_id in removed), key=lambda row: row.position))
    here = [*reader.blocks_at(session_id, compression.turn), *reader.blocks_at(session_id, compression.turn + 1)]
    after = tuple({row.block_id: row for row in (*here, *removed_rows) if row.block_id in results}.values())
    return _content_side(reader, before), _content_side(reader, after)


def _content_side(reader: EventReader, blocks: tuple[BlockRow, ...]) -> ContentSide:
    return ContentSide(blocks, tuple(reader.content(row.digest) if row.digest else None for row in blocks))


def facts_frame(reader: EventReader, fidelity: FidelityEvaluated) -> pd.DataFrame:
    """Return the facts of a compression, the worst first; `text` is missing without content capture."""
    facts = sorted(fidelity.facts, key=lambda fact: severity(fact.kind, fact.outcome))
    texts = [reader.content(fact.digest) if fact.digest else None for fact in facts]
    return pd.DataFrame(
        {
            "outcome": [fact.outcome for fact in facts],
            "kind": [kind_label(fact.kind) for fact in facts],
            "text": [(text or "").partition("\n")[0] or None for text in texts],
        }
    )


def fact_texts(reader: EventReader, fidelity: FidelityEvaluated | None) -> dict[str, str]:
    """Return the outcome of each fact by its captured text; the worst where facts share a text."""
    outcomes: dict[str, str] = {}
    for fact in () if fidelity is None else fidelity.facts:
        text = reader.content(fact.digest) if fact.digest else None
        for line in (text or "").split("\n"):
            if line.strip():
                outcomes[line] = max(outcomes.get(line, fact.outcome), fact.outcome, key=FATES.index)
    return outcomes


def fact_counts(fidelity: FidelityEvaluated) -> dict[Fate, int]:
    """Return the number of facts per outcome."""
    return {
        "kept": fidelity.facts_kept,
        "recoverable": fidelity.facts_recoverable,
        "lost": fidelity.facts_lost,
        "contradicted": fidelity.facts_contradicted,
    }


def sentence(text: str) -> str:
    """Return a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def facts_summary(fidelity: FidelityEvaluated) -> str:
    """Return a sentence about the facts that a compression kept and lost."""
    if not fidelity.facts_total:
        why = f": {fidelity.reason}" if fidelity.reason else ""
        return f"What became of its facts is unknown{why}."
    counts = fact_counts(fidelity)
    parts = [f"{counts[outcome]:,} {outcome}" for outcome in reversed(FATES) if counts[outcome]]
    return f"Of {count(fidelity.facts_total, 'fact')}: {', '.join(parts)}."


# -- the difference of both sides ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A run of characters; *outcome* belongs to the fact in it, if any."""

    text: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of one side."""

    state: State
    pieces: tuple[DiffPiece, ...]


@dataclass(frozen=True, slots=True)
class DiffSide:
    """The visible lines of one side."""

    lines: tuple[DiffLine, ...]
    omitted: int
    """Lines above and below that are not shown."""
    is_cut: bool = False
    """The middle of a long line is omitted."""


@dataclass(frozen=True, slots=True)
class TextDifference:
    """Both sides."""

    before: DiffSide
    after: DiffSide

    @property
    def is_whole(self) -> bool:
        """Every line is shown in full."""
        return not any(side.omitted or side.is_cut for side in (self.before, self.after))

    @property
    def parts(self) -> int:
        """Parts that the longer side has."""
        return max(1, *(-(-(len(side.lines) + side.omitted) // LINES) for side in (self.before, self.after)))


def text_difference(
    before: Sequence[str], after: Sequence[str], facts: Mapping[str, str], *, part: int | None = None
) -> TextDifference:
    """Mark each line as shared with the other side or not, and every fact by its outcome.

    *part* selects the lines of one part of the whole, from 1, with long lines in full; None those from the first
    to read on, cut.
    *facts* maps a fact's text to its outcome. Lines are the same when they differ only in spaces and list
    markers.
    """
    old, new = _text_lines(before), _text_lines(after)
    outcomes = {fact.strip()[:LINE_LENGTH]: outcome for fact, outcome in facts.items()}
    marks = _FactMarks(_finder(facts), outcomes)
    bare = {_bare(line) for line in new}, {_bare(line) for line in old}
    return TextDifference(
        _diff_side(old, bare[0], "removed", marks, part=part),
        _diff_side(new, bare[1], "new", marks, part=part),
    )


def _text_lines(texts: Sequence[str]) -> list[str]:
    joined = "\n".join(texts)[:SCANNED]
    return [line.rstrip() for line in joined.splitlines() if line.strip()]


def _bare(line: str) -> str:
    return " ".join(line.strip(" \t-*>#").split())


def _finder(facts: Mapping[str, str]) -> re.Pattern[str] | None:
    texts = sorted({fact.strip() for fact in facts if len(fact.strip()) >= MINIMUM_FACT}, key=len, reverse=True)
    patterns = [re.escape(text[:LINE_LENGTH]) for text in texts[:FACTS]]
    return re.compile("|".join(patterns)) if patterns else None


class _FactMarks(NamedTuple):
    """All facts as one pattern, and the outcome of each."""

    finder: re.Pattern[str] | None
    outcomes: Mapping[str, str]


def _diff_side(
    lines: Sequence[str],
    other: set[str],
    state: State,
    facts: _FactMarks,
    *,
    part: int | None,
) -> DiffSide:
    start = _first_to_read(lines, other, facts.outcomes) if part is None else LINES * (part - 1)
    length = LINE_LENGTH if part is None else WHOLE_LINE
    visible = tuple(
        DiffLine(
            "same" if _bare(line) in other else state, _pieces(_cut(line, length), facts.finder, facts.outcomes)
        )
        for line in lines[start : start + LINES]
    )
    is_cut = any(len(line) > length for line in lines[start : start + LINES])
    return DiffSide(visible, len(lines) - len(visible), is_cut=is_cut)


def _first_to_read(lines: Sequence[str], other: set[str], outcomes: Mapping[str, str]) -> int:
    """Return the line just above the first contradicted fact, else lost one, else line that only one side has."""
    text = "\n".join(lines)
    for fate in ("contradicted", "lost"):
        starts = [text.find(fact) for fact, outcome in outcomes.items() if outcome == fate and fact in text]
        if starts:
            return max(0, text.count("\n", 0, min(starts)) - 1)
    return max(0, next((at for at, line in enumerate(lines) if _bare(line) not in other), 0) - 1)


def _cut(line: str, length: int) -> str:
    if len(line) <= length:
        return line
    half = length // 2
    return f"{line[:half]} … {len(line) - 2 * half:,} characters … {line[-half:]}"


def _pieces(line: str, finder: re.Pattern[str] | None, outcomes: Mapping[str, str]) -> tuple[DiffPiece, ...]:
    if finder is None:
        return (DiffPiece(line),)
    pieces, at = [], 0
    for match in finder.finditer(line):
        if match.start() > at:
            pieces.append(DiffPiece(line[at : match.start()]))
        pieces.append(DiffPiece(match.group(), outcomes[match.group()]))
        at = match.end()
    if at < len(line) or not pieces:
        pieces.append(DiffPiece(line[at:]))
    return tuple(pieces)
