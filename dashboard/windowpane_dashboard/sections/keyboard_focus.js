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
