// A link of the headline opens in this page; with a modifier key it opens elsewhere, as any link does.
export default function ({ data, setTriggerValue }) {
  const headline = document.querySelector(`.st-key-${data.key}`);
  if (!headline) return;
  headline.onclick = (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setTriggerValue("opened", [...headline.querySelectorAll("a[href]")].indexOf(link));
  };
}
