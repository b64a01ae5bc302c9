const NEAR = "400px";
const LOOK = 30;  // milliseconds
const PATIENCE = 3000;
const AGAIN = { idle: 2000, busy: 10000 };
const IDLE = "[data-testid=stApp][data-test-script-state=notRunning]";

function whenNear(place, say) {
  const watch = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      watch.disconnect();
      say();
    }
  }, { rootMargin: NEAR, scrollMargin: NEAR });
  watch.observe(place);
  return () => watch.disconnect();
}

// It is in the document, a frame with it was shown, and the browser has nothing else to do.
function whenPainted(first, say) {
  let waits = true;
  const once = () => {
    if (waits) say();
    waits = false;
  };
  const frame = (act) => requestAnimationFrame(() => waits && act());
  const idle = window.requestIdleCallback || ((act) => setTimeout(act, LOOK));
  const look = setInterval(() => {
    if (!document.querySelector(first)) return;
    clearInterval(look);
    frame(() => frame(() => idle(once)));
  }, LOOK);
  const late = setTimeout(once, PATIENCE);
  return () => {
    waits = false;
    clearInterval(look);
    clearTimeout(late);
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  let asked = null;
  const say = () => {
    asked = performance.now();
    setTriggerValue("now", true);
  };
  // A request that comes while the page is still being drawn may lead to nothing; what is drawn takes this away.
  const again = setInterval(() => {
    const patience = document.querySelector(IDLE) ? AGAIN.idle : AGAIN.busy;
    if (asked !== null && performance.now() - asked > patience) say();
  }, AGAIN.idle / 4);
  const stop = data.first ? whenPainted(data.first, say) : whenNear(parentElement.querySelector(".place"), say);
  window.addEventListener("beforeprint", say);
  return () => {
    stop();
    clearInterval(again);
    window.removeEventListener("beforeprint", say);
  };
}
