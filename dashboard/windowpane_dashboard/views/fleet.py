"""Fleet: all sessions, those that need attention first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from windowpane.config.loading import load_config
from windowpane.core.times import is_live, midnight
from windowpane.exceptions import ConfigurationError
from windowpane.report.headline import Phrase, Subject, fleet_phrases
from windowpane.report.spending import budget_text
from windowpane.store.filters import SessionFilter
from windowpane.text.formats import count, dollars, percent
from windowpane.text.quota import quota_text
from windowpane_dashboard.page import address, messages, project_choice, store_access, times, widgets
from windowpane_dashboard.page.linked_headline import Target, linked_headline
from windowpane_dashboard.page.search_field import search_field, today
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.page.width import page_width
from windowpane_dashboard.queries import filter_chips
from windowpane_dashboard.queries.filter_chips import Filter
from windowpane_dashboard.queries.filters import FleetFilters, SessionAddress
from windowpane_dashboard.queries.fleet import (
    FLEET_ROWS,
    STYLING,
    Fleet,
    configured_budgets,
    fleet_frame,
    retention_text,
    visible_content,
)
from windowpane_dashboard.queries.titles import TITLE_OF_LINK, session_title, short_title
from windowpane_dashboard.sections.fleet_table import BAR_CELLS, fleet_styled
from windowpane_dashboard.sections.live_cards import live_cards
from windowpane_dashboard.sections.unread_sessions import unread_sessions
from windowpane_dashboard.style.sanitize import escape_markdown

PAGE, TABLE = "fleet", "fleet_table"
ALTERNATIVE: Final = "Sessions, live ones first, then by pressure"
HIDDEN: Final = ("next", "agent", "model", "turns", "compactions", *STYLING)  # until added by the menu
TARGETS: Final[dict[Subject, Target]] = {  # lists that the phrases of the headline link to
    "critical": Target(PAGE, FleetFilters(live="critical")),
    "warned": Target(PAGE, FleetFilters(live="warning")),
    "red": Target(PAGE, FleetFilters(live="red")),
    "red soon": Target(PAGE, FleetFilters(live="red soon")),
    "reached red": Target(PAGE, FleetFilters(reached="red")),
}


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("The sessions cannot be listed"):
        if not snapshot.store.sessions(SessionFilter(limit=1)):
            if store_access.may_write(snapshot):
                unread_sessions()
            messages.show_empty("The store is there, but it holds no sessions yet.")
        messages.show_import()
        head = st.container()
        filters = address_filters()
        snapshot = project_choice.of_project(snapshot, PAGE, filters.project)
        offered = filter_chips.offered_sessions(snapshot.store.facets(), today())
        search_field(PAGE, filters, offered, text_is="title, id, agent, folder, repository, branch and label")
        now = time.time()
        listed = read_listed(snapshot, filters, now)
    with head:
        linked_headline(headline(listed, filters, offered), targets(listed), PAGE)
        live_cards(listed.live, now)
        spending_line(snapshot, listed, now)
    session_table(listed, now)
    if store_access.may_write(snapshot):
        unread_sessions({row.session_id for row in listed.rows}, filters.text)
    if snapshot.projects is None:
        retention_line()
    store_access.rerun_on_change(snapshot, page=PAGE, content=lambda fresh: content(fresh, filters))


def read_listed(snapshot: StoreSnapshot, filters: FleetFilters, now: float) -> Fleet:
    """Return the sessions that match."""
    since, zone = store_access.live_since_now(), times.reader_zone()
    query = filters.to_store(limit=FLEET_ROWS, since=since, zone=zone)
    return store_access.fleet(snapshot, query, since, midnight(now, zone))


def content(snapshot: StoreSnapshot, filters: FleetFilters) -> object:
    """Return what the page shows of the store, with the sums of unlisted sessions as they are written."""
    now = time.time()
    listed = read_listed(snapshot, filters, now)
    offered = filter_chips.offered_sessions(snapshot.store.facets(), today())
    return (
        visible_content(listed, now), totals_text(listed), headline(listed, filters, offered),
        spending_texts(snapshot, listed, now), offered, store_access.project_names(snapshot),
    )  # fmt: skip


def headline(listed: Fleet, filters: FleetFilters, offered: Mapping[str, Filter]) -> list[Phrase]:
    """Return the headline of the page."""
    phrases = fleet_phrases(listed.totals, filtered=bool(filter_chips.chosen(filters, offered)))
    return [*phrases, *named_sessions(listed)]


def spending_line(snapshot: StoreSnapshot, listed: Fleet, now: float) -> None:
    """Draw the quotas of plans, and the cost budgets of the day."""
    texts: Sequence[str] = ()
    with messages.report_read_errors("Quotas and budgets cannot be read"):
        texts = spending_texts(snapshot, listed, now)
    if texts:
        st.caption(escape_markdown(" · ".join(texts)))


def spending_texts(snapshot: StoreSnapshot, listed: Fleet, now: float) -> list[str]:
    """Return the state of each quota and budget."""
    store = snapshot.store
    quotas = sorted(store.quotas(now=now), key=lambda quota: quota.read_at)
    latest = {(quota.agent, quota.minutes): quota for quota in quotas}  # an agent may have several accounts
    live = {row.agent for row in listed.rows if is_live(row, now)}
    budgets = configured_budgets(snapshot.projects)
    costs = store.spending(since=midnight(now)) if budgets else ()
    return [
        *(quota_text(quota, now, live) for quota in latest.values()),
        *(budget_text(budget, costs) for budget in budgets),
    ]


def retention_line() -> None:
    """Draw when sessions are deleted."""
    try:
        limits = load_config().store
        text = f"Sessions are deleted {retention_text(limits.retention_days, limits.retention_bytes)}."
    except ConfigurationError as error:
        text = f"The retention is unknown, because the configuration cannot be read ({error})."
    st.caption(escape_markdown(text))


def address_filters() -> FleetFilters:
    """Return the filters of the address."""
    query = project_choice.query_of(PAGE)
    if "session" in query:  # on the way back from a session that a row opened
        query = address.last_written(PAGE)
    return FleetFilters.from_query(query)


def targets(listed: Fleet) -> dict[Subject, Target]:
    """Return what the phrases of the headline link to."""
    result = dict(TARGETS)
    if listed.live:
        result["next"] = Target("session", SessionAddress(listed.live[0].row.session_id))
    if listed.forgot_most:
        address = SessionAddress(listed.forgot_most[0].session_id, tab="compressions")
        result["forgot most"] = Target("session", address)
    return result


def named_sessions(listed: Fleet) -> tuple[Phrase, ...]:
    """Return who loses its memory next and who forgot most, both linked; nothing where no session does."""
    phrases = [Phrase(listed.warning, "next")] if listed.warning else []
    if listed.forgot_most:
        row, losses = listed.forgot_most
        of = f" of the {FLEET_ROWS} listed" if listed.more else ""
        phrases.append(Phrase(f"Forgot most{of}: {session_title(row)} ({losses.text}).", "forgot most"))
    return tuple(piece for phrase in phrases for piece in (Phrase(" "), phrase))


def session_table(listed: Fleet, now: float) -> None:
    """Draw the table of sessions; selecting a row opens it."""
    if not listed.rows:
        st.text("No session matches. Remove a filter to see more.")
        return
    st.caption(escape_markdown(totals_text(listed)))
    config, width = st.column_config, page_width()
    frame = fleet_frame(listed, now)
    title = config.LinkColumn(display_text=TITLE_OF_LINK, alignment="left", width=480 if width == "wide" else 300)
    lost = config.NumberColumn(
        alignment="left", help="facts that compactions lost or contradicted; content needed again; – unknown"
    )
    if width == "narrow":  # only text wraps
        frame = frame.assign(session=list(map(short_title, listed.rows)), lost=frame["losses"])
        title = lost = config.TextColumn()
    hidden = {*HIDDEN, *widgets.alike(frame)} - {"session", "window"}
    widest = {"repository": 240 if width == "wide" else 120, "losses": 150}
    widths = {name: min(most, 7 * (3 + int(frame[name].str.len().max()))) for name, most in widest.items()}
    widgets.table(
        fleet_styled(frame, widgets.current_palette(), cells=BAR_CELLS if width == "wide" else 0),
        key=TABLE,
        alt=ALTERNATIVE,
        on_select=lambda: None,
        selection_mode="single-row",
        height="content" if len(listed.rows) <= 16 else 560,
        column_order=[name for name in frame if name not in hidden],
        numbers={"cost": None, "window": None, "lost": None},
        narrow={"session": 142, "window": 66, "lost": 56, "cost": 60},
        column_config={
            "session": title,
            "repository": config.TextColumn(width=widths["repository"], help="repository or folder, branch"),
            "window": config.NumberColumn(
                width=150 if width == "wide" else 80,
                alignment="left",
                help="used tokens / limit of the next call; ≈ estimated",
            ),
            "lost": lost | {"width": widths["losses"]},
            "next": config.TextColumn(help="turns until the agent's own compaction, or until red"),
            "cost": config.NumberColumn(width=80, help="with its sub-agents; ≈ estimated, * stated as a total"),
            "alerts": config.TextColumn(width=90, help="firing now: the worst, + how many others"),
            "last": config.TextColumn(width=92, help="last event"),
            "compactions": config.TextColumn(help="◆ where the agent was in the middle of a task"),
        },
    )
    chosen = st.session_state[TABLE].selection.rows
    if chosen:
        session_id = listed.rows[chosen[0]].session_id
        st.switch_page("views/session.py", query_params={"session": session_id})


def totals_text(listed: Fleet) -> str:
    """Return how many sessions match, and their cost and cache use."""
    totals = listed.totals
    parts = [count(totals.sessions, "session")]
    if listed.more:
        parts = [f"The first {FLEET_ROWS} of {parts[0]}: narrow the filters"]
    if totals.cost_dollars is not None:
        parts.append(dollars(totals.cost_dollars, estimated=totals.estimated_outputs > 0))
    if totals.cache_ratio is not None:
        parts.append(f"{percent(totals.cache_ratio)} of the input from the cache")
    return " · ".join(parts)


main()
