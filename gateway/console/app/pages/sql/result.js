// The answer of a statement: its rows, how long it took, copy and download; or what was wrong.
import { html } from "../../../vendor/preact.js";
import { count, csv, tabbed } from "../../core/format.js";
import { CopyButton } from "../../parts/copy.js";
import { Fault } from "../../parts/fault.js";
import { Grid } from "../../parts/grid.js";

export function Result({ run }) {
  if (!run) return html`<p class="soft">Ctrl+Enter runs the statement, or what is selected of it.</p>`;
  if (run.fault) return html`<${Fault} fault=${run.fault} />`;
  if (!run.answer) return null;
  const { columns, rows, notices } = run.answer;
  const affected = columns.length === 1 && columns[0].name === "affected_rows";
  return html`
    ${notices.map((notice) => html`<p class="note">${notice}</p>`)}
    ${affected
      ? html`<p>Done. Rows affected: ${count(rows[0][0])}.</p>`
      : html`<${Rows} columns=${columns} rows=${rows} />`}
  `;
}

function Rows({ columns, rows }) {
  return html`
    <div class="row spread">
      <span>${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}</span>
      <span class="row">
        <${CopyButton} label="Copy all" text=${() => tabbed(columns, rows)} />
        <button onClick=${() => download(csv(columns, rows))}>Download CSV</button>
      </span>
    </div>
    <${Grid} columns=${columns} rows=${rows} label="Result" />
  `;
}

function download(text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = `penstock-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
