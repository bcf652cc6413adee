// The newest rows that streams dropped as late, by stream and time; the windows of those that are
// chosen are computed again.
import { html } from "../../../vendor/preact.js";
import { usePoll } from "../../core/poll.js";
import { linkTo } from "../../core/router.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { LateActions, canRecalculate } from "./actions.js";
import { useChosen } from "./chosen.js";
import { Filters, isNarrowed, useFilters } from "./filters.js";
import { MOST, lateCounts, lateRows } from "./lists.js";

const SECONDS = 10;
const keyOf = (one) => [one.db_name, one.stream_name, one.table_name, one.ticks, one.arrived, one.row].join("\n");
const nameOf = (one) => `${one.row} of ${one.stream_name}`;

export function LateList() {
  const filters = useFilters();
  const { answer, fault, again } = usePoll(
    async (signal) => {
      const [listed, counts] = await Promise.all([lateRows(filters.value, signal), lateCounts(signal)]);
      return { listed, counts };
    },
    SECONDS,
    [filters.value],
  );
  const chosen = useChosen(keyOf, nameOf, (one) => one.ticks !== null && canRecalculate(one));
  const found = answer.value;
  return html`
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && (found.counts.length === 0 ? html`<${NoLateRows} />` : html`
      <${Filters} filters=${filters} counts=${found.counts} />
      <p>The tables have these rows. A stream that should count them computes their windows again, or waits longer: write
        it with <code>WATERMARK</code> or <code>IGNORE EXPIRED 0</code>.</p>
      <${Listed} listed=${found.listed} chosen=${chosen} again=${again} narrowed=${isNarrowed(filters.value)} />
    `)}
  `;
}

function Listed({ listed, chosen, again, narrowed }) {
  const open = chosen.some(listed);
  const picked = chosen.of(listed);
  const columns = [
    ...(open ? [chosen.column] : []),
    { title: "Arrived", show: ({ arrived }) => arrived },
    { title: "Stream", show: (one) => html`<a href=${linkTo("streams", one.db_name, one.stream_name)}>${one.db_name}.${one.stream_name}</a>` },
    { title: "Table", show: (one) => one.table_name ?? "–" },
    { title: "Row", show: ({ row }) => html`<code>${row}</code>` },
  ];
  return html`
    ${open && html`
      <div class="row" role="group" aria-label="Chosen rows">
        <button onClick=${() => chosen.every(listed)}>Choose all</button>
        ${picked.length > 0 && html`
          <button onClick=${chosen.none}>Choose none</button>
          <span>${picked.length} chosen</span>
          <${LateActions} rows=${picked} done=${again} what=${picked.length === 1 ? "the chosen one" : `the chosen ${picked.length}`} />
        `}
      </div>
    `}
    <${List} label="Late rows" rows=${listed} columns=${columns} keyOf=${keyOf}
      empty=${narrowed ? "None of the late rows that are kept is like that." : "None."} />
    ${listed.length === MOST && html`<p class="soft">The newest ${MOST} are shown. Narrow the list to see others.</p>`}
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
