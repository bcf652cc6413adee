// The newest entries of all services' logs, followed until somebody pauses them.
import { html, useSignal } from "../../../vendor/preact.js";
import { useCommands } from "../../core/commands.js";
import { count } from "../../core/format.js";
import { ask } from "../../core/http.js";
import { announce } from "../../core/live.js";
import { usePoll } from "../../core/poll.js";
import { Fault } from "../../parts/fault.js";
import { LogEntry, keyOf } from "./log_entry.js";
import { LogFilters, useLogFilters } from "./log_filters.js";

const SECONDS = 2;
const MOST = 200;

/** @param trace only what is about this trace id; empty: everything */
export function Log({ trace }) {
  const filters = useLogFilters();
  const paused = useSignal(false);
  const found = useSignal(null);
  // what is narrowed anew is asked for anew
  const narrow = (changed) => {
    filters.value = { ...filters.value, ...changed };
    paused.value = false;
  };
  function pause() {
    paused.value = !paused.value;
    announce(paused.value ? "Paused" : "Resumed");
  }
  useCommands([{ name: "Pause or resume", run: pause }]);
  return html`
    <p class="soft">What Penstock's services have logged, the newest first, in UTC. Lines of Kafka, Redis and Spark itself, and what is
      too old to be here, are in the files: <code>penstock logs</code> on the machine, or what keeps the logs of containers.</p>
    <${LogFilters} filters=${filters.value} narrow=${narrow} trace=${trace} logs=${found.value?.logs ?? []} />
    <p><button onClick=${pause}>${paused.value ? "Resume" : "Pause"}</button></p>
    ${!paused.value && html`<${Following} address=${addressOf({ ...filters.value, trace })} found=${found} />`}
    ${found.value && html`<${Entries} ...${found.value} />`}
  `;
}

function addressOf(filters) {
  const given = Object.entries(filters).filter(([, value]) => value);
  return `/v1/logs?${new URLSearchParams([...given, ["limit", MOST]])}`;
}

/** Asks while it is on the page, into *found*. */
function Following({ address, found }) {
  const { fault } = usePoll(
    async (signal) => {
      found.value = await ask(address, undefined, { signal });
    },
    SECONDS,
    [address],
  );
  return html`
    <${Fault} fault=${fault.value} />
    ${!found.value && !fault.value && html`<p>Loading …</p>`}
  `;
}

function Entries({ entries, left_out: leftOut }) {
  return html`
    ${leftOut > 0 && html`<p class="note">${count(leftOut)} entries were left out: they were logged faster than services send them.</p>`}
    ${entries.length === 0 ? html`<p>There is nothing of this.</p>` : html`
      <ul class="log" aria-label="Entries">
        ${entries.map((entry) => html`<${LogEntry} key=${keyOf(entry)} entry=${entry} />`)}
      </ul>
    `}
    ${entries.length === MOST && html`<p class="soft">The newest ${MOST} are shown. Narrow the log to see others.</p>`}
  `;
}
