// The dialog takes the keyboard as it opens; its field takes it from there, as soon as it is drawn, and opens the list.
// Escape closes both at once.
// Text that is no entry can be searched for; Streamlit offers to "add" it.
const close = ({ key }) => {
  if (key === "Escape") document.querySelector("[role=dialog] [aria-label=Close]")?.click();
};

export default function () {
  let attempts = 40;
  const poll = setInterval(() => {
    const field = document.querySelector("[role=dialog] input");
    field?.focus();
    if (document.activeElement !== field && (attempts -= 1) > 0) return;
    clearInterval(poll);
    field?.addEventListener("keydown", close, true);
    field?.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", code: "ArrowDown", bubbles: true }));
  }, 25);
  const renamed = new MutationObserver(() => {
    const texts = document.evaluate('//*[@role="option"]//text()[starts-with(., "Add: ")]', document, null, 6);
    for (let place = 0; place < texts.snapshotLength; place += 1) {
      const text = texts.snapshotItem(place);
      text.data = text.data.replace("Add: ", "Find: ");
    }
  });
  renamed.observe(document.body, { childList: true, characterData: true, subtree: true });
  return () => {
    clearInterval(poll);
    renamed.disconnect();
  };
}
