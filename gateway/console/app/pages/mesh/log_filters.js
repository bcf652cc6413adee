// What the log is narrowed to: a service, a level, a text, and a trace id, which is part of the address.
import { html, useSignal } from "../../../vendor/preact.js";
import { go } from "../../core/router.js";

const LEVELS = ["info", "warning", "error", "critical"];
const NOTHING = { service: "", level: "info", text: "" };

export function useLogFilters() {
  return useSignal(NOTHING);
}

/** @param narrow takes what is changed; @param logs `{service, node}` of all that there are */
export function LogFilters({ filters, narrow, trace, logs }) {
  const { service, level, text } = filters;
  const services = [...new Set([...logs.map((log) => log.service), service].filter(Boolean))].sort();
  const set = (name) => (event) => narrow({ [name]: event.target.value.trim() });
  const follow = (event) => go("mesh", "log", ...[event.target.value.trim()].filter(Boolean));
  return html`
    <form class="row" aria-label="Narrow the log" onSubmit=${(event) => event.preventDefault()}>
      <label>Service
        <select value=${service} onChange=${set("service")}>
          <option value="">all</option>
          ${services.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>
      </label>
      <label>Level
        <select value=${level} onChange=${set("level")}>
          ${LEVELS.map((name) => html`<option key=${name} value=${name}>${name === "critical" ? name : `${name} and worse`}</option>`)}
        </select>
      </label>
      <label>Text <input type="search" value=${text} spellcheck=${false} onChange=${set("text")} /></label>
      <label>Trace id <input type="search" value=${trace} spellcheck=${false} onChange=${follow} /></label>
    </form>
  `;
}
