// The newest lines of the audit trail that this gateway writes; for who has ADMIN.
import { html, useSignal } from "../../../vendor/preact.js";
import { ask } from "../../core/http.js";
import { usePoll } from "../../core/poll.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { TraceLink } from "../../parts/trace_link.js";

const SECONDS = 5;
const MOST = 200;

export function AuditTrail() {
  const { answer, fault } = usePoll((signal) => ask(`/v1/audit?limit=${MOST}`, undefined, { signal }), SECONDS);
  const word = useSignal("");
  const found = answer.value;
  return html`
    <h2>Audit trail</h2>
    <${Fault} fault=${fault.value} />
    ${found && !found.kept && html`<p>This gateway keeps no file of it: PENSTOCK_AUDIT_LOG is empty. Its log has the lines.</p>`}
    ${found?.kept && html`
      <p class="soft">The newest ${MOST} lines of this gateway's file.</p>
      <label>Only lines with <input type="search" value=${word.value} spellcheck=${false} onInput=${(event) => (word.value = event.target.value)} /></label>
      <${List} label="Audit trail" rows=${found.entries.map(describe).filter((one) => has(one, word.value))} columns=${COLUMNS}
        keyOf=${(one) => `${one.at} ${one.event} ${one.user} ${one.more}`} empty="None of these." />
    `}
  `;
}

const COLUMNS = [
  { title: "Time", show: (one) => one.time },
  { title: "Event", show: (one) => one.event },
  { title: "User", show: (one) => one.user || "–" },
  { title: "From", show: (one) => one.remote || "–" },
  { title: "More", show: ({ more, trace }) => html`${more}${trace && html` <small>trace <${TraceLink} trace=${trace} /></small>`}` },
];

function describe({ time, event, user, remote, details }) {
  const { sql, trace = "", ...others } = details;
  const words = Object.entries(others).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  return { at: time, time: time.replace("T", " ").slice(0, 19), event, user, remote, trace, more: [sql, words.join(", ")].filter(Boolean).join(" · ") };
}

function has(one, word) {
  const text = Object.values(one).join(" ").toLowerCase();
  return text.includes(word.trim().toLowerCase());
}
