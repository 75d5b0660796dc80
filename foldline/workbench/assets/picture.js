"use strict";
// The graph as a picture: regions are boxes that open, so that a person and a browser can keep up.

const MOST_VISIBLE = 400;  // Above, opening a region closes those that do not hold it.
const MOST_PORTS = 20;     // Of more inputs or outputs, one box tells the number.
const LEAST_ZOOM = 0.8;   // Below, labels cannot be read: a tall picture begins at its top instead.
const FEW = 12;            // Of fewer elements, the largest region is opened to begin with.
const LINE = 15;

class Picture {
  constructor(container, model, onSelect) {
    this.model = model;
    this.open = new Set();
    this.extra = new Set();
    this.withConstants = false;
    this.onSelect = onSelect;
    this.measure = document.createElement("canvas").getContext("2d");
    this.cy = cytoscape({
      container, minZoom: 0.04, maxZoom: 3, autoungrabify: true, boxSelectionEnabled: false,
      layout: { name: "preset" }, style: pictureStyle(),
    });
    this.cy.on("tap", "node", ({ target }) => this.tapped(target));
    this.cy.on("tap", ({ target }) => { if (target === this.cy) this.onSelect(null); });
    matchMedia("(prefers-color-scheme: dark)")
      .addEventListener("change", () => this.cy.style(pictureStyle()));
  }

  tapped(target) {
    const region = target.data("region");
    if (region === undefined) this.onSelect(target.data("node") ?? null);
    else if (this.open.has(region)) this.onSelect({ region });
    else this.expand(region);
  }

  show(view, keepPlace) {
    const isFirst = !this.view;
    this.view = view;
    if (isFirst) this.openSome();
    this.limit([]);
    this.draw();
    if (!keepPlace) this.fit();
  }

  openSome() {
    for (;;) {
      const visible = [...this.visible().values()];
      const closed = visible.filter(({ region }) => region !== undefined);
      if (visible.length >= FEW || !closed.length) return;
      this.open.add(closed.reduce((a, b) => (a.nodes.length >= b.nodes.length ? a : b)).region);
    }
  }

  expand(region) {
    const anchor = this.placeOf(`r${region}`);
    this.open.add(region);
    this.limit(this.model.regionPaths[region]);
    this.draw();
    this.hold(`r${region}`, anchor);
    this.onSelect({ region });
  }

  collapse(region) {
    const anchor = this.placeOf(`r${region}`);
    for (const open of [...this.open]) {
      if (this.model.regionPaths[open].includes(region)) this.open.delete(open);
    }
    this.draw();
    this.hold(`r${region}`, anchor);
    this.onSelect(null);
  }

  collapseAll() {
    this.open.clear();
    this.extra.clear();
    this.draw();
    this.fit();
    this.onSelect(null);
  }

  /** Open what holds a node, centre it and select it. */
  reveal(node) {
    if (this.view.isQuiet(node)) this.extra.add(node.row);
    const path = this.model.path(node);
    for (const region of path) this.open.add(region);
    this.limit(path);
    this.draw();
    const target = this.cy.getElementById(`n${node.row}`);
    this.cy.zoom(Math.max(this.cy.zoom(), 0.9));
    this.cy.center(target);
    target.select();
    this.onSelect(node);
  }

  /** Close regions until few enough elements are left, but not those of a path. */
  limit(path) {
    const kept = new Set(path);
    for (const region of [...this.open]) {
      if (this.visible().size <= MOST_VISIBLE) return;
      if (!kept.has(region)) this.open.delete(region);
    }
  }

  placeOf(id) {
    const found = this.cy.getElementById(id);
    return found.length ? found.renderedPosition() : null;
  }

  /** Keep an element where it was on the screen. */
  hold(id, anchor) {
    const now = this.placeOf(id);
    if (now && anchor) this.cy.panBy({ x: anchor.x - now.x, y: anchor.y - now.y });
  }

  fit() {
    this.cy.fit(undefined, 24);
    const zoom = Math.min(this.cy.zoom(), 1.1);
    this.cy.zoom(Math.max(zoom, LEAST_ZOOM));
    this.cy.center();
    const top = this.cy.elements().renderedBoundingBox();
    if (top.h > this.cy.height()) this.cy.panBy({ x: 0, y: 24 - top.y1 });
  }

  shown(node) {
    return this.withConstants || this.extra.has(node.row) || !this.view.isQuiet(node);
  }

  /** Elements by identifier: the nodes and closed regions that are to be seen. */
  visible() {
    const held = new Map();
    const nodes = this.view.nodes.filter((node) => this.shown(node));
    const sizes = new Map();
    for (const node of nodes) {
      for (const region of this.model.path(node)) sizes.set(region, (sizes.get(region) ?? 0) + 1);
    }
    this.idOf = new Map();
    nodes.sort((a, b) => this.model.place[a.entity] - this.model.place[b.entity]);
    for (const node of nodes) {
      // A region with one node left in it is not worth a box.
      const path = this.model.path(node).filter((region) => sizes.get(region) > 1);
      const closed = path.findIndex((region) => !this.open.has(region));
      const id = closed < 0 ? `n${node.row}` : `r${path[closed]}`;
      const parents = closed < 0 ? path : path.slice(0, closed);
      if (!held.has(id)) held.set(id, { id, nodes: [], parents, region: path[closed] });
      held.get(id).nodes.push(node);
      this.idOf.set(node, id);
    }
    return held;
  }

  draw() {
    const begin = performance.now();
    const visible = this.visible();
    const boxes = new Map();
    for (const { id, nodes, parents, region } of visible.values()) {
      const data = region === undefined ? this.nodeData(nodes[0]) : this.regionData(region, nodes);
      boxes.set(id, { ...data, id, parent: parents.length ? `r${parents.at(-1)}` : undefined });
    }
    for (const { parents } of visible.values()) {
      parents.forEach((region, depth) => boxes.set(`r${region}`, {
        id: `r${region}`, region, isOpen: true, label: this.model.regionLabel(region) || " ",
        parent: depth ? `r${parents[depth - 1]}` : undefined,
      }));
    }
    const edges = this.edges(boxes);
    const places = layered(boxes, edges);
    this.cy.batch(() => {
      this.cy.elements().remove();
      this.cy.add(elementsOf(boxes, edges, places));
    });
    this.redraw = { elements: boxes.size, edges: edges.size, ms: performance.now() - begin };
  }

  nodeData(node) {
    const status = this.view.status(node);
    const lines = [node.op, ...(node.label ? [shortened(node.label)] : [])];
    return {
      node, label: lines.join("\n"), kind: node.isConstant ? "constant" : "operator", status,
      ...this.size(lines),
    };
  }

  regionData(region, nodes) {
    const operators = new Map();
    for (const { op, isConstant } of nodes) {
      if (!isConstant) operators.set(op, (operators.get(op) ?? 0) + 1);
    }
    const common = [...operators].sort((a, b) => b[1] - a[1]).slice(0, 2)
      .map(([op, count]) => (count > 1 ? `${op} ×${count}` : op)).join("  ");
    const scope = this.model.regionLabel(region);
    const lines = [scope ? shortened(scope) : common, `${nodes.length} nodes`];
    if (scope) lines.splice(1, 0, common);
    const counts = STATUSES.map((status) =>
      nodes.filter((node) => this.view.status(node) === status).length);
    const size = this.size(lines);
    return { region, label: lines.join("\n"), kind: "region", ...size, w: size.w + 16, ...bar(counts, nodes.length) };
  }

  size(lines) {
    this.measure.font = "12px system-ui, sans-serif";
    const widths = lines.map((line) => this.measure.measureText(line).width);
    return { w: Math.max(56, ...widths) + 20, h: lines.length * LINE + 12 };
  }

  /** Edges between what is to be seen, how many of each; adds boxes for inputs and outputs. */
  edges(boxes) {
    const ports = { input: this.model.inputs.length, output: this.model.outputs.length };
    const idOf = (end) => {
      if (end.row !== undefined) return this.idOf.get(end);
      const kind = "input" in end ? "input" : "output";
      const isMany = ports[kind] > MOST_PORTS;
      const id = isMany ? kind : `${kind} ${end[kind]}`;
      if (!boxes.has(id)) {
        const lines = isMany ? [`${ports[kind]} ${kind}s`] : [shortened(end[kind]), cut(end.type)].filter(Boolean);
        boxes.set(id, { id, kind, label: lines.join("\n"), ...this.size(lines) });
      }
      return id;
    };
    const edges = new Map();
    for (const [from, to] of this.view.edges) {
      if ((from.row !== undefined && !this.idOf.has(from)) || (to.row !== undefined && !this.idOf.has(to))) continue;
      const source = idOf(from), target = idOf(to);
      if (source === target) continue;
      const key = `${source}>${target}`;
      if (!edges.has(key)) edges.set(key, { id: key, source, target, count: 0 });
      edges.get(key).count++;
    }
    return edges;
  }
}

function elementsOf(boxes, edges, places) {
  const nodes = [...boxes.values()].map((data) => (
    { group: "nodes", data, classes: data.isOpen ? "open" : data.kind, position: places(data.id) }));
  // Parents come before what is in them.
  const depth = (data) => (data.parent ? 1 + depth(boxes.get(data.parent)) : 0);
  nodes.sort((a, b) => depth(a.data) - depth(b.data));
  return [...nodes, ...[...edges.values()].map((data) => ({ group: "edges", data }))];
}
