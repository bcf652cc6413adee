// One stream: its text, counters, windows, tasks, newest results and the rows that came too late.
import { html, useRef } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { bytes, count, rate } from "../../core/format.js";
import { usePoll } from "../../core/poll.js";
import { objects, query, quoteText } from "../../core/query.js";
import { go, linkTo } from "../../core/router.js";
import { Recent, streams } from "../../core/streams.js";
import { Fault } from "../../parts/fault.js";
import { Grid } from "../../parts/grid.js";
import { List } from "../../parts/list.js";
import { NewestRows } from "../../parts/newest_rows.js";
import { Spark } from "../../parts/spark.js";
import { State } from "../../parts/state.js";
import { Ends, Status } from "../../parts/stream_words.js";
import { WindowLane } from "../lane/lane.js";
import { StreamActions } from "./actions.js";
import { HistoryProgress } from "./history.js";
import { Quotas } from "./quotas.js";
import { Statement } from "./statement.js";

export function Stream({ database, name }) {
  const recent = useRef(new Recent());
  const { answer, fault, again } = usePoll(async (signal) => {
    const all = await streams(signal);
    const found = all.find((one) => one.database === database && one.name === name) ?? null;
    recent.current.add("in", found?.rows_in_rate);
    recent.current.add("out", found?.rows_out_rate);
    return { found };
  }, 1);
  const stream = answer.value?.found;
  return html`
    <p><a href=${linkTo("streams")}>Streams</a></p>
    <h1>${name}</h1>
    <${Fault} fault=${fault.value} />
    ${answer.value && !stream && html`<p>There is no stream ${name} in ${database}, or you may not see it.</p>`}
    ${stream && html`
      <div class="row spread">
        <span><${Status} stream=${stream} /> <${Ends} stream=${stream} /></span>
        <${StreamActions} stream=${stream} done=${again} />
      </div>
      <${HistoryProgress} stream=${stream} />
      <${Counters} stream=${stream} recent=${recent.current} />
      <${Quotas} stream=${stream} />
      <${WindowLane} stream=${stream} />
      <${Statement} stream=${stream} replaced=${again} />
      <${Tasks} database=${database} name=${name} />
      ${stream.target_table && html`<${Results} database=${stream.target_db} table=${stream.target_table} />`}
      <${LateRows} database=${database} name=${name} />
    `}
  `;
}

function Counters({ stream, recent }) {
  const cards = [
    ["Rows in", count(stream.rows_in), rate(stream.rows_in_rate), "in"],
    ["Rows out", count(stream.rows_out), rate(stream.rows_out_rate), "out"],
    ["Late rows", count(stream.late_rows), "after their window closed"],
    ["Failed rows", count(stream.failed_rows), "among the dead letters"],
    ["Lag", count(stream.lag_records), "records not worked on"],
    ["State", bytes(stream.state_bytes), `watermark ${stream.watermark}`],
  ];
  return html`
    <div class="cards">
      ${cards.map(
        ([what, figure, more, chart]) => html`
          <section class="card" key=${what}>
            <div class="what">${what}</div>
            <div class="figure">${figure}</div>
            <div class="soft">${more}</div>
            ${chart && html`<${Spark} values=${recent.of(chart)} label=${`${what} in the last minute`} />`}
          </section>
        `,
      )}
    </div>
  `;
}

function Tasks({ database, name }) {
  const { answer, fault } = usePoll(
    (signal) => objects(`SELECT * FROM information_schema.ins_stream_tasks ${whereStream(database, name)}`, { signal }),
    3,
  );
  const columns = [
    { title: "Task", show: (task) => task.task_id },
    { title: "Status", show: (task) => html`<${State} word=${task.status} />` },
    { title: "Progress", show: (task) => task.progress },
    { title: "Rows in", number: true, show: (task) => count(task.rows_in) },
    { title: "Rows out", number: true, show: (task) => count(task.rows_out) },
    { title: "State", number: true, show: (task) => bytes(task.state_bytes) },
    { title: "Last error", show: (task) => task.last_error },
  ];
  return html`
    <h2>Tasks</h2>
    <${Fault} fault=${fault.value} />
    <${List} label="Tasks" rows=${answer.value ?? []} columns=${columns} keyOf=${(task) => task.task_id}
      empty="No task has told anything yet." />
  `;
}

function Results({ database, table }) {
  useCommands([{ name: `Follow ${table} live`, run: () => go("live", database, table) }]);
  return html`
    <div class="row spread">
      <h2>Newest results</h2>
      <a href=${linkTo("live", database, table)}>Follow them live</a>
    </div>
    <${NewestRows} database=${database} table=${table} seconds=${3} />
  `;
}

function LateRows({ database, name }) {
  const { answer, fault } = usePoll(
    (signal) => query(`SELECT arrived, table_name, ticks, \`row\` FROM information_schema.ins_late_rows ${whereStream(database, name)}`, { signal }),
    5,
  );
  const found = answer.value;
  return html`
    <h2>Late rows</h2>
    <${Fault} fault=${fault.value} />
    ${found && (found.rows.length > 0 ? html`<${Grid} label="Late rows" ...${found} />` : html`<p>None is known.</p>`)}
  `;
}

function whereStream(database, name) {
  return `WHERE stream_name = ${quoteText(name)} AND db_name = ${quoteText(database)}`;
}
