// The statement of a stream: as it is, or in an editor.
import { html, useSignal } from "../../../vendor/preact.js";
import { go } from "../../core/router.js";
import { CopyButton } from "../../parts/copy.js";
import { isHidden, replacingOf } from "./anew.js";
import { StatementEditor } from "./edit.js";
import { mayReplace } from "./rights.js";

const EDIT = "edit-statement";

/** @param replaced is called when an edited statement took the place of the stream's */
export function Statement({ stream, replaced }) {
  const editing = useSignal(false);
  function close() {
    editing.value = false;
    requestAnimationFrame(() => document.getElementById(EDIT)?.focus());
  }
  return html`
    <h2>Statement</h2>
    ${editing.value
      ? html`<${StatementEditor} stream=${stream} close=${close} replaced=${replaced} />`
      : html`<${Text} stream=${stream} edit=${() => (editing.value = true)} />`}
  `;
}

function Text({ stream: { database, name, sql }, edit }) {
  const replacing = replacingOf(sql);
  const open = () => (isHidden(sql) ? go("sql", replacing, database) : edit());
  return html`
    <pre class="text" tabindex="0">${sql}</pre>
    <div class="row">
      ${replacing && mayReplace(database, name) && html`<button id=${EDIT} onClick=${open}>Edit</button>`}
      <button onClick=${() => go("sql", sql, database)}>Open in SQL</button>
      <${CopyButton} text=${sql} />
    </div>
  `;
}
