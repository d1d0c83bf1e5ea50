// The table of all groups that one process controls, asked for again every two seconds.

import { byId, element, fetched, say } from "./dom.js";
import { count, plural, speed } from "./format.js";

const EVERY_MS = 2000;

function standing(group) {
  if (group.fault !== null) return element("span", { class: "chip bad" }, group.fault);
  if (group.paused) return element("span", { class: "chip warn" }, "paused");
  return element("span", { class: "chip" }, (group.role === "observer" ? "only observes: " : "") + group.ready);
}

function row(group) {
  const name = group.role === null ? group.name : element("a", { href: `groups/${group.name}/` }, group.name);
  const advised = group.advised === null ? "" : ` (${count(group.advised)} advised)`;
  const fewest = group.fewest_consumers === null ? "" : ` (${count(group.fewest_consumers)} at least)`;
  const unread = group.unread ? ` (${count(group.unread)} unread)` : "";
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, name),
    element("td", {}, standing(group)),
    element("td", {}, count(group.consumers) + advised + fewest),
    element("td", {}, speed(group.total_speed)),
    element("td", {}, count(group.lag)),
    element("td", {}, count(group.partitions) + unread),
  );
}

async function show() {
  try {
    const groups = await fetched("api/groups");
    byId("groups").replaceChildren(...groups.map(row));
    const faulty = groups.filter((each) => each.fault !== null).length;
    say(byId("standing"), plural(groups.length, "group") + (faulty ? `, ${count(faulty)} not controlled` : ""));
    byId("live").dataset.live = "yes";
    say(byId("live-text"), "live");
  } catch {
    byId("live").dataset.live = "no";
    say(byId("live-text"), "no answer, trying again");
  }
  setTimeout(show, EVERY_MS);
}

show();
