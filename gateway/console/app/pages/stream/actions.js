// What can be done with a stream, as far as the user may do it.
import { html, useSignal } from "../../../vendor/preact.js";
import { faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { query, quotePath } from "../../core/query.js";
import { go, linkTo } from "../../core/router.js";
import { may } from "../../core/session.js";
import { ConfirmDialog } from "../../parts/dialog.js";
import { Fault } from "../../parts/fault.js";
import { RunDialog } from "../../parts/run_dialog.js";
import { anewOf, isHidden } from "./anew.js";
import { RecalculateDialog } from "./recalculate.js";
import { mayReplace } from "./rights.js";

/** @param done is called when something was done */
export function StreamActions({ stream, done }) {
  const fault = useSignal(null);
  const busy = useSignal(false);
  const dropping = useSignal(false);
  const recalculating = useSignal(false);
  const anew = useSignal(null);
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
      ${status === "failed" && html`<${Anew} stream=${stream} ask=${(text) => (anew.value = text)} />`}
      ${status !== "failed" && may("ALTER", "stream", database, name) &&
      (status === "paused" ? button("Resume", "resumed") : [button("Pause", "paused"), button("Flush", "flushed")])}
      ${status !== "failed" && may("ALTER", "stream", database, name) &&
      html`<button aria-label=${`Recalculate ${name}`} onClick=${() => (recalculating.value = true)}>Recalculate</button>`}
      ${may("DROP", "stream", database, name) &&
      html`<button class="danger" aria-label=${`Drop ${name}`} onClick=${() => (dropping.value = true)}>Drop</button>`}
    </div>
    <${Fault} fault=${fault.value} />
    ${recalculating.value && html`
      <${RecalculateDialog} database=${database} name=${name} ran=${done} close=${() => (recalculating.value = false)} />
    `}
    ${anew.value && html`
      <${RunDialog} title=${`Begin anew ${name}`} doing="Begin anew" said=${`${name} begins anew`} database=${database}
        statements=${() => [anew.value]} ran=${done} close=${() => (anew.value = null)}>
        <p>Its open windows went when it failed. It is made again, and computes everything that its source holds. Mend
          what made it fail first: <a href=${linkTo("dead-letters")}>Dead letters</a> have what it could not use.</p>
      <//>
    `}
    ${dropping.value &&
    html`
      <${ConfirmDialog} title=${`Drop the stream ${name}`} name=${name} doing="Drop it" run=${drop}
        close=${() => (dropping.value = false)}>
        <p>It ends, and its open windows are lost.${stream.target_table && ` Its results in ${stream.target_table} stay.`}</p>
      <//>
    `}
  `;
}

/** The way on of a stream that failed. The gateway decides what its source and its target ask for. */
function Anew({ stream: { database, name, sql }, ask }) {
  const text = anewOf(sql);
  if (!text || !mayReplace(database, name)) return null;
  const begin = () => (isHidden(text) ? go("sql", text, database) : ask(text));
  return html`<button class="main" aria-label=${`Begin anew ${name}`} onClick=${begin}>Begin anew</button>`;
}
