"""Forecasts of first passages of four levels, against two baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from forecast.measures import coverage, error, loss, width

from truth.chance import chance_lines
from truth.judged import FORECASTS, HORIZONS, LEVELS, Judged, at_level, judge
from truth.passages import Course, Level, Passage, passages, passages_of_unknown_agent
from truth.recordings import Half
from truth.statistics import interval


def forecast_lines(known: Sequence[Course]) -> list[str]:
    """Return the tables of first passages."""
    judged = [[judge(one) for one in passages(course) if one.reached] for course in known]
    censored = [[one for one in passages(course) if not one.reached] for course in known]
    halves: tuple[Half, ...] = ("reporting", "tuning")
    groups = {
        f"half `{half}`": [own for course, own in zip(known, judged, strict=True) if course.session.half == half]
        for half in halves
    }
    groups["all sessions"] = judged
    unknown = [[judge(one) for one in passages_of_unknown_agent(course) if one.reached] for course in known]
    calls = sum(len(course.totals) for course in known)
    intro = (
        f"{len(known)} sessions with the provider's totals of at least 15 calls ({calls:,} calls). A "
        "forecast is made at the end of every call below a level; the outcome is the number of calls until "
        "the level is passed. The level `own` is the one at which the agent compacts by itself, as the "
        "product states it at that call, and its outcome the last call before the recorded compaction. Loss: "
        "mean pinball loss at 0.1, 0.5 and 0.9, summed. Intervals (90%) are of a bootstrap by session. The "
        "form of the forecast was chosen by cross-validation over all sessions, its constants were fitted "
        "to the half `tuning`, the documented growth of the two known agents to all their sessions. Every "
        "session is also forecast as that of an agent whose growth is not documented, as of most agents. An "
        "outcome is a whole number of calls, and so are the ends of the band: the band is the range of whole "
        "calls that the forecast gives closest to 80%."
    )
    horizons = (
        "By the median of the forecast, which a reader knows at the time, and by the outcome, where the level "
        "was passed. Kaplan–Meier also counts the forecasts without an outcome, as longer than they were "
        "observed. Intervals (90%) are of a bootstrap by session; one that contains 80% differs from it by no "
        "more than chance."
    )
    return [
        intro,
        "",
        *(line for name, group in groups.items() for line in _table(name, group)),
        *_table("all sessions, as those of an agent without documented growth", unknown),
        *chance_lines(groups),
        "### Coverage of the 10–90 band by horizon, all sessions",
        "",
        horizons,
        "",
        "| level | 0–3 | 4–12 | 13–50 | by outcome 0–3 | 4–12 | 13–50 | Kaplan–Meier below / above the band |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_horizons(level, judged, censored) for level in LEVELS),
        _horizons(None, judged, censored),
        "",
        "### Forecasts without an outcome",
        "",
        "| level | passed | session ended | compacted before |",
        "| --- | ---: | ---: | ---: |",
        *(_censored(level, judged, censored) for level in LEVELS),
        "",
        *TRIED,
    ]


# -- tables ---------------------------------------------------------------------------------------------------


def _table(name: str, judged: Sequence[Sequence[Judged]]) -> Iterator[str]:
    yield f"### First passages, {name}"
    yield ""
    yield "| level | forecast | passages (sessions) | loss | median error | 10–90 holds | median width |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for level in LEVELS:
        kept = at_level(judged, level)
        for forecaster, forecast in FORECASTS.items() if kept else ():
            # One block of rows per session: outcome, early end, median, late end.
            blocks = [[np.array([(one.passage.turns, *forecast(one)) for one in own])] for own in kept]
            losses, errors, held, widths = (
                interval(blocks, lambda some, measure=measure: measure(np.concatenate(some)))  # type: ignore[misc]
                for measure in (loss, error, coverage, width)
            )
            has_band = not forecaster.startswith("remaining")
            yield (
                f"| {level} | {forecaster} | {sum(map(len, kept)):,} ({len(kept)}) | {losses.text(1)} "
                f"| {errors.text(1)} | {held.text() if has_band else '–'} "
                f"| {f'{widths.value:.0f}' if has_band else '–'} |"
            )
    yield ""


def _horizons(
    level: Level | None, judged: Sequence[Sequence[Judged]], censored: Sequence[Sequence[Passage]]
) -> str:
    by_session = [[one.passage for one in own if level in (None, one.passage.level)] for own in judged]
    at_level = [one for own in by_session for one in own]
    cells = [
        _share([[one for one in own if low - 0.5 <= one.median < high + 0.5] for own in by_session])
        for low, high in HORIZONS
    ]
    cells += [
        _share([[one for one in own if low <= one.turns <= high] for own in by_session]) for low, high in HORIZONS
    ]
    open_ones = [one for own in censored for one in own if level in (None, one.level)]
    below, above = _kaplan_meier([*at_level, *open_ones])
    return f"| {level or 'all'} | {' | '.join(cells)} | {below:.0%} / {above:.0%} |"


def _share(by_session: Sequence[Sequence[Passage]]) -> str:
    held = [[one.held for one in own] for own in by_session if own]
    if not held:
        return "–"
    share = interval(held, lambda some: float(np.mean(some)))
    return f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%}) of {sum(map(len, held)):,}"


def _kaplan_meier(passages: Sequence[Passage]) -> tuple[float, float]:
    """Return the shares of outcomes below and above the band, with open outcomes as censored.

    The position of an outcome is its distance from the median in units of the band's half on its side.
    """
    positions = [(_position(one), one.reached) for one in passages]
    at_risk, surviving, below = len(positions), 1.0, 0.0
    above: float | None = None
    for position, reached in sorted(positions):
        if position > 1 and above is None:
            above = surviving
        if reached:
            surviving *= 1 - 1 / at_risk
        at_risk -= 1
        if position < -1:
            below = 1 - surviving
    return below, surviving if above is None else above


def _position(passage: Passage) -> float:
    outcome, middle = np.log(max(passage.turns, 0.5)), np.log(max(passage.median, 0.5))
    end = max(passage.late if outcome >= middle else passage.early, 0.5)
    return float((outcome - middle) / max(abs(np.log(end) - middle), 1e-6))


def _censored(level: Level, judged: Sequence[Sequence[Judged]], censored: Sequence[Sequence[Passage]]) -> str:
    passed = sum(one.passage.level == level for own in judged for one in own)
    open_ones = [one for own in censored for one in own if one.level == level]
    compacted = sum(one.compacted for one in open_ones)
    return f"| {level} | {passed:,} | {len(open_ones) - compacted:,} | {compacted:,} |"


TRIED: Final = """\
### Tried, and not taken

By the loss or the likelihood in cross-validation over sessions:

- the remaining tokens alone, without any pace of the session: 12% worse; most of a forecast is the agent's
  usual pace;
- the mean of all turns or of uncapped turns instead of a recent one with bursts cut: 4 to 7% worse, since
  the bursts at the start of a session are not repeated;
- the deviation of the session's own growth as the width of the band: no narrower at the same coverage;
- the size of the reply, turns since the last message of the user, turns per exchange, the largest of the
  last 20 turns, the position in the window: at most 2% each, less than the noise between sessions;
- the long-run mean of the session instead of the documented growth from the first turn on: 10% worse at 50k
  and 100k;
- the number of turns so far: 2% better in total and worse at 200k;
- a log-normal distribution whose early side is stretched: one constant more than the Weibull distribution,
  no better, and a band that holds 76% of the outcomes at 50k and 95% at 200k;
- a width by the remaining tokens, by the turns so far or by the window instead of the turns of growth that the
  window holds: less likely, and an outcome at 50k or 200k is outside the band more or less often than
  elsewhere;
- the growth of the first turns of a window (five times the usual in its first three calls, since files are
  read) as tokens that are still to come: 2% better, mostly at 50k, for two more constants;
- the same constants fitted again, all six or one of them, to seven eighths of the sessions and judged on the
  last: 1 to 5% worse than as they are; boosted trees on 24 features of the session, and the recorded
  continuations of other sessions of the same age at the same pace: 11% better to 65% worse by level. A third
  of the loss at 100k and 200k is that of one session; with sessions of the same weight, a tenth more or less of
  any constant is 1 or 2% of the loss;
- the weight of the recent turns by the length of the wait. The growth itself shows it: 0.8 for the next three
  turns, 0.5 for 15, 0.2 for 60. Forecasts with it are 9% better at `own`, 5% worse at 100k, 13% at 200k;
- the mean of the session without cut bursts, at a weight that grows with its turns: 10% better at 200k, all
  of it in one session, 3% worse at `own`;
- for an agent without documented growth the median of its first three turns as the typical growth: the loss
  of all sessions taken as such is 27% higher at 50k and 21% higher at 100k, and the band holds 70 and 75%.
""".splitlines()
"""Variants that were measured and did not help."""
