// Tables: those of a database, or one of them.
import { html } from "../../../vendor/preact.js";
import { AllTables } from "./list.js";
import { OneTable } from "./one_table.js";

export function Tables({ parts }) {
  return parts.length === 2
    ? html`<${OneTable} database=${parts[0]} table=${parts[1]} />`
    : html`<${AllTables} wanted=${parts[0]} />`;
}
