"""The calls of a session that count: those that ended, that sent tokens, the fullest one; what new input cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from windowpane.core.events import Usage, ZoneChanged
from windowpane.models.catalog import packaged_catalog
from windowpane.store.filters import EventFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import intact_events

if TYPE_CHECKING:
    from windowpane.core.vocabulary import Zone
    from windowpane.store.records import SessionRow, TurnRow

PriceOf = Callable[[str, Usage, float | None], float | None]
"""Dollars of a model's call at published prices; None without one."""
MAXIMUM_CHANGES: Final = 10_000
"""Changes of the zone that are read."""


def sent_calls(turns: Sequence[TurnRow]) -> list[TurnRow]:
    """Return the calls whose `used_final` are the tokens that the session sent: those that reported their input.

    Estimates count only for a session none of whose calls reported it, as for its peak: no bill, metric or list
    contains the others.
    """
    ended = ended_turns(turns)
    return [turn for turn in ended if turn.input_tokens is not None] or ended


def ended_turns(turns: Sequence[TurnRow]) -> list[TurnRow]:
    """Return the turns whose call has ended: those that every count of turns contains."""
    return [turn for turn in turns if turn.used_final is not None]


def open_turn(turns: Sequence[TurnRow]) -> int | None:
    """Return the turn whose call has not ended, which the last rows may be about; None without one."""
    return turns[-1].turn if turns and turns[-1].used_final is None else None


def calls_after(turns: Sequence[TurnRow], compactions: Iterable[int]) -> dict[int, int]:
    """Return the turns of the first calls after compactions, by the turns in or after which these happened.

    Each is smaller than the call before it.
    """
    used = {row.turn: row.used_final or 0 for row in turns}
    return {turn: turn if 0 < used.get(turn, 0) < used.get(turn - 1, 0) else turn + 1 for turn in compactions}


def worst_turn(reader: EventReader, turns: Sequence[TurnRow], session: SessionRow) -> int | None:
    """Return the first turn in the session's worst zone; None where that was before the first recorded call.

    A turn whose window was reduced before its call has the zone of the reduced one.
    """
    if session.worst_zone is None:
        return None
    measured = next((turn.turn for turn in turns if turn.zone == session.worst_zone), None)
    return _turn_entered(reader, session, session.worst_zone) if measured is None and turns else measured


def _turn_entered(reader: EventReader, session: SessionRow, zone: Zone) -> int | None:
    """Return the turn in which a session's window first was in *zone*; None if that was in none."""
    query = EventFilter(session_id=session.session_id, types=("zone.changed",), limit=MAXIMUM_CHANGES)
    changes = (stored.event for stored in intact_events(reader.events_or_damage(query)))
    turns = (
        one.context.turn for one in changes if isinstance(one.data, ZoneChanged) and one.data.to_zone == zone
    )
    return next(turns, 0) or None


def usage_of(row: TurnRow) -> Usage:
    """Return the usage of a call, its input without what the cache read or wrote."""
    read, written = row.cache_read_tokens or 0, row.cache_write_tokens or 0
    return Usage(
        input_tokens=max(0, (row.input_tokens or 0) - read - written),
        output_tokens=row.output_tokens or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def new_input_dollars(row: TurnRow, tokens: int, price_of: PriceOf | None = None) -> float | None:
    """Return what *tokens* cost that a call sent for the first time; None without a published price.

    They have their share of the price of the input that was not read from the cache.
    """
    usage = usage_of(row)
    sent = usage.input_tokens + usage.cache_write_tokens
    if not row.cost_dollars or not sent:
        return None
    price_of = price_of or packaged_catalog().cost_dollars
    call = replace(usage, output_tokens=0)
    read = Usage(cache_read_tokens=sent + usage.cache_read_tokens)
    prices = [price_of(row.model, priced, row.at) for priced in (usage, call, read)]
    if None in prices or not prices[0]:
        return None
    whole, input_, all_read = (price or 0.0 for price in prices)
    new = input_ - all_read * usage.cache_read_tokens / read.cache_read_tokens
    return row.cost_dollars * max(0.0, new) / whole * min(1.0, tokens / sent)
