// A form that writes one row: a field for each column, and the INSERT that it makes.
import { html, useEffect, useRef, useSignal } from "../../../vendor/preact.js";
import { useAnswer } from "../../core/asked.js";
import { faultFrom } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { query } from "../../core/query.js";
import { linkTo } from "../../core/router.js";
import { columns } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";
import { InsertField, idOf } from "./insert_field.js";
import { emptyFields, insertOf, placeOf, writtenOf } from "./insert_text.js";
import { tagsOf } from "./known.js";

const CHILD = { name: "tbname", type: "VARCHAR", needed: true };

/**
 * @param home the table, or the supertable
 * @param child the child table whose rows are written, or null: then a supertable asks for one
 */
export function InsertForm({ database, home, child, isSuper }) {
  const { answer, fault } = useAnswer(async () => writtenOf(await columns(database, home)));
  return html`
    <${Fault} fault=${fault.value} />
    ${answer.value && html`<${Row} database=${database} home=${home} child=${child} asks=${isSuper && !child} all=${answer.value} />`}
  `;
}

function Row({ database, home, child, asks, all }) {
  const fields = useSignal(emptyFields(all));
  const name = useSignal("");
  /** The tags of the child table of that name, as far as there is one. */
  const held = useSignal([]);
  const fault = useSignal(null);
  const busy = useSignal(false);
  const written = useSignal(null);
  const form = useRef(null);
  useEffect(() => form.current.querySelector("input").focus(), []);

  const isNew = asks && held.value.length === 0;
  const shown = all.filter(({ tag }) => !tag || isNew);
  const text = insertOf({ database, home, child: asks ? name.value : child, isNew }, all, fields.value);
  const place = fault.value && placeOf(fault.value, [...shown, ...(asks ? [CHILD] : [])]);

  function change(column, value) {
    fields.value = { ...fields.value, [column]: value };
    written.value = null;
  }
  function rename({ text: given }) {
    name.value = given;
    held.value = [];
    written.value = null;
  }
  async function look() {
    const asked = name.value;
    if (!asked) return;
    try {
      const found = await tagsOf(database, home, asked);
      if (name.value === asked) held.value = found;
    } catch (error) {
      fault.value = faultFrom(error);
    }
  }
  async function submit(event) {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    fault.value = null;
    written.value = null;
    try {
      written.value = await query(text, { database });
      announce("The row is written");
      if (asks) look();
    } catch (error) {
      fault.value = faultFrom(error);
      const wrong = placeOf(fault.value, [...shown, CHILD]);
      if (wrong) document.getElementById(idOf(wrong))?.focus();
    } finally {
      busy.value = false;
    }
  }
  const wrongOf = (column) => (place === column ? fault.value : null);
  return html`
    <form ref=${form} class="insert" aria-label="Insert a row" onSubmit=${submit}>
      ${asks && html`
        <${InsertField} column=${CHILD} label="Child table" value=${{ text: name.value, none: false }}
          change=${rename} left=${look} wrong=${wrongOf(CHILD.name)} />
        ${held.value.length > 0 && html`
          <p class="soft">It exists, with ${held.value.map(({ tag_name: tag, tag_value: value }) => `${tag} = ${value ?? "NULL"}`).join(", ")}.</p>
        `}
      `}
      ${shown.map((column) => html`
        <${InsertField} key=${column.name} column=${column} value=${fields.value[column.name]}
          change=${(value) => change(column.name, value)} wrong=${wrongOf(column.name)} />
      `)}
      <pre class="text" tabindex="0" role="region" aria-label="The statement">${text}</pre>
      ${!place && html`<${Fault} fault=${fault.value} />`}
      <p class="row">
        <button type="submit" class="main" disabled=${busy.value}>Insert</button>
        <a href=${linkTo("sql", text, database)}>Change it in SQL</a>
        ${written.value && html`<span class="state good"><span aria-hidden="true">✔</span> The row is written.</span>`}
      </p>
      ${written.value?.notices.map((notice) => html`<p key=${notice} class="note">${notice}</p>`)}
    </form>
  `;
}
