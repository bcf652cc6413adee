// Who has which right on what: a matrix in which who has ADMIN gives and takes rights.
import { html, useEffect, useSignal } from "../../../vendor/preact.js";
import { faultFrom } from "../../core/http.js";
import { quoteName } from "../../core/query.js";
import { databases, tables } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";
import { RIGHTS, fits, matrixOf, nameOf, objectOf } from "./matrix.js";

const EVERYTHING = "*";

export function Grants({ users, roles, grants, admin, run }) {
  const rows = matrixOf(grants);
  const root = users.find((one) => one.super === 1)?.name;
  const holders = [...users.filter((one) => one.super !== 1), ...roles].map(({ name }) => name);
  return html`
    <h2>Rights</h2>
    ${rows.length === 0 ? html`<p>There are none.</p>` : html`
      <div class="wide" role="region" tabindex="0" aria-label="All rights">
        <table class="list matrix" aria-label="Rights">
          <thead>
            <tr>
              <th scope="col">User or role</th><th scope="col">On</th>
              ${RIGHTS.map((right) => html`<th key=${right} scope="col">${right}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${rows.map((row) => html`<${Row} key=${`${row.holder} ${objectOf(row)}`} row=${row} run=${run} open=${admin && row.holder !== root} />`)}
          </tbody>
        </table>
      </div>
    `}
    ${admin && holders.length > 0 && html`<${GiveRight} holders=${holders} run=${run} />`}
  `;
}

function Row({ row, run, open }) {
  return html`
    <tr>
      <th scope="row">${row.holder}${row.holds === "role" && html` <small class="soft">role</small>`}</th>
      <td>${nameOf(row)}</td>
      ${RIGHTS.map((right) => html`<td key=${right}><${Cell} row=${row} right=${right} run=${run} open=${open} /></td>`)}
    </tr>
  `;
}

function Cell({ row, right, run, open }) {
  const held = row.rights.has(right);
  const words = `${right} on ${nameOf(row)} for ${row.holder}`;
  if (!fits(right, row.kind)) return "";
  if (!open) return held ? html`<span role="img" aria-label=${`has ${words}`}>✔</span>` : html`<span class="soft">–</span>`;
  async function change(event) {
    const box = event.target;
    const statement = held
      ? `REVOKE ${right} ON ${objectOf(row)} FROM ${quoteName(row.holder)}`
      : `GRANT ${right} ON ${objectOf(row)} TO ${quoteName(row.holder)}`;
    // until the list is read again it shows what is so
    if (!(await run(statement, `${words}: ${held ? "taken" : "given"}`))) box.checked = held;
  }
  return html`<input type="checkbox" aria-label=${words} checked=${held} onChange=${change} />`;
}

function kindOf(database, table) {
  if (database === EVERYTHING) return "all";
  return table ? "table" : "database";
}

/** A row of the matrix that is not there yet. */
function GiveRight({ holders, run }) {
  const names = useSignal([]);
  const inside = useSignal([]);
  const database = useSignal(EVERYTHING);
  const fault = useSignal(null);
  const wrong = (error) => (fault.value = faultFrom(error));
  useEffect(() => {
    databases().then((found) => (names.value = found.filter((name) => !name.endsWith("_schema"))), wrong);
  }, []);
  useEffect(() => {
    inside.value = [];
    if (database.value !== EVERYTHING) tables(database.value).then((found) => (inside.value = found), wrong);
  }, [database.value]);
  function submit(event) {
    event.preventDefault();
    const { holder, right, table } = Object.fromEntries(new FormData(event.target));
    const row = { kind: kindOf(database.value, table), database: database.value, name: table };
    run(`GRANT ${right} ON ${objectOf(row)} TO ${quoteName(holder)}`, `${right} on ${nameOf(row)} for ${holder}: given`);
  }
  return html`
    <${Fault} fault=${fault.value} />
    <form class="row" aria-label="Give a right" onSubmit=${submit}>
      <label>Give to <select name="holder">${holders.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <label>the right <select name="right">${RIGHTS.map((right) => html`<option key=${right} value=${right}>${right}</option>`)}</select></label>
      <label>on
        <select value=${database.value} onChange=${(event) => (database.value = event.target.value)}>
          <option value=${EVERYTHING}>everything</option>
          ${names.value.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>
      </label>
      ${inside.value.length > 0 && html`
        <label>in it
          <select name="table">
            <option value="">all of it</option>
            ${inside.value.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
          </select>
        </label>
      `}
      <button type="submit">Give</button>
    </form>
  `;
}
