// The chart of an answer: a column of numbers over its first column of times.
import { html, useMemo, useSignal } from "../../../vendor/preact.js";
import { count } from "../../core/format.js";
import { LineChoice } from "../live/line_choice.js";

/** Rows that are drawn at most: a chart has fewer places than that. */
const MOST_ROWS = 50_000;

/** What of *columns* a chart can show: `{time, numbers, groups}`; null without times or numbers. Pure. */
export function chartOf(columns) {
  const named = (fits) => columns.filter(({ type }) => fits.test(type)).map(({ name }) => name);
  const [time] = named(/^TIMESTAMP/);
  const numbers = named(/INT|FLOAT|DOUBLE|DECIMAL/);
  if (time === undefined || numbers.length === 0) return null;
  return { time, numbers, groups: named(/CHAR|BOOL/) };
}

/** A button, and the chart as long as it is pressed. */
export function ResultChart({ columns, rows }) {
  const shown = useSignal(false);
  const subject = useMemo(() => chartOf(columns), [columns]);
  // in front of each row is what became of it, which an answer does not tell
  const drawn = useMemo(() => (shown.value ? rows.slice(0, MOST_ROWS).map((row) => ["", ...row]) : []), [rows, shown.value]);
  if (subject === null) return null;
  return html`
    <p class="row">
      <button aria-pressed=${shown.value} onClick=${() => (shown.value = !shown.value)}>Chart</button>
      ${shown.value && rows.length > MOST_ROWS && html`<span class="soft">of the first ${count(MOST_ROWS)} rows</span>`}
    </p>
    ${shown.value && html`<${LineChoice} subject=${subject} columns=${[{ name: "" }, ...columns]} rows=${drawn} drawn=${drawn} />`}
  `;
}
