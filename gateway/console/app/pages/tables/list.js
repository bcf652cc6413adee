// The tables of a database.
import { html } from "../../../vendor/preact.js";
import { useAnswer } from "../../core/asked.js";
import { go, linkTo } from "../../core/router.js";
import { databases, forgetSchema, tables } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { isOwn } from "./own.js";

export function AllTables({ wanted }) {
  const { answer, fault } = useAnswer(async () => {
    forgetSchema();
    const names = await databases();
    const chosen = wanted ?? names.find((name) => !isOwn(name)) ?? names[0];
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
          ...(isOwn(found.chosen) ? [] : [followed(found.chosen)]),
        ]} />
    `}
  `;
}

/** The column that leads to a table's rows as they come. */
function followed(database) {
  return { title: "Rows", show: ({ name }) => html`<a href=${linkTo("live", database, name)} aria-label=${`Follow ${name} live`}>live</a>` };
}
