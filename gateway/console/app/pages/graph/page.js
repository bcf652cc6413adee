// Graph: tables, streams, views, external streams and targets, as rows flow through them.
import { html, useEffect, useRef, useSignal } from "../../../vendor/preact.js";
import { count, rate } from "../../core/format.js";
import { usePoll } from "../../core/poll.js";
import { objects } from "../../core/query.js";
import { linkTo } from "../../core/router.js";
import { streams } from "../../core/streams.js";
import { Fault } from "../../parts/fault.js";
import { List } from "../../parts/list.js";
import { State } from "../../parts/state.js";
import { Drawing } from "./drawing.js";
import { Movement, around, graphOf, troubles } from "./model.js";

const SECONDS = 1;
/** More nodes than this are a list only, until a database is chosen. */
const MOST_DRAWN = 400;
const NARROW = "(max-width: 640px)";

export function Graph() {
  const movement = useRef(new Movement());
  const database = useSignal("");
  const { answer, fault } = usePoll(async (signal) => graphOf(await look(movement.current, signal)), SECONDS);
  const whole = answer.value;
  const chosen = whole && database.value ? around(whole, database.value) : whole;
  return html`
    <h1>Graph</h1>
    <${Fault} fault=${fault.value} />
    ${!whole && !fault.value && html`<p>Loading …</p>`}
    ${whole && whole.nodes.length === 0 && html`<${Nothing} />`}
    ${whole && whole.nodes.length > 0 && html`
      <${Troubles} nodes=${troubles(whole.nodes)} />
      <${Choice} nodes=${whole.nodes} database=${database} />
      <${Picture} graph=${chosen} />
      <p class="soft">A line is the wider the more rows a second go along it. It is amber where 1,000 records or more wait, red where nothing moves. Tables that no stream or view reads or writes are not here.</p>
      <h2>As a list</h2>
      <${Flows} graph=${chosen} />
    `}
  `;
}

async function look(movement, signal) {
  const [found, views, externals] = await Promise.all([
    streams(signal),
    objects("SELECT * FROM information_schema.ins_views", { signal }),
    objects("SELECT * FROM information_schema.ins_external_streams", { signal }),
  ]);
  const now = performance.now();
  const moved = (id, total, lag) => movement.note(id, total, lag ?? 0, now);
  return {
    streams: found.map((one) => {
      // what does not run has nothing to catch up on
      const lag = one.status === "ready" ? one.lag_records : 0;
      return { ...one, stalled: moved(one.stream_id, one.rows_in, lag).stalled };
    }),
    views: views.map((one) => ({ ...one, rate: moved(`${one.db_name} ${one.view_name}`, one.rows_sent, one.lag_records).rate })),
    externals,
  };
}

function Nothing() {
  return html`
    <p>Nothing flows yet: there is no stream, no view and no external stream that you may see.
      <a href=${linkTo("sql", "CREATE STREAM ")}>Write a stream</a>.</p>
  `;
}

function Troubles({ nodes }) {
  if (nodes.length === 0) return html`<p><${State} word="ok" /> Nothing stands still.</p>`;
  return html`
    <section class="note bad" aria-label="What stands still">
      <ul class="plain">
        ${nodes.map((node) => html`
          <li key=${node.id}>
            <${State} word=${node.status} /> ${node.kind} <a href=${node.link}>${node.database}.${node.name}</a>${node.message && `: ${node.message}`}
          </li>
        `)}
      </ul>
    </section>
  `;
}

function Choice({ nodes, database }) {
  const names = [...new Set(nodes.map((node) => node.database))].sort();
  if (names.length < 2) return null;
  return html`
    <label>Database
      <select value=${database.value} onChange=${(event) => (database.value = event.target.value)}>
        <option value="">all</option>
        ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </label>
  `;
}

function Picture({ graph }) {
  const narrow = useNarrow();
  if (graph.nodes.length > MOST_DRAWN) return html`<p>${count(graph.nodes.length)} nodes are too many to draw. Choose a database.</p>`;
  return html`<${Drawing} graph=${graph} direction=${narrow.value ? "TB" : "LR"} />`;
}

function useNarrow() {
  const narrow = useSignal(matchMedia(NARROW).matches);
  useEffect(() => {
    const asked = matchMedia(NARROW);
    const change = () => (narrow.value = asked.matches);
    asked.addEventListener("change", change);
    return () => asked.removeEventListener("change", change);
  }, []);
  return narrow;
}

/** The same without a picture: each node with what flows into it, and out of it. */
function Flows({ graph }) {
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const links = (found) => found.map((node, at) => html`${at > 0 && ", "}<a key=${node.id} href=${node.link}>${node.database}.${node.name}</a>`);
  const into = (node) => graph.edges.filter(({ to }) => to === node.id).map(({ from }) => byId.get(from));
  const out = (node) => graph.edges.filter(({ from }) => from === node.id).map(({ to }) => byId.get(to));
  const columns = [
    { title: "Name", show: (node) => html`<a href=${node.link}>${node.database}.${node.name}</a>` },
    { title: "Kind", show: (node) => node.kind },
    { title: "Status", show: (node) => node.status && html`<${State} word=${node.status} />` },
    { title: "Fed by", show: (node) => links(into(node)) },
    { title: "Feeds", show: (node) => links(out(node)) },
    { title: "Rows", number: true, show: (node) => rate(node.rate) },
    { title: "Lag", number: true, show: (node) => count(node.lag) },
  ];
  return html`<${List} label="Flows" rows=${graph.nodes} columns=${columns} keyOf=${(node) => node.id} empty="Nothing of it." />`;
}
