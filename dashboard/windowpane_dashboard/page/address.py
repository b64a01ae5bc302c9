"""Each page and its address: both always say the same, whichever of them has changed.

A link, the Back button or somebody's typing changes the address, and the widgets follow it. A widget changes the
view, and the address follows. What the page itself wrote last tells the two apart.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from windowpane_dashboard.page import widget_state
from windowpane_dashboard.queries.filters import Query


def changed_elsewhere(page: str) -> bool:
    """Whether the address was changed by anything but this page, so that its widgets must be set from it."""
    return bool(st.session_state.get(_key(page)) != st.query_params.to_dict())


def last_written(page: str) -> Query:
    """The address that the page had when it was left."""
    return dict(st.session_state.get(_key(page), {}))


def write(page: str, query: Query) -> None:
    """Make *query* the address of the page; nothing happens where it is."""
    st.session_state[_key(page)] = query
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)


def update(page: str, **parts: str | None) -> None:
    """Change parts of the address; None takes one out.

    Begins with what the page wrote last: the browser may not have seen it yet.
    """
    begun = st.session_state.get(_key(page), st.query_params.to_dict())
    kept = {name: value for name, value in begun.items() if name not in parts}
    write(page, {**kept, **{name: value for name, value in parts.items() if value is not None}})


def bound_widget(page: str, name: str, value: object, *, clears: tuple[str, ...] = ()) -> dict[str, Any]:
    """The key and the callback of the control for a part of the address, at its *value* there.

    Only somebody's choice in it changes the address, and of that only this part and those that it *clears*: what
    comes late of the other controls changes nothing.
    """
    control = f"{page}_{name}"
    key = widget_state.fresh_key(control, value)

    def take(chosen: object) -> None:
        update(page, **dict.fromkeys(clears), **{name: _words(chosen)})

    return {"key": key, "on_change": lambda: widget_state.apply(control, key, take)}


def _words(chosen: object) -> str | None:
    text = ",".join(chosen) if isinstance(chosen, list) else "" if chosen is None else str(chosen)
    return text.strip() or None


def _key(page: str) -> str:
    return f"address_of_{page}"
