"use strict";
// Passes, remarks, constants and steps as tables.

const PAGE_ROWS = 200;

/** A table that shows its first rows, and more when asked. Columns: [title, cell of a row, class]. */
function table(columns, rows, isQuiet = () => false) {
  const body = element("tbody");
  const more = element("button", { className: "more", type: "button" });
  let shown = 0;
  const extend = () => {
    for (const row of rows.slice(shown, shown + PAGE_ROWS)) {
      body.append(element("tr", { className: isQuiet(row) ? "quiet" : "" }, ...columns.map(([, cell, className]) =>
        element("td", { className: className ?? "" }, cell(row)))));
    }
    shown = Math.min(rows.length, shown + PAGE_ROWS);
    more.hidden = shown === rows.length;
    more.textContent = `show more (${rows.length - shown} left)`;
  };
  more.onclick = extend;
  extend();
  const heads = columns.map(([title, , className]) => element("th", { className: className ?? "" }, title));
  return element("div", { className: "scroll" },
    element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body), more);
}

/** A bar beside a number; `share` is from 0 to 1. */
function share(text, part) {
  const filled = element("i");
  filled.style.width = `${Math.max(0.5, 100 * part).toFixed(2)}%`;
  return element("span", { className: "share" }, element("span", {}, text), element("b", {}, filled));
}

/** How often a pass of a stage said that it did, or declined to do something. */
function remarkCount(model, stage, pass, kind) {
  return model.remarks.filter((remark) => remark.stage === stage && remark.pass === pass && remark.kind === kind).length;
}

function passesTable(model) {
  const rows = model.stages.flatMap((stage, number) =>
    stage.passes.map(([name, before, after, changes, seconds]) => ({ stage, number, name, before, after, changes, seconds })));
  const longest = Math.max(1e-9, ...rows.map((row) => row.seconds));
  return table([
    ["stage", (row) => row.stage.name],
    ["pass", (row) => row.name],
    ["nodes before", (row) => row.before, "number"],
    ["after", (row) => row.after, "number"],
    ["", (row) => (row.after === row.before ? "" : signed(row.after - row.before)), "number"],
    ["changes", (row) => row.changes || "", "number"],
    ["applied", (row) => remarkCount(model, row.stage.name, row.name, "applied") || "", "number"],
    ["refused", (row) => remarkCount(model, row.stage.name, row.name, "declined") || "", "number"],
    ["time", (row) => share(secondsText(row.seconds), row.seconds / longest), "wide"],
  ], rows, (row) => !row.changes);
}

function signed(number) { return number > 0 ? `+${number}` : `−${-number}`; }

/** Remarks with a filter by text, kind and pass; `onNode` is called with a name. */
function remarksPanel(model, onNode) {
  const text = element("input", { type: "search", placeholder: "filter by node, operator or reason" });
  const kind = choice("all kinds", [...new Set(model.remarks.map((remark) => remark.kind))]);
  const stage = choice("all stages", [...new Set(model.remarks.map((remark) => remark.stage).filter(Boolean))]);
  const pass = choice("all passes", [...new Set(model.remarks.map((remark) => remark.pass).filter(Boolean))].sort());
  const count = element("span", { className: "quiet" });
  const place = element("div", { className: "grow" });
  const refresh = () => {
    const wanted = text.value.trim().toLowerCase();
    const rows = model.remarks.filter((remark) =>
      (!kind.value || remark.kind === kind.value)
      && (!stage.value || remark.stage === stage.value)
      && (!pass.value || remark.pass === pass.value)
      && (!wanted || `${remark.node} ${remark.op} ${remark.message}`.toLowerCase().includes(wanted)));
    count.textContent = `${rows.length} of ${model.remarks.length}`;
    place.replaceChildren(table([
      ["remark", (row) => element("span", { className: `kind ${row.kind}` }, row.kind)],
      ["stage", (row) => row.stage],
      ["pass", (row) => row.pass],
      ["operator", (row) => row.op.replace(/^onnx\./, "")],
      ["node", (row) => nodeLink(row.node, onNode)],
      ["why", (row) => row.message, "text"],
    ], rows));
  };
  for (const control of [text, kind, stage, pass]) control.oninput = refresh;
  refresh();
  return [element("div", { className: "controls" }, text, kind, stage, pass, count), place];
}

function choice(all, values) {
  return element("select", {}, element("option", { value: "" }, all),
    ...values.map((value) => element("option", { value }, value)));
}

function nodeLink(name, onNode) {
  return name ? element("button", { className: "link", type: "button", onclick: () => onNode(name) }, name) : "";
}

/** The constants of a view by size, and how much all of them hold before and after all stages. */
function constantsPanel(model, view, onNode) {
  const held = (nodes) => nodes.reduce((sum, node) => sum + node.bytes, 0);
  const rows = view.nodes.filter((node) => node.isConstant).sort((a, b) => b.bytes - a.bytes);
  const total = Math.max(1, held(rows));
  const readers = (node) => view.readers.get(node.outputs[0]) ?? [];
  const totals = model.stages.map((stage) =>
    `${stage.name} ${bytesText(held(stage.rows.map((row) => model.nodes[row])))}`);
  return [
    element("p", { className: "quiet" }, `${rows.length} constants hold ${bytesText(held(rows))}. After each stage: ${totals.join(", ")}.`),
    table([
      ["constant", (node) => nodeLink(node.label, onNode)],
      ["bytes", (node) => share(bytesText(node.bytes), node.bytes / total), "wide"],
        ["value", (node) => node.value, "text"],
      ["read by", (node) => readers(node).slice(0, 3).map((reader) => `${reader.op} ${reader.label}`).join(", ")
        + (readers(node).length > 3 ? ` and ${readers(node).length - 3} more` : ""), "text"],
      ["folded from", (node) => node.origins.join(", "), "text"],
    ], rows),
  ];
}

function profilePanel(profile, onNode) {
  if (!profile) return [element("p", { className: "quiet" }, "Steps were not timed: foldline report --run does.")];
  const whole = secondsText(profile.planned);
  if (!profile.steps.length) return [element("p", { className: "quiet" }, `These inputs have no plan, the steps of which could be timed; a run takes ${whole}.`)];
  const rows = profile.steps.map(([where, seconds], number) => ({ where, seconds, number: number + 1 }));
  const total = Math.max(1e-12, rows.reduce((sum, row) => sum + row.seconds, 0));
  const operators = new Map();
  for (const { where, seconds } of rows) {
    const name = where.replace(/ \(.*$/s, "");
    const row = operators.get(name) ?? { name, count: 0, seconds: 0 };
    row.count++;
    row.seconds += seconds;
    operators.set(name, row);
  }
  const bySeconds = (a, b) => b.seconds - a.seconds;
  const time = ["time", (row) => share(`${secondsText(row.seconds)}  ${(100 * row.seconds / total).toFixed(1)} %`, row.seconds / total), "wide"];
  return [
    element("p", { className: "quiet" }, `${rows.length} steps of the plan take ${secondsText(total)}; a run in which they are not timed takes ${whole}.`),
    element("div", { className: "columns" },
      table([["operator", (row) => row.name], ["steps", (row) => row.count, "number"], time], [...operators.values()].sort(bySeconds)),
      table([["#", (row) => row.number, "number"], ["step", (row) => stepLink(row.where, onNode)], time], rows.sort(bySeconds))),
  ];
}

/** `onnx.Conv (node 'x')` with a way to the node. */
function stepLink(where, onNode) {
  const name = /\((?:node|output) '(.*)'\)$/s.exec(where);
  return name ? element("span", {}, `${where.slice(0, name.index)}`, nodeLink(name[1], onNode)) : where;
}
