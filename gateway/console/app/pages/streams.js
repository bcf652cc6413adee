// Streams: all of them, or one with its text, tasks and newest results.
import { html, useRef } from "../../vendor/preact.js";
import { bytes, count, rate } from "../core/format.js";
import { usePoll } from "../core/poll.js";
import { linkTo } from "../core/router.js";
import { Recent, streams } from "../core/streams.js";
import { Fault } from "../parts/fault.js";
import { List } from "../parts/list.js";
import { Spark } from "../parts/spark.js";
import { Ends, Status } from "../parts/stream_words.js";
import { StreamActions } from "./stream/actions.js";
import { Stream } from "./stream/page.js";

const SECONDS = 1;

export function Streams({ parts }) {
  return parts.length === 2 ? html`<${Stream} database=${parts[0]} name=${parts[1]} />` : html`<${AllStreams} />`;
}

function AllStreams() {
  const recent = useRef(new Recent());
  const { answer, fault, again } = usePoll(async (signal) => {
    const all = await streams(signal);
    for (const one of all) recent.current.add(one.stream_id, one.rows_in_rate);
    return all;
  }, SECONDS);
  return html`
    <div class="row spread">
      <h1>Streams</h1>
      <a href=${linkTo("sql", "CREATE STREAM ")}>Write a stream</a>
    </div>
    <${Fault} fault=${fault.value} />
    ${answer.value
      ? html`<${List} label="Streams" rows=${answer.value} columns=${columnsWith(recent.current, again)}
          keyOf=${(one) => one.stream_id} empty="There is no stream yet." />`
      : !fault.value && html`<p>Loading …</p>`}
  `;
}

function columnsWith(recent, again) {
  return [
    { title: "Stream", show: (one) => html`<a href=${linkTo("streams", one.database, one.name)}>${one.name}</a>` },
    { title: "Status", show: (one) => html`<${Status} stream=${one} />` },
    { title: "Trigger", show: (one) => one.trigger },
    { title: "Source → target", show: (one) => html`<${Ends} stream=${one} />` },
    {
      title: "Rows in",
      number: true,
      show: (one) => html`${rate(one.rows_in_rate)} <${Spark} values=${recent.of(one.stream_id)} label="Rows in, last minute" />`,
    },
    { title: "Rows out", number: true, show: (one) => html`${rate(one.rows_out_rate)}<${LiveResult} stream=${one} />` },
    { title: "Lag", number: true, show: (one) => count(one.lag_records) },
    { title: "Late", number: true, show: (one) => count(one.late_rows) },
    { title: "Failed", number: true, show: (one) => count(one.failed_rows) },
    { title: "State", number: true, show: (one) => bytes(one.state_bytes) },
    { title: "Events waiting", number: true, show: (one) => count(one.events_waiting) },
    { title: "Actions", show: (one) => html`<${StreamActions} stream=${one} done=${again} />` },
  ];
}

function LiveResult({ stream: { name, target_db, target_table } }) {
  if (!target_table) return null;
  return html` <a href=${linkTo("live", target_db, target_table)} aria-label=${`Follow the results of ${name} live`}>live</a>`;
}
