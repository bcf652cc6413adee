// What is said of a stream in lists and on its own page.
import { html } from "../../vendor/preact.js";
import { linkTo } from "../core/router.js";
import { State } from "./state.js";

export function Status({ stream }) {
  const told = stream.message || stream.last_error;
  return html`<span><${State} word=${stream.status} />${told && html`<br /><small>${told}</small>`}</span>`;
}

export function Ends({ stream }) {
  return html`
    <span>
      <a href=${linkTo("tables", stream.source_db, stream.source_table)}>${stream.source_db}.${stream.source_table}</a>
      ${" → "}
      ${stream.target_table
        ? html`<a href=${linkTo("tables", stream.target_db, stream.target_table)}>${stream.target_db}.${stream.target_table}</a>`
        : "notifications"}
    </span>
  `;
}
