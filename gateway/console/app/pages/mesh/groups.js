// Groups of nodes that keep stream tables: who leads, who is there, and what they keep.
import { html } from "../../../vendor/preact.js";
import { List } from "../../parts/list.js";
import { State } from "../../parts/state.js";

/** What /v1/groups says, a group an object: `state` is whether it takes rows. */
export function groupsOf({ groups, alive, tables }) {
  return groups.map(({ id, alias, members, learners, leader }) => {
    const there = members.filter((node) => alive.includes(node)).length;
    const without = there > members.length / 2 ? "waiting" : "offline";
    const kept = Object.keys(tables).filter((table) => tables[table] === id);
    const nodes = [...members, ...learners].map((name) => ({ name, there: alive.includes(name), learns: learners.includes(name) }));
    return { id, alias, leader: leader ?? null, state: leader ? "ready" : without, nodes, tables: kept };
  });
}

const SAYS = { waiting: "a leader is being elected", offline: "too few nodes are there: no row is taken" };

export function Groups({ groups }) {
  const columns = [
    { title: "Group", show: ({ id, alias }) => (alias ? `${id} (${alias})` : id) },
    { title: "State", show: ({ state }) => html`<${State} word=${state} /> ${SAYS[state]}` },
    { title: "Leader", show: ({ leader }) => leader ?? "nobody" },
    { title: "Nodes", show: ({ nodes }) => nodes.map((node) => html`<${Node} key=${node.name} ...${node} />`) },
    { title: "Tables", show: ({ tables }) => tables.map((table) => html`<div key=${table}>${table}</div>`) },
  ];
  return html`<${List} label="Groups of stream tables" rows=${groups} columns=${columns} keyOf=${({ id }) => id} empty="There is none." />`;
}

function Node({ name, there, learns }) {
  return html`<div>${there ? name : html`<${State} word="offline" /> ${name}`}${learns && " (learner)"}</div>`;
}
