// Mesh: how its services, nodes and snodes are now, and what they have logged.
import { html } from "../../../vendor/preact.js";
import { linkTo } from "../../core/router.js";
import { who } from "../../core/session.js";
import { Log } from "./log.js";
import { Now } from "./now.js";

export function Mesh({ parts }) {
  const log = parts[0] === "log";
  return html`
    <h1>Mesh</h1>
    <nav class="halves" aria-label="What is shown of the mesh">
      <a href=${linkTo("mesh")} aria-current=${log ? undefined : "page"}>Services</a>
      <a href=${linkTo("mesh", "log")} aria-current=${log ? "page" : undefined}>Log</a>
    </nav>
    ${!log && html`<${Now} />`}
    ${log && who.value.admin && html`<${Log} trace=${parts[1] ?? ""} />`}
    ${log && !who.value.admin && html`<p>Logs name what others have and do: who has ADMIN sees them.</p>`}
  `;
}
