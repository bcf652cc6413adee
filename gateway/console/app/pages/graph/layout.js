// Where nodes and edges are drawn: dagre's layers, for a wide screen from left to right, for a narrow
// one from top to bottom. Pure.
import { Graph, layout } from "../../../vendor/dagre.js";

export const NODE = { width: 208, height: 52 };
const MARGIN = 12;
const ARROW = 9;

/** `{width, height, places: id → {x, y}, lines: id → points}`; x and y are of a node's middle. */
export function placesOf({ nodes, edges }, direction) {
  const graph = new Graph();
  graph.setGraph({ rankdir: direction, nodesep: 18, ranksep: 56, edgesep: 10, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) graph.setNode(id, { ...NODE });
  for (const { from, to } of edges) graph.setEdge(from, to, {});
  layout(graph);
  const { width, height } = graph.graph();
  const places = new Map(nodes.map(({ id }) => [id, graph.node(id)]));
  const lines = new Map(edges.map(({ id, from, to }) => [id, graph.edge(from, to).points]));
  return { width: Math.ceil(width ?? 0), height: Math.ceil(height ?? 0), places, lines };
}

/** A line through the middles between *points*, ending short of the last one, where the head is. */
export function curveOf(points) {
  const through = [...points.slice(0, -1), neckOf(points)];
  const [first, ...rest] = through.map(({ x, y }) => ({ x: round(x), y: round(y) }));
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const next = rest[at + 1];
    if (next) path += ` Q${point.x} ${point.y} ${round((point.x + next.x) / 2)} ${round((point.y + next.y) / 2)}`;
    else path += ` L${point.x} ${point.y}`;
  });
  return path;
}

/** The corners of the head at the end of *points*, for a line of *width*. */
export function headOf(points, width) {
  const tip = points.at(-1);
  const neck = neckOf(points);
  const half = (ARROW + width) / 2 / ARROW;
  const across = { x: -(tip.y - neck.y) * half, y: (tip.x - neck.x) * half };
  const corners = [tip, { x: neck.x + across.x, y: neck.y + across.y }, { x: neck.x - across.x, y: neck.y - across.y }];
  return corners.map(({ x, y }) => `${round(x)},${round(y)}`).join(" ");
}

function neckOf(points) {
  const [before, tip] = points.slice(-2);
  const length = Math.hypot(tip.x - before.x, tip.y - before.y) || 1;
  const part = Math.min(ARROW / length, 1);
  return { x: tip.x - (tip.x - before.x) * part, y: tip.y - (tip.y - before.y) * part };
}

function round(number) {
  return Math.round(number * 10) / 10;
}
