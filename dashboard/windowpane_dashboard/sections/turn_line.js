// Draws a vertical line through the selected turn over each chart, found by the chart's own axis.
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
