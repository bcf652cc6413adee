// What can be done with a stream, as far as the user may do it.
import { html, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "../core/http.js";
import { announce } from "../core/live.js";
import { query, quotePath } from "../core/query.js";
import { may } from "../core/session.js";
import { ConfirmDialog } from "../parts/dialog.js";
import { Fault } from "../parts/fault.js";

/** @param done is called when something was done */
export function StreamActions({ stream, done }) {
  const fault = useSignal(null);
  const busy = useSignal(false);
  const dropping = useSignal(false);
  const { database, name, status } = stream;
  const path = quotePath(database, name);
  async function run(words, said) {
    busy.value = true;
    fault.value = null;
    try {
      await query(`${words} STREAM ${path}`);
      announce(`${name}: ${said}`);
      done();
    } catch (error) {
      fault.value = faultFrom(error);
    } finally {
      busy.value = false;
    }
  }
  async function drop() {
    await query(`DROP STREAM ${path}`);
    announce(`${name}: dropped`);
    done();
  }
  const button = (words, said) => html`
    <button disabled=${busy.value} aria-label=${`${words} ${name}`} onClick=${() => run(words.toUpperCase(), said)}>${words}</button>
  `;
  return html`
    <div class="row">
      ${may("ALTER", "stream", database, name) &&
      (status === "paused" ? button("Resume", "resumed") : [button("Pause", "paused"), button("Flush", "flushed")])}
      ${may("DROP", "stream", database, name) &&
      html`<button class="danger" aria-label=${`Drop ${name}`} onClick=${() => (dropping.value = true)}>Drop</button>`}
    </div>
    <${Fault} fault=${fault.value} />
    ${dropping.value &&
    html`
      <${ConfirmDialog} title=${`Drop the stream ${name}`} name=${name} doing="Drop it" run=${drop}
        close=${() => (dropping.value = false)}>
        <p>It ends, and its open windows are lost.${stream.target_table && ` Its results in ${stream.target_table} stay.`}</p>
      <//>
    `}
  `;
}
