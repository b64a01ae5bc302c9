"""Losses of the compactions of a recording, or of a summary that any agent wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from windowpane.core.digests import keyed_digester
from windowpane.core.events import BlockAdded, ContentRegretted, Event, FactOutcome, FidelityEvaluated
from windowpane.core.names import file_name
from windowpane.core.vocabulary import ContentType, severity
from windowpane.core.window.blocks import Block
from windowpane.evaluation.suite.report import missed_lines
from windowpane.exceptions import SourceError, UnknownFormatError
from windowpane.fidelity.judge.judge import Evaluation, JudgedCompression
from windowpane.fidelity.judge.sampling import JudgedSession, SampledJudge
from windowpane.fidelity.passages import Passage
from windowpane.fidelity.probe import KEPT, evaluate
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats
from windowpane.text.formats import count
from windowpane.text.losses import fact_text, facts_text, soundness_text

_DIGEST: Final = keyed_digester(b"fidelity")
"""Nothing is stored, so that the key protects nothing."""
_ROLE: Final = re.compile(r"(?mi)^\W{0,4}(system|user|human|assistant|ai|tool)\W{0,3}:\W{0,3}")
_TYPES: Final[dict[str, ContentType]] = {
    "system": "system_prompt", "user": "user_message", "human": "user_message", "assistant": "assistant_response",
    "ai": "assistant_response", "tool": "tool_result",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compaction:
    """The content that a compaction removed, what was visible afterwards, and what was needed again."""

    name: str
    removed: tuple[Block, ...]
    visible: tuple[Block, ...]
    needed: dict[str, int]
    """Turn at which a removed block was fetched again, by its id."""
    after: str = ""
    """Text of what the agent did afterwards, where no recording has its turns."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The evaluation of one compaction."""

    compaction: Compaction
    evaluated: FidelityEvaluated
    judged: Evaluation | None = None
    """The judgment of a model; None where none was asked."""

    def needed_again(self, fact: FactOutcome) -> str:
        """Return when a fact was needed again: `needed again at turn 57`; empty if it was not seen."""
        turn = self.compaction.needed.get(fact.block or "")
        if turn is not None:
            return f"needed again at turn {turn}"
        text, after = fact.text or "", self.compaction.after
        is_file = fact.kind in ("changed_file", "read_file")
        recurs = file_name(text) in after if is_file else Passage(after).spans(Passage(text), least=KEPT)
        return "needed again" if after and recurs and fact.outcome != "kept" else ""


def measure(compactions: Iterable[Compaction], judge: SampledJudge | None = None) -> Iterator[Loss]:
    """Yield the evaluation of each compaction, with that of the *judge*, which is asked earlier questions too."""
    session = None if judge is None else JudgedSession(judge, _DIGEST)
    for one in compactions:
        evaluated = evaluate(one.removed, one.visible, digest=_DIGEST)
        judged = None if session is None else session.judge(JudgedCompression(one.name, one.removed, one.visible))
        yield Loss(one, evaluated, judged)


def recorded_compactions(path: Path) -> list[Compaction]:
    """Return the compactions of a recording. Raises `SourceError` for a file that is not one."""
    compactions: list[Compaction] = []
    for events, probed in _played(path):
        for removed, visible, of in probed:
            needed = {
                event.data.block_id: event.context.turn
                for event in events
                if isinstance(event.data, ContentRegretted) and event.data.cause_event_id == of
            }
            turn = next((event.context.turn for event in events if event.event_id == of), 0)
            compactions.append(Compaction(f"turn {turn}", removed, visible, needed))
    return compactions


def written_summary(before: Path, summary: Path, after: Path | None = None) -> Compaction:
    """Return a summary as the compaction of *before*, a recording or messages with `User:` before them."""
    removed = blocks_in(before)
    text = _text_of(summary)
    block = replace(_block(0, "summary", text), id="summary")
    later = "" if after is None else "\n".join(block.text or "" for block in blocks_in(after))
    return Compaction(summary.name, removed, (block,), {}, later)


def blocks_in(path: Path) -> tuple[Block, ...]:
    """Return the content of a recording or a text as blocks."""
    try:
        played = [events for events, _ in _played(path)]
    except UnknownFormatError:
        return tuple(_blocks_of(_text_of(path)))
    return tuple(
        event.data.block for events in played[:1] for event in events if isinstance(event.data, BlockAdded)
    )


_Probed = tuple[tuple[Block, ...], tuple[Block, ...], str | None]
"""The removed and the visible blocks of a compaction, and its event id."""


def _played(path: Path) -> Iterator[tuple[list[Event], list[_Probed]]]:
    """Yield the events of each session of a recording, and its compactions."""
    reader = reader_for(path, all_readers(complete=True))
    records = tuple(reader.read(path, stats=FileStats(), problems=[]))
    for key in session_keys(records):
        probed: list[_Probed] = []

        def note(
            removed: Sequence[Block], visible: Sequence[Block], *, of: str | None = None, **_: Any
        ) -> FidelityEvaluated | None:
            probed.append((tuple(removed), tuple(visible), of))  # noqa: B023 (called while this session is played)
            return None

        playback = replace(playback_settings(_DIGEST), evaluate=note)
        yield list(session_events(records, key=key, source=reader.format, playback=playback)), probed


def _text_of(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(str(path), f"cannot be read as UTF-8 text ({error})") from error
    if not text.strip():
        raise SourceError(str(path), "is empty")
    return text


def _blocks_of(text: str) -> Iterator[Block]:
    """Yield the messages of a text; one without roles counts as written by the user."""
    marks = list(_ROLE.finditer(text))
    if not marks or text[: marks[0].start()].strip():
        yield _block(0, "user_message", text[: marks[0].start()] if marks else text)
    for number, (mark, following) in enumerate(zip_longest(marks, marks[1:]), 1):
        own = text[mark.end() : following.start() if following else None].strip()
        yield _block(number, _TYPES[mark[1].lower()], own)


def _block(number: int, content_type: ContentType, text: str) -> Block:
    tokens = max(1, len(text) // 4)
    return Block(f"b{number}", content_type, tokens, number, f"b{number}", 1, "", len(text), "estimate", text)


def text_report(losses: Sequence[Loss], *, everything: bool = False) -> str:
    """Return what was lost, the worst first; recoverable and kept facts only with *everything*."""
    if not losses:
        return "no compaction recorded"
    return "\n\n".join("\n".join(_lines(loss, everything=everything)) for loss in losses)


def _lines(loss: Loss, *, everything: bool) -> Iterator[str]:
    evaluated = loss.evaluated
    yield f"{loss.compaction.name}: {facts_text(evaluated) if evaluated.facts_total else evaluated.reason}"
    if evaluated.facts_total:
        yield f"  {soundness_text(evaluated, is_judged=loss.judged is not None)}"
    yield from (f"  not measured: {what}" for what in evaluated.unmeasured)
    hidden = 0
    for fact in sorted(evaluated.facts, key=lambda fact: severity(fact.kind, fact.outcome)):
        again = loss.needed_again(fact)
        if everything or again or fact.outcome in ("contradicted", "lost"):
            yield f"  {fact_text(fact.kind, fact.outcome, fact.text or '')}{f' ({again})' if again else ''}"
        else:
            hidden += 1
    if hidden:
        yield f"  and {count(hidden, 'fact')} recoverable or kept: --all lists them"
    if loss.judged is not None:
        yield from _judged_lines(loss.judged)


def _judged_lines(judged: Evaluation) -> Iterator[str]:
    """Yield what a judge answers, by kind of question, and the questions that were missed."""
    event, judgment = judged.event, judged.judgment
    if judgment is None or event.score is None:
        yield f"  judge {event.judge}: no score, {event.reason}"
        return
    kinds = ", ".join(f"{kind} {share:.2f}" for kind, share in judgment.by_kind.items())
    repetitions = count(max((len(item.fates) for item in judgment.judged), default=0), "repetition")
    spread = "" if judgment.spread is None else f", spread {judgment.spread:.2f} over {repetitions}"
    yield f"  judge {event.judge}: {event.score:.2f}{spread} in {count(judgment.calls, 'call')} ({kinds})"
    yield from (f"  {line}" for line in missed_lines(judgment))
