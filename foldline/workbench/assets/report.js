"use strict";
// What the reader does: stages, sides, search, tabs and keys.

class Report {
  constructor(model) {
    this.model = model;
    this.stage = Math.max(0, model.stages.length - 1);
    this.side = "after";
    this.byId = (id) => document.getElementById(id);
    this.picture = new Picture(this.byId("picture"), model, (what) => this.explain(what));
    this.panels = { passes: false, remarks: false, memory: false, profile: false };
    this.summarise();
    this.timeline();
    this.wire();
    this.select(this.stage);
  }

  get view() { return this.model.view(this.stage, this.side); }

  summarise() {
    const { stages, remarks, seconds, bounds } = this.model;
    const computing = (stage) => stage.rows.filter((row) => !this.model.nodes[row].isConstant).length;
    const count = (kind) => remarks.filter((remark) => remark.kind === kind).length;
    const facts = [
      `${computing(stages[0])} → ${computing(stages.at(-1))} nodes`,
      `${stages.reduce((sum, stage) => sum + stage.passes.length, 0)} passes in ${secondsText(seconds)}`,
      `${count("applied")} applied, ${count("declined")} refused`,
      ...bounds.map((bound) => `limit reached: ${bound}`),
    ];
    this.byId("facts").replaceChildren(...facts.map((fact) => element("span", {}, fact)));
  }

  timeline() {
    const total = (stage) => stage.passes.reduce((sum, pass) => sum + pass[4], 0);
    const longest = Math.max(1e-9, ...this.model.stages.map(total));
    this.buttons = this.model.stages.map((stage, number) => {
      const nodes = stage.rows.filter((row) => !this.model.nodes[row].isConstant).length;
      const counts = this.model.view(number, "after").counts;
      const gone = number ? this.model.view(number, "before").counts : counts;
      const shown = { ...counts, removed: gone.removed };
      const clock = element("i");
      clock.style.width = `${(100 * total(stage)) / longest}%`;
      return element("button", { type: "button", className: "stage", title: `key ${number}`, onclick: () => this.select(number) },
        element("span", { className: "name" }, element("kbd", {}, String(number)), stage.name),
        element("span", { className: "quiet" }, `${nodes} nodes${number ? ` · ${secondsText(total(stage))}` : ""}`),
        element("span", { className: "dots" }, ...STATUSES.filter((status) => shown[status]).map((status) =>
          element("span", { className: `dot ${status}`, title: `${shown[status]} ${status}` }, String(shown[status])))),
        element("span", { className: "clock", title: "share of the time" }, clock));
    });
    this.byId("timeline").replaceChildren(...this.buttons);
  }

  select(stage, side = this.side) {
    const isFirst = !this.picture.view;
    this.stage = stage;
    this.side = side;
    this.buttons.forEach((button, number) => button.classList.toggle("chosen", number === stage));
    for (const name of ["before", "after"]) {
      this.byId(name).classList.toggle("chosen", this.view.side === name);
      this.byId(name).disabled = stage === 0;
    }
    this.picture.extra.clear();
    this.explain(null);
    this.picture.show(this.view, !isFirst && this.picture.open.size > 0);
    this.legend();
    this.refreshConstants();
    this.search();
  }

  legend() {
    const { counts } = this.view;
    const names = this.view.side === "before" ? ["folded", "fused", "removed", "changed"] : ["new", "fused", "folded", "changed"];
    this.byId("legend").replaceChildren(...names.map((status) =>
      element("button", { type: "button", className: `chip ${status}`, disabled: !counts[status], title: "to the next one", onclick: () => this.next(status) },
        `${status} ${counts[status]}`)));
  }

  /** To the next node of a status, in the order of the graph. */
  next(status) {
    const nodes = this.view.nodes.filter((node) => this.view.status(node) === status);
    const place = nodes.indexOf(this.selected);
    if (nodes.length) this.picture.reveal(nodes[(place + 1) % nodes.length]);
  }

  /** To a node by name: in this stage, else in the first in which it is. */
  goto(name) {
    const views = [this.view, ...this.model.stages.map((_, stage) => this.model.view(stage, "after"))];
    for (const view of views) {
      const node = view.nodes.find(({ label, outputs }) => label === name || outputs.includes(name));
      if (!node) continue;
      this.tab("graph");
      if (view !== this.view) this.select(view.stage, view.side);
      this.picture.reveal(node);
      return;
    }
  }

  search() {
    const text = this.byId("search").value;
    const here = this.view.find(text);
    const elsewhere = text.trim() && !here.length
      ? this.model.stages.flatMap((stage, number) => this.model.view(number, "after").find(text, 5)
        .map((node) => ({ node, number, where: `after ${stage.name}` }))) : [];
    const rows = [...here.slice(0, 50).map((node) => ({ node })), ...elsewhere.slice(0, 20)];
    const results = this.byId("results");
    results.replaceChildren(...rows.map(({ node, number, where }) =>
      element("button", { type: "button", onclick: () => {
        if (number !== undefined) this.select(number, "after");
        this.picture.reveal(node);
        results.hidden = true;
      } }, element("b", {}, node.op), ` ${node.label}`, element("span", { className: "quiet" }, where ? ` ${where}` : ""))));
    if (here.length > 50) results.append(element("p", { className: "quiet" }, `and ${here.length - 50} more`));
    if (text.trim() && !rows.length) results.append(element("p", { className: "quiet" }, "nothing has this in its name"));
    results.hidden = !text.trim() || document.activeElement !== this.byId("search");
  }

  /** The panel beside the picture. */
  explain(what) {
    this.selected = what && what.row !== undefined ? what : null;
    const place = this.byId("details");
    if (!what) place.replaceChildren(...this.overview());
    else if (what.region !== undefined) place.replaceChildren(...this.regionDetails(what.region));
    else place.replaceChildren(...this.nodeDetails(what));
    place.scrollTop = 0;
  }

  overview() {
    const { name, passes } = this.model.stages[this.stage];
    const active = passes.filter((pass) => pass[3]);
    return [
      element("h2", {}, this.stage ? `${this.view.side === "before" ? "Before" : "After"} ${name}` : "As imported"),
      element("p", { className: "quiet" }, "Click a box with a double border to open it, a node to see what it is and why."),
      ...(active.length ? [element("h3", {}, "Passes that changed something"),
        element("ul", {}, ...active.map(([pass, , , changes]) => element("li", {}, `${pass} `,
          element("span", { className: "quiet" }, `×${Math.max(changes, remarkCount(this.model, name, pass, "applied"))}`))))]
        : this.stage ? [element("p", {}, "No pass changed anything.")] : []),
    ];
  }

  regionDetails(region) {
    const nodes = this.view.nodes.filter((node) => this.model.path(node).includes(region));
    const label = this.model.regionLabel(region);
    return [
      element("h2", {}, label || "Block of neighbours"),
      element("p", { className: "quiet" }, `${nodes.length} nodes, constants included`),
      element("p", {}, element("button", { type: "button", onclick: () => this.picture.collapse(region) }, "Close this box")),
      element("ul", {}, ...nodes.filter((node) => !node.isConstant).slice(0, 100).map((node) =>
        element("li", { className: this.view.status(node) }, `${node.op} `, this.link(node)))),
    ];
  }

  nodeDetails(node) {
    const { view, model } = this;
    const judged = view.judged.get(node.row);
    const names = new Set([node.name, node.label, ...node.outputs].filter(Boolean));
    const own = [...names].flatMap((name) => model.remarksOf.get(name) ?? []);
    const remarks = [...new Set([...own, ...this.remarksOfParts(node)])];
    const value = (name) => {
      const maker = view.makers.get(name);
      return maker && maker.row !== undefined ? nodeLink(name, () => this.picture.reveal(maker)) : name || "(absent)";
    };
    const typeOf = (name) => {
      const maker = view.makers.get(name);
      return maker?.type ?? maker?.types?.[maker.outputs.indexOf(name)] ?? "";
    };
    const list = (title, items) => (items.length ? [element("h3", {}, title), element("ul", {}, ...items.map((item) => element("li", {}, ...item)))] : []);
    const attributes = [];
    for (let i = 0; i < node.attributes.length; i += 2) attributes.push([element("b", {}, node.attributes[i]), ` ${node.attributes[i + 1]}`]);
    const readers = node.outputs.flatMap((name) => view.readers.get(name) ?? []);
    return [
      element("h2", {}, node.op),
      element("p", { className: "name" }, node.label || "without name"),
      ...(node.graph ? [element("p", { className: "quiet" }, `in ${node.graph}`)] : []),
      ...(judged && judged.status !== "typed" ? [element("p", { className: `verdict ${judged.status}` }, element("b", {}, judged.status), ` ${judged.text}`)] : []),
      ...(node.isConstant ? [element("p", {}, `${node.value} `, element("span", { className: "quiet" }, bytesText(node.bytes)))] : []),
      ...list("Folded from", node.origins.map((name) => [name])),
      ...list("Inputs", node.inputs.map((name) => [value(name), " ", element("span", { className: "quiet" }, typeOf(name))])),
      ...list("Outputs", node.outputs.map((name, index) => [name || "(unused)", " ", element("span", { className: "quiet" }, node.types[index])])),
      ...list("Attributes", attributes),
      ...list("Read by", readers.slice(0, 20).map((reader) => [`${reader.op} `, this.link(reader)])),
      ...list("Why", remarks.map((remark) => [element("span", { className: `kind ${remark.kind}` }, remark.kind), ` ${remark.stage}/${remark.pass}: ${remark.message}`])),
    ];
  }

  /** What the stage that made a node said when it took the nodes away that it stands for. */
  remarksOfParts(node) {
    if (this.view.side === "before" || !this.view.judged.has(node.row)) return [];
    const { model, stage } = this;
    const before = model.view(stage, "before");
    const fates = new Set([`part of ${node.op} '${node.label}'`, ...node.outputs.map((name) => `folded into '${name}'`)]);
    return before.nodes.filter((part) => fates.has(before.judged.get(part.row)?.text))
      .flatMap((part) => [part.label, ...part.outputs].flatMap((name) => model.remarksOf.get(name) ?? []))
      .filter((remark) => remark.stage === model.stages[stage].name && remark.kind === "applied");
  }

  link(node) { return nodeLink(node.label || node.op, () => this.picture.reveal(node)); }

  tab(name) {
    for (const button of document.querySelectorAll("#tabs button")) button.classList.toggle("chosen", button.dataset.tab === name);
    for (const panel of document.querySelectorAll("main > section")) panel.hidden = panel.id !== name;
    const { model } = this;
    const fill = {
      passes: () => [passesTable(model)],
      remarks: () => remarksPanel(model, (node) => this.goto(node)),
      memory: () => memoryPanel(model.run),
      profile: () => profilePanel(model.run?.profile, (node) => this.goto(node)),
    };
    if (name in fill && !this.panels[name]) {
      this.byId(name).replaceChildren(...fill[name]());
      this.panels[name] = true;
    }
    if (name === "constants") this.refreshConstants();
    if (name === "graph") this.picture.cy.resize();
  }

  refreshConstants() {
    const panel = this.byId("constants");
    if (!panel.hidden) panel.replaceChildren(...constantsPanel(this.model, this.view, (node) => this.goto(node)));
  }

  wire() {
    const on = (id, action) => { this.byId(id).onclick = action; };
    on("before", () => this.select(this.stage, "before"));
    on("after", () => this.select(this.stage, "after"));
    on("fit", () => this.picture.fit());
    on("close", () => this.picture.collapseAll());
    this.byId("with-constants").onchange = ({ target }) => {
      this.picture.withConstants = target.checked;
      this.picture.draw();
    };
    for (const button of document.querySelectorAll("#tabs button")) button.onclick = () => this.tab(button.dataset.tab);
    const search = this.byId("search");
    search.oninput = search.onfocus = () => this.search();
    search.onkeydown = (event) => {
      if (event.key === "Enter") this.byId("results").querySelector("button")?.click();
      if (event.key === "Escape") search.blur();
      if (event.key === "ArrowDown") { this.byId("results").querySelector("button")?.focus(); event.preventDefault(); }
    };
    this.byId("results").onkeydown = (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (step) { event.preventDefault(); (document.activeElement[step] ?? search).focus(); }
      if (event.key === "Escape") { this.byId("results").hidden = true; search.focus(); }
    };
    document.addEventListener("click", ({ target }) => {
      if (!target.closest(".finder")) this.byId("results").hidden = true;
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); this.tab("graph"); this.byId("search").select(); }
    else if (event.key === "b" || event.key === "a") this.select(this.stage, event.key === "b" ? "before" : "after");
    else if (event.key === "f") this.picture.fit();
    else if (/^\d$/.test(event.key) && Number(event.key) < this.model.stages.length) this.select(Number(event.key));
  }
}

const report = new Report(new Model(JSON.parse(document.getElementById("data").textContent)));
