"""Sessions of another project change nothing that a reader of one project returns, whichever method is called.

Every method is found by introspection and called with values of its parameters before and after another project
is stored: both results must be equal. So names, texts and numbers of the other project are in none of them, nor
in any sum, count or limit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from tests.store.conformance.conftest import Stores
from tests.store.conftest import digest
from tests.two_projects import FACTOR, OTHER, OWN, SAME, SECRET, fill_other, fill_own, played

from windowpane.core.agents import EarlierSessions
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.reads.project_reader import ProjectReader
from windowpane.store.search.content import ContentFilter
from windowpane.store.store import Store

ABOUT_THE_STORE = {"version", "has_changed_since"}
"""Methods whose result may change: pages ask them whether anything was written at all."""


def texts() -> Iterator[str]:
    """Yield what readers may search for."""
    yield from ("drum", SECRET, "the", "utilization", f"{SECRET}.py", "bank", "")


SESSION_FILTERS = [
    SessionFilter(),
    SessionFilter(limit=1),
    SessionFilter(order="cost", limit=2),
    SessionFilter(order="recent", offset=1),
    *(SessionFilter(parent_session_id=one) for one in (*OWN, *OTHER)),
    *(SessionFilter(project=one) for one in ("shop", "bank", "")),
    SessionFilter(projects=("bank", "shop")),
    SessionFilter(agent=f"{SECRET}-agent"),
    *(SessionFilter(text=text) for text in texts()),
    SessionFilter(live_first_since=0.0),
]
EVENT_FILTERS = [
    EventFilter(),
    EventFilter(limit=3, newest_first=True),
    EventFilter(types=("alert.fired", "note.added")),
    EventFilter(after_seq=5, before_seq=20),
    EventFilter(at_from=0.0, at_to=2_000.0),
    EventFilter(turn_from=2, turn_to=2),
    EventFilter(projects=("bank", "", "shop")),
    *(EventFilter(session_id=one) for one in (*OWN, *OTHER)),
    *(EventFilter(text=text) for text in texts()),
]
CONTENT_FILTERS = [
    *(ContentFilter(text) for text in texts()),
    *(ContentFilter(text, session_id=one) for text in ("drum", SECRET) for one in (*OWN, *OTHER)),
    ContentFilter("the", projects=("bank", "shop")),
]
ALERT_FILTERS = [
    AlertFilter(),
    *(AlertFilter(limit=limit) for limit in (1, 5)),
    *(AlertFilter(session_id=one) for one in (*OWN, *OTHER, SAME, "unknown")),
    AlertFilter(alert="utilization"),
    AlertFilter(severity="critical"),
    *(AlertFilter(firing=firing) for firing in (True, False)),
    AlertFilter(live_since=0.0),
    AlertFilter(silent_since=2_000.0),
    AlertFilter(at_from=0.0),
    AlertFilter(at_to=2_000.0),
    *(AlertFilter(projects=projects) for projects in (("bank",), ("shop", "bank", ""))),
]
VALUES: dict[str, list[Any]] = {
    "session_id": [*OWN, *OTHER, SAME, "unknown"],
    "turn": [1, 3],
    "first": [1, 2],
    "last": [2],
    "prefix": ["s", "shop", "bank", "o", SAME, f"{SAME}@", ""],
    "block_id": ["b1", "b3"],
    "limit": [1, 5],
    "regretted": [True],
    "text": list(texts()),
    "digest": [digest("play the drum 2"), digest(f"play the {SECRET} 2"), digest(f"a {SECRET} 1")],
    "replay_id": ["own", "both", f"{SECRET} 1"],
    "live_since": [0.0],
    "since": [0.0, 2_000.0],
    "repository": ["shop", "bank", ""],
    "roots": [OWN, (*OWN, *OTHER)],
    "now": [2_000.0],
    "projects": [("bank",), ("shop", "bank", "")],
    "days": [10],
    "sessions": [(1, 2, 3), ()],
    "until": [0, 5],
    "after_seq": [3],
    "batch": [7],
    "on_unreadable": [lambda _seq, _error: None],
}
"""Values of each parameter of a reader's methods, by its name."""
FILTERS = {
    "SessionFilter": SESSION_FILTERS,
    "EventFilter": EVENT_FILTERS,
    "ContentFilter": CONTENT_FILTERS,
    "AlertFilter": ALERT_FILTERS,
}


def methods() -> list[str]:
    """Return the names of all public methods of the restricted reader."""
    return [name for name, _ in inspect.getmembers(ProjectReader, inspect.isfunction) if name[0] != "_"]


def values_of(parameter: inspect.Parameter) -> list[Any]:
    """Return the values of a parameter; one without values is a new one, which has to be added here."""
    values = FILTERS[parameter.annotation] if parameter.name == "query" else VALUES.get(parameter.name)
    assert values, f"the parameter {parameter.name} has no values in this test"
    return values


def calls(method: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each call: all required ones in every combination, the optional ones one by one."""
    parameters = list(inspect.signature(method).parameters.values())
    required = [one for one in parameters if one.default is inspect.Parameter.empty]
    for combination in product(*map(values_of, required)):
        arguments = dict(zip([one.name for one in required], combination, strict=True))
        yield arguments
        for one in parameters:
            if one not in required:
                yield from ({**arguments, one.name: value} for value in values_of(one))


def results(reader: ProjectReader) -> dict[str, Any]:
    """Return the result of every call by its text."""
    found = {}
    for name in methods():
        if name in ABOUT_THE_STORE:
            continue
        method = getattr(reader, name)
        for arguments in calls(method):
            result = method(**arguments)
            found[f"{name}({arguments})"] = (
                [row for part in result for row in part] if isinstance(result, Iterator) else result
            )
    return found


def test_another_project_changes_no_result(stores: Stores) -> None:
    store = stores.open(capture=True, redact=lambda text: text)
    fill_own(store)
    while store.index_text():
        pass
    reader = ProjectReader(store, ["shop"])
    before = results(reader)

    fill_other(store)
    store.index_text(limit=150)
    after = results(reader)

    assert {call: after[call] for call in before if after[call] != before[call]} == {}
    shown = [result for call, result in after.items() if not call.startswith("content(")]
    assert SECRET not in repr(shown)


def test_the_whole_store_has_what_the_project_has_not(stores: Stores) -> None:
    store = stores.open(capture=True, redact=lambda text: text)
    fill_own(store)
    fill_other(store)
    whole, shop = store.session("shop-lead"), ProjectReader(store, ["shop"]).session("shop-lead")
    odd = ProjectReader(store, ["shop", ""]).session("shop-odd")

    assert whole is not None
    assert shop is not None
    assert odd is not None
    assert whole.subagent_cost_dollars == 4.0 * FACTOR + 4.0
    assert shop == replace(whole, subagent_cost_dollars=4.0)
    assert odd.parent_session_id == "outer"


def test_a_level_is_not_learnt_from_another_project(store: Store) -> None:
    store.append(played("shop-lead", "shop"))
    learnt = {
        project: store.earlier_sessions("next", agent="drum-agent", model="drum-model", project=project)
        for project in ("shop", "bank", "")
    }

    assert learnt["shop"].base_tokens is not None
    assert learnt["bank"] == learnt[""] == EarlierSessions()
    assert store.last_compaction_tokens("drum-agent", "drum-model", project="bank") is None
