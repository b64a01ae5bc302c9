// Runs before Streamlit's own handler; with a modifier key the link opens elsewhere, as any link does.
const onClick = (event) => {
  const link = event.target.closest?.("a[data-testid=stPageLink-NavLink]");
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.pathname !== location.pathname || link.href === location.href) return;
  history.pushState({}, "", link.href);
};

// Streamlit calls this at every change; a listener that is there already is not added again.
export default function () {
  document.addEventListener("click", onClick, true);
  return () => document.removeEventListener("click", onClick, true);
}
