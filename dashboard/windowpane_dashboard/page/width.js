// Reports the width of the page where it is not the one that the page was drawn for, once that is drawn, with the
// code of each of its widgets: one that is drawn again before it was ever shown starts with its first option.
const DRAWN = "[data-testid=stApp][data-test-script-state=notRunning]";
const LOADING = "[data-testid=stSkeleton]";
const narrow = matchMedia("(max-width: 640px)");
const wide = matchMedia("(min-width: 1360px)");
export default function ({ data, setStateValue }) {
  let waiting = null;
  const report = () => {
    clearTimeout(waiting);
    const width = narrow.matches ? "narrow" : wide.matches ? "wide" : "middle";
    if (width === data.width) return;
    if (document.querySelector(DRAWN) && !document.querySelector(LOADING)) setStateValue("width", width);
    else waiting = setTimeout(report, 50);
  };
  report();
  for (const query of [narrow, wide]) query.addEventListener("change", report);
  return () => {
    clearTimeout(waiting);
    for (const query of [narrow, wide]) query.removeEventListener("change", report);
  };
}
