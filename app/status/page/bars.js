// The consumers as bars filled by their partitions, on one scale with lines at packing and at consumer capacity.

import { byId, element, say } from "./dom.js";
import { count, percent, plural, speed } from "./format.js";
import * as topics from "./topics.js";

const ENDS = [1.2, 1.5, 2.0]; // where the scale may end, in capacities: few steps, so that it seldom changes
const DENSE = 24; // from so many consumers on, bars are small and stand in columns
const rows = new Map();
const parts = new WeakMap(); // what each drawn partition is about
const board = byId("bars");
let newest = null;
let pointedAt = null;

const axis = element(
  "div",
  { class: "axis", "aria-hidden": "true" },
  element("span"),
  element(
    "div",
    { class: "scale" },
    element("i", { class: "packing" }),
    element("span", { class: "packing" }),
    element("i", { class: "capacity" }),
    element("span", { class: "capacity" }),
  ),
);
board.append(axis);

export function show(state) {
  newest = state;
  topics.show(new Set(state.consumers.flatMap((each) => [...each.partitions, ...each.awaits]).concat(state.unread).map((part) => part.topic)));
  const largest = Math.max(state.capacity, ...state.consumers.map((each) => each.capacity));
  const highest = Math.max(0, ...state.consumers.map((each) => each.load)) / largest;
  const end = (ENDS.find((each) => highest <= each) ?? ENDS.at(-1)) * largest;
  board.style.setProperty("--packing", `${(100 * state.packing_capacity) / end}%`);
  board.style.setProperty("--capacity", `${(100 * state.capacity) / end}%`);
  board.classList.toggle("dense", state.consumers.length > DENSE);
  board.classList.toggle("dimmed", topics.isChosen());
  say(axis.querySelector("span.packing"), `packing ${speed(state.packing_capacity)}`);
  say(axis.querySelector("span.capacity"), `capacity ${speed(state.capacity)}`);
  say(byId("lines"), `Plans fill it up to the dashed line (${speed(state.packing_capacity)}); the solid one is what it reads at most (${speed(state.capacity)}).`);
  const present = new Set(state.consumers.map((each) => each.consumer));
  for (const [number, row] of rows) {
    if (!present.has(number)) {
      row.root.remove();
      rows.delete(number);
    }
  }
  const scale = { end, width: (rows.values().next().value?.bar ?? board).clientWidth }; // measured once: it costs a layout
  let before = axis;
  for (const consumer of state.consumers) {
    const row = rows.get(consumer.consumer) ?? newRow(consumer.consumer);
    if (before.nextSibling !== row.root) before.after(row.root);
    before = row.root;
    fill(row, consumer, state, scale);
  }
  byId("bars-empty").hidden = state.consumers.length > 0;
  axis.hidden = state.consumers.length === 0;
  keepOneTabStop();
  showUnread(state);
  describe();
}

topics.onChoice(() => newest && show(newest));

function newRow(number) {
  const root = element("div", { class: "row" });
  const bar = element("div", { class: "bar", tabindex: "-1" });
  const name = element("div", { class: "name" }, element("span", { class: "state", "aria-hidden": "true" }), element("span", {}, String(number)));
  const load = element("div", { class: "load" }, element("span", { class: "bytes" }), element("b"), element("span", { class: "count" }));
  const why = element("div", { class: "why", hidden: true });
  root.append(name, bar, load, why);
  const row = { root, bar, name, load, why, drawn: new Map(), chosen: null };
  rows.set(number, row);
  return row;
}

function fill(row, consumer, state, scale) {
  row.root.dataset.state = consumer.state;
  const size = consumer.class_name === "ordinary" ? "" : consumer.class_name;
  const own = consumer.capacity / scale.end;
  row.root.style.setProperty("--packing", `${(100 * own * state.packing_capacity) / state.capacity}%`);
  row.root.style.setProperty("--capacity", `${100 * own}%`);
  row.name.title = `consumer ${consumer.consumer}: ${size ? `${size}, ` : ""}${consumer.state}`;
  const share = consumer.load / consumer.capacity;
  say(row.load.children[0], speed(consumer.load));
  say(row.load.children[1], percent(share));
  row.load.children[1].classList.toggle("over", share > 1);
  say(row.load.children[2], `${count(consumer.partitions.length)} part.`);
  row.load.children[2].title = plural(consumer.partitions.length, "partition");
  const words = [size, consumer.reason].filter(Boolean).join(": ");
  row.why.hidden = !words;
  say(row.why, words);
  row.bar.setAttribute(
    "aria-label",
    `Consumer ${consumer.consumer}, ${size ? `${size}, ` : ""}${consumer.state}, ${speed(consumer.load)}, ${percent(share)} of its capacity`,
  );
  const wanted = [
    ...consumer.partitions.map((part) => ({ ...part, key: `${part.topic}/${part.partition}` })),
    ...consumer.awaits.map((part) => ({ ...part, awaited: true, key: `${part.topic}/${part.partition}/awaited` })),
  ];
  row.bar.setAttribute("role", wanted.length ? "listbox" : "img");
  const keys = new Set(wanted.map((part) => part.key));
  for (const [key, node] of row.drawn) {
    if (!keys.has(key)) {
      if (row.chosen === node) choose(row, null);
      if (pointedAt === node) pointedAt = null;
      node.remove();
      row.drawn.delete(key);
    }
  }
  wanted.forEach((part, place) => {
    let node = row.drawn.get(part.key);
    if (!node) {
      node = element("div", { role: "option", "aria-selected": "false", id: `part-${consumer.consumer}-${part.key}` }, element("span"));
      row.drawn.set(part.key, node);
    }
    if (row.bar.children[place] !== node) row.bar.insertBefore(node, row.bar.children[place] ?? null);
    paint(node, part, consumer.consumer, scale);
  });
}

function paint(node, part, consumer, { end, width: whole }) {
  const marks = [
    part.awaited ? "awaited" : "",
    part.to !== null ? "leaving" : "",
    part.oversized ? "oversized" : "",
    part.speed === null ? "unknown" : "",
  ];
  const drawnAs = ["part", topics.colour(part.topic), ...marks].filter(Boolean).join(" ");
  if (node.className !== drawnAs) node.className = drawnAs;
  node.toggleAttribute("data-lit", topics.isLit(part.topic));
  const width = part.speed === null ? "" : `${((100 * part.speed) / end).toFixed(3)}%`;
  if (node.style.width !== width) node.style.width = width;
  const room = part.speed === null ? 0 : (part.speed / end) * whole;
  const name = `${part.topic}-${part.partition}`;
  const label = part.speed === null ? "?" : room > 7.5 * name.length + 12 ? name : room > 26 ? String(part.partition) : "";
  say(node.firstChild, label);
  parts.set(node, { ...part, consumer });
  const text = inWords(parts.get(node));
  if (node.getAttribute("aria-label") !== text) node.setAttribute("aria-label", text);
}

function inWords(part) {
  const facts = [`${part.topic}-${part.partition}`];
  if (part.speed === null) facts.push("speed not known");
  else facts.push(speed(part.speed), `${percent(part.speed / newest.capacity)} of a consumer`);
  if (part.lag !== null) facts.push(`lag ${count(part.lag)}`);
  if (part.oversized) facts.push("faster than a consumer: its topic needs more partitions");
  if (part.awaited) facts.push(part.source === null || part.source === part.consumer ? `consumer ${part.consumer} is about to read it` : `moves from consumer ${part.source} to consumer ${part.consumer}`);
  else if (part.to !== null) facts.push(`${newest.advised ? "would move" : "moves"} from consumer ${part.consumer} to consumer ${part.to}`);
  else facts.push(`read by consumer ${part.consumer}`);
  return facts.join(", ");
}

function showUnread(state) {
  const box = byId("unread");
  box.hidden = state.unread.length === 0;
  if (box.hidden) {
    box.replaceChildren();
    return;
  }
  const shown = state.unread.slice(0, 12).map((part) =>
    element("span", { class: "chip" }, `${part.topic}-${part.partition}${part.to === null ? "" : ` → ${part.to}`}`),
  );
  const more = state.unread.length > 12 ? [element("span", { class: "chip" }, `${count(state.unread.length - 12)} more`)] : [];
  box.replaceChildren(element("strong", {}, "Without a reader just now"), ...shown, ...more);
}

// What is pointed at, or was chosen with the arrow keys, in words.

function describe() {
  const node = pointedAt ?? document.activeElement?.parentElement?.querySelector?.(".bar:focus [data-chosen]");
  const part = node && parts.get(node);
  say(byId("detail"), part ? inWords(part) : "");
}

board.addEventListener("pointerover", (event) => {
  pointedAt = event.target.closest?.(".part") ?? null;
  describe();
});
board.addEventListener("pointerleave", () => {
  pointedAt = null;
  describe();
});

// One stop of the Tab key; arrows go on from there.

function keepOneTabStop() {
  const bars = [...board.querySelectorAll(".bar")];
  if (bars.length && !bars.some((bar) => bar.tabIndex === 0)) bars[0].tabIndex = 0;
}

const rowOf = (bar) => [...rows.values()].find((row) => row.bar === bar);

function choose(row, node) {
  if (row.chosen) {
    row.chosen.removeAttribute("data-chosen");
    row.chosen.setAttribute("aria-selected", "false");
  }
  row.chosen = node;
  if (node) {
    node.setAttribute("data-chosen", "");
    node.setAttribute("aria-selected", "true");
    row.bar.setAttribute("aria-activedescendant", node.id);
    if (row.bar.scrollIntoView) row.bar.scrollIntoView({ block: "nearest" });
  } else row.bar.removeAttribute("aria-activedescendant");
}

board.addEventListener("focusin", (event) => {
  const row = rowOf(event.target);
  if (!row) return;
  for (const bar of board.querySelectorAll(".bar")) bar.tabIndex = bar === row.bar ? 0 : -1;
  if (!row.chosen) choose(row, row.bar.querySelector(".part"));
  describe();
});
board.addEventListener("focusout", (event) => {
  const row = rowOf(event.target);
  if (row) choose(row, null);
  describe();
});
board.addEventListener("keydown", (event) => {
  const row = rowOf(event.target);
  if (!row) return;
  const inBar = [...row.bar.children];
  const bars = [...board.querySelectorAll(".bar")];
  const at = inBar.indexOf(row.chosen);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  let target = null;
  if (step) target = inBar[at + step];
  else if (event.key === "Home") target = inBar[0];
  else if (event.key === "End") target = inBar.at(-1);
  else if (turn) bars[bars.indexOf(row.bar) + turn]?.focus();
  else return;
  event.preventDefault();
  if (target) choose(row, target);
  describe();
});
