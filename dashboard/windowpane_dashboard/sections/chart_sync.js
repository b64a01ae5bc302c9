export default function ({ data, setTriggerValue }) {
  choose = (turn) => setTriggerValue("chosen", turn);
  const draw = () => {
    data.keys.forEach((key) => place(key, data.turn));
    listen(data.clicks);
    reachable();
    keep(data.controls);
  };
  draw();
  const timer = setInterval(draw, 120);
  return () => clearInterval(timer);
}
