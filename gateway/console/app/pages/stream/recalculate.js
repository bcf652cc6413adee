// Computes the windows of a stretch of time again.
import { html } from "../../../vendor/preact.js";
import { announce } from "../../core/live.js";
import { query, quotePath, quoteText } from "../../core/query.js";
import { FormDialog } from "../../parts/form_dialog.js";

const FIELDS = [
  { name: "from", label: "From", hint: "2026-03-01 11:00:00", required: true },
  { name: "to", label: "To; empty: all that follows", hint: "2026-03-01 12:00:00", required: false },
];

/** RECALCULATE STREAM over the times as they were written: the gateway reads them in the session's zone. */
export function recalculationOf(database, name, { from, to }) {
  const end = to.trim() ? ` TO ${quoteText(to.trim())}` : "";
  return `RECALCULATE STREAM ${quotePath(database, name)} FROM ${quoteText(from.trim())}${end}`;
}

export function RecalculateDialog({ database, name, ran, close }) {
  async function run(times) {
    await query(recalculationOf(database, name, times));
    announce(`${name}: its windows are computed again`);
    ran();
  }
  return html`
    <${FormDialog} title=${`Recalculate ${name}`} fields=${FIELDS} doing="Recalculate" run=${run} close=${close}>
      <p>The windows of this time are computed again, from the rows as they are now, and their results are written
        anew.</p>
    <//>
  `;
}
