"""Filters and addresses: what is written is what is read, and nonsense is ignored."""

from __future__ import annotations

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import PAYLOADS
from windowpane.core.vocabulary import SEVERITIES, ZONES
from windowpane_dashboard.queries.filters import (
    AuditFilters,
    FleetFilters,
    ReplayAddress,
    SessionAddress,
)

TEXTS = st.none() | st.text(min_size=1, max_size=40).map(str.strip).filter(bool)
TURNS = st.none() | st.integers(0, 10**6)


@given(
    st.builds(
        FleetFilters, agent=TEXTS, model=TEXTS, source=TEXTS, zone=st.none() | st.sampled_from(ZONES),
        severity=st.none() | st.sampled_from(SEVERITIES), text=TEXTS,
    )
)  # fmt: skip
def test_fleet_filters_survive_the_address(filters: FleetFilters) -> None:
    assert FleetFilters.from_query(filters.to_query()) == filters


@given(
    st.builds(
        AuditFilters, session=TEXTS,
        types=st.lists(st.sampled_from(sorted(PAYLOADS)), unique=True).map(
            lambda names: tuple(name for name in PAYLOADS if name in names)
        ),
        turn_from=TURNS, turn_to=TURNS, text=TEXTS, after=st.integers(0, 10**9),
        order=st.sampled_from([None, "newest"]),
    )
)  # fmt: skip
def test_audit_filters_survive_the_address(filters: AuditFilters) -> None:
    assert AuditFilters.from_query(filters.to_query()) == filters


@given(session=TEXTS, turn=TURNS)
def test_a_session_address_survives_being_quoted_in_a_link(session: str | None, turn: int | None) -> None:
    address = SessionAddress(session, turn)
    query = dict(parse_qsl(address.url().removeprefix("session?"), errors="surrogatepass"))

    assert SessionAddress.from_query(query) == address


@given(
    st.builds(
        SessionAddress, session=TEXTS, turn=TURNS, compression=TURNS,
        events=st.sampled_from([None, "noteworthy"]),
    )
)  # fmt: skip
def test_a_session_view_survives_the_address(address: SessionAddress) -> None:
    assert SessionAddress.from_query(address.to_query()) == address


@given(st.builds(ReplayAddress, id=TEXTS, session=TEXTS, setup=TEXTS))
def test_a_replay_survives_the_address(address: ReplayAddress) -> None:
    assert ReplayAddress.from_query(address.to_query()) == address


@given(st.dictionaries(st.sampled_from(["zone", "severity", "turn", "types", "after", "turn_from"]), st.text()))
def test_invalid_parameters_are_ignored(query: dict[str, str]) -> None:
    fleet, audit = FleetFilters.from_query(query), AuditFilters.from_query(query)

    assert fleet.zone in (None, *ZONES)
    assert set(audit.types) <= set(PAYLOADS)
    assert audit.after >= 0
    assert SessionAddress.from_query(query).session is None
