// The answer of a statement: its rows, how long it took, copy and download; a stream's rows as they
// come; or what was wrong.
import { html, useSignal } from "../../../vendor/preact.js";
import { count, csv, tabbed } from "../../core/format.js";
import { ask, faultFrom } from "../../core/http.js";
import { parquet } from "../../core/query.js";
import { CopyButton } from "../../parts/copy.js";
import { download } from "../../parts/download.js";
import { Fault } from "../../parts/fault.js";
import { Grid } from "../../parts/grid.js";
import { Followed } from "../live/followed.js";
import { readingAgain } from "./again.js";
import { ResultChart } from "./result_chart.js";

/** @param run what `runs` has of the tab */
export function Result({ run }) {
  if (!run) return html`<p class="soft">Ctrl+Enter runs the statement, or what is selected of it.</p>`;
  if (run.fault) return html`<${Fault} fault=${run.fault} />`;
  if (run.subject) return html`<${FollowedStream} key=${run.started} run=${run} />`;
  if (!run.answer) return null;
  const { columns, rows, notices } = run.answer;
  const affected = columns.length === 1 && columns[0].name === "affected_rows";
  return html`
    ${notices.map((notice) => html`<p class="note">${notice}</p>`)}
    ${affected
      ? html`<p>Done. Rows affected: ${count(rows.at(0)[0])}.</p>`
      : html`<${Rows} run=${run} columns=${columns} rows=${rows} />`}
  `;
}

function FollowedStream({ run }) {
  const { database, table } = run.subject;
  return html`
    <p>New rows of <strong>${database}.${table}</strong> come on top; Stop ends that.</p>
    <${Followed} subject=${run.subject} stopped=${!run.stop} />
  `;
}

function Rows({ run, columns, rows }) {
  const fault = useSignal(null);
  const busy = useSignal(false);
  async function save(work) {
    busy.value = true;
    try {
      await work();
      fault.value = null;
    } catch (error) {
      fault.value = faultFrom(error);
    }
    busy.value = false;
  }
  return html`
    <div class="row spread">
      <span>${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}</span>
      <span class="row">
        <${CopyButton} label="Copy all" text=${() => tabbed(columns, rows)} />
        <button disabled=${busy.value} onClick=${() => save(() => saveCsv(columns, rows))}>Download CSV</button>
        <button disabled=${busy.value} title="The gateway runs the statement again for it"
          onClick=${() => save(() => saveParquet(run))}>Download Parquet</button>
      </span>
    </div>
    <${Fault} fault=${fault.value} />
    <${ResultChart} key=${run.started} columns=${columns} rows=${rows} />
    <${Grid} columns=${columns} rows=${rows} label="Result" />
  `;
}

/** A long file is made piece by piece, so that the page goes on answering. */
async function saveCsv(columns, rows) {
  const parts = [];
  for (const part of csv(columns, rows)) {
    parts.push(part);
    await new Promise((done) => setTimeout(done));
  }
  download(parts, "text/csv", "csv");
}

async function saveParquet({ text, database }) {
  const { statements } = await ask("/v1/check", { sql: text, database: database || null });
  const again = readingAgain(text, statements);
  if (again === null) throw new Error("only what a statement reads can be saved as Parquet");
  download([await parquet(again, { database })], "application/vnd.apache.parquet", "parquet");
}
