// Home: how much flows, what stands still, and what to do first in an empty mesh.
import { html, useRef } from "../../vendor/preact.js";
import { count, rate } from "../core/format.js";
import { ask } from "../core/http.js";
import { usePoll } from "../core/poll.js";
import { objects } from "../core/query.js";
import { linkTo } from "../core/router.js";
import { Recent, streams } from "../core/streams.js";
import { Command } from "../parts/copy.js";
import { Fault } from "../parts/fault.js";
import { Findings } from "../parts/findings.js";
import { Spark } from "../parts/spark.js";

const DATABASES =
  "SELECT name FROM information_schema.ins_databases" +
  " WHERE name NOT IN ('information_schema', 'performance_schema') LIMIT 1";

export function Home() {
  const recent = useRef(new Recent());
  const { answer, fault } = usePoll(async (signal) => {
    const [all, health, databases] = await Promise.all([
      streams(signal),
      ask("/v1/health", undefined, { signal }),
      objects(DATABASES, { signal }),
    ]);
    recent.current.add("in", sum(all, "rows_in_rate"));
    recent.current.add("out", sum(all, "rows_out_rate"));
    return { all, health, empty: databases.length === 0 };
  }, 1);
  const found = answer.value;
  return html`
    <h1>Home</h1>
    <${Fault} fault=${fault.value} />
    ${found && html`
      ${found.empty && html`<${FirstSteps} />`}
      <${Figures} all=${found.all} recent=${recent.current} />
      <h2>What the doctor finds</h2>
      <${Findings} findings=${found.health.findings} />
    `}
    ${!found && !fault.value && html`<p>Loading …</p>`}
  `;
}

function Figures({ all, recent }) {
  const worst = all.reduce((most, one) => ((one.lag_records ?? 0) > (most?.lag_records ?? 0) ? one : most), null);
  return html`
    <div class="cards">
      <section class="card">
        <div class="what">Rows into streams</div>
        <div class="figure">${rate(sum(all, "rows_in_rate"))}</div>
        <${Spark} values=${recent.of("in")} label="Rows into streams in the last minute" />
      </section>
      <section class="card">
        <div class="what">Results out</div>
        <div class="figure">${rate(sum(all, "rows_out_rate"))}</div>
        <${Spark} values=${recent.of("out")} label="Results in the last minute" />
      </section>
      <section class="card">
        <div class="what">Worst lag</div>
        <div class="figure">${count(worst?.lag_records ?? 0)} records</div>
        ${worst && html`
          <a href=${linkTo("streams", worst.database, worst.name)}>${worst.name}</a>
          ${worst.lag_partition && html`<div class="soft">most of them in ${worst.lag_partition}</div>`}
        `}
      </section>
      <section class="card">
        <div class="what">Streams ready</div>
        <div class="figure">${all.filter(({ status }) => status === "ready").length} of ${all.length}</div>
        <a href=${linkTo("streams")}>All streams</a>
      </section>
    </div>
  `;
}

function FirstSteps() {
  return html`
    <section class="note" aria-label="First steps">
      <h2>This mesh is empty</h2>
      <p>Load the demo, where the mesh was started: 336,776 flights with streams over them, or this machine's processors
        and memory as they are, until <kbd>Ctrl C</kbd>.</p>
      <p><${Command} text=${`penstock demo --url ${location.origin}`} /></p>
      <p><${Command} text=${`penstock demo --live --url ${location.origin}`} /></p>
      <p>Connect a source: a database, and rows by HTTP in line protocol, with a name and a password of this mesh.</p>
      <p><${Command} text=${`curl -u root -d 'weather,site=north temperature=21.5' '${location.origin}/write?db=plant'`} /></p>
      <p>Or <a href=${linkTo("sql", "CREATE DATABASE plant")}>open SQL</a> and begin with CREATE DATABASE.</p>
    </section>
  `;
}

function sum(all, name) {
  return all.reduce((total, one) => total + (one[name] ?? 0), 0);
}
