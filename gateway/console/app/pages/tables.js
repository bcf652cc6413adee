// Tables: those of a database, or one with its columns, newest rows, and who reads and writes it.
import { html, useEffect, useSignal } from "../../vendor/preact.js";
import { useCommands } from "../core/commands.js";
import { count } from "../core/format.js";
import { faultFrom } from "../core/http.js";
import { usePoll } from "../core/poll.js";
import { objects, quotePath, quoteText } from "../core/query.js";
import { go, linkTo } from "../core/router.js";
import { columns, databases, forgetSchema, tables } from "../core/schema.js";
import { Fault } from "../parts/fault.js";
import { List } from "../parts/list.js";
import { NewestRows } from "../parts/newest_rows.js";
import { State } from "../parts/state.js";

const OWN = ["information_schema", "performance_schema"];

export function Tables({ parts }) {
  return parts.length === 2
    ? html`<${OneTable} database=${parts[0]} table=${parts[1]} />`
    : html`<${AllTables} wanted=${parts[0]} />`;
}

/** Ask once when the page opens. */
function useAnswer(question) {
  const answer = useSignal(null);
  const fault = useSignal(null);
  useEffect(() => {
    question().then(
      (found) => (answer.value = found),
      (error) => (fault.value = faultFrom(error)),
    );
  }, []);
  return { answer, fault };
}

function AllTables({ wanted }) {
  const { answer, fault } = useAnswer(async () => {
    forgetSchema();
    const names = await databases();
    const chosen = wanted ?? names.find((name) => !OWN.includes(name)) ?? names[0];
    return { names, chosen, listed: chosen ? await tables(chosen) : [] };
  });
  const found = answer.value;
  return html`
    <h1>Tables</h1>
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && html`
      <label>Database
        <select value=${found.chosen} onChange=${(event) => go("tables", event.target.value)}>
          ${found.names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>
      </label>
      <${List} label="Tables" rows=${found.listed} keyOf=${({ name }) => name} empty="This database has no tables."
        columns=${[
          { title: "Table", show: ({ name }) => html`<a href=${linkTo("tables", found.chosen, name)}>${name}</a>` },
          { title: "Kind", show: ({ kind }) => kind },
          ...(OWN.includes(found.chosen) ? [] : [followed(found.chosen)]),
        ]} />
    `}
  `;
}

/** The column that leads to a table's rows as they come. */
function followed(database) {
  return { title: "Rows", show: ({ name }) => html`<a href=${linkTo("live", database, name)} aria-label=${`Follow ${name} live`}>live</a>` };
}

function OneTable({ database, table }) {
  const { answer, fault } = useAnswer(() => columns(database, table));
  const own = OWN.includes(database);
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
    <h2>Newest rows</h2>
    <${NewestRows} database=${database} table=${table} seconds=${own ? 10 : 2} />
    <h2>Columns</h2>
    ${answer.value && html`
      <${List} label="Columns" rows=${answer.value} keyOf=${({ name }) => name} empty="There is no such table, or you may not see it."
        columns=${[
          { title: "Column", show: ({ name }) => name },
          { title: "Type", show: ({ type }) => type },
          { title: "Is", show: ({ tag }) => (tag ? "tag" : "column") },
        ]} />
    `}
    ${!own && html`<${Neighbours} database=${database} table=${table} />`}
  `;
}

/** The streams that read a table, and those that write it. */
function Neighbours({ database, table }) {
  const { answer, fault } = usePoll(
    (signal) =>
      objects(
        "SELECT stream_name, source_db, source_table, status, rows_in, rows_out FROM information_schema.ins_streams" +
          ` WHERE (source_db = ${quoteText(database)} AND source_table = ${quoteText(table)})` +
          ` OR (target_db = ${quoteText(database)} AND target_table = ${quoteText(table)})`,
        { signal },
      ),
    5,
  );
  const reads = (one) => one.source_db === database && one.source_table === table;
  return html`
    <h2>Streams that read or write it</h2>
    <${Fault} fault=${fault.value} />
    <${List} label="Streams of this table" rows=${answer.value ?? []} keyOf=${(one) => one.stream_name}
      empty="None."
      columns=${[
        { title: "Stream", show: (one) => html`<a href=${linkTo("streams", one.source_db, one.stream_name)}>${one.stream_name}</a>` },
        { title: "Does", show: (one) => (reads(one) ? "reads" : "writes") },
        { title: "Status", show: (one) => html`<${State} word=${one.status} />` },
        { title: "Rows", number: true, show: (one) => count(reads(one) ? one.rows_in : one.rows_out) },
      ]} />
  `;
}
