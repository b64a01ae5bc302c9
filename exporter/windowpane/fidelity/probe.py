"""The probe: what a compaction lost and what its replacement has wrong, measured without asking a model.

Three questions, each answered by facts that a person can check:

- Where was the agent? Rules, the goal, decisions, open work, failed commands and the last files (`situation`) are
  kept, recoverable by a handle or a file, or lost.
- Is the replacement sound? Numbers, names and meanings that the removed text denies (`soundness`).
- Is its form whole? Missing sections, gaps and sentences that break off (`form`).

The score is the share of the facts that is kept. Faults that the probe does not find are possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Final, Literal

from windowpane.core.events import FactOutcome, FidelityEvaluated
from windowpane.core.names import file_name
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import Fate, severity
from windowpane.core.window.blocks import Block
from windowpane.fidelity.authorship import typed_texts
from windowpane.fidelity.form import form_faults
from windowpane.fidelity.languages import unknown_share
from windowpane.fidelity.passages import MAXIMUM_CHARACTERS, MESSAGE_TYPES, PROSE_TYPES, Passage, sentences
from windowpane.fidelity.rules import find_rules
from windowpane.fidelity.situation import CUT_MARK, Fact, situation
from windowpane.fidelity.soundness import contradictions

MINIMUM_COVERAGE: Final = 0.5
"""Below this share of removed tokens with recorded text a score would be a guess."""
MINIMUM_FACTS: Final = 5
"""With fewer facts a share of them is not a measure of the compression; they are listed all the same."""
MAXIMUM_OUTCOMES: Final = 200
MAXIMUM_RULES: Final = 60
"""Rules looked up, the newest."""
KEPT: Final = 0.5
"""Share of a fact's terms in one passage from which it is kept: names and numbers count double."""
READ_CHARACTERS: Final = 20_000
"""Start of a user's message whose statements are compared with the replacement."""
VISIBLE_CHARACTERS: Final = 120_000
"""Visible prose that facts are looked up in, the newest."""
UNKNOWN_SHARE: Final = 0.5
"""Share of the removed prose in an unknown language from which its decisions and rules are not measured."""
MAXIMUM_PROSE: Final = 100
"""Messages whose language is looked at, the newest."""
UNMEASURED: Final = "decisions, rules and reversals: in this language no words for them are known"
_TRANSCRIPT: Final = "read the full transcript at"
"""Announces the file in which Claude Code keeps what it removed."""
_ARGUMENTS: Final = re.compile(r"<command-args>(.{1,400}?)</command-args>", re.DOTALL)
"""Arguments that the user wrote behind a command of Claude Code."""
_NO_STATEMENT: Final = re.compile(r"^#|[{};]\s*$|:=|==|&&|=>|^\W*[\w.]+\(.*\)$|^\W*\"?[\w-]+\"?\s*[:=]\s*\S+,?$")
"""A heading, or a line of code or data."""


Outcome = tuple[str, Fate, str, str | None]
"""Kind, fate and text of a fact or of a question of a judge, and the block with its content.

Of a contradiction the second line has the text of the replacement, a third one the two values.
"""


def evaluate(
    removed: Sequence[Block],
    visible: Sequence[Block],
    *,
    digest: Digester,
    recoverable: bool = False,
    task: str = "",
    of: str | None = None,
) -> FidelityEvaluated:
    """Return what became of the facts in *removed* now that *visible* is all that the model sees, as an event.

    Facts that are not visible are recoverable rather than lost if the originals can be fetched by a handle that
    the model can see, or from a file that it names. *task* is text about the task that may support the
    replacement. *of* is the event id of the compression. The score is None if less than half of the removed
    tokens have text, or with fewer than `MINIMUM_FACTS` facts. The work is bounded whatever the text is like.
    """
    event = unevaluated("probe", removed, of=of)
    if event.reason:
        return event
    rules = find_rules(removed)[-MAXIMUM_RULES:]
    facts = [*(Fact("rule", rule.text, rule.block) for rule in rules), *situation(removed)]
    view = _Visible(visible, removed, recoverable=recoverable)
    faults = list(_contradictions(facts, removed, view, task))
    denied = {text.partition("\n")[0] for _, _, text, _ in faults}
    fates = ((fact.kind, view.fate(fact), fact.text, fact.block) for fact in facts if fact.text not in denied)
    outcomes = [*faults, *fates]
    event = with_outcomes(event, outcomes, digest)
    prose = (block.text or "" for block in reversed(removed) if block.content_type in MESSAGE_TYPES)
    is_scored = len(outcomes) >= MINIMUM_FACTS
    return replace(
        event,
        score=event.facts_kept / len(outcomes) if is_scored else None,
        reason="" if is_scored else f"a score needs {MINIMUM_FACTS} facts, {len(outcomes)} were found",
        form=tuple(chain.from_iterable(form_faults(text) for text in view.summaries)),
        unmeasured=(UNMEASURED,) if unknown_share(islice(prose, MAXIMUM_PROSE)) > UNKNOWN_SHARE else (),
    )


def retained_share(
    facts: Sequence[Fact], removed: Sequence[Block], visible: Sequence[Block], *, recoverable: bool
) -> float | None:
    """Return the share of *facts* that is visible or recoverable, 0 to 1; None with too few facts."""
    if len(facts) < MINIMUM_FACTS:
        return None
    if recoverable:
        return 1.0
    view = _Visible(visible, removed, recoverable=False)
    return sum(view.fate(fact) != "lost" for fact in facts) / len(facts)


def _contradictions(
    facts: Sequence[Fact], removed: Sequence[Block], view: _Visible, task: str
) -> Iterator[Outcome]:
    binding = [fact.text for fact in facts if fact.kind in ("rule", "goal")]
    stated = [*(fact.text for fact in facts if fact.kind in ("rule", "goal", "decision")), *_requests(removed)]
    replaced = {block.id for block in view.replacements}
    sources = [block.text for block in (*removed, *view.blocks) if block.text and block.id not in replaced]
    for one in contradictions(stated, binding, view.replacement, [*sources, task]):
        values = f"\n{one.replaced_by} for {one.value}" if one.value else ""
        yield one.kind, "contradicted", f"{one.statement}\n{one.claim}{values}", None


def _requests(removed: Sequence[Block]) -> Iterator[str]:
    """Yield what the user wrote, sentence by sentence, and behind a command; the newest message first."""
    typed = typed_texts(removed)
    for block in reversed(removed):
        if block.id in typed:
            parts = CUT_MARK.split(typed[block.id][:READ_CHARACTERS])
            heads = (sentence[:MAXIMUM_CHARACTERS] for part in parts for sentence in sentences(part))
            yield from (head for head in heads if not _NO_STATEMENT.search(head))
        elif block.content_type == "user_message":
            yield from _ARGUMENTS.findall((block.text or "")[:READ_CHARACTERS])


class _Visible:
    """The content that the model can see after a compaction."""

    def __init__(self, blocks: Sequence[Block], removed: Sequence[Block], *, recoverable: bool) -> None:
        self.blocks = blocks
        replacing = [one for one in blocks if one.text and (one.content_type == "summary" or one.replaces)]
        self.replacements = replacing or [one for one in blocks if one.content_type in PROSE_TYPES]
        self.summaries = [one.text or "" for one in self.replacements if one.content_type == "summary"]
        self.replacement = Passage("\n\n".join(one.text or "" for one in self.replacements)[:VISIBLE_CHARACTERS])
        self._removed = removed
        self._cut = {
            block.replaces: block for block in blocks if block.replaces and block.content_type != "summary"
        }
        self._names = "\n".join(f"{block.text or ''}\n{block.target or ''}" for block in blocks)
        self._recoverable = recoverable or _TRANSCRIPT in self._names

    def fate(self, fact: Fact) -> Fate:
        """Return whether a fact is kept, recoverable or lost."""
        wanted = Passage(fact.text)
        if fact.kind in ("changed_file", "read_file"):
            is_kept = self._has_file(fact.text)
        else:
            is_kept = any(passage.spans(wanted, least=KEPT) for passage in (self.replacement, self._rest))
        rest = self._cut.get(fact.block or "")
        if rest is not None and not is_kept:  # most of its terms may be in the rest of the message that was cut
            shared = wanted.positions.keys() & Passage(rest.text or "").positions.keys()
            is_kept = len(shared) > KEPT * len(wanted.positions)
        if is_kept:
            return "kept"
        has_handle = self._recoverable or (rest is not None and rest.handle is not None)
        is_noted = has_handle or any(fact.text[:80] in note for note in self._notes)
        return "recoverable" if is_noted else "lost"

    def _has_file(self, path: str) -> bool:
        """Return whether a file is named, alone or in its folder; another may have one of the same name."""
        folder, name = (re.escape(file_name(part)) for part in (path.removesuffix(file_name(path)), path))
        patterns = (rf"{name}(?<![\w.@+~/\\-]{name})(?![\w-])", rf"{folder}[\\/]+{name}(?![\w-])")
        return any(re.search(pattern, self._names) for pattern in patterns)

    @cached_property
    def _rest(self) -> Passage:
        """The visible prose that is not the replacement."""
        types = PROSE_TYPES | {"system_prompt"}
        rest = [block for block in self.blocks if block.content_type in types and block not in self.replacements]
        return Passage("\n\n".join(block.text or "" for block in rest)[-VISIBLE_CHARACTERS:])

    @cached_property
    def _notes(self) -> list[str]:
        """The calls that wrote a file whose name is visible."""
        calls = (block for block in self._removed if block.content_type == "tool_call" and block.text)
        by_path = ((call.target, call.text or "") for call in calls if call.target and "." in call.target)
        return [text for path, text in by_path if file_name(path) in self._names and self._has_file(path)]


def coverage_of(removed: Sequence[Block]) -> float:
    """Return the share of the removed tokens whose text was recorded."""
    total = sum(block.tokens for block in removed)
    return sum(block.tokens for block in removed if block.text) / total if total else 0.0


def unevaluated(
    method: Literal["probe", "judge"], removed: Sequence[Block], *, of: str | None
) -> FidelityEvaluated:
    """Return the event of a compression without its facts; with a reason if too little text was recorded."""
    coverage = coverage_of(removed)
    reason = ""
    if not any(block.tokens for block in removed):
        reason = "nothing removed"
    elif coverage < MINIMUM_COVERAGE:
        reason = f"the text of only {coverage:.0%} of the removed tokens was recorded"
    return FidelityEvaluated(method, None, coverage, of=of, reason=reason)


def with_outcomes(event: FidelityEvaluated, outcomes: Sequence[Outcome], digest: Digester) -> FidelityEvaluated:
    """Return *event* with the number of *outcomes* by fate, and a list of the most severe ones."""
    fates = [fate for _, fate, _, _ in outcomes]
    listed = sorted(outcomes, key=lambda outcome: severity(*outcome[:2]))[:MAXIMUM_OUTCOMES]
    return replace(
        event,
        facts=tuple(FactOutcome(kind, fate, digest(text), text, block) for kind, fate, text, block in listed),
        facts_total=len(fates),
        facts_kept=fates.count("kept"),
        facts_recoverable=fates.count("recoverable"),
        facts_lost=fates.count("lost"),
        facts_contradicted=fates.count("contradicted"),
    )
