// The newest rows of a table by its first column, which is its time.
import { html } from "../../vendor/preact.js";
import { usePoll } from "../core/poll.js";
import { query, quoteName, quotePath } from "../core/query.js";
import { columns } from "../core/schema.js";
import { Fault } from "./fault.js";
import { Grid } from "./grid.js";

const MOST = 50;

export function NewestRows({ database, table, seconds }) {
  const { answer, fault } = usePoll(
    async (signal) => {
      const [time] = await columns(database, table);
      if (!time) return { columns: [], rows: [] };
      const order = `ORDER BY ${quoteName(time.name)} DESC LIMIT ${MOST}`;
      return query(`SELECT * FROM ${quotePath(database, table)} ${order}`, { signal });
    },
    seconds,
    [database, table],
  );
  const found = answer.value;
  return html`
    <${Fault} fault=${fault.value} />
    ${found && found.rows.length === 0 && html`<p>It has no rows yet.</p>`}
    ${found && found.rows.length > 0 && html`<${Grid} label=${`Newest rows of ${table}`} ...${found} />`}
  `;
}
