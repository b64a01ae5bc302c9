// The dialog takes the keyboard as it opens; its field takes it from there, as soon as it is drawn.
export default function () {
  let attempts = 40;
  const poll = setInterval(() => {
    const field = document.querySelector("[role=dialog] input");
    field?.focus();
    if (document.activeElement === field || (attempts -= 1) === 0) clearInterval(poll);
  }, 25);
  return () => clearInterval(poll);
}
