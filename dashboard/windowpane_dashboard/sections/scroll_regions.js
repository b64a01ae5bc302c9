// A part that scrolls can be reached and scrolled with the keyboard.
function reachable() {
  for (const [key, name] of [["side_before", "Text before"], ["side_after", "Text after"]]) {
    for (const side of document.querySelectorAll(`.st-key-${key}`)) {
      side.tabIndex = 0;
      side.setAttribute("role", "region");
      side.setAttribute("aria-label", name);
    }
  }
}
