// The page is never shorter than what is read: parts that are drawn again would otherwise move it up.
let scrolled = null;

function reserve() {
  const scroller = document.querySelector("[data-testid=stMain]");
  const content = document.querySelector("[data-testid=stMainBlockContainer]");
  if (!scroller || !content) return;
  if (scrolled !== scroller) {
    scrolled = scroller;
    scroller.addEventListener("scroll", reserve, { passive: true });
  }
  const read = scroller.scrollTop;
  const above = content.getBoundingClientRect().top - scroller.getBoundingClientRect().top + read;
  content.style.minHeight = read > 0 ? `${read + scroller.clientHeight - above}px` : "";
}
