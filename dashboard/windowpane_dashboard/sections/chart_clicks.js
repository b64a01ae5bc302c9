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
