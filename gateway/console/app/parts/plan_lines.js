// What EXPLAIN says: each item with its values, whose blanks in front tell the steps of a plan.
import { html } from "../../vendor/preact.js";

/** *lines*, `[item, value]`, with those of one item that follow each other together. Pure. */
export function groupsOf(lines) {
  const groups = [];
  for (const [item, value] of lines) {
    if (groups.at(-1)?.item === item) groups.at(-1).values.push(value);
    else groups.push({ item, values: [value] });
  }
  return groups;
}

export function PlanLines({ lines }) {
  const said = lines.filter(([, value]) => value);
  return html`
    <dl class="plan">
      ${groupsOf(said).map(({ item, values }) => html`<dt>${item}</dt>${values.map((value) => html`<dd>${value}</dd>`)}`)}
    </dl>
  `;
}
