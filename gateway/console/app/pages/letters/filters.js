// What a list of dead letters or late rows is narrowed to: signals, and the form that sets them.
import { html, useSignal } from "../../../vendor/preact.js";
import { count } from "../../core/format.js";

const NOTHING = { code: "", stream: "", from: "", to: "" };

export function useFilters() {
  return useSignal(NOTHING);
}

export function isNarrowed(filters) {
  return Object.values(filters).some(Boolean);
}

/** @param counts rows `{code?, db_name, stream_name, n}`, from which the choices are made */
export function Filters({ filters, counts }) {
  const set = (name) => (event) => (filters.value = { ...filters.value, [name]: event.target.value });
  const codes = choices(counts, ({ code }) => code);
  const streams = choices(counts, ({ db_name: database, stream_name: name }) => name && `${database}.${name}`);
  const { code, stream, from, to } = filters.value;
  return html`
    <form class="row" aria-label="Narrow the list" onSubmit=${(event) => event.preventDefault()}>
      ${codes.length > 0 && html`<${Choice} label="Code" value=${code} choices=${codes} change=${set("code")} />`}
      <${Choice} label="Stream or view" value=${stream} choices=${streams} change=${set("stream")} />
      <label>From (UTC) <input type="datetime-local" value=${from} onChange=${set("from")} /></label>
      <label>To (UTC) <input type="datetime-local" value=${to} onChange=${set("to")} /></label>
      ${isNarrowed(filters.value) && html`<button type="button" onClick=${() => (filters.value = NOTHING)}>Show all</button>`}
    </form>
  `;
}

function Choice({ label, value, choices, change }) {
  return html`
    <label>${label}
      <select value=${value} onChange=${change}>
        <option value="">all</option>
        ${choices.map(([name, n]) => html`<option key=${name} value=${name}>${name} (${count(n)})</option>`)}
      </select>
    </label>
  `;
}

/** `[name, how many]` of each name that there is. */
function choices(counts, nameOf) {
  const found = new Map();
  for (const one of counts) {
    const name = nameOf(one);
    if (name) found.set(name, (found.get(name) ?? 0) + Number(one.n));
  }
  return [...found].sort();
}
