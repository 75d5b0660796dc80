"use strict";
// How elements of the picture look: labels, bars, colours and shapes.

const LONGEST_NAME = 30;

function shortened(name) {
  return name.length <= LONGEST_NAME ? name : `…${name.slice(1 - LONGEST_NAME)}`;
}

function cut(type) {
  return type.length <= LONGEST_NAME ? type : `${type.slice(0, LONGEST_NAME - 1)}…`;
}

/** The shares of what happened in a region as stops of a gradient, a bar in its box. */
function bar(counts, total) {
  const stops = [];
  let at = 0;
  counts.forEach((count, index) => {
    if (!count) return;
    // Something that happened is seen, however large the region.
    const end = Math.min(100, at + Math.max(4, (100 * count) / total));
    stops.push([STATUSES[index], at, end]);
    at = end;
  });
  if (at < 100) stops.push(["same", at, 100]);
  return { stops };
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function pictureStyle() {
  const fill = (status) => color(status === "same" || status === "typed" ? "node" : `${status}-fill`);
  const line = (status) => color(status === "same" || status === "typed" ? "line" : status);
  return [
    { selector: "node", style: {
      shape: "round-rectangle", label: "data(label)",
      "background-color": color("node"), "border-width": 1, "border-color": color("line"),
      color: color("text"), "font-family": "system-ui, sans-serif", "font-size": 12,
      "text-wrap": "wrap", "text-valign": "center", "text-halign": "center", "line-height": 1.2,
      "min-zoomed-font-size": 5,
    } },
    { selector: "node[w]", style: { width: "data(w)", height: "data(h)" } },
    { selector: "node.operator, node.constant", style: {
      "background-color": (node) => fill(node.data("status")),
      "border-color": (node) => line(node.data("status")),
      "border-width": (node) => (fill(node.data("status")) === color("node") ? 1 : 2),
    } },
    { selector: "node.constant", style: { shape: "cut-rectangle" } },
    { selector: "node.region", style: {
      "background-fill": "linear-gradient", "background-gradient-direction": "to-right",
      "background-gradient-stop-colors": (node) =>
        node.data("stops").flatMap(([status]) => [fill(status), fill(status)]).join(" "),
      "background-gradient-stop-positions": (node) =>
        node.data("stops").flatMap(([, from, to]) => [`${from}%`, `${to}%`]).join(" "),
      "border-width": 4, "border-style": "double", "border-color": color("quiet"),
    } },
    { selector: "node.open", style: {
      "background-color": color("inside"), "border-color": color("line"), padding: 14,
      "text-valign": "top", "text-halign": "center", "text-margin-y": 14, "font-size": 11,
      color: color("quiet"),
    } },
    { selector: "node.input, node.output", style: {
      shape: "round-rectangle", "corner-radius": 20, "background-color": color("inside"),
    } },
    { selector: "edge", style: {
      width: (edge) => Math.min(3, 1 + Math.log2(edge.data("count")) / 4),
      "line-color": color("edge"), "target-arrow-color": color("edge"),
      "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier",
    } },
    { selector: "node:selected", style: {
      "border-color": color("accent"), "border-width": 3, "border-style": "solid",
    } },
  ];
}
