// The newest dead letters, by code, stream and time; what is chosen is sent or computed again.
import { html } from "../../../vendor/preact.js";
import { linkTo } from "../../core/router.js";
import { LetterActions, canRecalculate, canSend } from "./actions.js";
import { Listing } from "./listing.js";
import { letterCounts, letters, lettersAt } from "./lists.js";

const KINDS = { row: "rows", result: "a result", record: "a record" };
const placeOf = (one) => `${one.topic} ${one.partition} ${one.offset}`;
const keyOf = (one) => [placeOf(one), one.reader, one.stream_name, one.code, one.reason, one.time].join("\n");
const COLUMNS = [
  { title: "Time", show: ({ time }) => time },
  { title: "Code", show: ({ code }) => html`<strong>${code}</strong>` },
  { title: "Stream or reader", show: (one) => html`<${Reader} letter=${one} />` },
  { title: "Reason", show: ({ reason }) => reason },
  { title: "Holds", show: ({ kind }) => KINDS[kind] },
  { title: "Place", show: (one) => html`<a href=${linkTo("dead-letters", one.topic, String(one.partition), String(one.offset))}>${placeOf(one)}</a>` },
];
const LIST = {
  ask: letters,
  count: letterCounts,
  keyOf,
  nameOf: (one) => `${one.code} at ${placeOf(one)}`,
  canChoose: (one) => canSend(one) || canRecalculate(one),
  label: "Dead letters",
  chosenLabel: "Chosen letters",
  none: "None of the newest dead letters is like that.",
  columns: COLUMNS,
  actions: (picked, done, what) => html`<${LetterActions} letters=${picked} load=${held} done=${done} what=${what} />`,
  Nothing: NoLetters,
};

export function LetterList() {
  return html`<${Listing} ...${LIST} />`;
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
