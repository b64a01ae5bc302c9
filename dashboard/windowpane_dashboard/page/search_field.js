// A filter was chosen: the list closes, so that it covers no results, and the field keeps the keyboard.
let before;
export default function ({ data }) {
  const chosen = JSON.stringify(data.chosen);
  const isNew = before !== undefined && before !== chosen;
  before = chosen;
  if (!isNew) return;
  let attempts = 10;
  const close = setInterval(() => {
    const field = document.activeElement;
    const isOpen = field?.getAttribute("role") === "combobox" && document.querySelector("[role=option]");
    if (isOpen && !field.value) {
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", code: "Escape", bubbles: true }));
    }
    if ((attempts -= 1) === 0) clearInterval(close);
  }, 50);
  return () => clearInterval(close);
}
