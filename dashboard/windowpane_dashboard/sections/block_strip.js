const AT_THE_END = 0.96; // of the strip: a label in the middle of its tick would be cut off
const THIN = 0.003; // of the strip: a rim would hide the block that it goes around

export default function ({ data, parentElement, setTriggerValue }) {
  const [strip, blocks, axis, tooltip] = ["strip", "blocks", "axis", "tooltip"].map(
    (name) => parentElement.querySelector("." + name));
  const { ids, sizes, colors, texts, end, limit_tokens, ticks } = data.strip;
  const look = data.look;
  const share = (tokens) => `${(100 * tokens) / end}%`;
  const rim = (size) => (sizes.length < 250 && size / end > THIN ? `0.5px solid ${look.background}` : "none");
  strip.setAttribute("aria-label", data.alt);

  const starts = [];
  let start = 0;
  const drawn = sizes.map((size, place) => {
    const block = document.createElement("i");
    block.style.cssText = `left:${share(start)};width:${share(size)};background:${colors[place]}`;
    block.style.border = rim(size);
    starts.push(start);
    start += size;
    return block;
  });
  if (limit_tokens) {
    const limit = document.createElement("i");
    limit.className = "limit";
    limit.style.cssText = `left:0;width:${share(limit_tokens)};border-color:${look.outline}`;
    drawn.push(limit);
  }
  blocks.replaceChildren(...drawn);
  axis.replaceChildren(...ticks.map(([place, text]) => {
    const tick = document.createElement("span");
    tick.style.left = share(place);
    if (place / end > AT_THE_END) tick.style.transform = "translateX(-100%)";
    tick.style.color = look.muted;
    tick.textContent = text;
    return tick;
  }));
  Object.assign(tooltip.style, { background: look.background, color: look.text, borderColor: look.outline });

  const hide = () => tooltip.matches(":popover-open") && tooltip.hidePopover();
  const placeAt = (event) => {
    const box = blocks.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * end;
    return at > start ? -1 : starts.findLastIndex((begin) => begin <= at);
  };
  blocks.onpointerleave = hide;
  blocks.onclick = (event) => {
    const place = placeAt(event);
    if (place >= 0) setTriggerValue("chosen", ids[place]);
  };
  blocks.onpointermove = (event) => {
    const box = blocks.getBoundingClientRect();
    const place = placeAt(event);
    if (place < 0) return hide();
    tooltip.textContent = texts[place];
    if (!tooltip.matches(":popover-open")) tooltip.showPopover();
    const wide = tooltip.offsetWidth;
    const left = Math.min(event.clientX + 12, window.innerWidth - wide - 8);
    tooltip.style.left = `${Math.max(8, left)}px`;
    tooltip.style.top = `${box.bottom + 6}px`;
  };
  hide();
}
