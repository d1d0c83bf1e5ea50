// Keeps the page up to date: one stream of states, and what is asked for when a state says that there is more.

import * as bars from "./bars.js";
import * as charts from "./charts.js";
import * as decisions from "./decisions.js";
import { byId, fetched, live, say, stand } from "./dom.js";
import { count, data, plural, speed } from "./format.js";
import { offer } from "./operate.js";
import "./theme_button.js";
import { tile } from "./tiles.js";

const STALE_S = 30;
const CLOCKS_SHOWN = 3;
const STATES = {
  synchronize: "learning who reads what",
  sentinel: "watching",
  reassign: "deciding",
  manage: "handing over",
};
let newestDecision = null;

function show(state) {
  document.title = `${state.group} · kcga`;
  say(byId("group"), state.group);
  showStanding(state);
  showTiles(state);
  bars.show(state);
  charts.add(state);
  if (state.newest_decision !== newestDecision) {
    newestDecision = state.newest_decision;
    decisions.refresh().catch(() => {
      newestDecision = null; // again with the next state
    });
    remember();
  }
}

function showStanding(state) {
  const { role, epoch, state: doing, paused } = state.controller;
  const chips = [];
  if (role === "leader") chips.push(["", STATES[doing] ?? "begins"]);
  else chips.push(["warn", role === "standby" ? "stands by" : "starting"]);
  if (paused) chips.push(["warn", "paused"]);
  for (const { topic, reason } of state.parked) chips.push(["bad", `${topic} is parked: ${reason}`]);
  if (state.foresight !== null) chips.push(["", state.foresight]);
  if (state.rollout.words !== null) chips.push([state.rollout.stopped ? "bad" : "warn", state.rollout.words]);
  const age = state.speeds_at === null ? null : state.at - state.speeds_at;
  if (role === "leader" && age === null) chips.push(["warn", "no write speeds yet"]);
  else if (age > STALE_S) chips.push(["bad", `write speeds are ${Math.round(age)} s old`]);
  for (const { sender, ahead_s: ahead } of state.clocks.slice(0, CLOCKS_SHOWN)) {
    chips.push(["warn", `clock of ${sender} ${count(Math.round(Math.abs(ahead)))} s ${ahead > 0 ? "ahead" : "behind"}`]);
  }
  const unshown = state.clocks.length - CLOCKS_SHOWN;
  if (unshown > 0) chips.push(["warn", `${plural(unshown, "more clock")} ahead or behind`]);
  if (epoch !== null) chips.push(["", `epoch ${epoch}`]);
  stand(chips);
}

function showTiles(state) {
  const alive = state.consumers.filter((each) => each.state !== "awaited" && each.state !== "silent").length;
  const fewest = state.fewest_consumers;
  tile("consumers", count(alive), "", fewest === null ? "\u00a0" : `${plural(fewest, "consumer")} at least for this load`);
  const [amount, unit] = state.total_speed === null ? ["–", ""] : data(state.total_speed).split(" ");
  const room = alive ? `${Math.round((100 * (state.total_speed ?? 0)) / (alive * state.capacity))} % of what they can read` : "\u00a0";
  tile("speed", amount, unit && `${unit}/s`, room);
  byId("sources").hidden = state.sources === null;
  say(byId("sources"), state.sources ?? "");
  tile("lag", count(state.lag), state.lag === null ? "" : "records", "written, not committed yet");
  const { migrations, rscore, scale_ups: ups, scale_downs: downs } = state.totals;
  tile("moved", count(migrations), "", `Rscore ${rscore.toFixed(2)}, scaled ↑${ups} ↓${downs}`);
  const faults = [];
  if (state.moving) faults.push(`${count(state.moving)} moving`);
  if (state.unread.length) faults.push(`${count(state.unread.length)} unread`);
  if (state.unknown) faults.push(`${count(state.unknown)} unknown`);
  if (state.oversized) faults.push(`${count(state.oversized)} oversized`);
  const bad = state.oversized ? "bad" : faults.length ? "warn" : "";
  tile("partitions", count(state.partitions), "", faults.join(", ") || (state.rests ? "nothing to read: nobody reads until there is" : "all read, all at rest"), bad);
  const parked = state.parked.length;
  tile("refused", count(state.dead_letters), "", parked ? `${plural(parked, "topic")} parked` : "no topic parked", parked ? "bad" : "");
}

async function remember() {
  try {
    charts.setHistory(await fetched("api/history"));
  } catch {
    // the next decision asks again
  }
}

const events = new EventSource("api/events");
events.addEventListener("open", () => {
  live(true, "live");
  remember();
  offer().catch(() => {});
});
events.addEventListener("error", () => live(false, "no answer, trying again"));
events.addEventListener("state", (event) => show(JSON.parse(event.data)));
