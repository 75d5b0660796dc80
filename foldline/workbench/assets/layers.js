"use strict";
// Where the elements of the picture stand.

const MARGIN = 16;  // Between an open region and what is in it.

/**
 * Centres by identifier, layer by layer from the inputs down.
 *
 * What is in an open region is laid out alone, and is one box for what is around it: many small
 * layouts take far less time than one large one.
 */
function layered(boxes, edges) {
  const chains = new Map();
  const chain = (id) => {
    if (!chains.has(id)) {
      const { parent } = boxes.get(id);
      chains.set(id, parent ? [...chain(parent), id] : [id]);
    }
    return chains.get(id);
  };
  const inside = new Map([["", { children: [], edges: [] }]]);
  for (const { id, isOpen } of boxes.values()) if (isOpen) inside.set(id, { children: [], edges: [] });
  for (const { id, parent } of boxes.values()) inside.get(parent ?? "").children.push(id);
  for (const { source, target } of edges.values()) {
    const from = chain(source), to = chain(target);
    const fork = from.findIndex((id, depth) => id !== to[depth]);
    inside.get(from[fork - 1] ?? "").edges.push([from[fork], to[fork]]);
  }
  const places = new Map();
  const arrange = (region) => {
    const { children, edges: own } = inside.get(region);
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, edgesep: 8, marginx: MARGIN, marginy: MARGIN });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const id of children) {
      const { w, h, isOpen } = boxes.get(id);
      graph.setNode(id, isOpen ? arrange(id) : { width: w, height: h });
    }
    for (const [from, to] of own) graph.setEdge(from, to);
    dagre.layout(graph);
    for (const id of children) places.set(id, graph.node(id));
    return { width: graph.graph().width, height: graph.graph().height };
  };
  arrange("");
  const corner = (id) => {
    const { x, y, width, height } = places.get(id);
    const [left, top] = boxes.get(id).parent ? corner(boxes.get(id).parent) : [0, 0];
    return [left + x - width / 2, top + y - height / 2];
  };
  return (id) => {
    const [left, top] = corner(id), { width, height } = places.get(id);
    return { x: left + width / 2, y: top + height / 2 };
  };
}
