"""Probe fidelity: the share of removed information that the model can still see, measured without asking a model.

Facts of the removed text are looked up in the visible text: names and numbers, weighted by how likely they are
needed again, and sentences, which are recognized across line breaks and light rewording and have to agree in
their numbers, names and negations. What the replacement states and the removed text denies lowers the score too.
Published measurements show that surviving keywords overstate real recall, so this is a floor alarm and is always
labeled `method="probe"`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Literal, NamedTuple

from windowpane.core.events import FactOutcome, FidelityEvaluated
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import Fate
from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import Fact, FactFinder, FactKind
from windowpane.fidelity.faithfulness import faithfulness
from windowpane.fidelity.statement_index import StatementIndex, Work
from windowpane.fidelity.statements import Statement, is_prose, read_statement, units, units_of
from windowpane.fidelity.tokens import TOKEN

Dimension = Literal["key_facts", "continuity", "decisions"]

MINIMUM_COVERAGE: Final = 0.5
"""Below this share of removed tokens with recorded text a score would be a guess."""
WEIGHTS: Final[dict[Dimension, float]] = {"key_facts": 0.5, "continuity": 0.25, "decisions": 0.25}
"""Weights of the dimensions; a dimension without facts gives its weight to the others."""
MAXIMUM_NAMES: Final = 160
MAXIMUM_SENTENCES: Final = 60
"""Of each kind, newest first."""
MAXIMUM_STATEMENTS: Final = 320
"""Plain sentences of the model and the user, newest first."""
MAXIMUM_READ: Final = 2 * MAXIMUM_STATEMENTS
"""Sentences that are read for them."""
STATEMENT_WEIGHT: Final = 0.125
RECOGNIZED: Final = 0.75
"""Share of a sentence's words from which another sentence counts as the whole of it."""
MAXIMUM_OUTCOMES: Final = 200
"""Facts listed in one event."""


CREDIT: Final[dict[Fate, float]] = {"kept": 1.0, "recoverable": 0.0, "lost": 0.0, "contradicted": 0.0}
"""Content that only a handle can bring back is not visible: it is counted apart, and counts for nothing."""
SEVERITY: Final[tuple[Fate, ...]] = ("contradicted", "lost", "recoverable", "kept")
"""Fates, the most severe first."""
_CONTINUITY: Final[frozenset[FactKind]] = frozenset({"goal", "constraint", "open_work"})


class Outcome(NamedTuple):
    """The fate of one fact, or of one question of a judge."""

    kind: str
    fate: Fate
    text: str


class _Sight(NamedTuple):
    """The fate of a fact, and the share of it that is visible."""

    fate: Fate
    share: float


class _Weighed(NamedTuple):
    """A fact of the removed text with its weight."""

    fact: Fact
    statement: Statement | None
    weight: float


def evaluate(
    removed: Sequence[Block],
    visible: Sequence[Block],
    *,
    digest: Digester,
    recoverable: bool = False,
    task: str = "",
    of: str | None = None,
    with_faithfulness: bool = True,
) -> FidelityEvaluated:
    """Return the share of the facts in *removed* that *visible* still states, 0 to 1, as an event.

    Facts that are not visible are counted as recoverable rather than lost if the originals can be fetched by a
    handle that the model can see. *task* is text about the task, which the replacement may state although the
    removed text does not; what it adds is only checked *with_faithfulness*, which takes as long as the rest. The
    score is None if less than half of the removed tokens have text, or the text states no fact. *of* is the
    event id of the compression.

    The work is bounded whatever the text is like: facts that could not be looked up are not counted, and
    lower the coverage by their share.
    """
    coverage = coverage_of(removed)
    if coverage < MINIMUM_COVERAGE:
        reason = missing_text(coverage) if any(block.tokens for block in removed) else "nothing removed"
        return FidelityEvaluated("probe", None, coverage, of=of, reason=reason)
    prose = [list(units(block.text or "")) if is_prose(block) else [] for block in removed]
    finder = _read(removed, prose)
    facts = _facts(finder, prose)
    if not facts:
        return FidelityEvaluated("probe", None, coverage, of=of, reason="the removed text states no facts")
    work = Work()
    text = _VisibleText(facts, visible, work)
    missing: Fate = "recoverable" if recoverable else "lost"
    looked_up = [(one, text.sight(one, missing)) for one in facts]
    coverage *= _share_looked_up(looked_up)
    if coverage < MINIMUM_COVERAGE:
        reason = f"only {coverage:.0%} of the removed facts could be looked up in bounded time"
        return FidelityEvaluated("probe", None, coverage, of=of, reason=reason)
    facts = [one for one, sight in looked_up if sight is not None]
    sights = [sight for _, sight in looked_up if sight is not None]
    evaluated = as_event(
        "probe",
        [Outcome(one.fact.kind, sight.fate, one.fact.text) for one, sight in zip(facts, sights, strict=True)],
        {dimension: _share(facts, sights, dimension) for dimension in WEIGHTS},
        coverage=coverage,
        digest=digest,
        of=of,
    )
    if evaluated.score is None or not with_faithfulness:
        return evaluated
    faithful = faithfulness(removed, prose, visible, finder, work=Work(), task=task)
    if faithful is None:
        return evaluated
    return replace(evaluated, score=evaluated.score * faithful, faithfulness=faithful)


def sample(blocks: Sequence[Block], *, characters: int) -> tuple[Block, ...]:
    """Return the newest content of *blocks* in at most so many characters, for an evaluation in a short time.

    Half of it is what the model and the user wrote, as far as there is, since most facts are theirs. Of the block
    that does not fit, lines from start to end are read. Blocks without text are skipped.
    """
    texts = [block for block in blocks if block.text]
    written = [block for block in texts if is_prose(block) or block.content_type == "tool_call"]
    others = [block for block in texts if not (is_prose(block) or block.content_type == "tool_call")]
    room = max(characters // 2, characters - sum(len(block.text or "") for block in others))
    chosen = _newest(written, room)
    chosen |= _newest(others, characters - sum(len(block.text or "") for block in chosen.values()))
    return tuple(chosen[block.id] for block in texts if block.id in chosen)


def _newest(blocks: Sequence[Block], characters: int) -> dict[str, Block]:
    chosen: dict[str, Block] = {}
    for block in reversed(blocks):
        text = block.text or ""
        part = text if len(text) <= characters else _part(text, characters)
        if part == text:
            chosen[block.id] = block
        elif part:
            tokens = math.ceil(block.tokens * len(part) / len(text))
            chosen[block.id] = replace(block, text=part, tokens=tokens)
        characters -= len(part)
    return chosen


def _part(text: str, characters: int) -> str:
    """Return every second line, third line or so on of a text; its start where a line is long."""
    return "\n".join(text.split("\n")[:: math.ceil(len(text) / characters)])[:characters] if characters else ""


def _read(removed: Sequence[Block], prose: Sequence[Sequence[str]]) -> FactFinder:
    """Return the facts of *removed*; *prose* has the units of each block, none for a block that is not prose."""
    finder = FactFinder()
    for index, (block, sentences) in enumerate(zip(removed, prose, strict=True)):
        if block.text:
            text = "\n".join(sentences) if is_prose(block) else block.text
            finder.read(index, block.content_type, text, turn=block.turn)
    return finder


def _facts(finder: FactFinder, prose: Sequence[Sequence[str]]) -> list[_Weighed]:
    """Return the facts to look up: names that may be needed again, sentences with a cue, other sentences."""
    facts = [_Weighed(fact, None, fact.weight) for fact in finder.names(MAXIMUM_NAMES)]
    cued: set[str] = set()
    for fact in finder.sentences(MAXIMUM_SENTENCES):
        statement = read_statement(fact.text)
        if statement is not None:
            cued.add(statement.text)
            facts.append(_Weighed(fact, statement, 1.0))
    newest = islice((sentence for sentences in reversed(prose) for sentence in reversed(sentences)), MAXIMUM_READ)
    read = (read_statement(sentence) for sentence in dict.fromkeys(newest))
    plain = (statement for statement in read if statement is not None and statement.text not in cued)
    facts += [
        _Weighed(Fact("statement", one.text), one, STATEMENT_WEIGHT) for one in islice(plain, MAXIMUM_STATEMENTS)
    ]
    return facts


def _share_looked_up(looked_up: Sequence[tuple[_Weighed, _Sight | None]]) -> float:
    """Return the share of the facts' weight that could be looked up."""
    missed = math.fsum(one.weight for one, sight in looked_up if sight is None)
    return 1.0 - missed / math.fsum(one.weight for one, _ in looked_up) if missed else 1.0


def coverage_of(removed: Sequence[Block]) -> float:
    """Return the share of the removed tokens whose text was recorded."""
    total = sum(block.tokens for block in removed)
    return sum(block.tokens for block in removed if block.text) / total if total else 0.0


def missing_text(coverage: float) -> str:
    """Return why a compression with this coverage has no score."""
    return f"the text of only {coverage:.0%} of the removed tokens was recorded"


def weighted_score(shares: Mapping[Dimension, float | None]) -> float | None:
    """Return the weighted mean of the dimensions that have a share; None if none has."""
    present = [(WEIGHTS[name], share) for name, share in shares.items() if share is not None]
    total = math.fsum(weight for weight, _ in present)  # `sum` of fractions differs between Pythons
    return math.fsum(weight * share for weight, share in present) / total if present else None


def as_event(
    method: Literal["probe", "judge"],
    outcomes: Sequence[Outcome],
    shares: Mapping[Dimension, float | None],
    *,
    coverage: float,
    digest: Digester,
    of: str | None,
) -> FidelityEvaluated:
    """Return the event that reports *outcomes*; it lists the most severe ones."""
    fates = [outcome.fate for outcome in outcomes]
    listed = sorted(outcomes, key=lambda outcome: SEVERITY.index(outcome.fate))[:MAXIMUM_OUTCOMES]
    return FidelityEvaluated(
        method=method,
        score=weighted_score(shares),
        coverage=coverage,
        key_facts=shares.get("key_facts"),
        continuity=shares.get("continuity"),
        decisions=shares.get("decisions"),
        facts=tuple(FactOutcome(kind, fate, digest(text), text) for kind, fate, text in listed),
        facts_total=len(fates),
        facts_kept=fates.count("kept"),
        facts_recoverable=fates.count("recoverable"),
        facts_lost=fates.count("lost"),
        facts_contradicted=fates.count("contradicted"),
        of=of,
    )


def _dimension(fact: Fact) -> Dimension:
    if fact.kind == "decision":
        return "decisions"
    return "continuity" if fact.kind in _CONTINUITY else "key_facts"


def _share(facts: Sequence[_Weighed], sights: Iterable[_Sight], dimension: Dimension) -> float | None:
    """Return the weighted share of a dimension's facts that is visible; None without any."""
    own = [
        (one.weight, sight.share)
        for one, sight in zip(facts, sights, strict=True)
        if _dimension(one.fact) == dimension
    ]
    total = math.fsum(weight for weight, _ in own)
    return math.fsum(weight * share for weight, share in own) / total if total else None


class _VisibleText:
    """Index of the visible text: tokens, base names, values of keys, and statements."""

    def __init__(self, facts: Sequence[_Weighed], visible: Sequence[Block], work: Work) -> None:
        self._tokens: set[str] = set()
        self._statements = StatementIndex((one.statement for one in facts if one.statement is not None), work)
        self._wanted_keys = {one.fact.text.split("=", 1)[0] for one in facts if one.fact.kind == "number"}
        self._values: dict[str, set[str]] = {}
        base_names = [one.fact.text.rsplit("/", 1)[-1] for one in facts if one.fact.kind == "path"]
        self._unique = {name for name in base_names if base_names.count(name) == 1}
        for block in visible:
            self._statements.start_block()
            for unit in units_of(block):
                self._read(unit, TOKEN.findall(unit))
        self._bases = {token.rsplit("/", 1)[-1] for token in self._tokens if "/" in token} | self._tokens

    def _read(self, unit: str, words: list[str]) -> None:
        self._tokens.update(words)
        self._statements.add(unit, words)
        wanted = self._wanted_keys
        for position, word in enumerate(words):
            if word in wanted and position + 2 < len(words) and words[position + 1] in "=:":
                self._values.setdefault(word, set()).add(words[position + 2])

    def sight(self, one: _Weighed, missing: Fate) -> _Sight | None:
        """Return the fate of a fact, *missing* if it is not visible, and the share of it that is.

        None if it could not be looked up with the work that is allowed.
        """
        if one.statement is None:
            fate = self._fate_of_name(one.fact) or missing
            return _Sight(fate, CREDIT[fate])
        closest = self._statements.closest(one.statement)
        if closest is None:
            return None
        share = min(1.0, closest.share / RECOGNIZED) ** 2
        return _Sight("kept" if closest.is_same else "contradicted" if closest.contradicted else missing, share)

    def _fate_of_name(self, fact: Fact) -> Fate | None:
        if fact.kind == "number":
            return self._fate_of_number(*fact.text.split("=", 1))
        if fact.text in self._tokens:
            return "kept"
        base = fact.text.rsplit("/", 1)[-1]
        return "kept" if fact.kind == "path" and base in self._unique and base in self._bases else None

    def _fate_of_number(self, key: str, value: str) -> Fate | None:
        """Contradicted is a number whose key now has exactly one other value."""
        now = self._values.get(key, set())
        if value in now or (key in self._tokens and value in self._tokens):
            return "kept"
        return "contradicted" if len(now) == 1 else None
