// A small line of the last values.
import { html } from "../../vendor/preact.js";

const WIDTH = 96;
const HEIGHT = 24;

export function Spark({ values, label }) {
  const most = Math.max(...values, 0) || 1;
  const step = WIDTH / Math.max(values.length - 1, 1);
  const points = values.map((value, at) => {
    const height = HEIGHT - 1 - (value / most) * (HEIGHT - 2);
    return `${(at * step).toFixed(1)},${height.toFixed(1)}`;
  });
  return html`
    <svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label}>
      <polyline points=${points.join(" ")} />
    </svg>
  `;
}
