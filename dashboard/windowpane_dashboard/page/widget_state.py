"""Widgets that something else can move too, and their values that arrive late.

The browser sends the values of all its widgets with each request, such as the poll for new events every few
seconds. A request that it sends before it has seen a move still holds the old values of the others, which must
not count as the user moving them back. So a widget that something else has moved is drawn under a fresh key, for
which the browser has no older value, and a value that arrives under an outdated key is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn

import streamlit as st

UNSENT = "unsent_controls"
"""Keys of new widgets whose value the browser may lack: a request that interrupts a drawing drops its answer."""


def fresh_key(control: str, value: object, *, scope: Hashable = None) -> str:
    """Return the key under which *control* is drawn to show *value*: a new one where anything else moved it.

    Another *scope*, such as the bounds of a slider, makes it another widget.
    """
    number, last_scope = st.session_state.get(_state_key(control), (0, scope))
    moved = last_scope != scope or st.session_state.get(_key(control), value) != value
    st.session_state[_state_key(control)] = (number + moved, scope)
    key = _key(control)
    unsent: set[str] = st.session_state.setdefault(UNSENT, set())
    if key not in st.session_state:
        unsent.add(key)
    if key in unsent:
        st.session_state[key] = value
    return key


def finish_drawing() -> None:
    """Send the values of new widgets no more: this drawing was not interrupted.

    A value sent again would overwrite what the user chose in the meantime.
    """
    st.session_state[UNSENT] = set()


def stop() -> NoReturn:
    """End the page before the end of its script."""
    finish_drawing()
    st.stop()


def discard_late_values(*controls: str) -> None:
    """Ignore values that still arrive for these controls as they were drawn until now."""
    for control in controls:
        number, scope = st.session_state.get(_state_key(control), (0, None))
        st.session_state[_state_key(control)] = (number + 1, scope)


def apply(control: str, key: str, action: Callable[[Any], None]) -> None:
    """Call *action* with the value of *control*, in its callback, unless *key* is outdated."""
    if key == _key(control):
        action(st.session_state[key])


def set_value(control: str, value: object) -> None:
    """Show *value* in *control* under its current key, so that text being typed into it is not lost."""
    key = _key(control)
    if st.session_state.get(key, value) != value:
        st.session_state[key] = value


def _key(control: str) -> str:
    number, _ = st.session_state.get(_state_key(control), (0, None))
    return f"{control}_{number}"


def _state_key(control: str) -> str:
    return f"drawn_{control}"
