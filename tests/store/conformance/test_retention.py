"""Retention: whole sessions deleted by age or size, with tombstones and counters retained."""

from __future__ import annotations

from windowpane.store.filters import EventFilter, SessionFilter


def test_retention_deletes_whole_sessions_and_keeps_tombstones(store, make_session):
    for number in range(4):
        store.append(make_session(f"s{number}", turns=2, start=1e9 + number * 1e6))
    last_seq = max(item.seq for batch in store.scan() for item in batch)
    while store.index_text():
        pass

    assert store.prune(before=1e9 + 1.5e6) == 2

    assert [row.session_id for row in store.sessions(SessionFilter(order="recent"))] == ["s3", "s2"]
    assert store.turns("s0") == []
    assert sum(1 for head in store.heads() if head.kind == "pruned") == 2
    assert store.verify().intact
    assert store.size().events == store.count_events(EventFilter())
    assert len(store.events(EventFilter(text="session.started"))) == 2
    store.append(make_session("new", turns=1))
    assert min(item.seq for item in store.events(EventFilter(session_id="new"))) == last_seq + 1


def test_sessions_without_times_do_not_keep_old_ones(store, make_session):
    store.append([event._replace(at=None) for event in make_session("timeless", turns=2)])
    for number in range(2):
        store.append(make_session(f"s{number}", turns=2, start=1e9 + number * 1e6))

    assert store.prune(before=1e9 + 0.5e6) == 1
    assert {row.session_id for row in store.sessions(SessionFilter())} == {"timeless", "s1"}
    assert store.prune(max_bytes=1) == 2


def test_retention_by_size_stops_when_it_fits(store, make_session):
    for number in range(6):
        store.append(make_session(f"s{number}", turns=30, start=1e9 + number * 1e6))
    whole = store.size().bytes

    pruned = store.prune(max_bytes=whole * 2 // 3)

    assert 0 < pruned < 6
    assert store.size().bytes <= whole * 2 // 3
    assert store.session("s5") is not None


def test_pruned_sessions_are_folded_into_the_metric_base(store, make_session):
    counted = 0
    for session_id in ("s1", "s2"):
        events = make_session(session_id, turns=2)
        store.append(events)
        counted += len(events)

        store.prune(
            before=1e10, fold=lambda base, deleted: str(int(base or b"0") + sum(1 for _ in deleted)).encode()
        )

        assert store.load_metric_base() == str(counted).encode()


def test_a_fold_may_request_an_agents_label(store, make_session):
    store.append(make_session("s1", turns=2))

    assert store.prune(before=1e10, fold=lambda _base, _deleted: store.admit_agent("new-one").encode()) == 1

    assert store.load_metric_base() == b"new-one"
    assert store.verify().intact
