"""The line through the selected turn, drawn over the charts in the browser, and what else follows the turn there.

A figure is not sent again because another turn is selected: only the place of the line changes, and it is found
by the figure's own axis, so that it stays right when somebody zooms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

KEY: Final = "turn_line"

SCRIPT: Final = """
const lines = new Map();

function place(key, turn) {
  const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const axis = chart && chart._fullLayout && chart._fullLayout.xaxis;
  if (!axis || !axis.c2p) return;
  let line = lines.get(key);
  if (!line || line.parentElement !== chart) {
    if (line) line.remove();
    line = document.createElement("div");
    line.className = "turn-line";
    line.setAttribute("aria-hidden", "true");
    line.style.cssText = "position:absolute;width:1.5px;pointer-events:none;background:currentColor";
    chart.style.position = "relative";
    chart.appendChild(line);
    lines.set(key, line);
  }
  const across = axis.c2p(turn);
  const inner = chart._fullLayout._size;
  line.style.display = across < 0 || across > axis._length ? "none" : "block";
  line.style.left = `${axis._offset + across}px`;
  line.style.top = `${inner.t}px`;
  line.style.bottom = `${inner.b}px`;
  line.dataset.turn = String(turn);
}

// A part that scrolls can be reached and scrolled with the keyboard.
function reachable() {
  for (const [key, name] of [["side_before", "Text before"], ["side_after", "Text after"]]) {
    for (const side of document.querySelectorAll(`.st-key-${key}`)) {
      side.tabIndex = 0;
      side.setAttribute("role", "region");
      side.setAttribute("aria-label", name);
    }
  }
}

// A control that is drawn under a fresh key is another element: it goes on where the keyboard was.
let held = null;

function keep(controls) {
  const here = document.activeElement;
  const lost = here === document.body && held && !held.element.checkVisibility();
  if (lost) {
    document.querySelector(`[class*="st-key-${held.control}_"] input`)?.focus();
    return;
  }
  const control = controls.find((name) => here.closest(`[class*="st-key-${name}_"]`));
  held = control ? { control, element: here } : null;
}

// Each click on a chart chooses its turn; Plotly takes a click on what it has selected for the end of that.
let choose = null;
const clicked = ({ points }) => {
  if (choose && points.length) choose(points[0].x);
};

function listen(key) {
  const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  if (!chart || !chart.on) return;
  chart.removeListener("plotly_click", clicked);  // a chart that is made anew forgets who listened
  chart.on("plotly_click", clicked);
}

export default function ({ data, setTriggerValue }) {
  choose = (turn) => setTriggerValue("chosen", turn);
  const draw = () => {
    data.keys.forEach((key) => place(key, data.turn));
    listen(data.clicks);
    reachable();
    keep(data.controls);
  };
  draw();
  const timer = setInterval(draw, 120);
  return () => clearInterval(timer);
}
"""
"""Constant; it gets numbers and the keys of our own charts, nothing of an agent."""

_mount: Final = st.components.v2.component("windowpane_turn_line", js=SCRIPT)


def turn_line(
    turn: int, keys: tuple[str, ...], controls: tuple[str, ...], *, clicks: str, choose: Callable[[int], None]
) -> None:
    """Draw the line at *turn* over the charts with these keys, and keep the keyboard on these controls.

    A click on the chart *clicks* chooses the turn it is at.
    """
    data = {"turn": turn, "keys": list(keys), "controls": list(controls), "clicks": clicks}

    def take() -> None:
        chosen = st.session_state[KEY].chosen
        if isinstance(chosen, int | float):
            choose(int(chosen))

    _mount(key=KEY, data=data, height="content", on_chosen_change=take)
