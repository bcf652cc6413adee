// Shows statements before they run, and runs them one after another.
import { html, useEffect, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "../core/http.js";
import { announce } from "../core/live.js";
import { query } from "../core/query.js";
import { linkTo } from "../core/router.js";
import { Dialog } from "./dialog.js";
import { Fault } from "./fault.js";

/**
 * @param statements gives the statements, or a promise of them
 * @param database names without one are of it
 * @param doing the button's words; @param said is announced when all are done, and *ran* is called
 */
export function RunDialog({ title, statements, database = "", doing, said, ran, close, children }) {
  const left = useSignal(null);
  const busy = useSignal(false);
  const fault = useSignal(null);
  useEffect(() => {
    Promise.resolve()
      .then(statements)
      .then(
        (found) => (left.value = found),
        (error) => (fault.value = faultFrom(error)),
      );
  }, []);
  async function run() {
    busy.value = true;
    fault.value = null;
    try {
      while (left.value.length > 0) {
        await query(left.value[0], { database });
        left.value = left.value.slice(1);
      }
      announce(said);
      ran();
      close();
    } catch (error) {
      fault.value = faultFrom(error);
    } finally {
      busy.value = false;
    }
  }
  const texts = left.value ?? [];
  return html`
    <${Dialog} title=${title} close=${close}>
      ${children}
      ${left.value?.length === 0 && !busy.value && html`<p>There is nothing to run: no row of these was kept.</p>`}
      ${texts.length > 0 && html`
        <pre class="text" tabindex="0" aria-label="What is run">${texts.join(";\n")}</pre>
        <p><a href=${linkTo(...["sql", texts.join(";\n"), database].filter(Boolean))}>Change it in SQL first</a></p>
      `}
      <${Fault} fault=${fault.value} />
      <p class="row">
        <button class="main" disabled=${busy.value || texts.length === 0} onClick=${run}>${doing}</button>
        <button onClick=${close}>Cancel</button>
      </p>
    <//>
  `;
}
