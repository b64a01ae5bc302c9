"""Controls that something else can move too, and values of theirs that come late.

The browser sends the values of all its controls with whatever it asks, such as the look for new events every
few seconds. What it sends before it has seen a move still holds where the other controls were, and that must not
count as somebody moving them back. So a control that something else has moved is drawn under a fresh key, under
which the browser has no older value, and what comes under a key that has been let go is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st


def fresh_key(control: str, value: object, *, of: Hashable = None) -> str:
    """The key under which *control* is drawn to show *value*: a new one where anything else moved it.

    *of* is what else makes it another control, such as the bounds of a slider.
    """
    number, drawn_of = st.session_state.get(_state_key(control), (0, of))
    moved = drawn_of != of or st.session_state.get(_key(control), value) != value
    st.session_state[_state_key(control)] = (number + moved, of)
    key = _key(control)
    if key not in st.session_state:
        st.session_state[key] = value
    return key


def discard_late_values(*controls: str) -> None:
    """What still comes of these controls, as they were drawn until now, is late."""
    for control in controls:
        number, of = st.session_state.get(_state_key(control), (0, None))
        st.session_state[_state_key(control)] = (number + 1, of)


def apply(control: str, key: str, act: Callable[[Any], None]) -> None:
    """Do *act* with the value of *control*, in a callback of it, unless another key has taken its place."""
    if key == _key(control):
        act(st.session_state[key])


def set_value(control: str, value: object) -> None:
    """Let *control* show *value* under the key it has, so that what somebody is typing into it stays."""
    key = _key(control)
    if st.session_state.get(key, value) != value:
        st.session_state[key] = value


def _key(control: str) -> str:
    """The key that *control* has now."""
    number, _ = st.session_state.get(_state_key(control), (0, None))
    return f"{control}_{number}"


def _state_key(control: str) -> str:
    return f"drawn_{control}"
