"""The address of each page and its widgets, kept in step whichever of them has changed.

A link, the Back button or typing changes the address, and the widgets follow it. A widget changes the view, and
the address follows. Both cases differ in the address that the page itself wrote last.

Streamlit's own `bind="query-params"` does not serve here (1.67): a link to the page that is open changes its
widgets but not the address, the Back button skips choices, and parameters stay in the address of the next page.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from windowpane_dashboard.page import widget_state
from windowpane_dashboard.queries.filters import Query


def changed_elsewhere(page: str) -> bool:
    """Return whether anything but this page changed the address, so that its widgets must be set from it."""
    return bool(st.session_state.get(_key(page)) != st.query_params.to_dict())


def last_written(page: str) -> Query:
    """Return the address that the page wrote last."""
    return dict(st.session_state.get(_key(page), {}))


def write(page: str, query: Query) -> None:
    """Make *query* the address of the page."""
    st.session_state[_key(page)] = query
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)


def update(page: str, **parameters: str | None) -> None:
    """Change some parameters of the address; None removes one.

    Starts from the address that the page wrote last: the browser may not have seen it yet.
    """
    current = st.session_state.get(_key(page), st.query_params.to_dict())
    merged = {**current, **parameters}
    write(page, {name: value for name, value in merged.items() if value is not None})


def bound_widget(page: str, name: str, value: object, *, clears: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the key and the callback of the widget for the parameter *name*, at its *value* in the address.

    A choice in the widget changes this parameter and removes those that it *clears*. Values of other widgets that
    arrive late change nothing.
    """
    control = f"{page}_{name}"
    key = widget_state.fresh_key(control, value)

    def on_choice(chosen: object) -> None:
        update(page, **dict.fromkeys(clears), **{name: _parameter(chosen)})

    return {"key": key, "on_change": lambda: widget_state.apply(control, key, on_choice)}


def _parameter(chosen: object) -> str | None:
    text = ",".join(chosen) if isinstance(chosen, list) else "" if chosen is None else str(chosen)
    return text.strip() or None


def _key(page: str) -> str:
    return f"address_of_{page}"
