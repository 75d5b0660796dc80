"use strict";
// The arena over time: steps from left to right, offsets from top to bottom, one box a buffer.

class MemoryMap {
  constructor(plan) {
    this.plan = plan;
    this.canvas = element("canvas", { className: "memory" });
    this.note = element("p", { className: "quiet note" }, " ");
    this.canvas.onmousemove = (event) => this.explain(event);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.live = new Float64Array(plan.steps.length + 1);
    for (const { start, end, size } of plan.buffers) {
      this.live[start] += size;
      this.live[end + 1] -= size;
    }
    for (let step = 1; step < this.live.length; step++) this.live[step] += this.live[step - 1];
  }

  draw() {
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const { steps, buffers, arena_bytes: arena } = this.plan;
    const left = 64, top = 8, bottom = 22, curve = 70;
    this.area = { left, top, w: width - left - 8, h: height - top - bottom - curve - 16 };
    const { w, h } = this.area;
    this.x = (step) => left + (w * step) / Math.max(1, steps.length);
    this.y = (offset) => top + (h * offset) / Math.max(1, arena);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = color("inside");
    context.fillRect(left, top, w, h);
    context.lineWidth = 0.5;
    for (const buffer of buffers) {
      const x = this.x(buffer.start), y = this.y(buffer.offset);
      const box = [x, y, Math.max(1, this.x(buffer.end + 1) - x), Math.max(1, this.y(buffer.offset + buffer.size) - y)];
      context.fillStyle = color(buffer.scratch ? "changed-fill" : "accent-fill");
      context.strokeStyle = color(buffer.scratch ? "changed" : "accent");
      context.fillRect(...box);
      if (box[2] > 3 && box[3] > 3) context.strokeRect(...box);
    }
    this.axes(context, height - bottom, curve);
  }

  axes(context, base, curve) {
    const { left, top, w, h } = this.area;
    const { arena_bytes: arena, steps } = this.plan;
    context.fillStyle = color("quiet");
    context.textAlign = "right";
    for (let part = 0; part <= 4; part++) {
      context.fillText(bytesText((arena * part) / 4), left - 6, top + (h * part) / 4 + 4);
    }
    const peak = Math.max(1, ...this.live);
    context.fillText("in use", left - 6, base - curve + 12);
    context.fillText(bytesText(peak), left - 6, base - curve + 26);
    context.beginPath();
    context.moveTo(left, base);
    this.live.forEach((bytes, step) => {
      if (step === steps.length) return;
      const y = base - (curve * bytes) / peak;
      context.lineTo(this.x(step), y);
      context.lineTo(this.x(step + 1), y);
    });
    context.lineTo(left + w, base);
    context.fillStyle = color("accent-fill");
    context.strokeStyle = color("accent");
    context.lineWidth = 1;
    context.fill();
    context.stroke();
    context.fillStyle = color("quiet");
    context.textAlign = "left";
    context.fillText("step 1", left, base + 15);
    context.textAlign = "right";
    context.fillText(`step ${steps.length}`, left + w, base + 15);
  }

  explain(event) {
    if (!this.area) return;
    const { left, top, w, h } = this.area;
    const { steps, buffers, arena_bytes: arena } = this.plan;
    const step = Math.floor(((event.offsetX - left) / w) * steps.length);
    if (step < 0 || step >= steps.length) return;
    const offset = ((event.offsetY - top) / h) * arena;
    const hit = buffers.find((b) => b.start <= step && step <= b.end && b.offset <= offset && offset < b.offset + b.size);
    const at = `step ${step + 1}: ${steps[step][0]}, ${bytesText(this.live[step])} in use`;
    this.note.textContent = hit
      ? `${at} — buffer of ${bytesText(hit.size)} at ${hit.offset}, steps ${hit.start + 1} to ${hit.end + 1}, `
        + `${hit.scratch ? "scratch of" : "written by"} ${hit.writers.map((writer) => steps[writer][0]).join(", ")}`
      : at;
  }
}

function memoryPanel(run) {
  const quiet = (text) => [element("p", { className: "quiet" }, text)];
  if (!run) return quiet("The model was not run: foldline report makes the memory plan of a run.");
  if (run.why) return quiet(`There is no memory plan: the run failed. ${run.why}`);
  if (!run.plan) return quiet("These inputs have no plan: their shapes are not decided by what is given.");
  const kinds = new Map();
  for (const [, kind] of run.plan.steps) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const words = { out: "write into the arena", copy: "copy into the arena", view: "are views", fresh: "allocate", generic: "run shape-generic" };
  const inputs = Object.entries(run.inputs).map(([name, [dtype, ...dims]]) => `${name} ${dtype}[${dims.join(",")}]`);
  const map = new MemoryMap(run.plan);
  return [
    element("p", { className: "quiet" },
      `Arena ${bytesText(run.plan.arena_bytes)}, for buffers of ${bytesText(run.plan.buffer_bytes)} in all. `
      + `${run.plan.steps.length} steps: ${[...kinds].map(([kind, count]) => `${count} ${words[kind]}`).join(", ")}. `
      + `Inputs: ${inputs.join(", ") || "none"}. Amber is scratch memory of one step.`),
    map.canvas, map.note,
  ];
}
