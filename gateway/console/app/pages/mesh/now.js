// How the mesh is now: the services with what they wait for, the nodes, groups, snodes, and what the doctor finds.
import { html } from "../../../vendor/preact.js";
import { bytes, count, duration } from "../../core/format.js";
import { ask } from "../../core/http.js";
import { usePoll } from "../../core/poll.js";
import { objects } from "../../core/query.js";
import { Fault } from "../../parts/fault.js";
import { Findings } from "../../parts/findings.js";
import { List } from "../../parts/list.js";
import { State } from "../../parts/state.js";
import { Groups, groupsOf } from "./groups.js";

export function Now() {
  const { answer, fault } = usePoll(async (signal) => {
    const [health, nodes, snodes, tables] = await Promise.all([
      ask("/v1/health", undefined, { signal }),
      objects("SELECT * FROM information_schema.ins_dnodes", { signal }),
      objects("SELECT * FROM information_schema.ins_snodes", { signal }),
      ask("/v1/groups", undefined, { signal }),
    ]);
    return { health, nodes, snodes, groups: groupsOf(tables) };
  }, 2);
  const found = answer.value;
  return html`
    <${Fault} fault=${fault.value} />
    ${!found && !fault.value && html`<p>Loading …</p>`}
    ${found && html`
      <p><${State} word=${found.health.ready ? "ready" : "waiting"} /> ${found.health.ready ? "Every service is ready." : "Not every service is ready."}</p>
      <h2>Services</h2>
      <${Services} services=${found.health.services} />
      <h2>What the doctor finds</h2>
      <${Findings} findings=${found.health.findings} />
      <h2>Nodes</h2>
      <${Nodes} nodes=${found.nodes} />
      ${found.groups.length > 0 && html`<h2>Groups of stream tables</h2><${Groups} groups=${found.groups} />`}
      ${found.snodes.length > 0 && html`<h2>Snodes</h2><${Snodes} snodes=${found.snodes} />`}
    `}
  `;
}

function Services({ services }) {
  const columns = [
    { title: "Service", show: (one) => one.name },
    { title: "State", show: (one) => html`<${State} word=${one.state} />` },
    { title: "Waits for", show: (one) => html`<${Waiting} waiting=${one.waiting} />` },
    { title: "Node", show: (one) => one.host ?? one.node },
    { title: "Version", show: (one) => one.version },
    { title: "Runs for", number: true, show: (one) => duration(one.uptime) },
    { title: "Memory", number: true, show: (one) => bytes(one.memory) },
    { title: "Restarts", number: true, show: (one) => count(one.restarts) },
  ];
  return html`<${List} label="Services" rows=${services} columns=${columns} empty="No service has told of itself."
    keyOf=${(one) => `${one.name} ${one.node} ${one.started}`} />`;
}

function Waiting({ waiting }) {
  const parts = Object.entries(waiting ?? {});
  if (parts.length === 0) return "nothing";
  return parts.map(([what, why]) => html`<div key=${what}>${what}${why && `: ${why}`}</div>`);
}

function Nodes({ nodes }) {
  const columns = [
    { title: "Node", show: (one) => one.id },
    { title: "Host", show: (one) => one.endpoint },
    { title: "Status", show: (one) => html`<${State} word=${one.status} />` },
    { title: "Since", show: (one) => one.create_time },
    { title: "Services", show: (one) => one.services },
    { title: "Note", show: (one) => one.note },
  ];
  return html`<${List} label="Nodes" rows=${nodes} columns=${columns} keyOf=${(one) => one.id} empty="No node has told of itself." />`;
}

function Snodes({ snodes }) {
  const columns = [
    { title: "Snode", show: (one) => one.id },
    { title: "Status", show: (one) => html`<${State} word=${one.status} />` },
    { title: "Backups in", show: (one) => one.backup_dir },
    { title: "Backups", number: true, show: (one) => count(one.backups) },
    { title: "Newest", show: (one) => one.newest },
    { title: "Note", show: (one) => one.note },
  ];
  return html`<${List} label="Snodes" rows=${snodes} columns=${columns} keyOf=${(one) => one.id} empty="There is none." />`;
}
