// The newest row of each child table of a supertable, a hundred child tables at a time.
import { html, useEffect, useSignal } from "../../../vendor/preact.js";
import { arrowQuery } from "../../core/arrow_query.js";
import { count } from "../../core/format.js";
import { faultFrom } from "../../core/http.js";
import { quotePath, quoteText } from "../../core/query.js";
import { go } from "../../core/router.js";
import { children } from "../../core/schema.js";
import { Fault } from "../../parts/fault.js";
import { Grid } from "../../parts/grid.js";

const AT_ONCE = 100;
/** To find a page of names, the gateway looks at all of them: of more, only when somebody wants it. */
const UNASKED = 100_000;

/** @param known how many child tables there were when the page opened */
export function LatestRows({ database, stable, known }) {
  const wanted = useSignal(known <= UNASKED);
  return html`
    <h2>Latest row of each child table</h2>
    ${wanted.value ? html`<${Pages} database=${database} stable=${stable} />` : html`
      <p>It has ${count(known)} child tables. <button onClick=${() => (wanted.value = true)}>Show the first ${AT_ONCE}</button></p>
    `}
    <${OneChild} database=${database} />
  `;
}

function Pages({ database, stable }) {
  /** The name behind which each page begins, up to the one that is shown. */
  const begins = useSignal([""]);
  const round = useSignal(0);
  const page = useSignal(null);
  const fault = useSignal(null);
  const busy = useSignal(false);
  useEffect(() => {
    const stop = new AbortController();
    busy.value = true;
    fault.value = null;
    readPage(database, stable, begins.value.at(-1), stop.signal)
      .then(
        (found) => !stop.signal.aborted && (page.value = found),
        (error) => !stop.signal.aborted && (fault.value = faultFrom(error)),
      )
      .finally(() => !stop.signal.aborted && (busy.value = false));
    return () => stop.abort();
  }, [begins.value, round.value]);
  const found = page.value;
  return html`
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && html`<${Page} page=${found} stable=${stable} />`}
    <p class="row">
      <button disabled=${busy.value} onClick=${() => (round.value += 1)}>Refresh</button>
      ${begins.value.length > 1 && html`
        <button disabled=${busy.value} onClick=${() => (begins.value = begins.value.slice(0, -1))}>Previous ${AT_ONCE}</button>
      `}
      ${found?.more && !fault.value && html`
        <button disabled=${busy.value} onClick=${() => (begins.value = [...begins.value, found.names.at(-1)])}>Next ${AT_ONCE}</button>
      `}
    </p>
  `;
}

function Page({ page: { names, answer }, stable }) {
  if (names.length === 0) return html`<p>It has no child tables yet.</p>`;
  const without = names.length - answer.rows.length;
  return html`
    <p class="soft">From ${names[0]} to ${names.at(-1)}${without > 0 && `; ${without} of these ${names.length} have no row`}.</p>
    ${answer.rows.length > 0 && html`<${Grid} label=${`Latest rows of ${stable}`} ...${answer} />`}
  `;
}

/** Names of child tables behind *after*, the newest row of each, and whether there are more names. */
async function readPage(database, stable, after, signal) {
  const found = await children(database, stable, after, AT_ONCE + 1);
  const names = found.slice(0, AT_ONCE);
  const more = found.length > AT_ONCE;
  if (names.length === 0 || signal.aborted) return { names, more, answer: { columns: [], rows: [] } };
  const sql =
    `SELECT tbname, last_row(*) FROM ${quotePath(database, stable)} WHERE tbname IN (${names.map(quoteText).join(", ")})` +
    " PARTITION BY tbname ORDER BY tbname";
  return { names, more, answer: await arrowQuery(sql, { database, signal }) };
}

/** Leads to a child table by its name: of millions nobody looks for one page by page. */
function OneChild({ database }) {
  const name = useSignal("");
  function open(event) {
    event.preventDefault();
    if (name.value.trim()) go("tables", database, name.value.trim());
  }
  return html`
    <form class="row" onSubmit=${open}>
      <label>Child table
        <input value=${name.value} autocomplete="off" spellcheck=${false} onInput=${(event) => (name.value = event.target.value)} />
      </label>
      <button type="submit">Open</button>
    </form>
  `;
}
