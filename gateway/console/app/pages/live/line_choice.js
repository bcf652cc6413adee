// A chart of one column of numbers: which, and a line for each value of which other one.
import { html, useMemo, useSignal } from "../../../vendor/preact.js";
import { count } from "../../core/format.js";
import { Chart } from "../../parts/chart.js";
import { MOST_LINES, linesOf } from "./lines.js";

/** @param rows newest first; @param drawn changes when they do */
export function LineChoice({ subject, columns, rows, drawn }) {
  const value = useSignal(subject.numbers[0] ?? "");
  const group = useSignal("");
  const place = (name) => columns.findIndex((column, at) => at > 0 && column.name === name);
  const { names, data, left } = useMemo(
    () => linesOf(value.value ? rows : [], { time: place(subject.time), value: place(value.value), group: group.value ? place(group.value) : -1 }),
    [drawn, value.value, group.value],
  );
  if (subject.numbers.length === 0) return null;
  const what = group.value ? `${value.value} by ${group.value}` : value.value;
  return html`
    <div class="row">
      <${Choice} label="Chart of" chosen=${value} none="nothing" names=${subject.numbers} />
      ${value.value && html`<${Choice} label="A line for each" chosen=${group} none="column" names=${subject.groups} />`}
      ${left > 0 && html`<span class="soft">${MOST_LINES} lines of ${count(left + MOST_LINES)} with the most rows</span>`}
    </div>
    ${value.value && names.length > 0 && html`<${Chart} names=${names} data=${data} label=${what} />`}
  `;
}

function Choice({ label, chosen, none, names }) {
  return html`
    <label>${label}
      <select value=${chosen.value} onChange=${(event) => (chosen.value = event.target.value)}>
        <option value="">${none}</option>
        ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </label>
  `;
}
