// Layers of a graph, laid out.
export { Graph, layout } from "@dagrejs/dagre";
