// One table: its facts, columns, newest rows, those of its child tables, and who reads and writes it.
import { html, useSignal } from "../../../vendor/preact.js";
import { useAnswer } from "../../core/asked.js";
import { useCommands } from "../../core/commands.js";
import { quotePath } from "../../core/query.js";
import { go, linkTo } from "../../core/router.js";
import { columns } from "../../core/schema.js";
import { may } from "../../core/session.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { NewestRows } from "../../parts/newest_rows.js";
import { Facts } from "./facts.js";
import { InsertForm } from "./insert_form.js";
import { factsOf } from "./known.js";
import { LatestRows } from "./latest_rows.js";
import { Neighbours } from "./neighbours.js";
import { isOwn } from "./own.js";
import { isVirtual } from "./words.js";

export function OneTable({ database, table }) {
  const own = isOwn(database);
  const { answer, fault } = useAnswer(async () => {
    const [shown, facts] = await Promise.all([columns(database, table), own ? null : factsOf(database, table)]);
    return { shown, facts };
  });
  const { shown, facts } = answer.value ?? {};
  useCommands(own ? [] : [{ name: `Follow ${table} live`, run: () => go("live", database, table) }]);
  return html`
    <p><a href=${linkTo("tables", database)}>Tables of ${database}</a></p>
    <div class="row spread">
      <h1>${table}</h1>
      <span class="row">
        ${!own && html`<a href=${linkTo("live", database, table)}>Follow it live</a>`}
        <a href=${linkTo("sql", `SELECT * FROM ${quotePath(database, table)} LIMIT 100`, database)}>Ask in SQL</a>
      </span>
    </div>
    <${Fault} fault=${fault.value} />
    ${facts && html`<${Facts} facts=${facts} />`}
    ${facts && canWrite(facts) && html`<${Writing} facts=${facts} table=${table} />`}
    <h2>Newest rows</h2>
    <${NewestRows} database=${database} table=${table} seconds=${own ? 10 : 2} />
    ${facts && !facts.child && facts.storage.child_tables !== null &&
    html`<${LatestRows} database=${database} stable=${table} known=${facts.storage.child_tables} />`}
    <h2>Columns</h2>
    ${shown && html`
      <${List} label="Columns" rows=${shown} keyOf=${({ name }) => name} empty="There is no such table, or you may not see it."
        columns=${[
          { title: "Column", show: ({ name }) => name },
          { title: "Type", show: ({ type }) => type },
          { title: "Is", show: ({ tag }) => (tag ? "tag" : "column") },
        ]} />
    `}
    ${!own && html`<${Neighbours} database=${database} table=${table} />`}
  `;
}

/** Whether the user may write rows; a right on a supertable is one on its child tables. */
function canWrite({ storage }) {
  return !isVirtual(storage) && may("WRITE", "table", storage.db_name, storage.table_name);
}

/** The form that writes a row, once it is asked for. */
function Writing({ facts, table }) {
  const open = useSignal(false);
  useCommands([{ name: `Insert a row into ${table}`, run: () => (open.value = true) }]);
  const { db_name: database, table_name: home } = facts.storage;
  return html`
    <p><button aria-expanded=${open.value} onClick=${() => (open.value = !open.value)}>Insert a row</button></p>
    ${open.value && html`<${InsertForm} database=${database} home=${home} child=${facts.child ? table : null}
      isSuper=${facts.storage.child_tables !== null} />`}
  `;
}
