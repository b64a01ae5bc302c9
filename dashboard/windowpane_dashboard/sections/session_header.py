"""The session's identity and its metrics at the last turn."""

from __future__ import annotations

import time

import pandas as pd
import streamlit as st

from windowpane.alerts.rules import alert_title
from windowpane.core.characters import plain
from windowpane.core.times import IDLE_SECONDS, is_live
from windowpane.report.headline import counted_turns
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import AlertRow, SessionRow
from windowpane.text.forecasts import compaction_level_text, next_event, time_ahead, with_band
from windowpane.text.formats import (
    UNKNOWN,
    ago,
    copied_calls,
    count,
    dollars,
    percent,
    stated_totals,
    tokens,
    tokens_short,
)
from windowpane.text.labels import COUNT_SOURCE_LABELS, LIMIT_SOURCE_LABELS, severity_label
from windowpane.text.zones import ZONE_SHAPES
from windowpane_dashboard.page import times
from windowpane_dashboard.queries.alerts import lost_rules_of
from windowpane_dashboard.queries.timeline import Timeline
from windowpane_dashboard.style.sanitize import escape_markdown


def identity_line(row: SessionRow, timeline: Timeline) -> None:
    """Draw model, source, turns, the limit with its origin, and the time of the last event."""
    now = time.time()
    state = "live, " if is_live(row, now) else "ended, " if row.ended else ""
    if row.limit_tokens is None:
        limit = "limit unknown"
    else:
        origin = LIMIT_SOURCE_LABELS.get(row.limit_source or "", "")
        limit = f"limit {tokens(row.limit_tokens)} {origin}".strip()
    level = compaction_level_text(row.compaction_tokens, row.compaction_evidence)
    parts = [
        f"model {row.model or 'unknown'}",
        *([] if row.source.replace("_", "-") in row.agent else [f"source {row.source}"]),
        counted_turns(row.turns, timeline.open_turn),
        limit,
        *([level] if level else []),
        f"{state}last event {ago(row.last_at, now)}",
    ]
    if row.project:
        parts.append(f"project {row.project}")
    if row.revision > 1:
        parts.append(f"revision {row.revision}")
    sources = set(timeline.turns["count_source"].dropna())
    help_text = (
        "Counts: " + ", ".join(COUNT_SOURCE_LABELS.get(source, source) for source in sorted(sources)) + "."
    )
    if row.started_at is not None:
        help_text += f" From {times.local_and_utc(row.started_at)}"
        help_text += f" to {times.local_and_utc(row.last_at)}."
    st.caption(escape_markdown("  ·  ".join(parts)), help=escape_markdown(help_text) if sources else None)
    if row.limit_tokens is None:
        st.caption("The size of this model's window is unknown, so its fill and forecast are unknown too.")


def alert_line(store: EventReader, alert: AlertRow) -> None:
    """Draw what an alert reported, where a link to it opens the page, with the worst lost rule."""
    name = f"{severity_label(alert.severity)}: {alert_title(alert.alert)} at turn {alert.fired_turn}"
    text = "; ".join([alert.summary, *lost_rules_of(store, alert)[:1]])
    with st.container(key="alert_line"):
        st.markdown(f"**{escape_markdown(name)}.** {escape_markdown(plain(text))}.")


def metrics_row(row: SessionRow, timeline: Timeline, *, alert: AlertRow | None = None) -> None:
    """Draw the window, the next event while the session is live, the cost and what was lost.

    The window is that of the last call, of a live session with what came in since. With an *alert*, it is the
    fullest of its turn, where what was reduced before the call counts too; the forecast is in the alert's text.
    """
    live = is_live(row, time.time())
    metrics = [_window(row, timeline, alert, live=live), _cost(row), _lost(row, timeline)]
    if live and alert is None:
        metrics.insert(1, _forecast(row, timeline))
    with st.container(horizontal=True, gap="medium"):
        for label, value, help_text in metrics:
            st.metric(label, value, help=help_text, width="content")


def _window(row: SessionRow, timeline: Timeline, alert: AlertRow | None, *, live: bool) -> tuple[str, str, str]:
    used, share, zone = row.used_tokens, row.utilization, row.zone
    label, call = "Window now", "with what came in since the call"
    if not live and timeline.latest is not None:
        last = timeline.turns.iloc[-1]
        used, zone = round(last["used"]), last["zone"]
        share = None if pd.isna(last["utilization"]) else float(last["utilization"])
        label, call = "Window at the end", "in the last call"
    fullest = None if alert is None else timeline.fullest(alert.fired_turn)
    if alert is not None and fullest is not None:
        used, share, zone = round(fullest[0]), fullest[1], fullest[2]
        label, call = f"Window at turn {alert.fired_turn}", "at its fullest in this turn"
    size = tokens(used, estimated=row.is_estimated)
    text = tokens_short(used, estimated=row.is_estimated)
    if share is not None:
        text = f"{percent(share, estimated=row.is_estimated)} {ZONE_SHAPES[zone] if zone else ''}".strip()
    return label, text, f"Used tokens / limit {call}: {size} tokens of {tokens(row.limit_tokens)}."


def _lost(row: SessionRow, timeline: Timeline) -> tuple[str, str, str]:
    facts, text = timeline.facts, UNKNOWN
    if facts is not None:
        text = f"{facts.damaged:,} of {count(facts.total, 'fact')}"
    elif not row.compressions and not row.evicted_tokens:
        text = "0"
    if timeline.lost_rules:
        text = f"{count(timeline.lost_rules, 'rule')}, {text}"
    return "Lost or contradicted", text, "Rules and facts that compactions lost or contradicted; – if unknown."


def _cost(row: SessionRow) -> tuple[str, str, str]:
    totals = row.stated_input_tokens, row.stated_output_tokens, row.stated_cost_dollars
    if row.cost_dollars is None and any(totals):
        text = "The recording has no usage of single calls; "
        return "Cost", dollars(row.stated_cost_dollars, stated=True), f"{text}{stated_totals(*totals)}."
    return "Cost", dollars(row.cost_dollars, estimated=row.is_cost_estimated), _cost_help(row)


def _cost_help(row: SessionRow) -> str:
    text = "Cost of all model calls so far."
    if row.cache_ratio is not None:
        text += f" {percent(row.cache_ratio)} of their input came from the prompt cache."
    if row.copied_turns:
        text += f" {copied_calls(row.copied_turns)}."
    if not row.estimated_outputs:
        return text
    calls = f"{count(row.estimated_outputs, 'call')} of {row.turns:,}"
    return f"{text} The recording states only the start of the output of {calls}, whose rest is estimated."


def _forecast(row: SessionRow, timeline: Timeline) -> tuple[str, str, str]:
    event = next_event(row)
    text = UNKNOWN
    if timeline.latest is not None:
        is_idle = row.last_at is None or time.time() - row.last_at > IDLE_SECONDS
        duration = "" if is_idle else time_ahead(event.turns, timeline.turns["at"].dropna().tolist())
        text = ", ".join(filter(None, (with_band(event.turns, *event.band(timeline.latest)), duration)))
    aim = compaction_level_text(row.compaction_tokens, row.compaction_evidence)
    parts = [
        f"Turns (model calls) until {event.name}; in parentheses the range that holds in 8 of 10 cases.",
        "The time is that of as many turns at the median pace of the latest 20; none while the agent waits.",
        f"The agent {aim}." if aim else "Unknown before 3 turns.",
    ]
    if record := timeline.forecasts.text:
        parts.append(f"{record[0].upper()}{record[1:]}; 8 of 10 is the aim.")
    return f"{event.name.capitalize()} in", text, " ".join(parts)
