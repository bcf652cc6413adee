// Dead letters and late rows: what was left out, why, and what to do about it.
import { html } from "../../../vendor/preact.js";
import { linkTo } from "../../core/router.js";
import { LateList } from "./late_list.js";
import { LetterList } from "./letter_list.js";
import { OnePlace } from "./one_place.js";

export function Letters({ parts }) {
  if (parts.length === 3) return html`<${OnePlace} topic=${parts[0]} partition=${parts[1]} offset=${parts[2]} />`;
  const late = parts[0] === "late";
  return html`
    <h1>Dead letters and late rows</h1>
    <nav class="halves" aria-label="What was left out">
      <a href=${linkTo("dead-letters")} aria-current=${late ? undefined : "page"}>Dead letters</a>
      <a href=${linkTo("dead-letters", "late")} aria-current=${late ? "page" : undefined}>Late rows</a>
    </nav>
    ${late ? html`<${LateList} />` : html`<${LetterList} />`}
  `;
}
