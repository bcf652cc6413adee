// A dialog of the page: Escape closes it, and the focus goes back to where it was.
import { html, useEffect, useRef, useSignal } from "../../vendor/preact.js";
import { faultFrom } from "../core/http.js";
import { Fault } from "./fault.js";

export function Dialog({ title, close, children }) {
  const box = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`
    <dialog ref=${box} aria-label=${title} onClose=${close}>
      <h2>${title}</h2>
      ${children}
    </dialog>
  `;
}

/** Ask before something that cannot be undone: whoever wants it types *name*. */
export function ConfirmDialog({ title, name, doing, run, close, children }) {
  const typed = useSignal("");
  const busy = useSignal(false);
  const fault = useSignal(null);
  async function submit(event) {
    event.preventDefault();
    if (typed.value !== name || busy.value) return;
    busy.value = true;
    try {
      await run();
      close();
    } catch (error) {
      fault.value = faultFrom(error);
    } finally {
      busy.value = false;
    }
  }
  return html`
    <${Dialog} title=${title} close=${close}>
      <form onSubmit=${submit}>
        ${children}
        <label>Type <strong>${name}</strong> to go on
          <input value=${typed.value} autocomplete="off" spellcheck=${false}
            onInput=${(event) => (typed.value = event.target.value)} />
        </label>
        <${Fault} fault=${fault.value} />
        <p class="row">
          <button type="submit" class="danger" disabled=${typed.value !== name || busy.value}>${doing}</button>
          <button type="button" onClick=${close}>Cancel</button>
        </p>
      </form>
    <//>
  `;
}
