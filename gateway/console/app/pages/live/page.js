// Live: a table as its rows come, newest on top, with all that it has had below.
import { html, useEffect, useSignal } from "../../../vendor/preact.js";
import { faultFrom } from "../../core/http.js";
import { linkTo } from "../../core/router.js";
import { Fault } from "../../parts/fault.js";
import { Followed } from "./followed.js";
import { Picker } from "./picker.js";
import { findSubject } from "./subject.js";

export function Live({ parts }) {
  const chosen = parts.join(".");
  return html`
    <h1>Live</h1>
    <${Picker} chosen=${chosen} />
    ${chosen
      ? html`<${Found} parts=${parts} />`
      : html`<p class="soft">Rows are shown as they come, and all earlier ones below them. A name of a stream means its result.</p>`}
  `;
}

function Found({ parts }) {
  const subject = useSignal(null);
  const fault = useSignal(null);
  useEffect(() => {
    findSubject(parts).then(
      (found) => (subject.value = found),
      (error) => (fault.value = faultFrom(error)),
    );
  }, []);
  if (fault.value) return html`<${Fault} fault=${fault.value} />`;
  if (!subject.value) return html`<p>Loading …</p>`;
  const { database, table } = subject.value;
  return html`
    <div class="row spread">
      <h2>${database}.${table}</h2>
      <a href=${linkTo("tables", database, table)}>Its columns and streams</a>
    </div>
    <${Followed} subject=${subject.value} />
  `;
}
