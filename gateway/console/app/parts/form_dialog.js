// A dialog that asks for some texts and does something with them.
import { html, useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "../core/http.js";
import { Dialog } from "./dialog.js";
import { Fault } from "./fault.js";

/**
 * @param fields `{name, label, type?, hint?, required?}` of each text; it is required unless that is false
 * @param run is given the texts by name; the dialog closes when it is done, and shows why it is not
 */
export function FormDialog({ title, fields, doing, run, close, children }) {
  const busy = useSignal(false);
  const fault = useSignal(null);
  const form = useRef(null);
  useEffect(() => form.current.querySelector("input").focus(), []);
  async function submit(event) {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    fault.value = null;
    try {
      await run(Object.fromEntries(new FormData(form.current)));
      close();
    } catch (error) {
      fault.value = faultFrom(error);
    } finally {
      busy.value = false;
    }
  }
  return html`
    <${Dialog} title=${title} close=${close}>
      <form ref=${form} onSubmit=${submit}>
        ${children}
        ${fields.map(
          ({ name, label, type = "text", hint, required = true }) => html`
            <label key=${name}>${label}
              <input name=${name} type=${type} placeholder=${hint} required=${required} spellcheck=${false} autocomplete=${type === "password" ? "new-password" : "off"} />
            </label>
          `,
        )}
        <${Fault} fault=${fault.value} />
        <p class="row">
          <button type="submit" class="main" disabled=${busy.value}>${doing}</button>
          <button type="button" onClick=${close}>Cancel</button>
        </p>
      </form>
    <//>
  `;
}
