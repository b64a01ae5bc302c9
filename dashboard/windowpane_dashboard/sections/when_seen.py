"""Parts of a page that are drawn once somebody scrolls near them: a page costs what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

SCRIPT: Final = """
const NEAR = "400px";

export default function ({ parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".place");
  const say = () => setTriggerValue("near", true);
  const watch = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      watch.disconnect();
      say();
    }
  }, { rootMargin: NEAR, scrollMargin: NEAR });
  watch.observe(place);
  window.addEventListener("beforeprint", say);
  return () => {
    watch.disconnect();
    window.removeEventListener("beforeprint", say);
  };
}
"""
"""Constant; it gets nothing and says only that the place is near."""

_mount: Final = st.components.v2.component(
    "windowpane_when_seen", html='<div class="place" style="height:100%"></div>', js=SCRIPT
)


@st.fragment
def when_seen(draw: Callable[[], None], *, key: str, pixels: int) -> None:
    """Keep *pixels* of room until the place is near what is shown, then *draw*, and draw from then on."""
    seen = f"{key}_seen"
    if not st.session_state.get(seen):
        _mount(key=f"{key}_place", height=pixels, on_near_change=lambda: _see(seen))
    else:
        draw()


def _see(seen: str) -> None:
    st.session_state[seen] = True
