// The graph as a picture: each node leads to its page. It is a group, not an image, since what stands
// in an image cannot be reached.
import { html, useMemo } from "../../../vendor/preact.js";
import { count, rate } from "../../core/format.js";
import { looksOf } from "../../parts/state.js";
import { NODE, curveOf, headOf, placesOf } from "./layout.js";
import { shapeOf, widthOf } from "./model.js";

const LETTERS = 22;

export function Drawing({ graph, direction }) {
  const drawn = useMemo(() => placesOf(graph, direction), [shapeOf(graph), direction]);
  return html`
    <div class="graph" role="region" tabindex="0" aria-label="Graph, scrolls">
      <svg role="group" aria-label="What flows into what" width=${drawn.width} height=${drawn.height}
        viewBox=${`0 0 ${drawn.width} ${drawn.height}`}>
        <g aria-hidden="true">
          ${graph.edges.map((edge) => html`<${Edge} key=${edge.id} edge=${edge} points=${drawn.lines.get(edge.id)} />`)}
        </g>
        ${graph.nodes.map((node) => html`<${Node} key=${node.id} node=${node} place=${drawn.places.get(node.id)} />`)}
      </svg>
    </div>
  `;
}

function Edge({ edge, points }) {
  const width = widthOf(edge.rate);
  return html`
    <g class=${`flow ${edge.tone}`} data-edge=${edge.id}>
      <path d=${curveOf(points)} stroke-width=${width} />
      <polygon points=${headOf(points, width)} />
    </g>
  `;
}

function Node({ node, place }) {
  const [icon, tone] = node.status ? looksOf(node.status) : ["", "still"];
  const kind = node.kind !== "stream" && node.kind;
  const words = [kind, node.status && `${icon} ${node.status}`, node.rate > 0 && rate(node.rate)].filter(Boolean);
  const [name, about] = [short(node.name), words.join(" · ")];
  return html`
    <a class=${`node ${node.kind.replaceAll(" ", "-")} ${tone}`} href=${node.link} aria-label=${`${name} ${about}, ${moreOf(node)}`}
      transform=${`translate(${place.x - NODE.width / 2} ${place.y - NODE.height / 2})`}>
      <rect width=${NODE.width} height=${NODE.height} rx=${node.kind === "table" ? 3 : NODE.height / 3} />
      <text class="name" x="14" y="22">${name}</text>${" "}
      <text class="about" x="14" y="40">${about}</text>
    </a>
  `;
}

/** What there is to say of a node besides what is seen of it: its name begins with that. */
function moreOf(node) {
  const lag = node.lag > 0 && `lag ${count(node.lag)}`;
  return [`${node.kind} ${node.database}.${node.name}`, lag, node.told, node.message].filter(Boolean).join(", ");
}

function short(name) {
  return name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name;
}
