// How far a stream has filled its history; gone when that is done.
import { html, useRef } from "../../../vendor/preact.js";
import { duration } from "../../core/format.js";
import { Pace } from "./pace.js";

const clock = () => performance.now() / 1000;

export function HistoryProgress({ stream: { history_percent: percent } }) {
  const pace = useRef(new Pace());
  if (percent === null) return null;
  pace.current.add(percent, clock());
  const left = pace.current.left(clock());
  return html`
    <h2>History</h2>
    <p class="row">
      <progress class="gauge" max="100" value=${percent} aria-label="History that is filled"></progress>
      <span>${percent} %${left !== null && `, about ${duration(left)} left at the pace of now`}</span>
    </p>
    <p class="soft">This is the slowest of its partitions; the tasks below have each. New rows wait until it is done.</p>
  `;
}
