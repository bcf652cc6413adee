// All dead letters about one record: the reason, what was kept, and what to do.
import { html } from "../../../vendor/preact.js";
import { usePoll } from "../../core/poll.js";
import { linkTo } from "../../core/router.js";
import { CopyButton } from "../../parts/copy.js";
import { Fault } from "../../parts/fault.js";
import { Grid } from "../../parts/grid.js";
import { LetterActions } from "./actions.js";
import { gridOf, rowsOf } from "./again.js";
import { Reader } from "./letter_list.js";
import { lettersAt } from "./lists.js";

const SECONDS = 30;

export function OnePlace({ topic, partition, offset }) {
  const { answer, fault, again } = usePoll((signal) => lettersAt(topic, partition, offset, signal), SECONDS);
  const found = answer.value;
  return html`
    <p><a href=${linkTo("dead-letters")}>Dead letters</a></p>
    <h1>${topic}, partition ${partition}, offset ${offset}</h1>
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found?.length === 0 && html`<p>No dead letter is known about this record, or you may not see it. Only the newest 20,000 are read.</p>`}
    ${found?.map((letter, at) => html`<${Letter} key=${at} at=${at} letter=${letter} done=${again} />`)}
  `;
}

function Letter({ letter, at, done }) {
  const name = `${letter.code} ${at + 1}`;
  return html`
    <section aria-label=${name}>
      <div class="row spread">
        <h2>${letter.code}</h2>
        <${LetterActions} letters=${[letter]} load=${async (them) => them} done=${done} what=${name} />
      </div>
      <p>${letter.reason}</p>
      <p class="note"><strong>What to do.</strong> ${letter.to_do}</p>
      <dl class="about">
        <div><dt>Time</dt><dd>${letter.time}</dd></div>
        <div><dt>Could not use it</dt><dd><${Reader} letter=${letter} /></dd></div>
        ${letter.source_table && html`
          <div><dt>Table</dt><dd><a href=${linkTo("tables", letter.source_db, letter.source_table)}>${letter.source_db}.${letter.source_table}</a></dd></div>
        `}
      </dl>
      ${letter.kind === "record" ? html`<${RawRecord} value=${letter.value} />` : html`<${Kept} letter=${letter} name=${name} />`}
    </section>
  `;
}

function Kept({ letter: { kind, value }, name }) {
  const { rows, cut } = rowsOf(value);
  const what = kind === "result" ? "results" : "rows";
  return html`
    <div class="row spread">
      <h3>The ${what}</h3>
      <${CopyButton} text=${value} label="Copy as JSON" name=${`Copy as JSON the ${what} of ${name}`} />
    </div>
    ${rows.length > 0 && html`<${Grid} label=${`The ${what} of ${name}`} ...${gridOf(rows)} />`}
    ${cut && html`<p>A row was longer than the 64 KiB that a dead letter may hold, and was cut there. The record in Kafka has it whole.</p>
      <pre class="text" tabindex="0">${value}</pre>`}
    ${rows.length > 0 && html`<p class="soft">Times are ticks of the database's precision. <code>_op</code>: 0 is a row, 1 a delete, 2 a part of a row.</p>`}
  `;
}

function RawRecord({ value }) {
  return html`
    <h3>The record</h3>
    ${value === "" ? html`<p>It is empty.</p>` : html`
      <pre class="text" tabindex="0">${readable(value)}</pre>
      <p class="soft">Bytes that are no text are shown as ·. It may be cut at 64 KiB; the record in Kafka has it whole.</p>
    `}
  `;
}

function readable(value) {
  return value.replace(/[^\P{C}\n\t]|\ufffd/gu, "·");
}
