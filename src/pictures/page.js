"use strict";
(() => {
const graph = JSON.parse(document.getElementById("graph").textContent);
const byId = (id) => document.getElementById(id);
const picture = byId("picture"), world = byId("world"), panel = byId("panel"), search = byId("search");
const opNodes = [...picture.querySelectorAll(".op")];
const frames = [...picture.querySelectorAll(".partition")];
const listButtons = [...document.querySelectorAll("#list button")];
let current = -1;  // the op that has the focus or had it last

// ---- view: the drawing is moved and scaled inside a picture whose unit is a pixel of the window

const size = { width: +picture.dataset.width, height: +picture.dataset.height };
const margin = -picture.viewBox.baseVal.x;
const view = { x: 0, y: 0, scale: 1 };
const kLeast = 0.02, kMost = 4, kFar = 0.42, kReadable = 0.65;

function place() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const far = view.scale < kFar;
  picture.classList.toggle("far", far);
  // Zoomed far out, only the headings are shown, enlarged.
  world.style.setProperty("--heading", `${Math.min(40, 12 * Math.max(1, 0.6 / view.scale))}px`);
}
function zoom(factor, x = picture.clientWidth / 2, y = picture.clientHeight / 2) {
  const scale = Math.min(kMost, Math.max(kLeast, view.scale * factor));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  place();
}
function fitScale() {
  return Math.min(picture.clientWidth / size.width, picture.clientHeight / size.height, 1.4);
}
function fit() {
  view.scale = Math.max(kLeast, fitScale());
  view.x = (picture.clientWidth - size.width * view.scale) / 2 + margin * view.scale;
  view.y = Math.max(0, (picture.clientHeight - size.height * view.scale) / 2) + margin * view.scale;
  place();
}
// Shows a small graph completely, and the beginning of a large one at a readable scale.
function begin() {
  fit();
  if (view.scale >= kReadable) return;
  view.scale = kReadable;
  const first = frames.length > 0 ? boxOf(frames[0]) : { x: 0, width: size.width };
  view.x = picture.clientWidth / 2 - (first.x + first.width / 2) * view.scale;
  view.y = margin * view.scale;
  place();
}
const boxOf = (node) => node.querySelector("rect").getBBox();
function centre(box) {
  view.x = picture.clientWidth / 2 - (box.x + box.width / 2) * view.scale;
  view.y = picture.clientHeight / 2 - (box.y + box.height / 2) * view.scale;
  place();
}
function showOp(index) {
  const box = boxOf(opNodes[index]);
  if (view.scale < kReadable) view.scale = 0.9;
  const left = box.x * view.scale + view.x, top = box.y * view.scale + view.y;
  const inside = left > 0 && top > 0 && left + box.width * view.scale < picture.clientWidth &&
      top + box.height * view.scale < picture.clientHeight;
  if (inside) place(); else centre(box);
}
function showPartition(index) {
  const box = boxOf(frames[index]);
  view.scale = Math.min(1.2, Math.max(0.15, Math.min(picture.clientWidth / (box.width + 60), picture.clientHeight / (box.height + 60))));
  centre(box);
}

picture.removeAttribute("viewBox");
let dragged = null;
picture.addEventListener("pointerdown", (event) => {
  dragged = { x: event.clientX, y: event.clientY, moved: false, pointer: event.pointerId };
});
picture.addEventListener("pointermove", (event) => {
  if (!dragged || event.pointerId !== dragged.pointer || event.buttons === 0) return;
  const dx = event.clientX - dragged.x, dy = event.clientY - dragged.y;
  if (!dragged.moved && Math.hypot(dx, dy) < 4) return;
  if (!dragged.moved) picture.setPointerCapture(event.pointerId);
  dragged.moved = true;
  dragged.x = event.clientX;
  dragged.y = event.clientY;
  view.x += dx;
  view.y += dy;
  place();
});
picture.addEventListener("wheel", (event) => {
  event.preventDefault();
  const corner = picture.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - corner.left, event.clientY - corner.top);
}, { passive: false });
picture.addEventListener("click", (event) => {
  const moved = dragged && dragged.moved;
  dragged = null;
  if (moved) return;
  const op = event.target.closest(".op"), partition = event.target.closest(".step, .partition");
  if (op) { focusOp(+op.dataset.op); tellOp(current); }
  else if (partition) tellPartition(+partition.dataset.partition);
});

// ---- the panel; strings are inserted as text, never as HTML

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
function link(text, action) {
  const made = element("button", text, { type: "button", class: "link" });
  made.addEventListener("click", action);
  return made;
}
function table(rows) {
  const made = element("table");
  for (const [name, ...cells] of rows) {
    const row = element("tr");
    row.append(element("th", name, { scope: "row" }));
    for (const cell of cells) {
      const at = element("td");
      at.append(...(Array.isArray(cell) ? cell : [cell]));
      row.append(at);
    }
    made.append(row);
  }
  return made;
}
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
const opText = (op) => op.name ? `${op.kind} “${op.name}”` : op.kind;
const opLink = (index) => link(`op ${graph.ops[index].id} ${opText(graph.ops[index])}`, () => { focusOp(index); tellOp(index); });
const partitionLink = (index) => link(`partition ${graph.partitions[index].id}`, () => tellPartition(index));

function open(title, parts) {
  const close = element("button", "close", { type: "button", class: "close" });
  close.addEventListener("click", closePanel);
  panel.replaceChildren(close, element("h2", title, { tabindex: "-1" }), ...parts);
  keepMiddle(() => { panel.hidden = false; });
  panel.scrollTop = 0;
}
// Keeps the point in the middle of the picture there when the picture is resized.
function keepMiddle(change) {
  const before = picture.clientWidth;
  change();
  view.x += (picture.clientWidth - before) / 2;
  place();
}
function closePanel() {
  keepMiddle(() => { panel.hidden = true; });
  choose([], [], []);
  if (current >= 0) opNodes[current].focus({ preventScroll: true });
}
function choose(ops, partitions, tensors) {
  opNodes.forEach((node, i) => node.classList.toggle("chosen", ops.includes(i)));
  frames.forEach((node, i) => node.classList.toggle("chosen", partitions.includes(i)));
  listButtons.forEach((node) => node.setAttribute("aria-current", String(partitions.includes(+node.dataset.partition))));
  const marked = new Set(tensors);
  for (const line of picture.querySelectorAll(".line")) {
    const own = ops.length === 0 || ops.includes(+line.dataset.from) || ops.includes(+line.dataset.to);
    line.classList.toggle("chosen", own && marked.has(+line.dataset.tensor));
  }
}
function section(title, ...parts) {
  const heading = element("h3", title);
  return [heading, ...parts];
}
function portRows(ports, others) {
  return ports.map(([name, position]) => {
    if (position < 0) return [name, "left out"];
    const tensor = graph.tensors[position];
    const notes = [tensor.layout, tensor.property, tensor.value && `every element is ${tensor.value}`].filter(Boolean).join(", ");
    const cell = [element("code", `${tensor.id} ${tensor.text}`), notes ? ` ${notes} ` : " "];
    for (const other of others(tensor)) cell.push(element("br"), other);
    return [name, cell];
  });
}
const figure = (value, unit) => value === null || value === undefined ? "not known" : `${(Number.isInteger(value) ? value : Number(value.toPrecision(4))).toLocaleString("en")} ${unit}`;
const percent = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(part < 0.0995 * whole ? 1 : 0)} %` : "-";
const totalUs = graph.partitions.reduce((sum, partition) => sum + (partition.times?.profiled?.us ?? 0), 0);
// "12.3 µs (4.1 %), 78 % of its bound (fma)"
function stepTime(step) {
  const times = step?.times;
  return times ? `${figure(times.us, "µs")} (${percent(times.us, totalUs)}), ${percent(times.bound_us, times.us)} of its bound (${times.bound})` : "";
}
function stepsTable(partition) {
  const made = table(partition.steps.map((step) => [figure(step.times.us, "µs"), percent(step.times.us, totalUs),
    percent(step.times.bound_us, step.times.us), [element("code", step.name)]]));
  const row = element("tr");
  row.append(...["time", "of all", "of bound", "step"].map((text) => element("th", text, { scope: "col" })));
  made.prepend(row);
  return made;
}
function kernelParts(partition, kernels) {
  return kernels.map((kernel) => {
    const item = element("li");
    item.append(element("code", kernel.name));
    const time = stepTime(partition.steps[kernel.step]);
    const together = partition.kernels.filter((each) => each.step === kernel.step).length;
    if (time) item.append(element("br"), together > 1 ? `a step of ${together} kernels: ${time}` : time);
    if (kernel.schedule) item.append(` (${kernel.schedule})`);
    if (kernel.text) {
      const details = element("details");
      details.append(element("summary", "what it computes"), element("pre", kernel.text));
      item.append(details);
    }
    return item;
  });
}
function listOf(items) {
  const made = element("ul");
  made.append(...items);
  return made;
}
function codeSections(partition, kernels, title) {
  if (partition.problem) return section(title, element("p", `none: ${partition.problem}`));
  if (kernels.length > 0) return section(title, listOf(kernelParts(partition, kernels)));
  return section(title, element("p", graph.compiled ? "none, nothing is computed" : "not compiled"));
}
function tellOp(index) {
  const op = graph.ops[index], partition = graph.partitions[op.partition];
  const own = op.kernels.map((k) => partition.kernels[k]);
  const told = own.length > 0 ? own : partition.kernels;
  const reasons = op.reasons.map((reason) => {
    const item = element("li");
    item.append(element("code", reason.code), ` ${reason.text}`);
    const other = reason.other_op === null ? -1 : graph.ops.findIndex((each) => each.id === reason.other_op);
    if (other >= 0) item.append(" ", opLink(other));
    return item;
  });
  open(opText(op), [
    table([["op", String(op.id)], ["partition", [partitionLink(op.partition)]], ["runs on", partition.backend || (partition.supported ? "not compiled" : "nothing in this engine")]]),
    ...(op.attributes.length > 0 ? section("Attributes", table(op.attributes.map(([name, value]) => [name, [element("code", value)]]))) : []),
    ...section("Reads", table(portRows(op.inputs, (t) => t.producer < 0 ? ["input of the graph"] : [opLink(t.producer)]))),
    ...section("Makes", table(portRows(op.outputs, (t) => [...t.consumers.map(opLink), ...(t.is_output ? ["output of the graph"] : [])]))),
    ...section("Why it is in this partition", reasons.length > 0 ? listOf(reasons) : element("p", "no reasons")),
    ...codeSections(partition, told, own.length > 0 ? "Kernel" : "Kernels of its partition"),
  ]);
  choose([index], [op.partition], [...op.inputs, ...op.outputs].map(([, tensor]) => tensor));
}
function tellPartition(index) {
  const partition = graph.partitions[index], times = partition.times;
  const rows = [["runs on", partition.backend || (partition.supported ? "not compiled" : "nothing in this engine")]];
  if (times?.profiled) {
    rows.push(["time", figure(times.profiled.us, "µs (mean)")], ["between steps", figure(times.profiled.idle_us, "µs")],
        ["bound", `${figure(times.profiled.bound_us, "µs")}, ${percent(times.profiled.bound_us, times.profiled.us)} of the time`]);
  } else if (times) {
    rows.push(["time", figure(times.median_us, "µs (median)")], ["bandwidth", figure(times.gb_per_s, "GB/s")],
        ["compiled in", figure(times.compile_ms, "ms")]);
    if (times.verdict) rows.push(["check", times.verdict]);
  }
  if (partition.required_bytes !== null) {
    rows.push(["must move", figure(partition.required_bytes, "bytes: inputs and outputs, each once")],
        ["moves", figure(partition.moved_bytes, "bytes in main memory")], ["workspace", figure(partition.workspace_bytes, "bytes")]);
  }
  const tiles = partition.tiles.map((each) => element("li", each.sums ? `${each.text}; ${each.sums}` : each.text));
  open(`Partition ${partition.id}`, [
    table(rows), ...(partition.steps.some((step) => step.times) ? section("Steps", stepsTable(partition)) : []),
    ...codeSections(partition, partition.kernels, "Kernels"),
    ...(tiles.length > 0 ? section("Tiles", listOf(tiles)) : []),
    ...section("Ops", listOf(partition.ops.map((op) => { const item = element("li"); item.append(opLink(op)); return item; }))),
  ]);
  choose([], [index], []);
}

// ---- from op to op

function focusOp(index) {
  if (current >= 0) opNodes[current].setAttribute("tabindex", "-1");
  else opNodes.forEach((node) => node.setAttribute("tabindex", "-1"));
  current = index;
  opNodes[index].setAttribute("tabindex", "0");
  showOp(index);
  opNodes[index].focus({ preventScroll: true });
}
const boxes = opNodes.map(boxOf);
const middle = (i) => boxes[i].x + boxes[i].width / 2;
function nearest(from, candidates) {
  return candidates.reduce((best, i) => best < 0 || Math.abs(middle(i) - middle(from)) < Math.abs(middle(best) - middle(from)) ? i : best, -1);
}
function neighbour(index, key) {
  const op = graph.ops[index];
  const tensorsOf = (ports) => ports.filter(([, t]) => t >= 0).map(([, t]) => graph.tensors[t]);
  if (key === "ArrowUp") {
    const above = tensorsOf(op.inputs).map((t) => t.producer).filter((i) => i >= 0);
    return above.length > 0 ? nearest(index, above) : beyond(index, (i) => boxes[i].y < boxes[index].y - 1, -1);
  }
  if (key === "ArrowDown") {
    const below = tensorsOf(op.outputs).flatMap((t) => t.consumers);
    return below.length > 0 ? nearest(index, below) : beyond(index, (i) => boxes[i].y > boxes[index].y + 1, 1);
  }
  const right = key === "ArrowRight";
  const aside = boxes.map((_, i) => i).filter((i) => i !== index && Math.abs(boxes[i].y - boxes[index].y) < 40 &&
      (right ? middle(i) > middle(index) : middle(i) < middle(index)));
  return nearest(index, aside);
}
// If no edge leads further: the nearest op on that side.
function beyond(index, is_there) {
  let best = -1, least = Infinity;
  boxes.forEach((box, i) => {
    const distance = Math.hypot(middle(i) - middle(index), box.y - boxes[index].y);
    if (i !== index && is_there(i) && distance < least) { best = i; least = distance; }
  });
  return best;
}

// ---- search

const words = graph.ops.map((op) => {
  const partition = graph.partitions[op.partition];
  const tensors = [...op.inputs, ...op.outputs].filter(([, t]) => t >= 0).map(([, t]) => `${graph.tensors[t].id} ${graph.tensors[t].text}`);
  const kernels = op.kernels.map((k) => partition.kernels[k]).map((k) => `${k.name} ${k.schedule}`);
  return [`op ${op.id}`, op.kind, op.name, `partition ${partition.id}`, ...op.attributes.map(([name, value]) => `${name} ${value}`),
    ...tensors, ...kernels, ...op.reasons.map((r) => r.code)].join("\n").toLowerCase();
});
const partitionWords = graph.partitions.map((partition) => [`partition ${partition.id}`, partition.problem,
  ...partition.kernels.map((k) => `${k.name} ${k.schedule}`), ...partition.tiles.map((t) => t.text)].join("\n").toLowerCase());
let hits = [];
const kListed = 200;
function result(text, below, action) {
  const item = element("li"), button = element("button", undefined, { type: "button" });
  button.append(text, element("small", below));
  button.addEventListener("click", action);
  item.append(button);
  return item;
}
function find() {
  const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const matching = (texts) => wanted.length === 0 ? [] : texts.flatMap((text, i) => wanted.every((word) => text.includes(word)) ? [i] : []);
  hits = matching(words);
  const fields = matching(partitionWords);
  const marked = new Set(hits);
  opNodes.forEach((node, i) => node.classList.toggle("hit", marked.has(i)));
  byId("found").hidden = wanted.length === 0;
  byId("found-count").textContent = `${hits.length} of ${counted(words.length, "op")}` + (hits.length > kListed ? `, the first ${kListed}` : "") +
      (fields.length > 0 ? `; ${fields.length} of ${counted(partitionWords.length, "partition")} by kernel, tile or number` : "");
  byId("found-list").replaceChildren(
    ...hits.slice(0, kListed).map((index) => {
      const op = graph.ops[index];
      return result(opText(op), `op ${op.id}, partition ${graph.partitions[op.partition].id}`, () => { focusOp(index); tellOp(index); });
    }),
    ...fields.slice(0, kListed).map((index) => {
      const partition = graph.partitions[index];
      return result(`partition ${partition.id}`, counted(partition.ops.length, "op"), () => { showPartition(index); tellPartition(index); });
    }));
}
search.addEventListener("input", find);
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && hits.length > 0) { focusOp(hits[0]); tellOp(hits[0]); }
});

// ---- keys and buttons

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (byId("help").open) return;
    if (document.activeElement === search && search.value) { search.value = ""; find(); }
    else closePanel();
    return;
  }
  if (event.target === search) return;
  const steps = { "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": fit, "?": () => byId("help").showModal(),
    "/": () => { search.focus(); search.select(); } };
  if (steps[event.key]) { event.preventDefault(); steps[event.key](); return; }
  const op = event.target.closest ? event.target.closest(".op") : null;
  if (!op) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    tellOp(+op.dataset.op);
    panel.querySelector("h2").focus();
  } else if (event.key === "p") {
    tellPartition(graph.ops[+op.dataset.op].partition);
    panel.querySelector("h2").focus();
  } else if (event.key.startsWith("Arrow")) {
    event.preventDefault();
    const next = neighbour(+op.dataset.op, event.key);
    if (next >= 0) { focusOp(next); if (!panel.hidden) tellOp(next); }
  }
});
opNodes.forEach((node, i) => node.addEventListener("focus", () => { if (current !== i) focusOp(i); }));
byId("zoom-in").addEventListener("click", () => zoom(1.25));
byId("zoom-out").addEventListener("click", () => zoom(0.8));
byId("fit").addEventListener("click", fit);
byId("help-button").addEventListener("click", () => byId("help").showModal());
listButtons.forEach((button) => button.addEventListener("click", () => {
  showPartition(+button.dataset.partition);
  tellPartition(+button.dataset.partition);
}));
const byTime = byId("by-time");
if (byTime) byTime.addEventListener("click", () => {
  const sorted = byTime.getAttribute("aria-pressed") !== "true";
  byTime.setAttribute("aria-pressed", String(sorted));
  const key = (button) => sorted ? -(button.dataset.time ?? -1) : +button.dataset.partition;
  byId("list").append(...listButtons.slice().sort((a, b) => key(a) - key(b)).map((button) => button.parentElement));
});

begin();
// The address may name a place: #op-12, #partition-3, #search=norm.
const at = decodeURIComponent(location.hash.slice(1)).match(/^(op|partition|search)[-=](.*)$/);
if (at && at[1] === "search") { search.value = at[2]; find(); }
if (at && at[1] === "op" && opNodes[+at[2]]) { focusOp(+at[2]); tellOp(+at[2]); showOp(+at[2]); }
if (at && at[1] === "partition" && frames[+at[2]]) { showPartition(+at[2]); tellPartition(+at[2]); }
})();
