// Reports the width of the page where it is not the one that the page was drawn for.
const narrow = matchMedia("(max-width: 640px)");
const wide = matchMedia("(min-width: 1360px)");
export default function ({ data, setStateValue }) {
  const report = () => {
    const width = narrow.matches ? "narrow" : wide.matches ? "wide" : "middle";
    if (width !== data.width) setStateValue("width", width);
  };
  report();
  for (const query of [narrow, wide]) query.addEventListener("change", report);
  return () => {
    for (const query of [narrow, wide]) query.removeEventListener("change", report);
  };
}
