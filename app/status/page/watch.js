// A group beside which kcga is not its controller: how it stands, what kcga would do, and what that would save.

import * as bars from "./bars.js";
import { byId, element, live, say, stand } from "./dom.js";
import { count, data, plural, speed, time } from "./format.js";
import "./theme_button.js";
import { tile } from "./tiles.js";

const WEEK_S = 7 * 24 * 3600;
const READS = {
  given: (most) => `a consumer reads ${most} at most`,
  estimate: (most) => `a consumer reads about ${most} at most`,
  unknown: () => "what a consumer reads is not known",
};
const hours = (amount) => amount.toLocaleString("en", { maximumFractionDigits: amount < 10 ? 1 : 0 });
const seconds = (amount) => (amount === null ? "–" : `${amount.toLocaleString("en", { maximumFractionDigits: 1 })} s`);

function show({ moment, advice, capacity, remarks, saving, cost }) {
  document.title = `beside ${moment.group} · kcga`;
  say(byId("group"), moment.group);
  showStanding(moment);
  showTiles(moment, cost);
  say(byId("advice"), advice);
  list("remarks", [...capacity, ...remarks]);
  list("saving", saving);
  byId("saving-empty").hidden = saving.length > 0;
  bars.show(drawn(moment));
  showRebalances(moment);
}

function showStanding(moment) {
  const chips = [];
  if (moment.state === null) chips.push(["bad", "who is in the group is not known"]);
  else chips.push([moment.settled ? "" : "warn", moment.settled ? `${moment.protocol} group` : "a rebalance is under way"]);
  if (moment.overloaded.length) chips.push(["bad", `${count(moment.overloaded.length)} overloaded`]);
  if (moment.idle.length) chips.push(["warn", `${count(moment.idle.length)} idle`]);
  stand(chips);
}

function showTiles(moment, cost) {
  const needed = moment.needed === null ? "\u00a0" : `${plural(moment.needed, "consumer")} needed`;
  tile("consumers", count(moment.consumers), "", needed);
  const [amount, unit] = moment.written === null ? ["–", ""] : data(moment.written).split(" ");
  tile("speed", amount, unit && `${unit}/s`, READS[moment.capacity_from](speed(moment.capacity)));
  const behind = moment.lag_s === null ? "\u00a0" : `${seconds(moment.lag_s)} at the most`;
  tile("lag", count(moment.lag), moment.lag === null ? "" : "records", behind);
  tile("rebalances", count(moment.rebalances_seen), "", `${seconds(cost)} unread, of all partitions`);
  const saved = moment.saving;
  if (saved === null) return tile("week", "–", "", "\u00a0");
  const weeks = WEEK_S / saved.seconds;
  const [own, other] = [weeks * saved.consumer_hours, weeks * saved.consumer_hours_with_kcga];
  tile("week", hours(other), "consumer-hours", `in place of ${hours(own)}`);
}

function list(id, sentences) {
  const node = byId(id);
  const text = sentences.join("\n");
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...sentences.map((sentence) => element("li", {}, sentence)));
}

// As the bars have a group that kcga controls.
function drawn(moment) {
  const [overloaded, idle] = [new Set(moment.overloaded), new Set(moment.idle)];
  const consumers = moment.members.map((member) => ({
    consumer: member.consumer,
    state: overloaded.has(member.consumer) ? "degraded" : "ready",
    reason: overloaded.has(member.consumer)
      ? `${member.client} has more to read than a consumer can`
      : idle.has(member.consumer)
        ? `${member.client} has next to nothing to read`
        : null,
    class_name: "ordinary",
    capacity: moment.capacity,
    load: member.load,
    partitions: member.partitions,
    awaits: [],
  }));
  return { ...moment, consumers, advised: true };
}

function showRebalances(moment) {
  byId("rebalances-empty").hidden = moment.rebalances.length > 0;
  byId("rebalances-table").hidden = moment.rebalances.length === 0;
  const newest = moment.rebalances.toReversed();
  byId("rebalances").replaceChildren(
    ...newest.map((each) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, time(each.began_at)),
        element("td", {}, each.ended_at === null ? "is under way" : seconds(each.ended_at - each.began_at)),
        element("td", {}, count(each.moved)),
        element("td", {}, seconds(each.unassigned_s)),
        element("td", {}, seconds(each.standstill_s)),
      ),
    ),
  );
}

const events = new EventSource("api/events");
events.addEventListener("open", () => live(true, "live"));
events.addEventListener("error", () => live(false, "no answer, trying again"));
events.addEventListener("state", (event) => show(JSON.parse(event.data)));
