// Streamlit calls this at every change and cleans up only when the component is removed.
let timer = null;

export default function ({ data, setTriggerValue }) {
  choose = (turn) => setTriggerValue("chosen", turn);
  const draw = () => {
    data.keys.forEach((key) => place(key, data.turn));
    listen(data.clicks);
    reachable();
    keep(data.controls);
    land(data.evidence);
  };
  draw();
  clearInterval(timer);
  const mine = timer = setInterval(draw, 120);
  return () => clearInterval(mine);
}
