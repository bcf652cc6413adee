// The schema as a tree: each part is asked for when it is opened, child tables some at a time.
import { html, useEffect, useSignal } from "../../../vendor/preact.js";
import { useAnswer } from "../../core/asked.js";
import { faultFrom } from "../../core/http.js";
import { quotePath } from "../../core/query.js";
import { linkTo } from "../../core/router.js";
import { children, columns, databases, forgetSchema, tables } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";

const CHILDREN_AT_ONCE = 100;

/** @param use is called with what a chosen name means: `use(text)` writes it */
export function SchemaTree({ use }) {
  const round = useSignal(0);
  function again() {
    forgetSchema();
    round.value += 1;
  }
  return html`
    <section class="side-part" aria-label="Schema" key=${round.value}>
      <div class="row spread"><h2>Schema</h2><button onClick=${again}>Refresh</button></div>
      <${Listed} question=${databases} empty="There is no database yet.">
        ${(name) => html`<${Part} key=${name} title=${name}><${DatabaseTables} database=${name} use=${use} /><//>`}
      <//>
    </section>
  `;
}

/** One line that opens; what is inside exists from then on. */
function Part({ title, detail, children: inside }) {
  const opened = useSignal(false);
  return html`
    <details onToggle=${(event) => event.target.open && (opened.value = true)}>
      <summary>${title}${detail && html` <small>${detail}</small>`}</summary>
      ${opened.value && inside}
    </details>
  `;
}

function DatabaseTables({ database, use }) {
  return html`
    <${Listed} question=${() => tables(database)} empty="It has no tables.">
      ${(table) => html`
        <${Part} key=${table.name} title=${table.name} detail=${table.kind}>
          <button class="entry" onClick=${() => use(`SELECT * FROM ${quotePath(database, table.name)} LIMIT 100`)}>
            Write a SELECT
          </button>
          <a class="leaf" href=${linkTo("live", database, table.name)}>Follow live</a>
          <${Listed} question=${() => columns(database, table.name)} empty="It has no columns.">
            ${(column) => html`
              <div key=${column.name} class="leaf">
                <span>${column.name}</span> <small>${column.type}${column.tag ? ", tag" : ""}</small>
              </div>
            `}
          <//>
          ${table.kind === "supertable" &&
          html`<${Part} title="Child tables"><${Children} database=${database} stable=${table.name} use=${use} /><//>`}
        <//>
      `}
    <//>
  `;
}

function Children({ database, stable, use }) {
  const names = useSignal([]);
  const more = useSignal(true);
  const asked = useSignal(false);
  const fault = useSignal(null);
  async function load() {
    asked.value = true;
    try {
      const found = await children(database, stable, names.value.at(-1), CHILDREN_AT_ONCE);
      names.value = [...names.value, ...found];
      more.value = found.length === CHILDREN_AT_ONCE;
      fault.value = null;
    } catch (error) {
      fault.value = faultFrom(error);
    }
    asked.value = false;
  }
  useEffect(() => {
    load();
  }, []);
  return html`
    ${names.value.map(
      (name) => html`
        <button key=${name} class="entry leaf" title="Write a SELECT"
          onClick=${() => use(`SELECT * FROM ${quotePath(database, name)} LIMIT 100`)}>${name}</button>
      `,
    )}
    ${names.value.length === 0 && !more.value && html`<p class="leaf">It has none.</p>`}
    ${more.value && names.value.length > 0 && html`<button disabled=${asked.value} onClick=${load}>More</button>`}
    <${Fault} fault=${fault.value} />
  `;
}

/** The answer of *question*, each part as `children(part)` draws it. */
function Listed({ question, empty, children: draw }) {
  const { answer, fault } = useAnswer(question);
  if (fault.value) return html`<${Fault} fault=${fault.value} />`;
  if (answer.value === null) return html`<p class="leaf">…</p>`;
  return answer.value.length === 0 ? html`<p class="leaf">${empty}</p>` : answer.value.map(draw);
}
