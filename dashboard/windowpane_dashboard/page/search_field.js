// A filter was chosen: the list closes, so that it covers no results, and the field keeps the keyboard.
let before;
export default function ({ data }) {
  const chosen = JSON.stringify(data.chosen);
  const field = document.activeElement;
  if (before !== undefined && before !== chosen && field?.getAttribute("role") === "combobox") {
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", code: "Escape", bubbles: true }));
  }
  before = chosen;
}
