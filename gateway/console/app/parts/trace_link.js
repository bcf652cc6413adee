// A trace id that leads to what all services have logged about it.
import { html } from "../../vendor/preact.js";
import { linkTo } from "../core/router.js";

/** @param words of the link; the id itself without them */
export function TraceLink({ trace, words }) {
  return html`<a href=${linkTo("mesh", "log", trace)}>${words ?? trace}</a>`;
}
