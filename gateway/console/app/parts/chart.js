// Lines over time. Each has a dash of its own beside its colour, and a name below.
import { html, useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { uPlot } from "../../vendor/uplot.js";

const HEIGHT = 220;
const COLOURS = {
  light: ["#0b6e99", "#b3261e", "#1a6e37", "#8a5300", "#6b3fa0", "#a0266b", "#4d5d69", "#00685f"],
  dark: ["#6cc4ec", "#ff8a80", "#6fd08c", "#f0b556", "#c9a6ff", "#ff9fd0", "#a9b8c3", "#66d9cc"],
};
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** @param data uPlot's: times in seconds, then the values of each line; @param names of the lines */
export function Chart({ names, data, label }) {
  const host = useRef(null);
  const plot = useRef(null);
  const scheme = useSignal(DARK.matches ? "dark" : "light");
  useEffect(() => {
    const change = () => (scheme.value = DARK.matches ? "dark" : "light");
    DARK.addEventListener("change", change);
    return () => DARK.removeEventListener("change", change);
  }, []);
  const colours = COLOURS[scheme.value];
  const lines = names.join("\n");
  useEffect(() => {
    plot.current = new uPlot(optionsFor(names, colours, host.current), data, host.current);
    const watch = new ResizeObserver(() => plot.current.setSize({ width: host.current.clientWidth, height: HEIGHT }));
    watch.observe(host.current);
    return () => {
      watch.disconnect();
      plot.current.destroy();
    };
  }, [lines, scheme.value]);
  useEffect(() => plot.current.setData(data), [data]);
  return html`
    <div class="chart" ref=${host} role="img" aria-label=${label}></div>
    <ul class="legend" aria-label="Lines">
      ${names.map(
        (name, at) => html`
          <li key=${name}>
            <svg viewBox="0 0 32 8" aria-hidden="true">
              <line x1="0" y1="4" x2="32" y2="4" stroke=${colours[at]} stroke-width="2" stroke-dasharray=${dashOf(at).join(" ")} />
            </svg> ${name || label}
          </li>
        `,
      )}
    </ul>
  `;
}

function optionsFor(names, colours, host) {
  const style = getComputedStyle(host);
  const axis = { stroke: style.color, grid: { stroke: style.getPropertyValue("--line"), width: 1 } };
  return {
    width: host.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true } },
    // as the rows have it
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    axes: [axis, { ...axis, size: 64 }],
    series: [{}, ...names.map((name, at) => lineFor(name, colours[at], dashOf(at)))],
  };
}

function lineFor(label, stroke, dash) {
  return { label, stroke, dash, width: 1.5, spanGaps: true };
}

function dashOf(at) {
  return DASHES[at % DASHES.length];
}
