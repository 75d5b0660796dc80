"use strict";
// The document as objects: stages, the graph before or after each, and its regions.

const STATUSES = ["new", "fused", "folded", "changed", "removed"];
const NO_REGION = -1;

class Model {
  constructor(document) {
    Object.assign(this, document);
    const text = (number) => this.strings[number];
    const texts = (numbers) => numbers.map(text);
    this.nodes = document.nodes.map(
      ([entity, graph, op, name, inputs, outputs, types, attributes, value, origins, bytes], row) => ({
        row, entity, bytes,
        graph: text(graph), op: text(op), name: text(name), value: text(value),
        inputs: texts(inputs), outputs: texts(outputs), types: texts(types),
        attributes: texts(attributes), origins: texts(origins),
      }));
    for (const node of this.nodes) {
      node.isConstant = node.value !== "";
      node.label = (!node.isConstant && node.name) || node.outputs.find((name) => name) || "";
    }
    this.inputs = document.inputs.map(texts);
    this.outputs = document.outputs.map(texts);
    this.remarks = document.remarks.map((row) => {
      const [kind, stage, pass, node, op, message] = texts(row);
      return { kind, stage, pass, node, op, message };
    });
    this.remarksOf = Map.groupBy
      ? Map.groupBy(this.remarks, (remark) => remark.node) : grouped(this.remarks);
    this.regionPaths = [];
    for (const [parent] of document.regions) {
      const above = parent === NO_REGION ? [] : this.regionPaths[parent];
      this.regionPaths.push([...above, this.regionPaths.length]);
    }
    this.place = [];
    document.order.forEach((entity, place) => { this.place[entity] = place; });
    this.views = new Map();
  }

  /** The regions that hold a node, outermost first. */
  path(node) {
    const region = this.region_of[node.entity];
    return region === NO_REGION ? [] : this.regionPaths[region];
  }

  regionLabel(region) { return this.strings[this.regions[region][1]]; }

  /** The graph before or after a stage. Of the import there is only what is after it. */
  view(stage, side) {
    const shown = stage === 0 ? "after" : side;
    const key = `${stage} ${shown}`;
    if (!this.views.has(key)) this.views.set(key, new View(this, stage, shown));
    return this.views.get(key);
  }
}

function grouped(remarks) {
  const found = new Map();
  for (const remark of remarks) {
    if (!found.has(remark.node)) found.set(remark.node, []);
    found.get(remark.node).push(remark);
  }
  return found;
}

class View {
  constructor(model, stage, side) {
    this.model = model;
    this.stage = stage;
    this.side = side;
    const from = model.stages[side === "before" ? stage - 1 : stage];
    this.nodes = from.rows.map((row) => model.nodes[row]);
    this.rows = new Set(from.rows);
    this.judged = new Map(model.stages[stage][side].map(
      ([row, status, text]) => [row, { status: model.strings[status], text: model.strings[text] }]));
    this.counts = Object.fromEntries(STATUSES.map((status) => [status, 0]));
    for (const { status } of this.judged.values()) if (status in this.counts) this.counts[status]++;
    this.connect();
  }

  /** Edges as [from, to]: nodes, or {input} and {output}. Nodes come after what they read. */
  connect() {
    const makers = new Map(this.model.inputs.map(([name, type]) => [name, { input: name, type }]));
    this.edges = [];
    this.readers = new Map();
    const holders = new Map();
    for (const node of this.nodes) {
      holders.set(`${node.graph}${node.graph && "/"}${node.label}`, node);
      const read = new Set(node.inputs);
      // What a body reads from outside, the node that holds it reads: there the body hangs.
      const holder = node.graph && holders.get(node.graph.slice(0, node.graph.lastIndexOf(".")));
      const isOutside = (maker) => holder && maker.graph !== node.graph && !maker.isConstant;
      const inBody = (name) => makers.get(name)?.graph === node.graph && !makers.get(name).isConstant;
      if (holder && ![...read].some(inBody)) this.edges.push([holder, node]);
      for (const name of read) {
        const maker = makers.get(name);
        if (!maker) continue;
        if (!isOutside(maker)) this.edges.push([maker, node]);
        if (!this.readers.has(name)) this.readers.set(name, []);
        this.readers.get(name).push(node);
      }
      for (const name of node.outputs) if (name) makers.set(name, node);
    }
    for (const [name, type] of this.model.outputs) {
      if (makers.has(name)) this.edges.push([makers.get(name), { output: name, type }]);
    }
    this.makers = makers;
  }

  status(node) { return this.judged.get(node.row)?.status ?? "same"; }

  /** Constants are shown where the stage made them. */
  isQuiet(node) {
    return node.isConstant && !(this.side === "after" && this.status(node) === "folded");
  }

  /** Nodes whose name, output or operator holds a text; those that begin with it come first. */
  find(text, most) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const ranked = [[], [], []];
    for (const node of this.nodes) {
      const names = [node.op, node.label, ...node.outputs].map((name) => name.toLowerCase());
      if (names.includes(wanted)) ranked[0].push(node);
      else if (names.some((name) => name.startsWith(wanted))) ranked[1].push(node);
      else if (names.some((name) => name.includes(wanted))) ranked[2].push(node);
    }
    const found = ranked.flat();
    return most ? found.slice(0, most) : found;
  }
}

function bytesText(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit++; }
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

function secondsText(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  return seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(1)} ms` : `${(seconds * 1e6).toFixed(0)} µs`;
}

/** An element with properties and children; texts are never read as HTML. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
