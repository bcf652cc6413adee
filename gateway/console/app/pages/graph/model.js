// What flows into what: nodes and edges out of lists of streams, views and external streams. Pure.
import { linkTo } from "../../core/router.js";
import { quotePath } from "../../core/query.js";

/** Records that wait before an edge is said to lag. */
const LAGS = 1000;
/** A stream that has waiting records and takes none of them for so long stands still. */
const STILL_MS = 5000;
/** States in which something is wrong, the worst first. */
const TROUBLE = ["failed", "error", "stalled", "failing", "stopped", "throttled", "retrying", "paused"];
const BAD = ["failed", "error", "stalled", "failing"];

/** `database`.`name`, as lists of the gateway write it, in parts; null: it names nothing that one may see. */
export function partsOf(path) {
  const found = /^`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`$/.exec(path);
  return found && found.slice(1).map((part) => part.replaceAll("``", "`"));
}

/**
 * Nodes `{id, kind, database, name, link, status, message, told, rate, lag}` and edges
 * `{from, to, rate, lag, tone}`.
 * @param streams of core/streams.js, with `stalled`; @param views, externals rows of their lists, views
 *   with `rate`
 */
export function graphOf({ streams, views, externals }) {
  const nodes = new Map();
  const edges = [];
  const add = (node) => nodes.get(node.id) ?? (nodes.set(node.id, node), node);
  const outside = new Map(externals.map((one) => [tableId(one.db_name, one.stream_name), one]));
  const end = (database, name) => add(endOf(database, name, outside.get(tableId(database, name))));
  const join = (from, to, figures) => edges.push({ id: `${from.id} ${to.id}`, from: from.id, to: to.id, ...figures });
  for (const one of streams) {
    const node = add(streamNode(one));
    join(end(one.source_db, one.source_table), node, flow(node, node.rate, node.lag));
    if (one.target_table) join(node, end(one.target_db, one.target_table), flow(node, one.rows_out_rate, 0));
    if (one.notifies) {
      const waiting = one.events_waiting ?? 0;
      join(node, add(notifyNode(one)), { rate: null, lag: waiting, tone: toneOf("", waiting) });
    }
  }
  for (const one of views) {
    const node = add(viewNode(one));
    const [source, target] = [one.source, one.target].map(partsOf);
    if (source) join(end(...source), node, flow(node, node.rate, node.lag));
    if (target) join(node, end(...target), flow(node, node.rate, 0));
  }
  for (const one of externals) end(one.db_name, one.stream_name);
  return { nodes: [...nodes.values()], edges };
}

/** The nodes at which something is wrong, by what is worst. Who was told to pause is as it should be. */
export function troubles(nodes) {
  const bad = nodes.filter(({ status, message }) => TROUBLE.includes(status) && (status !== "paused" || message));
  return bad.sort((a, b) => TROUBLE.indexOf(a.status) - TROUBLE.indexOf(b.status));
}

/** A name for how nodes hang together: drawn anew when it changes. */
export function shapeOf({ nodes, edges }) {
  return JSON.stringify([nodes.map(({ id }) => id), edges.map(({ id }) => id)]);
}

/** Nodes and edges around one database: what lies in it, and their neighbours. */
export function around({ nodes, edges }, database) {
  const inside = new Set(nodes.filter((node) => node.database === database).map(({ id }) => id));
  const kept = edges.filter(({ from, to }) => inside.has(from) || inside.has(to));
  const ends = new Set([...inside, ...kept.flatMap(({ from, to }) => [from, to])]);
  return { nodes: nodes.filter(({ id }) => ends.has(id)), edges: kept };
}

/** Width of a line for *rate* rows a second: one for none, one more with each factor of ten or so. */
export function widthOf(rate) {
  return 1.25 + Math.min(Math.log10(1 + Math.max(rate ?? 0, 0)) * 1.5, 8);
}

export function toneOf(status, lag) {
  if (BAD.includes(status)) return "bad";
  if (["paused", "stopped"].includes(status)) return "still";
  return ["throttled", "retrying"].includes(status) || lag >= LAGS ? "busy" : "calm";
}

/**
 * How fast counters grow, and which of them stand still while records wait.
 * A topic has rows of other tables, too: only where the lag does not fall either, nothing moves.
 */
export class Movement {
  #seen = new Map();

  /** Take *total* of what *id* has done at *now* (ms) with *lag* records waiting: `{rate, stalled}`. */
  note(id, total, lag, now) {
    const before = this.#seen.get(id);
    const moves = !before || total !== before.total || lag === 0 || lag < before.lag;
    this.#seen.set(id, { total, lag, at: now, since: moves ? now : before.since });
    const grown = before ? total - before.total : -1;
    return {
      rate: grown >= 0 && now > before.at ? (grown * 1000) / (now - before.at) : null,
      stalled: !moves && now - before.since >= STILL_MS,
    };
  }
}

function tableId(database, name) {
  return `table ${quotePath(database, name).toLowerCase()}`;
}

function endOf(database, name, outside) {
  const about = { id: tableId(database, name), database, name, lag: outside?.lag_records ?? null, rate: null };
  if (!outside) return { ...about, kind: "table", status: "", message: "", link: linkTo("tables", database, name) };
  // rows of a topic of another Kafka are kept here, those of other external streams are not
  const link = outside.type === "kafka" ? linkTo("tables", database, name) : asked("SHOW CREATE EXTERNAL STREAM", database, name);
  const told = [outside.hosts, outside.remote_stream].filter(Boolean).join(" ");
  return { ...about, kind: "external stream", status: outside.status ?? "", message: outside.last_error ?? "", told, link };
}

function streamNode(one) {
  return {
    id: `stream ${one.stream_id}`,
    kind: "stream",
    database: one.database,
    name: one.name,
    status: one.stalled ? "stalled" : one.status,
    message: one.stalled ? "records wait, and none is worked on" : one.message || one.last_error || "",
    rate: one.rows_in_rate,
    lag: one.lag_records,
    link: linkTo("streams", one.database, one.name),
  };
}

function notifyNode(one) {
  const waiting = one.events_waiting ?? 0;
  return {
    id: `notify ${one.stream_id}`,
    kind: "NOTIFY",
    database: one.database,
    name: `targets of ${one.name}`,
    status: waiting > 0 && one.message ? "failing" : "",
    message: waiting > 0 ? one.message : "",
    rate: null,
    lag: waiting,
    link: linkTo("streams", one.database, one.name),
  };
}

function viewNode(one) {
  return {
    id: `view ${quotePath(one.db_name, one.view_name).toLowerCase()}`,
    kind: "view",
    database: one.db_name,
    name: one.view_name,
    status: one.stalled ? "stalled" : one.status,
    message: one.last_error ?? "",
    rate: one.rate,
    lag: one.lag_records,
    link: asked("SHOW CREATE MATERIALIZED VIEW", one.db_name, one.view_name),
  };
}

function asked(words, database, name) {
  return linkTo("sql", `${words} ${quotePath(database, name)}`, database);
}

function flow(node, rate, lag) {
  return { rate, lag, tone: toneOf(node.status, lag ?? 0) };
}
