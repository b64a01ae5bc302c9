"""Events of a time: the same as those of all events that have it, in any order and with any other filter."""

from __future__ import annotations

import pytest

from windowpane.store.filters import EventFilter


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(
    "narrowed",
    [
        {}, {"session_id": "s2"}, {"types": ("turn.ended",)}, {"session_id": "s1", "types": ("block.added",)},
        {"turn_from": 2, "turn_to": 3}, {"text": "tool"}, {"text": "tool", "session_id": "s2"}, {"after_seq": 20},
    ],
)  # fmt: skip
def test_events_of_a_time(store, make_session, narrowed, newest_first):
    for name, start in (("s1", 5_000.0), ("s2", 1_000.0), ("s3", 3_000.0)):
        store.append(make_session(name, turns=5, start=start))
    while store.index_text():
        pass
    whole = EventFilter(**narrowed, limit=10_000, newest_first=newest_first)
    moments = sorted(one.event.at for one in store.events(whole) if one.event.at is not None)
    first, last = moments[len(moments) // 4], moments[-2]

    for at_from, at_to in ((first, last), (first, None), (None, last), (last, first)):
        ranged = EventFilter(**narrowed, limit=10_000, newest_first=newest_first, at_from=at_from, at_to=at_to)
        expected = [
            one.seq
            for one in store.events(whole)
            if one.event.at is not None
            and (at_from is None or one.event.at >= at_from)
            and (at_to is None or one.event.at < at_to)
        ]
        assert [one.seq for one in store.events(ranged)] == expected
        assert store.count_events(ranged) == len(expected)
        assert [row.seq for batch in store.export_batches(ranged) for row in batch] == sorted(expected)
