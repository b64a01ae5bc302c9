// Enter searches for the typed text. It picks an option that is moved to, that is the text, or, where the text names
// a kind of filter ("agent: co"), the first one.
let moved = false;
const options = () => [...document.querySelectorAll("[role=option]")];
document.addEventListener("input", () => (moved = false), true);
document.addEventListener(
  "keydown",
  (event) => {
    const field = event.target;
    if (!field.matches?.('input[role=combobox][aria-label="Search or filter"]')) return;
    moved ||= event.key === "ArrowDown" || event.key === "ArrowUp";
    const text = field.value.trim();
    if (event.key !== "Enter" || moved || !text || !options().length) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const isFilter = text.includes(":");
    const same = options().find(({ textContent }) => textContent === text);
    pick(same ?? (isFilter && options().find(({ textContent }) => !/^(Select \d|Add: )/.test(textContent))));
  },
  true,
);
function pick(option, attempts = 20) {
  option ||= options().findLast(({ textContent }) => textContent.startsWith("Add: "));
  if (option) return option.click();
  const list = document.querySelector("[role=listbox]"); // the last option of a long list is drawn once scrolled to
  if (list) list.scrollTop = list.scrollHeight;
  if (attempts) setTimeout(() => pick(null, attempts - 1), 25);
}

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
