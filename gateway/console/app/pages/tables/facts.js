// Facts of a table: what it is, how long its rows stay, and what is stored of it.
import { html } from "../../../vendor/preact.js";
import { count } from "../../core/format.js";
import { usePoll } from "../../core/poll.js";
import { linkTo } from "../../core/router.js";
import { Fault } from "../../parts/fault.js";
import { storageOf } from "./known.js";
import { keepWords, kindOf, sizeWords } from "./words.js";

const SECONDS = 30;

/** @param facts as `factsOf` gives them */
export function Facts({ facts }) {
  const { db_name: database, table_name: home } = facts.storage;
  const { answer, fault } = usePoll((signal) => storageOf(database, home, signal), SECONDS);
  const storage = answer.value ?? facts.storage;
  const { rows, bytes } = sizeWords(storage);
  return html`
    <${Fault} fault=${fault.value} />
    <section aria-label="Facts"><dl class="about">
      <div><dt>Kind</dt><dd>${facts.child
        ? html`child table of <a href=${linkTo("tables", database, home)}>${home}</a>`
        : kindOf(storage)}</dd></div>
      ${storage.child_tables !== null && !facts.child && html`<div><dt>Child tables</dt><dd>${count(storage.child_tables)}</dd></div>`}
      ${facts.tags.map(({ tag_name: name, tag_value: value }) => html`<div key=${name}><dt>Tag ${name}</dt><dd>${value ?? "NULL"}</dd></div>`)}
      ${storage.partitions !== null && html`
        <div><dt>Rows are kept</dt><dd>${keepWords(storage.keep, facts.database?.keep)}</dd></div>
        <div><dt>Partitions</dt><dd>${storage.partitions}</dd></div>
      `}
      ${storage.partitions !== null && !facts.child && html`
        <div><dt>Versions of rows</dt><dd>${rows}</dd></div>
        <div><dt>Bytes in files</dt><dd>${bytes}</dd></div>
      `}
      <div><dt>Precision of times</dt><dd>${facts.database?.precision}</dd></div>
      ${storage.table_comment && html`<div><dt>Comment</dt><dd>${storage.table_comment}</dd></div>`}
    </dl></section>
  `;
}
