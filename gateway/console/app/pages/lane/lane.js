// The window lane: time to the right, a line a group, open windows hollow, closed ones filled.
import { html, useRef } from "../../../vendor/preact.js";
import { count } from "../../core/format.js";
import { usePoll } from "../../core/poll.js";
import { Fault } from "../../parts/fault.js";
import { Windows, hasWindows, placeOf } from "./model.js";
import { lookAt } from "./look.js";

const SECONDS = 2;
/** Beyond so much state a look costs the stream more than it tells. */
const MOST_STATE = 20e6;
const ANSWERS = ["ready", "paused", "throttled"];

export function WindowLane({ stream }) {
  if (!hasWindows(stream.sql)) return null;
  return html`
    <h2>Windows</h2>
    ${!ANSWERS.includes(stream.status)
      ? html`<p>A stream that is ${stream.status} holds no windows that could be shown.</p>`
      : stream.state_bytes > MOST_STATE
        ? html`<p>It holds too much to be asked again and again; SELECT … FROM ${stream.name} OPEN WINDOWS asks once.</p>`
        : html`<${Shown} stream=${stream} />`}
  `;
}

function Shown({ stream }) {
  const windows = useRef(new Windows());
  const { answer, fault } = usePoll(async (signal) => {
    const found = await lookAt(stream, signal);
    windows.current.take(found.open, found.results, found.since);
    return { ...windows.current.view(), late: found.late, watermark: found.watermark };
  }, SECONDS);
  const view = answer.value;
  return html`
    <${Fault} fault=${fault.value} />
    ${!view && !fault.value && html`<p>Loading …</p>`}
    ${view && view.lanes.length === 0 && html`<p>No window has opened yet.</p>`}
    ${view && view.lanes.length > 0 && html`
      <div class="lanes">
        ${view.lanes.map((lane) => html`<${GroupLane} key=${lane.group} lane=${lane} view=${view} />`)}
        ${view.late.length > 0 && html`<${LateLane} view=${view} />`}
        <${Axis} view=${view} />
      </div>
      <${Legend} view=${view} watermark=${stream.watermark} />
    `}
  `;
}

function GroupLane({ lane, view }) {
  const spans = lane.spans.filter(({ start, end }) => end >= view.from && start <= view.to);
  const open = spans.filter((span) => span.open);
  const said = [
    `${lane.group}: ${count(open.length)} open`,
    `${count(spans.length - open.length)} closed`,
    lane.t !== null && `T ${clock(lane.t)}`,
  ];
  return html`
    <div class="lane">
      <div class="lane-name" title=${lane.group}>${lane.group}</div>
      <div class="track" role="img" aria-label=${said.filter(Boolean).join(", ")}>
        ${spans.map((span) => html`
          <i key=${span.start} class=${span.open ? "window open" : "window"} style=${placed(span, view)} title=${titleOf(span)}></i>
        `)}
        ${lane.t !== null && html`<i class="now t" style=${{ left: percent(placeOf(lane.t, view)) }} title=${`T ${clock(lane.t)}`}></i>`}
        ${lane.t !== null && view.watermark > 0 && html`
          <i class="now watermark" style=${{ left: percent(placeOf(lane.t + view.watermark, view)) }} title="T and the WATERMARK"></i>
        `}
      </div>
    </div>
  `;
}

function LateLane({ view }) {
  const seen = view.late.filter((time) => time >= view.from && time <= view.to);
  return html`
    <div class="lane">
      <div class="lane-name late">Late rows</div>
      <div class="track" role="img" aria-label=${`${count(seen.length)} late rows in this time, ${count(view.late.length)} known`}>
        ${seen.map((time, at) => html`<i key=${at} class="row-late" style=${{ left: percent(placeOf(time, view)) }} title=${`late: ${clock(time)}`}></i>`)}
      </div>
    </div>
  `;
}

function Axis({ view }) {
  const times = [view.from, (view.from + view.to) / 2, view.to];
  return html`
    <div class="lane axis">
      <div class="lane-name">UTC</div>
      <div class="times">${times.map((time, at) => html`<span key=${at}>${clock(time)}</span>`)}</div>
    </div>
  `;
}

function Legend({ view, watermark }) {
  const hidden = view.groups - view.lanes.length;
  return html`
    <ul class="legend">
      <li><span class="sign"><i class="window open"></i></span> open: the stream holds it now</li>
      <li><span class="sign"><i class="window"></i></span> closed: seen to close, or among the newest results</li>
      <li><span class="sign"><i class="now t"></i></span> T of the group: windows that end before it are over</li>
      ${view.watermark > 0 && html`<li><span class="sign"><i class="now watermark"></i></span> T and the WATERMARK of ${watermark}: the group's newest row, unless FLUSH or an idle time-out moved T</li>`}
      ${view.late.length > 0 && html`<li><span class="sign"><i class="row-late"></i></span> a row that came too late</li>`}
    </ul>
    ${hidden > 0 && html`<p class="soft">${count(hidden)} more groups have older windows.</p>`}
  `;
}

function placed({ start, end }, view) {
  const left = placeOf(start, view);
  return { left: percent(left), width: percent(placeOf(end, view) - left) };
}

function percent(number) {
  return `${number.toFixed(3)}%`;
}

function titleOf({ start, end, open }) {
  return `${open ? "open" : "closed"}: ${clock(start)} to ${clock(end)}`;
}

function clock(time) {
  return new Date(time).toISOString().slice(0, 23).replace("T", " ").replace(/(:\d\d)\.000$/, "$1");
}
