// What the lists of letters and of late rows have in common: they ask again and again, are narrowed
// by filters, and what is chosen in them has actions.
import { html } from "../../../vendor/preact.js";
import { usePoll } from "../../core/poll.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { useChosen } from "./chosen.js";
import { Filters, isNarrowed, useFilters } from "./filters.js";
import { MOST } from "./lists.js";

const SECONDS = 10;

/**
 * @param ask, count what is listed, for filters, and how many there are of each stream
 * @param keyOf, nameOf, canChoose of one thing in the list
 * @param label of the table; `chosenLabel` of what is done with the chosen; `none` without any that
 *   is like the filters
 * @param actions of `(picked, again, what)`
 * @param Nothing, About what stands instead of the list, and above it
 */
export function Listing({ ask, count, keyOf, nameOf, canChoose, label, chosenLabel, none, columns, actions, Nothing, About }) {
  const filters = useFilters();
  const { answer, fault, again } = usePoll(
    async (signal) => {
      const [listed, counts] = await Promise.all([ask(filters.value, signal), count(signal)]);
      return { listed, counts };
    },
    SECONDS,
    [filters.value],
  );
  const chosen = useChosen(keyOf, nameOf, canChoose);
  const found = answer.value;
  const listed = found?.listed ?? [];
  const open = chosen.some(listed);
  return html`
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && (found.counts.length === 0 ? html`<${Nothing} />` : html`
      <${Filters} filters=${filters} counts=${found.counts} />
      ${About && html`<${About} />`}
      ${open && html`<${Chosen} ...${{ chosen, listed, again, actions, label: chosenLabel }} />`}
      <${List} label=${label} rows=${listed} columns=${open ? [chosen.column, ...columns] : columns} keyOf=${keyOf}
        empty=${isNarrowed(filters.value) ? none : "None."} />
      ${listed.length === MOST && html`<p class="soft">The newest ${MOST} are shown. Narrow the list to see others.</p>`}
    `)}
  `;
}

function Chosen({ chosen, listed, again, actions, label }) {
  const picked = chosen.of(listed);
  return html`
    <div class="row" role="group" aria-label=${label}>
      <button onClick=${() => chosen.every(listed)}>Choose all</button>
      ${picked.length > 0 && html`
        <button onClick=${chosen.none}>Choose none</button>
        <span>${picked.length} chosen</span>
        ${actions(picked, again, picked.length === 1 ? "the chosen one" : `the chosen ${picked.length}`)}
      `}
    </div>
  `;
}
