// The newest rows that streams dropped as late, by stream and time; the windows of those that are
// chosen are computed again.
import { html } from "../../../vendor/preact.js";
import { linkTo } from "../../core/router.js";
import { LateActions, canRecalculate } from "./actions.js";
import { Listing } from "./listing.js";
import { lateCounts, lateRows } from "./lists.js";

const keyOf = (one) => [one.db_name, one.stream_name, one.table_name, one.ticks, one.arrived, one.row].join("\n");
const COLUMNS = [
  { title: "Arrived", show: ({ arrived }) => arrived },
  { title: "Stream", show: (one) => html`<a href=${linkTo("streams", one.db_name, one.stream_name)}>${one.db_name}.${one.stream_name}</a>` },
  { title: "Table", show: (one) => one.table_name ?? "–" },
  { title: "Row", show: ({ row }) => html`<code>${row}</code>` },
];
const LIST = {
  ask: lateRows,
  count: lateCounts,
  keyOf,
  nameOf: (one) => `${one.row} of ${one.stream_name}`,
  canChoose: (one) => one.ticks !== null && canRecalculate(one),
  label: "Late rows",
  chosenLabel: "Chosen rows",
  none: "None of the late rows that are kept is like that.",
  columns: COLUMNS,
  actions: (rows, done, what) => html`<${LateActions} rows=${rows} done=${done} what=${what} />`,
  Nothing: NoLateRows,
  About: Advice,
};

export function LateList() {
  return html`<${Listing} ...${LIST} />`;
}

function Advice() {
  return html`
    <p>The tables have these rows. A stream that should count them computes their windows again, or waits longer: write
      it with <code>WATERMARK</code> or <code>IGNORE EXPIRED 0</code>.</p>
  `;
}

function NoLateRows() {
  return html`
    <section class="note" aria-label="No late rows">
      <h2>There are no late rows</h2>
      <p>No stream has dropped a row because its window was over. Where rows come out of order, a stream waits for them as
        long as its <code>WATERMARK</code> says; later ones are left out and shown here, unless the stream has
        <code>IGNORE EXPIRED 0</code>.</p>
    </section>
  `;
}
