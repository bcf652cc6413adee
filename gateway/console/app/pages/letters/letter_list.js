// The newest dead letters, by code, stream and time; what is chosen is sent or computed again.
import { html } from "../../../vendor/preact.js";
import { usePoll } from "../../core/poll.js";
import { linkTo } from "../../core/router.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { LetterActions, canRecalculate, canSend } from "./actions.js";
import { useChosen } from "./chosen.js";
import { Filters, isNarrowed, useFilters } from "./filters.js";
import { MOST, letterCounts, letters, lettersAt } from "./lists.js";

const SECONDS = 10;
const KINDS = { row: "rows", result: "a result", record: "a record" };
const placeOf = (one) => `${one.topic} ${one.partition} ${one.offset}`;
const keyOf = (one) => [placeOf(one), one.reader, one.stream_name, one.code, one.reason, one.time].join("\n");
const nameOf = (one) => `${one.code} at ${placeOf(one)}`;

export function LetterList() {
  const filters = useFilters();
  const { answer, fault, again } = usePoll(
    async (signal) => {
      const [listed, counts] = await Promise.all([letters(filters.value, signal), letterCounts(signal)]);
      return { listed, counts };
    },
    SECONDS,
    [filters.value],
  );
  const chosen = useChosen(keyOf, nameOf, (one) => canSend(one) || canRecalculate(one));
  const found = answer.value;
  return html`
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && (found.counts.length === 0 ? html`<${NoLetters} />` : html`
      <${Filters} filters=${filters} counts=${found.counts} />
      <${Listed} listed=${found.listed} chosen=${chosen} again=${again} narrowed=${isNarrowed(filters.value)} />
    `)}
  `;
}

function Listed({ listed, chosen, again, narrowed }) {
  const open = chosen.some(listed);
  const picked = chosen.of(listed);
  const columns = [
    ...(open ? [chosen.column] : []),
    { title: "Time", show: ({ time }) => time },
    { title: "Code", show: ({ code }) => html`<strong>${code}</strong>` },
    { title: "Stream or reader", show: (one) => html`<${Reader} letter=${one} />` },
    { title: "Reason", show: ({ reason }) => reason },
    { title: "Holds", show: ({ kind }) => KINDS[kind] },
    { title: "Place", show: (one) => html`<a href=${linkTo("dead-letters", one.topic, String(one.partition), String(one.offset))}>${placeOf(one)}</a>` },
  ];
  return html`
    ${open && html`
      <div class="row" role="group" aria-label="Chosen letters">
        <button onClick=${() => chosen.every(listed)}>Choose all</button>
        ${picked.length > 0 && html`
          <button onClick=${chosen.none}>Choose none</button>
          <span>${picked.length} chosen</span>
          <${LetterActions} letters=${picked} load=${held} done=${again} what=${picked.length === 1 ? "the chosen one" : `the chosen ${picked.length}`} />
        `}
      </div>
    `}
    <${List} label="Dead letters" rows=${listed} columns=${columns} keyOf=${keyOf}
      empty=${narrowed ? "None of the newest dead letters is like that." : "None."} />
    ${listed.length === MOST && html`<p class="soft">The newest ${MOST} are shown. Narrow the list to see others.</p>`}
  `;
}

export function Reader({ letter: { reader, stream_name: name, db_name: database } }) {
  if (!name) return `${reader} (all rows)`;
  if (reader !== "stream") return `${reader} ${database}.${name}`;
  return html`<a href=${linkTo("streams", database, name)}>${database}.${name}</a>`;
}

/** The letters with what they hold, which the list leaves out. */
async function held(wanted) {
  const keys = new Set(wanted.map(keyOf));
  const places = new Map(wanted.map((one) => [placeOf(one), one]));
  const found = await Promise.all([...places.values()].map((one) => lettersAt(one.topic, one.partition, one.offset)));
  return found.flat().filter((one) => keys.has(keyOf(one)));
}

function NoLetters() {
  return html`
    <section class="note" aria-label="No dead letters">
      <h2>There are no dead letters</h2>
      <p>Nothing was left out. What cannot be used becomes a dead letter, and everything else goes on: a record that a
        program wrote to Kafka and nobody can read, a row on which an expression of a stream fails, a row that does not
        fit a view's target. It is shown here with the reason, and with what to do.</p>
      <p>Rows sent by SQL or HTTP are refused at once instead, so that the sender is told.</p>
      <p><a href=${linkTo("dead-letters", "late")}>Late rows</a> came after their windows were over.</p>
    </section>
  `;
}
