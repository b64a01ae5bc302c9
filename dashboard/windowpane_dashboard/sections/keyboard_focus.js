// A control that is drawn under a fresh key is another element: it goes on where the keyboard was.
let held = null;

function keep(controls) {
  const here = document.activeElement;
  const lost = here === document.body && held && !held.element.checkVisibility();
  if (lost) {
    document.querySelector(`[class*="st-key-${held.control}_"] input`)?.focus();
    return;
  }
  const control = controls.find((name) => here.closest(`[class*="st-key-${name}_"]`));
  held = control ? { control, element: here } : null;
}

// A link lands on its evidence, once: it is in sight and has the keyboard.
let landed = null;

function land({ key, opened }) {
  const part = key && landed !== opened && document.querySelector(`.st-key-${key}`);
  if (!part) return;
  landed = opened;
  part.tabIndex = -1;
  part.focus({ preventScroll: true });
  part.style.scrollMarginTop = "5rem"; // below the header
  if (part.getBoundingClientRect().top > innerHeight / 2) part.scrollIntoView();
}
