// An error as the gateway said it: what, where with a caret, and what to do.
import { html } from "../../vendor/preact.js";
import { who } from "../core/session.js";
import { TraceLink } from "./trace_link.js";

export function Fault({ fault }) {
  if (!fault) return null;
  const where = fault.line ? ` (line ${fault.line}, column ${fault.column})` : "";
  return html`
    <div class="fault" role="alert">
      <p><span aria-hidden="true">✖ </span><strong>${fault.code || "Error"}</strong>${where}: ${fault.message}</p>
      ${fault.snippet && html`<pre>${fault.snippet}</pre>`}
      ${fault.detail && html`<p>${fault.detail}</p>`}
      ${fault.hint && html`<p>Hint: ${fault.hint}</p>`}
      ${fault.trace && who.value?.admin && html`<p><${TraceLink} trace=${fault.trace} words="What the log says about it" /></p>`}
    </div>
  `;
}
