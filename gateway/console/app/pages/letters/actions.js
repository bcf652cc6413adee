// What can be done about dead letters and late rows, as far as the user may do it.
import { html, useSignal } from "../../../vendor/preact.js";
import { may } from "../../core/session.js";
import { RunDialog } from "../../parts/run_dialog.js";
import { inserts, recalculations, recalculationsOfLate } from "./lists.js";

/** Whether the rows of a letter can be written again. A late row is in its table, and a view writes elsewhere. */
export function canSend({ kind, reader, source_db: database, source_table: table }) {
  return kind === "row" && reader !== "view" && Boolean(database) && may("WRITE", "table", database, table);
}

/** Whether a stream can be told to compute again what a letter, or a late row, is about. */
export function canRecalculate({ reader = "stream", stream_name: stream, db_name: database }) {
  return reader === "stream" && Boolean(stream) && may("ALTER", "stream", database, stream);
}

/** @param load gives the letters with what they hold; @param what they are, for people */
export function LetterActions({ letters, load, done, what }) {
  const sent = letters.filter(canSend);
  const computed = letters.filter(canRecalculate);
  return html`
    <div class="row wraps">
      ${sent.length > 0 && html`
        <${Action} title=${`Send again ${what}`} words="Send again" said="Sent again" done=${done}
          statements=${async () => inserts(await load(sent))}>
          <p>The rows are written into their table as they were kept. Each stream of the table sees them, and one that ignores updates counts them once more.</p>
        <//>
      `}
      ${computed.length > 0 && html`<${Recalculate} what=${what} done=${done} statements=${async () => recalculations(await load(computed))} />`}
    </div>
  `;
}

export function LateActions({ rows, done, what }) {
  const computed = rows.filter(canRecalculate);
  return computed.length > 0 && html`<${Recalculate} what=${what} done=${done} statements=${() => recalculationsOfLate(computed)} />`;
}

function Recalculate({ what, statements, done }) {
  return html`
    <${Action} title=${`Recalculate ${what}`} words="Recalculate" said="It is computed again" statements=${statements} done=${done}>
      <p>The stream computes everything between these times again, from the rows of its source as they are now. Mend what made it fail first.</p>
    <//>
  `;
}

/** A button, and the dialog that shows what it will run. */
function Action({ title, words, said, statements, done, children }) {
  const asking = useSignal(false);
  const over = useSignal(false);
  function close() {
    asking.value = false;
    done();
  }
  return html`
    <button aria-label=${title} onClick=${() => (asking.value = true)}>${words}</button>
    ${over.value && html`<span class="state good"><span aria-hidden="true">✔</span> ${said}</span>`}
    ${asking.value && html`<${RunDialog} title=${title} doing=${words} said=${said} statements=${statements}
      ran=${() => (over.value = true)} close=${close}>${children}<//>`}
  `;
}
