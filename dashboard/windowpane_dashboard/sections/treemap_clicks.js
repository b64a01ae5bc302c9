// A click on an area of a treemap chooses it; Plotly itself zooms into an area that holds others.
let choose = null;
let timer = null;
const clicked = ({ points }) => {
  if (choose && points.length) choose(points[0].id);
};

// Streamlit calls this at every change and cleans up only when the component is removed.
export default function ({ data, setTriggerValue }) {
  choose = (area) => setTriggerValue("chosen", area);
  const listen = () => {
    const chart = document.querySelector(`.st-key-${data.key} .js-plotly-plot`);
    if (!chart || !chart.on) return;
    chart.removeListener("plotly_treemapclick", clicked);  // a chart that is made anew forgets who listened
    chart.on("plotly_treemapclick", clicked);
  };
  listen();
  clearInterval(timer);
  const mine = timer = setInterval(listen, 120);
  return () => clearInterval(mine);
}
