// Four courses over time, drawn as SVG on one axis of time.

import { byId, drawn, element, say } from "./dom.js";
import { count, minute, speed, time } from "./format.js";

const HEIGHT = 130;
const EDGE = { left: 68, right: 8, top: 8, bottom: 20 };
const KEPT_S = 3600;
const plain = (value) => (value >= 10 ? count(Math.round(value)) : String(Math.round(value * 100) / 100));

const CHARTS = [
  {
    title: "Consumers",
    form: plain,
    whole: true,
    lines: [
      { name: "consumers", series: "consumers", kind: "step", key: "k1" },
      { name: "lower bound", series: "fewest_consumers", kind: "step", key: "k2", dashed: true },
    ],
  },
  { title: "Write speed", form: speed, lines: [{ name: "all partitions", series: "speed", kind: "area", key: "k3" }] },
  { title: "Lag", form: (value) => count(Math.round(value)), lines: [{ name: "records", series: "lag", kind: "area", key: "k4" }] },
  { title: "Rscore", form: plain, lines: [{ name: "of each plan, in consumers", series: "rscore", kind: "stems", key: "k2" }] },
];

const past = { consumers: [], fewest_consumers: [], speed: [], lag: [], rscore: [] };
let now = Date.now() / 1000; // from the first state on it is the time there
let chosen = 300; // how far back one wants to look, in s; a young group has a shorter past
const SHORTEST_S = 60;
const span = () => Math.min(chosen, Math.max(SHORTEST_S, now - (past.speed[0]?.[0] ?? now)));

const figures = CHARTS.map((chart) => {
  const svg = drawn("svg", { class: "chart", role: "img" });
  const value = element("span", { class: "now" });
  const keys = chart.lines.map((line) => element("span", { class: `key ${line.key}${line.dashed ? " dashed" : ""}` }, line.name));
  byId("charts").append(element("figure", {}, element("figcaption", {}, element("span", {}, chart.title), ...keys, value), svg));
  const figure = { chart, svg, value, at: null };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
    for (const each of figures) each.at = now - span() + Math.min(1, Math.max(0, share)) * span();
    draw();
  });
  svg.addEventListener("pointerleave", () => {
    for (const each of figures) each.at = null;
    draw();
  });
  return figure;
});

export function setHistory(history) {
  for (const name of Object.keys(past)) past[name] = history[name];
  draw();
}

export function add(state) {
  now = state.at;
  const alive = state.consumers.filter((each) => each.state !== "silent" && each.state !== "awaited").length;
  push(past.consumers, state.at, alive);
  if (state.fewest_consumers !== null) push(past.fewest_consumers, state.speeds_at, state.fewest_consumers);
  if (state.total_speed !== null) push(past.speed, state.speeds_at, state.total_speed);
  if (state.lag !== null) push(past.lag, state.at, state.lag);
  draw();
}

function push(series, at, value) {
  if (series.length && series.at(-1)[0] >= at) return;
  series.push([at, value]);
  while (series.length > 2 && series[1][0] < now - KEPT_S) series.shift();
}

const valueAt = (series, at) => series.findLast((sample) => sample[0] <= at)?.[1];

function ticks(highest, whole) {
  const rough = highest / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  if (whole) step = Math.max(1, Math.ceil(step));
  return [0, 1, 2, 3, 4].map((each) => each * step).filter((each, place) => place < 2 || each < highest + step);
}

function draw() {
  for (const figure of figures) drawOne(figure);
}

function drawOne({ chart, svg, value, at }) {
  const width = svg.clientWidth;
  if (!width) return;
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const width_s = span();
  const begin = now - width_s;
  const series = chart.lines.map((line) => {
    const all = past[line.series];
    if (line.kind === "stems") return all.filter((sample) => sample[0] >= begin);
    const first = all.findLastIndex((sample) => sample[0] <= begin);
    return all.slice(Math.max(0, first)).map(([when, what]) => [Math.max(when, begin), what]);
  });
  const highest = Math.max(chart.whole ? 3 : 1e-9, ...series.flat().map((sample) => sample[1]));
  const marks = ticks(highest * 1.08, chart.whole);
  const top = marks.at(-1);
  const x = (when) => EDGE.left + ((when - begin) / width_s) * (width - EDGE.left - EDGE.right);
  const y = (what) => HEIGHT - EDGE.bottom - (what / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const nodes = [];
  for (const mark of marks) {
    nodes.push(drawn("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(mark), y2: y(mark) }));
    const anyValue = highest > 1e-9 || mark === 0;
    if (anyValue) nodes.push(drawn("text", { x: EDGE.left - 6, y: y(mark) + 4, "text-anchor": "end" }, chart.form(mark)));
  }
  const label = width_s < 300 ? time : minute;
  for (const share of width < 420 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    nodes.push(drawn("text", { x: x(begin + share * width_s), y: HEIGHT - 5, "text-anchor": anchor }, label(begin + share * width_s)));
  }
  chart.lines.forEach((line, place) => {
    const samples = series[place];
    if (!samples.length) return;
    if (line.kind === "stems") {
      for (const [when, what] of samples) {
        nodes.push(drawn("line", { class: `stem ${line.key}`, x1: x(when), x2: x(when), y1: y(0), y2: Math.min(y(what), y(0) - 1) }));
      }
      return;
    }
    const path = samples.map(([when, what], index) => {
      const to = `${x(when).toFixed(1)} ${y(what).toFixed(1)}`;
      if (index === 0) return `M${to}`;
      return line.kind === "step" ? `H${x(when).toFixed(1)}V${y(what).toFixed(1)}` : `L${to}`;
    });
    path.push(`H${x(now).toFixed(1)}`);
    if (line.kind === "area") {
      const below = `V${y(0)}H${x(samples[0][0]).toFixed(1)}Z`;
      nodes.push(drawn("path", { class: `area ${line.key}`, d: path.join("") + below }));
    }
    nodes.push(drawn("path", { class: `line ${line.key}${line.dashed ? " dashed" : ""}`, d: path.join("") }));
  });
  if (at !== null) nodes.push(drawn("line", { class: "cursor", x1: x(at), x2: x(at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }));
  const when = at ?? now;
  const said = chart.lines.map((line) => {
    const what = line.kind === "stems" ? total(past[line.series], begin, when) : valueAt(past[line.series], when);
    return what === undefined ? "–" : chart.form(what);
  });
  const text = chart.lines[0].kind === "stems" ? `${said[0]} in all` : said.join(" / ");
  say(value, at === null ? text : `${time(at)}  ${text}`);
  svg.setAttribute("aria-label", `${chart.title}: now ${said.join(", lower bound ")}, at most ${chart.form(highest)} in the last ${Math.ceil(width_s / 60)} minutes`);
  svg.replaceChildren(...nodes);
}

const total = (series, begin, end) =>
  series.filter((sample) => sample[0] >= begin && sample[0] <= end).reduce((sum, sample) => sum + sample[1], 0);

for (const button of byId("spans").children) {
  button.addEventListener("click", () => {
    chosen = Number(button.dataset.span);
    for (const other of byId("spans").children) other.setAttribute("aria-pressed", String(other === button));
    draw();
  });
}
new ResizeObserver(draw).observe(byId("charts"));
