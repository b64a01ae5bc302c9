"""Parts of a page that are drawn later: once somebody scrolls near them, or once what matters more is painted.

A browser draws one thing after the other. So a page costs what is looked at, and what is looked at first is there
first. Who reads a page without a browser, such as a test or another program, gets all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

SCRIPT: Final = """
const NEAR = "400px";
const LOOK = 30;  // milliseconds
const PATIENCE = 3000;
const AGAIN = { idle: 2000, busy: 10000 };
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";

function whenNear(place, say) {
  const watch = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      watch.disconnect();
      say();
    }
  }, { rootMargin: NEAR, scrollMargin: NEAR });
  watch.observe(place);
  return () => watch.disconnect();
}

// It is in the document, a frame with it was shown, and the browser has nothing else to do.
function whenPainted(first, say) {
  let waits = true;
  const once = () => {
    if (waits) say();
    waits = false;
  };
  const frame = (act) => requestAnimationFrame(() => waits && act());
  const idle = window.requestIdleCallback || ((act) => setTimeout(act, LOOK));
  const look = setInterval(() => {
    if (!document.querySelector(first)) return;
    clearInterval(look);
    frame(() => frame(() => idle(once)));
  }, LOOK);
  const late = setTimeout(once, PATIENCE);
  return () => {
    waits = false;
    clearInterval(look);
    clearTimeout(late);
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  let asked = null;
  const say = () => {
    asked = performance.now();
    setTriggerValue("now", true);
  };
  // A request that comes while the page is still being drawn may lead to nothing; what is drawn takes this away.
  const again = setInterval(() => {
    const patience = document.querySelector(IDLE) ? AGAIN.idle : AGAIN.busy;
    if (asked !== null && performance.now() - asked > patience) say();
  }, AGAIN.idle / 4);
  const stop = data.first ? whenPainted(data.first, say) : whenNear(parentElement.querySelector(".place"), say);
  window.addEventListener("beforeprint", say);
  return () => {
    stop();
    clearInterval(again);
    window.removeEventListener("beforeprint", say);
  };
}
"""
"""Constant; it gets a selector of our own and says only that it is time."""

_mount: Final = st.components.v2.component(
    "windowpane_when_seen", html='<div class="place" style="height:100%"></div>', js=SCRIPT
)


def when_seen(draw: Callable[[], None], *, key: str, pixels: int) -> None:
    """Keep *pixels* of room until the place is near what is shown, then *draw*, and draw from then on."""
    _later(draw, key=key, pixels=pixels, first=None)


def when_painted(draw: Callable[[], None], *, key: str, pixels: int, first: str) -> None:
    """Keep *pixels* of room until what the selector *first* finds is painted, then *draw*, and draw from then on.

    Where it is not painted within 3 s, *draw* all the same.
    """
    _later(draw, key=key, pixels=pixels, first=first)


@st.fragment
def _later(draw: Callable[[], None], *, key: str, pixels: int, first: str | None) -> None:
    due = f"{key}_due"
    if st.session_state.get(due) or st.context.url is None:
        draw()
    else:
        _mount(key=f"{key}_place", data={"first": first}, height=pixels, on_now_change=lambda: _see(due))


def _see(due: str) -> None:
    st.session_state[due] = True
