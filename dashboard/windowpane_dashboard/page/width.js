// Reports the width of the page where it is not the one that the page was drawn for, once that is drawn: a page that
// is interrupted may lack the values of its fields.
const DRAWN = "[data-testid=stApp][data-test-script-state=notRunning]";
const narrow = matchMedia("(max-width: 640px)");
const wide = matchMedia("(min-width: 1360px)");
export default function ({ data, setStateValue }) {
  let waiting = null;
  const report = () => {
    clearTimeout(waiting);
    const width = narrow.matches ? "narrow" : wide.matches ? "wide" : "middle";
    if (width === data.width) return;
    if (document.querySelector(DRAWN)) setStateValue("width", width);
    else waiting = setTimeout(report, 50);
  };
  report();
  for (const query of [narrow, wide]) query.addEventListener("change", report);
  return () => {
    clearTimeout(waiting);
    for (const query of [narrow, wide]) query.removeEventListener("change", report);
  };
}
