const POLL = 30;  // milliseconds
const PATIENCE = 3000;
const AGAIN = { idle: 2000, busy: 10000 };
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";

// It is in the document, a frame with it was shown, and the browser has nothing else to do.
function whenPainted(first, notify) {
  let waits = true;
  const once = () => {
    if (waits) notify();
    waits = false;
  };
  const frame = (action) => requestAnimationFrame(() => waits && action());
  const idle = window.requestIdleCallback || ((action) => setTimeout(action, POLL));
  const poll = setInterval(() => {
    if (!document.querySelector(first)) return;
    clearInterval(poll);
    frame(() => frame(() => idle(once)));
  }, POLL);
  const late = setTimeout(once, PATIENCE);
  return () => {
    waits = false;
    clearInterval(poll);
    clearTimeout(late);
  };
}

// Streamlit calls this at every change and cleans up only when the component is removed.
let release = () => {};

export default function ({ data, setTriggerValue }) {
  release();
  let asked = null;
  const notify = () => {
    asked = performance.now();
    setTriggerValue("now", true);
  };
  // A request that comes while the page is still being drawn may lead to nothing; what is drawn takes this away.
  const again = setInterval(() => {
    const patience = document.querySelector(IDLE) ? AGAIN.idle : AGAIN.busy;
    if (asked !== null && performance.now() - asked > patience) notify();
  }, AGAIN.idle / 4);
  const stop = whenPainted(data.first, notify);
  window.addEventListener("beforeprint", notify);
  const mine = () => {
    stop();
    clearInterval(again);
    window.removeEventListener("beforeprint", notify);
  };
  release = mine;
  return mine;
}
